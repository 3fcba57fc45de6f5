"""Reading a version 5 story's memory: the object tree, attributes and properties (Z-Machine Standard 1.1, section 12).

jericho's own `ZObject` knows 32 of the 48 attributes and no property values, so the exits of a room are out of its reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

_DEFAULTS = 63 * 2  # bytes of the property defaults table
_ENTRY = 14  # bytes of one object: 6 of attributes, parent, sibling, child, property table


class Memory:
    """One snapshot of a story's dynamic memory.

    Args:
        ram: the bytes from address 0.
        count: number of the last object.
        names: number -> short name.
        layout: name -> number of attributes and properties, as the story tells it.
    """

    def __init__(self, ram: bytes, count: int, names: Sequence[str], layout: Mapping[str, int]) -> None:
        self._ram, self._layout = ram, layout
        self.count, self.names = count, names
        self._first = self._word(0x0A) + _DEFAULTS

    # ---------------------------------------------------------------------------------------------------------------- tree

    def parent(self, thing: int) -> int:
        """What holds a thing; 0 for nothing."""
        return self._word(self._entry(thing) + 6)

    def children(self, thing: int) -> Iterator[int]:
        """What a thing holds, in the tree's order."""
        child = self._word(self._entry(thing) + 10)
        while child:
            yield child
            child = self._word(self._entry(child) + 8)

    def has(self, thing: int, attribute: str) -> bool:
        """Whether a thing has an attribute."""
        number = self._layout[attribute]
        return bool(self._ram[self._entry(thing) + number // 8] & (0x80 >> number % 8))

    def values(self, thing: int, prop: str) -> list[int]:
        """The words of a property; empty where the thing does not have it (defaults do not count)."""
        wanted = self._layout[prop]
        for number, start, size in self._properties(thing):
            if number == wanted:
                return [self._word(at) for at in range(start, start + size - 1, 2)]
        return []

    def value(self, thing: int, prop: str) -> int:
        """The first word of a property; 0 where the thing does not have it."""
        return next(iter(self.values(thing, prop)), 0)

    def byte(self, name: str) -> int:
        """The byte at an address of the layout."""
        return self._ram[self._layout[name]]

    def number(self, name: str) -> int:
        """The word at an address of the layout."""
        return self._word(self._layout[name])

    def objects(self) -> bytes:
        """All objects with their properties: equal for two states in which the world is the same."""
        return self._ram[self._first : self._end()]

    # --------------------------------------------------------------------------------------------------------------- bytes

    def _word(self, at: int) -> int:
        return self._ram[at] << 8 | self._ram[at + 1]

    def _entry(self, thing: int) -> int:
        return self._first + _ENTRY * (thing - 1)

    def _end(self) -> int:
        last = self._word(self._entry(self.count) + 12)
        at = last + 1 + 2 * self._ram[last]
        for _, start, size in self._properties(self.count):
            at = start + size
        return at

    def _properties(self, thing: int) -> Iterator[tuple[int, int, int]]:
        """(number, address of the data, bytes) of each property."""
        at = self._word(self._entry(thing) + 12)
        at += 1 + 2 * self._ram[at]
        while size := self._ram[at]:
            number, length, at = size & 63, 1 + (size >> 6 & 1), at + 1
            if size & 0x80:
                length, at = (self._ram[at] & 63) or 64, at + 1
            yield number, at, length
            at += length
