"""Write docs/configuration.md from the configs: every group, every choice, every setting with its comment.

python scripts/config_reference.py docs/configuration.md
"""

from __future__ import annotations

import sys
from pathlib import Path

CONF = Path(__file__).resolve().parent.parent / "conf"
COMMANDS = ("eval", "explore", "map", "act", "wise-run", "train-sft", "train-grpo", "train-thinker")

INTRO = """# Configuration reference

Made from the files in `conf/`. A group is chosen with `group=choice`, a setting changed with `key=value`; settings of a group
are under its name (`env.limit=10`). Comments say where a default comes from: a paper, public code, or us.
"""


def first_comment(text: str) -> str:
    """The comment at the top of a config, as one paragraph."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        if not line.startswith("# @package"):
            lines.append(line.lstrip("# ").strip())
    return " ".join(lines)


def body(text: str) -> str:
    """The config without the comment at the top."""
    lines = text.splitlines()
    while lines and lines[0].startswith("#"):
        lines.pop(0)
    return "\n".join(lines).strip()


def section(title: str, file: Path, level: str) -> str:
    """One config: its comment and its text."""
    text = file.read_text(encoding="utf-8")
    parts = [f"{level} {title}", first_comment(text), f"```yaml\n{body(text)}\n```"]
    return "\n\n".join(part for part in parts if part)


def reference() -> str:
    """The whole page."""
    parts = [INTRO, "## Commands"]
    for name in ("run", "train", *COMMANDS):
        if (file := CONF / f"{name}.yaml").is_file():
            title = f"`agentexp {name}`" if name in COMMANDS else f"Shared settings (`conf/{name}.yaml`)"
            parts.append(section(title, file, "###"))
    for group in sorted(folder for folder in CONF.iterdir() if folder.is_dir() and any(folder.glob("*.yaml"))):
        parts.append(f"## `{group.name}=`")
        for file in sorted(group.glob("*.yaml")):
            if group.name == "experiment":
                parts.append(
                    f"- `+experiment={file.stem}`: {first_comment(file.read_text(encoding='utf-8')) or 'see the file'}"
                )
            else:
                parts.append(section(f"`{group.name}={file.stem}`", file, "###"))
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference(), encoding="utf-8")
