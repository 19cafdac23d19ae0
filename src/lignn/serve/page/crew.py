"""Who works on which node: people who label at the same time get different nodes."""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic

LEASE_SECONDS = 120.0
"""A node is kept for a person for so long; then it may be another's."""


class Crew:
    """Nodes that are being looked at, shared by all pages of a service; used in the event loop only."""

    def __init__(self) -> None:
        self._leases: dict[str, tuple[str, float]] = {}

    def take(self, desk: str, nodes: Iterable[str]) -> str | None:
        """Return the first of `nodes` that nobody else has, and keep it for a desk; its last one is given back."""
        self.leave(desk)
        for node in nodes:
            holder, until = self._leases.get(node, (desk, 0.0))
            if holder == desk or until < monotonic():
                self.hold(desk, node)
                return node
        return None

    def hold(self, desk: str, node: str) -> None:
        """Keep a node for a desk that looks at it."""
        self._leases[node] = (desk, monotonic() + LEASE_SECONDS)

    def leave(self, desk: str) -> None:
        """Give back what a desk has."""
        self._leases = {node: lease for node, lease in self._leases.items() if lease[0] != desk}
