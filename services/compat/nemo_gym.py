"""NeMo Gym's resources server: `POST /verify`, and `/seed_session` and `/close_session`, which are called around it.

Its caller (nemo_gym, 0.7) sends the task's fields, the request to the model and the model's response, and takes all of
them back with `reward`. A rollout that was not graded has a place in this shape: `mask_sample` keeps it out of scores
and training, `failure_kind` and `failure_reason` say why, so the answer is 200 with a reward of 0 that nobody uses.
What another try may cure has `_ng_failure_class` too, which sends the row to the failures file for the next attempt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json

from ...core.reasons import RETRYABLE_REASONS, Reason
from ...core.rollout import Message, Rollout
from ...core.verdict import Outcome, Verdict
from ...core.wire import Item
from .. import body
from .call import ERRORS, RecipeName, answer, described, json_response, parse, reference_of
from .chat_text import without_end_tokens

REFERENCE_FIELDS = ("reference", "expected_answer", "ground_truth", "answer")
"""Where tasks keep their reference, most telling first."""

_KINDS = {
    Reason.BACKEND_UNAVAILABLE: "provider_unavailable",
    Reason.CANCELLED: "cancelled",
    Reason.INCOMPLETE_GROUP: "cohort_incomplete",
    Reason.JUDGE_FAILED: "judge_failed",
    Reason.SCORER_ERROR: "verifier_error",
}
"""Reasons for which NeMo Gym has a name. The others are `rewarden:REASON`."""

Content = str | list[dict[str, Any]] | None


class _Open(BaseModel):
    """The task's own fields come along, and go back."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, use_attribute_docstrings=True)


class NeMoGymParams(_Open):
    """The request to the model, as the Responses API has it."""

    input: str | list[dict[str, Any]]


class NeMoGymResponse(_Open):
    """The model's response, as the Responses API has it."""

    output: list[dict[str, Any]]
    incomplete_details: dict[str, Any] | None = None


EXAMPLE = {
    "responses_create_params": {"input": [{"role": "user", "content": "1+1?"}]},
    "response": {
        "id": "resp_1",
        "object": "response",
        "output": [
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "It is \\boxed{2}."}],
            }
        ],
    },
    "expected_answer": "2",
}


class NeMoGymRequest(_Open):
    """What NeMo Gym sends, with the task's own fields beside these."""

    responses_create_params: NeMoGymParams
    response: NeMoGymResponse


class NeMoGymReply(_Open):
    """The request, with the verdict."""

    responses_create_params: NeMoGymParams
    response: NeMoGymResponse
    reward: float
    """0 where `mask_sample` says that it means nothing."""
    mask_sample: bool
    """True where the rollout could not be graded."""
    failure_kind: str | None = Field(examples=["rewarden:bad_reference"])
    failure_reason: str | None
    rewarden_graded: float
    """1 or 0, as the next two: NeMo Gym reports the means."""
    rewarden_correct: float
    rewarden_no_answer: float
    rewarden_outcome: str
    rewarden_reason: str | None


class NeMoGymSessionReply(_Open):
    """There is no state to begin or end: the caller's session, if it names one."""

    resources_session_id: str | None = None


def to_item(asked: NeMoGymRequest, field: str | None = None) -> Item:
    """The rollout of the task. `field`: where its reference is, with dots between the names."""
    # Never from the response, which the model wrote.
    fields = (asked.model_extra or {}) | {"responses_create_params": asked.responses_create_params.model_extra or {}}
    reference = _first_reference(fields) if field is None else reference_of(_lookup(fields, field))
    details = asked.response.incomplete_details or {}
    cut = details.get("reason") == "max_output_tokens"
    return Rollout(
        prompt=_prompt(asked.responses_create_params.input),
        completion=completion_of(asked.response.output),
        reference=reference,
        finish_reason="length" if cut else None,
    )


def completion_of(output: Sequence[Mapping[str, Any]]) -> list[Message]:
    """The items of a response as chat messages. Messages that follow each other directly are one."""
    messages: list[Message] = []
    texts: list[str] = []
    for item in output:
        kind = item.get("type", "message")
        if kind == "message" and item.get("role", "assistant") == "assistant":
            texts.append(_text(item.get("content")))
            continue
        _say(texts, messages)
        match kind:
            case "reasoning":
                thought = _text(item.get("summary")) + _text(item.get("content"))
                messages.append(Message(role="assistant", reasoning_content=thought or None))
            case "function_call":
                call = {"name": item.get("name"), "arguments": item.get("arguments")}
                messages.append(Message(role="assistant", tool_calls=[{"type": "function", "function": call}]))
            case "function_call_output":
                messages.append(Message(role="tool", content=_text(item.get("output"))))
    _say(texts, messages)
    return messages


def _say(texts: list[str], messages: list[Message]) -> None:
    """What was said up to here becomes a message."""
    if texts:
        messages.append(Message(role="assistant", content=without_end_tokens("".join(texts))))
        texts.clear()


def _text(content: Any) -> str:
    """The text of a content, whatever it is made of."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (part.get("text") for part in content if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))


def _prompt(given: str | list[dict[str, Any]]) -> str | list[Message] | None:
    if isinstance(given, str):
        return given or None
    messages = [
        Message(role=item["role"], content=_text(item.get("content")))
        for item in given
        if isinstance(item.get("role"), str)
    ]
    return messages or None


def _first_reference(fields: Mapping[str, Any]) -> Any:
    for name in REFERENCE_FIELDS:
        reference = reference_of(fields.get(name))
        if reference is not None:
            return reference
    return None


def _lookup(fields: Any, path: str) -> Any:
    for name in path.split("."):
        fields = fields.get(name) if isinstance(fields, dict) else None
    return fields


def to_reply(sent: Mapping[str, Any], verdict: Verdict) -> dict[str, Any]:
    """What was sent, with the verdict. An older verdict in it, as a second verification sends it, is replaced."""
    reason = verdict.reason.value if verdict.reason is not None else None
    out = {key: value for key, value in sent.items() if key not in ("_ng_failure_class", "_ng_failure_judge_error")}
    out |= {
        "reward": verdict.reward if verdict.reward is not None else 0.0,
        "mask_sample": not verdict.graded,
        "failure_kind": None,
        "failure_reason": None,
        "rewarden_graded": float(verdict.graded),
        "rewarden_correct": float(verdict.outcome is Outcome.CORRECT),
        "rewarden_no_answer": float(verdict.outcome is Outcome.NO_ANSWER),
        "rewarden_outcome": verdict.outcome.value,
        "rewarden_reason": reason,
    }
    config = sent.get("instance_config")
    if verdict.reason is not None and not verdict.graded:
        kind = _KINDS.get(verdict.reason, f"rewarden:{reason}")
        out |= {"failure_kind": kind, "failure_reason": f"{reason}: {verdict.explanation}"[:2000]}
        # Where NeMo RL looked for it before there was a field for it.
        out["instance_config"] = {**(config if isinstance(config, dict) else {}), "mask_sample": True}
        if verdict.reason in RETRYABLE_REASONS:
            out["_ng_failure_class"] = kind
    elif isinstance(config, dict) and sent.get("rewarden_graded") == 0:
        out["instance_config"] = {**config, "mask_sample": False}
    return out


router = APIRouter(tags=["drop-in"])

ReferenceField = Annotated[
    str | None,
    Query(
        alias="reference",
        min_length=1,
        max_length=200,
        description="The task's field that holds the reference, with dots for fields in it. "
        f"Without it the first of these: {', '.join(REFERENCE_FIELDS)}.",
        examples=["verifier_metadata.expected_answer"],
    ),
]


@router.post(
    "/verify",
    summary="NeMo Gym: verify one response",
    response_model=NeMoGymReply,
    responses=ERRORS,
    openapi_extra=described(NeMoGymRequest, sample=EXAMPLE),
)
async def verify(request: Request, recipe: RecipeName = "auto", reference: ReferenceField = None) -> Response:
    """The request with its reward. A rollout that could not be graded has `mask_sample: true` and says why."""
    return await answer(
        request,
        NeMoGymRequest,
        lambda asked: [to_item(asked, reference)],
        lambda asked, _, verdicts: to_reply(asked.model_dump(exclude_unset=True), verdicts[0]),
        recipe,
    )


class NeMoGymSession(_Open):
    """The session that NeMo Gym begins or ends, or the task as an agent sends it."""

    resources_session_id: str | None = None


def to_session(asked: NeMoGymSession) -> dict[str, Any]:
    """There is no state, so that a session is only confirmed."""
    return {} if asked.resources_session_id is None else {"resources_session_id": asked.resources_session_id}


async def _confirm(request: Request) -> Response:
    sent = await body.read(request)
    return json_response(await asyncio.to_thread(lambda: to_json(to_session(parse(sent.unpack(), NeMoGymSession)))))


@router.post(
    "/seed_session",
    summary="NeMo Gym: begin a session",
    response_model=NeMoGymSessionReply,
    responses=ERRORS,
    openapi_extra=described(NeMoGymSession, session={"resources_session_id": "s-1"}),
)
async def seed_session(request: Request) -> Response:
    """NeMo Gym's agents call this before a rollout. There is no state to prepare."""
    return await _confirm(request)


@router.post(
    "/close_session",
    summary="NeMo Gym: end a session",
    response_model=NeMoGymSessionReply,
    responses=ERRORS,
    openapi_extra=described(NeMoGymSession, session={"resources_session_id": "s-1"}),
)
async def close_session(request: Request) -> Response:
    """NeMo Gym's environments call this after a rollout. There is no state to give back."""
    return await _confirm(request)
