"""The columns of the exported tables: name, pandas dtype, meaning. Frozen: analyses of others are written against them.

All dtypes are pandas' nullable ones, so a missing value is NA everywhere. "JSON" means JSON text. Rows of different tables are
joined by (run, key), steps to calls by (run, key, call).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Dtype = Literal["string", "Int64", "Float64", "boolean"]


class Column(NamedTuple):
    """One column of a table."""

    name: str
    dtype: Dtype
    about: str


RUN = Column("run", "string", "name of the run among those exported")
KEY = Column("key", "string", "task key, unique within a run: env/split/id#seedS.R")

RUNS = (
    RUN,
    Column("command", "string", "eval, explore, map or act"),
    Column("env", "string", "world"),
    Column("split", "string", "split of the world"),
    Column("paradigm", "string", "paradigm"),
    Column("model", "string", "label of the acting model"),
    Column("seeds", "string", "JSON list of seeds"),
    Column("repeats", "Int64", "samples of each (instance, seed)"),
    Column("planned", "Int64", "episodes of the plan: the denominator of every rate"),
    Column("recorded", "Int64", "planned episodes that have a record"),
    Column("harness_errors", "Int64", "planned episodes that only ended with a harness error"),
    Column("partial", "boolean", "planned episodes have no record yet; NA where there is no manifest"),
    Column("version", "string", "version of agentexp"),
    Column("created", "string", "when the run began, ISO 8601"),
    Column("config", "string", "JSON object: the resolved settings"),
)

EPISODES = (
    RUN,
    KEY,
    Column("instance", "string", "env/split/id: the same for all seeds, repeats, paradigms and models"),
    Column("env", "string", "world"),
    Column("split", "string", "split of the world"),
    Column("id", "string", "name of the instance in its split"),
    Column("kind", "string", "task type; empty where the world has none"),
    Column("seed", "Int64", "the run's seed"),
    Column("repeat", "Int64", "0-based repetition of the same (id, seed)"),
    Column("paradigm", "string", "paradigm"),
    Column("model", "string", "label of the acting model"),
    Column("status", "string", "ok, or error: the harness failed, not the agent"),
    Column("end_reason", "string", "one of agentexp.core.END_REASONS"),
    Column("success", "boolean", "solved; NA for harness errors and for phases without success criterion (explore, map)"),
    Column("score", "Float64", "the world's score in [0, 1]; NA as for success"),
    Column("goal", "string", "task instruction"),
    Column("steps", "Int64", "environment steps of all phases"),
    Column("steps_by_phase", "string", "JSON object: phase to steps"),
    Column("unreadable", "Int64", "steps whose reply held no possible action (status other than ok)"),
    Column("calls", "Int64", "model calls"),
    Column("prompt_tokens", "Int64", "tokens of all prompts"),
    Column("completion_tokens", "Int64", "tokens of all replies"),
    Column("cached_tokens", "Int64", "prompt tokens that the server had cached"),
    Column("cost", "Float64", "US dollars; NA where no price is known"),
    Column("usage_by_role", "string", "JSON object: role to tokens, calls and cost"),
    Column("seconds", "Float64", "wall-clock seconds of the last attempt"),
    Column("attempts", "Int64", "attempts, because of harness errors"),
    Column("error", "string", "what failed; empty if nothing did"),
    Column("notes", "string", "JSON object: what the paradigm kept (map, summary, stop trace, checkpoints)"),
    Column("partial", "boolean", "the run lacks planned episodes; NA where there is no manifest"),
    Column("schema", "Int64", "schema version of the record"),
)

STEPS = (
    RUN,
    KEY,
    Column("step", "Int64", "1-based in the episode"),
    Column("phase", "string", "mapping, acting, exploring ..."),
    Column("phase_step", "Int64", "1-based in the phase"),
    Column("call", "Int64", "the call whose reply this is (calls.call); NA where no model was asked in this run"),
    Column("status", "string", "ok, invalid, truncated or ambiguous"),
    Column("action", "string", "what was sent to the world; NA when nothing was sent"),
    Column("written", "string", "the action as the model wrote it, where reading changed or refused it"),
    Column("flags", "string", "JSON list: what reading noticed"),
    Column("observation", "string", "what the world, or agentexp in its place, answered"),
    Column("score", "Float64", "score so far in [0, 1]"),
    Column("done", "boolean", "the world has ended"),
    Column("success", "boolean", "the task is solved now"),
    Column("error", "boolean", "the world refused the action, or nothing was sent"),
    Column("seconds", "Float64", "wall-clock seconds of the world"),
    Column("info", "string", "JSON object: what else the world said"),
)

CALLS = (
    RUN,
    KEY,
    Column("call", "Int64", "0-based in the episode"),
    Column("chat", "string", "conversation of the episode"),
    Column("upto", "Int64", "the prompt is the first so many messages of the conversation"),
    Column("role", "string", "actor, explorer, extractor ..."),
    Column("purpose", "string", "act, or the name of the prompt"),
    Column("phase", "string", "mapping, acting, exploring ..."),
    Column("prompt_tokens", "Int64", "tokens of the prompt"),
    Column("completion_tokens", "Int64", "tokens of the reply"),
    Column("cached_tokens", "Int64", "prompt tokens that the server had cached"),
    Column("cost", "Float64", "US dollars; NA where no price is known"),
    Column("seconds", "Float64", "wall-clock seconds"),
    Column("finish_reason", "string", "stop, length ..."),
    Column("retries", "Int64", "failed tries before the reply"),
    Column("cached", "boolean", "the reply came from the cache of an earlier run"),
    Column("reply", "string", "the reply as received; NA where the episode ended before it was kept"),
    Column("edited", "boolean", "the conversation keeps another text than was received"),
    Column("reasoning", "string", "reasoning that the server split off"),
    Column("token_ids", "string", "JSON list of the sampled tokens; NA where not recorded"),
    Column("logprobs", "string", "JSON list of their log probabilities; NA where not recorded"),
    Column("info", "string", "JSON object: what else the backend said"),
)

TABLES = {"runs": RUNS, "episodes": EPISODES, "steps": STEPS, "calls": CALLS}
"""Table name to columns."""
