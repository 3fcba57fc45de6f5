"""Prompt templates: the contract of the specification, overriding, compact twins, and only verbs that the worlds know."""

import importlib
import os
import re
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml

from agentexp.core import EnvCard
from agentexp.errors import UserError
from agentexp.paradigms.comap import CoMap
from agentexp.paradigms.map.paradigm import STOP_WORD
from agentexp.paradigms.react import ReAct
from agentexp.prompts import hashes, overridden, render

SHARED = Path(os.environ.get("AGENTEXP_SHARED", Path(__file__).resolve().parents[1].parent / "shared"))
SPEC = SHARED / "spec" / "prompts.yaml"
NAMES = {
    "react": "react/system",
    "comap": "comap/block",
    "map_focus_analyzer": "map/focus_analyzer",
    "map_explorer": "map/explorer",
    "map_reflector": "map/reflector",
    "map_distiller": "map/distiller",
    "map_mapping": "map/mapping",
    "map_extractor": "map/extractor",
    "map_act_block": "map/act_block",
    "map_qa": "map/qa",
    "eta_explore": "explore_then_act/explore",
    "eta_summarize": "explore_then_act/summarize",
    "eta_act_block": "explore_then_act/act_block",
    "ttx_thinker": "ttexplore/thinker",
    "reflexion_reflect": "reflexion/reflect",
}
ENVS = ["", "alfworld", "textcraft", "scienceworld", "arc_agi3", "somewhere_else"]
SLOTS: dict[str, Any] = {
    "intro": "<intro>",
    "frames": ["<frame>"],
    "actions": "<actions>",
    "notes": "<notes>",
    "format": "<format>",
    "examples": "<examples>",
    "knowledge": "<knowledge>",
    "demos": "<demos>",
    "max_points": 8,
    "max_items": 8,
    "focus_points": ["<focus>"],
    "reflections": ["<lesson>"],
    "goal": "<goal>",
    "reason": "<reason>",
    "trajectory": "<trajectory>",
    "trajectories": "<trajectories>",
    "previous": "<previous>",
    "k_g": "<k_g>",
    "task": "<task>",
    "goal_visible": True,
    "budget": 17,
    "stop_word": STOP_WORD,
    "stop_from": 3,
    "reset": True,
    "spatial": "<spatial>",
    "absent": "<absent>",
    "affordances": "<affordances>",
    "task_notes": "<task_notes>",
    "unknown": "<unknown>",
    "map": "<map>",
    "question": "<question>",
    "choices": ["yes", "no"],
    "summary": "<summary>",
    "max_words": 300,
    "init_observation": "<init_observation>",
    "history": "<history>",
    "score": 0.5,
    "step": 6,
    "deepthink": "<deepthink>",
    "past": ["<plan>"],
}


@pytest.mark.skipif(not SPEC.is_file(), reason="the specification is not beside the checkout")
@pytest.mark.parametrize("env", ENVS)
@pytest.mark.parametrize("entry", NAMES)
def test_contract_of_the_specification(entry: str, env: str) -> None:
    contract = yaml.safe_load(SPEC.read_text())[entry]
    text = render(NAMES[entry], env, **SLOTS)
    for must in contract["must"]:
        wanted = jinja2.Template(must).render(SLOTS)
        assert wanted in text, f"{entry} for {env or 'any world'} lacks {wanted!r}"
    own = {"env", "priorities", "avoid", "schema_hint", "k_g"}  # blocks of our templates, or optional there
    for slot in set(contract["slots"]) - own:
        value = SLOTS[slot]
        if isinstance(value, str):
            assert value in text, f"{entry} does not use {slot}"
    assert "\n\n\n" not in text and text == text.strip() and "{%" not in text and "{{" not in text


@pytest.mark.parametrize(
    "name", sorted({file.split(".")[0] for file in hashes()} - {"json/retry", "react/first", "react/next"})
)
def test_compact_twins_render_with_the_same_slots_and_are_shorter(name: str) -> None:
    full, compact = render(name, **SLOTS), render(name, style="compact", **SLOTS)
    assert len(compact) <= len(full)
    if f"{name}.compact.j2" in hashes() and "format" in name:
        assert "Action:" in compact


@pytest.mark.parametrize("env", ENVS)
def test_without_a_goal_no_mapping_or_extracting_prompt_has_one(env: str) -> None:
    for name in ("map/mapping", "map/extractor"):
        for style in ("full", "compact"):
            text = render(name, env, style=style, **{**SLOTS, "goal_visible": False})  # type: ignore[arg-type]
            assert "<task>" not in text and "task names" not in text and "task speaks" not in text


def test_worlds_have_their_own_priorities() -> None:
    texts = {env: render("map/mapping", env, **SLOTS) for env in ENVS}
    assert len(set(texts.values())) == len(ENVS) - 1 and texts[""] == texts["somewhere_else"]
    assert all(f'"{STOP_WORD}"' in text and "not before 3 actions" in text for text in texts.values())
    assert STOP_WORD not in render("map/mapping", **{**SLOTS, "stop_word": ""})


def verbs(card: EnvCard) -> set[str]:
    return {form.strip().split()[0] for form in card.actions.split("|") if form.strip()}


def card_of(env: str) -> EnvCard:
    """The card of a world, wherever its package keeps it; skips where the world is not there."""
    for name in (f"agentexp.envs.{env}", f"agentexp.envs.{env}.card", f"agentexp.envs.{env}.world"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        found = [getattr(value, "card", value) for value in vars(module).values()]
        if cards := [card for card in found if isinstance(card, EnvCard)]:
            return cards[0]
    pytest.skip(f"env={env} is not there, or it builds its card only when it is made")


@pytest.mark.parametrize("env", ["alfworld", "textcraft", "scienceworld"])
def test_every_command_that_a_prompt_quotes_is_known_to_its_world(env: str) -> None:
    """A grammar that moved (ALFWorld's "put X in Y" became "move X to Y") must not live on in a prompt."""
    known = verbs(card_of(env)) | {STOP_WORD.split()[0]}
    for name in ("map/mapping", "map/extractor", "map/act_block", "react/system", "comap/block", "map/explorer"):
        for style in ("full", "compact"):
            text = render(name, env, style=style, **{**SLOTS, "task": ""})  # type: ignore[arg-type]
            for quoted in re.findall(r'(?<![:\w] )"([a-z][a-z ]+)"(?=[^:]|$)', _without_json(text)):
                assert quoted.split()[0] in known, f"{name} quotes the command {quoted!r}"


def _without_json(text: str) -> str:
    """JSON samples and the names of its keys are no commands."""
    text = re.sub(r"\{[^\n]*\}", "", text)
    return re.sub(r'"(spatial|absent|affordances|task_notes|unknown|works|what|no change|anything)"', "", text)


@pytest.mark.parametrize("word", ["put", "toggle"])
def test_alfworld_prompts_do_not_use_the_old_grammar(word: str) -> None:
    for name in ("map/mapping", "map/extractor", "react/system"):
        text = render(name, "alfworld", **{**SLOTS, "task": ""})
        assert not re.search(rf"\b{word}(ting)? \w+ (in|on|in/on|into)\b", text)


def test_a_missing_slot_and_an_unknown_name_are_user_errors() -> None:
    with pytest.raises(UserError, match="react/system"):
        render("react/system", intro="i")
    with pytest.raises(UserError, match=r"no prompt template 'map/maping'\. Known: .*map/mapping"):
        render("map/maping")


def test_a_users_folder_is_searched_first_and_only_inside_the_block(tmp_path: Path) -> None:
    (tmp_path / "map").mkdir()
    (tmp_path / "map" / "mapping.j2").write_text("Mine.{% block priorities %}{% endblock %}")
    (tmp_path / "map" / "mapping.textcraft.j2").write_text("Craft.")
    before = hashes()
    with overridden(tmp_path):
        assert render("map/mapping", **SLOTS) == "Mine."
        assert render("map/mapping", "textcraft", **SLOTS) == "Craft."
        assert render("map/mapping", "alfworld", **SLOTS).startswith("Mine.1. Visit each place")
        assert render("map/qa", **SLOTS).startswith("Here is a map")
        changed = {name for name, value in hashes().items() if before[name] != value}
        assert changed == {"map/mapping.j2", "map/mapping.textcraft.j2"}
    assert hashes() == before and "Priorities" in render("map/mapping", **SLOTS)
    with overridden(None):
        assert hashes() == before


def test_mistakes_in_a_users_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"), overridden(tmp_path / "none"):
        pass
    (tmp_path / "map").mkdir()
    wrong = tmp_path / "map" / "maping.j2"
    wrong.write_text("x")
    with pytest.raises(UserError, match=r"No prompt is called like map/maping\.j2"), overridden(tmp_path):
        pass
    wrong.rename(tmp_path / "map" / "qa.j2")
    for text, message in (("{% if %}", "not a valid Jinja2 template"), ("{{ maap }}", "'maap' is undefined")):
        folder = tmp_path / str(len(text))
        (folder / "map").mkdir(parents=True)
        (folder / "map" / "qa.j2").write_text(text)
        with overridden(folder), pytest.raises(UserError, match=message):
            render("map/qa", **SLOTS)


def test_system_prompts_of_the_baselines() -> None:
    card = EnvCard("Intro.", "go {place} | look", "Notes.")
    for paradigm in (ReAct(), CoMap(), ReAct(form="think_answer"), ReAct(style="compact")):
        text = paradigm.system(card, "alfworld")
        assert card.actions in text and paradigm.format("alfworld") in text


def test_braces_in_texts_are_no_template_code() -> None:
    assert "{{ secret }}" in render("react/first", observation="{{ secret }}", goal="", admissible="", steps_left=None)
