"""The command line. Every command is thin and imports late: `agentexp --help` must answer at once.

The running commands (`eval`, `explore`, `map`, `act`) take Hydra overrides and Hydra's own flags; the rest is plain Typer.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from agentexp.launch_help import HydraHelp, check_experiments

app = typer.Typer(
    name="agentexp",
    help="Experiments with language-model agents that first understand a world and then act in it.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Overrides = Annotated[
    list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Hydra overrides, for example env=textcraft env.limit=10.")
]
Multirun = Annotated[bool, typer.Option("--multirun", "-m", help="Sweep over comma-separated values.")]
Cfg = Annotated[str | None, typer.Option("--cfg", "-c", metavar="job|hydra|all", help="Print the composed config and stop.")]
Package = Annotated[str | None, typer.Option("--package", "-p", help="With --cfg: print this part only.")]
Resolve = Annotated[bool, typer.Option("--resolve", help="With --cfg: resolve interpolations.")]
Info = Annotated[
    str | None, typer.Option("--info", "-i", help="Hydra's information: all, config, defaults, plugins, searchpath.")
]
ConfigDir = Annotated[str | None, typer.Option("--config-dir", help="A folder with your own config groups.")]
ConfigName = Annotated[str | None, typer.Option("--config-name", "-n", help="Another primary config.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the checked settings and the plan, run nothing.")]
Estimate = Annotated[bool, typer.Option("--estimate", help="Print what the run would cost at most, run nothing.")]


def _running(name: str, summary: str) -> None:
    def command(
        overrides: Overrides = None,
        multirun: Multirun = False,
        cfg: Cfg = None,
        package: Package = None,
        resolve: Resolve = False,
        info: Info = None,
        config_dir: ConfigDir = None,
        config_name: ConfigName = None,
        dry_run: DryRun = False,
        estimate: Estimate = False,
    ) -> None:
        from agentexp.launch import HydraFlags, launch

        if name == "wise-run":
            from agentexp.errors import UserError
            from agentexp.wise.command import aliased, wise_job

            if estimate:
                raise UserError("agentexp wise-run has no --estimate: a run with a simulated vision model counts its requests.")
            overrides, job = aliased(overrides or []), wise_job(dry_run=dry_run)
        elif name.startswith("train-"):
            from agentexp.errors import UserError
            from agentexp.training.command import aliased as with_presets
            from agentexp.training.command import train_job

            if estimate:
                raise UserError(f"agentexp {name} has no --estimate. --dry-run shows what would be trained.")
            overrides, job = with_presets(name, overrides or []), train_job(dry_run=dry_run)
        else:
            from agentexp.commands import run_job

            job = run_job(dry_run=dry_run, estimate=estimate)
        check_experiments(name, overrides or [])
        flags = HydraFlags(multirun, cfg, package, resolve, info, config_dir, config_name)
        raise typer.Exit(launch(name, overrides or [], flags, job))

    command.__doc__ = summary
    app.command(name, cls=HydraHelp)(command)


_running("eval", "Run a whole paradigm on a world and score it.")
_running("explore", "Stage 1 of MAP: rules K_g from train tasks. Or goal-free exploration: paradigm=explore_then_act.")
_running("map", "Stages 1 and 2 of MAP: build and save one cognitive map per instance.")
_running("act", "Stage 3 of MAP: act on the maps of an earlier run (maps=RUN_FOLDER).")
_running("wise-run", "WISE and its baselines: exploration of a map (task=explore method=wise,mrsteve map=128).")
_running("train-sft", "Supervised fine-tuning on conversations: trainer.data.path=FOLDER. Needs agentexp[train].")
_running("train-grpo", "GRPO on episodes, task and exploration rollouts interleaved. Needs agentexp[train].")
_running("train-thinker", "Train a thinker for a frozen actor. Needs agentexp[train].")


@app.command()
def envs(
    what: Annotated[
        str | None,
        typer.Argument(metavar="[variants]", help="variants: count ALFWorld's changed games and solve each on paper."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="variants: folder of the official games (default: generated games).")
    ] = None,
    seed: Annotated[int, typer.Option(help="variants: as env.variant_seed.")] = 0,
) -> None:
    """List the worlds: what is available, what is missing and how to install it."""
    from agentexp.errors import UserError

    if what == "variants":
        from agentexp.envs.alfworld.variant_table import show

        show(data, seed)
    elif what is None:
        from agentexp.inventory import show_envs

        show_envs()
    else:
        raise UserError(f"agentexp envs {what} is unknown. Use agentexp envs, or agentexp envs variants.")


@app.command()
def models() -> None:
    """List the model backends: what is available, what is missing and how to install it."""
    from agentexp.inventory import show_models

    show_models()


@app.command(cls=HydraHelp)
def check(overrides: Overrides = None, config_dir: ConfigDir = None) -> None:
    """Check the contract of an environment, yours or ours: agentexp check env=textcraft."""
    from agentexp.commands import check_job
    from agentexp.launch import HydraFlags, launch

    flags = HydraFlags(config_dir=config_dir)
    raise typer.Exit(launch("check", overrides or [], flags, check_job, default_config="eval"))


@app.command()
def report(
    name: Annotated[str, typer.Argument(help="table1, ecc-table1, fig5 ..., a specification (YAML file), or runs.")],
    runs: Annotated[list[Path] | None, typer.Argument(help="Run folders, or folders above them (default: outputs).")] = None,
    more_runs: Annotated[list[Path] | None, typer.Option("--runs", help="The same, as an option.")] = None,
    out: Annotated[Path | None, typer.Option(help="Also write NAME.md, .tex, .csv, and .png, .pdf, .svg of a figure.")] = None,
) -> None:
    """Rebuild a paper's table or figure from run folders: published beside measured value, n and interval."""
    from agentexp.reports import report as build_report

    folders = [*(runs or []), *(more_runs or [])] or [Path("outputs")]
    typer.echo(build_report(name, folders, out=out))


@app.command()
def compare(
    a: Annotated[Path, typer.Argument(help="Run folder.")], b: Annotated[Path, typer.Argument(help="Run folder.")]
) -> None:
    """Compare two runs on the tasks they share: paired bootstrap and McNemar."""
    from agentexp.reports import compare as compare_runs

    typer.echo(compare_runs(a, b))


@app.command()
def view(
    run: Annotated[Path, typer.Argument(help="Run folder.")],
    compare: Annotated[Path | None, typer.Option(help="Another run folder: the tasks that both have, side by side.")] = None,
    out: Annotated[Path | None, typer.Option(help="The HTML file (default: view.html in the run folder).")] = None,
) -> None:
    """Write one self-contained HTML page to look at a run, or at two, and print its path."""
    from agentexp.view import write_comparison, write_page

    typer.echo(str(write_page(run, out) if compare is None else write_comparison(run, compare, out)))


@app.command()
def export(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders, or folders above them.")],
    form: Annotated[
        str, typer.Option("--format", help="parquet, csv, jsonl (tables); messages, sharegpt, hf (fine-tuning); inspect.")
    ] = "parquet",
    out: Annotated[Path | None, typer.Option(help="Folder or file (default: the folder export in the run folder).")] = None,
    only_success: Annotated[bool, typer.Option("--only-success", help="Conversations of solved tasks only.")] = False,
    role: Annotated[list[str] | None, typer.Option(help="Conversations with replies of this role only; repeatable.")] = None,
    phase: Annotated[list[str] | None, typer.Option(help="Conversations of this phase only; repeatable.")] = None,
    with_errors: Annotated[bool, typer.Option("--with-errors", help="Conversations of harness errors too.")] = False,
) -> None:
    """Export runs: tables for pandas, conversations for fine-tuning, logs for Inspect AI."""
    from agentexp.export import Filters
    from agentexp.export import export as export_runs

    path, lines = export_runs(runs, form, out, Filters(only_success, tuple(role or ()), tuple(phase or ()), with_errors))
    typer.echo("\n".join([*lines, str(path)]))


@app.command()
def collect(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Runs of paradigm=map2k, of paradigm=react, or both.")],
    out: Annotated[Path, typer.Option(help="Folder; gets the data sets map and act.")] = Path("data"),
    form: Annotated[str, typer.Option(help="stages: as paradigm=map asks | conversation: all in one (MAP, eq. 9).")] = "stages",
    stages: Annotated[str, typer.Option(help="Which stages of form stages to write.")] = "explore,map,act",
    min_accuracy: Annotated[float, typer.Option(help="Of a map, before wrong entries are deleted.")] = 0.95,
    min_coverage: Annotated[float, typer.Option(help="Of a map.")] = 0.5,
    limit: Annotated[int | None, typer.Option(help="Instances per world (paper: 667).")] = None,
    match: Annotated[str, typer.Option(help="Make act equal to map: samples | tokens.")] = "samples",
    max_tokens: Annotated[int, typer.Option(help="Leave out instances with longer conversations; 0: none.")] = 8192,
    tokenizer: Annotated[str, typer.Option(help="smollm2, a folder, a hub name, or characters (estimate).")] = "smollm2",
    official: Annotated[
        Path | None,
        typer.Option(envvar="ALFWORLD_DATA", help="ALFWorld's official games, to keep their test games out as well."),
    ] = None,
) -> None:
    """Make training data (MAP-2K, ACT traces) from runs: checked, filtered, decontaminated, with a card."""
    from agentexp.training.collect.build import Options
    from agentexp.training.collect.build import collect as collect_runs
    from agentexp.training.collect.filters import Thresholds

    chosen = tuple(part.strip() for part in stages.split(",") if part.strip())
    options = Options(
        form=form,  # type: ignore[arg-type]  # checked there, as the next ones are
        stages=chosen,
        thresholds=Thresholds(min_accuracy, min_coverage),
        limit=limit,
        match=match,  # type: ignore[arg-type]
        max_tokens=max_tokens or None,
        tokenizer=tokenizer,
        official=official,
    )
    typer.echo("\n".join(collect_runs(runs, out, options)))


@app.command()
def parse(
    file: Annotated[
        Path, typer.Argument(help="JSON lines with id, content, reasoning_content, finish_reason, admissible, env.")
    ],
) -> None:
    """Read model replies as agentexp would: one {id, action, status} per line."""
    from agentexp.errors import UserError
    from agentexp.parse_file import parse_lines
    from agentexp.records import dump

    try:
        lines = file.open(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}.") from error
    with lines:
        for result in parse_lines(lines):
            sys.stdout.write(dump(result).decode() + "\n")


@app.command("export-model")
def export_model(
    model: Annotated[str, typer.Argument(help="smollm2, a trained folder, a GGUF file or a hub name.")],
    gguf: Annotated[Path | None, typer.Option(help="Write this GGUF file, for model=embedded.")] = None,
    adapter: Annotated[Path | None, typer.Option(help="Folder of a LoRA adapter to merge into the model first.")] = None,
    folder: Annotated[
        Path | None, typer.Option(help="With --adapter: write the merged model as a Hugging Face folder.")
    ] = None,
    dtype: Annotated[str, typer.Option(help="Of the GGUF file: f32, f16, bf16 or q8_0.")] = "q8_0",
) -> None:
    """Write a trained model in other forms: GGUF, or with its adapter merged."""
    from agentexp.training.export_model import export_model as write

    typer.echo("\n".join(map(str, write(model, adapter=adapter, folder=folder, gguf=gguf, dtype=dtype))))


@app.command()
def doctor() -> None:
    """Check this machine: versions, optional packages, Java, data, keys (present or not), disk."""
    from agentexp import __version__
    from agentexp.doctor import doctor as look

    findings, ready = look()
    typer.echo(f"agentexp {__version__} on {sys.platform}")
    typer.echo("\n".join(f"  {finding.level:8}{finding.text}" for finding in findings))
    typer.echo(
        "The main job can run: agentexp eval paradigm=map env=alfworld"
        if ready
        else "The main job cannot run yet; install what is missing for alfworld and embedded, and what is wrong, above."
    )
    raise typer.Exit(0 if ready else 1)


@app.command()
def version() -> None:
    """Print the version."""
    from agentexp import __version__

    typer.echo(__version__)
