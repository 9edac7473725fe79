"""Where the engine asks a model what it has, and what it does where the answer is no.

Read off the audited tree alone: every ``hasattr``, every ``getattr`` with a default, and every
function or protocol of the models' interfaces that asks the same.
"""
