"""Evaluates the top level of modules in three values, without executing any of it.

Read from the bottom up: :mod:`frame` (where statements run), :mod:`machine` (what each part needs
of the others), :mod:`readings`, :mod:`truth`, :mod:`comparisons`, :mod:`names`, :mod:`operators`,
:mod:`narrowing`, :mod:`expressions`, :mod:`binding`, :mod:`branches`, :mod:`exceptions`,
:mod:`statements`, :mod:`builtin_calls`, :mod:`calls`, :mod:`import_statements`,
:mod:`process_mappings`, :mod:`foreign_modules`, :mod:`import_system`, :mod:`module_attributes`.
:class:`auditor.imports.ImportRun` is the whole.
"""
