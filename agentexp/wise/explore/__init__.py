"""Explorers: where to look next. All are `Explorer`s of `agentexp.wise.core`; controller and world are the same for all."""
