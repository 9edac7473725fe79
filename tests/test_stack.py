"""Room on the stack of frames: calls come through it as they are, and fresh pages are rare."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from auditor.stack import roomy

ROOT = Path(__file__).parent.parent
#: Calls that go over the end of a chunk wherever one ends, and the faults that they cost.
SCRIPT = """
import resource
from auditor.stack import roomy

def leaf():
    return None

def down(depth):
    if depth:
        return down(depth - 1)
    for _ in range(300):
        leaf()

def everything():
    for depth in range(400):
        down(depth)

def faults(work):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    work()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(faults(everything), faults(roomy(everything)))
"""


def test_a_call_comes_through_as_it_is() -> None:
    @roomy
    def told(one: int, *, other: str = "x") -> tuple[int, str]:
        """What it does."""
        if one < 0:
            raise ValueError(one)
        return one, other

    assert told(1) == (1, "x")
    assert told(one=2, other="y") == (2, "y")
    assert (told.__name__, told.__doc__) == ("told", "What it does.")
    with pytest.raises(ValueError, match="-1"):
        told(-1)


@pytest.mark.skipif(sys.platform != "linux", reason="faults are counted as Linux counts them")
def test_frames_above_it_stay_in_one_chunk() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=True
    )
    plain, room = map(int, done.stdout.split())
    assert plain > 1000
    assert room < plain / 10
