"""Run folders as logs of Inspect AI, so that its viewer and data frames read them: `inspect view --log-dir FOLDER`.

One log per run, through Inspect's own classes (tested with inspect-ai 0.3.285). Samples are instances, epochs are repeats. A
run that lacks planned episodes has status "cancelled", as an interrupted one of Inspect's own; harness errors are samples with
an error and without scores.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from agentexp.errors import UserError
from agentexp.export.inspect_sample import Api, SampleMaker
from agentexp.export.sources import Source, all_encodable, instance_of, key_of, optional, result_of
from agentexp.records import Record
from agentexp.store import episode_files

SUFFIXES = (".eval", ".json")


def write_logs(sources: list[Source], out: Path) -> list[str]:
    """Write one log per run into the folder `out`, or into the file `out` where there is one run and it ends in .eval or .json.

    Returns:
        What was written, a sentence per log.

    Raises:
        MissingDependency: inspect-ai is not installed.
        UserError: one file for several runs.
        OSError: the place cannot be written.
    """
    api = Api(*(optional(f"inspect_ai.{name}", "inspect-ai", "inspect") for name in Api._fields))
    single = out.suffix in SUFFIXES
    if single and len(sources) > 1:
        raise UserError(f"{out} is one log, but there are {len(sources)} runs. Give a folder with --out.")
    lines = []
    for source in sources:
        file = out if single else out / f"{re.sub(r'[^A-Za-z0-9.=+-]+', '_', source.name)}.eval"
        file.parent.mkdir(parents=True, exist_ok=True)
        log = make_log(api, source)
        temporary = file.with_name(f".{file.stem}.tmp{file.suffix}")
        try:
            api.log.write_eval_log(log, str(temporary.resolve()))
            temporary.replace(file)
        finally:
            temporary.unlink(missing_ok=True)
        lines.append(f"{file.name}: {len(log.samples)} samples")
    return lines


def make_log(api: Api, source: Source) -> Any:
    """The `EvalLog` of a run."""
    records = [all_encodable(record) for record in source.episodes()]
    manifest = all_encodable(source.manifest)
    first = records[0] if records else {}
    label = {name: str(manifest.get(name) or first.get(name) or "") for name in ("paradigm", "model", "command")}
    label |= {name: str(manifest.get(name) or first.get("task", {}).get(name) or "") for name in ("env", "split")}
    began, ended = _times(source, manifest)
    config = manifest.get("config") or {}
    maker = SampleMaker(api, began, set(config.get("roles") or {}))
    ids = sample_ids(records)
    samples = [maker.sample(record, ids[key_of(record)]) for record in records]
    names = list(dict.fromkeys(ids.values()))
    log = api.log
    return log.EvalLog(
        status="cancelled" if source.partial else "success",
        eval=log.EvalSpec(
            created=began.isoformat(),
            run_id=source.folder.name,
            task_id=source.folder.name,
            task=f"{label['env']}/{label['split']}",
            task_args=config.get("env") or {},
            solver=label["paradigm"],
            solver_args=config.get("paradigm") or {},
            dataset=log.EvalDataset(name=label["env"], location=label["split"], samples=len(names), sample_ids=names),
            model=label["model"] or "none",
            model_args=config.get("model") or {},
            config=log.EvalConfig(epochs=max((sample.epoch for sample in samples), default=1)),
            packages={"inspect_ai": metadata.version("inspect-ai"), **(manifest.get("packages") or {})},
            metadata={
                "agentexp": {name: manifest.get(name) for name in ("command", "seeds", "code", "env_versions", "config")}
            },
        ),
        plan=log.EvalPlan(name=label["paradigm"] or "plan", steps=[log.EvalPlanStep(solver=label["paradigm"])]),
        results=_results(api, source, records),
        stats=log.EvalStats(
            started_at=began.isoformat(),
            completed_at=ended.isoformat(),
            model_usage=_summed(sample.model_usage for sample in samples),
            role_usage=_summed(sample.role_usage for sample in samples),
        ),
        samples=samples,
    )


def sample_ids(records: Iterable[Record]) -> dict[str, str]:
    """Sample id by task key: the task's id, with its seed and then its split before it where the id alone is ambiguous.

    An id and a repeat together name one episode.
    """
    tasks = {key_of(record): record["task"] for record in records}
    ids: dict[str, str] = {}
    for form in (_by_id, _by_seed, _by_instance):
        ids = {key: form(task) for key, task in tasks.items()}
        taken = Counter((ids[key], task.get("repeat", 0)) for key, task in tasks.items())
        if not taken or max(taken.values()) == 1:
            break
    return ids


def _by_id(task: Mapping[str, Any]) -> str:
    return str(task["id"])


def _by_seed(task: Mapping[str, Any]) -> str:
    return f"{task['id']}#seed{task.get('seed', 0)}"


def _by_instance(task: Mapping[str, Any]) -> str:
    return f"{instance_of(task)}#seed{task.get('seed', 0)}"


def _times(source: Source, manifest: Mapping[str, Any]) -> tuple[datetime, datetime]:
    """Begin by the manifest, end by the newest file of records; each stands in for the other where it is missing."""
    files = episode_files(source.folder)
    ended = datetime.fromtimestamp(max((file.stat().st_mtime for file in files), default=0), UTC)
    began = datetime.fromisoformat(manifest["created"]) if manifest.get("created") else ended
    return began, max(began, ended)


def _results(api: Api, source: Source, records: list[Record]) -> Any:
    """Means over the episodes that have a result; the plan is the total."""
    log = api.log
    results = [result_of(record) for record in records]
    values = {
        "success": [float(success) for success, _ in results if success is not None],
        "score": [score for _, score in results if score is not None],
    }
    scores = [
        log.EvalScore(
            name=name,
            scorer=name,
            scored_samples=len(found),
            unscored_samples=len(records) - len(found),
            metrics={"mean": log.EvalMetric(name="mean", value=sum(found) / len(found))} if found else {},
        )
        for name, found in values.items()
    ]
    return log.EvalResults(
        total_samples=len(source.planned), completed_samples=source.recorded - source.harness_errors, scores=scores
    )


def _summed(usages: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    total: dict[str, Any] = {}
    for usage in usages:
        for name, used in usage.items():
            total[name] = total[name] + used if name in total else used
    return total
