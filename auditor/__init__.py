"""Reads a vLLM tree and answers which draft models have a capability, on which platform.

Nothing in this package imports or executes the audited tree, and no module here knows
``codemods``.
"""

__version__ = "0.1.0"
