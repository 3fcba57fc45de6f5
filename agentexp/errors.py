"""Every error that agentexp raises on purpose.

Three families, because they have three consequences:

* `UserError` - the command, configuration or data is wrong: one sentence on stderr, exit code 2, nothing run.
* `HarnessError` - the engine, the API or agentexp itself failed. An episode that ends this way has `status="error"`; it is
  never counted as a failure of the agent and it runs again when the command is issued again.
* `FatalError` - going on is pointless for every episode (wrong key, quota used up): the run stops at once and can be resumed.
"""

from __future__ import annotations


class AgentExpError(Exception):
    """Base class of all errors of this package."""


class UserError(AgentExpError):
    """Bad usage, configuration or data. The message is a full sentence naming the setting to change."""


class MissingDependency(UserError):
    """An optional package, program or data set is missing. The message says how to install it."""


class HarnessError(AgentExpError):
    """The harness failed, not the agent. `end_reason` is what the episode record will say."""

    end_reason = "harness_error"


class EngineError(HarnessError):
    """An environment engine raised, died, hung or could not start."""

    end_reason = "env_error"


class EngineTimeout(EngineError):
    """An engine did not answer within its time limit; its worker has been killed."""


class ModelError(HarnessError):
    """A model call failed for good after its retries."""

    end_reason = "model_error"


class FatalError(HarnessError):
    """No episode can succeed any more (wrong key, no quota, unknown model). Stops the run; nothing finished is lost."""

    end_reason = "fatal_error"


class ContextOverflow(AgentExpError):
    """The prompt no longer fits into the model's context. Caused by the agent's own history: counts as its failure."""


class LimitReached(AgentExpError):
    """A limit of the episode was reached; `reason` becomes the end reason. Control flow inside an episode, not a failure."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def first_of(errors: ExceptionGroup[Exception]) -> Exception:
    """The first plain exception of a group: what a `TaskGroup` failed with."""
    inner = errors.exceptions[0]
    return first_of(inner) if isinstance(inner, ExceptionGroup) else inner
