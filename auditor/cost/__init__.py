"""What ``use_local_argmax_reduction`` saves: bytes by arithmetic, time by measurement alone.

The bytes of both ways follow from the sizes (``sizes.py``). How long a step takes does not, so
times come from points that somebody measured (``measurements.py``, ``own.py``); between two of
them is interpolated, and outside of them there is no number (``estimate.py``).
"""
