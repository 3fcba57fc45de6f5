"""All texts that models read, as Jinja2 files: `prompts/<paradigm>/<role>[.compact][.<env>].j2`.

`render("map/mapping", env="alfworld", ...)` takes the most particular file that exists. A world's own file usually extends the
general one and fills its blocks. The compact twins say the same in few words, for models below about one billion parameters.

A folder of the user's, set with `overridden`, is searched first, so one changed file is enough: a file of the same name
replaces ours, also where one of our files extends it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import jinja2

from agentexp.errors import UserError

Style = Literal["full", "compact"]

_HERE = Path(__file__).parent
_user_folder: ContextVar[Path | None] = ContextVar("agentexp_prompts", default=None)


def render(name: str, env: str = "", *, style: Style = "full", **slots: Any) -> str:
    """Fill one template.

    Args:
        name: "<paradigm>/<role>".
        env: name of the world; its own template is preferred to the general one.
        style: "compact" prefers the short twin where there is one.
        slots: values of the template's variables; all must be given, unused ones do no harm. `env` is always there.

    Returns:
        The text without surrounding blank lines, and with at most one blank line in a row.

    Raises:
        UserError: no such template, or the template names a variable that is not given here.
    """
    template = _template(_user_folder.get(), name, env, style)
    # As `template.render`, which builds a dictionary out of a chain of dictionaries first: longer than all the rest takes.
    context = template.new_context({**_globals(_user_folder.get()), **slots, "env": env}, shared=True)
    try:
        text = "".join(template.root_render_func(context))
    except jinja2.TemplateNotFound as error:
        raise UserError(f"The prompt {template.name} extends {error.name}, which does not exist.") from error
    except jinja2.TemplateSyntaxError as error:
        raise UserError(
            f"The prompt {error.name} is not a valid Jinja2 template, line {error.lineno}: {error.message}."
        ) from error
    except jinja2.UndefinedError as error:
        known = ", ".join(sorted(slots))
        raise UserError(
            f"The prompt {template.name} uses a variable that it is not given: {error.message}. Given: {known}."
        ) from error
    return (re.sub(r"\n{3,}", "\n\n", text) if "\n\n\n" in text else text).strip()


@contextmanager
def overridden(folder: str | Path | None) -> Iterator[None]:
    """Prefer the templates in `folder` (config key `prompts`) within this block and the tasks it starts; None changes nothing.

    Raises:
        UserError: the folder does not exist, or a file in it would never be used.
    """
    path = None if folder is None else Path(folder)
    if path is not None:
        _check_folder(path)
    token = _user_folder.set(path)
    try:
        yield
    finally:
        _user_folder.reset(token)


def hashes() -> dict[str, str]:
    """Template file -> hash of its source as used now, for the manifest and for provenance."""
    environment = _jinja(_user_folder.get())
    loader = environment.loader
    assert loader is not None
    files = sorted(environment.list_templates(extensions=["j2"]))
    return {file: hashlib.sha256(loader.get_source(environment, file)[0].encode()).hexdigest()[:16] for file in files}


@lru_cache(maxsize=8)
def _jinja(folder: Path | None) -> jinja2.Environment:
    folders = [_HERE] if folder is None else [folder, _HERE]
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # plain text for language models, never HTML
        auto_reload=False,
    )


@lru_cache(maxsize=8)
def _globals(folder: Path | None) -> dict[str, Any]:
    return dict(_jinja(folder).globals)


@lru_cache(maxsize=512)
def _template(folder: Path | None, name: str, env: str, style: Style) -> jinja2.Template:
    twins = [f"{name}.compact", name] if style == "compact" else [name]
    candidates = [file for twin in twins for file in ([f"{twin}.{env}.j2"] if env else []) + [f"{twin}.j2"]]
    environment = _jinja(folder)
    try:
        return environment.select_template(candidates)
    except jinja2.TemplatesNotFound as error:
        known = ", ".join(sorted({_role(file) for file in environment.list_templates(extensions=["j2"])}))
        raise UserError(f"There is no prompt template '{name}'. Known: {known}.") from error
    except jinja2.TemplateSyntaxError as error:
        raise UserError(
            f"The prompt {error.name} is not a valid Jinja2 template, line {error.lineno}: {error.message}."
        ) from error


def _role(file: str) -> str:
    """'map/mapping.compact.alfworld.j2' -> 'map/mapping'."""
    paradigm, _, rest = file.rpartition("/")
    return f"{paradigm}/{rest.split('.')[0]}"


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise UserError(f"The folder prompts={folder} does not exist.")
    known = {_role(file) for file in _jinja(None).list_templates(extensions=["j2"])}
    strangers = [p for p in sorted(folder.rglob("*.j2")) if _role(p.relative_to(folder).as_posix()) not in known]
    if strangers:
        raise UserError(
            f"No prompt is called like {strangers[0].relative_to(folder)} in prompts={folder}. Files there must be named "
            f"<role>[.compact][.<env>].j2 after one of: {', '.join(sorted(known))}."
        )
