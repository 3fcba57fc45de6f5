"""What the animals look like: a side and a front, painted in letters."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

_PALETTE: Final = {
    "b": (46, 38, 36),  # a cow's hide
    "w": (214, 208, 200),
    "d": (24, 20, 20),
    "n": (140, 120, 110),
    "f": (232, 232, 228),  # fleece
    "s": (205, 175, 150),
    "p": (238, 160, 160),
    "q": (205, 120, 125),
}

_PAINTED: Final = {
    "cow": (
        """
        .bb.........
        wbbbbbbbbbb.
        nbbwwbbbbwwb
        nbbwwwbbwwbb
        ..bbwbbbbbbb
        ..bbbbbbbwwb
        ...b.b..b.b.
        ...b.b..b.b.
        ...d.d..d.d.
        """,
        """
        b.bbbb.b
        .bdbbdb.
        bbbwwbbb
        bbnnnnbb
        bbnddnbb
        bbbbbbbb
        .bb..bb.
        .bb..bb.
        .dd..dd.
        """,
    ),
    "sheep": (
        """
        ...ffffffff.
        ssffffffffff
        sdffffffffff
        ssffffffffff
        ..ffffffffff
        ...fffffff..
        ...s.s..s.s.
        ...s.s..s.s.
        """,
        """
        .ffffff.
        ffffffff
        ffssssff
        ffdssdff
        ffssssff
        .ffffff.
        .ss..ss.
        .ss..ss.
        """,
    ),
    "pig": (
        """
        pp.........
        pppppppppp.
        qppppppppppq
        qppppppppp.
        .pppppppppp.
        .pp.....pp..
        .qq.....qq..
        """,
        """
        .pppppp.
        pppppppp
        dppppppd
        ppqqqqpp
        ppqqqqpp
        .pp..pp.
        .qq..qq.
        """,
    ),
}

Sprite = tuple[NDArray[np.float32], NDArray[np.bool_]]


def _paint(text: str) -> Sprite:
    rows = text.split()
    width = max(map(len, rows))
    letters = [row.ljust(width, ".") for row in rows]
    colours = np.array([[_PALETTE.get(letter, (0, 0, 0)) for letter in row] for row in letters], np.float32)
    covers = np.array([[letter != "." for letter in row] for row in letters])
    return np.ascontiguousarray(colours.transpose(2, 0, 1)), covers


# (side, front) of each kind: colours of shape (3, rows, columns) from the top, and where they cover. Sides look to the left.
SPRITES: Final[dict[str, tuple[Sprite, Sprite]]] = {name: (_paint(a), _paint(b)) for name, (a, b) in _PAINTED.items()}
