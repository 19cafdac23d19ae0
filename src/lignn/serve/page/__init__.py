"""The page: NiceGUI on the same application. Its assets are in its wheel, so nothing is loaded from elsewhere."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI

from lignn.serve.service import Service


def mount(app: FastAPI, service: Service) -> None:
    """Add the page to an application, at `/`."""
    from nicegui import Client, ui

    from lignn.serve.page.desk import Crew
    from lignn.serve.page.frame import ANSWER_SECONDS, Frame

    crew = Crew()
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")

    @ui.page("/", title="lignn", dark=None, language="en-US")
    async def page(client: Client) -> None:
        ui.add_css(style)
        frame = Frame(service, crew, client)
        frame.build()
        client.on_delete(frame.leave)
        await client.connected(timeout=ANSWER_SECONDS)
        await frame.open()

    ui.run_with(app, title="lignn", dark=None, show_welcome_message=False, reconnect_timeout=20.0)
