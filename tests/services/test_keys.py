"""API keys: who is let in, to what, and how keys come and go while a service runs."""

from __future__ import annotations

import base64
import json
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from problem_document import problem
from service import Running, running_service, until

from rewarden.core.errors import ServiceError
from rewarden.services import keys
from rewarden.services.settings import Settings

ONE = {"recipe": "exact", "rollouts": [{"completion": "x", "reference": "x"}]}
NOW = datetime.now(UTC)


class Guarded(NamedTuple):
    """A service with keys."""

    url: Running
    file: Path
    score: str
    admin: str
    metrics: str
    old: str


def add(file: Path, name: str, *scopes: keys.Scope, **more: Any) -> str:
    """Put a new key into the file."""
    text, key = keys.make(name, scopes or ("score",), created=NOW, **more)
    keys.save(file, (keys.load(file) if file.exists() else {}) | {key.id: key})
    return text


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A service with a key of each scope, and one that has expired."""
    file = tmp_path_factory.mktemp("keys") / "keys.json"
    made = [add(file, "a"), add(file, "b", "admin"), add(file, "c", "metrics")]
    made.append(add(file, "d", expires=NOW - timedelta(seconds=1)))
    with running_service(keys=file) as url:
        yield Guarded(url, file, *made)


def bearer(key: str) -> dict[str, str]:
    """The header that shows a key."""
    return {"Authorization": f"Bearer {key}"}


def basic(password: str) -> dict[str, str]:
    """The header that a client makes of `http://key:PASSWORD@host`."""
    return {"Authorization": "Basic " + base64.b64encode(f"key:{password}".encode()).decode()}


def test_ways_to_show_a_key(guarded: Guarded) -> None:
    """A key is taken as a bearer token, in X-API-Key, or as the password in the address."""
    for headers in (bearer(guarded.score), {"X-API-Key": guarded.score}, basic(guarded.score)):
        assert httpx.post(f"{guarded.url}/v1/score", json=ONE, headers=headers).status_code == 200


def test_wrong_keys_are_all_alike(guarded: Guarded) -> None:
    """Whatever is wrong with a key, the answer is the same, names no key and says how to show one."""
    stem = guarded.score.rpartition("_")[0]
    wrong = [guarded.old, guarded.score + "x", guarded.score[:-1], f"{stem}_", "rw__", "", "rw_none_x", "é" * 5000]
    details = set()
    for key in wrong:
        headers = basic(key)
        answer = httpx.post(f"{guarded.url}/v1/score", json=ONE, headers=headers)
        found = problem(answer, 401, "bad_key")
        details.add(found["detail"])
        assert not key or key not in answer.text
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert len(details) == 1
    for headers in ({"Authorization": "Digest x"}, {"Authorization": "Basic ###"}, {"X-API-Key": "\xff"}):
        raw = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
        problem(httpx.post(f"{guarded.url}/v1/score", json=ONE, headers=raw), 401, "bad_key")
    problem(httpx.post(f"{guarded.url}/v1/score", json=ONE), 401, "no_key")


def test_scopes(guarded: Guarded) -> None:
    """Each scope opens its own paths; probes and the OpenAPI document are open; unknown paths are not told apart."""
    keys_of = {"score": guarded.score, "admin": guarded.admin, "metrics": guarded.metrics}
    allowed = {"/v1/scorers": {"score"}, "/v1/status": {"admin"}, "/metrics": {"admin", "metrics"}, "/x": {"score"}}
    for path, scopes in allowed.items():
        for scope, key in keys_of.items():
            answer = httpx.get(f"{guarded.url}{path}", headers=bearer(key))
            assert answer.status_code == ((404 if path == "/x" else 200) if scope in scopes else 403), (path, scope)
    for path in ("/livez", "/readyz", "/openapi.json"):
        assert httpx.get(f"{guarded.url}{path}").status_code == 200
    for path in ("/x", "/openapi.json/", "/livez/../v1/status", "/ui../v1/status", "//v1/score"):
        problem(httpx.get(f"{guarded.url}{path}"), 401, "no_key")


def test_keys_change_while_the_service_runs(tmp_path: Path) -> None:
    """A new key works and a revoked one does not, without a restart; a broken file leaves the keys as they were."""
    file = tmp_path / "keys.json"
    first = add(file, "trainer")
    with running_service(keys=file) as url:

        def status(key: str) -> int:
            return httpx.get(f"{url}/v1/scorers", headers=bearer(key)).status_code

        assert status(first) == 200
        second = add(file, "trainer")
        until(lambda: status(second) == 200)
        assert status(first) == 200
        text = file.read_text()
        file.write_text('{"keys": [')
        ring = url.service.keys
        assert ring is not None
        until(lambda: status(second) == 200 and ring._mark == ring._look())
        assert status(second) == 200
        file.write_text(text)
        keys.save(file, {key.id: key for key in keys.load(file).values() if second.startswith(f"rw_{key.id}_")})
        until(lambda: status(first) == 401)
        assert status(second) == 200


def test_the_file_keeps_no_key(tmp_path: Path) -> None:
    """The file holds the SHA-256 of a key and nothing of its secret, and is its owner's alone."""
    file = tmp_path / "keys.json"
    text = add(file, "trainer")
    assert text.split("_", 2)[2] not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(base64.urlsafe_b64decode(text.split("_", 2)[2] + "=")) == 32
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    "text", ["", "[]", '{"keys": [{"id": "abcd"}]}', '{"keys": [], "admin": true}', '{"keys": "x"}']
)
def test_files_that_are_none(tmp_path: Path, text: str) -> None:
    """A file that is not one of keys is refused in one line that names it."""
    file = tmp_path / "keys.json"
    file.write_text(text)
    with pytest.raises(ServiceError, match="keys"):
        keys.KeyRing(file)
    with pytest.raises(ServiceError, match="No such file"):
        keys.load(tmp_path / "none.json")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", ""])
def test_no_keys_no_network(host: str, tmp_path: Path) -> None:
    """Without keys no address but this machine's is listened on."""
    with pytest.raises(ServiceError, match="rewarden keys create"):
        Settings(host=host)
    for here in ("127.0.0.1", "::1", "localhost", "127.0.0.7"):
        assert Settings(host=here).loopback
    assert Settings(host=host, keys=tmp_path).keys == tmp_path


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "localhost.evil.example:8321"},
        {"Host": "[bad"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
    ],
)
def test_pages_of_other_sites(url: Running, headers: dict[str, str]) -> None:
    """Without keys, a browser on this machine cannot be made to ask for another site: by name, or from its page."""
    problem(httpx.get(f"{url}/v1/status", headers=headers), 403, "foreign_host")
    answer = httpx.options(f"{url}/v1/score", headers={"Access-Control-Request-Method": "POST"})
    assert "access-control-allow-origin" not in answer.headers


def test_own_pages(url: Running) -> None:
    """The service's own page may ask, under each name of this machine."""
    port = url.rpartition(":")[2]
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}"):
        answer = httpx.get(f"{url}/v1/status", headers={"Host": host, "Origin": f"http://{host}"})
        assert answer.status_code == 200


def test_secrets_stay_out_of_settings() -> None:
    """The key for peers is not shown where settings are."""
    assert "rw_secret" not in repr(Settings(peer_key="rw_secret"))
    text = json.dumps(keys.KeyFile().model_dump(mode="json"))
    assert text == '{"keys": []}'
