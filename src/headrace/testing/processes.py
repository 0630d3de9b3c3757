"""Simulated processes: one runs at a time, and a seeded generator chooses at each step of the disk which one continues."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from random import Random

from headrace.testing.disk import Crash, Machine, SimulatedDisk
from headrace.testing.inode import Inode

Body = Callable[[SimulatedDisk], None]


class Deadlock(AssertionError):
    """Every process waits for a lock that another one holds."""


class SimulatedProcess:
    """One process: a body that runs in a thread of its own, but only while it has the turn."""

    def __init__(self, process: SimulatedDisk, body: Body) -> None:
        self.process = process
        self.waits_for: Inode | None = None
        self.finished = False
        self.error: BaseException | None = None
        self._body = body
        self._turn = threading.Lock()
        self._back = threading.Lock()
        self._turn.acquire()
        self._back.acquire()
        _threads.submit(self._run)

    @property
    def runnable(self) -> bool:
        return self.waits_for is None or self.waits_for.holder is None or not self.process.alive

    def resume(self) -> None:
        """Give it the turn, and wait until it returns it."""
        self._turn.release()
        self._back.acquire()

    def pause(self) -> None:
        """Return the turn; called in the task's own thread."""
        self._back.release()
        self._turn.acquire()
        if not self.process.alive:
            raise Crash

    def _run(self) -> None:
        self._turn.acquire()
        try:
            if self.process.alive:
                self._body(self.process)
        except Crash:
            pass
        except BaseException as error:  # noqa: BLE001 - handed to the thread that asked for it
            self.error = error
        self.finished = True
        self._back.release()


class Processes:
    """The processes of a machine and their turns."""

    def __init__(self, machine: Machine, random: Random) -> None:
        self.machine = machine
        self._random = random
        self.tasks: list[SimulatedProcess] = []
        self._running: SimulatedProcess | None = None
        machine.blocked = self._blocked

    def start(self, body: Body) -> None:
        """Add a process; it runs when it gets a turn."""
        self.tasks.append(SimulatedProcess(self.machine.process(), body))

    def pause(self) -> None:
        """Give any process the next turn; called by the running one."""
        self.machine.observe()
        assert self._running is not None
        self._running.pause()

    def kill(self, process: SimulatedDisk) -> None:
        """End one process; if it is the running one, it raises `Crash` after this."""
        assert self._running is not None
        self.machine.kill(process, running=process is self._running.process)

    def others(self) -> list[SimulatedDisk]:
        """The processes that wait for their turn."""
        return [task.process for task in self.tasks if task is not self._running]

    def run(self) -> None:
        """Give turns until every process has ended, or one fails."""
        while self.tasks:
            ready = [task for task in self.tasks if task.runnable]
            if not ready:
                self.end()
                raise Deadlock("every process waits for a lock")
            task = self._random.choice(ready) if len(ready) > 1 else ready[0]
            self._turn(task)
            if task.error is not None:
                self.end()
                raise task.error

    def end(self) -> None:
        """End all processes as if killed."""
        for task in self.tasks:
            task.process.alive = False
        for task in list(self.tasks):
            self._turn(task)

    def _turn(self, task: SimulatedProcess) -> None:
        self._running, task.waits_for = task, None
        task.resume()
        self._running = None
        if task.finished:
            self.tasks.remove(task)

    def _blocked(self, process: SimulatedDisk, inode: Inode) -> None:
        assert self._running is not None
        assert self._running.process is process
        self._running.waits_for = inode
        self.pause()


class _Threads:
    """A pool of threads: a run of the simulation has many short-lived processes."""

    def __init__(self) -> None:
        self._idle: list[_Thread] = []

    def forget(self) -> None:
        self._idle.clear()

    def submit(self, work: Callable[[], None]) -> None:
        thread = self._idle.pop() if self._idle else _Thread(self._idle)
        thread.give(work)


class _Thread(threading.Thread):
    def __init__(self, idle: list[_Thread]) -> None:
        super().__init__(name="simulated-process", daemon=True)
        self._idle = idle
        self._work: Callable[[], None] | None = None
        self._given = threading.Lock()
        self._given.acquire()
        self.start()

    def give(self, work: Callable[[], None]) -> None:
        self._work = work
        self._given.release()

    def run(self) -> None:
        while True:
            self._given.acquire()
            assert self._work is not None
            self._work()
            self._work = None
            self._idle.append(self)


_threads = _Threads()
# A forked child has the list of threads, but not the threads.
os.register_at_fork(after_in_child=_threads.forget)
