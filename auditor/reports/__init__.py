"""One file an output. Each is a pure function of a :class:`~auditor.coverage.Coverage`."""
