"""Writes patches derived from an audit. Imports :mod:`auditor`, never the other way round."""
