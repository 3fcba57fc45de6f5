"""From replies to actions: every kind of reply that users of such tools reported, and its relatives."""

import pytest
from action_replies import OTHERS, SAY_DESK_1, WITHOUT_LIST

from agentexp.actions import ParseSettings, parse, without_thinking
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


@pytest.mark.parametrize("content", SAY_DESK_1)
def test_one_command_in_many_dresses(content):
    assert outcome(read(content)) == DESK


@pytest.mark.parametrize(("content", "finish_reason", "expected"), OTHERS)
def test_cut_unknown_near_and_compound_replies(content, finish_reason, expected):
    assert outcome(read(content, finish_reason=finish_reason)) == expected


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


def test_invented_turns_may_stand_in_one_line():
    parsed = read("ASSISTANT: Action: go to desk 1 USER: On the desk 1, you see a mug 1. ASSISTANT: Action: look")
    assert (parsed.kept, parsed.action) == ("ASSISTANT: Action: go to desk 1", DESK)
    assert "invented_observation" in parsed.flags
    assert read("Thought: ask the user: where?\nAction: go to desk 1").flags == ()


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


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("no thought", "no thought"),
        ("<think>a</think>said", "said"),
        ("a {draft}</think>said", "said"),
        ("<think>a</think>b</think>said", "said"),
        ("<think>a</think>one <thinking>b</thinking>two", "one two"),
        ("<think>never closed", ""),
        ("思考 a</think>答え：said & “done”", "答え：said & “done”"),
    ],
)
def test_replies_that_are_no_actions_without_their_thoughts(reply, said):
    """P02 and P03 for JSON and summaries."""
    assert without_thinking(reply) == said
    assert without_thinking("(x)a(/x)said", ParseSettings(think_tags=[["(x)", "(/x)"]])) == "said"


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


@pytest.mark.parametrize("finish", ["stop", "length"])
def test_without_a_stop_string_an_invented_turn_costs_tokens_and_nothing_else(finish: str) -> None:
    """P01. Why no stop string is sent by default: the parser ends at the same place, and reasoning may quote observations."""
    said = "Thought: on.\nAction: go to desk 1"
    played_on = said + "\nObservation: You see a mug.\nThought: mine.\nAction: take mug 1 from desk 1\nObservation: Yo"
    quoting = f"<think>It said\nObservation: You are in a room.\nSo the desk.</think>\n{said}"
    card, admissible = EnvCard("", ""), ["go to desk 1", "take mug 1 from desk 1"]

    def read(reply: str, reason: str) -> tuple[str, str | None, str]:
        parsed = parse(reply, finish_reason=reason, admissible=admissible, card=card)
        return parsed.status, parsed.action, parsed.kept

    assert read(played_on, finish) == read(said, "stop") == ("ok", "go to desk 1", said)
    assert read(quoting, "stop")[:2] == ("ok", "go to desk 1")
    assert read(quoting.partition("\nObservation:")[0], "stop")[0] != "ok"  # what the stop string would have left
