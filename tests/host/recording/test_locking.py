"""Several processes that need the tables of one RUN: one makes them, the others wait and say for which process."""

import multiprocessing
import os
import signal
import threading

import pytest
from hypermon.host.dictionary.run_dictionary import keep_dictionary
from hypermon.host.events import framed_events
from hypermon.host.recording.locking import locked
from hypermon.host.run import Run

from tests.host.telling import BOOK

PROCESSES = multiprocessing.get_context("spawn")


def ask(path, begin, answers):
    """What four readers ask of a run at once."""
    begin.wait()
    try:
        run = Run(path)
        framed_events(run)
        answers.put([run.sql(f"select count(*) from {name}").fetchall() for name in (
            "events", "framed", "states", "messages", "counters", "logs")])
    except BaseException as error:
        answers.put(repr(error))
        raise


def hold(path, held):
    with locked(path):
        held.set()
        signal.pause()


def test_readers_at_once(mixed_run, tmp_path):
    (tmp_path / "d.toml").write_text(f'{BOOK}[logging.strings]\n0 = "said"\n')
    keep_dictionary(mixed_run, tmp_path / "d.toml")
    begin, answers = PROCESSES.Barrier(4), PROCESSES.Queue()
    readers = [PROCESSES.Process(target=ask, args=(mixed_run.path, begin, answers)) for _ in range(4)]
    for reader in readers:
        reader.start()
    found = [answers.get(timeout=300) for _ in readers]
    for reader in readers:
        reader.join()
    assert isinstance(found[0], list), found[0]
    assert found == [found[0]] * 4
    assert not list(mixed_run.path.glob(".hypermon-*"))


def test_a_killed_writer_keeps_nobody_waiting(mixed_run):
    """And the wait is said with the number of the process that is waited for."""
    held, said = PROCESSES.Event(), []
    holder = PROCESSES.Process(target=hold, args=(mixed_run.path, held))
    holder.start()
    held.wait()

    def tell(line):
        said.append(line)
        os.kill(holder.pid, signal.SIGKILL)

    mixed_run.tell = tell
    assert mixed_run.decode()["events"] > 0
    holder.join()
    assert said == [f"{mixed_run.path}: waiting for process {holder.pid}, which is working on its tables"]


def test_who_only_reads_does_not_wait(mixed_run):
    """Any user who can read a RUN can hold its lock. A process that finds whole tables does not need it."""
    mixed_run.decode()
    held = PROCESSES.Event()
    holder = PROCESSES.Process(target=hold, args=(mixed_run.path, held), daemon=True)
    holder.start()
    held.wait()
    mixed_run.tell = pytest.fail
    assert Run(mixed_run.path).decode()["events"] == mixed_run.decode()["events"]
    holder.kill()
    holder.join()


def test_a_thread_may_lock_twice_and_another_waits(tmp_path):
    order = []

    def other():
        with locked(tmp_path, order.append):
            order.append("other")

    with locked(tmp_path):
        with locked(tmp_path, order.append):
            pass
        thread = threading.Thread(target=other)
        thread.start()
        while not order:        # until it says that it waits
            pass
        order.append("first")
    thread.join()
    assert order[1:] == ["first", "other"]
    assert f"process {os.getpid()}" in order[0]
