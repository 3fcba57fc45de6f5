"""The results of `bench.json` as rows: what was measured, beside what, and whether it reaches what was aimed at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

BEGIN, END = "<!-- bench.json: begin -->", "<!-- bench.json: end -->"

Results = dict[str, Any]


class Row(NamedTuple):
    """One line of the table; `met` is empty where nothing was aimed at."""

    what: str
    measured: str
    beside: str = ""
    ratio: str = ""
    aim: str = ""
    met: str = ""


def rows(results: Results) -> Iterator[Row]:
    """Every row that the results have; sections that were not measured have none."""
    for section in (_turns, _many, _peers, _memory, _startup, _engines, _resume, _report, _page):
        yield from section(results)


def _met(good: bool) -> str:
    return "yes" if good else "no"


def _turns(results: Results) -> Iterator[Row]:
    ours = results.get("cpu_ms_per_turn", {})
    flying = results.get("setting", {}).get("episodes_in_flight")
    for n, cost in ours.items():
        floor, sdk = results["floor_aiohttp_ms"][n], results["floor_sdk_create_ms"][n]
        yield Row(
            f"CPU per turn, {n} turns, {flying} in flight",
            f"{cost:.2f} ms",
            f"bare aiohttp {floor:.2f} ms, the SDK's create {sdk:.2f} ms",
            f"{cost / floor:.2f} and {cost / sdk:.2f}",
            "≤ 1.0 ms",
            _met(cost <= 1.0),
        )
    if (flat := results.get("flatness")) is not None:
        few, *_, many = ours
        yield Row(f"CPU per turn, {many} turns over {few}", f"{flat:.2f}", aim="< 1.25", met=_met(flat < 1.25))


def _many(results: Results) -> Iterator[Row]:
    found = results.get("many_in_flight")
    if found is None:
        return
    for n, cost in found["cpu_ms_per_turn"].items():
        share = found["share_of_server_rate"][n]
        yield Row(
            f"CPU per turn and rate, {n} turns, {found['in_flight']} in flight",
            f"{cost:.2f} ms, {found['turns_per_s'][n]:.0f} turns/s",
            f"the server: {found['server_turns_per_s'][n]:.0f} turns/s (by its delay: {found['rate_by_delay']:.0f})",
            f"{100 * share:.0f} %",
            "≥ 95 %",
            _met(share >= 0.95),
        )


def _peers(results: Results) -> Iterator[Row]:
    found = results.get("peers")
    if found is None:
        return
    for name, peer in found.items():
        if name == "cpu_ms_per_turn":
            continue
        for n, cost in peer["cpu_ms_per_turn"].items():
            times = peer["times_ours"][n]
            yield Row(
                f"{name} {peer['version']}, CPU per turn, {n} turns",
                f"{cost:.1f} ms",
                f"agentexp, in turn with it: {found['cpu_ms_per_turn'][n]:.2f} ms",
                f"{times:.1f}",
                "≥ 10",
                _met(times >= 10),
            )


def _memory(results: Results) -> Iterator[Row]:
    for found in results.get("memory", ()):
        one, two = found["episodes"]
        yield Row(
            f"Memory per waiting episode after {found['turns']} turns ({two} against {one} episodes)",
            f"{found['ours_bytes'] / 1024:.0f} KiB",
            f"bare aiohttp {found['aiohttp_bytes'] / 1024:.0f} KiB",
            f"{found['ratio_to_aiohttp']:.2f}",
        )


def _startup(results: Results) -> Iterator[Row]:
    found = results.get("startup", {})
    for name, took in found.items():
        if name in ("floor", "floor_s"):
            continue
        what = f"`agentexp eval env={name} model=openai` to the first request"
        if "skipped" in took:
            yield Row(what, f"skipped: {took['skipped']}")
            continue
        floor = found["floor_s"]
        yield Row(
            what,
            _took(took),
            f"`{found['floor']}`: {_took(floor)}",
            f"{took['wall_s'] / floor['wall_s']:.2f}",
            "< 1.5 s",
            _met(took["wall_s"] < 1.5),
        )


def _took(took: Results) -> str:
    return f"{took['wall_s']:.2f} s ({took['cpu_s']:.2f} s CPU)"


def _engines(results: Results) -> Iterator[Row]:
    for name, found in results.get("env_steps", {}).items():
        what = f"Steps of {name} through the pool, 2 workers"
        if "skipped" in found:
            yield Row(what, f"skipped: {found['skipped']}")
            continue
        aimed = name in ("alfworld", "scienceworld")
        yield Row(
            what if found["processes"] else f"{what} (in this process)",
            f"{found['pool_cpu_ms']:.3g} ms CPU, {found['pool_steps_per_s']:.4g} steps/s",
            f"bare engine {found['bare_cpu_ms']:.3g} ms CPU, {found['bare_steps_per_s']:.4g} steps/s",
            f"CPU {found['cpu_ratio']:.2f}, speed {found['speed_up']:.2f}",
            "CPU ≤ 1.1" if aimed else "",
            _met(found["cpu_ratio"] <= 1.1) if aimed else "",
        )


def _resume(results: Results) -> Iterator[Row]:
    found = results.get("resume")
    if found is None:
        return
    size = f"{found['bytes'] / 1e6:.0f} MB as JSON: {found['json_s']:.2f} s"
    for key, what in (
        ("one_owed", "one owed: to its first request"),
        ("all_finished", "all finished, summary to be made"),
        ("issued_again", "nothing new"),
    ):
        took = found[key]
        ratio = f"{took['wall_s'] / found['json_s']:.2f}"
        yield Row(
            f"Resume of {found['episodes']} episodes, {what}", _took(took), size, ratio, "< 2 s", _met(took["wall_s"] < 2)
        )


def _report(results: Results) -> Iterator[Row]:
    if (found := results.get("report")) is not None:
        size = f"{found['bytes'] / 1e6:.0f} MB as JSON: {found['json_s']:.2f} s"
        yield Row(f"`agentexp report runs`, {found['episodes']} episodes", _took(found), size, f"{found['ratio_to_json']:.2f}")


def _page(results: Results) -> Iterator[Row]:
    found = results.get("page")
    if found is None:
        return
    size = f"its records as JSON: {found['json_s']:.2f} s"
    wrote = f"{_took(found['write'])}, {found['page_bytes'] / 1e6:.1f} MB"
    ratio = f"{found['write']['wall_s'] / found['json_s']:.2f}"
    yield Row(f"`agentexp view`, {found['episodes']} episodes", wrote, size, ratio, "< 2 s", _met(found["write"]["wall_s"] < 2))
    what = "That page in headless Chromium"
    if "browser_s" not in found:
        yield Row(what, str(found.get("browser", "not measured")))
        return
    shown, empty = found["browser_s"]["page"], found["browser_s"]["empty"]
    yield Row(what, f"{shown:.2f} s", f"an empty page: {empty:.2f} s", f"{shown / empty:.1f}", "< 2 s", _met(shown < 2))


# ------------------------------------------------------------------------------------------------------------------- forms


def text(results: Results) -> str:
    """Plain lines."""
    lines = []
    for row in rows(results):
        aim = f"  [aim {row.aim}: {row.met}]" if row.aim else ""
        beside = f"  | {row.beside}" if row.beside else ""
        lines.append(f"{row.what}: {row.measured}{beside}{f' (ratio {row.ratio})' if row.ratio else ''}{aim}")
    return "\n".join(lines)


def markdown(results: Results) -> str:
    """A table and one line about the machine."""
    lines = ["| measured | value | beside it, in the same run | ratio | aim | met |", "|---|---|---|---|---|---|"]
    lines += ["| " + " | ".join(cell or " " for cell in row) + " |" for row in rows(results)]
    loads = [load for pair in results.get("load", {}).values() for load in pair]
    machine, versions = results.get("machine", {}), results.get("versions", {})
    about = f"{machine.get('cores')} cores, {machine.get('system')}; " + ", ".join(f"{k} {v}" for k, v in versions.items())
    busy = f" Load average during the sections: {min(loads):.1f} to {max(loads):.1f}." if loads else ""
    return "\n".join(lines) + f"\n\n{about}.{busy}"


def put_into(page: Path, table: str) -> None:
    """Replace what stands between the page's two marks.

    Raises:
        SystemExit: the page does not have them.
    """
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{page} has no place for the table: it needs the lines {BEGIN} and {END}.")
    page.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", encoding="utf-8")
