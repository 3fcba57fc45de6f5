"""Every preset composes, at both scales, and asks for what its table selects."""

from functools import cache
from itertools import product
from pathlib import Path

import pytest
import yaml
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf
from report_kit import load, record, write_run

from agentexp.envs.arc_agi3.catalog import MAIN6, OTHER19
from agentexp.launch import conf_dir
from agentexp.metrics.map_qa import CATEGORIES
from agentexp.plan import flatten, identity

PRESETS = sorted(file.stem for file in (conf_dir() / "experiment").glob("*.yaml") if file.stem.endswith(("_small", "_paper")))
PRESETS = [name for name in PRESETS if not name.startswith("wise_")]  # another command: tests/wise/test_wise_tables.py
PRESETS = [name for name in PRESETS if not name.startswith(("map2k_", "act_", "sft_", "grpo_", "thinker_"))]  # for training
# table or figure -> presets
SOURCES = {
    "table1": ["table1"],
    "table2": ["table2", "table2_lm"],
    "table3": ["table3"],
    "table4": ["table4"],
    "table5": ["table5"],
    "table7": ["table7"],
    "fig3": ["fig3"],
    "fig4": ["table1"],
    "fig5": ["fig5"],
    "fig6": ["table1"],
    "ecc-table1": ["ecc_table1", "ecc_direct", "ecc_bonus"],
    "ecc-table2": ["ecc_table2", "ecc_direct"],
    "ecc-table3": ["ecc_table3"],
    "ecc-table6": ["ecc_table6"],
    "ecc-fig3": ["ecc_fig3"],
    "ecc-fig4": ["ecc_table1", "ecc_direct", "ecc_fig4"],
    "ttx-table6": ["ttx_table6", "ttx_thinker", "ttx_worlds"],
    "ttx-fig4": ["ttx_table6", "ttx_thinker", "ttx_reflexion", "ttx_best_of_n"],
    "ttx-fig5": ["ttx_fig5"],
}
# presets that the other scale has no use for
ONE_SCALE = {"table2_lm": "small", "ttx_worlds": "small", "ttx_best_of_n": "paper"}
NO_RUNS = {"ttx-table6": "Mean"}  # small runs have no row with all five worlds
BORROWED = ("fig4", "fig6", "ecc-fig4", "ttx-fig4")  # they show a part of what their presets run for tables
NO_RUNS |= {"table2": tuple(map(str.upper, MAIN6)), "table7": tuple(map(str.upper, OTHER19))}  # small: games of our own
WORLDS = {"AlfWorld": "alfworld", "TextCraft": "textcraft", "ScienceWorld": "scienceworld", "BabyAI": "babyai"}
WORLDS |= {"Jericho": "jericho", "Pddl": "pddl", "ArcAgi3": "arc_agi3"}
ARC_GAMES = {"test": ("kd01", "lt01", "px01", "cm01", "gv01", "hz01"), "dev": ("fl01",), "main6": MAIN6, "other19": OTHER19}
ARC_PROGRESS = {"levels": 1, "completed": 0, "baseline": [3], "plays": [{"used": [3], "completed": 0}]}


@cache
def jobs(preset):
    """The flat config of every job of the preset's sweep, for the first of its seeds."""
    GlobalHydra.instance().clear()
    needed = ["model.name=tiny"] if preset.endswith("_paper") and preset != "ecc_table6_paper" else []
    if preset in ("ecc_table1_paper", "ecc_fig4_paper"):
        needed.append("roles.explorer.name=large")
    if preset in ("ttx_thinker_paper", "ttx_fig5_paper"):
        needed.append("roles.thinker.name=large")
    found = []
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        config = compose("eval", [f"+experiment={preset}", *needed], return_hydra_config=True)
        sweep = OmegaConf.to_container(config.hydra.sweeper.params, resolve=False)
        values = {key: str(value).split(",") for key, value in sweep.items() if key != "seed"}
        groups = {key: found for key, found in values.items() if key in ("env", "paradigm")}
        settings = {key: found for key, found in values.items() if key not in groups}
        for chosen in product(*groups.values()):
            overrides = [f"{key}={value}" for key, value in zip(groups, chosen, strict=True)]
            composed = compose("eval", [f"+experiment={preset}", *needed, *overrides])
            for inner in product(*settings.values()):
                job = composed.copy()
                for key, value in zip(settings, inner, strict=True):
                    OmegaConf.update(job, key, yaml.safe_load(value))
                found.append(dict(flatten(OmegaConf.to_container(job, resolve=True))))
    return found


def world(job):
    return WORLDS[job["env._target_"].rpartition(".")[2]]


def as_run(job):
    """The job as a run that has ended: what a report sees of it."""
    name = {"TTExplore": "ttexplore", "Reflexion": "reflexion", "BestOfN": "best_of_n"}
    name |= {"MapThenAct": "map", "ReAct": "react", "CoMap": "comap", "MapQa": "map_qa", "ExploreThenAct": "explore_then_act"}
    model = f"scripted-{job['model.policy']}" if "model.policy" in job else job.get("model.name", "embedded")
    explorer = ""
    if job.get("paradigm.explore_steps") and not job["paradigm.direct_bonus"]:
        explorer = job.get("roles.explorer.policy") or job.get("roles.explorer.name") or model
    notes = {
        "exploration": {"steps": 5, "budget": 100, "premature": False, "explorer": explorer, "cached": False},
        "checkpoints": [{"kind": "object", "name": "o", "step": 3}],
    }
    notes = notes if explorer else {}
    notes["map_qa"] = [{"category": category, "correct": True, "unknown": False} for category in CATEGORIES]
    notes["stop_trace"] = [{"t": t, "delta_k": 1, "novelty": 1.0, "window_mean": 1.0} for t in range(1, 16)]
    notes["stop"] = {"reason": "t_max", "t": 1}
    if job.get("env.perturb") == "relocate":
        notes["perturbation"] = {"step": 1, "origins": ["desk 1"]}
    thinks = "ttexplore" in job["paradigm._target_"] and job["paradigm.every"]
    config = {}
    for key, value in job.items():
        node = config
        *path, last = key.split(".")
        for part in path:
            node = node.setdefault(part, {})
        node[last] = value
    usage = {"calls": 1, "prompt_tokens": 1, "completion_tokens": 1, "cost": None}
    step = {"phase": "acting", "action": "move mug 1 to desk 1", "error": True, "status": "ok", "observation": "", "score": 0.0}

    def thought(i):
        return {"thoughts": [{"text": "It is full." if i else "Try again.", "step": 1}]}

    records = [
        {
            **record(i, False, env=world(job), seed=job["seed"], notes={**notes, **(thought(i) if thinks else {})}),
            "usage": usage,
            "seconds": 1.0,
            "trajectory": [step] * 3,
        }
        for i in range(2)
    ]
    if world(job) == "arc_agi3":
        step = {**step, "info": {"progress": ARC_PROGRESS}}
        kinds = ARC_GAMES[job["env.split"]]
        records = [{**record(i, False, env="arc_agi3", notes=notes), "usage": usage, "seconds": 1.0} for i in range(len(kinds))]
        for found, kind in zip(records, kinds, strict=True):
            found |= {"trajectory": [step] * 3, "task": {**found["task"], "kind": kind}}
    return records, {
        "env": world(job),
        "paradigm": name[job["paradigm._target_"].rpartition(".")[2]],
        "model": model,
        "config": config,
    }


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_composes(preset, monkeypatch):
    monkeypatch.setenv("ALFWORLD_DATA", "games")
    found = list(jobs(preset))
    assert found
    assert len({repr(sorted(job.items())) for job in found}) == len(found)


@pytest.mark.parametrize("scale", ["small", "paper"])
@pytest.mark.parametrize("name", SOURCES)
def test_a_report_finds_the_runs_of_its_presets(tmp_path, monkeypatch, name, scale):
    monkeypatch.setenv("ALFWORLD_DATA", "games")
    found = [job for source in SOURCES[name] if ONE_SCALE.get(source, scale) == scale for job in jobs(f"{source}_{scale}")]
    for number, job in enumerate(found):
        records, labels = as_run(job)
        write_run(tmp_path / str(number), records, **labels)
    table = load(name, tmp_path)
    used = {Path(folder).name for panel in table.panels for _, cells in panel.rows for cell in cells for folder in cell.runs}
    unused = [found[int(number)] for number in {str(n) for n in range(len(found))} - used]
    assert not unused or name in BORROWED, unused[0]
    assert not [label for panel in table.panels for label, _ in panel.rows if "=" in label], "a row split by settings"
    for panel in table.panels:
        assert (
            any(cell.runs for _, cells in panel.rows for cell in cells)
            or "(ours)" in panel.title
            or (panel.title.startswith(NO_RUNS.get(name, "-")))
        ), panel.title
        columns = [i for i in range(len(panel.columns)) if any(cells[i].runs for _, cells in panel.rows)]
        for label, cells in panel.rows:
            if any(cell.runs for cell in cells):
                assert not [panel.columns[i] for i in columns if cells[i].measured is None], (panel.title, label)


def test_small_runs_are_shared_between_tables():
    def of(preset):
        return {repr(sorted(identity(job).items())) for job in jobs(preset)}

    first = of("table1_small")
    for other in ("table3_small", "table4_small", "table5_small", "fig5_small"):
        assert first & of(other), other
    assert of("ecc_table1_small") & of("ecc_fig4_small")
    assert of("ecc_direct_small") & of("ecc_table3_small")
    assert of("ecc_table2_small") & of("ecc_fig3_small")
    assert of("ecc_table2_small") & of("table3_small")


def test_all_small_runs_in_one_folder_leave_every_table_clean(tmp_path):
    """The make targets of one scale share a folder: a sweep of one table must not show up as variants in another."""
    found = {}
    for preset in PRESETS:
        if preset.endswith("_small"):
            found |= {repr(sorted(identity(job).items())): job for job in jobs(preset)}
    for number, job in enumerate(found.values()):
        records, labels = as_run(job)
        write_run(tmp_path / str(number), records, **labels)
    for name in SOURCES:
        table = load(name, tmp_path)
        labels = [label for panel in table.panels for label, _ in panel.rows] + [c for p in table.panels for c in p.columns]
        assert not [label for label in labels if "=" in label], name
