"""Commands in processes whose n-th write fails or kills them.

`python -m tests.faults.injection FOLDER` imports everything once and then forks a process for each order, which is a
line of JSON on its standard input. The answer is a line of JSON too.
"""

from __future__ import annotations

import builtins
import errno
import importlib
import io
import json
import os
import resource
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ONCE, ALWAYS, KILL, LIMIT = "once", "always", "kill", "limit"
"""The n-th write fails; it and all later ones fail; it kills the process; no file can become longer than n bytes."""
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass
class Faults:
    """Counts the writes in a folder, and lets them fail or kill the process according to the mode.

    A write of data is half done before it fails. PyArrow writes files by itself; the limit of length is for these.
    """

    folder: Path
    number: int
    mode: str
    calls: list[str] = field(default_factory=list)

    def call(self, name: str, path: Any, half: Callable[[], object] = lambda: None) -> None:
        place = self.place(path)
        if place is None:
            return
        self.calls.append(f"{name} {place}")
        if self.mode == LIMIT or not self.number:
            return
        if len(self.calls) == self.number or (self.mode == ALWAYS and len(self.calls) > self.number):
            half()
            if self.mode == KILL:
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fspath(path) if isinstance(path, Path) else None)

    def place(self, path: Any) -> str | None:
        """Return the path in the folder; None for another place."""
        if isinstance(path, int):
            path = os.readlink(f"/proc/self/fd/{path}")
        absolute = os.path.abspath(os.fspath(path))
        inside = os.path.commonpath([absolute, str(self.folder)]) == str(self.folder)
        return os.path.relpath(absolute, self.folder) if inside else None

    def install(self) -> None:
        """Replace the functions that change files."""
        if self.mode == LIMIT:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.number, resource.RLIM_INFINITY))
        plain_open, plain_os_open, plain_write, plain_fsync = io.open, os.open, os.write, os.fsync
        faults = self

        class Raw(io.FileIO):
            def write(self, data: Any) -> int:
                half = memoryview(data).cast("B")[: len(memoryview(data).cast("B")) // 2]
                faults.call("write", self.fileno(), lambda: super(Raw, self).write(half))
                return super().write(data)

            def truncate(self, size: int | None = None) -> int:
                faults.call("truncate", self.fileno())
                return super().truncate(size)

        def opened(file: Any, mode: str = "r", buffering: int = -1, *arguments: Any, **options: Any) -> Any:
            if not set(mode) & set("wax+") or isinstance(file, int) or faults.place(file) is None:
                return plain_open(file, mode, buffering, *arguments, **options)
            faults.call("open", file)
            raw = Raw(file, mode.replace("b", "").replace("t", ""))
            buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
            return buffered if "b" in mode else io.TextIOWrapper(buffered, *arguments, **options)

        def os_open(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
            if flags & WRITING and options.get("dir_fd") is None:
                faults.call("open", path)
            return plain_os_open(path, flags, *arguments, **options)

        def write(descriptor: int, data: bytes) -> int:
            faults.call("write", descriptor, lambda: plain_write(descriptor, data[: len(data) // 2]))
            return plain_write(descriptor, data)

        def fsync(descriptor: int) -> None:
            faults.call("fsync", descriptor)
            plain_fsync(descriptor)

        builtins.open = io.open = opened  # type: ignore[assignment]
        os.open, os.write, os.fsync = os_open, write, fsync  # type: ignore[assignment]
        for name in ("replace", "rename", "unlink", "remove", "mkdir", "rmdir", "truncate"):
            setattr(os, name, self._counted(name, getattr(os, name)))

    def _counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(path: Any, *arguments: Any, **options: Any) -> Any:
            folder = options.get("dir_fd")
            self.call(name, path if folder is None else Path(os.readlink(f"/proc/self/fd/{folder}")) / os.fspath(path))
            return function(path, *arguments, **options)

        return counted


def lignn_command(*arguments: str) -> None:
    from lignn.cli import main
    from lignn.runs import workers

    def in_this_process(function: Callable[[Any], Any], rounds: Any, *_: Any) -> Iterator[tuple[Any, Any]]:
        yield from ((task, function(task)) for tasks in rounds for task in tasks)

    workers.in_rounds = in_this_process  # type: ignore[assignment]
    main(arguments)


def save(folder: str) -> None:
    import lignn
    from lignn.errors import LignnError

    try:
        lignn.load("newer").save(folder)
    except LignnError as error:
        sys.exit(f"error: {error}")


def write_tables() -> None:
    import lignn
    from lignn.errors import LignnError

    try:
        lignn.Graph.read("mine").to_undirected().write("tables")
    except LignnError as error:
        sys.exit(f"error: {error}")


FIT = ("fit", "mine", "--max-epochs", "2", "--hidden", "4", "-o")
COMMANDS: dict[str, tuple[Callable[..., None], tuple[str, ...]]] = {
    "fit": (lignn_command, (*FIT, "model")),
    "first fit": (lignn_command, (*FIT, "new")),
    "save": (save, ("model",)),
    "first save": (save, ("new",)),
    "save over a model of 0.1": (save, ("flat",)),
    "predict": (lignn_command, ("predict", "newer", "-o", "out.csv")),
    "reproduce": (lignn_command, ("reproduce", "tiny.toml", "--out", "results")),
    "tables": (write_tables, ()),
}


def state(command: str) -> Any:
    """Return what a user finds: a whole result, or None; anything else raises."""
    import lignn
    from lignn.classifier import saving
    from lignn.runs import records

    if command == "predict":
        return Path("out.csv").read_text() if Path("out.csv").exists() else None
    if command == "reproduce":
        found = records.read(Path("results/tiny.jsonl"))
        return sorted([record["id"], record["status"], record["scores"]] for record in found) or None
    if command == "tables":
        return lignn.Graph.read("tables").num_edges
    folder = Path(COMMANDS[command][1][-1])
    if not folder.exists():
        return None
    classifier = lignn.load(folder)
    settings = saving.settings_file(folder)
    told = settings.read_text() if settings.exists() else None
    return [classifier.predict_proba().tolist(), classifier.method, told]


def prepare(folder: Path) -> None:
    """Write what the commands start from."""
    from tests.cli.conftest import write_tables
    from tests.studies import tiny

    os.chdir(folder)
    write_tables(folder / "mine")
    text = tiny.TEXT[: tiny.TEXT.rindex("[[case]]")].replace("max_epochs = 2", "max_epochs = 1")
    (folder / "tiny.toml").write_text(text)
    for name, method in (("model", "label_reuse"), ("newer", "lpa")):
        with suppress(SystemExit):
            lignn_command("fit", "mine", "--method", method, "--max-epochs", "1", "-o", name)
    shutil.copytree(Path("model/generation-1"), "flat", ignore=shutil.ignore_patterns("settings.toml"))
    (folder / "out.csv").write_text("old\n")
    import lignn

    lignn.Graph.read("mine").write("tables")


def main(base: Path) -> None:
    for name in ("lignn.classifier.prediction_table", "lignn.propagation.product_kernels", "lignn.studies.run"):
        importlib.import_module(name)
    for name in ("tests.cli.conftest", "torch._dynamo"):  # the optimizer imports the latter
        importlib.import_module(name)

    for line in sys.stdin:
        order = json.loads(line)
        print(json.dumps(ORDERS[order.pop("do")](base, **order)), flush=True)  # noqa: T201


def forked(folder: Path, function: Callable[[], Any]) -> dict[str, Any]:
    """Call a function in a process of its own, in a folder; what it returned, how it ended, and what it printed."""
    told, said = folder.with_name(f"{folder.name}.told"), folder.with_name(f"{folder.name}.said")
    for file in (told, said):
        file.unlink(missing_ok=True)
    if process := os.fork():
        ended = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        value = json.loads(told.read_text()) if told.exists() else None
        return {"code": ended, "value": value, "said": said.read_text() if said.exists() else ""}
    code, printed = 99, io.StringIO()
    try:
        sys.stdout = sys.stderr = printed  # a file would be limited too
        os.chdir(folder)
        value = function()
        told.write_text(json.dumps(value))
        code = 0
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)  # noqa: T201
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        said.write_text(printed.getvalue())
        os._exit(code)


def do_prepare(base: Path) -> dict[str, Any]:
    (base / "start").mkdir(parents=True)
    return forked(base / "start", lambda: prepare(base / "start"))


def do_run(base: Path, command: str, number: int, mode: str, folder: str) -> dict[str, Any]:
    """Run a command in a folder, a copy of the first one if it is new; its calls are written beside it."""
    place = base / folder
    if not place.exists():
        shutil.copytree(base / "start", place)

    def run() -> None:
        function, arguments = COMMANDS[command]
        faults = Faults(place, number, mode)
        calls = place.with_name(f"{folder}.calls")
        try:
            faults.install()
            function(*arguments)
        finally:
            faults.folder, faults.number = place / "nowhere", 0
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            calls.write_text("\n".join(faults.calls))

    return forked(place, run)


def do_state(base: Path, command: str, folder: str) -> dict[str, Any]:
    return forked(base / folder, lambda: [state(command)])


def do_repeat(base: Path, command: str, folder: str) -> dict[str, Any]:
    """Repeat a command, as an interrupted run if it asks for that; return the states before and after."""

    def repeat() -> list[Any]:
        function, arguments = COMMANDS[command]
        before = state(command)
        more = ["--resume"] if any(Path().glob("[!.]*.checkpoint")) else []
        try:
            function(*arguments, *more)
        except SystemExit as end:
            if end.code:
                raise
        return [before, state(command)]

    return forked(base / folder, repeat)


ORDERS: dict[str, Callable[..., dict[str, Any]]] = {
    "prepare": do_prepare,
    "run": do_run,
    "state": do_state,
    "repeat": do_repeat,
}

if __name__ == "__main__":
    main(Path(sys.argv[1]))
