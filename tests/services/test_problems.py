"""Every error of a request as a whole is a problem document, and says no more than it should."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import socket
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import zstandard
from problem_document import problem
from service import Running, running_service

from rewarden.services.body import Body
from rewarden.services.problems import CODES, URI, Problem

JSON = {"Content-Type": "application/json"}
ONE = {"recipe": "exact", "rollouts": [{"completion": "x", "reference": "x"}]}


@pytest.fixture(scope="module")
def small() -> Iterator[Running]:
    """A service that takes 10,000 bytes and three rollouts."""
    with running_service(max_body_bytes=10_000, max_rollouts=3, body_timeout_s=1.0) as found:
        yield found


@pytest.mark.parametrize("body", [b"", b"{", b"nope", b'{"rollouts": NaN}', b"\xff\xfe", b"[" * 9000])
def test_not_json(small: Running, body: bytes) -> None:
    """What is no JSON, or deeper than can be read, is refused whole."""
    problem(httpx.post(f"{small}/v1/score", content=body, headers=JSON), 400, "not_json")


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"rollouts": []}, "/rollouts"),
        ({"rollouts": {}}, "/rollouts"),
        ({"recipe": 5}, "/recipe"),
        ({"timeout_s": -1}, "/timeout_s"),
        ({"timeout_s": "5"}, "/timeout_s"),
        ({"code": "print()"}, "/code"),
    ],
)
def test_faults_have_their_place(small: Running, change: dict[str, Any], pointer: str) -> None:
    """What is wrong outside the rollouts is named with a JSON pointer."""
    found = problem(httpx.post(f"{small}/v1/score", json=ONE | change), 422, "invalid_request")
    assert pointer in [fault["pointer"] for fault in found["errors"]]


def test_paths_and_methods(small: Running) -> None:
    """A path or method that is not here is a problem too, and says which methods there are."""
    problem(httpx.get(f"{small}/v2/score"), 404, "not_found")
    answer = httpx.put(f"{small}/v1/score", json={})
    problem(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "POST"


def test_recipes_that_are_not_here(small: Running) -> None:
    """An unknown recipe is 404, a pinned version that is not here 409; long names are not echoed."""
    problem(httpx.post(f"{small}/v1/score", json=ONE | {"recipe": "no"}), 404, "unknown_recipe")
    problem(httpx.post(f"{small}/v1/score", json=ONE | {"recipe": "exact@99"}), 409, "other_version")
    long = problem(httpx.post(f"{small}/v1/score", json=ONE | {"recipe": "n" * 200}), 404, "unknown_recipe")
    assert len(json.dumps(long)) < 1500


def test_types_and_codings(small: Running) -> None:
    """Only JSON is read, as it is, as gzip or as zstd; what is not what it says it is, is refused."""
    body = json.dumps(ONE).encode()
    for kind in ("text/plain", "multipart/form-data", "application/x-www-form-urlencoded"):
        answer = httpx.post(f"{small}/v1/score", content=body, headers={"Content-Type": kind})
        problem(answer, 415, "unsupported_media_type")
    for coding in ("br", "gzip, gzip", "deflate"):
        answer = httpx.post(f"{small}/v1/score", content=body, headers=JSON | {"Content-Encoding": coding})
        problem(answer, 415, "unsupported_media_type")
    for coding in ("gzip", "zstd"):
        answer = httpx.post(f"{small}/v1/score", content=body, headers=JSON | {"Content-Encoding": coding})
        problem(answer, 400, "bad_request")
    for broken in (gzip.compress(body)[:-9], gzip.compress(body) * 2):
        answer = httpx.post(f"{small}/v1/score", content=broken, headers=JSON | {"Content-Encoding": "gzip"})
        problem(answer, 400, "bad_request")


def test_too_large(small: Running) -> None:
    """A body over the limit is refused: declared, in chunks, or once it is unpacked."""
    body = b" " * 20_000
    problem(httpx.post(f"{small}/v1/score", content=body, headers=JSON), 413, "too_large")
    chunks = httpx.post(f"{small}/v1/score", content=iter([body[:6000], body[:6000], body]), headers=JSON)
    problem(chunks, 413, "too_large")
    problem(httpx.post(f"{small}/v1/score", json=ONE | {"rollouts": ONE["rollouts"] * 4}), 413, "too_many_rollouts")  # type: ignore[operator]
    assert httpx.post(f"{small}/v1/score", json=ONE).status_code == 200


PACK: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstandard.compress}


@pytest.mark.parametrize("coding", PACK)
def test_bombs_are_refused(small: Running, coding: str) -> None:
    """A body that unpacks to very much more is refused, and never unpacked beyond the limit."""
    bomb = PACK[coding](b"\0" * (8 << 20))
    assert len(bomb) < 10_000
    answer = httpx.post(f"{small}/v1/score", content=bomb, headers=JSON | {"Content-Encoding": coding})
    problem(answer, 413, "too_large")
    larger = Body(PACK[coding](b"\0" * (64 << 20)), coding, 10_000)
    tracemalloc.start()
    try:
        with pytest.raises(Problem, match="10,000"):
            larger.unpack()
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("coding", PACK)
def test_many_small_parts(coding: str) -> None:
    """A body of a million packed nothings takes no longer than its length deserves."""
    body = Body(PACK[coding](b"") * 500_000, coding, 1 << 24)
    start = time.monotonic()
    with contextlib.suppress(Problem):
        body.unpack()
    assert time.monotonic() - start < 20


def _raw(url: str, data: bytes, *, then: bytes = b"") -> bytes:
    """What the server answers on a bare socket until it closes or has nothing more to say."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=20) as connection:
        connection.sendall(data)
        if then:
            connection.sendall(then)
        out = b""
        while piece := connection.recv(65536):
            out += piece
            if b"}" in out:
                break
        return out


def test_a_body_that_does_not_come(small: Running) -> None:
    """A body that does not arrive in time is given up, with an answer."""
    head = (
        b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    )
    answer = _raw(small, head + b'{"a')
    assert b"HTTP/1.1 408" in answer
    assert b'"too_slow"' in answer


def test_what_is_no_http(small: Running) -> None:
    """Also bytes that are no HTTP are answered with a problem document."""
    answer = _raw(small, b"HELLO\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"application/problem+json" in answer
    both = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    assert _raw(small, both).startswith(b"HTTP/1.1 400")


def test_expect_continue_is_refused_before_the_body(small: Running) -> None:
    """Who asks before sending a body that is too large is told so, and not to go on."""
    head = b"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 50000\r\n\r\n"
    answer = _raw(small, head)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"connection: close" in answer


def test_a_fault_of_the_service(monkeypatch: pytest.MonkeyPatch, small: Running) -> None:
    """What breaks inside is 500 with the id under which the log has more, and says nothing else of it."""

    def broken(*_: object) -> None:
        raise RuntimeError("the secret is 42")

    monkeypatch.setattr(type(small.service), "decode", broken)
    found = problem(httpx.post(f"{small}/v1/score", json=ONE), 500, "internal")
    assert "42" not in json.dumps(found)
    assert found["request_id"]


def test_the_page_names_every_code() -> None:
    """docs/reference/http.md describes each code, with its status, and no other."""
    page = (Path(__file__).parents[2] / "docs/reference/http.md").read_text()
    rows = {code: int(status) for status, code in re.findall(r"^\| (\d{3}) \| `(\w+)`", page, flags=re.MULTILINE)}
    assert rows == {code: status for code, (status, _, _) in CODES.items()}
    assert URI in page


def test_problems_are_short() -> None:
    """No problem repeats more than a piece of what was sent, and all of them can be written as UTF-8."""
    found = Problem("invalid_request", "x" * 10**6 + "\ud800", faults=[("/" + "y" * 10**6, "\ud800")] * 1000).body()
    assert len(found) < 25_000
    assert json.loads(found)["code"] == "invalid_request"
