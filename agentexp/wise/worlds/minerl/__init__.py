"""MineRL 0.4.4 (Minecraft 1.11.2), the backend that paper 004 names."""
