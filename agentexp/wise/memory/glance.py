"""The memory of an agent that has none but reacts to what it sees (the Steve-1 baseline with a task's text)."""

from __future__ import annotations

from typing import Any

from agentexp.wise.core import Frame, Opportunity, Subtask
from agentexp.wise.memory.memories import FeatureMemory
from agentexp.wise.memory.retrieval import Candidate, rank


class GlanceMemory(FeatureMemory):
    """Offers what is in view now if it looks like the task, and forgets it at once. Settings as `FeatureMemory`'s.

    STEVE-1 follows a text on what is in its frames; this is the same with the encoder that all other methods use, so that the
    comparison is about memory.
    """

    def observe(self, frame: Frame) -> None:
        """Look at the frame if it is its turn and it has a picture."""
        self.tick = frame.tick
        if frame.image is not None and frame.tick % self.every == 0:
            self._embedding = self.encoder.picture(frame.image)
            self._now = Candidate(frame.tick, frame.pose, frame.tick, 0.0, in_view=True)

    def candidates(self, subtask: Subtask, frame: Frame) -> list[Opportunity]:
        """What is in view, or nothing."""
        now = self._seen_now(subtask, frame)
        return [] if now is None else rank([now], subtask.target, frame.pose, 1.0, 1)

    def statistics(self) -> dict[str, Any]:
        """No counts."""
        return {}
