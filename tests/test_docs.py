"""What README and docs tell people to type exists: commands, options, config groups, settings and make targets."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentexp.config import Overrides
from agentexp.errors import MissingDependency

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CONFIGURED = ("eval", "explore", "map", "act", "wise-run", "train-sft", "train-grpo", "train-thinker")


def typed() -> Iterator[tuple[str, list[str]]]:
    """(page, words) of every line in a bash block that starts agentexp, comments and continuations joined away."""
    for page in PAGES:
        if page.name == "configuration.md":
            continue
        for block in re.findall(r"```bash\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True) if line.count("'") % 2 == 0 else []
                while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):  # variables before the command
                    words.pop(0)
                if words[:1] == ["agentexp"] and len(words) > 1:
                    yield page.relative_to(ROOT).as_posix(), words[1:]


LINES = sorted({(page, tuple(words)) for page, words in typed()})


def first_of_sweep(override: str) -> str:
    key, equals, value = override.partition("=")
    return f"{key}{equals}{value.split(',')[0]}" if equals and not value.startswith(("[", "{", "'")) else override


@pytest.mark.parametrize(("page", "words"), [pytest.param(p, w, id=f"{p}: {' '.join(w)}"[:90]) for p, w in LINES])
def test_what_is_typed_exists(page: str, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    import typer

    from agentexp.cli_app import app

    group = typer.main.get_command(app)
    command, rest = words[0], list(words[1:])
    assert command in group.commands, f"{page}: agentexp {command}"  # type: ignore[attr-defined]
    known = {name for parameter in group.commands[command].params for name in parameter.opts}  # type: ignore[attr-defined]
    options = [word.partition("=")[0] for word in rest if word.startswith("-")]
    assert set(options) <= known | {"--help"}, f"{page}: {options}"
    if command not in CONFIGURED or "--help" in options:
        return
    overrides = [word for word in rest if "=" in word and not word.startswith("-")]
    if "-m" in options or "--multirun" in options:
        overrides = [first_of_sweep(word) for word in overrides]
    overrides = [re.sub(r"\$\w+_URL", "http://127.0.0.1:1/v1", word) for word in overrides]
    overrides = [re.sub(r"\$\{?\w+\}?", "1", word) for word in overrides]
    settle(command, [word for word in overrides if not word.startswith("hydra")])


def settle(command: str, overrides: list[str]) -> None:
    """Compose the config as the command does and check every setting, as far as this machine's packages allow."""
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    from agentexp.launch import conf_dir, prepare

    if command == "wise-run":
        from agentexp.wise.command import aliased

        overrides = aliased(overrides)
    elif command.startswith("train-"):
        from agentexp.training.command import aliased as with_presets

        overrides = with_presets(command, overrides)
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        config = compose(command, prepare(overrides, multirun=False))
    plain = {str(key): value for key, value in OmegaConf.to_container(config, resolve=True).items()}  # type: ignore[union-attr]
    if command in ("eval", "explore", "map", "act") and not re.search(r"FOLDER|FILE|RUN|\.gguf", " ".join(overrides)):
        from agentexp.commands import make_run

        try:
            make_run(plain, Overrides.of(overrides))
        except MissingDependency as missing:
            pytest.skip(str(missing))


def test_there_is_something_to_check() -> None:
    assert len(LINES) > 30


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        for block in re.findall(r"```bash\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True) if line.count("'") % 2 == 0 else []
                if words[:1] == ["make"]:
                    named = {word for word in words[1:] if "=" not in word and not word.startswith("-")}
                    assert named <= targets, f"{page.name}: {line}"
