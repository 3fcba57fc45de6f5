"""WISE (paper 2606.12852): a Minecraft agent with a semantic affordance event graph, an opportunistic scheduler and multi-scale
exploration, in a simulated world, a voxel world over Minecraft's protocol, and MineRL.

Read `core.py` first, then `agent.py`.
"""
