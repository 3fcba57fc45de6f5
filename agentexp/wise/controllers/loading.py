"""Loading of learned policies, with sentences for what is missing."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from agentexp.errors import MissingDependency, UserError

INSTALL = "pip install minestudio==1.1.6 (it brings torch; see docs/wise-minecraft.md)"


def module(name: str) -> ModuleType:
    """Import a module of torch or minestudio.

    Raises:
        MissingDependency: it is not installed, or lacks something itself.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependency(f"Learned controllers need {name} ({error}): {INSTALL}.") from error


def pretrained(where: str, name: str, weights: str, setting: str, device: str) -> Any:
    """A policy of minestudio with its weights, ready to act.

    Args:
        where: module.
        name: class.
        weights: name on the Hugging Face hub, or a folder.
        setting: what its settings are called, for messages.
        device: of torch.

    Raises:
        MissingDependency: the package is not installed.
        UserError: there are no such weights, or no such device.
    """
    kind = getattr(module(where), name)
    # What the hub raises for an unknown name, no network, a private repository or a damaged file are OSErrors and ValueErrors.
    try:
        model = kind.from_pretrained(weights)
    except (OSError, ValueError, RuntimeError) as error:
        raise UserError(
            f"{setting}.weights={weights} could not be loaded ({type(error).__name__}: {error}). It needs the name of a "
            "repository on the Hugging Face hub and a network, or the path of a folder downloaded from there."
        ) from error
    return on(model, setting, device)


def on(model: Any, setting: str, device: str) -> Any:
    """A model on a device, for acting only.

    Raises:
        UserError: torch has no such device.
    """
    try:
        return model.to(device).eval()
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"{setting}.device={device} cannot be used ({error}); choose cpu or cuda.") from error


def numbers(action: Any) -> tuple[int, int]:
    """(buttons, camera) of one tick from tensors of any shape with one element."""
    buttons, camera = (np.asarray(action[key].cpu().numpy()).reshape(-1) for key in ("buttons", "camera"))
    return int(buttons[0]), int(camera[0])
