"""Second processes end with the first, and leave an interrupt to it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from auditor.processes import can_fork

ROOT = Path(__file__).parent.parent
#: Each child says that it has begun, and would then be busy for ten minutes.
SCRIPT = """
import os, signal, time
from auditor.processes import Beside, Worker, aside

signal.signal(signal.SIGINT, signal.default_int_handler)
reading, writing = os.pipe()

def busy(*_):
    os.write(writing, b"x")
    time.sleep(600)

try:
    beside, worker = Beside(busy), Worker(busy)
    worker.send([1])
    with aside(busy):
        begun = 0
        while begun < 3:
            begun += len(os.read(reading, 3))
        # The children first, with time to complain; then all of them.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.killpg(0, signal.SIGINT)
        time.sleep(1)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.killpg(0, signal.SIGINT)
        {waits}
        time.sleep(600)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.skipif(not can_fork(2), reason="there are no second processes here")
@pytest.mark.parametrize("waits", ["beside.result()", "worker.receive()", "pass"])
def test_an_interrupt_is_told_once_and_ends_every_process(waits: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(waits=waits)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        start_new_session=True,
        timeout=120,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("interrupted\n", "", 0)
