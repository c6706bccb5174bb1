"""Reading files: lines, compression, damage, and names."""

from __future__ import annotations

import gzip
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from rewarden.core.errors import DumpError
from rewarden.dumps import Columns, Rejected, Row, open_source
from rewarden.dumps import source as module
from rewarden.dumps.source import Compression, Format, _lines, format_of, kind_of

ROW = b'{"completion":"x"}\n'


def read(path: Path) -> list[Row | Rejected]:
    """All rows of a file."""
    return list(open_source(str(path), Columns()))


def blocks(data: bytes, cuts: list[int]) -> Iterator[bytes]:
    """`data`, cut anywhere."""
    start = 0
    for cut in sorted(cut % (len(data) + 1) for cut in cuts):
        if cut > start:
            yield data[start:cut]
            start = cut
    if data[start:]:
        yield data[start:]


@given(data=st.binary(max_size=60).map(lambda d: d.replace(b"a", b"\n")), cuts=st.lists(st.integers(0, 60), max_size=6))
def test_lines_do_not_depend_on_blocks(data: bytes, cuts: list[int]) -> None:
    """However a file comes in blocks, its lines are the same; the last one may lack its end."""
    whole = [line for some in _lines(blocks(data, cuts)) for line in some]
    expected = data.split(b"\n")
    assert whole == (expected[:-1] if not expected[-1] else expected)


def test_long_lines_are_rejected_and_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line beyond the limit is rejected with its beginning, and its neighbours are read."""
    monkeypatch.setattr(module, "LINE", 1000)
    monkeypatch.setattr(module, "BLOCK", 100)
    path = tmp_path / "in.jsonl"
    path.write_bytes(ROW + b'{"completion":"' + b"y" * 50_000 + b'"}\n' + ROW)
    first, long, last = read(path)
    assert isinstance(first, Row)
    assert isinstance(long, Rejected)
    assert "longer than" in long.error
    assert len(long.raw) <= 1100
    assert isinstance(last, Row)
    assert last.number == 3
    assert max(len(line) for some in _lines(iter([b"z" * 100] * 500)) for line in some) <= 1200


def test_numbers_are_those_of_an_editor(tmp_path: Path) -> None:
    """Line numbers count empty lines, which are skipped; both ends of line and a byte order mark are understood."""
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + ROW + b"\n  \r\n" + ROW[:-1] + b"\r\n" + b'\t{"completion":"y"} ')
    rows = read(path)
    assert [row.number for row in rows] == [1, 4, 5]
    assert all(isinstance(row, Row) for row in rows)


@pytest.mark.parametrize("suffix", ["jsonl.gz", "ndjson.gz", "jsonl.zst", "jsonl.zstd"])
def test_compressed_files_of_several_pieces(tmp_path: Path, suffix: str) -> None:
    """Files that were compressed in pieces and put together are read to their end."""
    path = tmp_path / f"in.{suffix}"
    pack = gzip.compress if "gz" in suffix else zstandard.ZstdCompressor().compress
    path.write_bytes(pack(ROW * 3) + pack(b"") + pack(ROW * 40_000))
    assert len(read(path)) == 40_003


@pytest.mark.parametrize("suffix", ["jsonl.gz", "jsonl.zst"])
@pytest.mark.parametrize("keep", [0.5, 0.97])
def test_a_file_that_is_cut_off_is_an_error(tmp_path: Path, suffix: str, keep: float) -> None:
    """A compressed file without its end is never taken for a whole one."""
    rows = b"".join(json.dumps({"completion": str(i * 7919 % 10007)}).encode() + b"\n" for i in range(20_000))
    packed = gzip.compress(rows) if suffix.endswith("gz") else zstandard.ZstdCompressor().compress(rows)
    path = tmp_path / f"in.{suffix}"
    path.write_bytes(packed[: int(len(packed) * keep)])
    with pytest.raises(DumpError, match="cut off or damaged after line"):
        read(path)


@pytest.mark.parametrize("suffix", ["jsonl.gz", "jsonl.zst", "parquet"])
def test_a_file_of_another_kind_is_an_error(tmp_path: Path, suffix: str) -> None:
    """Plain text under the name of another format is refused in words."""
    path = tmp_path / f"in.{suffix}"
    path.write_bytes(ROW * 3)
    with pytest.raises(DumpError):
        read(path)


def test_a_json_list_is_named_as_such(tmp_path: Path) -> None:
    """A .json file that holds one list is not rejected line by line."""
    path = tmp_path / "in.json"
    path.write_text(json.dumps([{"completion": "x"}], indent=1))
    with pytest.raises(DumpError, match="JSON list"):
        read(path)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("-", (Format.JSONL, Compression.NONE)),
        ("a.b/C.JSONL", (Format.JSONL, Compression.NONE)),
        ("c.ndjson.zst", (Format.JSONL, Compression.ZSTD)),
        ("c.json.gz", (Format.JSONL, Compression.GZIP)),
        ("c.pq", (Format.PARQUET, Compression.NONE)),
    ],
)
def test_suffixes(name: str, expected: tuple[Format, Compression]) -> None:
    """The suffix says what a file is."""
    assert format_of(name) == expected


@pytest.mark.parametrize("name", ["rollouts", "c.csv", "c.gz", "c.parquet.gz", ".jsonl"])
def test_unknown_suffixes_are_refused(name: str) -> None:
    """A name that says nothing is refused rather than guessed."""
    with pytest.raises(DumpError, match="suffix"):
        format_of(name)


@pytest.mark.parametrize("name", ["-", "/dev/stdin", "/dev/fd/63", "/proc/self/fd/0", "/dev/null"])
def test_open_files_and_devices_are_json_lines(name: str) -> None:
    """What is no file and has no suffix is a stream of JSON lines."""
    assert kind_of(name) == (Format.JSONL, Compression.NONE)


def test_a_named_pipe_is_json_lines(tmp_path: Path) -> None:
    """A pipe is read to its end, whatever it is called; a file of that name is refused as before."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(ROW * 5,))
    writer.start()
    assert len(read(path)) == 5
    writer.join()
    path.unlink()
    path.write_bytes(ROW)
    with pytest.raises(DumpError, match="suffix"):
        read(path)


OTHER_DATA = {
    "gzip": (gzip.compress(ROW), r"looks compressed \(gzip\).*\.jsonl\.gz"),
    "zstd": (zstandard.ZstdCompressor().compress(ROW), r"looks compressed \(zstd\).*\.jsonl\.zst"),
    "parquet": (b"PAR1" + ROW, r"looks like Parquet"),
    "utf-16": (ROW.decode().encode("utf-16"), "looks like UTF-16"),
}


@pytest.mark.parametrize("kind", OTHER_DATA)
def test_other_data_is_named_as_such(tmp_path: Path, kind: str) -> None:
    """Compressed data under a plain name is said to be that, not rejected line by line."""
    data, why = OTHER_DATA[kind]
    path = tmp_path / "in.jsonl"
    path.write_bytes(data)
    with pytest.raises(DumpError, match=why):
        read(path)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    """What is not there, or no file, is named."""
    with pytest.raises(DumpError, match="there is no file"):
        open_source(str(tmp_path / "none.jsonl"), Columns())
    with pytest.raises(DumpError, match="folder"):
        open_source(str(tmp_path), Columns())


def test_fraction_grows_to_one(tmp_path: Path) -> None:
    """The share that has been read grows from 0 to 1."""
    path = tmp_path / "in.jsonl"
    path.write_bytes(ROW * 60_000)
    source = open_source(str(path), Columns())
    seen = [source.fraction() for _ in source]
    assert seen == sorted(seen, key=float)  # type: ignore[arg-type]
    assert seen[30_000] == pytest.approx(0.5, abs=1e-3)
    assert source.fraction() == 1.0


def test_identity_is_that_of_the_content(tmp_path: Path) -> None:
    """A copy is the same input; another size, head or tail is not."""
    paths = [tmp_path / f"{i}.jsonl" for i in range(4)]
    data = ROW * 20_000
    for path, content in zip(paths, [data, data, b" " + data[1:], data[:-2] + b" \n"], strict=True):
        path.write_bytes(content)
    first, copy, head, tail = (open_source(str(path), Columns()).identity() for path in paths)
    assert first == copy
    assert first not in (head, tail)
