"""What a chat template writes between two turns, found by rendering it with placeholders and cutting at them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentexp.core import Message
from agentexp.errors import UserError

JOIN = "\n\n"  # between messages that the template cannot keep apart
_ROLES = {"S": "system", "U": "user", "A": "assistant"}

Render = Callable[[Sequence[Message], bool], str | None]
"""(messages, generation prompt wanted) -> text; None where the template refuses them."""


@dataclass(frozen=True, slots=True)
class Glue:
    """The texts of one template.

    Attributes:
        name: of the tokenizer, for messages.
        table: text by (role before, role after); "" before the first turn. What precedes "assistant" is the generation prompt.
        lead: white space that the template puts before a reply and the generation prompt leaves to the model.
        stripped: roles whose messages the template strips of white space at both ends.
    """

    name: str
    table: Mapping[tuple[str, str], str]
    lead: str = ""
    stripped: frozenset[str] = frozenset()

    def between(self, before: str, after: str) -> str:
        """The text between two turns.

        Raises:
            UserError: the template has no place for these two in a row.
        """
        text = self.table.get((before, after))
        if text is None:
            where = f"after the {before}'s" if before else "at the beginning"
            raise UserError(f"The chat template of {self.name} has no place for a turn of the {after} {where}.")
        return text

    def written(self, message: Message) -> str:
        """The text of a message as the template writes it."""
        text = message.content.strip() if message.role in self.stripped else message.content
        return self.lead + text if message.role == "assistant" else text

    def turns(self, before: str, messages: Sequence[Message]) -> list[Message]:
        """The messages as turns that the template has room for: neighbours that it cannot keep apart are joined.

        Args:
            before: role of the turn before them, "" at the beginning.
            messages: what follows.

        Raises:
            UserError: a system message comes later than at the beginning.
        """
        made: list[Message] = []
        for message in messages:
            last = made[-1] if made else None
            role = message.role
            if role == "system":
                if before or (last is not None and last.role == "assistant"):
                    raise UserError("A system message must come first; a conversation held one after other turns.")
                role = "system" if ("", "system") in self.table else "user"
            if last is not None and last.role == role and (role, role) not in self.table and role != "assistant":
                made[-1] = Message(role, f"{last.content}{JOIN}{message.content}")
            else:
                made.append(Message(role, message.content))
        return made


def find_glue(tokenizer: Any, template: Mapping[str, Any]) -> Glue:
    """Take the chat template of a tokenizer apart.

    Args:
        tokenizer: of transformers.
        template: variables for the template.

    Raises:
        UserError: there is no chat template, or it cannot be made append-only.
    """
    name = str(getattr(tokenizer, "name_or_path", "") or "this tokenizer")
    if not getattr(tokenizer, "chat_template", None):
        raise UserError(f"{name} has no chat template (a base model?). Use a chat model, or set the tokenizer's chat_template.")
    render = _renderer(tokenizer, template)

    def refuse(why: str) -> UserError:
        return UserError(
            f"The chat template of {name} cannot be used append-only: {why}. Use another model, or give its tokenizer another "
            "chat_template (ChatML for example)."
        )

    one, two, three = _cut(render, "U"), _cut(render, "UAU"), _cut(render, "UAUAU")
    if one is None or two is None or three is None:
        raise refuse("it refuses, drops or rewrites messages of user and assistant in turn")
    opening, asking = one
    back = two[2]
    if not (opening == two[0] == three[0] and back == three[2] == three[4]):
        raise refuse("what it writes for earlier turns depends on those that follow")
    if not asking == two[3] == three[5]:
        raise refuse("its generation prompt depends on the turns before")
    table = {("", "user"): opening, ("user", "assistant"): asking, ("assistant", "user"): back.lstrip()}
    lead = two[1].removeprefix(asking) if two[1].startswith(asking) else ""
    _find_system(render, table, opening=opening, asking=asking, back=back)
    pair = _cut(render, "UU")
    if pair is not None and pair[0] == opening and pair[2] == asking:
        table["user", "user"] = pair[1]
    again = _cut(render, "UA")
    if again is not None and again[0] == opening:
        table["assistant", "assistant"] = again[2].lstrip()
    system = ("", "system") in table
    stripped = {role for role in _ROLES.values() if _strips(render, role, system=system)}
    return Glue(name, table, lead if lead.isspace() else "", frozenset(stripped))


def _find_system(render: Render, table: dict[tuple[str, str], str], *, opening: str, asking: str, back: str) -> None:
    """Enter the glue of a system message where the template gives it a fixed place before the first turn."""
    one, two = _cut(render, "SU"), _cut(render, "SUAU")
    if one is None or two is None or one[:2] != two[:2]:
        return
    if not (asking == one[2] == two[4] and back == two[3]):
        return
    table["", "system"], table["system", "user"] = one[0], one[1]
    alone = _cut(render, "S")
    if alone is not None and alone[0] == one[0]:
        table["system", "assistant"] = alone[1]


def _strips(render: Render, role: str, *, system: bool) -> bool:
    """The template strips white space off messages of `role`."""
    if role == "system" and not system:
        return False
    shape = "SUAU" if system else "UAU"
    marks = [Message(_ROLES[kind], _mark(kind, i)) for i, kind in enumerate(shape)]  # type: ignore[arg-type]
    padded = [Message(mark.role, f" \n{mark.content}\n ") if mark.role == role else mark for mark in marks]
    return render(padded, True) == render(marks, True)


def _cut(render: Render, shape: str) -> list[str] | None:
    """The texts around the messages of a conversation, its generation prompt included.

    Args:
        render: renders messages.
        shape: roles by their first letters ("SUAU").

    Returns:
        One text more than there are messages; None where the template refuses them or does not keep them as they are.
    """
    marks = [_mark(kind, i) for i, kind in enumerate(shape)]
    messages = [Message(_ROLES[kind], mark) for kind, mark in zip(shape, marks, strict=True)]  # type: ignore[arg-type]
    text = render(messages, True)
    if text is None or any(text.count(mark) != 1 for mark in marks):
        return None
    parts: list[str] = []
    for mark in marks:
        before, found, text = text.partition(mark)
        if not found:
            return None  # not in order
        parts.append(before)
    return [*parts, text]


def _mark(kind: str, i: int) -> str:
    return f"zq{kind}{i}qz"


def _renderer(tokenizer: Any, template: Mapping[str, Any]) -> Render:
    from jinja2 import TemplateError

    def render(messages: Sequence[Message], generate: bool) -> str | None:
        turns = [message._asdict() for message in messages]
        try:
            return str(tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=generate, **template))
        except TemplateError:
            return None

    return render
