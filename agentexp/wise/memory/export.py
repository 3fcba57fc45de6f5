"""What a memory holds at the end of an episode, as files: keyframes with poses and labels, and the graph."""

from __future__ import annotations

import json
from pathlib import Path

from agentexp.errors import MissingDependency
from agentexp.wise.memory.graph_files import draw, save, save_graphml
from agentexp.wise.memory.labelled import LabelMemory, SaegMemory


def save_memory(memory: LabelMemory, folder: Path, picture: bool = True) -> list[Path]:
    """Write keyframes.jsonl, keyframes/*.png (where pictures were kept), and with a graph graph.json, .graphml and .png.

    Args:
        memory: after `settle`.
        folder: made if it is not there.
        picture: draw the graph; takes a second or two.

    Returns:
        The files written.

    Raises:
        MissingDependency: pictures are to be written and Pillow or matplotlib is missing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / "keyframes.jsonl"]
    labels = {answer.record.id: answer for answer in memory.answers}
    with written[0].open("w", encoding="utf-8") as file:
        for number, record in sorted(memory.records.items()):
            found = labels.get(number)
            row = {"id": number, "tick": record.tick, "pose": list(record.pose)}
            if found is not None:
                row |= {"entities": found.entities, "affordances": [list(fact[:3]) for fact in found.affordances]}
            file.write(json.dumps(row) + "\n")
    written += _pictures(memory, folder / "keyframes")
    if isinstance(memory, SaegMemory):
        save(memory.graph, folder / "graph.json")
        save_graphml(memory.graph, folder / "graph.graphml")
        written += [folder / "graph.json", folder / "graph.graphml"]
        if picture:
            draw(memory.graph, folder / "graph.png")
            written.append(folder / "graph.png")
    return written


def _pictures(memory: LabelMemory, folder: Path) -> list[Path]:
    kept = {number: record.picture for number, record in memory.records.items() if record.picture is not None}
    if not kept:
        return []
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingDependency("Saving keyframes needs `pip install 'agentexp[wise]'` (Pillow).") from error
    folder.mkdir(exist_ok=True)
    files = [folder / f"{number:06d}.png" for number in kept]
    for file, image in zip(files, kept.values(), strict=True):
        Image.fromarray(image).save(file)
    return files
