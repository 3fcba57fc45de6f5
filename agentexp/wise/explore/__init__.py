"""Explorers: where to look next. All are `Explorer`s of `agentexp.wise.core`; the controller and the world are the same for all."""
