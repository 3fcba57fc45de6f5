"""What the adapters to real Minecraft share: keys and camera, commands, places in view, bumps, names of items."""
