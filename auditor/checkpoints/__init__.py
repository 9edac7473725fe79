"""From a checkpoint's ``config.json`` to the draft architecture that vLLM asks its registry for.

The tree's own configuration code is run statically: ``interpreter.py`` and its neighbours follow
Python to the letter over concrete values, and stop where they cannot (``CannotFollow``).
``configs.py`` says what a Transformers configuration does, ``transformers_probe.py`` asks an
installed one for the defaults of its classes, ``loading.py`` and ``settling.py`` run the two halves
of what the engine does with a checkpoint, and ``answer.py`` puts them together.
"""
