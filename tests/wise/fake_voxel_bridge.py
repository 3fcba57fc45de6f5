"""Stands in for node in the tests of the voxel world's Python side: the same JSON lines, a flat field with one wall.

Started as `python fake_voxel_bridge.py [MODE]`; modes: "" (works), "dies" (ends at the third act), "hangs" (answers no act),
"garbage" (answers an act with no JSON), "child" (starts a process of its own that would outlive it), "deaf" (ignores its
standard input's end, as a hanging engine does).
"""

import base64
import json
import math
import os
import shutil
import struct
import subprocess
import sys
import threading
import time

SIZE = 16


def leave() -> None:
    """As node does: remove the folder for temporary files, end the group."""
    shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)
    os.killpg(os.getpgrp(), 9)


def watch() -> None:
    """The same lifeline as node's."""
    descriptor = int(os.environ["AGENTEXP_LIFELINE"])

    def wait() -> None:
        os.read(descriptor, 1)
        leave()

    threading.Thread(target=wait, daemon=True).start()


def column(x: int, z: int, size: int) -> dict[str, object]:
    """Ground at 64; a trunk at (20, 20); water at x = 30."""
    ground, top, kind = [], [], []
    for i in range(SIZE):
        for j in range(SIZE):
            trunk = (x + i, z + j) == (20, 20)
            ground.append(64)
            top.append(68 if trunk else 64)
            kind.append(3 if trunk else 1 if x + i == 30 else 0)
    pack = lambda form, values: base64.b64encode(struct.pack(f"<{len(values)}{form}", *values)).decode()  # noqa: E731
    return {"x": x, "z": z, "ground": pack("h", ground), "top": pack("h", top), "kind": pack("B", kind)}


def main(mode: str) -> None:
    """Serve requests until the input ends."""
    watch()
    if mode == "child":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        sys.stderr.write(f"child {child.pid}\n")
        sys.stderr.flush()
    x, z, yaw, pitch, acts, size = 16.5, 16.5, 0.0, 0.0, 0, 32
    inventory = {"bucket": 1}
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, object] = {"id": request["id"]}
        op = request["op"]
        if op == "reset":
            size = request["size"]
            x, z, yaw, acts = 16.5, 16.5, 0.0, 0
            answer["versions"] = {"node": "v0"}
            answer["origin"] = [0, 0]
            answer["columns"] = [column(i, j, size) for i in range(-16, size + 16, SIZE) for j in range(-16, size + 16, SIZE)]
            answer["inventory"] = inventory
        elif op == "act":
            acts += 1
            if mode == "dies" and acts == 3:
                sys.stderr.write("boom\n")
                os._exit(7)
            if mode == "hangs":
                time.sleep(600)
            if mode == "garbage":
                sys.stdout.write("[1, 2\n")
                sys.stdout.flush()
                continue
            yaw -= math.radians(request["turn"])
            pitch -= math.radians(request["look"])
            x -= 0.2 * request["forward"] * math.sin(yaw)
            z -= 0.2 * request["forward"] * math.cos(yaw)
            if request["attack"]:
                answer["inventory"] = {"bucket": 1, "oak_log": acts}
        elif op == "command":
            answer |= {"error": f"no command {request['text']}", "user": True} if request["text"] == "nonsense" else {}
        elif op == "truth":
            answer["columns"] = [column(i, j, size) for i in range(-16, size + 16, SIZE) for j in range(-16, size + 16, SIZE)]
            answer["things"] = [{"name": "oak_log", "x": 20.5, "y": 64, "z": 20.5}]
        answer |= {"position": [x, 64.0, z], "yaw": yaw, "pitch": pitch, "collided": False, "ground": True}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    if mode == "deaf":
        time.sleep(600)
    leave()


main(sys.argv[1] if len(sys.argv) > 1 else "")
