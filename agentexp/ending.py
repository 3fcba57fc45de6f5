"""What a run says when an episode or the run itself has ended: to trackers, to people, and as an exit code."""

from __future__ import annotations

import sys

from agentexp import interrupt
from agentexp.core import Episode
from agentexp.progress import Tally, show_result
from agentexp.run import Run
from agentexp.scrub import clean
from agentexp.summary import Summary


def exit_code(summary: Summary) -> int:
    """0: all planned episodes finished; 1: harness errors left, a fatal error, a cap, time up; 130, 143: interrupted.

    Of a shard only its own episodes count.
    """
    stopped = summary.get("stopped_by", "")
    if stopped and stopped not in ("fatal", "cap", "timeout"):
        return interrupt.exit_code(stopped)
    left = summary["shard"]["left"] if "shard" in summary else summary["harness_errors"] or summary["partial"]
    return 1 if stopped or left else 0


def numbers(episode: Episode, tally: Tally) -> dict[str, float]:
    """What the tracker gets of a finished episode."""
    tokens = episode.usage.prompt_tokens + episode.usage.completion_tokens
    values: dict[str, float] = {"episode": tally.done + tally.errors, "eval/harness_errors": tally.errors}
    if episode.status == "ok":
        values |= {"eval/success": float(episode.success), "eval/score": episode.score, "eval/steps": episode.steps}
        values |= {"eval/tokens": tokens, "eval/seconds": episode.seconds, "eval/success_rate": tally.won / tally.done}
    if episode.usage.cost is not None:
        values["eval/cost"] = episode.usage.cost
    return values


def tell(run: Run, summary: Summary, fatal: str, *, idle: bool) -> None:
    """The end of a run for people."""
    if run.nested:
        return
    again = "Issue the same command again to go on."
    kept = f"{summary['finished']} of {summary['planned']} episodes are finished and kept."
    if idle and not (summary["partial"] or summary["harness_errors"]):
        sys.stderr.write(f"Nothing to do: all {summary['planned']} episodes were finished before.\n")
    if "shard" in summary:
        episodes, left = summary["shard"]["episodes"], summary["shard"]["left"]
        sys.stderr.write(f"This shard: {episodes} episodes, {left} of them not finished.\n")
    if fatal:
        going_on = "" if summary["stopped_by"] == "cap" else f" {again}"
        sys.stderr.write(f"Stopped: {clean(fatal)} {kept}{going_on}\n")
    elif summary["stopped_by"]:
        sys.stderr.write(f"Stopped by {summary['stopped_by']}: {kept} {again}\n")
    elif summary["harness_errors"]:
        sys.stderr.write(
            f"{summary['harness_errors']} episodes ended with a harness error; they are not the agent's failures. "
            "Issue the same command again to run them again.\n"
        )
    for warning in summary["warnings"]:
        sys.stderr.write(f"Warning: {clean(warning)}\n")
    show_result(summary, run.folder)
