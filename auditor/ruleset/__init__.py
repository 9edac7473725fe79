"""The data of ``rules/`` as typed structures.

Read from the bottom up: :mod:`lines` (where in a file a key stands), :mod:`parsing` (one file),
:mod:`files` (how files are found, laid over and loaded). Each further module has the structure of
one kind of file and the functions that give its rules: :mod:`target`, :mod:`capabilities`,
:mod:`distributions`, :mod:`platforms`, :mod:`builds`, :mod:`heads`, :mod:`shapes`, :mod:`engine`,
:mod:`findings`, :mod:`codes`, :mod:`harness`, :mod:`examples`. Rules of a user are checked by
:mod:`kinds` (which files a folder holds), :mod:`mistakes` (their values), :mod:`trials` (their
examples) and :mod:`checks`, which is the whole.

A package that alone reads a file has its structure (:mod:`auditor.cost`,
:mod:`auditor.checkpoints`).
"""
