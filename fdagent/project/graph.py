"""Who reads whom: the order of a run, what a selection names, and cycles.

Guarantees: the order is one and the same for the same project (by rank, then by name, never before what is read); a
selection keeps that order; every reference that lies on a cycle stands in a cycle that is named whole. Reads no file.
"""

import fnmatch
import heapq
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from fdagent.errors import NotFound
from fdagent.project.model import Entity, Project
from fdagent.project.problems import MAX_NAMED, nearest, printable

MAX_CYCLES = 20
"""Cycles named at once: there can be more of them than entities."""

_GLOB = frozenset("*?[")


def order(project: Project) -> tuple[str, ...]:
    """All entities' names, each after those it reads; by rank and name where that leaves a choice."""
    sorter = TopologicalSorter({name: entity.upstream for name, entity in project.entities.items()})
    sorter.prepare()
    ready: list[tuple[int, str]] = []
    names = []
    while sorter.is_active():  # once an entity
        for name in sorter.get_ready():
            heapq.heappush(ready, (project.entities[name].layer.rank, name))
        _, name = heapq.heappop(ready)
        names.append(name)
        sorter.done(name)
    return tuple(names)


def downstream(project: Project, names: Iterable[str]) -> frozenset[str]:
    """The given entities and all that read them, directly or through others."""
    readers: dict[str, list[str]] = {}
    for name, entity in project.entities.items():
        for read in entity.upstream:
            readers.setdefault(read, []).append(name)
    reached = set(names)
    waiting = list(reached)
    while waiting:  # once an entity
        for reader in readers.get(waiting.pop(), ()):
            if reader not in reached:
                reached.add(reader)
                waiting.append(reader)
    return frozenset(reached)


def select(project: Project, names: Iterable[str] = (), *, cascade: bool = False) -> tuple[Entity, ...]:
    """The entities that names and globs such as `silver.*` mean, in the order of a run; none named: all of them.

    Args:
        project: The project.
        names: Names and globs, in any order, repeats allowed.
        cascade: Also everything downstream of them.

    Raises:
        NotFound: A name is not an entity's, or a glob matches none; all such words are named at once.
    """
    words = tuple(dict.fromkeys(names))
    chosen: set[str] = set() if words else set(project.entities)
    unknown = []
    for word in words:
        if word in project.entities:
            chosen.add(word)
        elif _GLOB.isdisjoint(word):
            unknown.append(word)
        else:
            matches = {name for name in project.entities if fnmatch.fnmatchcase(name, word)}
            chosen |= matches
            unknown += [] if matches else [word]
    if unknown:
        raise _not_found(project, unknown)
    if cascade:
        chosen |= downstream(project, chosen)
    return tuple(project.entities[name] for name in order(project) if name in chosen)


def _not_found(project: Project, unknown: list[str]) -> NotFound:
    shown = ", ".join(f"`{printable(word)}`" for word in unknown[:MAX_NAMED])
    more = f" and {len(unknown) - MAX_NAMED} more" if len(unknown) > MAX_NAMED else ""
    meant = [name for word in unknown[:MAX_NAMED] if (name := nearest(word, project.entities))]
    if meant:
        fix = f"Did you mean {', '.join(f'`{name}`' for name in dict.fromkeys(meant))}?"
    else:
        there = sorted(project.entities)
        rest = f" and {len(there) - MAX_NAMED} more" if len(there) > MAX_NAMED else ""
        fix = f"Known: {', '.join(f'`{name}`' for name in there[:MAX_NAMED])}{rest}."
    return NotFound(f"No entity of this project is named or matched by {shown}{more}.", fix=fix)


def cycles(reads: Mapping[str, Iterable[str]]) -> list[tuple[str, ...]]:
    """Cycles among `reads` (entity -> those it reads), each once, from its first name by the alphabet back to it.

    A shortest cycle through each reference that no cycle named before goes through; at most MAX_CYCLES.
    """
    graph = _near_cycles(reads)
    covered: set[tuple[str, str]] = set()
    named: dict[tuple[str, ...], None] = {}
    for name, target in [(name, target) for name, targets in graph.items() for target in targets]:
        path = [] if (name, target) in covered else _shortest(graph, target, name)
        if not path:
            continue
        covered |= set(pairwise([*path, path[0]]))
        first = path.index(min(path))
        named[(*path[first:], *path[:first], path[first])] = None
        if len(named) == MAX_CYCLES:
            break
    return list(named)


def _near_cycles(reads: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """`reads` without what leads to no cycle or comes from none: in a project without cycles, nothing."""
    graph = {name: sorted(set(targets) & set(reads)) for name, targets in reads.items()}
    for _ in ("those that read no cycle", "those that no cycle reads"):
        blocked = _blocked(graph)
        turned: dict[str, list[str]] = {name: [] for name in sorted(blocked)}
        for name in sorted(blocked):
            for target in graph[name]:
                if target in blocked:
                    turned[target].append(name)
        graph = turned
    return graph


def _blocked(graph: Mapping[str, list[str]]) -> set[str]:
    """What a topological order never gets to."""
    sorter = TopologicalSorter(graph)
    with suppress(CycleError):  # the sorter goes on up to the cycles, and that is what is wanted
        sorter.prepare()
    left = set(graph)
    while ready := sorter.get_ready():  # at least one entity a round
        left.difference_update(ready)
        sorter.done(*ready)
    return left


def _shortest(graph: Mapping[str, list[str]], start: str, goal: str) -> list[str]:
    """The shortest way from `start` to `goal`, both included; empty when there is none."""
    before = {start: start}
    waiting = deque([start])
    while waiting and goal not in before:  # once an entity
        name = waiting.popleft()
        for target in graph[name]:
            if target not in before:
                before[target] = name
                waiting.append(target)
    if goal not in before:
        return []
    path = [goal]
    while path[-1] != start:
        path.append(before[path[-1]])
    return path[::-1]
