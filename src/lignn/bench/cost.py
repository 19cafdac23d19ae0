"""The cost model of `docs/guides/scale.md`: bytes and multiplications of a step, at the rates that were measured.

The rates are those of one product and of one step on the store of 10⁷ edges. Epochs on that store and on one ten times
as large show how good the model is; what it says of larger graphs was not run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lignn.bench.timing import Record
from lignn.classifier.planning import size, steps_of_epoch
from lignn.evaluation.page import markdown_rows

SIZE = 4
"""Bytes of a number in float32."""
HOPS = 2
"""Products of a step of a two-layer GCN, each c columns wide."""
STEPS = steps_of_epoch(10)
NETWORK = 1e9
"""Bytes a second between two machines, an assumption: 10 Gbit/s."""
MACHINES = (1, 8, 64)


@dataclass(frozen=True)
class Sizes:
    """A graph, and the network on it.

    Attributes:
        nodes: n.
        entries: entries of A, both directions of an edge counted, E.
        classes: c.
        features: features of a node that each step multiplies, d; 0 if their products with the weight are kept.
        hidden: width of the hidden layer, h.
    """

    nodes: float
    entries: float
    classes: int
    features: int
    hidden: int = 64

    @property
    def gathered(self) -> float:
        """Bytes that the products of a step take from the state."""
        return HOPS * SIZE * self.classes * self.entries

    @property
    def multiplications(self) -> float:
        """Multiplications of the maps of rows of a step: d + c → h → c."""
        return self.nodes * self.hidden * (self.features + 2 * self.classes)


OGB = {
    "ogbn-products": Sizes(2.45e6, 124e6, 47, 100),
    "ogbn-papers100M": Sizes(111e6, 3.23e9, 172, 128),
}
"""Published sizes; the edges of papers100M in both directions."""


@dataclass(frozen=True)
class Rates:
    """What the machine does in a second, with all its cores: bytes gathered, and multiplications of rows."""

    gathered: float
    multiplications: float

    @classmethod
    def measured(cls, record: Record) -> Rates:
        """Return the rates from the seconds of a product and of a step."""
        sizes, product = _sizes(record), record["product"]
        rest = record["step"] - HOPS * product
        return cls(sizes.gathered / HOPS / product, sizes.multiplications / rest)

    def step(self, sizes: Sizes) -> float:
        """Return the seconds of a step."""
        return sizes.gathered / self.gathered + sizes.multiplications / self.multiplications


def markdown(store: Sequence[Record], cluster: Sequence[Record], exchange: Sequence[Record]) -> str:
    """Return the rates, measured epochs beside those of the model, and what it says of larger graphs.

    Args:
        store: records of the suite `store`.
        cluster: records of the suite `cluster`.
        exchange: records of the suite `exchange`.
    """
    known = _find(cluster, "10⁷ edges", "1 process × 2 threads")
    rates = Rates.measured(known)
    sizes = _sizes(known)
    larger = Sizes(10 * sizes.nodes, 10 * sizes.entries, sizes.classes, sizes.features)
    checked = [
        ("10⁷ edges, 8 METIS parts", sizes, known["median"]),
        ("10⁷ edges, blocks", sizes, _find(store, "epoch, 1e+07 edges", "streamed")["median"]),
        ("10⁸ edges, blocks", larger, _find(store, "epoch, 1e+08 edges", "streamed")["median"]),
    ]
    epochs = [
        [case, f"{STEPS * rates.step(each):.3g} s", f"{seconds:.3g} s", f"{STEPS * rates.step(each) / seconds:.2f}"]
        for case, each, seconds in checked
    ]
    halo = {count: _halo(exchange, count) for count in MACHINES[1:]}
    rows = [_row(name, each, rates, machines, halo) for name, each in OGB.items() for machines in MACHINES]
    return "\n\n".join(
        [
            f"Rates of this machine: {rates.gathered / 1e9:.2g} GB gathered and {rates.multiplications / 1e9:.3g} "
            "billion multiplications of rows a second.",
            markdown_rows(["an epoch, streamed", "model", "measured", "model / measured"], epochs),
            f"Halo rows a node, as METIS finds them on Physics: "
            f"{', '.join(f'{share:.2g} with {count} parts' for count, share in halo.items())}.",
            markdown_rows(
                [
                    "not run: arithmetic",
                    "machines",
                    "received a step",
                    "a step",
                    "of it exchange",
                ],
                rows,
            ),
        ]
    )


def _row(name: str, sizes: Sizes, rates: Rates, machines: int, halo: Mapping[int, float]) -> list[str]:
    """Return what each of so many machines receives, and the seconds that it needs."""
    rows = 0.0 if machines == 1 else halo[machines] * sizes.nodes
    received = HOPS * SIZE * sizes.classes * rows / machines
    exchange, work = received / NETWORK, rates.step(sizes) / machines
    told = size(float(f"{received:.2g}"))
    return [name, str(machines), told, f"{work + exchange:.2g} s", f"{exchange / (work + exchange):.0%}"]


def _sizes(record: Record) -> Sizes:
    return Sizes(**{name: record["config"][name] for name in ("nodes", "entries", "classes", "features", "hidden")})


def _find(records: Sequence[Record], case: str, side: str) -> dict[str, Any]:
    return next(record for record in records if (record.get("case"), record.get("side")) == (case, side))


def _halo(records: Sequence[Record], count: int) -> float:
    """Return the halo rows a node of Physics in METIS parts."""
    found = _find(records, f"coauthor_physics, {count} parts", "metis")
    return found["halo_rows"] / found["config"]["nodes"]
