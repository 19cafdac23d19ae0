"""Which kind of values a column of features holds: what its format says, what its cells say, or what a user says.

Cells of a table of texts are numbers, truth values, dates or times of day if all of them are, or if nearly all are
numbers or dates in one of the readings of `cells`. Digits with leading zeros are names. Where two readings fit, the
other columns of the table decide, which have one decimal sign and one order of dates; otherwise it is an error.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lignn.errors import DataWarning, TableError, quoted
from lignn.graph import names
from lignn.graph.metadata import Metadata
from lignn.graph.table_file import TEXT, Table, leading_zeros
from lignn.graph.tables import cells
from lignn.graph.tables.cells import Reading

_MARKS = pa.array(["", *names.MISSING], TEXT)
_ISO = (pa.date32(), pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("us", "UTC"))
"""Types of dates and times that need no reading: 2024-12-31, 2024-12-31 23:59:59."""
_FIRST = 100
"""Cells that are tried before a whole column."""
_WORDS = {"number": "is no number", "date": "is no date"}


class UndecidedError(TableError):
    """Columns of which nothing says what they hold."""


@dataclass(frozen=True)
class Column:
    """A column as it is read.

    Attributes:
        values: the values, in one type.
        texts: the texts they were, null for an empty cell.
        readings: the readings that fit; without one they are as the texts stand.
        plain: whether they may be as the texts stand, whatever else fits.
    """

    values: pa.ChunkedArray
    texts: pa.ChunkedArray
    readings: tuple[Reading, ...] = ()
    plain: bool = False


@dataclass
class Features:
    """Columns of features.

    Attributes:
        columns: the columns by name.
        text: those that are said to be texts, whatever their cells are.
        refused: columns of types that cannot be features.
        forms: the kind or reading of columns that is not plain from their cells; other tables are read by them.
        notes: what was read otherwise than as it stands, in words.
    """

    columns: dict[str, pa.ChunkedArray] = field(default_factory=dict)
    text: set[str] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)
    forms: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def table(self, wanted: Collection[str]) -> pa.Table:
        """Return the columns among `wanted` as a table."""
        columns = {name: self.columns[name] for name in wanted if name in self.columns}
        fields = [as_text(name) if name in self.text else pa.field(name, c.type) for name, c in columns.items()]
        return pa.table(list(columns.values()), pa.schema(fields))


def features(source: Table, table: pa.Table, said: Mapping[str, str]) -> Features:
    """Return columns by what they hold; raise for all columns together that nothing decides.

    Args:
        source: the table that was read, for messages.
        table: its columns, as `Table.read` returns them.
        said: kinds, or readings, by column.
    """
    found, read = Features(forms=dict(said)), {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind, form = column.type, said.get(name)
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            found.refused.append(name)
            continue
        if pa.types.is_dictionary(kind):
            column = column.cast(kind.value_type)
        texts = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        if texts:
            found_in = of_texts(column, form)
            if source.typed and form is None and found_in.plain:
                column = known(column)  # digits that are texts in a format with types are meant to be
            else:
                read[name], column = found_in, found_in.values
        if pa.types.is_decimal(column.type):
            column = column.cast(pa.float64())
        elif pa.types.is_duration(column.type) or pa.types.is_time(column.type):
            column = column.cast(pa.int32() if pa.types.is_time32(column.type) else pa.int64())
        found.columns[name] = column
    _settle(source, found, read, said)
    for name, column in found.columns.items():
        if pa.types.is_floating(column.type):
            found.columns[name] = _finite(source, name, column)
        if name in said:
            _say(source, found, name, said[name])
    return found


def of_texts(texts: pa.ChunkedArray, form: str | None = None) -> Column:
    """Return a column of texts as what its cells are.

    Args:
        texts: the texts as they stand in the table.
        form: a kind, or a reading; None: whatever fits.
    """
    if form in ("category", "text"):
        texts = known(texts)
        return Column(texts, texts)
    plain = _plain(texts, form)
    if plain is None:
        texts = known(texts)
        if texts.null_count == len(texts):
            return Column(pa.chunked_array([pa.nulls(len(texts))]), texts)
        plain = _plain(texts, form)
    if plain is not None:
        return Column(plain, texts, plain=True)
    for kind in _ISO if form is not None else (pa.bool_(), *_ISO):
        if (values := _cast(texts, kind)) is not None:
            return Column(values, texts)
    day = pc.binary_join_element_wise(pa.scalar("1970-01-01", texts.type), texts, pa.scalar(" ", texts.type))
    if form is None and (seconds := _cast(day, pa.timestamp("s"))) is not None:
        return Column(seconds.cast(pa.int64()), texts)  # a time of day
    readings = cells.readings(_whole(texts), form)
    values = pa.chunked_array([readings[0].values]) if readings else texts.cast(pa.string())
    return Column(values, texts, tuple(readings))


def known(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return normalised texts with gaps and marks of gaps as null."""
    texts = Metadata().normalised(texts)
    return pc.if_else(pc.is_in(texts, _MARKS.cast(texts.type)), pa.scalar(None, texts.type), texts)


def number(source: Table, name: str) -> str:
    """Return the reading of a column of numbers that fits all its cells, "number" if there is none."""
    texts = _whole(known(source.read([name], ()).column(0)))
    fit = cells.readings(texts, "number", least=1)
    if len(fit) > 1:
        raise TableError(_ambiguous(source, name, fit))
    return fit[0].form if fit else "number"


def matrix(table: pa.Table) -> np.ndarray | None:
    """Return the columns as a matrix in single precision if all are numbers without gaps, else None."""
    if not table.num_columns:
        return None
    for column in table.columns:
        kind = column.type
        if column.null_count or not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            return None
    x = np.empty((len(table), table.num_columns), np.float32)
    with np.errstate(over="ignore"):  # seen below
        for number, column in enumerate(table.columns):
            x[:, number] = column.to_numpy()
    return x if np.isfinite(x).all() else None


def _plain(texts: pa.ChunkedArray, form: str | None) -> pa.ChunkedArray | None:
    """Return texts as numbers with a decimal point; digits with leading zeros as they are; None for other texts."""
    if form not in (None, "number", "number:."):
        return None
    whole = _cast(texts, pa.int64())
    if whole is not None and form is None and pc.any(leading_zeros(texts)).as_py():
        return texts.cast(pa.string())
    return whole if whole is not None else _cast(texts, pa.float64())


def _cast(texts: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    """Return texts in another type, None if one does not fit; PyArrow is slow where many do not."""
    try:
        texts.slice(0, _FIRST).cast(kind)
        return texts.cast(kind)
    except pa.ArrowInvalid:
        return None


def _whole(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def _settle(source: Table, found: Features, read: dict[str, Column], said: Mapping[str, str]) -> None:
    """Choose one reading for each column, by the others where several fit; raise if that leaves two."""
    sure = {one.form for column in read.values() for one in column.readings if one.sure}
    undecided = any(len(column.readings) > 1 for column in read.values())
    for name, column in read.items():
        if (undecided or "number:," in sure) and column.plain and pa.types.is_floating(column.values.type):
            fit = cells.readings(_whole(known(column.texts)), "number")  # 0.5 has a decimal point, 1.234 may have none
            sure |= {one.form for one in fit if one.sure}
            read[name] = replace(column, readings=tuple(fit)) if len(fit) > 1 else column
    faults = []
    for name, column in read.items():
        fit = [one for one in column.readings if one.form in sure] or list(column.readings)
        if len(fit) == 1:
            found.columns[name] = pa.chunked_array([fit[0].values])
            _tell(source, found, name, _whole(known(column.texts)), fit[0])
        elif fit and not column.plain:
            faults.append(_ambiguous(source, name, fit))
        elif column.plain and pa.types.is_string(column.values.type):
            example = column.texts.filter(leading_zeros(column.texts))[0].as_py()
            found.notes.append(f"{name}: digits with leading zeros, such as {quoted(example)}, are names")
        kind = said.get(name, "").partition(":")[0]
        if kind in _WORDS and not column.readings and not column.plain and not _is_date(column.values.type):
            faults.append(_unfit(source, name, column, said[name]))
    if faults:
        raise UndecidedError("\n".join(faults))


def _is_date(kind: pa.DataType) -> bool:
    return pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_null(kind)


def _ambiguous(source: Table, name: str, fit: Sequence[Reading]) -> str:
    """Return the fault of a column that has two readings."""
    differ = pc.fill_null(pc.not_equal(fit[0].values, fit[1].values), False)
    places = _places(source, name, differ)
    row = pc.index(differ, True).as_py()
    values = " or ".join(_shown(one.values[row].as_py()) for one in fit)
    options = " or ".join(f"--column {one.form}={name}" for one in fit)
    return f"{source.path}, column {name!r}: {places} may be {values}; say which: {options}"


def _unfit(source: Table, name: str, column: Column, form: str) -> str:
    """Return the fault of a column that is not what it is said to be."""
    texts = _whole(known(column.texts))
    fit = cells.readings(texts, form, least=0)
    wrong = pc.and_(pc.is_valid(texts), pc.is_null(fit[0].values)) if fit else pc.is_valid(texts)
    fault, kind = _WORDS[form.partition(":")[0]], form.partition(":")[0]
    return f"{source.path}, column {name!r} (said to be {kind}s): {_places(source, name, wrong)} {fault}"


def _tell(source: Table, found: Features, name: str, texts: pa.Array, reading: Reading) -> None:
    """Note how cells were read that do not stand there so; warn of those that count as missing."""
    kind = reading.form.partition(":")[0]
    if kind == "number":
        plain = pc.if_else(pc.match_substring_regex(texts, cells.PLAIN), texts, None).cast(pa.float64())
        same = pc.fill_null(pc.equal(plain, reading.values), False)
    else:
        same = pc.equal(texts, reading.values.cast(texts.type))
    example = pc.index(pc.and_(pc.is_valid(reading.values), pc.invert(same)), True).as_py()
    if example >= 0:
        found.notes.append(f"{name}: {quoted(texts[example].as_py())} is {_shown(reading.values[example].as_py())}")
        found.forms.setdefault(name, reading.form)
    _warn(source, name, f"{kind}s", _WORDS[kind], pc.and_(pc.is_valid(texts), pc.is_null(reading.values)))


def _shown(value: object) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _say(source: Table, found: Features, name: str, form: str) -> None:
    """Make a column one of the kind that it is said to hold; raise if its type cannot be."""
    from lignn.features import values  # imports scikit-learn, which is slow

    kind = values.KINDS[form.partition(":")[0]]
    column = found.columns[name]
    if not pa.types.is_null(column.type) and values.kind_of(column.type) not in ({kind} - {"text"}):
        column = values.typed(column, kind, name, str(source.path))
    if kind == "text":
        found.text.add(name)
    found.columns[name] = column.dictionary_encode() if kind == "category" else column


def as_text(name: str) -> pa.Field:
    """Return the field of a column of texts, whatever they are."""
    from lignn.features import values

    return values.as_text(name)


def _finite(source: Table, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return numbers with NaN and infinite ones as null."""
    finite = pc.fill_null(pc.is_finite(column), True)
    if pc.all(finite).as_py() is not False:
        return column
    _warn(source, name, "numbers", "is not finite", pc.fill_null(pc.is_inf(column), False))
    return pc.if_else(finite, column, pa.scalar(None, column.type))


def _warn(source: Table, name: str, kind: str, fault: str, wrong: pa.Array | pa.ChunkedArray) -> None:
    """Warn of cells that count as missing, if there are any."""
    if pc.any(wrong).as_py():
        places = _places(source, name, wrong)
        message = f"{source.path}, column {name!r} ({kind}): {places} {fault}, and counts as missing"
        warnings.warn(message, DataWarning, stacklevel=2)


def _places(source: Table, name: str, chosen: pa.Array | pa.ChunkedArray) -> str:
    """Return cells of a column in words: the first three, and how many others there are."""
    rows = np.flatnonzero(chosen.to_numpy(zero_copy_only=False) if isinstance(chosen, pa.Array) else chosen.to_numpy())
    shown, place = rows[:3].tolist(), source.columns.index(name)
    found = []
    for row, (number, row_of_cells) in enumerate(source.rows()):
        if row in shown:
            found.append(f"{quoted(row_of_cells[place])} ({source.unit} {number})")
        if row == shown[-1]:
            break
    return ", ".join(found) + (f" and {len(rows) - len(shown)} more" if len(rows) > len(shown) else "")
