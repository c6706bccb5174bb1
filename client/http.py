"""Grading by a service over HTTP: kept-alive connections, compressed bodies, errors told apart by what cures them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import fields
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn
from urllib.parse import quote, urlsplit

import orjson
import zstandard

from ..core.errors import PinError, ServiceError, UnknownScorerError
from ..core.reasons import Reason
from ..core.rollout import Rollout
from ..core.verdict import Verdict, ungraded
from ..core.wire import (
    JobOptions,
    ScoreOptions,
    bad_rollout,
    decode_verdict,
    encode_items,
    encode_request,
    encode_rollouts,
    with_faults,
)
from .transport import Arrival, BusyError, JobStatus, Request, TooLargeError, UnknownJobError

try:
    import httpx
except ImportError as error:
    raise ImportError("a service is reached over httpx; to have it: pip install 'rewarden[client]'") from error

COMPRESS_FROM = 10_000
"""Bytes of a body that are worth compressing."""

CONNECT_S = 10.0

GRACE_S = 30.0
"""How much longer than its `timeout_s` a request is waited for: the service answers by itself."""

LONGEST_S = 630.0
"""How long an answer is waited for when the request has no `timeout_s`."""

SILENCE_S = 60.0
"""How long a stream may say nothing, not even a blank line, before it is taken for broken."""

LINE_BYTES = 1 << 26
"""No verdict is longer; a stream that goes on without a line end is not from a service."""

_STATUS_FIELDS = tuple(field.name for field in fields(JobStatus))


class HttpTransport:
    """The service at `url`, with the API key in every request. Belongs to one event loop."""

    def __init__(self, url: str, api_key: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url[:200]!r} is no address of a service; give http://HOST:PORT")
        headers = {"Accept": "application/json", "Accept-Encoding": "zstd, gzip"}
        if api_key is not None:
            if not api_key.isascii() or not api_key.isprintable():
                raise ValueError("the API key holds characters that no header can carry; copy it again")
            headers["Authorization"] = f"Bearer {api_key}"
        self._base = url.rstrip("/")
        self._host = parts.netloc.rpartition("@")[2]
        self._client = httpx.AsyncClient(
            headers=headers,
            timeout=httpx.Timeout(None, connect=CONNECT_S),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=60),
        )
        self._compressor = zstandard.ZstdCompressor(level=1)

    def __repr__(self) -> str:
        return f"HttpTransport({self._host!r})"

    async def score(self, request: Request) -> list[Verdict]:
        rollouts, faults = encode_rollouts(request.rollouts)
        if len(faults) == len(request.rollouts):
            return [bad_rollout(faults[row], rollout.id) for row, rollout in enumerate(request.rollouts)]
        body = encode_request(ScoreOptions(recipe=request.recipe, timeout_s=request.timeout_s), rollouts)
        limit = LONGEST_S if request.timeout_s is None else request.timeout_s + GRACE_S
        answer = await self._ask("POST", "/v1/score", body, {"Idempotency-Key": request.key}, limit)
        sent = [rollout for row, rollout in enumerate(request.rollouts) if row not in faults]
        verdicts = self._verdicts(answer, sent)
        if faults:
            graded = iter(verdicts)
            return [
                bad_rollout(faults[row], rollout.id) if row in faults else next(graded)
                for row, rollout in enumerate(request.rollouts)
            ]
        return verdicts

    async def start(self, request: Request, faults: Mapping[int, str] | None = None) -> str:
        options = JobOptions(
            recipe=request.recipe,
            timeout_s=request.timeout_s,
            priority=request.priority,
            group_wait_s=request.group_wait_s,
        )
        body = encode_request(options, encode_items(with_faults(request.rollouts, faults)))
        answer = await self._ask("POST", "/v1/jobs", body, {"Idempotency-Key": request.key}, LONGEST_S)
        job = answer.get("id")
        if not isinstance(job, str) or not job:
            raise BusyError(f"{self._host} accepted a job but did not name it")
        return job

    async def follow(self, job: str, cursor: int = 0) -> AsyncIterator[Arrival]:
        request = self._client.build_request(
            "GET",
            f"{self._base}{_job(job)}",
            params={"cursor": cursor},
            headers={"Accept": "application/x-ndjson"},
            timeout=httpx.Timeout(SILENCE_S, connect=CONNECT_S),
        )
        try:
            response = await self._client.send(request, stream=True)
            try:
                if response.status_code != 200:
                    self._refused(response, await response.aread())
                async for line in _lines(response):
                    found = self._read(line)
                    if "state" in found:
                        if found.get("cursor") != cursor:
                            raise BusyError(f"{self._host} ended the stream of a job too early")
                        return
                    arrival = self._arrival(found)
                    cursor = arrival.cursor
                    yield arrival
            finally:
                await response.aclose()
        except (httpx.RequestError, httpx.StreamError) as error:
            raise BusyError(f"the stream from {self._host} broke: {_describe(error)}") from error
        raise BusyError(f"the stream from {self._host} was cut")

    async def status(self, job: str) -> JobStatus:
        return self._status(await self._ask("GET", _job(job)))

    async def cancel(self, job: str) -> JobStatus:
        return self._status(await self._ask("DELETE", _job(job)))

    async def offers(self) -> dict[str, str]:
        answer = await self._ask("GET", "/v1/scorers")
        try:
            return {str(recipe["name"]): str(recipe["version"]) for recipe in answer["recipes"]}
        except (KeyError, TypeError):
            raise BusyError(f"{self._host} did not list its recipes; is it a rewarden service?") from None

    async def close(self) -> None:
        await self._client.aclose()

    # -- requests -----------------------------------------------------------------------------------------------------

    async def _ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        limit: float = GRACE_S,
    ) -> dict[str, Any]:
        """The JSON object that answers a request, within `limit` seconds."""
        headers = dict(headers or {})
        if body is not None:
            headers["Content-Type"] = "application/json"
            if len(body) >= COMPRESS_FROM:
                headers["Content-Encoding"] = "zstd"
                body = self._compressor.compress(body)
        try:
            # Over the whole answer: a server that sends a byte now and then must not hold a trainer.
            async with asyncio.timeout(limit):
                response = await self._client.request(method, self._base + path, content=body, headers=headers)
        except TimeoutError:
            raise BusyError(f"{self._host} did not answer within {limit:g} s") from None
        except httpx.RequestError as error:
            raise BusyError(f"{self._host} cannot be reached: {_describe(error)}") from error
        if not response.is_success:
            self._refused(response, response.content)
        return self._read(response.content)

    def _read(self, data: bytes) -> dict[str, Any]:
        try:
            answer = orjson.loads(data)
        except orjson.JSONDecodeError:
            answer = None
        if not isinstance(answer, dict):
            raise BusyError(f"{self._host} answered {data[:100]!r}, which is no JSON object; is it a rewarden service?")
        return answer

    def _refused(self, response: httpx.Response, data: bytes) -> NoReturn:
        """Raise what an answer that is no success means."""
        status = response.status_code
        try:
            problem = orjson.loads(data)
        except orjson.JSONDecodeError:
            problem = None
        if not isinstance(problem, dict):
            problem = {}
        code = problem.get("code")
        said = str(problem.get("detail") or problem.get("title") or response.reason_phrase)[:500]
        message = f"{self._host} answered {status}: {said}"
        match code:
            case "unknown_recipe":
                raise UnknownScorerError(message)
            case "other_version" | "version_mismatch":
                raise PinError(message)
            case "unknown_job":
                raise UnknownJobError(message)
        if status == 413:
            raise TooLargeError(message)
        retryable = problem.get("retryable")
        if not isinstance(retryable, bool):
            retryable = status in (408, 425, 429) or (status >= 500 and status != 501)
        if retryable:
            raise BusyError(message, _retry_after(response.headers.get("Retry-After")))
        if status in (401, 403):
            raise ServiceError(f"{message} (give the client another api_key, or set REWARDEN_API_KEY)")
        raise ServiceError(message)

    # -- answers ------------------------------------------------------------------------------------------------------

    def _verdicts(self, answer: dict[str, Any], rollouts: list[Rollout]) -> list[Verdict]:
        found = answer.get("verdicts")
        if not isinstance(found, list) or len(found) != len(rollouts):
            count = len(found) if isinstance(found, list) else "no"
            raise BusyError(f"{self._host} gave {count} verdicts for {len(rollouts)} rollouts")
        return [self._verdict(data, rollout.id) for data, rollout in zip(found, rollouts, strict=True)]

    def _verdict(self, data: Any, id: str) -> Verdict:
        """A verdict; one that is none, or lies, is a fault of the service."""
        try:
            return decode_verdict(data)
        except ValueError as error:
            why = f"{self._host} gave what is no verdict: {str(error)[:200]}"
            return ungraded(Reason.BACKEND_UNAVAILABLE, why, id=id)

    def _arrival(self, found: dict[str, Any]) -> Arrival:
        cursor, row = found.get("cursor"), found.get("row")
        if type(cursor) is not int or type(row) is not int or row < 0:
            raise BusyError(f"{self._host} sent a line that is no verdict")
        return Arrival(cursor, row, self._verdict(found.get("verdict"), ""))

    def _status(self, answer: dict[str, Any]) -> JobStatus:
        try:
            return JobStatus(**{name: answer[name] for name in _STATUS_FIELDS if name in answer})
        except TypeError:
            raise BusyError(f"{self._host} did not say where the job stands") from None


async def _lines(response: httpx.Response) -> AsyncIterator[bytes]:
    """The lines of a stream, without blank ones. What follows the last line end is no line: it was cut."""
    rest = b""
    async for chunk in response.aiter_bytes():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.strip():
                yield line
        if len(rest) > LINE_BYTES:
            raise BusyError(f"a line of more than {LINE_BYTES} bytes")


def _job(id: str) -> str:
    """The path of a job; an id is data, and cannot lead elsewhere."""
    if id in ("", ".", ".."):
        raise UnknownJobError(f"{id!r} is not the id of a job")
    return f"/v1/jobs/{quote(id, safe='')}"


def _retry_after(value: str | None) -> float | None:
    """Seconds from the header, which holds seconds or a date."""
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
