"""What the methods for logits and for tokens really compute, as terms that can be compared.

:mod:`terms` are the values, :mod:`attributes` says what ``self.x`` is, :mod:`symbolic` runs a
method body over terms, :mod:`path` reads the head path off the result, and :mod:`equivalence`
compares two.
"""
