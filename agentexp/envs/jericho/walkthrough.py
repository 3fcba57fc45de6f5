"""jericho's own solutions of the user's stories, followed from where the episode is."""

from __future__ import annotations

from agentexp.envs.jericho.engine import Engine
from agentexp.errors import UserError


class Walkthrough:
    """Follows an episode along the walkthrough of its story.

    A walkthrough only works from its start with jericho's random seed: a turn more may wake a thief. So what is left of it is
    carried out on the engine first, and returned only if it ends with full score or with the good end.

    Args:
        engine: with the story begun.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine, self._steps, self._at = engine, engine.walkthrough, 0
        self._left = ""

    def sent(self, command: str) -> None:
        """Take note of a command of the episode."""
        if self._at < len(self._steps) and command.lower() == self._steps[self._at].strip().lower():
            self._at += 1
        else:
            self._left = self._left or command

    def rest(self) -> list[str]:
        """What is left. Raises `UserError` where there is no walkthrough or it does not lead to the end from here."""
        if not self._steps:
            raise UserError("jericho has no walkthrough for this story, so there is no oracle; choose another model.policy.")
        rest, engine = self._steps[self._at :], self._engine
        start, best, won = engine.save(), 0, False
        try:
            for command in rest:
                answer = engine.send(command)
                best, won = max(best, answer.score), won or answer.won
                if answer.over:
                    break
        finally:
            engine.restore(start)
        if not (won or best >= engine.max_score > 0):
            why = f"the episode has left it with {self._left!r}" if self._left else "it ends without full score"
            raise UserError(f"jericho's walkthrough does not lead to the end from here: {why}. There is no other oracle.")
        return rest
