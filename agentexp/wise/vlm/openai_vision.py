"""Any vision model behind an OpenAI-compatible server (GPT-4o in the paper): keyframes as PNG data URLs, answers as JSON."""

from __future__ import annotations

import asyncio
import base64
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from agentexp.core import Env, Message, Model, Request, Sampling, Step, Task, Usage, View
from agentexp.errors import MissingDependency, ModelError, UserError
from agentexp.paradigms.json_reply import BadReply, read_json
from agentexp.prompts import render
from agentexp.wise.core import Record


class OpenAIVision:
    """Labels keyframes with a model of `agentexp.models`.

    One request per batch; a reply that is no JSON of the wanted form is shown to the model with what is wrong, once.

    Args:
        model: the vision model (usually `OpenAIModel`); its retries, limits and prices apply.
        max_side: pictures are scaled down to this many pixels on the longer side; None = as they are.
        scale: small pictures are enlarged by this whole factor, as vision models read little from 64x32.
        max_tokens: of a reply; the paper's have 1,618 on average for 16 keyframes.

    Raises:
        UserError: a setting is out of range.
    """

    def __init__(self, *, model: Model, max_side: int | None = 512, scale: int = 1, max_tokens: int = 4096) -> None:
        if (max_side is not None and max_side < 16) or scale < 1 or max_tokens < 64:
            raise UserError("vision.max_side must be at least 16, vision.scale at least 1 and vision.max_tokens at least 64.")
        self.model, self.max_side, self.scale, self.max_tokens = model, max_side, scale, max_tokens
        self.usage = Usage()
        self.counts: Counter[str] = Counter()

    def bind(self, world: object = None) -> OpenAIVision:
        """The same for one episode, with counts of its own; connections are shared."""
        return OpenAIVision(model=self.model, max_side=self.max_side, scale=self.scale, max_tokens=self.max_tokens)

    async def start(self) -> None:
        """Check that the model answers; see `Model.start`. To be called before the first episode.

        It also opens the connections, which takes longer than a control step may.
        """
        await self.model.start()

    async def close(self) -> None:
        """Close the model's connections."""
        await self.model.close()

    async def label(self, keyframes: Sequence[Record]) -> Mapping[str, Any]:
        """See `VisionModel.label`.

        Raises:
            ModelError: the model failed after its retries, or both replies were malformed.
        """
        # In a thread: packing sixteen pictures takes longer than a control step may.
        messages = [Message("user", await asyncio.to_thread(self.prompt, keyframes))]
        problem = ""
        for attempt in range(2):
            if attempt:
                self.counts["repairs"] += 1
                messages.append(Message("user", render("json/retry", problem=problem)))
            reply = await self.model.chat(self._request(messages, keyframes))
            self.usage += reply.usage
            messages.append(Message("assistant", reply.text))
            try:
                value, mended = read_json(reply.text)
                frames = value.get("frames")
                if not isinstance(frames, list):
                    raise BadReply('it has no list "frames".')
            except BadReply as error:
                problem = str(error)
                continue
            self.counts["mended"] += mended
            return value
        raise ModelError(f"malformed: two replies in a row were unusable, the last because {problem}")

    def prompt(self, keyframes: Sequence[Record]) -> str:
        """The message: instructions, then each keyframe's timestep, pose and picture (Markdown with a data URL)."""
        parts = [render("wise/vision", frames=keyframes)]
        for record in keyframes:
            if record.picture is None:
                raise ModelError("A keyframe has no picture.")
            pose = ", ".join(f"{value:.1f}" for value in record.pose)
            parts.append(f"timestep {record.tick}, pose ({pose}):\n![frame]({data_url(self._sized(record.picture))})")
        return "\n\n".join(parts)

    def _sized(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        if self.scale > 1:
            picture = picture.repeat(self.scale, axis=0).repeat(self.scale, axis=1)
        longest = max(picture.shape[:2])
        if self.max_side is None or longest <= self.max_side:
            return picture
        image = _pillow().fromarray(picture)
        image.thumbnail((self.max_side, self.max_side))
        return np.asarray(image, np.uint8)

    def _request(self, messages: list[Message], keyframes: Sequence[Record]) -> Request:
        sampling = Sampling(temperature=self.model.sampling.temperature, max_tokens=self.max_tokens)
        view = View(
            Task("keyframes", "wise", "vision"), "", "vision", Step(""), [], 0, None, {}, None, cast(Env, None), _none, {}
        )
        return Request(list(messages), sampling, "vision", "json", view, f"vision{keyframes[0].id}")

    def statistics(self) -> dict[str, Any]:
        """Tokens, cost (None where no price is set) and repairs so far."""
        return {
            "vlm_calls": self.usage.calls,
            "prompt_tokens": self.usage.prompt_tokens,
            "completion_tokens": self.usage.completion_tokens,
            "cost": self.usage.cost,
            "repairs": self.counts["repairs"],
            "mended": self.counts["mended"],
        }


async def _none() -> list[str]:
    return []


def data_url(picture: NDArray[np.uint8]) -> str:
    """A picture as a PNG data URL. Raises `MissingDependency` without Pillow."""
    out = io.BytesIO()
    _pillow().fromarray(picture).save(out, "PNG")
    return f"data:image/png;base64,{base64.b64encode(out.getvalue()).decode()}"


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingDependency("Sending keyframes needs `pip install 'agentexp[wise]'` (Pillow).") from error
    return Image
