"""What the tracker reads from the game's words, in both logics."""

from __future__ import annotations

import pytest

from agentexp.core import Fact, Step
from agentexp.envs.alfworld.facts import HouseFacts
from agentexp.envs.alfworld.texts import mask

START = (
    "You are in the middle of a room. Looking quickly around you, you see a desk 2, a desk 1, a drawer 1, a fridge 1, "
    "and a microwave 1."
)


def seen(*turns: tuple[str, str]) -> tuple[HouseFacts, list[list[Fact]]]:
    tracker = HouseFacts()
    news = [tracker.observe(None, Step(START))]
    news += [tracker.observe(action, Step(text, error=text == "Nothing happens.")) for action, text in turns]
    return tracker, news


WALK = (
    ("go to desk 1", "You arrive at desk 1. On the desk 1, you see a mug 2, and a pen 1."),
    ("go to drawer 1", "You arrive at drawer 1. The drawer 1 is closed."),
    ("open drawer 1", "You open the drawer 1. The drawer 1 is open. In it, you see nothing."),
    ("take mug 2 from desk 1", "Nothing happens."),
    ("go to fridge 1", "You arrive at fridge 1. The fridge 1 is closed."),
)


def test_places_and_contents() -> None:
    tracker, news = seen(*WALK)
    assert news[0] == [Fact("place", (p,)) for p in ("desk 2", "desk 1", "drawer 1", "fridge 1", "microwave 1")]
    assert Fact("at", ("mug 2",), "desk 1") in news[1] and Fact("works", ("go to", "", "desk")) in news[1]
    assert Fact("state", ("drawer 1",), "closed") in news[2]
    assert {Fact("state", ("drawer 1",), "open"), Fact("empty", ("drawer 1",)), Fact("works", ("open", "", "drawer"))} == set(
        news[3]
    )
    assert news[4] == [Fact("refused", ("take", "mug", "desk"), "being there")]
    assert tracker.place() == "fridge 1 closed"


def test_the_old_words_say_the_same() -> None:
    new, _ = seen(*WALK)
    old, _ = seen(*[(action, text.replace("arrive at desk 1", "arrive at loc 8")) for action, text in WALK])
    assert old.facts() == new.facts()


def test_nothing_counts_twice() -> None:
    turns = [("close drawer 1", "You close the drawer 1."), WALK[2]] * 3
    _, news = seen(*WALK[:3], *turns)
    assert [len(new) for new in news[4:]] == [1, 0, 0, 0, 0, 0]


def test_the_map_shows_the_house_before_it_was_changed() -> None:
    tracker, _ = seen(
        *WALK[:3],
        ("go to desk 1", "You arrive at desk 1. On the desk 1, you see a mug 2, and a pen 1."),
        ("take mug 2 from desk 1", "You pick up the mug 2 from the desk 1."),
        ("go to drawer 1", "You arrive at drawer 1. The drawer 1 is open. In it, you see nothing."),
        ("move mug 2 to drawer 1", "You move the mug 2 to the drawer 1."),
        ("examine drawer 1", "The drawer 1 is open. In it, you see a mug 2."),
        ("go to desk 2", "You arrive at desk 2. On the desk 2, you see nothing."),
    )
    assert dict(tracker.where("mug")) == {"mug 2": "drawer 1"}
    found = tracker.map("put a mug in desk.")
    assert {"thing": "mug 2", "relation": "on", "place": "desk 1"} in found.spatial
    assert {"thing": "drawer 1", "relation": "is", "place": "closed"} in found.spatial
    assert {"place": "drawer 1", "what": "anything"} in found.absent
    assert found.spatial[0]["thing"] == "mug 2", "what the goal asks for comes first"
    assert found.unknown == ["fridge 1", "microwave 1"]
    assert "mug 2 (wanted) is at desk 1." in found.task_notes


def test_things_put_into_an_unseen_place_are_not_its_first_contents() -> None:
    tracker, _ = seen(
        WALK[0],
        ("take mug 2 from desk 1", "You pick up the mug 2 from the desk 1."),
        ("go to desk 2", "You arrive at desk 2. On the desk 2, you see nothing."),
        ("move mug 2 to desk 2", "You move the mug 2 to the desk 2."),
        ("examine desk 2", "On the desk 2, you see a mug 2."),
    )
    assert [entry for entry in tracker.map("").spatial if entry["place"] == "desk 2"] == []
    assert {"thing": "mug 2", "relation": "on", "place": "desk 1"} in tracker.map("").spatial


def test_a_place_that_shares_the_location_is_reached_by_examining_it() -> None:
    tracker, _ = seen(WALK[0], ("go to drawer 1", "Nothing happens."), ("examine drawer 1", "The drawer 1 is closed."))
    assert tracker.here == "drawer 1" and tracker.state == {"drawer 1": "closed"}


def test_effects_and_the_hand() -> None:
    tracker, news = seen(
        ("heat egg 1 with microwave 1", "You heat the egg 1 using the microwave 1."),
        ("cool egg 1 with fridge 1", "You cool the egg 1 using the fridge 1."),
        ("inventory", "You are carrying: a egg 1."),
    )
    assert Fact("effect", ("heat", "egg"), "hot") in news[1]
    assert tracker.treated == {("cool", "egg 1")} and tracker.holding == "egg 1"


@pytest.mark.parametrize("noise", ["", "fly away", "take 1", "put the mug on the desk", "GO TO"])
def test_unknown_actions_teach_nothing(noise: str) -> None:
    _, news = seen((noise, "Nothing happens."))
    assert news[1] == []


def test_masking_joins_what_differs_in_names_only() -> None:
    one = mask("You arrive at desk 1. On the desk 1, you see a mug 2, a pen 1, and a cd 3.")
    two = mask("You arrive at shelf 12.  On the shelf 12, you see a book 1.")
    assert one == two == "you arrive at <e>. on the <e>, you see <e>."
    assert mask("On the desk 1, you see nothing.") != mask("On the desk 1, you see a pen 1.")
