"""A process of the world: production code in a greenlet that leaves it at every port call.

Guarantees: what a process does next follows from its program and the answers it was given, and from nothing else; so a
`Node` (a process waiting in a call) can be stored, compared, branched from, and rebuilt by giving the same answers
again. Between two duties only `Me.memory` and `Me.beliefs` live on: at that point processes that remember the same are
the same node.

Does not know what a call means: `state.py` answers.
"""

import copy
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet

from fdagent.commit import Transition
from fdagent.errors import FdagentError
from fdagent.queue.cell import from_row
from fdagent.queue.jobs import Jobs
from fdagent.work.holding import Belief
from models.job import FINAL
from models.step import ABSENT

from .freeze import Port, freeze
from .ports import QueueConnection, SharedSqlite, SimClock, SimIds, SimProcesses, SimStore, SimTable, open_queue

Call = tuple[Any, ...]
"""What a process waits in: the kind, then its arguments."""
Duty = Callable[["Me"], str | None]
"""One bounded piece of work; it may name the duty that comes next."""

DONE: Call = ("done",)
LIVE_TASKS = 20_000
"""Greenlets kept at their nodes; one that was given up is rebuilt when it is needed."""


class Violation(AssertionError):
    """A property does not hold."""


@dataclass(frozen=True, slots=True)
class Fails:
    """The answer "this call raises"."""

    error: type[Exception]


@dataclass(frozen=True, slots=True)
class Program:
    """What one process runs: its duties, on which machine, and for which agent; `parent`: the process that starts it."""

    name: str
    duties: tuple[Duty, ...]
    machine: str = "m"
    agent: str = "a"
    parent: str = ""


class Me:
    """A process's own view: its ports, and what it remembers."""

    def __init__(self, program: Program, boot: int, ask: Callable[[Call], Any], shared: SharedSqlite) -> None:
        self.name, self.agent, self.machine, self.boot = program.name, program.agent, program.machine, boot
        self.ask = ask
        self.clock, self.ids = SimClock(ask), SimIds(ask)
        self.processes, self.store = SimProcesses(ask), SimStore(ask)
        self.memory: dict[str, Any] = {}
        self._shared, self._queue = shared, None
        self.beliefs: dict[str, Belief] = {}

    def table(self, name: str) -> SimTable:
        """The table of that name."""
        return SimTable(name, self.ask)

    def queue(self) -> Jobs:
        """This machine's queue, as production code opens it."""
        if self._queue is None:
            self._queue = open_queue(QueueConnection(self.ask, self._shared), self.clock, self.ids, self.committed)
        return self._queue

    def idle(self) -> bool:
        """Right after a claim: did this machine's queue hold nothing but final jobs?"""
        return all(from_row(row).state in FINAL for row in self._shared.rows[0])

    def believe(self, what: str, span: float) -> Belief:
        """A new belief that the world watches: no two processes may hold one of the same `what` at once."""
        belief = self.beliefs[what] = Belief(span, self.clock)
        return belief

    def saw(self, what: str) -> None:
        """Something that must happen sometimes has happened."""
        self.ask(("saw", what))

    def committed(self, moved: Transition) -> None:
        """The production audit: an event was committed."""
        if moved.chart == "job":
            self.saw(f"job {moved.event}")
            return
        self.saw(moved.event)
        if self.store.unclear:
            self.saw("delete lost, then recognised" if moved.dest == ABSENT else "lost, then recognised")

    def tell(self, what: str, *about: Any) -> None:
        """Say something to the monitors, such as that an effect is there."""
        self.ask(("tell", what, *about))


class _Task:
    """A greenlet in which a program runs."""

    def __init__(self, program: Program, boot: int, shared: SharedSqlite, *, comparing: bool) -> None:
        self.me = Me(program, boot, self._ask, shared)
        self._program, self._ending, self.comparing = program, False, comparing
        self._greenlet = greenlet(self._run, parent=getcurrent())

    def _run(self, _: Any) -> None:
        at, names = 0, [duty.__name__ for duty in self._program.duties]
        while at < len(names):
            me = self.me
            known = (freeze(me.memory), freeze(me.beliefs)) if self.comparing else None
            self._ask(("duty", at, known))
            goto, me.store.unclear = None, False
            try:
                goto = self._program.duties[at](me)
            except FdagentError as err:
                me.memory["trouble"] = type(err).__name__
            at = at + 1 if goto is None else names.index(goto)

    def _ask(self, call: Call) -> Any:
        if self._ending:
            raise GreenletExit
        if getcurrent() is not self._greenlet:
            raise AssertionError(f"{call[0]} asked from outside the process")
        answer = self._greenlet.parent.switch(call)
        if isinstance(answer, Fails):
            raise answer.error(f"The world answers so to {call[0]}.")
        return answer

    def resume(self, answer: Any) -> Call:
        """Give an answer; the next call."""
        self._greenlet.parent = getcurrent()
        try:
            call = self._greenlet.switch(answer)
        except Violation:
            raise
        except Exception as err:
            raise Violation(f"{self.me.name} crashed: {type(err).__name__}: {err}") from err
        return DONE if self._greenlet.dead else call

    def end(self) -> None:
        """Kill it; nothing it does while it unwinds reaches the world."""
        if self._ending:
            return
        self._ending = True
        if not self._greenlet.dead:
            self._greenlet.throw(GreenletExit)
        # The cycles through both would keep all that was left behind until somebody looks for garbage.
        vars(self.me).clear()
        del self._greenlet


class Root:
    """Where all nodes of one start of one program come from.

    Args:
        program: What runs.
        boot: Which start this is.
        shared: Where its world keeps queues.
        branching: Keep what is needed to answer one node in several ways.
    """

    def __init__(self, program: Program, boot: int, shared: SharedSqlite, *, branching: bool) -> None:
        self.program, self.boot, self.branching, self._shared = program, boot, branching, shared
        self.nodes = 0
        self._interned: dict[Any, Node] = {}
        self._live: deque[Node] = deque()
        task = _Task(program, boot, shared, comparing=branching)
        self.first = self.settle(Node(self, None, None, task.resume(None), task))

    def settle(self, node: "Node") -> "Node":
        """The node, or an equal one that was met before; keeps the number of live greenlets bounded."""
        if not self.branching:
            return node
        if node.call[0] == "duty":
            known = self._interned.setdefault(node.call, node)
            if known is not node:
                node.drop()
                return known
        self._live.append(node)
        if len(self._live) > LIVE_TASKS:
            self._live.popleft().drop()
        return node

    def rebuild(self, node: "Node") -> _Task:
        """A greenlet at this node, by giving every answer again."""
        answers = []
        at = node
        while at.parent is not None:
            answers.append(at.answer)
            at = at.parent
        task = _Task(self.program, self.boot, self._shared, comparing=False)
        task.resume(None)
        for answer in reversed(answers):
            task.resume(answer)
        task.comparing = True
        return task

    def end(self) -> None:
        """Kill every greenlet."""
        for node in self._live:
            node.drop()


class Node:
    """A process waiting in `call`."""

    __slots__ = ("_children", "_task", "answer", "beliefs", "call", "parent", "root", "serial")

    def __init__(self, root: Root, parent: "Node | None", answer: Any, call: Call, task: _Task) -> None:
        self.root, self.call = root, call
        self.parent = parent if root.branching else None
        self.answer = answer if root.branching else None
        self._children: dict[Any, Node] = {}
        self._task: _Task | None = task
        root.nodes += 1
        self.serial = root.nodes
        self.beliefs = tuple((what, _alone(belief)) for what, belief in task.me.beliefs.items())

    def after(self, answer: Any) -> "Node":
        """Where the process is after this answer."""
        if not self.root.branching:
            task, self._task = self._task, None
            assert task is not None, "a process that is not branching was answered twice"
            return Node(self.root, None, None, task.resume(answer), task)
        child = self._children.get(answer)
        if child is None:
            task, self._task = self._task, None
            task = task or self.root.rebuild(self)
            child = self.root.settle(Node(self.root, self, answer, task.resume(answer), task))
            self._children[answer] = child
        return child

    def drop(self) -> None:
        """Give the greenlet up."""
        if self._task is not None:
            self._task.end()
            self._task = None


def _alone(belief: Belief) -> Belief:
    """A copy without the clock, which would keep the whole process; `State.believers` gives it one to ask."""
    alone = copy.copy(belief)
    alone._clock = None  # type: ignore[assignment]
    return alone


__all__ = ["DONE", "Call", "Duty", "Fails", "Me", "Node", "Port", "Program", "Root", "Violation"]
