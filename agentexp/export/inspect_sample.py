"""One episode as a sample of Inspect AI: its messages, its transcript of calls and steps, its scores, usage and error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from datetime import datetime, timedelta
from types import ModuleType
from typing import Any, NamedTuple
from uuid import uuid4

from agentexp.export.frames import reply_of
from agentexp.export.sources import key_of, result_of
from agentexp.records import Record

STOP_REASONS = {"stop": "stop", "length": "max_tokens", "content_filter": "content_filter"}
LIMITS = {"token_limit": "token", "context_limit": "context", "step_limit": "custom", "invalid_limit": "custom"}


class Api(NamedTuple):
    """The modules of Inspect AI that hold what a log is made of."""

    log: ModuleType
    model: ModuleType
    event: ModuleType
    scorer: ModuleType


class SampleMaker:
    """Makes samples of one run.

    Args:
        api: Inspect's modules.
        began: when the run began; records do not say when an episode did, so every transcript starts there.
        own_models: roles that have a model of their own. Their usage stands under the role's name, all other usage under the
            acting model's label.
    """

    def __init__(self, api: Api, began: datetime, own_models: Set[str] = frozenset()) -> None:
        self.api, self.began, self.own_models = api, began, own_models

    def sample(self, record: Record, sample_id: str) -> Any:
        """The `EvalSample` of a record whose texts can be written in UTF-8.

        `messages` holds the conversations of the episode one after the other, each message with the name of its conversation
        in `metadata["chat"]`; `events` holds every call with its whole prompt and every step of the world, in spans by phase.
        """
        task, log = record["task"], self.api.log
        chats = {name: [self._message(name, m) for m in messages] for name, messages in record.get("chats", {}).items()}
        outputs = [self._output(record, call) for call in record.get("calls", ())]
        seconds = float(record.get("seconds") or 0.0)
        failed = record["status"] != "ok"
        return log.EvalSample(
            id=sample_id,
            epoch=int(task.get("repeat", 0)) + 1,
            input=record.get("goal") or task["id"],
            target="",
            messages=[message for messages in chats.values() for message in messages],
            output=outputs[-1] if outputs else self.api.model.ModelOutput(),
            scores=self._scores(record),
            metadata=_metadata(record),
            events=list(self._events(record, chats, outputs)),
            model_usage=self.usage_by_model(record),
            role_usage={role: self.usage(usage) for role, usage in record.get("usage_by_role", {}).items()},
            started_at=self.began.isoformat(),
            completed_at=(self.began + timedelta(seconds=seconds)).isoformat(),
            total_time=seconds,
            working_time=seconds,
            error=self.error(record) if failed else None,
            limit=None if failed else self._limit(record),
        )

    def usage(self, usage: Mapping[str, Any]) -> Any:
        """`ModelUsage` of usage as records hold it; Inspect counts cached prompt tokens apart, records count them in."""
        prompt, reply, cached = (int(usage.get(f"{name}_tokens") or 0) for name in ("prompt", "completion", "cached"))
        return self.api.model.ModelUsage(
            input_tokens=prompt - cached,
            output_tokens=reply,
            total_tokens=prompt + reply,
            input_tokens_cache_read=cached or None,
            total_cost=usage.get("cost"),
        )

    def usage_by_model(self, record: Record) -> dict[str, Any]:
        """Usage under the acting model's label, and that of roles with their own model under the role's name."""
        found: dict[str, Any] = {}
        for role, usage in record.get("usage_by_role", {}).items():
            model = role if role in self.own_models else record["model"]
            found[model] = found[model] + self.usage(usage) if model in found else self.usage(usage)
        return found

    def error(self, record: Record) -> Any:
        """`EvalError` of a harness error."""
        text = record.get("error") or record.get("end_reason") or "harness error"
        last = text.strip().splitlines()[-1] if text.startswith("Traceback") else text.strip().splitlines()[0]
        return self.api.log.EvalError(message=f"{record.get('end_reason')}: {last}", traceback=text, traceback_ansi=text)

    def _message(self, chat: str, message: Mapping[str, str]) -> Any:
        model = self.api.model
        kinds = {"system": model.ChatMessageSystem, "user": model.ChatMessageUser, "assistant": model.ChatMessageAssistant}
        return kinds[message["role"]](content=message["content"], metadata={"chat": chat})

    def _output(self, record: Record, call: Mapping[str, Any]) -> Any:
        model = self.api.model
        text: Any = reply_of(call, record.get("chats", {})) or ""
        if call.get("reasoning"):
            text = [model.ContentReasoning(reasoning=call["reasoning"]), model.ContentText(text=text)]
        name = call["role"] if call["role"] in self.own_models else record["model"]
        choice = model.ChatCompletionChoice(
            message=model.ChatMessageAssistant(content=text, model=name, source="generate"),
            stop_reason=STOP_REASONS.get(call["finish_reason"], "unknown"),
        )
        return model.ModelOutput(model=name, choices=[choice], usage=self.usage(call["usage"]), time=call.get("seconds"))

    def _scores(self, record: Record) -> dict[str, Any] | None:
        success, score = result_of(record)
        if success is None:
            return None
        scores = self.api.scorer
        reason = f"end_reason: {record.get('end_reason')}"
        return {"success": scores.Score(value=success, explanation=reason), "score": scores.Score(value=score)}

    def _limit(self, record: Record) -> Any:
        reason = record.get("end_reason")
        if reason not in LIMITS:
            return None
        usage = record.get("usage", {})
        tokens = (usage.get("prompt_tokens") or 0) + (usage.get("completion_tokens") or 0)
        reached = tokens if reason in ("token_limit", "context_limit") else record.get("steps") or 0
        return self.api.log.EvalSampleLimit(type=LIMITS[reason], limit=float(reached), reason=reason)

    def _events(self, record: Record, chats: Mapping[str, list[Any]], outputs: list[Any]) -> Iterator[Any]:
        """Calls and steps in their order: a step follows the call whose reply it is."""
        event, calls = self.api.event, record.get("calls", ())
        clock, phase, span = 0.0, None, ""

        def stamp() -> dict[str, Any]:
            nonlocal clock
            clock += 1e-6  # the viewer sorts by time; scripted agents and fast worlds take none
            return {"timestamp": self.began + timedelta(seconds=clock), "working_start": clock}

        for kind, number in _order(record):
            item = calls[number] if kind == "call" else record["trajectory"][number]
            if item.get("phase") != phase:
                if span:
                    yield event.SpanEndEvent(id=span, span_id=span, **stamp())
                phase, span = item.get("phase"), uuid4().hex
                yield event.SpanBeginEvent(id=span, span_id=span, type="phase", name=phase or "episode", **stamp())
            if kind == "step":
                clock += item.get("seconds") or 0.0
                yield event.InfoEvent(source=f"step {number + 1}", data=item, span_id=span, **stamp())
                continue
            began, seconds = stamp(), item.get("seconds") or 0.0
            clock += seconds
            yield event.ModelEvent(
                model=outputs[number].model,
                role=item["role"],
                input=chats.get(item["chat"], [])[: item["upto"]],
                tools=[],
                tool_choice="none",
                config=self.api.model.GenerateConfig(),
                output=outputs[number],
                retries=item.get("retries") or None,
                cache="read" if item.get("cached") else None,
                completed=self.began + timedelta(seconds=clock),
                working_time=seconds,
                span_id=span,
                metadata={"chat": item["chat"], "purpose": item["purpose"]},
                **began,
            )
        if record["status"] != "ok":
            yield event.ErrorEvent(error=self.error(record), span_id=span or None, **stamp())
        if span:
            yield event.SpanEndEvent(id=span, span_id=span, **stamp())


def _order(record: Record) -> Iterator[tuple[str, int]]:
    """("call" | "step", index) of everything that happened, calls before the step that they led to."""
    called, n_calls = 0, len(record.get("calls", ()))
    for number, step in enumerate(record.get("trajectory", ())):
        upto = called if step.get("call") is None else step["call"] + 1
        yield from (("call", index) for index in range(called, min(upto, n_calls)))
        called = max(called, upto)
        yield "step", number
    yield from (("call", index) for index in range(called, n_calls))


def _metadata(record: Record) -> dict[str, Any]:
    task = record["task"]
    names = ("status", "end_reason", "steps", "steps_by_phase", "attempts", "paradigm", "notes")
    labels = {"key": key_of(record), **{name: task.get(name) for name in ("env", "split", "id", "kind", "seed", "repeat")}}
    return labels | {name: record.get(name) for name in names}
