"""Reading a file of rollouts as a stream: JSON lines (plain, gzip or zstd), Parquet, or standard input.

Memory is bounded whatever the file: blocks of a megabyte, and no line longer than `LINE`.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import zlib
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import zstandard

from ..core.errors import DumpError
from .row import Columns, Rejected, Row, read_json

BLOCK = 1 << 20
LINE = 64 << 20
"""Bytes; a longer line is rejected (with its first megabyte), because it would have to be held in memory."""

STANDARD = "-"


class Format(StrEnum):
    """How rows lie in a file."""

    JSONL = "jsonl"
    PARQUET = "parquet"


class Compression(StrEnum):
    """What a JSON lines file is packed with."""

    NONE = ""
    GZIP = "gz"
    ZSTD = "zst"


_JSONL = {".jsonl", ".ndjson", ".json"}
_PARQUET = {".parquet", ".pq"}
_PACKED = {".gz": Compression.GZIP, ".zst": Compression.ZSTD, ".zstd": Compression.ZSTD}


def format_of(name: str) -> tuple[Format, Compression]:
    """The format that the suffix of a file's name stands for; standard streams are JSON lines. Raises DumpError."""
    if name == STANDARD:
        return Format.JSONL, Compression.NONE
    path = Path(name.lower())
    packed = _PACKED.get(path.suffix, Compression.NONE)
    suffix = Path(path.stem).suffix if packed else path.suffix
    if suffix in _JSONL:
        return Format.JSONL, packed
    if suffix in _PARQUET and not packed:
        return Format.PARQUET, packed
    raise DumpError(
        f"{name}: its suffix names no format; use .jsonl, .jsonl.gz, .jsonl.zst or .parquet, or - for JSON lines"
    )


_STANDARD_FILES = {STANDARD: 0, "/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}
_OPEN_FILE = re.compile(r"/(?:dev|proc/self)/fd/([0-9]{1,6})")


def descriptor(name: str) -> int | None:
    """The number of the open file that a name stands for: `-` and `/dev/stdin` (0), `/dev/fd/63`; None for others."""
    match = _OPEN_FILE.fullmatch(name)
    return int(match[1]) if match else _STANDARD_FILES.get(name)


def kind_of(name: str) -> tuple[Format, Compression]:
    """`format_of`, but a pipe or device whose name says nothing is a stream of JSON lines."""
    try:
        return format_of(name)
    except DumpError:
        if descriptor(name) is not None or is_special(Path(name)):
            return Format.JSONL, Compression.NONE
        raise


def is_special(path: Path) -> bool:
    """Whether there is something that is neither a file nor a folder: a pipe, a device, a socket."""
    return path.exists() and not path.is_file() and not path.is_dir()


class Source(Protocol):
    """A file of rollouts."""

    def __iter__(self) -> Iterator[Row | Rejected]:
        """Every row in order, once."""
        ...

    def fraction(self) -> float | None:
        """How much of the file has been read, from 0 to 1; None where nobody knows."""
        ...

    def identity(self) -> dict[str, Any]:
        """What tells this input from another, as JSON values. The same for a file that was moved or copied."""
        ...


def open_source(name: str, columns: Columns, *, heads: bool = True) -> Source:
    """The input called `name`. Without `heads`, rows of a Parquet file come without their columns as JSON."""
    kind, packed = kind_of(name)
    if descriptor(name) is None:
        path = Path(name)
        if path.is_dir():
            raise DumpError(f"{name} is a folder, not a file of rollouts")
        if not path.exists():
            raise DumpError(f"there is no file {name}")
    if kind is Format.PARQUET:
        from .parquet import ParquetSource

        return ParquetSource(Path(name), columns, heads=heads)
    return JsonLines(name, packed, columns)


class JsonLines:
    """A JSON lines file. Lines end with a line feed, or with both ends of line; empty ones are skipped."""

    def __init__(self, name: str, packed: Compression, columns: Columns) -> None:
        self._name = name
        self._fd = descriptor(name)
        self._packed = packed
        self._columns = columns
        self._file: BinaryIO | None = None
        self._size = 0
        self._at = 0  # of the lines handed on
        self._packed_at = 0

    def __iter__(self) -> Iterator[Row | Rejected]:
        number = 0
        try:
            for lines in _lines(self._blocks()):
                for line in lines:
                    number += 1
                    self._at += len(line) + 1
                    if len(line) > LINE:
                        yield Rejected(number, f"longer than {LINE >> 20} MiB", line[:BLOCK], is_json=False)
                        continue
                    line = line.strip()  # noqa: PLW2901 - the line is what is in it
                    if number == 1:
                        line = self._first(line)  # noqa: PLW2901
                    if line:
                        yield read_json(line, number, self._columns)
        except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError) as error:
            raise DumpError(
                f"{self._name}: its compressed data is cut off or damaged after line {number}: {error}"
            ) from None
        except OSError as error:
            raise DumpError(f"{self._name}: cannot be read: {error.strerror or error}") from None

    def _first(self, line: bytes) -> bytes:
        line = line.removeprefix(b"\xef\xbb\xbf")
        if line.startswith(b"[") and ".json" in Path(self._name).suffixes:
            raise DumpError(f"{self._name} is a JSON list; Rewarden reads one object a line (jq -c '.[]' converts it)")
        for start, what in _OTHER_DATA.items():
            if line.startswith(start):
                raise DumpError(f"{self._name} holds no JSON lines: this looks {what}")
        return line

    def _blocks(self) -> Iterator[bytes]:
        if self._fd is not None:
            while block := os.read(self._fd, BLOCK):
                yield block
            return
        with Path(self._name).open("rb", buffering=0) as file:
            self._file, self._size = file, os.fstat(file.fileno()).st_size
            try:
                match self._packed:
                    case Compression.GZIP:
                        yield from _whole_blocks(gzip.GzipFile(fileobj=file).read1)
                    case Compression.ZSTD:
                        yield from _unzstd(file)
                    case Compression.NONE:
                        yield from _whole_blocks(file.read)
                self._packed_at = self._size
            finally:
                self._file = None

    def fraction(self) -> float | None:
        if not self._size:
            return None
        if self._packed is Compression.NONE:
            return min(1.0, self._at / self._size)
        if self._file is not None:
            self._packed_at = self._file.tell()
        return self._packed_at / self._size

    def identity(self) -> dict[str, Any]:
        return {"stream": "stdin"} if self._fd is not None else file_identity(Path(self._name))


_OTHER_DATA = {
    b"\x1f\x8b": "compressed (gzip); end the file's name in .jsonl.gz, or unpack it with zcat",
    b"\x28\xb5\x2f\xfd": "compressed (zstd); end the file's name in .jsonl.zst, or unpack it with zstdcat",
    b"PAR1": "like Parquet; end the file's name in .parquet",
    b"\xff\xfe": "like UTF-16; convert it with iconv -f UTF-16 -t UTF-8",
    b"\xfe\xff": "like UTF-16; convert it with iconv -f UTF-16 -t UTF-8",
}
"""What a first line of other data begins with."""


def file_identity(path: Path) -> dict[str, Any]:
    """Size, and a digest of the first and last 64 KiB. Pipes and devices have neither."""
    if not path.is_file():
        return {"stream": str(path)}
    digest = hashlib.blake2b(digest_size=16)
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            digest.update(file.read(1 << 16))
            file.seek(max(0, size - (1 << 16)))
            digest.update(file.read(1 << 16))
    except OSError as error:
        raise DumpError(f"{path}: cannot be read: {error.strerror}") from None
    return {"size": size, "ends": digest.hexdigest()}


def _whole_blocks(read: Callable[[int], bytes], size: int = BLOCK) -> Iterator[bytes]:
    while block := read(size):
        yield block


def _unzstd(file: BinaryIO) -> Iterator[bytes]:
    """Every frame of a zstd file. The library's own stream reader takes a file that is cut off for a whole one."""
    frame, fresh = zstandard.ZstdDecompressor().decompressobj(), True
    # Small bites: a frame of zeros may grow to thousands of times its size.
    for block in _whole_blocks(file.read, 1 << 14):
        rest = block
        while rest:
            yield frame.decompress(rest)
            fresh, rest = False, b""
            if frame.eof:
                rest = frame.unused_data
                frame, fresh = zstandard.ZstdDecompressor().decompressobj(), True
    if not fresh:
        raise EOFError("the last frame has no end")


def _lines(blocks: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Lines, without their ends, as many at once as a block holds. A line that passes `LINE` is not kept to its end."""
    held: list[bytes] = []
    size = 0
    for block in blocks:
        first, *others = block.split(b"\n")
        if size <= LINE:
            held.append(first)
            size += len(first)
        if others:
            *whole, last = others
            yield [b"".join(held), *whole]
            held, size = [last], len(last)
    if size:
        yield [b"".join(held)]
