"""Sessions played by several processes, and handed back in the order of their numbers."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import signal
from collections.abc import Generator, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from fangcheng_suite.errors import SuiteError

from .hands import Session, play_session
from .plan import Plan

Task = tuple[Plan, int]
"""A session of a plan."""


class WorkerDied(SuiteError):
    """A process that played hands is gone."""


def play(plans: Sequence[Plan], workers: int) -> Generator[tuple[Session, ...], None, None]:
    """Play all sessions of plans that have equally many, in order: the first of each, and so on.

    `workers` 1: in this process. Raises WorkerDied. Whoever stops asking ends the workers by
    closing this iterator.
    """
    tasks = [(plan, number) for number in range(plans[0].sessions) for plan in plans]
    count = min(workers, len(tasks))
    with contextlib.ExitStack() as stack:
        if count > 1:
            played = stack.enter_context(contextlib.closing(_Crew(tasks, count))).play()
        else:
            played = itertools.starmap(play_session, tasks)
        yield from zip(*[played] * len(plans), strict=True)


class _Crew:
    """Processes that are each given the next session as soon as they have played one."""

    def __init__(self, tasks: Sequence[Task], count: int) -> None:
        self._tasks = tasks
        self._next = iter(enumerate(tasks))
        self._workers: dict[Connection, BaseProcess] = {}
        self._plays: dict[Connection, int] = {}
        # Processes that begin anew, and no copies of this one, which may have threads.
        context = multiprocessing.get_context("spawn")
        # Ctrl-C goes to all processes of a terminal: this one alone is to answer it. Those started
        # now leave it ignored.
        answered = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            for _ in range(count):
                here, there = context.Pipe()
                process = context.Process(target=_work, args=(there,), daemon=True)
                process.start()
                there.close()  # so that it is the worker's alone, and its end is the pipe's
                self._workers[here] = process
        finally:
            signal.signal(signal.SIGINT, answered)

    def play(self) -> Iterator[Session]:
        for pipe in self._workers:
            self._give(pipe)
        played: dict[int, Session] = {}
        for place in range(len(self._tasks)):
            while place not in played:
                ready = wait(list(self._plays))
                for pipe in [pipe for pipe in self._plays if pipe in ready]:
                    played[self._plays[pipe]] = self._take(pipe)
                    self._give(pipe)
            yield played.pop(place)

    def _give(self, pipe: Connection) -> None:
        """Give a worker the next session, or let it go."""
        self._plays.pop(pipe, None)
        place, task = next(self._next, (0, None))
        with contextlib.suppress(OSError):  # what is taken from it then says that it is gone
            pipe.send(task)
        if task is not None:
            self._plays[pipe] = place

    def _take(self, pipe: Connection) -> Session:
        try:
            session: Session = pipe.recv()
        except (EOFError, OSError):
            process, (_, number) = self._workers[pipe], self._tasks[self._plays[pipe]]
            process.join()
            raise WorkerDied(
                f"a worker ended while it played session {number} ({_ending(process.exitcode)})",
                "What it said stands above. If the system killed it, memory is short: give fewer "
                "--workers. The same command plays the same hands again.",
            ) from None
        return session

    def close(self) -> None:
        for pipe, process in self._workers.items():
            process.terminate()
            process.join()
            pipe.close()


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"


def _work(pipe: Connection) -> None:
    """A worker's life: sessions to play come in, hands go out, until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while (task := pipe.recv()) is not None:
            pipe.send(play_session(*task))
