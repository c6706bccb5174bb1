"""What a scorer is: a name, a version, what it reads, and a `score` method.

A scorer is a plain class (or a decorated function) in anybody's package. It never sees clocks, caches, queues or
other rollouts than those it is given: the engine does all of that for it.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, overload

import orjson

from .budget import Budget
from .errors import ScorerError
from .extras import installed
from .reasons import Reason
from .rollout import FIELDS, View
from .verdict import Outcome, ScorerStamp, Verdict, scored, ungraded

if TYPE_CHECKING:
    from .pool import Report

Prior = Mapping[str, Verdict]
"""Earlier verdicts on the same rollout, by the name of the part of the recipe that gave them."""


class Unit(StrEnum):
    """How many rollouts a verdict depends on."""

    ROLLOUT = "rollout"
    """Each rollout alone. The engine may split and merge batches as it likes."""
    GROUP = "group"
    """One whole group in each call, in the order in which it came."""
    BATCH = "batch"
    """All rollouts of the call at once. Never cached."""


class Resource(StrEnum):
    """Where the work is done."""

    INLINE = "inline"
    """Microseconds of trusted work in the caller's thread. Must be bounded for any input."""
    CPU = "cpu"
    """A worker of the killable pool, under `budget`."""
    IO = "io"
    """`score` is async: judges and remote services. Concurrency and deadline are the engine's."""
    GPU = "gpu"
    """A resident model: batches, one call at a time, never killed for an item."""
    SANDBOX = "sandbox"
    """The scorer owns its processes and their limits; it is called from a thread."""


class Scorer:
    """Base class of scorers. Set the class attributes, write `score`, and override the rest where needed.

    Configuration is the keyword arguments of `__init__`; return them from `config` so that two configurations never
    share a cache entry.
    """

    name: str = ""
    version: str = "1"
    """Raise it whenever a verdict may change: it is part of the cache key and of what a client can pin."""
    kind: str = ""
    """The kind of work, such as `math` or `judge`: services, queues and images are made for one kind each. The
    scorer's own name when empty."""
    unit: Unit = Unit.ROLLOUT
    resource: Resource = Resource.INLINE
    reads: tuple[str, ...] = ("completion", "reference")
    """The fields of a rollout that decide the verdict. Others cannot be read."""
    libraries: tuple[str, ...] = ()
    """Distributions that it needs, and whose version may change a verdict."""
    preload: tuple[str, ...] = ()
    """Modules that a worker imports once, before it forks (CPU only)."""
    concurrency: int = 64
    """Calls under way at once (IO and SANDBOX only)."""

    def config(self) -> Mapping[str, Any]:
        """The configuration as JSON values."""
        return {}

    def budget(self, rollout: Any) -> Budget:
        """CPU and wall seconds for this rollout, from the start of its work. Those of a group are added up."""
        return Budget()

    def quick(self, rollout: Any) -> Verdict | None:
        """A verdict that takes microseconds, or None when the full `score` is needed (CPU scorers of unit rollout)."""
        return None

    def score(
        self, rollouts: Sequence[Any], prior: Sequence[Prior]
    ) -> Sequence[Verdict] | Awaitable[Sequence[Verdict]]:
        """One verdict for each of `rollouts`, in their order. `prior` has an entry for each; empty without a chain."""
        raise NotImplementedError

    def on_fault(self, rollout: Any, report: Report) -> Verdict:
        """The verdict when the pool stopped the work. Override it where the completion is to blame.

        Nothing is known here about who is to blame, so nothing is graded.
        """
        return fault_verdict(report)

    def salt(self, rollout: Any) -> str:
        """Added to the cache key: state outside the rollout that decides, such as the digest of a database."""
        return ""

    def warm(self) -> None:
        """Pay one-time costs; called once in each worker before its first item."""

    def _identity(self) -> str:
        """Whose code this is: two classes that share a name and a version must not share a cache entry."""
        return f"{type(self).__module__}.{type(self).__qualname__}"

    @cached_property
    def stamp(self) -> ScorerStamp:
        """Name, version and the digest of all that decides a verdict besides the rollout."""
        parts = [self._identity(), self.name, self.version, self.unit, list(self.reads), dict(self.config())]
        parts += [f"{library}={installed(library)}" for library in self.libraries]
        digest = hashlib.blake2b(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS), digest_size=8).hexdigest()
        return ScorerStamp(self.name, self.version, digest)


def fault_verdict(report: Report) -> Verdict:
    """The verdict for a fault of the pool when nobody claims the blame."""
    from .pool import Fault

    reasons = {
        Fault.CPU: (Reason.OVER_BUDGET, "used up its CPU budget"),
        Fault.DEADLINE: (Reason.DEADLINE, "passed its wall-clock deadline"),
        Fault.MEMORY: (Reason.OVER_BUDGET, "passed the memory limit of its worker"),
        Fault.CRASH: (Reason.WORKER_LOST, "killed its worker twice while running alone"),
        Fault.KILLED: (Reason.WORKER_LOST, "lost its worker to kills from outside, again and again"),
        Fault.CANCELLED: (Reason.CANCELLED, "was withdrawn by the caller"),
        Fault.ERROR: (Reason.SCORER_ERROR, "made the scorer raise"),
    }
    assert report.fault is not None
    reason, what = reasons[report.fault]
    detail = f": {report.detail}" if report.detail else ""
    return ungraded(reason, f"{what}{detail}")


def check_protocol(scorer: Scorer) -> None:
    """Raise ScorerError, in words, for a scorer whose attributes do not make sense."""
    what = f"scorer {scorer.name or type(scorer).__name__!r}"
    if not scorer.name or not scorer.name.replace("_", "").replace("-", "").isalnum():
        raise ScorerError(f"{what} needs a `name` of letters, digits, '-' and '_'")
    if scorer.kind and not scorer.kind.replace("_", "").replace("-", "").isalnum():
        raise ScorerError(f"{what}: a `kind` is made of letters, digits, '-' and '_', not {scorer.kind!r}")
    if not isinstance(scorer.version, str) or not scorer.version:
        raise ScorerError(f"{what} needs a `version`, a non-empty string")
    unknown = set(scorer.reads) - FIELDS
    if not isinstance(scorer.reads, tuple) or unknown:
        raise ScorerError(
            f"{what} reads {sorted(unknown)}; `reads` is a tuple of fields of a rollout: {sorted(FIELDS)}"
        )
    try:
        Unit(scorer.unit)
        Resource(scorer.resource)
    except ValueError as error:
        raise ScorerError(f"{what}: {error}") from None
    if isinstance(scorer.concurrency, bool) or not isinstance(scorer.concurrency, int) or scorer.concurrency < 1:
        raise ScorerError(f"{what}: concurrency must be an integer of at least 1, not {scorer.concurrency!r}")
    try:
        orjson.dumps(dict(scorer.config()))
    except TypeError as error:
        raise ScorerError(f"{what}: config() must give JSON values: {error}") from None


Function = Callable[[Any], Any]
AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


_ATTRIBUTES = frozenset(name for name in Scorer.__annotations__ if not name.startswith("_"))


class FunctionScorer(Scorer):
    """A function of one rollout as a scorer. Made by the decorator `scorer`."""

    function: Function
    """What was decorated; call the scorer itself, it does the same."""

    def __init__(self, function: Function, **attributes: Any) -> None:
        unknown = sorted(name for name in attributes if name not in _ATTRIBUTES)
        if unknown:
            raise ScorerError(f"a scorer has no attributes {unknown}; there are {sorted(_ATTRIBUTES)}")
        self.function = function
        self.__doc__ = function.__doc__
        self.__dict__.update(attributes)
        check_protocol(self)

    def _identity(self) -> str:
        try:
            source = inspect.getsource(self.function)
        except (OSError, TypeError):  # typed at a prompt
            source = ""
        return f"{self.function.__module__}.{self.function.__qualname__}\n{source}"

    def __call__(self, rollout: Any) -> Any:
        return self.function(rollout)

    def __reduce__(self) -> tuple[Any, ...]:
        return _find, (self.function.__module__, self.function.__qualname__)

    def score(
        self, rollouts: Sequence[View], prior: Sequence[Prior]
    ) -> Sequence[Verdict] | Awaitable[Sequence[Verdict]]:
        if self.resource is Resource.IO:
            return self._score_async(rollouts)
        return [as_verdict(self.function(rollout)) for rollout in rollouts]

    async def _score_async(self, rollouts: Sequence[View]) -> Sequence[Verdict]:
        return [as_verdict(await self.function(rollout)) for rollout in rollouts]


def as_verdict(value: Any) -> Verdict:
    """What a function returned, as a verdict: a verdict, a bool (right or wrong), a number, or None (declined)."""
    if isinstance(value, Verdict):
        return value
    if isinstance(value, bool):
        return Verdict(Outcome.CORRECT if value else Outcome.INCORRECT, float(value))
    if isinstance(value, (int, float)):
        return scored(float(value))
    if value is None:
        return ungraded(Reason.SCORER_ERROR, "the scorer returned None: it declines to grade this rollout")
    raise ScorerError(f"a scorer returns a Verdict, a bool, a number or None, not {type(value).__name__}")


def _find(module: str, qualname: str) -> Any:
    found: Any = import_module(module)
    for name in qualname.split("."):
        found = getattr(found, name)
    return found


@overload
def scorer(name: AnyFunction) -> FunctionScorer: ...
@overload
def scorer(name: str | None = None, **attributes: Any) -> Callable[[Function], FunctionScorer]: ...
def scorer(name: Any = None, **attributes: Any) -> Any:
    """Make a scorer of a function of one rollout, and register it under its name.

    ```python
    @rewarden.scorer("short", reads=("completion",))
    def short(rollout):
        return len(rollout.completion) < 1000
    ```

    Attributes are those of `Scorer`: version, reads, resource (an async function is IO), libraries, concurrency.
    """
    from .registry import register

    def decorate(function: Function, name: str | None = name if isinstance(name, str) else None) -> FunctionScorer:
        if inspect.iscoroutinefunction(function):
            attributes.setdefault("resource", Resource.IO)
        made = FunctionScorer(function, name=name or function.__name__, **attributes)
        register(made)
        return made

    return decorate(name, None) if callable(name) else decorate
