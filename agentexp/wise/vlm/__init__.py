"""Models that name what is on keyframes: over an API, simulated, or replayed; and the worker that asks them."""
