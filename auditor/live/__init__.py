"""What an installed vLLM says of itself when it runs, beside what is read off its files.

``probe.py`` is run by the interpreter that has the vLLM. Everything else runs here, and imports
nothing of it.
"""
