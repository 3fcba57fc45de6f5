"""Worlds that an agent is driven in by ticks; see `VoxelWorld` in `agentexp.wise.core`."""
