"""MineStudio's simulator (Minecraft 1.16.5), the backend that is still maintained and brings STEVE-1, VPT and MineCLIP."""
