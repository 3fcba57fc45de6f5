"""Low-level controllers for real Minecraft: STEVE-1 executes, VPT-Nav or the shared planner walks. Weights are the user's."""
