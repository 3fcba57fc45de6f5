"""A run as one HTML page that people look at: no server, no network, one file.

`write_page` shows a run, `write_comparison` shows the tasks that two runs share side by side. What is on the page is gathered
in `data.py` and `compare.py`, put into one file in `page.py` and shown by the scripts in `assets/`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from agentexp.errors import UserError
from agentexp.view.compare import comparison
from agentexp.view.data import read_run
from agentexp.view.page import build_page

PAGE_FILE = "view.html"


def write_page(run: Path, out: Path | None = None) -> Path:
    """Write the page of a run (finished, partial or running).

    Args:
        run: the run folder.
        out: a file, or a folder for `view.html`; by default `view.html` in the run folder.

    Returns:
        The file.

    Raises:
        UserError: `run` is not a run folder, or the page cannot be written.
    """
    blocks, data = read_run(run, 0)
    page = build_page({"mode": "run", "runs": [data]}, [blocks], data["title"])
    return _write(page, out, run / PAGE_FILE)


def write_comparison(a: Path, b: Path, out: Path | None = None) -> Path:
    """Write the page of two runs side by side: the tasks that have a record in both.

    Args:
        a: a run folder.
        b: another one.
        out: a file, or a folder for the page; by default `compare-<name of b>.html` in `a`.

    Returns:
        The file.

    Raises:
        UserError: a folder is not a run folder, the two share no task, or the page cannot be written.
    """
    meta, blocks = comparison(a, b)
    page = build_page(meta, blocks, f"A {meta['runs'][0]['title']} | B {meta['runs'][1]['title']}")
    return _write(page, out, a / f"compare-{b.resolve().name}.html")


def _write(page: Iterable[bytes], out: Path | None, default: Path) -> Path:
    path = default if out is None else out / default.name if out.is_dir() else out
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.writelines(page)
        temporary.replace(path)
    except OSError as error:
        raise UserError(f"The page {path} cannot be written ({error.strerror}). Choose another place with --out.") from error
    return path
