"""A key planted wherever a user can put one must be in no file of the run, on no page and on no line that is shown."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import pytest

VARIABLE, IN_BODY, NESTED, LISTED, SPELT = (
    "zq7Variable1zq7",
    "zq7Bodykey2zq7",
    "zq7Nested3zq7",
    "zq7Listed4zq7",
    "zq7Bearer5zq7",
)
PROXY, OTHER = "zq7Userinfo6zq7", "zq7Elsewhere7zq7"


class _Echo(BaseHTTPRequestHandler):
    """The least discreet server: every reply and every error repeats the request with all its headers."""

    count, every = 0, 3

    def do_GET(self) -> None:
        self._answer(200, {"data": [{"id": "echo"}]})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        fields = {name: value for name, value in json.loads(body).items() if name != "messages"}
        said = f"You sent {json.dumps(fields)} with {dict(self.headers)}"
        type(self).count += 1
        if self.count % self.every == 1:
            self._answer(400, {"error": {"message": said}})
            return
        message = {"role": "assistant", "content": f"Thought: {said}\nAction: look"}
        self._answer(200, {"choices": [{"message": message, "finish_reason": "stop"}]})

    def _answer(self, status: int, value: object) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@contextmanager
def echo_server(every: int = 3) -> Iterator[str]:
    """Address of a server that refuses the first of each `every` requests."""
    _Echo.count, _Echo.every = 0, every
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


def agentexp(*arguments: str, cwd: Path) -> str:
    """Everything that a command shows."""
    done = subprocess.run(
        [sys.executable, "-m", "agentexp", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={
            **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
            "HOME": str(cwd),
            "OPENAI_API_KEY": VARIABLE,
            "SOME_SERVICE_TOKEN": OTHER,
            "WANDB_API_KEY": "zq7" + "a1" * 20,
        },
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout + done.stderr


def planted(root: Path) -> list[str]:
    """Names of the files below `root` that hold a planted key; a page's blocks are inflated: their letters spell anything."""
    found = []
    for file in root.rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            for block in re.findall(rb"[A-Za-z0-9+/=]{200,}", data) if file.suffix == ".html" else []:
                if block.startswith(b"H4sI"):
                    data = data.replace(block, gzip.decompress(base64.b64decode(block)))
            if b"zq7" in data:
                found.append(str(file.relative_to(root)))
    return found


@pytest.mark.parametrize(
    "logger", ["none", pytest.param("wandb", marks=pytest.mark.skipif(not find_spec("wandb"), reason="no wandb"))]
)
def test_planted_keys_reach_no_file_no_page_and_no_line(tmp_path: Path, logger: str) -> None:
    with echo_server() as url:
        line = ["env=toy", "env.limit=4", "model=openai", "model.name=echo", f"model.base_url={url}", "paradigm=react"]
        line += [f"model.extra_body={json.dumps(EXTRA)}", f"logger={logger}", "progress=plain", "max_steps=3"]
        shown = agentexp("eval", *line, "--dry-run", cwd=tmp_path)
        shown += agentexp("eval", *line, cwd=tmp_path)
        shown += agentexp("eval", "-m", *line, "seed=0,1", cwd=tmp_path)
    (folder, _) = sorted(file.parent for file in tmp_path.rglob("manifest.json"))
    records = (folder / "episodes.jsonl").read_text()
    assert "You sent" in records and "refused the request" in records and "[removed]" in records
    assert (folder / "manifest.json").read_text().count("[removed]") >= 4
    shown += agentexp("view", str(folder), cwd=tmp_path)
    shown += agentexp("export", str(folder), "--format", "jsonl", cwd=tmp_path)
    assert planted(tmp_path) == []
    assert "zq7" not in shown, shown


@pytest.mark.slow
@pytest.mark.skipif(not (find_spec("torch") and find_spec("trl")), reason="pip install torch==2.13.0, then agentexp[train]")
@pytest.mark.parametrize("command", ["train-sft", "train-grpo", "train-thinker"])
def test_planted_keys_reach_no_training(tmp_path: Path, command: str) -> None:
    line = ["+experiment=smoke", *(["logger=wandb"] if find_spec("wandb") else [])]
    shown = agentexp(command, *line, "--dry-run", cwd=tmp_path) + agentexp(command, *line, cwd=tmp_path)
    assert list(tmp_path.glob("outputs/**/manifest.json"))
    assert planted(tmp_path) == []
    assert "zq7" not in shown, shown


EXTRA = {
    "key": IN_BODY,
    "safety": {"token": NESTED, "deeper": [{"authorization": f"Bearer {SPELT}"}, ["--api-key", LISTED]]},
    "callback": f"https://me:{PROXY}@example.org/hook?token={PROXY}",
}


@pytest.mark.parametrize("flags", [["--info", "all"], ["--info", "config"], ["--cfg", "all"], ["--cfg", "job", "-p", "model"]])
def test_what_hydra_shows_of_a_config_holds_no_key(tmp_path: Path, flags: list[str]) -> None:
    line = ["env=toy", "model=openai", "model.name=x", f"model.extra_body={json.dumps(EXTRA)}"]
    shown = agentexp("eval", *line, *flags, cwd=tmp_path)
    assert "[removed]" in shown and "zq7" not in shown, shown


def test_planted_keys_reach_no_cache_no_export_no_table_and_no_training_data(tmp_path: Path) -> None:
    """What is made of a run, and what runs of other kinds write: exploration, roles, WISE's vision model."""
    with echo_server(every=9) as url:
        endpoint = ["model=openai", "model.name=echo", f"model.base_url={url}", f"model.extra_body={json.dumps(EXTRA)}"]
        line = ["env=toy", "env.limit=2", *endpoint, "progress=plain", "max_steps=4"]
        shown = agentexp("eval", *line, "paradigm=react", "model.cache=cache/replies.sqlite", cwd=tmp_path)
        shown += agentexp("eval", *line, "paradigm=explore_then_act", cwd=tmp_path)
        shown += agentexp("eval", *line, "paradigm=ttexplore", cwd=tmp_path)
        shown += agentexp("explore", *line[:1], *line[2:], "explore.n_tasks=1", cwd=tmp_path)
        vision = ["vision=openai", "vision.model.name=echo", f"vision.model.base_url={url}", "vision.model.max_retries=0"]
        vision += [f"+vision.model.extra_body={json.dumps(EXTRA)}", "save_memory=1"]
        if find_spec("networkx") and find_spec("sklearn"):
            shown += agentexp("wise-run", "task=aba_sparse", "method=wise", "seeds=1", "steps=200", *vision, cwd=tmp_path)
            assert list(tmp_path.glob("outputs/wise-run/**/episodes.jsonl"))
        shown += agentexp("eval", *line, "paradigm=react", "--estimate", cwd=tmp_path)
    (first,) = tmp_path.glob("outputs/eval/toy/react/*")
    (second,) = tmp_path.glob("outputs/eval/toy/ttexplore/*")
    assert any(b"[removed]" in file.read_bytes() for file in (tmp_path / "cache").iterdir())
    for form in ("csv", "jsonl", "messages", "sharegpt", *(["parquet"] if find_spec("pyarrow") else [])):
        shown += agentexp("export", str(first), "--format", form, "--with-errors", cwd=tmp_path)
    for command in (
        ["compare", str(first), str(second)],
        ["view", str(first), "--compare", str(second)],
        ["report", "runs", "outputs", "--out", "tables"],
        ["collect", str(first), "--tokenizer", "characters"],
        ["doctor"],
    ):
        shown += agentexp(*command, cwd=tmp_path)
    assert "[removed]" in (first / "export" / "messages.jsonl").read_text()
    assert planted(tmp_path) == []
    assert "zq7" not in shown, shown


@pytest.mark.parametrize(
    "argument",
    [
        "model.extra_body={key: zq7Typed1zq7, x: [}",
        'model.extra_body=[{"token": "zq7Typed2zq7"}]',
        "model.api_key=zq7Typed3zq7",
        "+token=zq7Typed4zq7",
        "model.base_url=https://me:zq7Typed5zq7@host/v1",
        "model.base_url=https://host/v1?key=zq7Typed6zq7",
    ],
)
def test_messages_about_a_wrong_line_do_not_repeat_a_key(tmp_path: Path, argument: str) -> None:
    shown = agentexp("eval", "env=toy", "model=openai", "model.name=x", argument, cwd=tmp_path)
    assert "Error:" in shown and "zq7" not in shown


def test_a_rotated_key_leads_to_the_same_run_folder(tmp_path: Path) -> None:
    lines = []
    for key in ("zq7First1zq7", "zq7Second2zq7"):
        body = json.dumps({"token": key})
        shown = agentexp(
            "eval", "env=toy", "model=openai", "model.name=x", f"model.extra_body={body}", "--dry-run", cwd=tmp_path
        )
        lines.append(shown.split("Run folder: ")[1])
    assert lines[0] == lines[1]
