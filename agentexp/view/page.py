"""Puts markup, style, scripts and data into one HTML file.

Nothing from a model or a world is ever markup: data travels as JSON in which no `<` is left, and compressed in base64; the
scripts insert it as text only. A content security policy with the hashes of our own script and style is the second line: a
script from anywhere else would not run, and nothing can be loaded or sent.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any

from agentexp.records import dump
from agentexp.view.data import Blocks

SCRIPTS = (
    "dom",
    "blocks",
    "chart",
    "knowledge",
    "conversation",
    "turns",
    "episode",
    "overview",
    "list",
    "search",
    "compare",
    "main",
)


def build_page(meta: dict[str, Any], blocks: Sequence[Blocks], title: str) -> Iterator[bytes]:
    """The bytes of the page, in pieces.

    Args:
        meta: what the browser reads at once ("mode", "runs", ...).
        blocks: the episodes of each run.
        title: of the browser's tab.
    """
    style = _asset("page.css")
    script = "'use strict';\n(() => {\n" + "\n".join(_asset(f"{name}.js") for name in SCRIPTS) + "\n})();\n"
    policy = f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; base-uri 'none'"
    head, tail = _asset("page.html").split("<!-- BLOCKS -->")
    parts = {"POLICY": policy, "TITLE": html.escape(title), "STYLE": style, "META": script_json(meta), "SCRIPT": script}
    for name, text in parts.items():
        before, after = head.split(f"<!-- {name} -->") if f"<!-- {name} -->" in head else head.split(f"__{name}__")
        yield from (before.encode(), text.encode())
        head = after
    yield head.encode()
    for run in blocks:
        for number, block in enumerate(run.done):
            yield f'<script type="text/plain" id="block-{run.run}-{number}">'.encode()
            yield block
            yield b"</script>\n"
    yield tail.encode()


def script_json(value: Any) -> str:
    """JSON that is safe inside a script element: no `<`, `>`, `&` and no line separators that end a statement."""
    text = dump(value).decode()  # already without U+2028, U+2029 and lone surrogates
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return files("agentexp.view").joinpath("assets", name).read_text(encoding="utf-8").replace("\r\n", "\n")


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"
