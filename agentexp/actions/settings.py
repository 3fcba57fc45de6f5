"""Settings of the parser: every tag, label and sentence it knows is configuration (config key `parsing`)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from agentexp.actions.text import fold

THINK_TAGS = [
    ["<think>", "</think>"],
    ["<thinking>", "</thinking>"],
    ["<thought>", "</thought>"],
    ["<thoughts>", "</thoughts>"],
    ["<deepthink>", "</deepthink>"],
    ["<reasoning>", "</reasoning>"],
    ["<reason>", "</reason>"],
    ["<analysis>", "</analysis>"],
    ["<reflection>", "</reflection>"],
    ["<scratchpad>", "</scratchpad>"],
    ["<seed:think>", "</seed:think>"],
    ["[THINK]", "[/THINK]"],
    ["◁think▷", "◁/think▷"],
    ["<|begin_of_thought|>", "<|end_of_thought|>"],
    ["<|START_THINKING|>", "<|END_THINKING|>"],
    ["<|channel|>analysis<|message|>", "<|end|>"],
]
ANSWER_TAGS = ["answer", "final_answer", "final answer", "action", "next_action", "act", "command"]
ACTION_LABELS = [
    *("action", "action input", "act", "command", "answer", "final answer", "next move"),
    *("动作", "行动", "下一步行动", "操作", "指令", "命令", "動作", "行動", "アクション", "コマンド", "행동", "동작", "명령"),
    *("действие", "команда", "ответ", "дія", "acción", "accion", "aktion", "handlung", "befehl", "azione", "ação", "acao"),
    *("actie", "akcja", "działanie", "akce", "eylem", "hành động", "tindakan", "aksi", "ενέργεια", "פעולה", "الإجراء", "إجراء"),
    *("क्रिया", "कार्रवाई", "åtgärd", "handling", "toiminto", "acțiune", "cselekvés"),
]
THOUGHT_LABELS = [
    *("thought", "thoughts", "think", "thinking", "reasoning", "reason", "rationale", "analysis", "reflection", "plan", "map"),
    *("思考", "想法", "推理", "분석", "생각", "мысль", "рассуждение", "думка", "pensamiento", "razonamiento", "gedanke"),
    *("gedanken", "überlegung", "pensée", "réflexion", "raisonnement", "pensiero", "pensamento", "gedachte", "myśl", "düşünce"),
    *("suy nghĩ", "pemikiran", "σκέψη", "מחשבה", "الفكرة", "विचार", "tanke"),
]
OBSERVATION_LABELS = [
    *("observation", "observations", "obs", "environment", "env", "environment response", "tool response", "game", "feedback"),
    *("观察", "观测", "观察结果", "环境", "環境", "観察", "관찰", "наблюдение", "спостереження", "observación", "beobachtung"),
    *("osservazione", "observação", "waarneming", "obserwacja", "gözlem", "quan sát", "pengamatan", "παρατήρηση", "תצפית"),
    *("الملاحظة", "अवलोकन", "iakttagelse"),
]
ROLE_LABELS = [
    "human",
    "user",
    "system",
    "assistant",
    "用户",
    "人类",
    "助手",
    "ユーザー",
    "пользователь",
    "человек",
    "usuario",
    "benutzer",
]
TURN_TOKENS = [
    *("<|im_end|>", "<|im_start|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|start_header_id|>", "<|end_header_id|>"),
    *(
        "<|begin_of_text|>",
        "<|end_of_text|>",
        "<|user|>",
        "<|assistant|>",
        "<|system|>",
        "<|observation|>",
        "<|end|>",
        "<|start|>",
    ),
    *(
        "<|return|>",
        "<|END_OF_TURN_TOKEN|>",
        "<|START_OF_TURN_TOKEN|>",
        "<start_of_turn>",
        "<end_of_turn>",
        "<turn|>",
        "<|turn>",
    ),
    *("<|User|>", "<|Assistant|>", "<|begin▁of▁sentence|>", "<|end▁of▁sentence|>", "[INST]", "[/INST]", "</s>", "<s>", "<eos>"),
    *("<bos>", "[EOS]", "<|eot|>", "<|tool_response|>"),
    *("<|begin_of_solution|>", "<|end_of_solution|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>"),
]


@dataclass(frozen=True)  # without slots: what follows from the settings is kept with them, see below
class ParseSettings:
    """How replies are read.

    Attributes:
        grounding: map a reply to an admissible command (case, articles, final full stop, declared aliases) and refuse what is
            not admissible where the list is complete. False sends every command as written ("paper-faithful").
        assume_complete: treat every list of admissible commands as complete, also where the world's card does not say so.
        fill_number: map "go to bed" to "go to bed 1" when only one object fits. Off: such a reply is invalid.
        think_tags: [open, close] pairs; everything inside, and everything before a lone close tag, is reasoning.
        answer_tags: names of tags that hold the action: <name>...</name>, [name]...[/name].
        action_labels: words before a colon (or in a heading) that announce the action, in any alphabet; also JSON keys.
        thought_labels: words that announce reasoning.
        observation_labels: words that announce the world's answer; from the model itself, after an action, it is invented.
        role_labels: words that announce another speaker's turn.
        turn_tokens: chat-template marks that end the message.
        length_reasons: finish reasons that mean "cut by the token limit".
        no_action: values after a label that mean "nothing".
        max_action_chars: longer text is never a command, where no complete list decides.
        unreadable: observation after an invalid or truncated reply.
        ambiguous: observation after an ambiguous reply.
        several: added to the observation when only the first of several commands was carried out; empty adds nothing.
    """

    grounding: bool = True
    assume_complete: bool = False
    fill_number: bool = False
    think_tags: list[list[str]] = field(default_factory=lambda: [list(pair) for pair in THINK_TAGS])
    answer_tags: list[str] = field(default_factory=lambda: list(ANSWER_TAGS))
    action_labels: list[str] = field(default_factory=lambda: list(ACTION_LABELS))
    thought_labels: list[str] = field(default_factory=lambda: list(THOUGHT_LABELS))
    observation_labels: list[str] = field(default_factory=lambda: list(OBSERVATION_LABELS))
    role_labels: list[str] = field(default_factory=lambda: list(ROLE_LABELS))
    turn_tokens: list[str] = field(default_factory=lambda: list(TURN_TOKENS))
    length_reasons: list[str] = field(default_factory=lambda: ["length", "max_tokens", "model_length", "max_output_tokens"])
    no_action: list[str] = field(default_factory=lambda: ["none", "n/a", "null", "nil", "nothing", "no action"])
    max_action_chars: int = 200
    unreadable: str = "Your reply could not be read. Give exactly one action in the required form."
    ambiguous: str = "Your action fits more than one thing. Give its full name with the number."
    several: str = "Only the first of your actions was carried out."

    def patterns(self) -> Patterns:
        """The compiled form, shared by equal settings."""
        return self._patterns

    @cached_property
    def _patterns(self) -> Patterns:
        return _compile(
            tuple(tuple(pair) for pair in self.think_tags),
            tuple(self.answer_tags),
            tuple(self.action_labels),
            tuple(self.thought_labels),
            tuple(self.observation_labels),
            tuple(self.role_labels),
            tuple(self.turn_tokens),
        )

    @cached_property
    def folded_no_action(self) -> frozenset[str]:
        """`no_action` in the form in which commands are compared."""
        return frozenset(fold(word) for word in self.no_action)

    @cached_property
    def folded_length_reasons(self) -> frozenset[str]:
        """`length_reasons` without case."""
        return frozenset(reason.casefold() for reason in self.length_reasons)

    @cached_property
    def has_known_words(self) -> bool:
        """Whether all tags, labels and tokens are ours, for which `plain` was made."""
        pairs = (
            (self.answer_tags, ANSWER_TAGS),
            (self.action_labels, ACTION_LABELS),
            (self.thought_labels, THOUGHT_LABELS),
            (self.observation_labels, OBSERVATION_LABELS),
            (self.role_labels, ROLE_LABELS),
            (self.turn_tokens, TURN_TOKENS),
            (self.think_tags, THINK_TAGS),
        )
        return all(given == default for given, default in pairs)


@dataclass(frozen=True, slots=True)
class Patterns:
    """Regular expressions over normalised text.

    Attributes:
        think: one think tag; group `open` or `close` matched.
        hard: a mark or speaker label that ends the message once something was said.
        token: such a mark alone.
        header: such a mark at the very start, with the speaker's name, which is only a heading.
        soft: an observation label or tag, or a speaker within a line; ends the message once an action was claimed.
        answer_open, answer_close: tags around the action.
        label: an action label at the start of a line, up to its separator; group `name`.
        heading: an action label that has a line of its own.
        inline: an action label within a line; group `name`.
        stop: any label within a line that ends the text of an action before it.
        thought: a thought label at the start of a line.
        key: a JSON, dictionary or attribute key of an action with its value.
        parameter: an XML parameter of a tool call that holds the action; groups `open` and `value`.
    """

    think: re.Pattern[str]
    hard: re.Pattern[str]
    token: re.Pattern[str]
    header: re.Pattern[str]
    soft: re.Pattern[str]
    answer_open: re.Pattern[str]
    answer_close: re.Pattern[str]
    label: re.Pattern[str]
    heading: re.Pattern[str]
    inline: re.Pattern[str]
    stop: re.Pattern[str]
    thought: re.Pattern[str]
    key: re.Pattern[str]
    parameter: re.Pattern[str]


# What may stand before a label on its line: anything that is no letter, and a list number. "<", "{" and "[" open other forms.
_LEAD = r"^(?:[^\w\n<{\[]|_){0,60}+(?:\d{1,2}[.)](?:[^\w\n<{\[]|_){0,20}+)?"
_PHRASE = (
    r"(?:(?:so|therefore|thus|hence|now)\b[ ,]*)?"
    r"(?:(?:here is|here's|my|the|your|next|best|final|chosen|selected|recommended|single|this|following)[ ]+){0,4}"
)
_INDEX = r"(?:[ ]*(?:for[ ]+)?[#(\[]?(?:step[ ]+)?\d{1,3}[)\]]?)?"
_VERB = r"(?:[ ]+(?:is|will be|to take|to take is|taken|now))?"
_CLOSERS = r"[ *_`~\"'\])】）]{0,20}+"
_MARKS = r"[*_`~\"'\])】）]{0,9}+"  # closes what was opened before the label; behind a blank it belongs to the action
_SEPARATOR = r"(?::|=(?!=)|\||->|=>|[→➜⇒]|[-–—](?=[ ]))"


@lru_cache(maxsize=16)
def _compile(
    think_tags: tuple[tuple[str, ...], ...],
    answer_tags: tuple[str, ...],
    action_labels: tuple[str, ...],
    thought_labels: tuple[str, ...],
    observation_labels: tuple[str, ...],
    role_labels: tuple[str, ...],
    turn_tokens: tuple[str, ...],
) -> Patterns:
    action, thought = _any(action_labels), _any(thought_labels)
    observed, role = _any(observation_labels), _any(role_labels)
    tag = _any((*answer_tags, *action_labels))
    key = rf"(?:next[ _-]*)?(?:{_any((*action_labels, *answer_tags))})s?"
    tokens = "|".join(_tag(token) for token in sorted(turn_tokens, key=len, reverse=True))
    everything = f"{thought}|{observed}|{role}|{action}"
    # An empty list of tags must match nothing, not everything.
    opens = "|".join(_tag(pair[0]) for pair in think_tags) or "(?!)"
    closes = "|".join(_tag(pair[1]) for pair in think_tags) or "(?!)"
    speaker = rf"[ \t>*#_-]{{0,20}}+(?:{role})[ ]*\d*[ *_]*:"
    channel = r"<\|channel\|>final<\|message\|>"
    return Patterns(
        think=_re(rf"(?P<close>{closes})|(?P<open>{opens})"),
        hard=_re(rf"(?P<token>{tokens or '(?!)'})|^(?P<speaker>{speaker})", re.M),
        token=_re(tokens or "(?!)"),
        header=_re(
            rf"\s*+(?:(?:{tokens or '(?!)'})[ ]*(?:(?:assistant|model|final)\b)?(?:{channel})?|{channel}|"
            r"[*#_ ]{0,10}+(?:assistant|agent|ai)[*_ ]{0,10}+:[*_]{0,10})"
        ),
        soft=_re(
            rf"^[ \t>*#_+\-\d.)\[【]{{0,20}}+(?:{observed})[ ]*[#(]?\d*[)\]】 *_]*(?::|\n|$)"
            rf"|(?<![\w\"'\\])(?P<capital>{observed}|{role})[ ]*\d*[ *_]*:"
            rf"|[\[【]\s*(?:{observed})\s*\d*\s*[\]】]"
            rf"|<\s*(?:{observed}|tool_response|tool_result|function_results?|result)\s*>",
            re.M,
        ),
        answer_open=_re(rf"<\s*(?:{tag})(?:[ ][^<>\n]{{0,80}})?\s*>|[\[【]\s*(?:{tag})[ ]*\d*\s*[\]】]"),
        answer_close=_re(rf"<\s*[/\\]\s*(?:{tag})\s*>|[\[【]\s*/\s*(?:{tag})\s*[\]】]"),
        label=_re(rf"{_LEAD}(?:{_PHRASE})(?P<name>{action})s?{_INDEX}{_VERB}{_CLOSERS}{_SEPARATOR}{_MARKS}", re.M),
        heading=_re(rf"{_LEAD}(?:{_PHRASE})(?P<name>{action})s?(?:[ ]+[#(]?\d{{1,3}}\)?)?(?:[^\w\n]|_){{0,60}}+$", re.M),
        inline=_re(rf"(?<!\w)(?:{_PHRASE})(?P<name>{action}){_INDEX}{_VERB}[ *_`]*:{_MARKS}"),
        stop=_re(rf"(?<=\s)[*_]*(?P<name>{everything})[ ]*\d*[ *_]*:"),
        thought=_re(rf"{_LEAD}(?:{thought}){_INDEX}{_CLOSERS}:", re.M),
        key=_re(
            rf"(?P<open>\\{{0,4}}[\"'])(?P<name>{key})(?P=open)\s*:\s*"
            rf"|(?<=[\s(,])(?P<attribute>{key})\s*=\s*(?=[\"'])|(?<=[{{,])\s*(?P<property>{key})\s*:\s*(?=[\"'])"
        ),
        parameter=_re(
            rf"<(?P<open>\w+)(?:\s[^<>]{{0,80}}?name\s*=\s*[\"']?|=)(?:{key})[\"']?\s*>(?P<value>[^<]{{0,2000}})</(?P=open)\s*>"
        ),
    )


def _re(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    return re.compile(pattern, flags | re.IGNORECASE)


def _any(words: Iterable[str]) -> str:
    """Alternatives, longest first; a blank in a word also matches "_" and "-"; Latin words are matched whole."""
    known = {unicodedata.normalize("NFKC", word).strip() for word in words} - {""}
    parts = [r"[ _-]*".join(map(re.escape, word.split())) for word in sorted(known, key=lambda w: (-len(w), w))]
    return f"(?:{'|'.join(parts)})" if parts else "(?!)"


def _tag(tag: str) -> str:
    """A literal tag; "<name>" may hold blanks and attributes, and "|" may be of any width (normalisation makes it narrow)."""
    text = unicodedata.normalize("NFKC", tag)
    found = re.fullmatch(r"<(/?)([\w:]+)>", text)
    if found:
        slash, name = found.groups()
        mark = r"[/\\]" if slash else ""
        return rf"<\s*{mark}\s*{re.escape(name)}(?:\s[^<>]{{0,80}})?>"
    return re.escape(text)
