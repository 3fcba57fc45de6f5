"""`model.decode=rank` of `TransformersModel`: the admissible action whose reply is the likeliest.

Scores are those of the embedded model (see `rank`): a reply counts up to the end of its action and one token further, which
tells "go to desk 1" from "go to desk 11".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentexp.core import Completion, Request, Usage
from agentexp.models.embedded_choice import FORMS, LABELS
from agentexp.models.rank import Normalise
from agentexp.models.transformers_rows import shared

if TYPE_CHECKING:
    from agentexp.models.transformers_engine import Done
    from agentexp.training.chat import TemplateFormat


@dataclass(frozen=True, slots=True)
class Candidates:
    """The replies to choose from.

    Attributes:
        replies: texts, one per action.
        stem: token ids of the prompt and of what all replies begin with.
        tokens: what each reply adds to it, up to the token that tells it from all others.
    """

    replies: list[str]
    stem: list[int]
    tokens: list[list[int]]

    @classmethod
    def of(cls, request: Request, prompt: Sequence[int], chats: TemplateFormat) -> Candidates:
        """The candidates of a call.

        Args:
            request: the call; the world lists at least one action.
            prompt: its token ids.
            chats: the chat format.
        """
        form = FORMS.get(request.form, LABELS)
        actions = list(dict.fromkeys(action for action in request.view.step.admissible or () if action.strip()))
        heads = [f"{form.lead} {action}" for action in actions]
        lead = chats.reply(form.lead)[:-1]
        open_ended = [chats.reply(head)[:-1] for head in heads]
        ended = [chats.reply(head + form.close) for head in heads]
        common = shared(min(lead, *ended), max(lead, *ended))
        cut = [shared(head, whole) + 1 for head, whole in zip(open_ended, ended, strict=True)]
        tokens = [reply[common:stop] for reply, stop in zip(ended, cut, strict=True)]
        return cls([head + form.close for head in heads], [*prompt, *lead[:common]], tokens)

    def completion(self, done: Done, normalise: Normalise) -> Completion:
        """The reply with the highest score; ties go to the action that the world lists first."""
        scores = [one.logprob if normalise == "none" else one.logprob / one.tokens for one in done.scored]
        order = sorted(range(len(scores)), key=lambda i: -scores[i])
        best = order[0]
        info = {
            "candidates": len(scores),
            "logprob": round(done.scored[best].logprob, 4),
            "tokens": done.scored[best].tokens,
            "margin": round(scores[best] - scores[order[1]], 4) if len(order) > 1 else None,
        }
        return Completion(
            text=self.replies[best],
            usage=Usage(len(self.stem), done.scored[best].tokens, done.cached, calls=1),
            info={"decode": "rank", "rank": info},
        )
