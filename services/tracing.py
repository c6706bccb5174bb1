"""A span for each request where OpenTelemetry is installed; nothing otherwise.

A caller's W3C `traceparent` is continued. Where spans go is configured as for any program of OpenTelemetry.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

Span = Callable[[Mapping[str, Any]], None]
"""Sets attributes of the span."""


def tracer() -> Callable[[str, Mapping[bytes, bytes]], AbstractContextManager[Span]]:
    """What makes the span of a request of its method and path, and its headers."""
    try:
        from opentelemetry import trace
        from opentelemetry.propagate import extract
    except ImportError:
        return _none
    made = trace.get_tracer("rewarden.services")

    @contextlib.contextmanager
    def span(name: str, headers: Mapping[bytes, bytes]) -> Iterator[Span]:
        carrier = {
            key.decode("latin-1"): value.decode("latin-1")
            for key, value in headers.items()
            if key in (b"traceparent", b"tracestate", b"baggage")
        }
        with made.start_as_current_span(name, context=extract(carrier), kind=trace.SpanKind.SERVER) as current:
            yield current.set_attributes

    return span


def current() -> str:
    """The W3C `traceparent` of the span that is open here, for whoever goes on with the work; empty without one."""
    try:
        from opentelemetry.propagate import inject
    except ImportError:
        return ""
    carrier: dict[str, str] = {}
    inject(carrier)
    return carrier.get("traceparent", "")


@contextlib.contextmanager
def _none(_: str, __: Mapping[bytes, bytes]) -> Iterator[Span]:
    yield lambda _: None
