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

    count = 0

    def do_GET(self) -> None:
        self._answer(200, {"data": [{"id": "echo"}]})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        fields = {name: value for name, value in json.loads(body).items() if name != "messages"}
        said = f"You sent {json.dumps(fields)} with {dict(self.headers)}"
        type(self).count += 1
        if self.count % 3 == 1:
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
def echo_server() -> Iterator[str]:
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
    extra = {
        "key": IN_BODY,
        "safety": {"token": NESTED, "deeper": [{"authorization": f"Bearer {SPELT}"}, ["--api-key", LISTED]]},
        "callback": f"https://me:{PROXY}@example.org/hook?token={PROXY}",
    }
    with echo_server() as url:
        line = ["env=toy", "env.limit=4", "model=openai", "model.name=echo", f"model.base_url={url}", "paradigm=react"]
        line += [f"model.extra_body={json.dumps(extra)}", f"logger={logger}", "progress=plain", "max_steps=3"]
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
