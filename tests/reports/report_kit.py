"""Run folders made by hand."""

import json

from agentexp.reports.build import build, wanted
from agentexp.reports.runs import load_runs
from agentexp.reports.spec import load_spec


def record(number, success=False, *, env="alfworld", seed=0, repeat=0, status="ok", steps=5, unreadable=0, **more):
    task = {"id": f"game{number}", "env": env, "split": "test", "seed": seed, "repeat": repeat, "kind": ""}
    key = f"{env}/test/game{number}#seed{seed}.{repeat}"
    trajectory = [{"status": "invalid" if i < unreadable else "ok"} for i in range(steps)]
    return {
        **{"schema": 1, "key": key, "status": status, "end_reason": "won" if success else "step_limit", "success": success},
        **{"task": task, "score": float(success), "steps": steps, "trajectory": trajectory, "notes": {}, **more},
    }


def write_run(folder, records, *, env="alfworld", paradigm="react", model="tiny", planned=None, config=None, command="eval"):
    folder.mkdir(parents=True, exist_ok=True)
    manifest = {
        **{"schema": 1, "command": command, "env": env, "paradigm": paradigm, "model": model, "split": "test", "seeds": [0]},
        **{"config": {"env": {"name": env}, "paradigm": {"name": paradigm}, **(config or {})}},
        "planned": planned or list(dict.fromkeys(r["key"] for r in records)),
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    lines = [json.dumps(r, separators=(",", ":")) + "\n" for r in records]
    (folder / "episodes.jsonl").write_text("".join(lines))
    return folder


def load(name, *roots):
    """A table that comes with agentexp, from run folders."""
    spec = load_spec(name)
    return build(spec, load_runs(roots, wanted(spec)))


def cells_of(table, block, label):
    """Column -> cell of one row of the block whose title starts with `block`."""
    panel = next(panel for panel in table.panels if panel.title.startswith(block))
    return dict(zip(panel.columns, dict(panel.rows)[label], strict=True))
