"""Open any source of a vLLM tree as a read-only set of files."""
