"""Parquet files of rollouts, in and out. Needs the extra `parquet` (pyarrow).

From Parquet to Parquet, columns keep their types, whatever these are. From JSON to Parquet, each column gets the one
Arrow type that holds all its values; what has none (strings beside numbers, empty objects) becomes JSON text. Objects
in a column share their keys: one that a row lacks is null there.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from ..core.errors import DumpError, RolloutError
from .cell import Unreadable, objects
from .row import VERDICT_COLUMNS, Columns, Rejected, Row, dumps, loads
from .shape import LEAVES, Shape
from .source import file_identity

READ = 1024
"""Rows decoded at once, at most."""

CHUNK = 64 << 20
"""Bytes of rows held at once, about, where fewer rows than otherwise have so many."""

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

    Values that JSON does not have become text: times as in ISO 8601, decimals as digits, bytes as base64. Without
    `heads`, only the columns that make the rollout are decoded, and a row's head has, in place of the columns, its
    number, `line`, and a digest of what was decoded, `row`.
    """

    def __init__(self, path: Path, columns: Columns, *, heads: bool) -> None:
        self.path = path
        self._columns = columns
        self._heads = heads
        self._stamp = _stamp(path)
        self._file = _open(path)
        self._rows = self._file.metadata.num_rows
        self._at = 0
        self.schema = self._file.schema_arrow
        self._decoded = [name for name in self.schema.names if heads or columns.reads(name)]

    def __iter__(self) -> Iterator[Row | Rejected]:
        for batch in self.batches():
            # All of them, decoded or not, are what a person may look for in the file.
            self._columns.note(self.schema.names)
            for place, row in enumerate(objects(batch.select(self._decoded))):
                yield self._row(row, self._at + place + 1, batch, place)
            self._at += len(batch)

    def batches(self) -> Iterator[Any]:
        """The whole rows, some at a time, from the file that was opened first."""
        pa, _ = _arrow()
        row = 0
        try:
            for batch in self._file.iter_batches(batch_size=_step(self._file.metadata)):
                yield batch
                row += len(batch)
        except (pa.ArrowException, OSError) as error:
            raise DumpError(f"{self.path}: damaged after row {row}: {_line(error)}") from None

    def _row(self, row: dict[str, Any] | Unreadable, number: int, batch: Any, place: int) -> Row | Rejected:
        if isinstance(row, Unreadable):
            return Rejected(number, f"a value cannot be read: {row.why}", b"", is_json=False)
        try:
            text = orjson.dumps(row, default=_plain)
            plain = orjson.loads(text)
        except (TypeError, orjson.JSONDecodeError) as error:
            return Rejected(number, f"a value cannot be read: {error}", repr(row)[:10_000].encode(), is_json=False)
        try:
            rollout = self._columns.rollout(plain, number)
        except RolloutError as error:
            return self._rejected(number, error, text, batch, place)
        if not self._heads:
            return Row(number, rollout, b'{"line":%d,"row":"%b"' % (number, _digest(text)))
        for name in VERDICT_COLUMNS:
            plain.pop(name, None)
        return Row(number, rollout, orjson.dumps(plain)[:-1])

    def _rejected(self, number: int, error: RolloutError, text: bytes, batch: Any, place: int) -> Rejected:
        """With all columns of the row, for whoever has to mend it, where they can be decoded."""
        why = str(error)
        row = None if self._heads else objects(batch.slice(place, 1))[0]
        if isinstance(row, dict):
            with contextlib.suppress(TypeError, orjson.JSONDecodeError):
                text = orjson.dumps(row, default=_plain)
                try:
                    self._columns.rollout(orjson.loads(text), number)
                except RolloutError as whole:
                    why = str(whole)  # names all columns
        return Rejected(number, why, text, is_json=True)

    def check(self, batch: Any, digests: Sequence[str]) -> None:
        """Raises DumpError unless these are the rows that had these digests, and the file is the one first opened."""
        for row, digest in zip(objects(batch.select(self._decoded)), digests, strict=True):
            if isinstance(row, Unreadable) or _digest(orjson.dumps(row, default=_plain)).decode() != digest:
                raise self.changed()
        if _stamp(self.path) != self._stamp:
            raise self.changed()

    def changed(self) -> DumpError:
        """What to raise where the file is not what was scored."""
        return DumpError(
            f"{self.path} was changed or replaced while it was scored, so verdicts and rows may not belong together: "
            "no output was written; --restart scores the file anew"
        )

    def fraction(self) -> float | None:
        return self._at / self._rows if self._rows else None

    def identity(self) -> dict[str, Any]:
        return file_identity(self.path)


def _stamp(path: Path) -> tuple[int, ...] | None:
    """What changes when another file is put at this path, or this one is written to."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _digest(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=12).hexdigest().encode()


def _step(metadata: Any) -> int:
    """How many rows to decode at once."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    row = max((group.total_byte_size // group.num_rows for group in groups if group.num_rows > 0), default=0)
    return int(max(1, min(READ, CHUNK // max(1, row))))


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


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]


# -- out: Parquet to Parquet ------------------------------------------------------------------------------------------


def join(source: ParquetSource, verdicts: Iterable[bytes], target: Path) -> None:
    """Write the rows of `source` that have a verdict, with the columns of the verdict.

    `verdicts` are JSON objects with the head of their row and the four columns, in order. Raises DumpError where the
    rows are not those that the verdicts were given on.
    """
    schema = source.schema
    keep = [name for name in schema.names if name not in VERDICT_COLUMNS]
    # What another library has noted about the columns would be wrong about the new ones, and it trusts its note.
    notes = {key: value for key, value in (schema.metadata or {}).items() if key != b"huggingface"}
    pa, _ = _arrow()
    verdict_schema = _verdict_schema(pa)
    whole = pa.schema([*(schema.field(name) for name in keep), *verdict_schema], metadata=notes or None)
    rest = map(loads, verdicts)

    def tables() -> Iterator[Any]:
        start, row = 0, next(rest, None)
        for batch in source.batches():
            some = []
            while row is not None and row["line"] <= start + len(batch):
                some.append(row)
                row = next(rest, None)
            places = pa.array([one["line"] - start - 1 for one in some], pa.int64())
            taken = pa.Table.from_batches([batch]).take(places)
            source.check(taken, [one["row"] for one in some])
            columns = [*taken.select(keep).columns, *(_verdict_array(pa, some, field) for field in verdict_schema)]
            yield pa.Table.from_arrays(columns, schema=whole)
            start += len(batch)
        if row is not None:
            raise source.changed()

    try:
        _write(target, whole, _regrouped(pa, tables()))
    except pa.ArrowException as error:
        raise DumpError(f"{source.path}: {_line(error)}") from None


def _regrouped(pa: Any, tables: Iterable[Any]) -> Iterator[Any]:
    """The same rows in tables of `ROW_GROUP` rows; of fewer where these have `CHUNK` bytes."""
    held: list[Any] = []
    count = 0
    for table in tables:
        held.append(table)
        count += len(table)
        while count >= ROW_GROUP:
            whole = pa.concat_tables(held)
            yield whole.slice(0, ROW_GROUP)
            held, count = [whole.slice(ROW_GROUP)], count - ROW_GROUP
        if sum(table.nbytes for table in held) >= CHUNK:
            yield pa.concat_tables(held)
            held, count = [], 0
    if count:
        yield pa.concat_tables(held)


def _verdict_schema(pa: Any) -> Any:
    kinds = (pa.float64(), pa.string(), pa.string(), pa.string())
    return pa.schema(list(zip(VERDICT_COLUMNS, kinds, strict=True)))


def _verdict_array(pa: Any, rows: Sequence[dict[str, Any]], field: Any) -> Any:
    """A column of the verdict; the whole one is JSON text."""
    values = [row[field.name] for row in rows]
    if field.name == "verdict":
        values = [dumps(value).decode() for value in values]
    elif field.name == "reward":
        # A scorer may say 1 or true, which JSON keeps, and an integer with more digits than a double has.
        values = [None if value is None else float(value) for value in values]
    return pa.array(values, field.type)


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
    """`ROW_GROUP` rows at a time; fewer where these have `CHUNK` bytes."""
    rows: list[dict[str, Any]] = []
    size = 0
    for line in lines:
        rows.append(loads(line))
        size += len(line)
        if len(rows) == ROW_GROUP or size >= CHUNK:
            yield rows
            rows, size = [], 0
    if rows:
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
