"""Our own games: solvable, with the baselines they state, and on the engine what their rules say."""

import random

import pytest

from agentexp.envs.arc_agi3 import ArcAgi3
from agentexp.envs.arc_agi3.frames import SIDE
from agentexp.envs.arc_agi3.games import ALL, DEV, TEST, TRAIN, make
from agentexp.envs.arc_agi3.games.paintbox import paint
from agentexp.metrics.arc import PROGRESS, rhae

pytest.importorskip("arcengine", reason="needs arcengine")
BAR = 62 * SIDE  # cells above the counter


@pytest.mark.parametrize("game_id", ALL)
def test_baselines_come_from_the_solver(game_id):
    puzzle = make(game_id)
    assert 3 <= len(puzzle.levels) <= 5
    assert puzzle.baseline == tuple(2 * len(puzzle.solution(level)) + 3 for level in range(len(puzzle.levels)))
    for level in range(len(puzzle.levels)):
        state, status = puzzle.start(level), "play"
        for move in puzzle.solution(level):
            assert status == "play"
            states, status = puzzle.apply(level, state, move)
            state = states[-1]
        assert status == "won"
        limit = puzzle.limit(level)
        assert limit is None or limit > len(puzzle.solution(level))


def test_mechanics_of_test_games_are_not_trained():
    assert not {kind.code for kind in TEST} & {kind.code for kind in (*TRAIN, *DEV)}
    assert len({kind.code for kind in (*TEST, *TRAIN, *DEV)}) == len((*TEST, *TRAIN, *DEV))


@pytest.mark.engine
@pytest.mark.parametrize("game_id", ALL)
def test_the_engine_shows_what_the_rules_say(game_id):
    """The expert wins, and each frame of the engine is the painted state, to the cell."""
    world, task = ArcAgi3(), next(t for t in _tasks() if t.id == game_id)
    step = world.reset(task)
    board = world._board("")
    assert world._grid[:BAR] == paint(board.puzzle, 0, board.state)[:BAR]
    plan = world.oracle()
    for action in plan:
        step = world.step(action)
        assert not step.error
        assert world._grid[:BAR] == paint(board.puzzle, board.level_index, board.state)[:BAR]
    assert step.success and step.done and step.score == 1.0
    assert len(plan) == sum(len(board.puzzle.solution(level)) for level in range(len(board.puzzle.levels)))
    assert rhae(step.info[PROGRESS]) == 100.0


def _tasks():
    world = ArcAgi3()
    turned = [t for split in world.splits() for t in world.tasks(split)]
    spec = turned[0].spec
    known = {t.id for t in turned}
    others = [game_id for game_id in ALL if game_id not in known]
    return turned + [_task(spec, game_id) for game_id in others]


def _task(spec, game_id):
    from agentexp.core import Task

    return Task(game_id, "arc_agi3", "test", spec={**spec, "game": game_id, "baseline": list(make(game_id).baseline)})


@pytest.mark.engine
@pytest.mark.parametrize("game_id", [t for t in ALL if "-" not in t])
def test_the_expert_wins_after_any_prefix(game_id):
    """After random actions, also after GAME OVER and in positions that cannot be won, where its plan begins with RESET."""
    world, task = ArcAgi3(cutoff=None), next(t for t in _tasks() if t.id == game_id)
    rng = random.Random(game_id)
    for _ in range(3):
        step = world.reset(task)
        for _ in range(rng.randrange(60)):
            if not step.done:
                step = world.step(rng.choice(step.admissible))
        if step.done:
            continue
        plan = world.oracle()
        assert plan == world.oracle()
        for action in plan:
            step = world.step(action)
            assert not step.error, (action, step.observation)
        assert step.success
