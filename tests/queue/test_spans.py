"""Spans through the queue, where OpenTelemetry is installed."""

from __future__ import annotations

import asyncio
import threading

import httpx
import pytest
from service import PATIENCE_S, running_service, until

from rewarden.client.queue.connection import connect
from rewarden.client.queue.ledger import Ledger
from rewarden.core.catalog import Catalog
from rewarden.core.engines import Engines
from rewarden.services.worker.grader import Grader

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_the_worker_goes_on_with_the_trace(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker's span of a batch is under the request that started the job, which is under its caller's."""
    trace = pytest.importorskip("opentelemetry.trace")
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter").InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(memory))
    monkeypatch.setattr(trace, "get_tracer", lambda name, *_, **__: provider.get_tracer(name))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def open_ledger() -> Ledger:
        return Ledger(connect(redis_url))

    ledger = asyncio.run_coroutine_threadsafe(open_ledger(), loop).result(PATIENCE_S)
    body = {"recipe": "exact", "rollouts": [{"completion": "x", "reference": "x"}]}
    with running_service(queue=redis_url) as url, Engines(Catalog(), workers=1) as engines:
        job = httpx.post(f"{url}/v1/jobs", json=body, headers={"traceparent": PARENT}).json()["id"]
        grader = Grader(ledger, engines, loop, "w")
        until(lambda: grader.grade(["text"]))
        until(lambda: httpx.get(f"{url}/v1/jobs/{job}").json()["state"] == "done")
    asyncio.run_coroutine_threadsafe(ledger.close(), loop).result(PATIENCE_S)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(PATIENCE_S)
    loop.close()
    spans = memory.get_finished_spans()
    (request,) = [span for span in spans if span.name == "POST /v1/jobs"]
    (batch,) = [span for span in spans if span.name == "grade exact"]
    assert format(request.parent.span_id, "016x") == PARENT.split("-")[2]
    assert batch.parent.span_id == request.context.span_id
    assert format(batch.context.trace_id, "032x") == PARENT.split("-")[1]
    assert batch.attributes["rewarden.rollouts"] == 1
