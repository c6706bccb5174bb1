"""Errors of a request as a whole, as problem documents (RFC 9457).

Nothing that a client sent is repeated beyond a short piece of it, and keys never are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

MEDIA_TYPE = "application/problem+json"

URI = "urn:rewarden:problem:"
"""Before the code. Each is described in docs/reference/http.md."""

CODES: dict[str, tuple[int, str, bool]] = {
    "bad_request": (400, "The request cannot be read", False),
    "not_json": (400, "The body is not JSON", False),
    "no_key": (401, "An API key is needed", False),
    "bad_key": (401, "The API key is not valid", False),
    "wrong_scope": (403, "The API key does not allow this", False),
    "foreign_host": (403, "Without API keys the service is for this machine only", False),
    "not_found": (404, "There is nothing here", False),
    "unknown_recipe": (404, "No recipe of that name is on offer", False),
    "unknown_job": (404, "There is no job of that id", False),
    "method_not_allowed": (405, "This method does nothing here", False),
    "too_slow": (408, "The body took too long to arrive", True),
    "other_version": (409, "The recipe is pinned to a version that is not here", False),
    "too_large": (413, "The body is too large", False),
    "too_many_rollouts": (413, "There are too many rollouts in one request", False),
    "unsupported_media_type": (415, "The body is of a type that is not read here", False),
    "invalid_request": (422, "The request is not valid", False),
    "key_reused": (422, "The idempotency key belongs to another request", False),
    "ungraded": (422, "A reward was asked for and there is none", False),
    "busy": (429, "The service is full", True),
    "rate_limited": (429, "The API key has used up its rate", True),
    "internal": (500, "The service failed", True),
    "no_queue": (503, "The service has no queue", False),
    "draining": (503, "The service is stopping", True),
    "ungraded_for_now": (503, "A reward was asked for and there is none yet", True),
    "unavailable": (503, "The service cannot do this now", True),
}
"""Code to status, title, and whether the same request may succeed later."""

_BY_STATUS = {400: "bad_request", 404: "not_found", 405: "method_not_allowed", 413: "too_large", 503: "unavailable"}

SHOWN = 500
"""Characters of a detail or a message."""

FAULTS = 20
"""Entries of `errors`."""


class Fault(BaseModel):
    """One thing that is wrong, and where."""

    pointer: str
    """A JSON pointer into the body."""
    detail: str


class ProblemDocument(BaseModel):
    """An error, as RFC 9457 says."""

    type: str = Field(examples=[URI + "busy"])
    """A URI for `code`; docs/reference/http.md describes each."""
    title: str
    status: int
    detail: str
    """What is wrong with this request, and what to do."""
    code: str = Field(examples=["busy"], json_schema_extra={"enum": [*sorted(CODES)]})
    retryable: bool
    """Whether the same request may succeed later."""
    request_id: str | None = None
    """Also in the header `X-Request-ID`, and in the log of the service."""
    errors: list[Fault] | None = None


class Problem(Exception):  # noqa: N818 - the RFC's word
    """Answers the request with a problem document. `code` is one of CODES."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        faults: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.faults = list(faults)
        self.headers = dict(headers or {})

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.code, self.detail, self.faults, self.headers)

    @property
    def status(self) -> int:
        return CODES[self.code][0]

    def body(self, request_id: str | None = None) -> bytes:
        """The document."""
        status, title, retryable = CODES[self.code]
        document: dict[str, Any] = {
            "type": URI + self.code,
            "title": title,
            "status": status,
            "detail": short(self.detail),
            "code": self.code,
            "retryable": retryable,
        }
        if request_id is not None:
            document["request_id"] = request_id
        if self.faults:
            document["errors"] = [{"pointer": short(p), "detail": short(d)} for p, d in self.faults[:FAULTS]]
        return orjson.dumps(document)

    def response(self, request_id: str | None = None) -> Response:
        """The document as the answer to a request."""
        return Response(self.body(request_id), self.status, headers=self.headers, media_type=MEDIA_TYPE)


def _rebuild(code: str, detail: str, faults: Sequence[tuple[str, str]], headers: Mapping[str, str]) -> Problem:
    return Problem(code, detail, faults=faults, headers=headers)


def short(text: str) -> str:
    """At most SHOWN characters, all of which UTF-8 can hold."""
    text = text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
    return text.encode("utf-8", "replace").decode()


def of_http_exception(error: HTTPException) -> Problem:
    """What the framework raises for a path or method that is not here."""
    code = _BY_STATUS.get(error.status_code, "internal" if error.status_code >= 500 else "bad_request")
    details = {
        "not_found": "no such path; GET /openapi.json lists what there is",
        "method_not_allowed": "this path does not take that method; the header Allow says which it takes",
    }
    return Problem(code, details.get(code, str(error.detail)), headers=error.headers)


def of_validation(errors: Sequence[Any]) -> Problem:
    """What the framework says of parameters that do not fit; `errors` as pydantic lists them."""
    faults = [("/" + "/".join(map(str, error["loc"])), str(error["msg"])) for error in errors]
    return Problem("invalid_request", "; ".join(f"{p}: {m}" for p, m in faults[:3]), faults=faults)


def request_id_of(request: Request) -> str | None:
    """The id that the outermost layer gave to the request."""
    return request.scope.get("rewarden.request_id")


def responses(*codes: str) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route: every status of these codes, with what any route may answer."""
    always = ("bad_request", "no_key", "wrong_scope", "internal")
    found: dict[int | str, dict[str, Any]] = {}
    for code in (*always, *codes):
        status, title, _ = CODES[code]
        titles = [known[1] for name, known in CODES.items() if known[0] == status and name in (*always, *codes)]
        found[status] = {
            "description": " / ".join(dict.fromkeys(titles)) or title,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}},
        }
        if status in (429, 503):
            found[status]["headers"] = {
                "Retry-After": {
                    "description": "Seconds to wait before the next try.",
                    "schema": {"type": "integer", "minimum": 1},
                }
            }
    return found
