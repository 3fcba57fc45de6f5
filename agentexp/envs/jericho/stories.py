"""The stories that come with this package, their goals and their games.

A game is one story in one variant: `tw-seed N` in the story's source draws where things lie, which of several things or
numbers is the right one, and in the maze the way. Splits are by story, so nothing learnt by heart in training helps in a test.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

FOLDER = Path(__file__).parent / "stories"
TEST_SIZE = 20  # AgentBoard's number of games
VARIANTS = {
    "cottage": (0, 1, 2, 3, 4, 5, 7, 9, 11, 13, 14, 15),
    "station": (0, 1, 2, 3, 5, 6, 7, 8, 9, 11, 13, 15),
    "mine": (0, 1, 2, 3, 4, 5, 6, 7, 8, 10),
}
"""The variants of the stories for training and development: the first that differ from each other (a test looks)."""

TEST_VARIANTS = (0, 1, 2)


@dataclass(frozen=True, slots=True)
class Story:
    """One story.

    Attributes:
        name: file name without "tw-" and ending.
        split: the split that all its variants belong to.
        title: as the story calls itself.
        goal: what to achieve.
    """

    name: str
    split: Literal["train", "dev", "test"]
    title: str
    goal: str

    @property
    def source(self) -> Path:
        """The Inform 6 source."""
        return FOLDER / f"tw-{self.name}.inf"

    @property
    def file(self) -> Path:
        """The compiled story."""
        return FOLDER / f"tw-{self.name}.z5"


STORIES = (
    Story(
        "cottage",
        "train",
        "The Shuttered Cottage",
        "Find the deed of the cottage, bring it to the country lane and drop it there.",
    ),
    Story("station", "train", "The Last Train", "Get the coast train to come in and board it."),
    Story("mine", "dev", "Lantern Gulch", "Find a silver nugget and give it to the assayer."),
    Story("lighthouse", "test", "The Dark Lighthouse", "Light the great lamp at the top of the lighthouse."),
    Story(
        "observatory", "test", "The Clockwork Observatory", "Open the roof of the dome and find the comet with the telescope."
    ),
    Story("maze", "test", "The Hedge Maze", "Fetch the golden pear from the heart of the maze and give it to the gardener."),
    Story("bakery", "test", "The Village Bakery", "Bake a cake after the recipe of the house and give it to the mayor."),
    Story("museum", "test", "Night at the Museum", "Take the jade mask from the vault and leave by the door to the street."),
    Story("submarine", "test", "Below the Ice", "Bring the submarine to the surface and open the hatch."),
    Story("abbey", "test", "The Bell of the Abbey", "Ring the bronze bell of the abbey."),
)
BY_NAME = {story.name: story for story in STORIES}


def variants(story: Story) -> tuple[int, ...]:
    """The variants of a story that are games."""
    return VARIANTS.get(story.name, TEST_VARIANTS)


def games(split: str) -> list[tuple[Story, int]]:
    """(story, variant) of a split: the first variant of each of its stories, then the second of each, ...

    The test split ends after 20 games: seven stories in variants 0 and 1, six in variant 2.
    """
    stories = [story for story in STORIES if story.split == split]
    longest = max(len(variants(story)) for story in stories)
    listed = [(story, variants(story)[i]) for i in range(longest) for story in stories if i < len(variants(story))]
    return listed[:TEST_SIZE] if split == "test" else listed
