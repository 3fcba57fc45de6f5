"""The command line as a user meets it: every line here is a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agentexp.launch import prepare

TOY = ["env=toy", "model=scripted", "logger=none", "progress=off"]


def agentexp(*arguments: str, cwd: Path, code: int | None = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "agentexp", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
        env={"PATH": "/usr/bin:/bin", "HOME": str(cwd), "COLUMNS": "120", "PYTHONUTF8": "1"},
    )
    if code is not None:
        assert done.returncode == code, done.stdout + done.stderr
    return done


def the_run(root: Path) -> Path:
    (manifest,) = root.glob("**/manifest.json")
    return manifest.parent


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["eval", "paradgim=map"], ["paradgim", "paradigm"]),
        (["eval", "+max_stpes=3"], ["max_stpes", "max_steps"]),
        (["eval", "env=sciword"], ["sciword", "scienceworld", "textcraft"]),
        (["eval", "env=toyy"], ["Did you mean toy?"]),
        (["eval", *TOY, "seed=abc"], ["seed=abc", "whole number"]),
        (["eval", *TOY, "env.limt=3"], ["env.limt", "env.limit"]),
        (["eval", *TOY, "+env.limt=3"], ["env.limt", "limit"]),
        (["eval", *TOY, "env.limit=0"], ["env.limit"]),
        (["eval", *TOY, "env.split=tests"], ["tests", "train, dev, test"]),
        (["eval", *TOY, "model.policy=orcale"], ["orcale", "oracle"]),
        (["eval", *TOY, "paradigm=react", "paradigm.style=tiny"], ["paradigm.style=tiny", "full"]),
        (["eval", *TOY, "paradigm=react,map"], ["-m"]),
        (["eval", *TOY, "model.label=a,b"], ["'model.label=\"a,b\"'", "-m"]),
        (["eval", *TOY, "hydra.rum.dir=x"], ["Did you mean hydra.run.dir?", "--cfg hydra"]),
        (["eval", "frobnicate"], ["frobnicate", "key=value"]),
        (["eval", *TOY, "+experiment=nope"], ["nope"]),
        (["eval", "+experiment=wise_table1_small"], ["wise_table1_small", "agentexp wise-run"]),
        (["wise-run", "+experiment=demo"], ["demo", "agentexp eval"]),
        (["act", *TOY], ["maps"]),
        (["act", *TOY, "maps=null"], ["maps"]),
        (["evla", "env=toy"], ["evla", "eval"]),
        (["eval", *TOY, "paradigm=map", "+model@roles.extractr=scripted"], ["roles.extractr", "extractor"]),
        (["explore", *TOY, "env.split=test"], ["paradigm.split=train", "env.split"]),
        (["eval", "--config-dir", "nowhere", "env=toy"], ["nowhere"]),
        (["eval", *TOY, "env=null"], ["env=null", "textcraft"]),
        (["eval", *TOY, "budget=5"], ["budget=5", "paper"]),
        (["eval", *TOY, "~model"], ["model has no value"]),
        (["eval", *TOY, "=3"], ["=3", "key=value"]),
        (["eval", *TOY, "--resolve"], ["--resolve", "--cfg"]),
        (["eval", *TOY, "~env.step_timeout"], ["env.step_timeout", "not set"]),
        (["eval", *TOY, "env.step_timeout=0"], ["env.step_timeout", "greater than 0"]),
        (["eval", *TOY, "command=frobnicate"], ["frobnicate", "explore"]),
        (["eval", *TOY, "hydra/launcher=nope"], ["nope", "joblib"]),
        (["eval", *TOY, "++hydra.run.dri=x"], ["hydra.run.dri", "Did you mean hydra.run.dir?"]),
        (["eval", *TOY, "+hydra.foo=1"], ["hydra.foo", "--cfg hydra"]),
        (["eval", *TOY, "model@roles.extractor=scripted"], ["+model@roles.extractor=..."]),
        (["eval", *TOY, "+stopping=dual"], ["stopping=... without the +"]),
        (["eval", *TOY, "~env"], ["env.budget.mapping", "~"]),
        (["eval", *TOY, "wandb.mode=offline"], ["logger=wandb logger.mode=offline"]),
        (["eval", *TOY, "llm.model=x"], ["model.name"]),
        (["eval", *TOY, "output_root=/dev/null/x"], ["/dev/null/x", "output_root", "Not a directory"]),
    ],
)
def test_wrong_lines_get_one_sentence(arguments: list[str], words: list[str], tmp_path: Path) -> None:
    done = agentexp(*arguments, cwd=tmp_path, code=2)
    assert "Traceback" not in done.stderr
    assert "Error executing job with overrides" not in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 6
    for word in words:
        assert word in done.stderr
    assert not list(tmp_path.glob("**/episodes.jsonl"))


def test_values_may_be_json(tmp_path: Path) -> None:
    body = '{"top_k": 5, "deep": {"x-y": [true, null, "a=\'b\', c"]}}'
    model = ["model=openai", "model.name=x", f"model.extra_body={body}", 'model.stop=["\\n", "a, b"]']
    shown = agentexp("eval", "env=toy", *model, "--cfg", "job", cwd=tmp_path).stdout
    assert "top_k: 5" in shown
    for line in ("- true", "- null", "- a='b', c", "- a, b"):
        assert line in shown


def test_a_folder_that_is_gone_gets_one_sentence(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    line = f"{sys.executable} -m agentexp eval env=toy model=scripted --dry-run"
    done = subprocess.run(["sh", "-c", f"cd {gone} && rmdir {gone} && {line}"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no longer exists" in done.stderr
    assert "Traceback" not in done.stderr


def test_settings_of_the_runner_need_not_be_in_the_config_of_a_world(tmp_path: Path) -> None:
    shown = agentexp("eval", *TOY, "env.step_timeout=7", "--cfg", "job", cwd=tmp_path).stdout
    assert "step_timeout: 7" in shown


def test_help_lists_groups_and_their_choices(tmp_path: Path) -> None:
    mine = tmp_path / "mine" / "env"
    mine.mkdir(parents=True)
    (mine / "my_world.yaml").write_text("_target_: agentexp.envs.toy.ToyRooms\nsplit: test\nbudget: {mapping: 2, acting: 3}\n")
    text = agentexp("eval", "--config-dir", "mine", "--help", cwd=tmp_path).stdout
    for word in (
        "paradigm=",
        "react",
        "comap",
        "map",
        "alfworld",
        "textcraft",
        "scienceworld",
        "my_world",
        "stopping=",
        "--cfg",
    ):
        assert word in text


def test_cfg_job_and_dry_run_show_what_would_run(tmp_path: Path) -> None:
    shown = agentexp("eval", "env=toy", "max_steps=7", "--cfg", "job", cwd=tmp_path).stdout
    assert "max_steps: 7" in shown
    planned = agentexp("eval", *TOY, "paradigm=react", "max_steps=7", "--dry-run", cwd=tmp_path).stdout
    assert "max_steps: 7" in planned
    assert "at most 7 steps each" in planned
    assert not (tmp_path / "outputs").exists()


def test_max_steps_is_what_runs(tmp_path: Path) -> None:
    agentexp("eval", *TOY, "paradigm=react", "model.policy=random", "max_steps=7", "env.limit=3", cwd=tmp_path)
    run = the_run(tmp_path)
    assert json.loads((run / "manifest.json").read_text())["config"]["max_steps"] == 7
    records = [json.loads(line) for line in (run / "episodes.jsonl").read_text().splitlines()]
    assert len(records) == 3
    assert max(record["steps"] for record in records) <= 7
    assert any(record["steps"] == 7 for record in records)


def test_the_run_folder_is_the_last_line_and_a_second_call_runs_nothing(tmp_path: Path) -> None:
    first = agentexp("eval", *TOY, "paradigm=react", cwd=tmp_path)
    folder = tmp_path / first.stdout.strip().splitlines()[-1]
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["planned"], summary["finished"], summary["success_rate"]) == (8, 8, 1.0)
    before = (folder / "episodes.jsonl").read_bytes()
    second = agentexp("eval", *TOY, "paradigm=react", cwd=tmp_path)
    assert second.stdout.strip().splitlines()[-1] == first.stdout.strip().splitlines()[-1]
    assert "Nothing to do" not in first.stderr
    assert "Nothing to do: all 8 episodes were finished before." in second.stderr
    assert (folder / "episodes.jsonl").read_bytes() == before


def test_a_sweep_gives_one_run_per_job(tmp_path: Path) -> None:
    agentexp("eval", "-m", *TOY, "paradigm=react,comap,map", "env.limit=2", cwd=tmp_path)
    names = {json.loads(path.read_text())["paradigm"] for path in tmp_path.glob("outputs/eval/**/manifest.json")}
    assert names == {"react", "comap", "map"}


def test_a_bad_job_does_not_stop_a_sweep(tmp_path: Path) -> None:
    done = agentexp("eval", "-m", *TOY, "paradigm=react", "env.limit=2", "env.rooms=1,4", cwd=tmp_path, code=2)
    assert "env.rooms" in done.stderr
    assert len(list(tmp_path.glob("outputs/eval/**/summary.json"))) == 1


def test_the_jobs_of_a_sweep_are_one_group_of_wandb_runs(tmp_path: Path) -> None:
    """H05: without account and network."""
    pytest.importorskip("wandb")
    agentexp("eval", "-m", *TOY, "logger=wandb", "paradigm=react", "env.limit=1", "seed=0,1", cwd=tmp_path)
    files = list(tmp_path.glob("outputs/eval/**/offline-run-*/run-*.wandb"))
    assert len({file.name for file in files}) == 2
    groups = [set(re.findall(rb"sweep-[0-9a-f]{8}", file.read_bytes())) for file in files]
    assert len(groups[0]) == 1
    assert groups[0] == groups[1]


@pytest.mark.parametrize(
    "label", ["ckpt/epoch=3-step=9", "李明", "1e5", "a b", "Qwen/Qwen3-4B@rev", "007", "true", "it's #1 & more"]
)
def test_text_values_arrive_as_typed(label: str, tmp_path: Path) -> None:
    agentexp("eval", *TOY, "paradigm=react", "env.limit=1", f"model.label={label}", cwd=tmp_path)
    assert json.loads((the_run(tmp_path) / "manifest.json").read_text())["model"] == label


def test_artefacts_pass_between_commands_by_run_folder(tmp_path: Path) -> None:
    explored = agentexp("explore", *TOY, cwd=tmp_path).stdout.strip().splitlines()[-1]
    assert (tmp_path / explored / "kg.json").is_file()
    mapped = agentexp("map", *TOY, "env.limit=3", f"paradigm.k_g={explored}", cwd=tmp_path).stdout.strip().splitlines()[-1]
    acted = agentexp("act", *TOY, "env.limit=3", f"paradigm.k_g={explored}", f"maps={mapped}", cwd=tmp_path)
    records = [
        json.loads(line)
        for line in (tmp_path / acted.stdout.strip().splitlines()[-1] / "episodes.jsonl").read_text().splitlines()
    ]
    assert len(records) == 3
    assert all(record["steps_by_phase"].keys() == {"acting"} for record in records)
    assert all(record["notes"]["map_source"].startswith("saved:") for record in records)


def test_shards_of_one_command_line_share_a_run(tmp_path: Path) -> None:
    parts = [agentexp("eval", *TOY, "paradigm=react", f"shard={i}/3", cwd=tmp_path) for i in (1, 2, 3)]
    assert len({part.stdout.strip().splitlines()[-1] for part in parts}) == 1
    summary = json.loads((the_run(tmp_path) / "summary.json").read_text())
    assert (summary["planned"], summary["finished"], summary["partial"]) == (8, 8, False)
    whole = agentexp("eval", *TOY, "paradigm=react", cwd=tmp_path)
    assert "Nothing to do" in whole.stderr


def test_shards_at_once_share_stage_1_and_its_result_is_made_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "agentexp", "eval", *TOY, "paradigm=map", "env.limit=6"]
    shards = [subprocess.Popen([*command, f"shard={i}/2"], cwd=tmp_path, stdout=subprocess.DEVNULL) for i in (1, 2)]
    assert [shard.wait(120) for shard in shards] == [0, 0]
    (file,) = tmp_path.glob("outputs/eval/**/summary.json")
    summary = json.loads(file.read_text())
    assert (summary["planned"], summary["finished"]) == (6, 6)
    (setup,) = tmp_path.glob("outputs/explore/**/setup.jsonl")
    purposes = [json.loads(line)["purpose"] for line in setup.read_text().splitlines()]
    assert purposes.count("map_focus_analyzer") == 1


def test_stage_1_says_how_its_tasks_are_chosen(tmp_path: Path) -> None:
    limited = agentexp("explore", *TOY, "env.limit=2", cwd=tmp_path, code=2)
    assert "paradigm.n_tasks" in limited.stderr
    asked = agentexp("eval", *TOY, "paradigm=explore", cwd=tmp_path, code=2)
    assert "agentexp explore" in asked.stderr
    assert "leave env.split out" not in asked.stderr


def test_runs_with_and_without_a_role_share_one_exploration(tmp_path: Path) -> None:
    """A role that stage 1 does not ask is no part of its run, neither refused there nor recorded."""
    reader = ["+model@roles.reader=scripted", "roles.reader.label=other"]
    agentexp("eval", *TOY, *reader, "paradigm=map_qa", "paradigm.reader=model", "env.limit=2", cwd=tmp_path)
    agentexp("eval", *TOY, "paradigm=map", "env.limit=2", cwd=tmp_path)
    (explored,) = tmp_path.glob("outputs/explore/**/manifest.json")
    assert set(json.loads(explored.read_text())["model_versions"]) == {"actor"}


def test_parse_command(tmp_path: Path) -> None:
    replies = [
        {"id": "a", "content": "Action: look", "admissible": ["look"], "env": "alf"},
        {"id": "b", "content": None, "finish_reason": "length", "admissible": ["look"], "env": "alf"},
    ]
    (tmp_path / "replies.jsonl").write_text("\n".join(map(json.dumps, replies)))
    done = agentexp("parse", "replies.jsonl", cwd=tmp_path)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert results == [{"id": "a", "action": "look", "status": "ok"}, {"id": "b", "action": None, "status": "truncated"}]
    assert "missing.jsonl" in agentexp("parse", "missing.jsonl", cwd=tmp_path, code=2).stderr


def test_parse_stands_odd_bytes_and_a_reader_that_leaves(tmp_path: Path) -> None:
    (tmp_path / "odd").write_bytes(b'{"id": "\\ud800", "content": "Action: look", "admissible": ["look"]}\n')
    assert json.loads(agentexp("parse", "odd", cwd=tmp_path).stdout)["action"] == "look"
    (tmp_path / "binary").write_bytes(b"\xff\xfe\n")
    assert "Line 1" in agentexp("parse", "binary", cwd=tmp_path, code=2).stderr
    (tmp_path / "many").write_bytes((tmp_path / "odd").read_bytes() * 5000)
    command = f"{sys.executable} -m agentexp parse many | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_doctor_envs_and_models_answer(tmp_path: Path) -> None:
    assert "toy" in agentexp("envs", cwd=tmp_path).stdout
    assert "scripted" in agentexp("models", cwd=tmp_path).stdout
    assert "Python" in agentexp("doctor", cwd=tmp_path, code=None).stdout


def test_check_accepts_our_own_world(tmp_path: Path) -> None:
    assert "checks passed" in agentexp("check", "env=toy", cwd=tmp_path).stdout


def test_top_level_help_imports_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys, agentexp.cli as c\n"
        "try:\n    c.main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'hydra', 'omegaconf', 'pandas', 'numpy', 'openai', 'aiohttp', 'pydantic', 'textworld'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("[李,明]", ["李", "明"]),
        ("[a=b,x y]", ["a=b", "x y"]),
        ('["a, b", "\\n"]', ["a, b", "\\n"]),
        ("李,明", "李,明"),
        ("{a: 李}", "{a: 李}"),
    ],
)
def test_values_that_hydra_cannot_read_are_quoted(typed: str, value: object) -> None:
    from hydra.core.override_parser.overrides_parser import OverridesParser

    (line,) = prepare([f"model.stop={typed}"], multirun=False)
    assert OverridesParser.create().parse_override(line).value() == value
