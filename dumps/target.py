"""Where scored rows go: `OUT` and the files beside it.

    OUT                  every row with its verdict; there only when it is whole
    OUT.part             rows scored so far, as JSON lines: what a killed run is picked up from
    OUT.part.json        what OUT.part belongs to, and the lock
    OUT.rejected.jsonl   rows that are no rollouts
    OUT.run.jsonl        times and cache hits, so that OUT itself is the same for two runs

A stream (`-`, a pipe, a device) gets JSON lines as they come, and has none of the files beside it.
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import os
import shutil
import stat
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson
import zstandard

from ..core.errors import DumpError
from .journal import HOLD, Journal
from .source import STANDARD, Compression, Format, descriptor, format_of, is_special

_BESIDE = (".part", ".part.json", ".part.json.new", ".part.final", ".run.jsonl", ".rejected.jsonl")


@dataclass(frozen=True, slots=True)
class Target:
    """An output file, and what the files beside it are called."""

    name: str
    path: Path
    format: Format
    packed: Compression
    is_stream: bool

    @classmethod
    def of(cls, name: str) -> Target:
        """The target called `name`. Raises DumpError where it can never be written."""
        if descriptor(name) is not None:
            path = Path("standard output" if name == STANDARD else name)
            return cls(name, path, Format.JSONL, Compression.NONE, is_stream=True)
        if is_special(Path(name)):
            return cls(name, Path(name), Format.JSONL, Compression.NONE, is_stream=True)
        # The file behind a link is what is replaced in the end, not the link.
        path = Path(os.path.realpath(name))
        if path.is_dir():
            raise DumpError(f"{name} is a folder; name a file in it")
        if not path.parent.is_dir():
            raise DumpError(f"the folder {path.parent} does not exist; make it, or write elsewhere")
        kind, packed = format_of(name)
        return cls(name, path, kind, packed, is_stream=False)

    def beside(self, suffix: str) -> Path:
        """A file beside the output: its whole name, and the suffix."""
        return self.path.with_name(self.path.name + suffix)

    def clash(self, source: str) -> Path | None:
        """The file that a run would write though it is `source`, by this name or through a link; None if there is none.

        Pipes and devices may be both: they lose nothing.
        """
        here = descriptor(source)
        with contextlib.suppress(OSError):
            found = Path(source).stat() if here is None else os.fstat(here)
            for path in self._files() if stat.S_ISREG(found.st_mode) else ():
                with contextlib.suppress(OSError):
                    there = descriptor(self.name) if self.is_stream else None
                    written = path.stat() if there is None else os.fstat(1 if self.name == STANDARD else there)
                    if os.path.samestat(found, written):
                        return path
        return None

    def _files(self) -> list[Path]:
        """All files that a run into this target may write, for however short a time."""
        return [self.path] if self.is_stream else [self.path, *map(self.beside, _BESIDE)]

    def journal(self, *, resume: bool) -> Journal:
        """The rows scored so far, to go on with; or the stream itself."""
        if not self.is_stream:
            return Journal(self.beside(".part"), resume=resume)
        fd = descriptor(self.name)
        if fd is not None:
            return Journal(self.path, fd=1 if self.name == STANDARD else fd)
        try:
            return Journal(self.path, fd=os.open(self.path, os.O_WRONLY | os.O_CLOEXEC))
        except OSError as error:
            raise DumpError(f"cannot write {self.name}: {error.strerror}") from None

    def publish(self, part: Path, convert: Callable[[Path], None] | None) -> None:
        """Put the finished rows in `part` in their place, at once and for good. `convert` writes another format."""
        try:
            if convert is None and self.packed is Compression.NONE:
                part.replace(self.path)
            else:
                final = self.beside(".part.final")
                try:
                    if convert is not None:
                        convert(final)
                    else:
                        _compress(part, final, self.packed)
                    _sync(final)
                    final.replace(self.path)
                finally:
                    final.unlink(missing_ok=True)
                part.unlink()
            _sync(self.path.parent)
        except OSError as error:
            raise DumpError(f"cannot write {self.name}: {error.strerror or error}") from None


def _compress(part: Path, final: Path, packed: Compression) -> None:
    """Without names and times in the file, so that equal rows give equal bytes."""
    with part.open("rb") as rows, final.open("wb") as file:
        if packed is Compression.GZIP:
            with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0) as out:
                shutil.copyfileobj(rows, out, HOLD)
        else:
            zstandard.ZstdCompressor(level=3).copy_stream(rows, file, size=part.stat().st_size)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


_LOCKED: set[tuple[int, Path]] = set()
"""States that runs of this process have locked; with its id, as a forked process inherits the set, but no lock."""

_LOCKED_GUARD = threading.Lock()


class State:
    """What a part belongs to, in a file that is locked as long as a run writes that part.

    The lock is the kind that belongs to a process and ends with it, so that a worker which outlives its parent for a
    moment does not hold it. It keeps nobody out in the process itself: for that there is `_LOCKED`.
    """

    def __init__(self, target: Target) -> None:
        self._name = target.name
        self._path = target.beside(".part.json")
        self._new = target.beside(".part.json.new")
        self._file: BinaryIO | None = None
        self._registered = False

    def lock(self) -> dict[str, Any] | None:
        """Take the lock; what an earlier run has left. Raises DumpError while another run has it."""
        # Closing any descriptor of a file drops the process's locks on it, so it must not even be opened twice.
        with _LOCKED_GUARD:
            if (os.getpid(), self._path) in _LOCKED:
                raise self._busy(os.getpid())
            _LOCKED.add((os.getpid(), self._path))
            self._registered = True
        try:
            return self._lock()
        except BaseException:
            self.close(done=False)
            raise

    def _busy(self, process: object) -> DumpError:
        return DumpError(f"another run (process {process}) is writing {self._name}; wait for it, or stop it")

    def _open(self, path: Path) -> BinaryIO:
        try:
            return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "r+b", buffering=0)
        except OSError as error:
            raise DumpError(f"cannot write {path}: {error.strerror}") from None

    def _lock(self) -> dict[str, Any] | None:
        while True:
            file = self._open(self._path)
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                process = _parse(file.read()).get("process", "?")
                file.close()
                raise self._busy(process) from None
            except OSError as error:
                file.close()
                raise DumpError(f"cannot lock {self._path}: {error.strerror}; write to a local disk") from None
            # A run that has just ended deletes the file: a lock on a deleted file keeps nobody out.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), self._path.stat()):
                    self._file = file
                    return _parse(file.read()) or None
            file.close()

    def save(self, state: Mapping[str, Any]) -> None:
        """Say what the part belongs to from now on: all of it or, after a kill, what was said before."""
        assert self._file is not None
        text = orjson.dumps({**state, "process": os.getpid()}, option=orjson.OPT_INDENT_2)
        file = self._open(self._new)
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # before it has the name under which others look for it
            file.truncate()
            file.write(text)
            os.fsync(file.fileno())
            self._new.replace(self._path)
        except OSError as error:
            file.close()
            raise DumpError(f"cannot write {self._path}: {error.strerror}") from None
        self._file.close()
        self._file = file
        _sync(self._path.parent)

    def close(self, *, done: bool) -> None:
        """Give the lock back; delete the file when the run is `done`, and nothing is left to pick up."""
        if self._file is not None:
            if done:
                self._new.unlink(missing_ok=True)
                self._path.unlink(missing_ok=True)
            self._file.close()
            self._file = None
        if self._registered:
            _LOCKED.discard((os.getpid(), self._path))
            self._registered = False


def _parse(text: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:  # empty: a run has taken the lock and was killed before it wrote anything
        return {}
    return found if isinstance(found, dict) else {}
