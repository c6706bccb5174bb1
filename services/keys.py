"""API keys: made once, shown once, kept as their SHA-256.

A key is `rw_<id>_<secret>` with a secret of 256 random bits, so that a slow hash would add nothing. The file of keys is
read again when it changes: a key is rotated by adding a second one of the same name and revoking the first later.
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import hashlib
import hmac
import json
import logging
import os
import secrets
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from ..core.errors import ServiceError
from ..core.rollout import describe

log = logging.getLogger(__name__)

Scope = Literal["score", "admin", "metrics"]
"""Grade; look at and steer the service; read its metrics."""

REREAD_S = 1.0
"""How often the file is looked at."""

_NOBODY = hashlib.sha256(b"nobody").hexdigest()


class Key(BaseModel):
    """What is known of a key; the key itself is not."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(pattern=r"^[0-9a-z]{4,32}$")
    name: str = Field(min_length=1, max_length=100)
    """Whose it is. Several keys may share a name."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", repr=False)
    scopes: tuple[Scope, ...] = Field(min_length=1)
    created: AwareDatetime
    expires: AwareDatetime | None = None
    max_requests: int | None = Field(default=None, ge=1)
    """Under way at once."""
    rollouts_per_minute: int | None = Field(default=None, ge=1)

    @property
    def expired(self) -> bool:
        """Whether it is no longer valid."""
        return self.expires is not None and self.expires.timestamp() <= time.time()


class KeyFile(BaseModel):
    """The file as JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    keys: tuple[Key, ...] = ()


def load(path: Path) -> dict[str, Key]:
    """The keys of a file by id. Raises ServiceError in one line."""
    try:
        found = KeyFile.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ServiceError(f"cannot read the keys in {path}: {error.strerror}") from None
    except ValidationError as error:
        raise ServiceError(f"the keys in {path} cannot be used: {describe(error)}") from None
    by_id = {key.id: key for key in found.keys}
    if len(by_id) < len(found.keys):
        raise ServiceError(f"two keys in {path} have the same id; revoke one of them")
    return by_id


def save(path: Path, keys: Mapping[str, Key]) -> None:
    """Write the file whole or not at all, for its owner's eyes only."""
    text = json.dumps(KeyFile(keys=tuple(keys.values())).model_dump(mode="json", exclude_none=True), indent=2)
    try:
        handle, new = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 0600
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text + "\n")
                file.flush()
                os.fsync(file.fileno())
            Path(new).replace(path)
        except BaseException:
            Path(new).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ServiceError(f"cannot write the keys to {path}: {error.strerror}") from None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Only one process at a time changes the file."""
    try:
        handle = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise ServiceError(f"cannot write the keys to {path}: {error.strerror}") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def make(
    name: str,
    scopes: tuple[Scope, ...],
    *,
    created: datetime,
    expires: datetime | None = None,
    max_requests: int | None = None,
    rollouts_per_minute: int | None = None,
) -> tuple[str, Key]:
    """A new key, and what is kept of it."""
    made = secrets.token_hex(6)
    text = f"rw_{made}_{secrets.token_urlsafe(32)}"
    try:
        key = Key(
            id=made, name=name, sha256=digest(text), scopes=scopes, created=created, expires=expires,
            max_requests=max_requests, rollouts_per_minute=rollouts_per_minute,
        )  # fmt: skip
    except ValidationError as error:
        raise ServiceError(f"no such key can be made: {describe(error)}") from None
    return text, key


def digest(text: str) -> str:
    """What is kept of a key."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


class KeyRing:
    """The keys of a file, which may change at any time. A file that breaks leaves the keys as they were."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._keys = load(path)
        self._mark = self._look()
        self._next = time.monotonic() + REREAD_S

    def find(self, text: str) -> Key | None:
        """Whose key it is; None when it is nobody's, or no longer valid. Takes equally long for every wrong one."""
        self._refresh()
        prefix, _, rest = text.partition("_")
        key = self._keys.get(rest.partition("_")[0]) if prefix == "rw" else None
        same = hmac.compare_digest(digest(text), key.sha256 if key is not None else _NOBODY)
        return key if key is not None and same and not key.expired else None

    def _refresh(self) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        with self._lock:
            self._next = now + REREAD_S
            mark = self._look()
            if mark == self._mark:
                return
            self._mark = mark
            try:
                self._keys = load(self._path)
                log.info("read %d API keys again", len(self._keys))
            except ServiceError as error:
                log.warning("keeping the API keys as they were: %s", error)

    def _look(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino, found.st_size


def presented(headers: Mapping[bytes, bytes]) -> str | None:
    """The key that a request shows: `Authorization: Bearer`, `X-API-Key`, or the password of HTTP Basic.

    Callers that know nothing but an address can put the key into that: `http://key:rw_...@host`.
    """
    value = headers.get(b"authorization")
    if value is not None:
        how, _, rest = value.decode("latin-1").partition(" ")
        if how.lower() == "bearer":
            return rest.strip()
        if how.lower() == "basic":
            try:
                return base64.b64decode(rest.strip(), validate=True).decode("utf-8", "replace").partition(":")[2]
            except (binascii.Error, ValueError):
                return ""
        return ""
    other = headers.get(b"x-api-key")
    return None if other is None else other.decode("latin-1").strip()
