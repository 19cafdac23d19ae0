"""The journal: every change of labels, nodes, edges and features, in an SQLite file that outlives any crash.

A row says who changed what and when, with the old and the new value. Rows are only appended. A commit returns after the
data are on the disk (write-ahead log, `synchronous=FULL`).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from lignn.errors import JournalError

Kind = Literal["label", "node", "edge", "features", "fit"]
_APPLICATION = 0x6C69676E
"""Marks the file as a journal of lignn."""
_FORMAT = 1
_BUSY_SECONDS = 5.0
_ROOM = 6 * 2**20
"""Bytes of the write-ahead log before it is used again from its beginning, and those of SQLite's cache."""
_SCHEMA = """
CREATE TABLE changes (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL,
    who TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    old TEXT NOT NULL,
    new TEXT NOT NULL
) STRICT;
CREATE INDEX changes_key ON changes (kind, key);
"""


@dataclass(frozen=True)
class Change:
    """One change.

    Attributes:
        kind: what is changed; "fit": the model was replaced by a new one.
        key: id of the node; for an edge the JSON list of source, target and type; for a fit the model's identity.
        new: value after the change, None = removed.
        old: value before it.
    """

    kind: Kind
    key: str
    new: Any
    old: Any = None


@dataclass(frozen=True)
class Entry:
    """A change as the journal has it.

    Attributes:
        seq: its number; later changes have larger ones.
        time: when it was made, UTC.
        who: who made it.
        change: the change.
    """

    seq: int
    time: str
    who: str
    change: Change

    def record(self) -> dict[str, Any]:
        """Return the entry as JSON has it."""
        change = self.change
        return {
            "version": self.seq,
            "time": self.time,
            "who": self.who,
            "kind": change.kind,
            "id": change.key,
            "old": change.old,
            "new": change.new,
        }


class Journal:
    """An open journal; its methods may be called from any thread.

    Args:
        path: the file; created if there is none.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._writer, self._reader = (self._connect() for _ in range(2))
            self._prepare()
            for connection in (self._writer, self._reader):
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=FULL")
        except sqlite3.Error as error:
            raise JournalError(
                f"{path}: cannot be opened as a journal of labels ({error}); choose another file"
            ) from error
        self._writing, self._reading = Lock(), Lock()

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=32
        )

    def _prepare(self) -> None:
        """Create the table in a new file; refuse a file that is something else."""
        (application,), (form,) = (
            self._writer.execute(f"PRAGMA {p}").fetchone() for p in ("application_id", "user_version")
        )
        tables = [name for (name,) in self._writer.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        if application == 0 and not tables:
            marks = f"PRAGMA application_id={_APPLICATION}; PRAGMA user_version={_FORMAT};"
            self._writer.executescript(f"BEGIN; {marks} {_SCHEMA} COMMIT;")
        elif application != _APPLICATION:
            raise JournalError(f"{self.path}: is a database of another program; choose another file")
        elif form > _FORMAT:
            raise JournalError(f"{self.path}: was written by a newer lignn; update lignn")

    def make_room(self) -> None:
        """Let the write-ahead log grow to its usual size, so that commits need not.

        A commit that makes the file longer waits several times as long for the disk as one that overwrites it.
        """
        try:
            # What does not fit into the cache is written to the log, and is void after the rollback.
            self._writer.execute("BEGIN IMMEDIATE")
            self._writer.execute("CREATE TABLE room (bytes)")
            self._writer.execute("INSERT INTO room VALUES (zeroblob(?))", (_ROOM,))
        except sqlite3.Error:
            pass  # no room on the disk: the next change will say so
        finally:
            self._roll_back()

    def append(self, changes: Sequence[tuple[str, Change]]) -> list[int]:
        """Write changes, each with who made it, in one transaction; return their numbers once they are on the disk."""
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        rows = [(time, who, c.kind, c.key, _text(c.old), _text(c.new)) for who, c in changes]
        statement = "INSERT INTO changes (time, who, kind, key, old, new) VALUES (?, ?, ?, ?, ?, ?) RETURNING seq"
        with self._writing:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                seqs = [self._writer.execute(statement, row).fetchone()[0] for row in rows]
                self._writer.execute("COMMIT")
            except sqlite3.Error as error:
                self._roll_back()
                raise JournalError(
                    f"the journal could not be written ({error}), so nothing was changed; {_advice(error)}"
                ) from error
        return seqs

    def forget(self, seqs: Sequence[int]) -> None:
        """Remove changes that nobody was told of, since they could not be solved."""
        with self._writing:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                self._writer.executemany("DELETE FROM changes WHERE seq = ?", [(seq,) for seq in seqs])
                self._writer.execute("COMMIT")
            except sqlite3.Error as error:
                self._roll_back()
                raise JournalError(f"{self.path}: changes could not be taken back ({error})") from error

    def _roll_back(self) -> None:
        if self._writer.in_transaction:
            self._writer.execute("ROLLBACK")

    def entries(
        self,
        after: int = 0,
        *,
        kind: Kind | None = None,
        key: str | None = None,
        who: str | None = None,
        limit: int = -1,
    ) -> list[Entry]:
        """Return changes in their order: after a number, of one kind and key, by one person, at most `limit`."""
        conditions = {"seq > ?": after, "kind = ?": kind, "key = ?": key, "who = ?": who}
        given = {condition: value for condition, value in conditions.items() if value is not None}
        return self._entries(f"WHERE {' AND '.join(given)} ORDER BY seq LIMIT ?", (*given.values(), limit))

    def latest(self, count: int) -> list[Entry]:
        """Return the last changes of labels, the newest first."""
        return self._entries("WHERE kind = 'label' ORDER BY seq DESC LIMIT ?", (count,))

    def _entries(self, which: str, values: Sequence[Any]) -> list[Entry]:
        query = f"SELECT seq, time, who, kind, key, old, new FROM changes {which}"
        return [
            Entry(seq, time, by, Change(what, about, json.loads(new), json.loads(old)))
            for seq, time, by, what, about, old, new in self._read(query, values)
        ]

    def last(self) -> int:
        """Return the number of the last change, 0 if there is none."""
        return next(self._read("SELECT coalesce(max(seq), 0) FROM changes"))[0]

    def touched(self) -> dict[tuple[str, str], int]:
        """Return the number of the last change of each kind and key."""
        return {
            (kind, key): seq for kind, key, seq in self._read("SELECT kind, key, max(seq) FROM changes GROUP BY 1, 2")
        }

    def counts(self) -> dict[str, int]:
        """Return how many labels each person has given."""
        return dict(self._read("SELECT who, count(*) FROM changes WHERE kind = 'label' GROUP BY 1 ORDER BY 2 DESC"))

    def _read(self, query: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        with self._reading:
            try:
                return iter(self._reader.execute(query, values).fetchall())
            except sqlite3.Error as error:
                raise JournalError(f"{self.path}: the journal cannot be read ({error}); {_advice(error)}") from error

    def close(self) -> None:
        """Close the file; what it has in its log is moved into it."""
        for connection in (self._reader, self._writer):
            connection.close()


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _advice(error: sqlite3.Error) -> str:
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith("SQLITE_FULL"):
        return "make room on its disk and try again"
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return "another program holds it, try again later"
    return "see to its file, then try again"
