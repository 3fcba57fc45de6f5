"""ARC-AGI-3 as a world: turn-based games on a 64 x 64 grid whose rules and aims nobody tells.

One task is one game with all its levels. `success` is the game's own WIN; `score` is the share of levels completed (monotone, 1
exactly with success). RHAE, the benchmark's score, needs the actions of each level: they are in `Step.info["progress"]`, and
`agentexp.metrics.arc` computes it from a record. GAME_OVER is not the end: the agent can RESET the level.

The sources are our own games (default, offline), a folder of games, and the online API. Splits: see `catalog`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import Any, ClassVar, Literal

from agentexp.capabilities import Alignment, Checkpoint, CheckpointMatcher, Question
from agentexp.core import CognitiveMap, EnvCard, FactTracker, Policy, Step, Task
from agentexp.envs.arc_agi3 import actions, catalog, checkpoints, games, oracle, policies, questions, views
from agentexp.envs.arc_agi3.frames import Frame, Grid
from agentexp.envs.arc_agi3.online import Api, OnlineSession
from agentexp.envs.arc_agi3.sessions import LocalSession, Session, folder_game, own_game
from agentexp.envs.arc_agi3.shapes import things
from agentexp.envs.arc_agi3.tally import Tally
from agentexp.envs.arc_agi3.tracker import ArcTracker
from agentexp.errors import UserError
from agentexp.metrics.arc import PROGRESS
from agentexp.packages import version_of
from agentexp.paths import inside

LOGIC = "1"  # changes when one of our own games would play differently
MOST_CLICKS = 40  # positions that the list of actions offers
GOAL = "Complete all levels of the game with as few actions as you can."
UNSENT = "The game is over. Only RESET works now."


class ArcAgi3:
    """ARC-AGI-3 as an `Env`, with an expert, checkpoints and questions for our own games.

    Args:
        source: own | folder | online; null: folder where `games` is given, else own.
        games: folder of games, one folder each with metadata.json and the source (official games, or others in that form).
            Their code is executed in the worker processes with all your rights: use only what you trust.
        only: ids ("tu93" or "tu93-2b534c15") to which the splits of a folder or of the API are cut; null: all.
        view: what an observation shows, see `views`.
        cutoff: a level ends the game (lost) after this many times its human baseline in actions; null: no such end. It also
            gives each task its acting budget, the sum over the levels.
        allowance: actions that the first level allows beyond that: what a mapping phase may take (budget.mapping), which
            baselines without one get for acting.
        game_seed: handed to games that take a seed (official toolkit: 0).
        picture_scale: pixels of a cell's side in pictures.
        url: of the API.
        api_key_env: environment variable that holds the API's key.
        tags: of the scorecard that a worker opens online.
    """

    name = catalog.NAME
    alternative_splits = ("main6", "other19")  # selections of the test split of a folder or of the API
    card = EnvCard(
        intro="You are playing a turn-based game on a grid of 64 x 64 cells in 16 colours (written 0-9 and a-f). Neither its "
        "rules nor its aim are told: find them out. It has several levels; completing one leads to the next.",
        actions="ACTION1 | ACTION2 | ACTION3 | ACTION4 | ACTION5 | ACTION6 {x} {y} | ACTION7 | RESET",
        notes="x is the column and y the row, both 0 to 63 from the upper left corner. A game uses some of the actions and "
        "lists them; in most games ACTION1 to ACTION4 mean up, down, left, right, ACTION5 acts, ACTION6 clicks, ACTION7 takes "
        "back. RESET begins the level again; after GAME OVER nothing else works. Every action counts, RESET too. "
        "A line such as 8-11: 5*12 4*4 5*48 gives rows 8 to 11: colour 5 twelve times, colour 4 four times, and so on.",
        aliases=((r"(?i)action[ _]?6\W+x?\W*(\d+)\W+y?\W*(\d+)\W*", r"ACTION6 \1 \2"),),
        info_actions=r"(?!)",
        plays_on=True,
    )
    _listed: ClassVar[dict[str, list[dict[str, Any]]]] = {}  # games of a server, asked for once per process

    def __init__(
        self,
        source: Literal["own", "folder", "online"] | None = None,
        games: str | None = None,
        only: list[str] | None = None,
        view: views.View = "full",
        cutoff: float | None = 5.0,
        allowance: int = 30,
        game_seed: int = 0,
        picture_scale: int = 8,
        url: str = "https://three.arcprize.org",
        api_key_env: str = "ARC_API_KEY",
        tags: list[str] | None = None,
    ) -> None:
        self._source = source or ("folder" if games else "own")
        if self._source not in ("own", "folder", "online"):
            raise UserError(f"env.source={source} does not exist; choose own, folder or online.")
        if self._source == "folder" and not games:
            raise UserError("env.source=folder needs env.games=FOLDER, a folder of games.")
        if view not in views.VIEWS:
            raise UserError(f"env.view={view} does not exist; choose one of {', '.join(views.VIEWS)}.")
        if cutoff is not None and cutoff <= 0:
            raise UserError(f"env.cutoff={cutoff} must be greater than 0, or null for no cut-off.")
        if not 1 <= picture_scale <= 32:
            raise UserError(f"env.picture_scale={picture_scale} must be from 1 to 32.")
        self._folder = Path(games).expanduser() if games else None
        self._only, self._view, self._scale = list(only or ()), view, picture_scale
        self._cutoff, self._allowance, self._seed = cutoff, allowance, game_seed
        self._api = Api(url, api_key_env)
        self._tags = list(tags or ["agentexp"])
        self._open_card = ""
        self._session: Session | None = None
        self._tally = Tally((), 1)
        self._grid: Grid | None = None
        self._available: tuple[int, ...] = ()
        self._cut = False

    # --------------------------------------------------------------------------------------------------------- tasks

    def splits(self) -> Sequence[str]:
        """Names of the splits, see `catalog`."""
        return catalog.splits(self._source)

    def tasks(self, split: str) -> list[Task]:
        """Games of a split; train and dev are always our own. Nothing is executed. The API is asked where it is the source."""
        if split not in self.splits():
            raise UserError(f"env.split={split} does not exist in arc_agi3; choose one of {', '.join(self.splits())}.")
        if self._source == "own" or split in ("train", "dev"):
            return catalog.own_tasks(split, self._cutoff)
        if self._source == "folder":
            return catalog.folder_tasks(self._games_folder(), split, self._only, self._cutoff)
        if self._api.url not in self._listed:
            self._listed[self._api.url] = self._api.games()
        return catalog.online_tasks(self._listed[self._api.url], split, self._only, self._cutoff)

    def _games_folder(self) -> Path:
        if self._folder is None or not self._folder.is_dir():
            raise UserError(f"env.games={self._folder} is no folder; give one that holds a folder per game.")
        return self._folder

    def versions(self) -> dict[str, str]:
        """Engine, our games, source."""
        return {"arcengine": version_of("arcengine"), "arc_agi3_games": LOGIC, "arc_agi3_source": self._source}

    # ------------------------------------------------------------------------------------------------------- episode

    def reset(self, task: Task) -> Step:
        """A new play of the game, from its first level."""
        if self._session is not None:
            self._session.close()
        self._session = self._make(task)
        frame = self._session.start()
        self._tally = Tally([int(n) for n in task.spec.get("baseline", ())], max(frame.levels, 1))
        self._grid, self._available, self._cut = None, frame.available, False
        return self._answer(frame, completed=False, fresh=True, goal=GOAL)

    def step(self, action: str) -> Step:
        """Carry out one action; what is no action of the game is refused and not counted."""
        if self._session is None:
            raise UserError("arc_agi3: call reset before step.")
        parsed, reason = actions.parse(action, self._available)
        if parsed is None:
            return self._refused(reason)
        if self._tally.state in ("GAME_OVER", "WIN") and parsed.number != actions.RESET:
            # Not sent: the engine would answer an empty frame with no levels completed, which must not be read as lost levels.
            return self._refused(UNSENT if self._tally.state == "GAME_OVER" else "The game is won. RESET begins a new play.")
        frame = self._session.act(parsed)
        completed = self._tally.count(frame)
        fresh = parsed.number == actions.RESET or (completed and frame.state != "WIN")
        return self._answer(frame, completed=completed, fresh=fresh)

    def close(self) -> None:
        """Give up the game; online, close the scorecard."""
        if self._session is not None:
            self._session.close()
            self._session = None
        card, self._open_card = self._open_card, ""
        if card:
            self._api.close(card)

    def _make(self, task: Task) -> Session:
        spec = task.spec
        kind, game_id = str(spec.get("source", "own")), str(spec.get("game", task.id))
        if kind == "online":
            self._open_card = self._open_card or self._api.open(self._tags)
            return OnlineSession(self._api, self._open_card, game_id)
        if kind == "folder":
            folder, name = str(spec["folder"]), str(spec["class"])
            stems = (name.lower(), name, game_id)
            files = [inside(self._games_folder(), f"{folder}/{stem}.py", f"The code of game {game_id}") for stem in stems]
            return folder_game(next((f for f in files if f.is_file()), files[0]), name, game_id, self._seed)
        if game_id not in games.ALL:
            raise UserError(f"arc_agi3 has no game {game_id!r} of its own; choose one of {', '.join(games.ALL)}.")
        return own_game(game_id)

    def _answer(self, frame: Frame, *, completed: bool, fresh: bool, goal: str = "") -> Step:
        tally = self._tally
        before, shown = self._grid, frame
        if frame.grids:
            self._grid = frame.grids[-1]
        self._available = frame.available or self._available
        text = views.show(shown, before, tally.level + 1, view=self._view, completed=completed, fresh=fresh, scale=self._scale)
        won = frame.state == "WIN"
        if not won and self._spent():
            self._cut = True
            text += "\nThe actions that this level allows are used up."
        return Step(
            text,
            done=won or self._cut or self._won(),
            success=self._won(),
            score=tally.best() / tally.levels,
            admissible=self._admissible(),
            goal=goal,
            info={"frames": len(frame.grids), PROGRESS: tally.info()},
        )

    def _refused(self, reason: str) -> Step:
        tally = self._tally
        return Step(
            reason,
            done=self._won() or self._cut,
            success=self._won(),
            score=tally.best() / tally.levels,
            error=True,
            admissible=self._admissible(),
            info={"frames": 0, PROGRESS: tally.info()},
        )

    def _won(self) -> bool:
        return self._tally.best() == self._tally.levels

    def _spent(self) -> bool:
        """The present level has taken as many actions as it may."""
        level, baseline = self._tally.level, self._tally.baseline
        if self._cutoff is None or level >= len(baseline):
            return False
        extra = self._allowance if level == 0 else 0
        return self._tally.now.used[level] >= ceil(self._cutoff * baseline[level]) + extra

    def _admissible(self) -> tuple[str, ...]:
        """The actions of the game, clicks on one cell of each shape (smallest shapes first when there are too many)."""
        if self._tally.state in ("GAME_OVER", "WIN"):
            return ("RESET",)
        listed = [actions.name(number) for number in self._available if number != actions.CLICK]
        if actions.CLICK in self._available and self._grid is not None:
            found = things(self._grid)
            few = sorted(sorted(found, key=lambda s: s.size)[:MOST_CLICKS], key=lambda s: (s.y, s.x))
            listed += [str(actions.Action(actions.CLICK, *shape.at)) for shape in few]
        return tuple(listed)

    # -------------------------------------------------------------------------------------------------- capabilities

    def oracle(self) -> list[str]:
        """Actions from here to the end of one of our own games; after a mistake that cannot be undone it begins with RESET.

        Raises:
            UserError: the game is not ours.
        """
        board = self._board("An expert")
        return [] if self._won() else oracle.plan(board, self._tally.state == "GAME_OVER")

    def checkpoints(self, relevance: str = "task_closure") -> list[Checkpoint]:
        """See `HasCheckpoints` and `arc_agi3.checkpoints`."""
        if self._grid is None:
            raise UserError("arc_agi3: call reset before checkpoints.")
        if relevance not in ("task_closure", "all"):
            raise UserError(f"relevance={relevance} is unknown: choose task_closure or all.")
        if self._own() is None:
            return checkpoints.of_unknown_game(self._grid, self._available)
        return checkpoints.of_puzzle(self._board("A list").puzzle, relevance)

    def checkpoint_matcher(self) -> CheckpointMatcher:
        """See `arc_agi3.checkpoints.FrameMatcher`."""
        return checkpoints.FrameMatcher()

    def questions(self, seed: int) -> list[Question]:
        """See `HasQuestions` and `arc_agi3.questions`."""
        if self._grid is None:
            raise UserError("arc_agi3: call reset before questions.")
        board = self._own()
        return questions.questions(self._grid, board.puzzle if board else None, self._available, seed)

    def look_up(self, question: Question, known: CognitiveMap) -> str:
        """See `HasQuestions`."""
        return questions.look_up(question, known)

    def align(self, known: CognitiveMap) -> Alignment:
        """See `HasAlignment` and `arc_agi3.questions`."""
        if self._grid is None:
            raise UserError("arc_agi3: call reset before align.")
        return questions.align(self._grid, known)

    def fact_tracker(self) -> FactTracker:
        """See `ArcTracker`."""
        return ArcTracker()

    def policy(self, name: str, seed: int) -> Policy:
        """curious, mapuser, myopic, random, repetitive or systematic."""
        return policies.make(name, seed)

    def _own(self) -> Any:
        game = self._session.game if isinstance(self._session, LocalSession) else None
        return game if hasattr(game, "puzzle") else None

    def _board(self, what: str) -> Any:
        board = self._own()
        if board is None:
            raise UserError(
                f"{what} is there for our own games only (env.source=own), not for this one; choose another policy."
            )
        return board
