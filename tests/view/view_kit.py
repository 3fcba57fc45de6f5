"""Run folders made up for the pages: every kind of ending, hostile text, and as many episodes as a test wants."""

from __future__ import annotations

import random
from pathlib import Path

from agentexp.core import Call, Episode, Message, StepRecord, Task, Usage
from agentexp.records import episode_to_json
from agentexp.store import RunFolder, write_json
from agentexp.summary import summarise_run

HOSTILE = (
    "Thought: </script><script>window.owned = 1</script><img src=x onerror='window.owned = 2'> \u2028 & \ud800 done\n"
    "Action: look"
)
KINDS = ("pick_and_place_simple", "look_at_obj_in_light", "pick_heat_then_place_in_recep", "pick_two_obj_and_place")
PLACES = ("fridge 1", "cabinet 2", "countertop 1", "sinkbasin 1", "drawer 3", "desk 1", "shelf 2")
THINGS = ("mug 1", "apple 2", "book 1", "alarmclock 3", "plate 1", "lettuce 1")
OUTCOMES = ("won", "step_limit", "won", "lost", "won", "invalid_limit", "won", "env_error")


def episode(i: int, *, paradigm: str = "map", steps: int = 12, luck: int = 0) -> Episode:
    """Episode i of a made-up house; the same i is the same task whatever `luck` makes of it."""
    rng = random.Random(f"{i}|{luck}")
    end = OUTCOMES[(i + luck * (i % 3 == 0)) % len(OUTCOMES)]
    task = Task(f"{KINDS[i % 4]}-Mug-None-{i}/trial_T2019{i:05d}", "house", "test", kind=KINDS[i % 4], spec={"file": f"g{i}"})
    done = Episode(task, paradigm, "made-up-7b", end_reason=end, success=end == "won", score=float(end == "won"))
    done.goal = f"Put a {THINGS[i % 6][:-2]} in or on {PLACES[i % 7]}."
    if end == "env_error":
        done.status, done.error = "error", "EngineError: the engine of this game died.\n  at step 3 <b>bold</b>"
    for phase in ("mapping", "acting") if paradigm == "map" else ("acting",):
        _phase(done, phase, steps, rng, hostile=i == 0)
        if phase == "mapping":
            _learn(done, steps, rng)
    done.seconds = round(rng.uniform(2, 40), 3)
    return done


def _phase(done: Episode, phase: str, steps: int, rng: random.Random, hostile: bool) -> None:
    start = f"You are in the middle of a room.\n\nLooking quickly around you, you see {', '.join(PLACES)}.\nGoal: {done.goal}"
    chat = [
        Message("system", f"You act in a house ({phase}). Actions: go to | take | put | open. " * 12),
        Message("user", start),
    ]
    done.chats[phase], done.steps_by_phase[phase] = chat, steps
    for t in range(steps):
        place, thing, last = rng.choice(PLACES), rng.choice(THINGS), t == steps - 1
        status = "invalid" if rng.random() < 0.03 or (last and done.end_reason == "invalid_limit") else "ok"
        action = f"take {thing} from {place}" if t % 3 else f"go to {place}"
        said = f"Thought: The {thing} may be at {place}; I have not looked there yet ({t}).\nAction: {action}"
        if hostile and t == 1:
            said, action = HOSTILE, "look"
        answer = (
            f"You arrive at {place}. On the {place}, you see a {thing}, and a {rng.choice(THINGS)}."
            if t % 3 == 0
            else "Nothing happens."
        )
        usage = Usage(300 + 60 * t, 30, 200 * (t > 0), 1, 0.0002)
        done.calls.append(Call(phase, len(chat), "actor", "act", phase, usage, rng.uniform(0.2, 1.5), "stop"))
        if t == 2:
            done.calls[-1].raw = said + "\nObservation: You see everything."
            done.calls[-1].reasoning = "Let me think about where mugs usually are. " * 5
        chat.append(Message("assistant", said if status == "ok" else "I would rather not."))
        won = last and phase == "acting" and done.success
        answer = answer if status == "ok" else "Your reply could not be read. Give exactly one action in the required form."
        record = StepRecord(
            phase, action if status == "ok" else None, status, answer, float(won), won, won, answer == "Nothing happens."
        )
        record.call = len(done.calls) - 1
        if t == 3 and status == "ok":
            record.rewrite, record.flags = action.upper(), ["number_added"]
        done.trajectory.append(record)
        if not last:
            chat.append(Message("user", f"Observation: {answer}\nSteps left: {steps - t - 1}"))
        done.usage += usage
        done.steps += 1


def _learn(done: Episode, steps: int, rng: random.Random) -> None:
    known, trace = 5, []
    for t in range(1, steps + 1):
        delta = max(0, rng.randint(-2, 6) - t // 3)
        known += delta
        novelty = 1 / (1 + (t // 4)) ** 0.5
        trace.append({"t": t, "known": known, "delta_k": delta, "novelty": novelty, "window_mean": min(1.0, novelty + 0.1)})
        trace[-1] |= {"cond_a": t > 8, "cond_b": t > 9, "reason": "converged" if t == steps else ""}
    done.notes["stop"] = {"reason": "converged", "t": steps, "known": known}
    done.notes["stop_trace"] = trace
    done.notes["map_source"] = "llm"
    spatial = [{"thing": thing, "relation": "on", "place": rng.choice(PLACES)} for thing in THINGS]
    works = {"action": "open", "target": "fridge 1", "works": True, "effect": "shows its contents", "requires": None}
    fails = {
        "action": "take",
        "target": "fridge 1",
        "works": False,
        "effect": "Nothing happens.",
        "requires": "<i>an empty hand</i>",
    }
    done.notes["map"] = {
        "spatial": spatial,
        "absent": [{"place": "drawer 3", "what": "anything"}],
        "affordances": [works, fails],
        "task_notes": [f"The goal place is {PLACES[1]}."],
        "unknown": ["cabinet 5"],
    }
    done.notes["checkpoints"] = [
        {"kind": "location", "name": place, "step": n if n < 5 else None} for n, place in enumerate(PLACES)
    ]


def make_run(
    folder: Path, n: int, *, paradigm: str = "map", steps: int = 12, luck: int = 0, first: int = 0, planned: int = 0
) -> Path:
    """A run folder with episodes first .. first + n - 1 of the made-up house."""
    episodes = [episode(i, paradigm=paradigm, steps=steps, luck=luck) for i in range(first, first + n)]
    keys = [done.task.key for done in episodes] + [f"house/test/missing-{i}#seed0.0" for i in range(planned - n)]
    manifest = {
        "schema": 1,
        "command": "eval",
        "env": "house",
        "paradigm": paradigm,
        "model": "made-up-7b",
        "split": "test",
        "seeds": [0],
        "repeats": 1,
        "planned": keys,
        "config": {"seed": 0, "paradigm": {"stage1": paradigm == "map"}, "stopping": {"epsilon": 0.5}},
        "code": {"version": "0.1.0"},
    }
    with RunFolder(folder) as run:
        for done in episodes:
            run.append(episode_to_json(done))
    write_json(folder / "manifest.json", manifest)
    write_json(folder / "summary.json", summarise_run(folder, manifest))
    rules = {"action_syntax": ["go to {place}", "<script>window.owned = 3</script>"], "environment_facts": ["Doors stay open."]}
    rules["error_patterns"] = [{"message": "Nothing happens.", "meaning": "refused", "fix": "go there first"}]  # type: ignore[list-item]
    write_json(folder / "artefacts.json", {"k_g": rules} if paradigm == "map" else {})
    return folder
