"""Roles of columns: those that a user gives, and those that usual headers have."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from lignn.errors import ConfigError, TableError, did_you_mean, quoted
from lignn.graph import headers
from lignn.graph.links import Links
from lignn.graph.reading import KINDS, READINGS, Reading, TableReading
from lignn.graph.table_file import BadRowsError, Table
from lignn.graph.tables import kinds

OF_NODES = ("id", "label", "labels", "split", "time", "group", "type")
OF_EDGES = ("source", "target", "weight", "edge_type")
ENDS = (("source", "target"), ("src", "dst"), ("from", "to"), ("id_1", "id_2"), ("u", "v"), ("sender", "receiver"))
"""Usual headers of the two ends of an edge; the first pair wins. Both may have an ending: from_user and to_user."""
_ID = re.compile(r".+_id|.+[a-z]Id", re.ASCII)
"""Headers that are usual for ids beside those of the role, such as customer_id."""
_USUAL = {
    "id": ("id", "node_id", "name"),
    "label": ("label", "class", "target", "y"),
    "labels": ("labels",),
    "type": ("type",),
    "weight": ("weight",),
    "edge_type": ("edge_type", "type"),
}
"""Usual headers of a role, in any case; the first, as it is written here, wins."""


@dataclass(frozen=True)
class Wanted:
    """What a user says of the columns.

    Attributes:
        columns: the column of each role, and the columns of each kind: a name or several.
        ignore: columns to leave out.
        like: the reading of another graph; its roles hold where the tables have such columns.
        links: the rules that join the rows of one table.
        skip_bad: leave out rows with faults.
        strict: mend nothing.
    """

    columns: Mapping[str, str | Collection[str]] = field(default_factory=dict)
    ignore: Collection[str] = ()
    like: Reading | None = None
    links: Links | None = None
    skip_bad: bool = False
    strict: bool = False

    def __post_init__(self) -> None:
        for role, names in self.columns.items():
            shown = names if isinstance(names, str) else next(iter(names), "")
            if role not in (*OF_NODES, *OF_EDGES, *KINDS, *READINGS):
                raise ConfigError(
                    f"--column {role}={shown}: there is no role or kind {role!r}; "
                    f"{did_you_mean(role, (*OF_NODES, *OF_EDGES, *KINDS))}"
                )
            if role not in (*KINDS, *READINGS) and not isinstance(names, str):
                raise ConfigError(f"--column {role}={shown}: one column has the role {role}, {len(names)} are given")

    @property
    def roles(self) -> dict[str, str]:
        """The column of each role that the user gives."""
        return {
            role: name
            for role, name in self.columns.items()
            if role in (*OF_NODES, *OF_EDGES) and isinstance(name, str)
        }

    def kinds(self, table: Table, before: TableReading | None) -> dict[str, str]:
        """Return the kinds of columns of a table: those of another graph's, and those that the user gives."""
        found = dict(() if before is None else before.kinds)
        found |= {name: kind for kind in (*KINDS, *READINGS) for name in self._named(kind)}
        return {name: kind for name, kind in found.items() if name in table.columns}

    def check_kinds(self, *tables: Table) -> None:
        """Raise for a column that is given a kind and is in no table, or is given two kinds."""
        given: dict[str, str] = {}
        for kind in (*KINDS, *READINGS):
            for name in self._named(kind):
                if not any(name in table.columns for table in tables):
                    self._require(tables[0], kind, name)
                if given.setdefault(name, kind) != kind:
                    where = f"{tables[0].path}, column {name!r}"
                    raise TableError(f"{where}: is given two kinds, {given[name]} and {kind}")

    @property
    def said(self) -> set[str]:
        """Columns whose kind or reading is given, or known from another graph."""
        tables = () if self.like is None else self.like.tables
        before = {name for table in tables for name, _ in table.kinds}
        return before | {name for kind in (*KINDS, *READINGS) for name in self._named(kind)}

    def _named(self, kind: str) -> Collection[str]:
        names = self.columns.get(kind, ())
        return (names,) if isinstance(names, str) else names

    def given(self, table: Table, roles: Sequence[str]) -> dict[str, str]:
        """Return the columns of `table` that are given for its roles; raise if there is no such column."""
        before = {} if self.like is None else self.like.columns
        found = {role: name for role, name in before.items() if role in roles and name in table.columns}
        for role, name in self.roles.items():
            if role in roles:
                self._require(table, role, name)
                found[role] = name
        taken: dict[str, str] = {}
        for role, name in found.items():
            if name in taken:
                raise TableError(f"{table.path}, column {name!r}: is given two roles, {taken[name]} and {role}")
            taken[name] = role
        return found

    def _require(self, table: Table, role: str, name: str) -> None:
        if name not in table.columns:
            hint = did_you_mean(name, table.columns) if len(table.columns) < 100 else "look at its header"
            raise TableError(f"{table.path}: there is no column {name!r} (--column {role}={name}); {hint}")

    def left_out(self, table: Table, others: Table | None = None) -> list[str]:
        """Return the columns of `table` to ignore; raise if neither table has one of the user's names."""
        for name in self.ignore:
            if name not in table.columns and (others is None or name not in others.columns):
                where = (
                    f"{table.path} does not have" if others is None else f"neither {table.path} nor {others.path} has"
                )
                raise TableError(f"--ignore {name}: {where} this column")
        out = {*self.ignore, *(() if self.like is None else self.like.ignored)}
        return [name for name in table.columns if name in out or headers.is_unnamed(name)]


@dataclass(frozen=True)
class NodeColumns:
    """The columns of the nodes by role; `features` are all others that are not ignored, and that of the role type."""

    id: str | None
    """None: the numbers of the rows are the ids."""
    label: str | None = None
    several: bool = False
    """Whether the labels are joined by |."""
    splits: tuple[str, ...] = ()
    time: str | None = None
    group: str | None = None
    type: str | None = None
    features: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    """What features hold, as far as it is given."""

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Pairs of a role and its column."""
        several = "labels" if self.several else "label"
        found = [("id", self.id), (several, self.label), *(("split", name) for name in self.splits)]
        found += [("time", self.time), ("group", self.group), ("type", self.type)]
        return tuple((role, name) for role, name in found if name is not None)

    @property
    def texts(self) -> tuple[str, ...]:
        """Columns of roles that are read as texts."""
        found = (self.id, self.label, self.group, self.type, *self.splits)
        return tuple(name for name in found if name is not None)


def of_nodes(
    table: Table, wanted: Wanted, ignored: Collection[str], key: str | None, written: Mapping[str, str] | None = None
) -> NodeColumns:
    """Return the columns of the nodes by role; raise unless exactly one reading fits.

    Args:
        table: the nodes.
        wanted: what the user says of the columns.
        ignored: columns to leave out.
        key: the column of the ids; None for the numbers of the rows.
        written: columns by role in a folder that lignn wrote, where no other usual headers are recognised.
    """
    given, synonyms = {**(written or {}), **wanted.given(table, OF_NODES)}, written is None
    taken = {*given.values(), *ignored, key}
    free = [name for name in table.columns if name not in taken]
    label = given.get("labels", given.get("label"))
    several = "labels" in given
    if label is None:
        exact: list[str] = [name for name in ("label", "labels") if name in free]
        if not exact and synonyms:
            exact = [name for name in _like(free, "label", "labels") if _fits(table, name)]
        label = only(table, "label", exact)
        several = label is not None and label.lower() == "labels"
    splits = (
        [given["split"]]
        if "split" in given
        else [name for name in free if headers.is_split(name.lower() if synonyms else name)]
    )
    kind = given.get("type") or (only(table, "type", _like(free, "type")) if synonyms else None)
    used = {key, label, *splits, given.get("time"), given.get("group"), *ignored}
    features, said = (
        tuple(name for name in table.columns if name not in used),
        wanted.kinds(table, None if wanted.like is None else wanted.like.nodes),
    )
    for name in set(said) & used - {given.get("time")}:
        given_kind = f"--column {said[name]}={name}"
        raise TableError(f"{table.path}, column {name!r}: is no feature, so it has no kind; leave out {given_kind}")
    time, group = given.get("time"), given.get("group")
    return NodeColumns(key, label, several, tuple(splits), time, group, kind, features, tuple(ignored), said)


def candidates_for_ids(table: Table, ignored: Collection[str]) -> list[str]:
    """Return the columns whose headers are usual for ids."""
    free = [name for name in table.columns if name not in ignored]
    return _like(free, "id") or [name for name in free if _ID.fullmatch(name)]


def only(table: Table, role: str, candidates: Sequence[str]) -> str | None:
    """Return the candidate for a role, None if there is none; raise if there are several."""
    if len(candidates) > 1:
        words = " and ".join(map(quoted, candidates[:3]))
        raise TableError(f"{table.path}: {words} may hold the {role}; say which: --column {role}={candidates[0]}")
    return candidates[0] if candidates else None


def of_edges(table: Table, given: Mapping[str, str], ignored: Collection[str]) -> dict[str, str]:
    """Return the columns of the edges by role; raise unless exactly one reading fits."""
    found = dict(given)
    taken = {*found.values(), *ignored}
    free = [name for name in table.columns if name not in taken]
    found |= _ends(table, [role for role in ENDS[0] if role not in found], free)
    for role in ("weight", "edge_type"):
        others = [name for name in free if name not in found.values()]
        if role not in found and (name := only(table, role, _like(others, role))):
            found[role] = name
    return {role: found[role] for role in OF_EDGES if role in found}


def _ends(table: Table, missing: Sequence[str], free: Sequence[str]) -> dict[str, str]:
    """Return the columns of the missing ends of edges, by the usual headers."""
    lower = {name.lower(): name for name in free}
    if len(missing) == 2 and (both := _with_the_same_ending(lower)):
        return dict(zip(missing, both, strict=True))
    usual = {role: [lower[pair[i]] for pair in ENDS if pair[i] in lower] for i, role in enumerate(ENDS[0])}
    pairs = [pair for pair in ENDS if lower.keys() >= set(pair)] if len(missing) == 2 else []
    if lacking := [role for role in missing if not usual[role]]:
        raise headers.lacking(table, lacking)
    if pairs and (len(pairs) == 1 or pairs[0] == ENDS[0]):
        return {role: lower[name] for role, name in zip(missing, pairs[0], strict=True)}
    if any(len(usual[role]) > 1 for role in missing):
        say = " ".join(f"--column {role}={usual[role][0]}" for role in missing)
        raise TableError(f"{table.path}: several columns may hold the ends of edges; say which, for example {say}")
    return {role: usual[role][0] for role in missing}


def _with_the_same_ending(lower: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the two ends of edges such as from_user and to_user; None unless there is one such pair."""
    found = [
        (name, lower[other])
        for key, name in lower.items()
        for first, second in ENDS[:3]
        if key.startswith(f"{first}_") and (other := second + key.removeprefix(first)) in lower
    ]
    return found[0] if len(found) == 1 and not any({*pair} <= lower.keys() for pair in ENDS) else None


def _like(free: Collection[str], *roles: str) -> list[str]:
    """Return the columns whose headers are usual for one of the roles; only one if it is a role's own name."""
    words = [word for role in roles for word in _USUAL[role]]
    return [words[0]] if words[0] in free else [name for name in free if name.lower() in words]


def _fits(table: Table, name: str) -> bool:
    """Return whether a column may hold classes; fractions do not."""
    try:
        column = table.read([name], ()).column(0)
    except BadRowsError:
        return True  # reading the table as a whole says what is wrong
    if not table.typed:
        column = kinds.of_texts(column).values
    if not pa.types.is_floating(column.type):
        return not pa.types.is_nested(column.type)
    return bool(pc.all(pc.equal(pc.round(column), column)).as_py() is not False)
