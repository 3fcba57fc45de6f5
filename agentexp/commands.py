"""From a composed config to a run: what `agentexp eval`, `explore`, `map`, `act` and `check` do."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from agentexp import targets
from agentexp.config import (
    Overrides,
    RootSettings,
    build,
    check_root,
    check_value,
    checked,
    nearest,
    parse_shard,
    split_env,
    split_model,
)
from agentexp.core import Env, Model, Paradigm
from agentexp.effects import check_caps, warn_of_unread
from agentexp.errors import UserError
from agentexp.kinds import check_component
from agentexp.rollout import Budget
from agentexp.scrub import clean_logging, remember, remember_environment, scrub

if TYPE_CHECKING:
    from agentexp.runner import Run

Config = dict[str, Any]


@runtime_checkable
class ChecksEnv(Protocol):
    """A model that works with some worlds only (scripted policies)."""

    def check(self, env: Env) -> None:
        """Raises `UserError` when it cannot act in this world."""
        ...


# Components that a command does not use: they must not change its folder, so that runs find each other's results.
UNUSED = {"explore": ("explore", "stopping"), "map": (), "eval": (), "act": ("stopping", "explore"), "check": ()}


def run_job(*, dry_run: bool = False, estimate: bool = False) -> Callable[[Any], int]:
    """The job of a running command; returns the exit code."""

    def job(node: Any) -> int:
        from agentexp.prompts import overridden
        from agentexp.runner import run_sync

        config, overrides = resolved(node)
        folder = check_value(config.get("prompts"), str | None, "prompts", overrides)
        with overridden(folder) if folder else nullcontext():
            run = make_run(config, overrides)
            if dry_run:
                show_plan(run)
            if estimate:
                show_costs(config, overrides)
            return 0 if dry_run or estimate else run_sync(run)[1]

    return job


def resolved(node: Any) -> tuple[Config, Overrides]:
    """The config as plain Python with interpolations resolved, and the overrides as typed.

    Raises:
        UserError: a mandatory value is missing or an interpolation leads nowhere.
    """
    from hydra.core.hydra_config import HydraConfig
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    overrides = Overrides.of(HydraConfig.get().overrides.task) if HydraConfig.initialized() else Overrides()
    missing = sorted(OmegaConf.missing_keys(node))
    if missing:
        raise UserError(f"{missing[0]} has no value. Set {missing[0]}=... on the command line.")
    try:
        config = OmegaConf.to_container(node, resolve=True)
    except OmegaConfBaseException as error:
        raise UserError(f"The config does not resolve: {str(error).splitlines()[0]}") from error
    assert isinstance(config, dict)
    remember(config)
    remember_environment()
    clean_logging()
    return {str(key): value for key, value in config.items()}, overrides


def make_run(config: Config, overrides: Overrides) -> Run:
    """Check everything and construct the run; starts nothing."""
    from agentexp.actions import ParseSettings
    from agentexp.hooks import Plans
    from agentexp.plan import run_folder
    from agentexp.runner import Run
    from agentexp.tracking import Tracker

    settings = check_root(config, overrides)
    if settings.command not in UNUSED:
        raise UserError(f"command={settings.command} is not a command. Choices: {', '.join(UNUSED)}.")
    if settings.command == "act" and not settings.maps:
        raise UserError("maps has no value. Set maps=... to the run folder that `agentexp map` printed.")
    env_settings, env_node = split_env(config["env"], overrides)
    env_spec = checked(env_node, "env", overrides, Env)
    env = targets.build(env_spec)
    check_component(env, Env, "env", env_spec["_target_"])
    models = {"actor": _model(config["model"], "model", overrides)}
    for role, node in (config.get("roles") or {}).items():
        models[role] = _model(node, f"roles.{role}", overrides)
    if settings.command == "explore" and "act" in config["paradigm"]:  # Explore-then-Act; MAP's stage 1 never acts
        config = {**config, "paradigm": {**config["paradigm"], "act": False}}
    for model in models.values():
        if isinstance(model, ChecksEnv):
            model.check(env)
    paradigm = build(config["paradigm"], "paradigm", overrides, Paradigm)
    _check_roles(config, paradigm)
    called = paradigm.name
    taken = getattr(paradigm, "split", None) if isinstance(paradigm, Plans) else None
    if taken is not None and env_settings.split != taken:
        how = "leave env.split out" if "env.split" in overrides.raw else "run it with `agentexp explore`"
        raise UserError(f"{called} takes its tasks from paradigm.split={taken}; {how}.")
    if isinstance(paradigm, Plans) and "env.limit" in overrides.raw and env_settings.limit is not None:
        own = "set paradigm.n_tasks instead" if hasattr(paradigm, "n_tasks") else "leave it out"
        raise UserError(f"{called} chooses its own tasks, so env.limit has no effect; {own}.")
    if env_settings.split not in env.splits() and not isinstance(paradigm, Plans):  # else it takes its tasks elsewhere
        raise UserError(f"env.split={env_settings.split} is not a split of {env.name}. Choices: {', '.join(env.splits())}.")
    parsing = build(config["parsing"], "parsing", overrides, ParseSettings)
    logger = build(config["logger"], "logger", overrides, Tracker)
    concurrency = settings.concurrency or default_concurrency(models["actor"], env_settings.in_process)
    check_caps(settings.limits, models)
    if settings.command != "explore":
        warn_of_unread(config, overrides, called)
    known = {key: value for key, value in config.items() if key not in UNUSED[settings.command]}
    root = Path(settings.output_root).expanduser()
    return Run(
        command=settings.command,
        config=known,
        env=env,
        env_spec=env_spec,
        models=models,
        paradigm=paradigm,
        budget=make_budget(settings, getattr(paradigm, "explore_steps", None)),
        folder=run_folder(root, settings.command, env.name, paradigm.name, models["actor"].label, known),
        output_root=root,
        split=env_settings.split,
        limits=settings.limits,
        parsing=parsing,
        seeds=[env_settings.seed],
        repeats=settings.repeats,
        limit=env_settings.limit,
        concurrency=concurrency,
        workers=settings.workers,
        step_timeout=env_settings.step_timeout,
        reset_timeout=env_settings.reset_timeout,
        in_process=env_settings.in_process,
        max_episodes_per_worker=env_settings.max_episodes_per_worker,
        logger=logger,
        progress=settings.progress,
        resume=settings.resume,
        shard=parse_shard(settings.shard),
        explore=None if settings.command == "explore" else lambda: make_run(explore_config(config), overrides),
    )


def explore_config(config: Mapping[str, Any]) -> Config:
    """The config of the explore run that makes K_g for `config`: the same as `agentexp explore` with the same choices."""
    known = {key: value for key, value in config.items() if key not in ("explore", "maps", "roles")}
    asked = getattr(targets.locate(str(config["explore"].get("_target_")), "explore"), "roles", None)
    roles = {role: node for role, node in (config.get("roles") or {}).items() if asked is None or role in ("actor", *asked)}
    env = {**config["env"], "split": config["explore"].get("split", "train"), "limit": None}
    quiet = {"_target_": "agentexp.tracking.NoLogger"}
    return {
        **known,
        "roles": roles,  # without those that only the outer paradigm asks
        "command": "explore",
        "paradigm": config["explore"],
        "env": env,
        "repeats": 1,
        "shard": None,  # whole: the shards of `config` wait for whichever of them makes it
        "logger": quiet,
    }


def make_budget(settings: RootSettings, exploring: int | None = None) -> Budget:
    """The budget, cut to `max_steps` in the ratio of its phases where that is set.

    Args:
        settings: the top level of the config.
        exploring: steps of a paradigm whose first phase is a goal-free exploration instead of mapping.
    """
    first, acting = settings.budget.mapping if exploring is None else exploring, settings.budget.acting
    if settings.max_steps is not None:
        if settings.max_steps < 1:
            raise UserError("max_steps must be at least 1, or null for the budget.")
        if settings.max_steps < first + acting:
            first = settings.max_steps * first // (first + acting)
            acting = settings.max_steps - first
    return Budget(first, acting) if exploring is None else Budget(0, acting, first)


def default_concurrency(model: Model, in_process: bool) -> int:
    """What the model serves at once; at most two engine processes per core, where the world needs processes."""
    serves = int(getattr(model, "concurrency", 0) or (os.cpu_count() or 1))
    return serves if in_process else max(1, min(serves, 2 * (os.cpu_count() or 1)))


def _check_roles(config: Mapping[str, Any], paradigm: Any) -> None:
    """A role that the paradigm never asks would silently run the actor's model instead. Plug-ins need not declare roles."""
    roles = getattr(paradigm, "roles", None)
    for role in config.get("roles") or {}:
        if roles is not None and role not in ("actor", *roles):
            valid = ("actor", *roles)
            raise UserError(f"roles.{role} is no role of {paradigm.name}.{nearest(role, valid)} Roles: {', '.join(valid)}.")


def _model(node: Any, path: str, overrides: Overrides) -> Model:
    model: Model = build(split_model(node, path, overrides), path, overrides, Model)
    return model


def show_plan(run: Run) -> None:
    """Print the checked settings and what would run."""
    import yaml
    from rich.console import Console

    from agentexp.runner import plan_of

    _, plan = plan_of(run)
    console = Console(soft_wrap=True, highlight=False)
    console.print(yaml.safe_dump(scrub(run.config), sort_keys=False, allow_unicode=True), markup=False)
    console.print(
        f"{len(plan)} episodes of {run.env.name}/{run.split} with {run.paradigm.name} and {run.models['actor'].label}, "
        f"at most {run.budget.total} steps each ({_phases(run.budget)}), "
        f"{run.concurrency} in flight.",
        markup=False,
    )
    console.print(f"Run folder: {run.folder}", markup=False)


def show_costs(config: Config, overrides: Overrides) -> None:
    """Print what the run would cost at most; asks no language model."""
    from agentexp.estimate import estimate, show_estimate

    show_estimate(estimate(lambda root: make_run({**config, "output_root": str(root), "shard": None}, overrides)))


def _phases(budget: Budget) -> str:
    first = f"{budget.mapping} mapping" if budget.exploring is None else f"{budget.exploring} exploring"
    return f"{first}, {budget.acting} acting"


def check_job(node: Any) -> int:
    """`agentexp check`: the contract of the configured environment. 0 if nothing fails."""
    from rich.console import Console

    from agentexp.envs.check import check_env

    config, overrides = resolved(node)
    _, env_node = split_env(config["env"], overrides)
    findings = check_env(checked(env_node, "env", overrides))
    console = Console(soft_wrap=True, highlight=False)
    for finding in findings:
        console.print(f"{finding.level:4}  {finding}", markup=False)
    failed = sum(finding.level == "fail" for finding in findings)
    console.print(f"{len(findings) - failed} of {len(findings)} checks passed.", markup=False)
    return 1 if failed else 0
