"""Worlds, one module or small folder each, and the worker pool that runs their engines."""
