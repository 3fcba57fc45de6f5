"""A fast 2.5-D world for the tasks of paper 004: terrain, ponds, trees, mobs, first-person pictures. See `world.py`."""
