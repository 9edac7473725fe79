"""Mini vLLM trees, one for each spelling that a release has used, and their no-op twins."""
