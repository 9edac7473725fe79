"""Out-of-tree plugins over a vLLM source: what they do to it, collected by the import run."""
