"""RHAE against the official toolkit: its calculator, its scorecard, and games played through its own wrapper."""

import random
import sys

import pytest

from agentexp.envs.arc_agi3.frames import Frame
from agentexp.envs.arc_agi3.tally import Tally
from agentexp.metrics.arc import PROGRESS, levels_of_episode, rhae, rhae_of_episode
from agentexp.metrics.rhae import rhae_game

scorecards = pytest.importorskip("arc_agi.scorecard", reason="needs the toolkit arc-agi (tests only)")
GAMES = 5000


def _official(human, used, done):
    calculator = scorecards.EnvironmentScoreCalculator()
    for i, (baseline, actions, completed) in enumerate(zip(human, used, done, strict=True), start=1):
        calculator.add_level(i, completed, actions, baseline)
    return calculator.to_score().score


def _game(rng):
    levels = rng.randint(1, 10)
    human = [rng.randint(1, 500) for _ in range(levels)]
    completed = rng.randint(0, levels)
    used = [max(1, round(h * rng.choice((0.2, 0.5, 0.9, 1.0, 1.1, 2.0, 5.0)) * rng.uniform(0.8, 1.2))) for h in human]
    used = [n if i < completed else rng.choice((0, n)) if i == completed else 0 for i, n in enumerate(used)]
    return human, used, [i < completed for i in range(levels)]


def test_equals_the_toolkits_calculator():
    rng = random.Random(0)
    for _ in range(GAMES):
        game = _game(rng)
        assert rhae_game(*game) == pytest.approx(_official(*game), abs=1e-9)


def test_never_exceeds_its_cap():
    rng = random.Random(1)
    for _ in range(GAMES):
        human, used, done = _game(rng)
        share = 100 * sum(i for i, won in enumerate(done, start=1) if won) / sum(range(1, len(done) + 1))
        capped = rhae_game(human, used, done)
        assert 0 <= capped <= share + 1e-9
        assert capped <= rhae_game(human, used, done, completion_cap=False) <= 1.15 * share + 1e-9
        assert rhae_game(human, used, done, mapping_actions=rng.randint(1, 30)) <= capped + 1e-9


def test_tally_equals_the_toolkits_scorecard():
    """Random plays: actions, level resets, full resets, wins and losses, as the engine would answer them."""
    from arc_agi.models import EnvironmentInfo
    from arcengine import ActionInput, FrameDataRaw, GameAction, GameState

    rng = random.Random(2)
    for _ in range(400):
        human = [rng.randint(1, 30) for _ in range(rng.randint(1, 6))]
        card, tally, guid = scorecards.Scorecard(card_id="c", api_key="k"), Tally(human, len(human)), "g"

        def answer(action, state, completed, full, card=card, guid=guid, human=human):
            frame = FrameDataRaw(game_id="own", guid=guid, full_reset=full, win_levels=len(human), levels_completed=completed)
            frame.state, frame.action_input = GameState(state), ActionInput(id=GameAction.from_id(action))
            card.update_scorecard(guid, frame, full)
            return Frame((b"",), state, completed, len(human), (1,), full)

        answer(0, "NOT_FINISHED", 0, True)  # the first RESET begins the first play: the world's own reset
        done, since, over = 0, 0, False
        for _ in range(rng.randint(1, 120)):
            if over or rng.random() < 0.05:
                full = since == 0
                done, since, over = 0 if full else done, 0, False
                tally.count(answer(0, "NOT_FINISHED", done, full))
                continue
            since += 1
            if rng.random() < 0.1:
                done, since = done + 1, 0
                state = "WIN" if done == len(human) else "NOT_FINISHED"
            else:
                over = rng.random() < 0.05
                state = "GAME_OVER" if over else "NOT_FINISHED"
            tally.count(answer(rng.randint(1, 6), state, done, False))
            if state == "WIN":
                break
        info = EnvironmentInfo(game_id="own", baseline_actions=human)
        official = scorecards.EnvironmentScorecard.from_scorecard(card, [info])
        assert rhae(tally.info()) == pytest.approx(official.score, abs=1e-9)
        assert tally.best() == official.environments[0].levels_completed


@pytest.mark.engine
def test_a_played_game_has_the_toolkits_score(tmp_path, monkeypatch, capfd):
    """Our games in the official form, played side by side by the toolkit's wrapper and by the world; equal scores."""
    sys.path.insert(0, str((__import__("pathlib").Path(__file__).resolve().parents[1]) / "envs"))
    from arc_agi import Arcade, OperationMode
    from arc_kit import write_game
    from arcengine import GameAction

    from agentexp.envs.arc_agi3 import ArcAgi3, actions

    for key in ("ONLY_RESET_LEVELS", "OPERATION_MODE", "ENVIRONMENTS_DIR"):
        monkeypatch.delenv(key, raising=False)
    for code in ("kd01", "cm01", "hz01"):
        write_game(tmp_path, code, f"{code[:2]}77-0000aaaa")
    arcade = Arcade(operation_mode=OperationMode.OFFLINE, environments_dir=str(tmp_path), recordings_dir=str(tmp_path / "r"))
    world = ArcAgi3(games=str(tmp_path), cutoff=None)
    for task in world.tasks("test"):
        rng = random.Random(task.id)
        theirs, step = arcade.make(task.id), world.reset(task)
        board = world._board("")
        for _ in range(250):
            if step.done:
                break
            expert = rng.random() < 0.6 and "RESET" not in step.admissible
            action = world.oracle()[0] if expert else rng.choice((*step.admissible, "RESET"))
            step = world.step(action)
            parsed, _ = actions.parse(action, board.puzzle.actions)
            frame = theirs.step(GameAction.from_id(parsed.number), {} if parsed.x is None else {"x": parsed.x, "y": parsed.y})
            assert frame.frame[-1].astype("int8").tobytes() == world._grid
        card = arcade.scorecard_manager.scorecards[theirs.scorecard_id]
        official = scorecards.EnvironmentScorecard.from_scorecard(card, arcade.available_environments)
        mine = rhae(step.info[PROGRESS])
        assert mine == pytest.approx(official.find_environment(task.id).score, abs=1e-9)
        assert mine > 0


def test_of_a_record():
    def step(phase, used, completed, **more):
        progress = {
            "state": "",
            "levels": 2,
            "completed": completed,
            "baseline": [10, 10],
            "plays": [{"used": used, "completed": completed}],
        }
        return {"phase": phase, "action": "ACTION1", "status": "ok", "info": {PROGRESS: progress}, **more}

    acting = [step("acting", [10, 0], 1), step("acting", [10, 20], 2), {"phase": "acting", "action": None, "status": "invalid"}]
    record = {"trajectory": [step("mapping", [8, 2], 1), *acting]}
    assert rhae_of_episode(record, count_mapping=False) == pytest.approx((1 * 100 + 2 * 25) / 3)
    assert rhae_of_episode(record) == pytest.approx((1 * 25 + 2 * 25) / 3)  # level 1 took 10 + 10 actions
    assert levels_of_episode(record) == (2, 2)
    hidden = [{"phase": "exploring", "action": "ACTION1", "status": "ok"}] * 10
    assert rhae_of_episode({"trajectory": [*hidden, *acting]}) == pytest.approx(25.0)
    assert rhae_of_episode({"trajectory": []}) is None
    assert levels_of_episode({"trajectory": hidden}) is None
