"""The rollouts of one request on their way to verdicts.

    rollouts -> recipe (the request's, or the rollout's own `scorer`) -> kind of work -> backend -> verdicts

All of it happens in one thread. Whoever waits may stop waiting at any moment and take what there is.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from ..core.engines import Engines
from ..core.errors import PinError, RewardenError, UnknownScorerError, describe
from ..core.reasons import Reason
from ..core.rollout import Rollout
from ..core.verdict import Graded, Trace, Verdict, ungraded
from ..core.wire import Item, bad_rollout
from .backends import Backends

log = logging.getLogger(__name__)


class Grading:
    """Grades `items` under `recipe` until `deadline` (of `time.monotonic`). Makes one verdict for each, in order."""

    def __init__(
        self,
        engines: Engines,
        backends: Backends,
        backend_of: Callable[[str], str | None],
        recipe: str,
        items: Sequence[Item],
        deadline: float,
    ) -> None:
        self.recipe = recipe
        self.items = items
        self.deadline = deadline
        self._engines = engines
        self._backends = backends
        self._backend_of = backend_of
        self._graded: list[Graded | None] = [None] * len(items)
        self._over = False

    def run(self) -> list[Graded]:
        """Grade. What is still missing at the end of a stop is `ungraded: deadline`."""
        rows, rollouts = [], []
        for row, item in enumerate(self.items):
            if isinstance(item, str):
                self._put(row, bad_rollout(item))
            else:
                rows.append(row)
                rollouts.append(item)
        waits: list[tuple[str, list[int], Future[list[Verdict]]]] = []
        here: list[tuple[str, list[int]]] = []
        for recipe, some in self._engines.catalog.split_by_scorer(self.recipe, rollouts).items():
            mine = [rows[i] for i in some]
            try:
                kinds = self._engines.catalog.split_by_kind(recipe, [rollouts[i] for i in some])
            except (RewardenError, ImportError) as error:
                self._fail(mine, Reason.NO_ROUTE, str(error))
                continue
            for kind, places in kinds.items():
                target = self._backend_of(kind) if kind is not None else None
                chosen = [mine[i] for i in places]
                if target is None:
                    here.append((recipe, chosen))
                else:
                    left = max(0.001, self.deadline - time.monotonic())
                    # A little less, so that what a backend has when its time is over still arrives in ours.
                    allowed = left - min(0.25, left / 10)
                    future = self._backends.start(target, recipe, self._rollouts(chosen), allowed)
                    waits.append((target, chosen, future))
        for recipe, chosen in here:
            self._grade_here(recipe, chosen)
        for target, chosen, future in waits:
            self._take(target, chosen, future)
        return self.stop()

    def stop(self) -> list[Graded]:
        """What there is now; nothing is added later."""
        self._over = True
        missing = [row for row, graded in enumerate(self._graded) if graded is None]
        for row in missing:
            why = "the time that the request had was over before this was graded; give it a longer `timeout_s`"
            self._graded[row] = Graded(ungraded(Reason.DEADLINE, why, id=self._id(row)), Trace())
        return [graded for graded in self._graded if graded is not None]

    def _grade_here(self, recipe: str, rows: Sequence[int]) -> None:
        try:
            stream = self._engines.get(recipe).stream(self._rollouts(rows))
            for row, graded in zip(rows, stream, strict=True):
                if self._over:
                    return
                self._graded[row] = graded
        except RewardenError as error:
            self._fail(rows, Reason.NO_ROUTE, str(error))
        except Exception as error:  # an engine that breaks is a backend that breaks
            log.exception("the engine of %s failed", recipe)
            self._fail(rows, Reason.BACKEND_UNAVAILABLE, f"the engine failed: {describe(error)}")

    def _take(self, target: str, rows: Sequence[int], future: Future[list[Verdict]]) -> None:
        """Wait for a backend. Its failure is that of its own rows."""
        try:
            verdicts = future.result(max(0.0, self.deadline - time.monotonic()))
            if len(verdicts) != len(rows):
                raise ValueError(f"{len(verdicts)} verdicts came for {len(rows)} rollouts")
        except TimeoutError:
            future.cancel()
            self._fail(rows, Reason.DEADLINE, f"{target} did not answer in time")
        except (UnknownScorerError, PinError) as error:
            self._fail(rows, Reason.NO_ROUTE, f"{target}: {error}")
        except Exception as error:  # noqa: BLE001 - whatever a transport raises, nothing was graded
            self._fail(rows, Reason.BACKEND_UNAVAILABLE, f"{target}: {describe(error)}")
        else:
            for row, verdict in zip(rows, verdicts, strict=True):
                self._put(row, verdict)

    def _rollouts(self, rows: Sequence[int]) -> list[Rollout]:
        return [item for row in rows if isinstance(item := self.items[row], Rollout)]

    def _id(self, row: int) -> str:
        item = self.items[row]
        return item.id if isinstance(item, Rollout) else ""

    def _fail(self, rows: Sequence[int], reason: Reason, why: str) -> None:
        for row in rows:
            if self._graded[row] is None:
                self._put(row, ungraded(reason, why[:500], id=self._id(row)))

    def _put(self, row: int, verdict: Verdict) -> None:
        if not self._over:
            self._graded[row] = Graded(verdict, Trace())
