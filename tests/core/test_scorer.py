"""Scorers: classes and decorated functions, checked before use, and by the conformance suite."""

from __future__ import annotations

import linecache
import time
from collections.abc import Sequence
from typing import Any

import own_scorers
import pytest

import rewarden
from rewarden import Engine, RecipeError, Rollout, Scorer, ScorerError, Unit, Verdict, testing
from rewarden.core import registry
from rewarden.core.scorer import check_protocol
from rewarden.testing import ConformanceError, check_scorer


@pytest.fixture(autouse=True)
def clean_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten after it."""
    monkeypatch.setattr(registry, "_registered", {})


def test_a_function_is_a_scorer() -> None:
    """The decorator registers a function; bool, number, verdict and None become verdicts; it can still be called."""
    answers = {"yes": True, "no": False, "half": 0.5, "pass": None, "own": rewarden.correct(explanation="own")}

    @rewarden.scorer("mine", reads=("completion",))
    def mine(rollout: Any) -> Any:
        """Mine."""
        return answers[rollout.completion]

    with Engine("mine") as engine:
        verdicts = engine.score([Rollout(completion=text) for text in (*answers, "unknown")])
    assert [v.outcome.value for v in verdicts] == ["correct", "incorrect", "scored", "ungraded", "correct", "ungraded"]
    assert mine(Rollout(completion="yes")) is True
    assert mine.__doc__ == "Mine."


def test_an_async_function_is_an_io_scorer() -> None:
    """Async functions run on the event loop without being told so."""

    @rewarden.scorer
    async def judge(rollout: Any) -> float:
        return float(len(rollout.completion))

    with Engine("judge") as engine:
        assert engine.score([Rollout(completion="abc")])[0].reward == 3


def test_builtin_names_are_not_taken_over() -> None:
    """Nobody's package changes what `math` means."""
    with pytest.raises(RecipeError, match="built-in"):

        @rewarden.scorer("math")
        def mine(rollout: Any) -> bool:
            return bool(rollout)


def _made(**attributes: Any) -> Scorer:
    made: Scorer = type("Made", (own_scorers.Length,), attributes)()
    return made


@pytest.mark.parametrize(
    "attributes",
    [
        {"name": ""},
        {"name": "two words"},
        {"version": ""},
        {"version": 3},
        {"reads": "completion"},
        {"reads": ("colour",)},
        {"unit": "couple"},
        {"resource": "fpga"},
        {"concurrency": 0},
        {"concurrency": "many"},
        {"config": lambda _: {"x": object()}},
    ],
)
def test_attributes_that_make_no_sense_are_refused(attributes: dict[str, Any]) -> None:
    """A broken scorer is refused when it is made, by name, not at the thousandth row."""
    with pytest.raises(ScorerError, match="scorer"):
        check_protocol(_made(**attributes))


@pytest.mark.parametrize(
    "change", [{"name": "b"}, {"version": "2"}, {"reads": ("completion", "prompt")}, {"libraries": ("pytest",)}]
)
def test_the_stamp_tells_scorers_apart(change: dict[str, Any]) -> None:
    """Whatever can change a verdict changes the digest."""
    assert _made().stamp.digest == _made().stamp.digest
    assert _made(**change).stamp.digest != _made().stamp.digest


TYPICAL = [Rollout(id=str(i), completion="x" * i, group="g") for i in range(4)]


@pytest.mark.parametrize("name", ["Worker", "Rank", "PooledRank"])
def test_honest_scorers_conform(name: str) -> None:
    """The suite passes scorers that keep the contract."""

    class Tolerant(own_scorers.Length):
        def score(self, rollouts: Sequence[Any], prior: Sequence[Any]) -> list[Verdict]:
            return [rewarden.scored(float(len(rollout.completion))) for rollout in rollouts]

    check_scorer(Tolerant(), TYPICAL)
    check_scorer(getattr(own_scorers, name)(), TYPICAL)


class _Counting(own_scorers.Length):
    def score(self, rollouts: Sequence[Any], prior: Sequence[Any]) -> list[Verdict]:
        self.factor += 1
        return super().score(rollouts, prior)


class _Company(own_scorers.Length):
    def score(self, rollouts: Sequence[Any], prior: Sequence[Any]) -> list[Verdict]:
        return [rewarden.scored(float(len(rollouts))) for _ in rollouts]


class _Fragile(own_scorers.Length):
    def score(self, rollouts: Sequence[Any], prior: Sequence[Any]) -> list[Verdict]:
        return [
            rewarden.scored(1 / len(rollout.completion or "x") if rollout.completion else 1 / 0) for rollout in rollouts
        ]


class _Generous(Scorer):
    name = "generous"

    def score(self, rollouts: Sequence[Any], prior: Sequence[Any]) -> list[Verdict]:
        return [rewarden.incorrect() if not rollout.reference else rewarden.correct() for rollout in rollouts]


class _Nosy(own_scorers.Length):
    def score(self, rollouts: Sequence[Any], prior: Sequence[Any]) -> list[Verdict]:
        return [rewarden.scored(float(len(rollout.metadata or ""))) for rollout in rollouts]


class _Hasty(own_scorers.Worker):
    def quick(self, rollout: Any) -> Verdict | None:
        return rewarden.scored(-1.0)


class _Short(own_scorers.Length):
    unit = Unit.GROUP

    def score(self, rollouts: Sequence[Any], prior: Sequence[Any]) -> list[Verdict]:
        return super().score(rollouts, prior)[1:]


@pytest.mark.parametrize(
    ("scorer", "law"),
    [
        (_Counting, "twice"),
        (_Company, "alone"),
        (_Fragile, "raised ZeroDivisionError"),
        (_Generous, "must be ungraded"),
        (_Nosy, "reads"),
        (_Hasty, "disagree"),
        (_Short, "one Verdict for each"),
    ],
)
def test_the_suite_finds_what_is_broken(scorer: type[Scorer], law: str) -> None:
    """Each law of the suite fails the scorer that breaks it, and names it."""
    with pytest.raises(ConformanceError, match=law):
        check_scorer(scorer(), [Rollout(id=str(i), completion="x" * (i + 1), reference="r") for i in range(3)])


def test_misspelt_attributes_are_refused() -> None:
    """The decorator takes the attributes of a scorer and no others."""
    with pytest.raises(ScorerError, match="read"):

        @rewarden.scorer("mine", read=("completion",))
        def mine(rollout: Any) -> bool:
            return bool(rollout)


def test_missing_packages_are_named_when_a_scorer_is_made() -> None:
    """A scorer whose libraries are not installed is refused at once, with the command that helps."""

    @rewarden.scorer("needy", libraries=("no-such-distribution",))
    def needy(rollout: Any) -> bool:
        return bool(rollout)

    with pytest.raises(RecipeError, match="pip install 'no-such-distribution'"):
        registry.create("needy")


class _Endless(own_scorers.Length):
    def score(self, rollouts: Sequence[Any], prior: Sequence[Any]) -> list[Verdict]:
        while True:
            time.sleep(0.05)


def test_the_suite_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scorer that never ends is a finding, not a hang."""
    monkeypatch.setattr(testing, "DEADLINE_S", 0.2)
    with pytest.raises(ConformanceError, match="not ended"):
        check_scorer(_Endless(), TYPICAL)


def test_a_function_that_is_written_anew_is_another_scorer() -> None:
    """Running a notebook cell again with another body does not find the old body's verdicts."""
    stamps = set()
    for body in ("return True", "return False"):
        space: dict[str, Any] = {}
        source = f"def graded(rollout):\n    {body}\n"
        name = f"<cell {body}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        exec(compile(source, name, "exec"), space)
        stamps.add(rewarden.scorer("graded")(space["graded"]).stamp.digest)
    assert len(stamps) == 2
