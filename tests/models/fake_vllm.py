"""Stands in for the `vllm` program: `fake_vllm.py serve NAME --port P ...` in front of an OpenAI-compatible toy.

FAKE_VLLM=die ends at once, =slow never becomes healthy, =stubborn ignores SIGTERM and starts a child, =old knows no token ids.
"""

import json
import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

mode = os.environ.get("FAKE_VLLM", "")
arguments = sys.argv[1:]
assert arguments[0] == "serve"
name, port = arguments[1], int(arguments[arguments.index("--port") + 1])
born = time.monotonic()


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass

    def answer(self, data: object, status: int = 200) -> None:
        payload = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def do_GET(self) -> None:
        if self.path == "/health":
            self.answer({}, 503 if mode == "slow" or time.monotonic() - born < 0.3 else 200)
        else:
            self.answer({"data": [{"id": name}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = f"{arguments} {body['messages'][-1]['content']}"
        message = {"role": "assistant", "content": text}
        usage = {"prompt_tokens": 3, "completion_tokens": 2}
        choice = {"message": message, "finish_reason": "stop"}
        reply = {"choices": [choice], "model": name, "usage": usage}
        if body.get("return_token_ids") and mode != "old":
            reply["prompt_token_ids"] = list(body["messages"][-1]["content"].encode())
            choice |= {"token_ids": [5, 6], "logprobs": {"content": [{"logprob": -0.5}, {"logprob": -0.25}]}}
        self.answer(reply)


if mode == "die":
    sys.stderr.write("ValueError: no GPU here\n")
    sys.exit(3)
if mode == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)"])
ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
