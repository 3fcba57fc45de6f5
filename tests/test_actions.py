"""From replies to actions: every kind of reply that users of such tools reported, and its relatives."""

import pytest

from agentexp.actions import ParseSettings, parse
from agentexp.core import EnvCard

ALFWORLD = [
    *("go to bed 1", "go to desk 1", "go to desk 2", "go to drawer 1", "go to shelf 1", "open drawer 1", "open drawer 2"),
    *("take mug 1 from desk 1", "take spoon 1 from desk 1", "examine desk 1", "move mug 1 to shelf 1"),
    *("move spoon 1 to sinkbasin 1", "look", "inventory", "help"),
]
ALIASES = ((r"put (.+?) (?:in/on|in|on|into|onto) (.+)", r"move \1 to \2"),)
CARD = EnvCard("", "", complete_admissible=True, aliases=ALIASES)
DESK = "go to desk 1"


def read(content, **options):
    return parse(content, **{"admissible": ALFWORLD, "card": CARD, "stop_word": "finish mapping", **options})


def outcome(parsed):
    assert (parsed.action is not None) == (parsed.status == "ok")
    return parsed.action if parsed.status == "ok" else parsed.status


SAY_DESK_1 = [
    "*Action*: go to desk 1",
    "## Action: go to desk 1",
    "**Action**: `go to desk 1`",
    "**Action**\n\ngo to desk 1",
    "__Action:__ go to desk 1",
    "Action: **go to desk 1**",
    "Action: go to **desk 1**",
    "Action: 'go to desk 1'",
    "Action: «go to desk 1»",
    "Action: 「go to desk 1」",
    "1. Thought: x\n2. Action: go to desk 1",
    "Action 12: go to desk 1",
    "Action[3]: go to desk 1",
    "Action #2: go to desk 1",
    "[Action] go to desk 1",
    "[Action]: go to desk 1",
    "【动作】go to desk 1",
    "<action>go to desk 1</action>",
    "<ANSWER> go to desk 1 </ANSWER>",
    "<answer>\ngo to desk 1\n</answer>",
    "<answer>Action: go to desk 1</answer>",
    "<answer><action>go to desk 1</action></answer>",
    "<answer>`go to desk 1`</answer>",
    "<answer>go to desk 1",
    "<answer>go to desk 1<answer>",
    "go to desk 1</answer>",
    "<think>x</think>\ngo to desk 1</answer>",
    '{"action": "go to desk 1"}',
    '```json\n{"thought": "a", "action": "go to desk 1"}\n```',
    '{\n  "thought": "x",\n  "action": "go to desk 1",\n  "observation": "You arrive"\n}',
    "{'thought': 'don\\'t', 'action': 'go to desk 1'}",
    '<tool_call>\n{"name": "act", "arguments": {"action": "go to desk 1"}}\n</tool_call>',
    '<tool_call>{"name": "act", "arguments": "{\\"action\\": \\"go to desk 1\\"}"}</tool_call>',
    'Action: {"action": "go to desk 1"}',
    "<function=act><parameter=action>\ngo to desk 1\n</parameter></function>",
    '<invoke name="act"><parameter name="action">go to desk 1</parameter></invoke>',
    'act(action="go to desk 1")',
    'Action: act("go to desk 1")',
    'Action: env.step("go to desk 1")',
    "Thought: t\nAction: act\nAction Input: go to desk 1",
    '{"action": "act", "action_input": "go to desk 1"}',
    "\\boxed{go to desk 1}",
    "The answer is $\\boxed{\\text{go to desk 1}}$.",
    "&lt;answer&gt;go to desk 1&lt;/answer&gt;",
    "Action:&nbsp;go to desk 1",
    "Action: &quot;go to desk 1&quot;",
    "Thought: fine.\r\nAction: go to desk 1\r\n",
    "Thought: fine.\\nAction: go to desk 1",
    "1. go to desk 1",
    "1) go to desk 1",
    "- go to desk 1",
    "* go to desk 1",
    "1. go to desk 1\n2. take mug 1 from desk 1",
    "Action:\n1. go to desk 1\n2. take mug 1 from desk 1",
    "Action:\n\n  go to desk 1",
    "```\ngo to desk 1\n```",
    "```go to desk 1```",
    "Sure! Here is my action:\n\ngo to desk 1",
    "My next action is: go to desk 1",
    "Next action: go to desk 1",
    "Final Answer: go to desk 1",
    "I think the desk is best.\n\ngo to desk 1",
    "Acción: go to desk 1",
    "Aktion: go to desk 1",
    "Gedanke: x\nAktion: go to desk 1\nBeobachtung: y\nAktion: look",
    "Мысль: стол.\nДействие: go to desk 1",
    "생각: 책상\n행동: go to desk 1",
    "思考:x\n行動：go to desk 1。\n観察：机",
    "思考:机へ。行動：go to desk 1",
    "ＡＣＴＩＯＮ：ｇｏ ｔｏ ｄｅｓｋ １",
    "Action: go\u3000to\u2009desk\u202f1",
    "\ufeffAction: go to desk 1",
    "Action: ✅ go to desk 1 🎯",
    "Action: go to desk 1!",
    "Action: go to desk 1...",
    "| Action | go to desk 1 |",
    "Action -> go to desk 1",
    "Action = go to desk 1",
    "<b>Action:</b> go to desk 1",
    "Action: <code>go to desk 1</code>",
    "$ go to desk 1",
    ">>> go to desk 1",
    "> Thought: fine\n> Action: go to desk 1",
    "Thought: Last observation: empty. Action: go to desk 1",
    "Observation: The desk is empty.\nThought: go.\nAction: go to desk 1",
    "Action: go to desk 1 Observation: You arrive. Action: look",
    "Action: go to desk 1\n\nObservation 1: ok\nAction 2: look",
    "Action: go to desk 1\n**Observation:** ok\n**Action:** look",
    "Action: go to desk 1\nUser: You arrive\nAssistant: Action: look",
    "Action: go to desk 1\n### Human: ok\nAction: look",
    "Action: go to desk 1<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nok",
    "Action: go to desk 1</s>",
    "Action: go to desk 1<|end|>",
    "Action: go to desk 1<｜end▁of▁sentence｜><｜User｜>ok",
    "Action: go to desk 1\n[INST] ok [/INST] Action: look",
    "<|im_start|>assistant\nAction: go to desk 1<|im_end|>",
    "Assistant: Action: go to desk 1",
    "<|channel|>analysis<|message|>go to bed 1?<|end|><|start|>assistant<|channel|>final<|message|>Action: go to desk 1<|return|>",  # noqa: E501
    "go to desk 1\nObservation: You arrive\ngo to bed 1",
    "go to desk 1\nYou arrive at desk 1. You see a mug 1.\ntake mug 1 from desk 1",
    "Action: go to desk 1\n<observation>You arrive</observation>\nAction: look",
    "Action: go to desk 1\nGame: You arrive\nAction: look",
    "Action: go to desk 1\nEnvironment: You arrive\nAction: look",
    "<think>a</think><answer>go to desk 1</answer><think>b</think><answer>look</answer>",
    "<think>a</think>\n<think>b go to bed 1</think>\n<answer>go to desk 1</answer>",
    "<think>a <think>b</think> Action: look</think><answer>go to desk 1</answer>",
    "<think>a <think>b</think><answer>go to desk 1</answer>",
    "<THINK>a Action: look</THINK>Action: go to desk 1",
    "<thinking>a</thinking>Action: go to desk 1",
    "<deepthink>rule: Action: look</deepthink>Action: go to desk 1",
    "[THINK]Action: look[/THINK]Action: go to desk 1",
    "look first\n</thinking>\ngo to desk 1",
    "<reasoning>Action: look</reasoning>\n<answer>go to desk 1</answer>",
    "<think>User: wants. Human: x\nObservation: y\n</think>\n<answer>go to desk 1</answer>",
    "r1 look</think><answer>go to desk 1</answer>\nHuman: x\nr2</think><answer>look</answer>",
    "Action: go to desk 1; take mug 1 from desk 1",
    "Action: go to desk 1 and then take mug 1 from desk 1",
    "Action: go to desk 1 then look",
    "Action: go to desk 1. Then take mug 1.",
    "Action: go to desk 1 -> take mug 1 from desk 1",
    "Action: go to desk 1 & take mug 1 from desk 1",
    "Action: go to desk 1 (to find the mug)",
    "<answer>go to desk 1\ntake mug 1 from desk 1</answer>",
    "go to desk 1, then take mug 1 from desk 1",
    '{"actions": ["go to desk 1", "look"]}',
    '{"action": ["go to desk 1"]}',
    "action: go to desk 1",
    "Command: go to desk 1",
    "Thought: nearest desk.\ngo to desk 1",
    "I'll put it in <answer> tags.\n<answer>go to desk 1</answer>",
    "Previous action: look\nAction: go to desk 1",
    "Available actions: look, help\nAction: go to desk 1",
    "Action: go to desk 1\n\nThis gets me closer to the mug. Then Action: look.",
    "Action: go to desk 1\nReason: nearest",
    "Action: go to desk 1 Reason: nearest",
    "Action: <go to desk 1>",
    "Action: [go to desk 1]",
    "Action: (go to desk 1)",
    "Action：「go to desk 1」。",
    "Action: “Go to desk 1.”",
    "**Action: go to desk 1**",
    "- **Action**: go to desk 1.",
    "Action\n------\ngo to desk 1",
    "Step 1\nThought: x\nAction: go to desk 1",
    "*Action:* *go to desk 1*",
    "<think>\n\n</think>\n\nAction: go to desk 1",
    "<think>a</think><answer>go to desk 1</answer></think>",
    "<think>a <answer>go to desk 1</answer>",
]


@pytest.mark.parametrize("content", SAY_DESK_1)
def test_one_command_in_many_dresses(content):
    assert outcome(read(content)) == DESK


OTHERS = [
    ("<think>go to desk 1", "stop", "invalid"),
    ("<think>Action: go to desk 1", "stop", "invalid"),
    ("<think>Action: go to desk 1\n", "length", "truncated"),
    ("<think>a</think>", "stop", "invalid"),
    ("<think>a</think>", "length", "truncated"),
    ("<answer>go to desk 1</answer>", "length", "go to desk 1"),
    ("<answer>go to desk 1", "length", "truncated"),
    ("<answer>go to desk 1</ans", "length", "go to desk 1"),
    ("Action: go to desk 1", "length", "truncated"),
    ("Action: go to desk 1\nObservation: You arr", "length", "go to desk 1"),
    ("go to desk 1", "length", "truncated"),
    ("", "length", "truncated"),
    (None, "length", "truncated"),
    ('{"action": "go to desk 1', "length", "truncated"),
    ('{"action": "go to desk 1"', "length", "go to desk 1"),
    ("I will go to desk 1", "length", "truncated"),
    ("Action: take the mug 1 from the desk 1.", "stop", "take mug 1 from desk 1"),
    ("Action: Put spoon 1 into the sinkbasin 1", "stop", "move spoon 1 to sinkbasin 1"),
    ("Action: put mug 1 on sinkbasin 1", "stop", "invalid"),
    ("Action: open drawer", "stop", "ambiguous"),
    ("Action: go to desk 1 or go to desk 2", "stop", "invalid"),
    ("Action: go to desk 1, or desk 2", "stop", "invalid"),
    ("Action: go to desk 12", "stop", "invalid"),
    ("Action: go to desk 1.5", "stop", "invalid"),
    ("Action: go to des", "stop", "invalid"),
    ("Action: goto desk 1", "stop", "invalid"),
    ("Action: go to desk 4", "stop", "invalid"),
    ("Action: go to desk 3", "stop", "invalid"),
    ("Action: go to the bed", "stop", "invalid"),
    ("Action: none", "stop", "invalid"),
    ("Action:", "stop", "invalid"),
    ("<answer></answer>", "stop", "invalid"),
    ("I will go to desk 1.", "stop", "invalid"),
    ("I could go to bed 1 or go to desk 1.", "stop", "invalid"),
    ("Options:\n- go to desk 1\n- go to bed 1\nHard to say.", "stop", "invalid"),
    ("Help! I don't know what to do.", "stop", "invalid"),
    ("Look, the mug is on desk 1.", "stop", "invalid"),
    ("Action: fly\nAction: go to desk 1", "stop", "invalid"),
    ("Action: take mug 1 from desk 1 and go to shelf 1", "stop", "take mug 1 from desk 1"),
    ("Action: dance and go to desk 1", "stop", "invalid"),
    ("Action: 打开抽屉 1", "stop", "invalid"),
    ("动作：打开抽屉 1", "stop", "invalid"),
    ("Thought: I should go to desk 1", "stop", "invalid"),
    ("Action: finish mapping", "stop", "finish mapping"),
    ("<answer>Finish mapping.</answer>", "stop", "finish mapping"),
    ("finish mapping", "stop", "finish mapping"),
    ("<answer>go to desk 1</answer></think>", "stop", "invalid"),
    ("<|think|>x<|/think|> hmm", "stop", "invalid"),
    ("Action: go to desk 1 #comment", "stop", "invalid"),
    ("Action: do not go to desk 1", "stop", "invalid"),
]


@pytest.mark.parametrize(("content", "finish_reason", "expected"), OTHERS)
def test_cut_unknown_near_and_compound_replies(content, finish_reason, expected):
    assert outcome(read(content, finish_reason=finish_reason)) == expected


WITHOUT_LIST = [
    ("open door to kitchen", "open door to kitchen"),
    ("Open door to kitchen.", "Open door to kitchen"),
    ("I'm sorry, but I can't help with that.", "invalid"),
    ("I believe the task is finished, no more actions are needed.", "invalid"),
    ("Action: 1", "1"),
    ("1", "1"),
    ("0", "0"),
    ("ACTION6 12 30", "ACTION6 12 30"),
    ("Action: ACTION6 12 30", "ACTION6 12 30"),
    ("ACTION1", "ACTION1"),
    ("<answer>craft 4 oak planks using 1 oak log</answer>", "craft 4 oak planks using 1 oak log"),
    ("<think>t</think> get 2 oak logs", "get 2 oak logs"),
    ("> look\nYou are in a room.", "look"),
    ("Action: open door, then go to kitchen", "open door"),
    ("Action: go north. take lamp", "go north"),
    ("Action: put sword and lamp in case", "put sword and lamp in case"),
    ("i", "i"),
    ('Action: say "hello"', 'say "hello"'),
    ("Action: focus on orange", "focus on orange"),
    ("Thought: I should go to the kitchen", "invalid"),
    ("Action: get 2 oak logs\nAction: craft 8 oak planks using 2 oak logs", "get 2 oak logs"),
    ("go to the kitchen\nObservation: You move to the kitchen.\nlook around", "go to the kitchen"),
    ('{"tool": "go"}', "invalid"),
    ("Действие: открыть ящик 1", "открыть ящик 1"),
    ("wait1", "wait1"),
    ("Action: connect battery anode to orange wire terminal 1", "connect battery anode to orange wire terminal 1"),
    ("look around", "look around"),
    ("answer the door", "answer the door"),
    ("act", "act"),
    ("Action: unlock door with key", "unlock door with key"),
]


@pytest.mark.parametrize(("content", "expected"), WITHOUT_LIST)
def test_worlds_without_a_list_get_the_command_as_written(content, expected):
    assert outcome(parse(content)) == expected


def test_prose_is_never_a_command():
    prose = "Considering the room again, the desk and the bed look plausible. " * 60
    assert outcome(parse(prose)) == "invalid"
    assert outcome(read(prose)) == "invalid"
    assert outcome(parse("Action: " + "walk " * 60)) == "invalid"


# ------------------------------------------------------------------------------------------------------- what is recorded


def test_invented_turns_never_enter_the_history():
    text = "<think>a\u00a0b</think>\r\nAction: go to desk 1\r\nObservation: You arrive.\r\nAction: look"
    parsed = read(text)
    assert parsed.kept == "<think>a\u00a0b</think>\r\nAction: go to desk 1"
    assert "invented_observation" in parsed.flags
    parsed = read("go to desk 1<|im_end|>\n<|im_start|>user\nYou arrive.")
    assert (parsed.kept, parsed.action) == ("go to desk 1", DESK)
    parsed = parse("> unlock grate with key\nThe grate is now unlocked.\n> open grate")
    assert parsed.kept == "> unlock grate with key"


def test_untouched_replies_are_kept_to_the_letter():
    for text in ("**Action:** `go to desk 1` 🙂\n", "&lt;answer&gt;look&lt;/answer&gt;", "Действие: открыть ящик 1", "  \t"):
        assert read(text).kept == text
    assert read(None).kept == ""


def test_only_a_trailing_mark_is_not_an_invented_turn():
    parsed = read("Action: look<|im_end|>")
    assert (parsed.kept, parsed.flags) == ("Action: look", ())


@pytest.mark.parametrize(
    ("content", "written", "rewritten"),
    [
        ("Action: go to desk 1", "go to desk 1", False),
        ("Action: **go to desk 1**.", "**go to desk 1**.", False),
        ("<answer>GO TO DESK 1</answer>", "GO TO DESK 1", True),
        ("<answer>go to the desk 1</answer>", "go to the desk 1", True),
        ("Action: Put the mug 1 on the shelf 1.", "Put the mug 1 on the shelf 1.", True),
        ("Action: go to desk 1, then look", "go to desk 1, then look", True),
    ],
)
def test_every_rewrite_is_recorded(content, written, rewritten):
    parsed = read(content)
    assert (parsed.written, parsed.rewritten, parsed.status) == (written, rewritten, "ok")


def test_several_actions_are_flagged_and_the_first_counts():
    for content in (
        "Action: look\nAction: go to desk 1",
        "Action: look and then go to desk 1",
        '{"actions": ["look", "help"]}',
    ):
        parsed = read(content)
        assert parsed.action == "look"
        assert "n_actions>1" in parsed.flags
    assert "n_actions>1" not in read("Action: look\n\nAction: look").flags
    assert "n_actions>1" not in read("<think>Action: help</think>Action: look").flags


def test_flags_tell_empty_replies_refusals_and_form():
    assert read("").flags == read(None).flags == read("<think>x</think>").flags == ("empty",)
    assert "refusal" in read("I'm sorry, but I can't help with that.").flags
    assert "refusal" in parse("I’m sorry, I cannot assist with this request.").flags
    assert "refusal" not in read("I believe the task is finished.").flags
    assert "format" in read("go to desk 1").flags
    assert "format" not in read("Thought: x\nAction: go to desk 1").flags
    assert "format" not in read("<think>x</think> <answer>go to desk 1</answer>").flags


def test_thought_is_what_stands_before_the_action():
    assert read("Thought: the desk first.\nAction: look").thought == "the desk first."
    assert read("<think>the desk first.</think>\n<answer>look</answer>").thought == "the desk first."
    assert read("Action: look", reasoning="the desk first.").thought == "the desk first."


def test_reasoning_is_never_searched():
    assert outcome(read("", reasoning="Action: look")) == "invalid"
    assert outcome(read(None, reasoning="<answer>look</answer>", finish_reason="length")) == "truncated"


def test_commands_that_must_never_be_sent():
    card = EnvCard("", "", forbidden=r"^reset\b")
    parsed = parse("Action: Reset task", card=card)
    assert (parsed.status, parsed.action) == ("invalid", None)
    assert "forbidden" in parsed.flags


# --------------------------------------------------------------------------------------------------------------- settings


def test_a_list_that_is_not_complete_refuses_nothing():
    card = EnvCard("", "")
    assert outcome(read("Action: focus on orange", card=card)) == "focus on orange"
    assert outcome(read("Action: GO TO DESK 1", card=card)) == DESK
    assert outcome(read("Action: 1", card=card)) == "1"
    assert outcome(read("Action: focus on orange", card=card, settings=ParseSettings(assume_complete=True))) == "invalid"


def test_grounding_off_sends_what_was_written():
    off = ParseSettings(grounding=False)
    for content, sent in (("put mug 1 on shelf 1", "put mug 1 on shelf 1"), ("Go to Desk 11", "Go to Desk 11")):
        parsed = read(f"Action: {content}", settings=off)
        assert (parsed.action, parsed.rewritten) == (sent, False)


def test_a_missing_number_is_filled_only_when_asked_and_never_among_several():
    fill = ParseSettings(fill_number=True)
    parsed = read("Action: go to bed", settings=fill)
    assert (parsed.action, parsed.rewritten) == ("go to bed 1", True)
    assert outcome(read("Action: go to bed")) == "invalid"
    assert outcome(read("Action: go to desk", settings=fill)) == "ambiguous"
    assert outcome(read("Action: put mug on shelf", settings=fill)) == "move mug 1 to shelf 1"


def test_an_alias_that_fits_two_commands_is_ambiguous():
    card = EnvCard("", "", complete_admissible=True, aliases=((r"hit (\w+)", r"kick \1"), (r"hit (\w+)", r"slap \1")))
    assert outcome(parse("Action: hit ball", admissible=["kick ball", "slap ball"], card=card)) == "ambiguous"
    assert outcome(parse("Action: hit ball", admissible=["kick ball"], card=card)) == "kick ball"


def test_commands_equal_up_to_case_are_told_apart_by_their_case():
    assert outcome(parse("Action: Look", admissible=["look", "Look"])) == "Look"
    assert outcome(parse("Action: LOOK", admissible=["look", "Look"])) == "ambiguous"


def test_own_tags_and_labels():
    own = ParseSettings(
        think_tags=[["(inner)", "(/inner)"]], answer_tags=["do"], action_labels=["tegevus"], observation_labels=["vaatlus"]
    )
    assert outcome(read("(inner)Tegevus: help(/inner)Tegevus: look\nVaatlus: x\nTegevus: help", settings=own)) == "look"
    assert outcome(read("help\n(/inner)<do>look</do>", settings=own)) == "look"
    assert outcome(read("<think>x</think><answer>look</answer>", settings=own)) == "invalid"
    bare = ParseSettings(think_tags=[], answer_tags=[], action_labels=[], observation_labels=[], role_labels=[], turn_tokens=[])
    assert outcome(read("look", settings=bare)) == "look"


def test_stop_word_is_an_action_everywhere():
    for content in ("<answer>Finish mapping</answer>", "Thought: enough.\nAction: finish mapping.", "finish mapping"):
        assert read(content).action == "finish mapping"
        assert parse(content, stop_word="finish mapping").action == "finish mapping"
        assert read(content, stop_word="").status == "invalid"
