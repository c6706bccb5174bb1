"""Parquet files of rollouts, in and out. Needs the extra `parquet` (pyarrow).

From Parquet to Parquet, columns keep their types, whatever these are. From JSON to Parquet, each column gets the one
Arrow type that holds all its values; what has none (strings beside numbers, empty objects) becomes JSON text. Objects
in a column share their keys: one that a row lacks is null there.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from ..core.errors import DumpError, RolloutError
from .row import VERDICT_COLUMNS, Columns, Rejected, Row, dumps, loads
from .shape import LEAVES, Shape
from .source import file_identity

READ = 1024
"""Rows decoded at once."""

ROW_GROUP = 8192
"""Rows in one row group of what is written, so that it does not depend on how the input was cut."""


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise DumpError("Parquet files need the extra `parquet`: pip install 'rewarden[parquet]'") from None
    return pa, pq


# -- in ---------------------------------------------------------------------------------------------------------------


class ParquetSource:
    """The rows of a Parquet file.

    Values that JSON does not have become text: times as in ISO 8601, decimals as digits, bytes as base64.
    """

    def __init__(self, path: Path, columns: Columns, *, heads: bool) -> None:
        self._path = path
        self._columns = columns
        self._heads = heads
        self._file = _open(path)
        self._rows = self._file.metadata.num_rows
        self._at = 0

    def __iter__(self) -> Iterator[Row | Rejected]:
        pa, _ = _arrow()
        try:
            for batch in self._file.iter_batches(batch_size=READ):
                for number, row in enumerate(_objects(batch, self._at + 1), start=self._at + 1):
                    yield row if isinstance(row, Rejected) else self._row(row, number)
                self._at += len(batch)
        except (pa.ArrowException, OSError) as error:
            raise DumpError(f"{self._path}: damaged after row {self._at}: {_line(error)}") from None

    def _row(self, row: dict[str, Any], number: int) -> Row | Rejected:
        try:
            text = orjson.dumps(row, default=_plain)
            plain = orjson.loads(text)
        except (TypeError, orjson.JSONDecodeError) as error:
            return Rejected(number, f"a value cannot be read: {error}", repr(row)[:10_000].encode(), is_json=False)
        try:
            rollout = self._columns.rollout(plain, number)
        except RolloutError as error:
            return Rejected(number, str(error), text, is_json=True)
        if not self._heads:
            return Row(number, rollout, b"{")
        for name in VERDICT_COLUMNS:
            plain.pop(name, None)
        return Row(number, rollout, orjson.dumps(plain)[:-1])

    def fraction(self) -> float | None:
        return self._at / self._rows if self._rows else None

    def identity(self) -> dict[str, Any]:
        return file_identity(self._path)


def _open(path: Path) -> Any:
    pa, pq = _arrow()
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise DumpError(f"{path} cannot be read as Parquet: {_line(error)}") from None
    names = file.schema_arrow.names
    double = sorted({name for name in names if names.count(name) > 1})
    if double:
        raise DumpError(f"{path} has two columns called {double[0]!r}; rename one")
    return file


def _objects(batch: Any, first: int) -> Iterable[dict[str, Any] | Rejected]:
    """The rows of a batch, of which `first` is the number of the first one."""
    for i, field in enumerate(batch.schema):
        if str(field.type).startswith("timestamp[ns"):  # Python's times have no nanoseconds
            batch = batch.set_column(i, field.name, batch.column(i).cast("string"))
    try:
        rows: list[dict[str, Any] | Rejected] = batch.to_pylist()
    except ValueError:
        return [_object(batch.slice(i, 1), first + i) for i in range(len(batch))]
    return rows


def _object(single: Any, number: int) -> dict[str, Any] | Rejected:
    """One row of a batch in which some row cannot be decoded."""
    try:
        row: dict[str, Any] = single.to_pylist()[0]
    except ValueError as error:
        return Rejected(number, f"a value cannot be read: {_line(error)}", b"", is_json=False)
    return row


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return str(value)
    return str(value)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]


# -- out: Parquet to Parquet ------------------------------------------------------------------------------------------


def join(source: Path, verdicts: Iterable[bytes], target: Path) -> None:
    """Write the rows of `source` that have a verdict, with the columns of the verdict.

    `verdicts` are JSON objects with `line`, the number of the row from 1, and the four columns, in order.
    """
    file = _open(source)
    schema = file.schema_arrow
    keep = [name for name in schema.names if name not in VERDICT_COLUMNS]
    # What another library has noted about the columns would be wrong about the new ones, and it trusts its note.
    notes = {key: value for key, value in (schema.metadata or {}).items() if key != b"huggingface"}
    pa, _ = _arrow()
    verdict_schema = _verdict_schema(pa)
    whole = pa.schema([*(schema.field(name) for name in keep), *verdict_schema], metadata=notes or None)
    rest = map(loads, verdicts)

    def tables() -> Iterator[Any]:
        start, row = 0, next(rest, None)
        for batch in file.iter_batches(batch_size=READ):
            some = []
            while row is not None and row["line"] <= start + len(batch):
                some.append(row)
                row = next(rest, None)
            places = pa.array([one["line"] - start - 1 for one in some], pa.int64())
            kept = pa.Table.from_batches([batch]).select(keep).take(places)
            columns = [*kept.columns, *(_verdict_array(pa, some, field) for field in verdict_schema)]
            yield pa.Table.from_arrays(columns, schema=whole)
            start += len(batch)

    try:
        _write(target, whole, _regrouped(pa, tables()))
    except pa.ArrowException as error:
        raise DumpError(f"{source}: {_line(error)}") from None


def _regrouped(pa: Any, tables: Iterable[Any]) -> Iterator[Any]:
    """The same rows in tables of `ROW_GROUP` rows."""
    held: list[Any] = []
    count = 0
    for table in tables:
        held.append(table)
        count += len(table)
        while count >= ROW_GROUP:
            whole = pa.concat_tables(held)
            yield whole.slice(0, ROW_GROUP)
            held, count = [whole.slice(ROW_GROUP)], count - ROW_GROUP
    if count:
        yield pa.concat_tables(held)


def _verdict_schema(pa: Any) -> Any:
    kinds = (pa.float64(), pa.string(), pa.string(), pa.string())
    return pa.schema(list(zip(VERDICT_COLUMNS, kinds, strict=True)))


def _verdict_array(pa: Any, rows: Sequence[dict[str, Any]], field: Any) -> Any:
    """A column of the verdict; the whole one is JSON text."""
    values = [row[field.name] for row in rows]
    return pa.array([dumps(value).decode() for value in values] if field.name == "verdict" else values, field.type)


def _write(target: Path, schema: Any, tables: Iterable[Any]) -> None:
    _, pq = _arrow()
    with pq.ParquetWriter(target, schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table, row_group_size=ROW_GROUP)


# -- out: JSON to Parquet ---------------------------------------------------------------------------------------------


class _ColumnError(Exception):
    """This column does not fit its type."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def convert(lines: Callable[[], Iterable[bytes]], target: Path) -> None:
    """Write rows of JSON, whose last columns are those of the verdict. `lines` is called for each pass over them."""
    pa, _ = _arrow()
    kinds = _kinds(pa, lines())
    verdict_schema = _verdict_schema(pa)
    while True:
        # A large integer among fractions is only found to be none as it is written: then the column is text.
        named = [(name, pa.string() if kind is None else kind) for name, kind in kinds.items()]
        schema = pa.schema([*named, *verdict_schema])
        try:
            _write(target, schema, (_table(pa, rows, kinds, schema, verdict_schema) for rows in _chunks(lines())))
        except _ColumnError as misfit:
            kinds[misfit.name] = None
        else:
            return


def _chunks(lines: Iterable[bytes]) -> Iterator[list[dict[str, Any]]]:
    rest = iter(lines)
    while rows := [loads(line) for line in islice(rest, ROW_GROUP)]:
        yield rows


def _kinds(pa: Any, lines: Iterable[bytes]) -> dict[str, Any]:
    """The Arrow type of each column, in the order in which they first occur; None for JSON text."""
    shapes: dict[str, Shape | None] = {}
    for rows in _chunks(lines):
        for name in dict.fromkeys(name for row in rows for name in row if name not in VERDICT_COLUMNS):
            shape = shapes.setdefault(name, Shape())
            if shape is not None and not shape.add_all(row.get(name) for row in rows):
                shapes[name] = None
    fit = {name: shape for name, shape in shapes.items() if shape is not None and shape.leaves() <= LEAVES}
    return {name: fit[name].to_arrow(pa) if name in fit else None for name in shapes}


def _table(pa: Any, rows: list[dict[str, Any]], kinds: dict[str, Any], schema: Any, verdict_schema: Any) -> Any:
    arrays = []
    for name, kind in kinds.items():
        if kind is None:
            texts = [dumps(row[name]).decode() if row.get(name) is not None else None for row in rows]
            arrays.append(pa.array(texts, pa.string()))
            continue
        try:
            arrays.append(pa.array([row.get(name) for row in rows], kind))
        except (pa.ArrowException, OverflowError):
            raise _ColumnError(name) from None
    arrays += [_verdict_array(pa, rows, field) for field in verdict_schema]
    return pa.Table.from_arrays(arrays, schema=schema)
