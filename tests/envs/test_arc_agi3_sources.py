"""Games from a folder and from the online API (against a fake server)."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from arc_kit import write_game

from agentexp.core import Task
from agentexp.envs.arc_agi3 import ArcAgi3, catalog
from agentexp.envs.arc_agi3.frames import SIDE
from agentexp.envs.arc_agi3.online import Api
from agentexp.errors import EngineError, UserError
from agentexp.metrics.arc import PROGRESS, rhae


def _folder(tmp_path):
    write_game(tmp_path, "kd01", "tu93-1111aaaa")
    write_game(tmp_path, "lt01", "zz01-2222bbbb")
    write_game(tmp_path / "deeper", "gv01", "bp35-3333cccc")
    return tmp_path


def test_tasks_of_a_folder_execute_nothing(tmp_path):
    folder = _folder(tmp_path)
    for file in folder.rglob("*.py"):
        file.write_text("raise SystemExit('executed')")
    world = ArcAgi3(games=str(folder))
    assert [t.id for t in world.tasks("test")] == ["bp35-3333cccc", "tu93-1111aaaa", "zz01-2222bbbb"]
    assert [t.id for t in world.tasks("main6")] == ["tu93-1111aaaa"]
    assert [t.id for t in world.tasks("other19")] == ["bp35-3333cccc"]
    assert all("source" in t.spec and not str(t.spec.get("folder", "")).startswith("/") for t in world.tasks("test"))
    assert {t.spec["source"] for t in world.tasks("train")} == {"own"}
    assert [t.id for t in ArcAgi3(games=str(folder), only=["zz01"]).tasks("test")] == ["zz01-2222bbbb"]


def test_what_is_wrong_with_a_folder_is_said(tmp_path):
    for games, text in ((None, "env.games=FOLDER"), (str(tmp_path / "no"), "is no folder"), (str(tmp_path), "holds no game")):
        with pytest.raises(UserError, match=text):
            ArcAgi3(source="folder", games=games).tasks("test")
    write_game(tmp_path, "kd01", "zz01-2222bbbb")
    with pytest.raises(UserError, match="selects none"):
        ArcAgi3(games=str(tmp_path)).tasks("main6")
    with pytest.raises(UserError, match="selects none"):
        ArcAgi3(games=str(tmp_path), only=["tu93"]).tasks("test")
    (tmp_path / "zz01-2222bbbb" / "metadata.json").write_text("{")
    with pytest.raises(UserError, match="not readable JSON"):
        ArcAgi3(games=str(tmp_path)).tasks("test")


def test_published_baselines_fill_in():
    assert catalog.baseline_of({"game_id": "tu93-2b534c15"}) == [19, 15, 34, 42, 76, 91, 47, 23, 31]
    assert catalog.baseline_of({"game_id": "tu93-2b534c15", "baseline_actions": [1]}) == [1]
    assert catalog.baseline_of({"game_id": "tu93-other"}) == []  # another version: another baseline
    known = {catalog.short(game) for game in catalog.published_baselines()}
    assert set(catalog.MAIN6) | set(catalog.OTHER19) <= known
    assert (len(catalog.MAIN6), len(catalog.OTHER19)) == (6, 19)


@pytest.mark.engine
def test_a_game_of_a_folder_plays(tmp_path):
    world = ArcAgi3(games=str(_folder(tmp_path)))
    task = world.tasks("main6")[0]
    step = world.reset(task)
    assert "Level 1 of 4." in step.observation
    moved = world.step("ACTION4")
    assert not moved.error and "cells changed" in moved.observation
    assert world.checkpoints("all")
    (tmp_path / "tu93-1111aaaa" / "tu93.py").write_text("class Other: pass")
    with pytest.raises(UserError, match="no game class Tu93"):
        world.reset(task)


@pytest.mark.engine
def test_a_foreign_game_has_no_expert_but_checkpoints(tmp_path):
    write_game(tmp_path, "kd01", "zz01-2222bbbb")
    (tmp_path / "zz01-2222bbbb" / "zz01.py").write_text(
        "from arcengine import ARCBaseGame, Camera, Level, Sprite\n\n\n"
        "class Zz01(ARCBaseGame):\n"
        "    def __init__(self):\n"
        "        level = Level([Sprite([[9, 9], [9, 9]], 'me', 10, 10)])\n"
        "        super().__init__('zz01', [level, level.clone()], Camera(), available_actions=[1, 4])\n\n"
        "    def step(self):\n"
        "        me = self.current_level.get_sprites_by_name('me')[0]\n"
        "        if self.action.id.value == 4:\n"
        "            me.move(2, 0)\n"
        "        if me.x >= 16:\n"
        "            self.next_level()\n"
        "        self.complete_action()\n"
    )
    world = ArcAgi3(games=str(tmp_path))
    task = world.tasks("test")[0]
    world.reset(task)
    with pytest.raises(UserError, match="own games only"):
        world.oracle()
    assert {c.name for c in world.checkpoints()} == {"9 2x2", "ACTION1: any effect", "ACTION4: any effect"}
    answers = [world.step("ACTION4") for _ in range(6)]
    assert [a.score for a in answers] == [0, 0, 0.5, 0.5, 0.5, 1.0]
    assert answers[-1].success and "Level 1 is completed." in answers[2].observation


# ------------------------------------------------------------------------------------------------------------------ online


class _Server(ThreadingHTTPServer):
    """The protocol over one game: ACTION1 advances, three of them complete a level, ACTION2 loses; two levels."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen, self.plays, self.fail = [], {}, []
        self.closed = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *args):
        pass

    def _answer(self, data, code=200):
        body = json.dumps(data).encode()
        self.send_response(code)
        self.send_header("Set-Cookie", "sticky=1; Path=/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.server.seen.append(("GET", self.path, self.headers, None))
        if self.headers["X-API-Key"] != "secret":
            return self._answer({"error": "no"}, 401)
        return self._answer([{"game_id": "tu93-2b534c15", "title": "TU93"}, {"game_id": "zz99-1"}])

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append(("POST", self.path, self.headers, body))
        if self.server.fail:
            return self._answer({"error": "busy"}, self.server.fail.pop(0))
        if self.path == "/api/scorecard/open":
            return self._answer({"card_id": "card1"})
        if self.path == "/api/scorecard/close":
            self.server.closed.append(body["card_id"])
            return self._answer({"score": 0})
        name, plays = self.path.rpartition("/")[2], self.server.plays
        full = False
        if name == "RESET":
            guid = body.get("guid")
            full = guid is None
            if full:
                guid = f"guid{len(plays) + 1}"
                plays[guid] = [0, 0]
            plays[guid][0] = 0
            state = "NOT_FINISHED"
        else:
            guid, state = body["guid"], "NOT_FINISHED"
            play = plays[guid]
            if name == "ACTION1":
                play[0] += 1
                if play[0] == 3:
                    play[0], play[1] = 0, play[1] + 1
                    state = "WIN" if play[1] == 2 else state
            else:
                state = "GAME_OVER"
        at, done = plays[guid]
        grid = [[9 if x == at and y == 5 else 5 for x in range(SIDE)] for y in range(SIDE)]
        return self._answer(
            {
                **{"game_id": body["game_id"], "guid": guid, "frame": [grid], "state": state, "levels_completed": done},
                **{"win_levels": 2, "available_actions": [1, 2], "full_reset": full},
            }
        )


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("ARC_API_KEY", "secret")
    found = _Server()
    yield found
    found.shutdown()
    found.server_close()


def test_the_protocol(server):
    world = ArcAgi3(source="online", url=server.url)
    assert [t.id for t in world.tasks("test")] == ["tu93-2b534c15", "zz99-1"]
    task = Task("zz99-1", "arc_agi3", "test", spec={"source": "online", "game": "zz99-1", "baseline": [3, 3]})
    step = world.reset(task)
    assert "Level 1 of 2." in step.observation and step.admissible == ("ACTION1", "ACTION2")
    for action in ("ACTION1", "ACTION1", "ACTION1", "ACTION1", "ACTION2"):
        step = world.step(action)
    assert "GAME OVER" in step.observation and step.score == 0.5 and not step.done
    refused = world.step("ACTION1")
    assert refused.error and refused.score == 0.5
    for action in ("RESET", "ACTION1", "ACTION1", "ACTION1"):
        step = world.step(action)
    assert step.success
    assert step.info[PROGRESS]["plays"] == [{"used": [3, 6], "completed": 2}]
    assert rhae(step.info[PROGRESS]) == pytest.approx((100 + 2 * 25) / 3)
    world.reset(task)  # a new play on the same card
    world.close()
    world.close()
    assert server.closed == ["card1"] and len(server.plays) == 2
    sent = [(path, body) for method, path, _, body in server.seen if method == "POST"]
    assert sent[0] == ("/api/scorecard/open", {"tags": ["agentexp"]})
    assert sent[1] == ("/api/cmd/RESET", {"game_id": "zz99-1", "card_id": "card1"})
    assert sent[2] == ("/api/cmd/ACTION1", {"game_id": "zz99-1", "guid": "guid1"})
    assert sent[7] == ("/api/cmd/RESET", {"game_id": "zz99-1", "card_id": "card1", "guid": "guid1"})
    assert all(headers["X-API-Key"] == "secret" for _, _, headers, _ in server.seen)
    assert "sticky=1" in server.seen[-1][2]["Cookie"]


def test_clicks_carry_their_position(server):
    world = ArcAgi3(source="online", url=server.url)
    world.reset(Task("zz99-1", "arc_agi3", "test", spec={"source": "online", "game": "zz99-1", "baseline": []}))
    world._available = (1, 6)
    world.step("ACTION6 12 40")
    assert server.seen[-1][3] == {"game_id": "zz99-1", "guid": "guid1", "x": 12, "y": 40}


def test_only_refused_actions_are_sent_again(server):
    api = Api(server.url, "ARC_API_KEY", waits=(0.0, 0.0))
    server.fail = [429, 503]
    assert api.open(["x"]) == "card1"
    server.fail = [429]
    assert api.command("RESET", {"game_id": "g"})["guid"] == "guid1"
    server.fail = [500]
    with pytest.raises(EngineError, match="HTTP 500"):
        api.command("ACTION1", {"game_id": "g", "guid": "guid1"})


def test_keys_and_servers_that_do_not_work(server, monkeypatch):
    monkeypatch.setenv("OTHER_KEY", "wrong")
    with pytest.raises(UserError, match="refuses the key in OTHER_KEY"):
        ArcAgi3(source="online", url=server.url + "/", api_key_env="OTHER_KEY").tasks("test")
    monkeypatch.delenv("ARC_API_KEY")
    with pytest.raises(UserError, match="ARC_API_KEY"):
        ArcAgi3(source="online", url="http://127.0.0.1:9").tasks("test")
    monkeypatch.setenv("ARC_API_KEY", "secret")
    with pytest.raises(EngineError, match="no usable answer"):
        ArcAgi3(source="online", url="http://127.0.0.1:9").tasks("test")
    assert [t.id for t in ArcAgi3(source="online", url="http://127.0.0.1:9").tasks("train")]  # our own: no server
