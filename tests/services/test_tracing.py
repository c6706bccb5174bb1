"""Spans of requests, where OpenTelemetry is installed."""

from __future__ import annotations

import sys
from typing import Any

import httpx
import pytest
from service import running_service

from rewarden.services import tracing

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_continues_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request is a span under the caller's, with its status and its number of rollouts."""
    trace = pytest.importorskip("opentelemetry.trace")
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter").InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(memory))
    monkeypatch.setattr(trace, "get_tracer", lambda name, *_, **__: provider.get_tracer(name))
    sent = {"recipe": "exact", "rollouts": [{"completion": "x", "reference": "x"}] * 3}
    with running_service() as url:
        httpx.post(f"{url}/v1/score", json=sent, headers={"traceparent": PARENT})
    (span,) = [span for span in memory.get_finished_spans() if span.name == "POST /v1/score"]
    assert format(span.context.trace_id, "032x") == PARENT.split("-")[1]
    assert format(span.parent.span_id, "016x") == PARENT.split("-")[2]
    assert span.attributes["rewarden.rollouts"] == 3
    assert span.attributes["http.response.status_code"] == 200


def test_without_opentelemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without OpenTelemetry nothing is traced, and nothing is missing."""
    modules: dict[str, Any] = {"opentelemetry": None, "opentelemetry.propagate": None}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    with tracing.tracer()("GET /", {b"traceparent": PARENT.encode()}) as describe:
        describe({"a": 1})
