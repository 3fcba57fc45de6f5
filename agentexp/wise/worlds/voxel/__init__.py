"""`world=voxel`: a real Minecraft-protocol server and body, run by node and driven from Python over JSON lines.

The server is flying-squid with a generator and rules of ours, the body is a mineflayer bot, pictures come from
prismarine-viewer in a headless Chromium. `install` puts the node packages into the user's cache folder; nothing of Mojang's is
part of agentexp. With `address=host:port` the same body joins a Minecraft Java server that the user runs.
"""
