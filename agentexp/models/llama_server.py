"""llama.cpp's server for one GGUF file, by way of `xllamacpp`. Also a small command of its own.

    python -m agentexp.models.llama_server --port 8000 --parallel 4

serves the default weights as an OpenAI-compatible API (`model=openai model.base_url=http://127.0.0.1:8000/v1`).

`EmbeddedModel` runs the same command as a child process instead of loading the engine into the runner: an assertion or a crash
in native code then costs one model call and not the run, closing always works (destroying an engine of xllamacpp 2026.10 blocks
for ever, with the interpreter lock held, while a request is in flight), and all memory goes back to the system.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agentexp.errors import MissingDependency, UserError
from agentexp.models import weights

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
READY = "agentexp-llama-server ready at "


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How the engine is set up.

    Attributes:
        path: GGUF file.
        ctx: context of one slot in tokens.
        parallel: slots, each for one conversation at a time.
        threads: CPU threads.
        cache_mib: memory for conversations that have no slot now, in MiB.
        gpu_layers: layers on a GPU; -1 = as many as fit. Without effect in a CPU build.
        port: 0 = a free one.
        alias: model name that the API lists.
    """

    path: str
    ctx: int = 8192
    parallel: int = 1
    threads: int = 1
    cache_mib: int = 1024
    gpu_layers: int = -1
    port: int = 0
    alias: str = weights.NAME

    def command(self) -> list[str]:
        """The command line of a child process that ends with its standard input."""
        options = [f"--{name.replace('_', '-')}={value}" for name, value in asdict(self).items()]
        return [sys.executable, "-m", "agentexp.models.llama_server", *options, "--until-stdin-closes"]


def start_engine(settings: ServerSettings) -> Any:
    """Load the weights into this process and start the server; an `xllamacpp.Server` with its `listening_address`.

    Raises:
        MissingDependency: `xllamacpp` is not installed.
        UserError: the engine refuses the file or the settings, or the port is taken.
    """
    try:
        import xllamacpp
    except ImportError as error:
        raise MissingDependency(f"model=embedded needs the llama.cpp engine: {weights.INSTALL_ENGINE}") from error
    params = xllamacpp.CommonParams()
    params.model.path = settings.path
    params.model_alias = {settings.alias}
    params.n_ctx = settings.ctx * settings.parallel  # llama.cpp splits its context over the slots
    params.n_parallel = settings.parallel
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings.threads
    params.n_gpu_layers = settings.gpu_layers
    params.cache_ram_mib = settings.cache_mib
    # Flash attention on a CPU splits the history over the threads when it computes one token, so its rounding depends on their
    # number. Without it log-probabilities are the same to the last digit for 1 and 2 threads (measured).
    params.flash_attn_type = int(xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED)
    params.fit_params = False  # else it shrinks the context silently
    params.swa_full = True  # ranking goes back and forth over the newest tokens; a sliding window would forget them
    params.n_threads_http = max(64, settings.parallel + 8)  # waiting calls hold a thread each
    params.port = settings.port
    params.ui = False
    params.warmup = False
    params.verbosity = -1
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise UserError(
            f"The llama.cpp engine could not load {Path(settings.path).name} with a context of {settings.ctx} tokens in "
            f"{settings.parallel} slot(s) on port {settings.port}: {error}"
        ) from error


def main(arguments: list[str] | None = None) -> int:
    """Serve until interrupted, or until standard input closes."""
    parser = argparse.ArgumentParser(prog="python -m agentexp.models.llama_server", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--path", help="GGUF file; by default the packaged weights")
    for name, kind in ServerSettings.__annotations__.items():
        if name != "path":
            default = ServerSettings.__dataclass_fields__[name].default
            parser.add_argument(f"--{name.replace('_', '-')}", type=int if kind == "int" else str, default=default)
    parser.add_argument("--until-stdin-closes", action="store_true")
    options = vars(parser.parse_args(arguments))
    watch = options.pop("until_stdin_closes")
    if not watch:
        # Blocked before the engine starts its threads, which inherit the mask: a signal that one of them took would never wake
        # this thread. They wait in `sigwait`, also when they come before READY.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        options["path"] = str(weights.locate(options["path"]))
        engine = start_engine(ServerSettings(**options))
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{READY}{engine.listening_address}\n")
    sys.stdout.flush()
    if watch:
        while os.read(0, 4096):
            pass
    else:
        signal.sigwait(STOP_SIGNALS)
    # Not through the engine's destructor, which waits for requests in flight; there is nothing to save.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
