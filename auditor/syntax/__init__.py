"""One file to platform-free facts, with the standard library's parser.

``ast`` is used and not LibCST because only the structure is needed here, and it is ten times
faster.

Read from the bottom up: :mod:`parsing` (bytes to a syntax tree), :mod:`text` (the source of a
node), :mod:`blocks` (classes and functions by their lines), :mod:`names`, :mod:`parameters` and
:mod:`annotations` (what nodes say), :mod:`heads` and :mod:`outline` (what of a function need not
be parsed), :mod:`operators`, :mod:`definite_assignment` (which names exist for certain),
:mod:`expressions`, :mod:`simple_statements`, :mod:`compound_statements`, :mod:`definitions`,
:mod:`statements`. :mod:`module` and :mod:`function` are what others ask.
"""
