"""Hydra under a Typer command: `launch` runs `hydra.main` and turns Hydra's errors into one short sentence, exit code 2.

Hydra keeps all its features (overrides, multirun, launchers, --cfg, --info, --config-dir); this module only prepares values
that Hydra's grammar cannot read and names the nearest valid choice when something does not exist.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO, cast

from agentexp.config import ENV_KEYS, fingerprint, nearest
from agentexp.errors import FatalError, UserError
from agentexp.output import Guarded
from agentexp.scrub import remember_overrides

_OPEN = tuple(
    f"hydra.{name}" for name in ("launcher", "sweeper", "callbacks", "hydra_logging", "job_logging", "job.env", "job.config")
)
"""Settings of Hydra's whose parts it does not fix."""

_ELSEWHERE = {
    "wandb": "Those of W&B are in logger: logger=wandb logger.mode=offline.",
    "llm": "Those of the language model are in model: model=openai model.name=... model.base_url=...",
}
"""What other programs call groups of ours."""


@dataclass(frozen=True, slots=True)
class HydraFlags:
    """Hydra's own command-line flags, as declared by every running command."""

    multirun: bool = False
    cfg: str | None = None
    package: str | None = None
    resolve: bool = False
    info: str | None = None
    config_dir: str | None = None
    config_name: str | None = None


def conf_dir() -> Path:
    """The shipped configs: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parent
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


def groups(config_dir: str | None = None) -> dict[str, list[str]]:
    """Config groups and their choices, from the shipped configs and the user's own folder."""
    found: dict[str, set[str]] = {}
    for root in [conf_dir(), *([Path(config_dir)] if config_dir else [])]:
        for file in sorted(root.glob("*/*.yaml")):
            found.setdefault(file.parent.name, set()).add(file.stem)
    return {name: sorted(choices) for name, choices in sorted(found.items())}


def launch(
    command: str, overrides: Sequence[str], flags: HydraFlags, job: Callable[[Any], int], default_config: str | None = None
) -> int:
    """Run `job(config)` under Hydra, once or for every job of a sweep.

    Returns:
        The exit code: the job's, or that of the first job of a sweep that was not 0.

    Raises:
        UserError: the overrides or configs do not fit together.
    """
    import hydra
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from agentexp import sweep

    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise UserError("The current folder no longer exists. Change to another one (cd) and try again.") from error
    remember_overrides(overrides)
    config_name = flags.config_name or default_config or command
    prepared = prepare(list(overrides), multirun=flags.multirun)
    _check_added(prepared, config_name)
    arguments = [*prepared, f"hydra.job.name={command}"]
    for flag, value in (
        ("--config-dir", flags.config_dir),
        ("--cfg", flags.cfg),
        ("--package", flags.package),
        ("--info", flags.info),
    ):
        if value is not None:
            arguments = [flag, value, *arguments]
    if flags.resolve:
        arguments.insert(0, "--resolve")
    if flags.multirun:
        arguments.insert(0, "--multirun")

    codes: list[int] = []
    refused: list[Exception] = []
    interrupted: list[int] = []
    name = f"sweep-{fingerprint(list(overrides))}"
    elsewhere = sweep.launcher(overrides)
    if flags.multirun:
        arguments += sweep.settings(overrides, name)

    def task(config: Any) -> None:  # launchers send it to other processes: it must hold nothing that cannot be pickled
        if interrupted:
            raise SystemExit(128 + interrupted[0])
        if flags.multirun:
            sweep.run_job(job, config, name)
            return
        try:
            codes.append(job(config))
        except (UserError, FatalError, OmegaConfBaseException) as error:  # raised below: Hydra would print all overrides
            refused.append(error)

    shows = flags.cfg or flags.info  # Hydra prints the config itself
    full = os.environ.get("HYDRA_FULL_ERROR") == "1"
    saved_argv = sys.argv
    sys.argv = [f"agentexp {command}", *arguments]
    os.environ["HYDRA_FULL_ERROR"] = "1"  # so that errors reach us instead of ending the process inside Hydra
    watch = (sweep.with_children() if elsewhere else sweep.between_jobs(interrupted)) if flags.multirun else nullcontext()
    try:
        with watch, redirect_stdout(cast(TextIO, Guarded(sys.stdout, cleans=True))) if shows else nullcontext():
            hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name=config_name)(task)()
        if interrupted:
            return 128 + interrupted[0]
        if refused:
            raise refused[0]
        return sweep.tell() if flags.multirun and not shows else sum(codes)
    except (HydraException, OmegaConfBaseException) as error:
        if full:
            raise
        raise UserError(explain(error, overrides, config_name, flags)) from error
    except Exception as error:
        about_flags = f"{error}." if str(error).startswith("Only one of --") or "--resolve" in str(error) else ""
        text = (_not_a_choice(prepared, flags) or about_flags) if isinstance(error, ValueError) else ""
        if text:
            raise UserError(text) from error
        if full or not elsewhere:  # jobs in this process raise nothing: it is a defect, or a refusal from above
            raise
        return sweep.tell(error)
    finally:
        sys.argv = saved_argv
        os.environ.pop(sweep.SWEEP_VARIABLE, None)
        if not full:
            os.environ.pop("HYDRA_FULL_ERROR", None)


def prepare(overrides: Sequence[str], *, multirun: bool) -> list[str]:
    """Rewrite what Hydra's grammar cannot read: values with "=", other alphabets, "#", JSON; `experiment=x` lacks its +."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    parser = OverridesParser.create()

    def readable(text: str) -> bool:
        try:
            parser.parse_override(text)
        except HydraException:
            return False
        return True

    result = []
    for override in overrides:
        if override.startswith("experiment="):
            override = "+" + override
        key, equals, value = override.partition("=")
        if (not equals and not key.startswith("~")) or not key.lstrip("+~"):
            raise UserError(f"'{override}' is not an override. Write key=value, for example env.limit=10.{_command_hint(key)}")
        if key.startswith("env.") and key.removeprefix("env.") in ENV_KEYS:
            override = "++" + override  # every world has these settings, and few configs list them all
            key = "++" + key
        if not readable(override):
            listed = not multirun and re.fullmatch(r"\[[^\[\]]*\]", value) is not None
            parts = value[1:-1].split(",") if listed else value.split(",") if multirun else [value]
            quoted = ",".join(part if readable(f"{key}={part}") else _quote(part) for part in parts)
            override = f"{key}={_from_json(value) or (f'[{quoted}]' if listed else quoted)}"
            if not readable(override):
                raise UserError(
                    f"The value of '{key}' cannot be read: {value}. Quote it for your shell, for example "
                    f"""'{key}="{value}"', or put it into a config file."""
                )
        result.append(override)
    return result


def _check_added(overrides: Sequence[str], config_name: str) -> None:
    """Refuse added settings of Hydra's own that it would carry along unread (`+hydra.run.dri=x`).

    Raises:
        UserError: it names the nearest one that exists.
    """
    added = [key.lstrip("+") for key, _, _ in (override.partition("=") for override in overrides) if key.startswith("+")]
    asked = [key for key in added if key.startswith("hydra.") and not key.startswith(_OPEN)]
    known = known_keys(config_name) if asked else set()
    for key in asked:
        if known and key not in known:
            own = [name for name in known if name.startswith("hydra.")]
            hint = f"`agentexp {config_name} --cfg hydra` shows all."
            raise UserError(f"'{key}' is not a setting of Hydra's.{nearest(key, own)} {hint}")


def _quote(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _from_json(value: str) -> str:
    """A JSON object or list in Hydra's grammar, whose keys have no quotes; empty for any other text."""
    try:
        found = json.loads(value)
    except ValueError:
        return ""

    def write(node: Any) -> str:
        if isinstance(node, dict):
            return "{" + ",".join(f"{key}:{write(item)}" for key, item in node.items()) + "}"
        if isinstance(node, list):
            return "[" + ",".join(map(write, node)) + "]"
        return _quote(node) if isinstance(node, str) else json.dumps(node)

    return write(found) if isinstance(found, (dict, list)) else ""


def _not_a_choice(overrides: Sequence[str], flags: HydraFlags) -> str:
    """A sentence about a group that is given no name (`env=null`, `budget=5`), for which Hydra has no error of its own."""
    from hydra.core.override_parser.overrides_parser import OverridesParser

    parser, choices = OverridesParser.create(), groups(flags.config_dir)
    for override in overrides:
        group, _, value = override.partition("=")
        parsed = parser.parse_override(override)
        if group.lstrip("+") in choices and not (parsed.is_sweep_override() or isinstance(parsed.value(), (str, list, dict))):
            valid = choices[group.lstrip("+")]
            return f"{group}={value} is not a choice. Choices of {group.lstrip('+')}: {', '.join(valid)}."
    return ""


def _command_hint(word: str) -> str:
    return " Options start with --." if word.startswith("-") else ""


def explain(error: Exception, overrides: Sequence[str], config_name: str, flags: HydraFlags) -> str:
    """One or two sentences for the user out of Hydra's error."""
    text = str(error)
    cause = str(error.__cause__) if error.__cause__ else ""
    choices = groups(flags.config_dir)
    missing = re.search(r"(?:Could not find|Could not load|In '[^']*': Could not find) '([^']+)'", text)
    if missing and "/" in missing.group(1):
        group, _, choice = missing.group(1).rpartition("/")
        valid = choices.get(group) or re.findall(r"^\t(\S+)$", text, re.MULTILINE)  # the second: Hydra's own groups
        return f"{group}={choice} is not a choice.{nearest(choice, valid)} Choices of {group}: {', '.join(valid) or 'none'}."
    if "Cannot find primary config" in text:
        roots = sorted(file.stem for file in conf_dir().glob("*.yaml"))
        return f"There is no config named '{config_name}'.{nearest(config_name, roots)} Choices: {', '.join(roots)}."
    key_match = re.search(r"Could not (?:override|append to config|delete)[^']*'([^']+)'", text) or re.search(
        r"Key '([^']+)' is not in struct", text + cause
    )
    if key_match:
        whole = key_match.group(1).lstrip("+")
        key = whole.partition("@")[0]
        keys = known_keys(config_name) | set(choices)
        if "@" in whole and key in choices:
            return f"There is no {whole} in the chosen configs yet. Add it with +{whole}=..."
        if key in keys:
            return f"'{key}' is not set in the chosen configs. Add it with +{key}=..., or leave it away instead of removing it."
        shown = "hydra" if key.startswith("hydra.") else "job"
        if elsewhere := _ELSEWHERE.get(key.partition(".")[0]):
            return f"'{key}' is not a setting. {elsewhere}"
        return f"'{key}' is not a setting.{nearest(key, keys)} `agentexp {config_name} --cfg {shown}` shows all settings."
    if "To use --multirun" in text or "sweep" in text.lower() or "multirun" in text.lower():
        swept = next((o for o in overrides if "," in o), "")
        key, _, value = swept.partition("=")
        hint = f""" To give one text with a comma, quote it: '{key}="{value}"'.""" if swept else ""
        return f"Several values for one setting need -m (--multirun).{hint}"
    if twice := re.search(r"(\S+) appears more than once in the final defaults list", text):
        return f"{twice[1]} is chosen already: write {twice[1]}=... without the +."
    if gone := re.search(r"Interpolation key '([\w.]+)' not found", text):
        return f"Other settings take their values from {gone[1]}, which is not set. Set it, and do not remove it with ~."
    if "Missing mandatory value" in text or "???" in text:
        name = re.search(r"value: ([\w.]+)", text)
        return f"{name.group(1) if name else 'A setting'} has no value; set it on the command line. {text.splitlines()[0]}"
    first = " ".join(line.strip() for line in text.splitlines() if line.strip())
    return first + (f" ({cause.splitlines()[0]})" if cause else "")


def known_keys(config_name: str) -> set[str]:
    """All keys of the default config of a command and of Hydra's own, dotted; empty when it does not compose."""
    from hydra import compose, initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from hydra.errors import HydraException
    from omegaconf import OmegaConf

    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(conf_dir()), version_base="1.3"):
            config = OmegaConf.to_container(compose(config_name, return_hydra_config=True), resolve=False)
    except HydraException:
        return set()
    keys: set[str] = set()

    def walk(node: Any, prefix: str) -> None:
        if isinstance(node, dict):
            for key, value in node.items():
                name = f"{prefix}{key}"
                keys.add(name)
                walk(value, name + ".")

    walk(config, "")
    return keys
