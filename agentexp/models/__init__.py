"""Model backends: language models and scripted stand-ins."""
