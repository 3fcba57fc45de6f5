"""Pure functions over episodes."""
