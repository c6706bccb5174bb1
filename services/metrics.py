"""Prometheus metrics of one process.

What is counted for each rollout is counted by the batch, in plain lists and counters, and only shaped into metrics when
somebody reads them. Labels have few values: scorers are those of the catalog, and `other` for those of a peer.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ..core import registry
from ..core.catalog import Catalog
from ..core.rollout import Rollout
from ..core.verdict import Graded
from ..core.wire import Item

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Metric

    from ..core.pool import PoolStats
    from .limits import Admission

SECONDS = (0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
REQUEST_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
REWARDS = (-1.0, -0.5, -0.1, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 2.0, 5.0)


class Histogram:
    """Counts by upper bound."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count one."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def buckets(self) -> list[tuple[str, float]]:
        """As Prometheus wants them: cumulative, up to infinity."""
        out, count = [], 0
        for bound, number in zip((*self.bounds, float("inf")), self.counts, strict=True):
            count += number
            out.append(("+Inf" if bound == float("inf") else repr(bound), count))
        return [(bound, float(number)) for bound, number in out]


class Metrics:
    """All metrics of a process; `admission` where it takes requests. `registry` takes further collectors."""

    def __init__(self, catalog: Catalog, admission: Admission | None, pools: Callable[[], Sequence[PoolStats]]) -> None:
        from prometheus_client import CollectorRegistry

        self.registry: CollectorRegistry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)
        self._admission = admission
        self._pools = pools
        self._scorers = frozenset({*registry.names(), *catalog.names()})
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str]] = Counter()
        self._latency: dict[str, Histogram] = {}
        self._verdicts: Counter[tuple[str, str]] = Counter()
        self._seconds: dict[tuple[str, str], Histogram] = {}
        self._rewards: dict[str, Histogram] = {}
        self._reasons: Counter[str] = Counter()
        self._cached: Counter[str] = Counter()
        self._groups = 0
        self._touched = 0

    def request(self, route: str, status: int, seconds: float) -> None:
        """A request was answered."""
        with self._lock:
            self._requests[route, str(status)] += 1
            latency = self._latency.get(route)
            if latency is None:
                latency = self._latency[route] = Histogram(REQUEST_SECONDS)
            latency.add(seconds)

    def batch(self, items: Sequence[Item], graded: Sequence[Graded]) -> Counter[tuple[str, str]]:
        """Rollouts were graded. Returns their number by scorer and outcome."""
        counts: Counter[tuple[str, str]] = Counter()
        groups: set[str] = set()
        touched: set[str] = set()
        with self._lock:
            for item, one in zip(items, graded, strict=True):
                verdict, trace = one.verdict, one.trace
                scorer = self.scorer(verdict.scorer.name) if verdict.scorer is not None else "none"
                key = (scorer, verdict.outcome.value)
                counts[key] += 1
                seconds = self._seconds.get(key)
                if seconds is None:
                    seconds = self._seconds[key] = Histogram(SECONDS)
                seconds.add(trace.seconds)
                if trace.cached:
                    self._cached[scorer] += 1
                group = item.group_key if isinstance(item, Rollout) else None
                if group is not None:
                    groups.add(group)
                if verdict.reward is None:
                    self._reasons[str(verdict.reason)] += 1
                    if group is not None:
                        touched.add(group)
                else:
                    rewards = self._rewards.get(scorer)
                    if rewards is None:
                        rewards = self._rewards[scorer] = Histogram(REWARDS)
                    rewards.add(verdict.reward)
            self._verdicts.update(counts)
            self._groups += len(groups)
            self._touched += len(touched)
        return counts

    def scorer(self, name: str) -> str:
        """The name as a label."""
        return name if name in self._scorers else "other"

    def text(self) -> bytes:
        """Everything, as Prometheus reads it."""
        from prometheus_client import generate_latest

        return generate_latest(self.registry)

    def collect(self) -> Iterable[Metric]:
        """For the registry."""
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        with self._lock:
            requests = CounterMetricFamily("rewarden_requests", "Requests answered.", labels=["route", "status"])
            for (route, status), number in self._requests.items():
                requests.add_metric([route, status], number)
            latency = HistogramMetricFamily(
                "rewarden_request_seconds", "From the head of a request to the end of its answer.", labels=["route"]
            )
            for route, histogram in self._latency.items():
                latency.add_metric([route], histogram.buckets(), histogram.total)
            verdicts = CounterMetricFamily("rewarden_verdicts", "Verdicts given.", labels=["scorer", "outcome"])
            for (scorer, outcome), number in self._verdicts.items():
                verdicts.add_metric([scorer, outcome], number)
            seconds = HistogramMetricFamily(
                "rewarden_verdict_seconds", "Work of the scorers on a rollout.", labels=["scorer", "outcome"]
            )
            for (scorer, outcome), histogram in self._seconds.items():
                seconds.add_metric([scorer, outcome], histogram.buckets(), histogram.total)
            rewards = HistogramMetricFamily("rewarden_reward", "Rewards given.", labels=["scorer"])
            for scorer, histogram in self._rewards.items():
                rewards.add_metric([scorer], histogram.buckets(), histogram.total)
            reasons = CounterMetricFamily("rewarden_ungraded", "Rollouts that were not graded.", labels=["reason"])
            for reason, number in self._reasons.items():
                reasons.add_metric([reason], number)
            cached = CounterMetricFamily("rewarden_cache_hits", "Verdicts that were known.", labels=["scorer"])
            for scorer, number in self._cached.items():
                cached.add_metric([scorer], number)
            groups = CounterMetricFamily("rewarden_groups", "Groups seen, once in each request.", value=self._groups)
            touched = CounterMetricFamily(
                "rewarden_groups_touched", "Groups seen with a member that was not graded.", value=self._touched
            )
        yield from (requests, latency, verdicts, seconds, rewards, reasons, cached, groups, touched)
        yield from self._of_admission()
        yield from self._of_pools()

    def _of_admission(self) -> Iterable[Metric]:
        from prometheus_client.core import GaugeMetricFamily

        if self._admission is None:
            return
        for name, what, number in (
            ("requests", "Requests", self._admission.requests),
            ("rollouts", "Rollouts", self._admission.rollouts),
            ("bytes", "Bytes of bodies", self._admission.bytes),
        ):
            yield GaugeMetricFamily(f"rewarden_{name}_in_flight", f"{what} under way.", value=number)

    def _of_pools(self) -> Iterable[Metric]:
        from prometheus_client.core import CounterMetricFamily

        stats = self._pools()
        yield CounterMetricFamily("rewarden_pool_items", "Items done by workers.", value=sum(s.items for s in stats))
        restarts = CounterMetricFamily("rewarden_pool_restarts", "Workers started in place of another.")
        restarts.add_metric([], sum(s.respawned for s in stats))
        yield restarts
        kills = CounterMetricFamily("rewarden_pool_kills", "Workers that were ended, by cause.", labels=["cause"])
        causes: Counter[str] = Counter()
        for one in stats:
            causes.update({str(cause): number for cause, number in one.kills.items()})
            causes.update({"crash": one.crashes, "outside": one.outside_kills})
        for cause, number in causes.items():
            kills.add_metric([cause], number)
        yield kills
