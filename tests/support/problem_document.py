"""Problem documents in tests."""

from __future__ import annotations

from typing import Any

import httpx


def problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The problem document that an answer is, which must be of this status and code."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = answer.json()
    assert document["code"] == code, document
    return document
