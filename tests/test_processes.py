"""Second processes end with the first, and leave an interrupt to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from forms import FORMS
from trees.minivllm import files

from auditor import job
from auditor.answers import Asked, Resolved, resolve
from auditor.api import Request, Resources, audit
from auditor.coverage import to_json
from auditor.platforms import Platform
from auditor.processes import Beside, Tickets, can_fork
from auditor.registry import Table

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


@pytest.mark.skipif(not can_fork(2), reason="there are no second processes here")
def test_each_ticket_is_drawn_once() -> None:
    tickets = Tickets(200)
    beside = Beside(lambda: bytes(tickets))
    here = bytes(tickets)
    assert sorted(here + beside.result()) == list(range(200))
    assert list(tickets) == []
    beside.close()
    tickets.close()


@pytest.mark.skipif(not can_fork(2), reason="there are no second processes here")
def test_what_a_second_process_took_with_it_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = FORMS["folder"](files({}), "0.30.0", tmp_path)
    expected = to_json(audit(source, Request(), Resources(None, 1)))
    parent, (drawn, end) = os.getpid(), os.pipe()

    def fails(asked: Asked, platform: Platform, table: Table) -> Resolved:
        if os.getpid() != parent:
            os.write(end, b"x")
            os._exit(1)
        if len(asked_here) == 0:
            os.read(drawn, 1)  # until the other one has drawn as well
        asked_here.append(platform.name)
        return resolve(asked, platform, table)

    asked_here: list[str] = []
    monkeypatch.setattr(job, "resolve", fails)
    assert to_json(audit(source, Request(), Resources(None, 2))) == expected
    assert sorted(asked_here) == sorted(set(asked_here))
    assert len(asked_here) == len(json.loads(expected)["platforms"])
