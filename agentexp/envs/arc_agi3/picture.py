"""Frames as pictures: PNG with the games' palette, in a data URL that vision models take. No imaging package is needed."""

from __future__ import annotations

import base64
import re
import struct
import zlib

from agentexp.envs.arc_agi3.frames import SIDE, Grid, rows_of

# The colours with which the official viewer shows 0 to 15.
PALETTE = (
    *((255, 255, 255), (204, 204, 204), (153, 153, 153), (102, 102, 102), (51, 51, 51), (0, 0, 0), (229, 58, 163)),
    *((255, 123, 204), (249, 60, 49), (30, 147, 255), (136, 216, 241), (255, 220, 0), (255, 133, 27), (146, 18, 49)),
    *((79, 204, 48), (163, 86, 214)),
)
_URL = re.compile(r"!\[frame\]\(data:image/png;base64,([A-Za-z0-9+/=]+)\)")
_MAGIC = b"\x89PNG\r\n\x1a\n"


def png(grid: Grid, scale: int = 8) -> bytes:
    """The frame as a PNG of 64 x `scale` pixels a side, 4 bits a pixel."""
    lines = bytearray()
    for row in rows_of(grid):
        cells = [colour for colour in row for _ in range(scale)]
        if len(cells) % 2:
            cells.append(0)
        line = b"\0" + bytes(high << 4 | low for high, low in zip(cells[::2], cells[1::2], strict=True))
        lines += line * scale
    size = SIDE * scale
    return b"".join(
        (
            _MAGIC,
            _chunk(b"IHDR", struct.pack(">IIBBBBB", size, size, 4, 3, 0, 0, 0)),
            _chunk(b"PLTE", bytes(part for colour in PALETTE for part in colour)),
            _chunk(b"IDAT", zlib.compress(bytes(lines), 9)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def markdown(grid: Grid, scale: int = 8) -> str:
    """The frame as a Markdown picture with a data URL; requests send it as a picture."""
    return f"![frame](data:image/png;base64,{base64.b64encode(png(grid, scale)).decode()})"


def read(text: str) -> Grid | None:
    """The frame in a text that `markdown` wrote; None if there is none or it is damaged."""
    match = _URL.search(text)
    try:
        return _pixels(base64.b64decode(match[1])) if match else None
    except (ValueError, IndexError, struct.error, zlib.error):
        return None


def _pixels(data: bytes) -> Grid:
    """The cells of a PNG as `png` writes it."""
    size, at, packed = struct.unpack(">I", data[16:20])[0], len(_MAGIC), b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        if kind == b"IDAT":
            packed += data[at + 8 : at + 8 + length]
        at += length + 12
    lines, scale, width = zlib.decompress(packed), size // SIDE, 1 + (size + 1) // 2
    cells = bytearray()
    for y in range(SIDE):
        line = lines[y * scale * width + 1 : (y * scale + 1) * width]
        pixels = [half for byte in line for half in (byte >> 4, byte & 15)]
        cells += bytes(pixels[:size:scale])
    return bytes(cells)


def strip(text: str) -> str:
    """The text without its pictures."""
    return _URL.sub("", text).rstrip()
