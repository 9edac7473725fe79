"""How the engine calls a draft model, and which of its classes draft for which architecture.

:mod:`sketch` reads the definitions of a module without parsing all of it, :mod:`names` finds what
a name stands for, :mod:`drafters` reads the calls that a speculator or proposer makes,
:mod:`interpreter` runs the tree's own configuration code over values that are known in part, and
:mod:`selection` asks it which drafter an architecture gets. :mod:`signature` says whether a call
fits a method. :mod:`contract` puts them together.
"""
