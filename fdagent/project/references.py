"""What can only be seen with the whole project in view: references, ranks, cycles, variables, places.

Guarantees: each problem stands once, with the file and key to change. Takes entities as far as they could be read, and
the names of those that could not, so that one broken file does not make every reference to it a problem.
"""

from collections.abc import Iterable, Mapping

from fdagent.project.graph import MAX_CYCLES, cycles
from fdagent.project.layers import META, UNKNOWN_RANK
from fdagent.project.model import Entity, EntitySource, Environment
from fdagent.project.problems import Findings, did_you_mean, found
from fdagent.project.source import ONLY_ALIAS, expand, variables

MAX_HINTS = 20
"""Unknown entities for which a near name is looked up: each look-up goes through all names."""


def check_references(entities: Mapping[str, Entity], files: Mapping[str, str], findings: Findings) -> None:
    """Every entity that is read exists, is another one, has no higher rank, and does not read its reader.

    Args:
        entities: Those that could be read.
        files: Each entity that has a file, readable or not, and that file, relative to the project's root.
        findings: Where problems go.
    """
    hints: dict[str, str] = {}
    for entity in entities.values():
        for source in entity.sources:
            problem = ""
            if source.entity == entity.name:
                problem = f"`{entity.name}` reads itself"
            elif source.entity not in files:
                if source.entity not in hints and len(hints) < MAX_HINTS:
                    hints[source.entity] = did_you_mean(source.entity, files)
                problem = f"there is no entity {found(source.entity)}{hints.get(source.entity, '')}"
            elif source.entity in entities and entities[source.entity].layer.rank > entity.layer.rank > UNKNOWN_RANK:
                read = entities[source.entity].layer
                problem = (
                    f"`{source.entity}` has rank {read.rank}, expected at most {entity.layer.rank}, the reader's own"
                )
            if source.entity and problem:
                findings.add(files[entity.name], _key(source), problem)
    others = {name: [read for read in entity.upstream if read != name] for name, entity in entities.items()}
    circles = cycles(others)
    for circle in circles:
        findings.add(files[circle[0]], "[source]", f"a cycle, each reads the next: {' -> '.join(circle)}")
    if len(circles) == MAX_CYCLES:
        findings.add("entities", "", f"there may be more cycles than the {MAX_CYCLES} named")


def _key(source: EntitySource) -> str:
    return "[source] entity" if source.alias == ONLY_ALIAS else f"[source] {source.alias}"


def check_variables(
    entities: Iterable[Entity], environments: Mapping[str, Environment], files: Mapping[str, str], findings: Findings
) -> None:
    """Every environment has each variable that a file pattern names, and a local one gets a local path from it."""
    for entity in entities:
        pattern = entity.files.files if entity.files else ""
        for environment in environments.values():
            lacking = [name for name in variables(pattern) if name not in environment.vars]
            for name in lacking:
                what = f"`{{{name}}}` is not one of the vars of environment {environment.name}"
                findings.add(files[entity.name], "[source] files", what + did_you_mean(name, environment.vars))
            if not lacking and environment.target == "local" and "://" in expand(pattern, environment.vars):
                what = f"is an address in the local environment {environment.name}, expected a path"
                findings.add(files[entity.name], "[source] files", what)


def check_places(entities: Iterable[Entity], files: Mapping[str, str], findings: Findings) -> None:
    """No two entities write one table, nor one quarantine table, on any file system."""
    first: dict[tuple[str, ...], Entity] = {}
    for entity in entities:
        layer = entity.layer
        if not layer.lakehouse:
            continue  # its layer was reported
        tables = (
            (layer.lakehouse, layer.schema or "", entity.table),
            (META, "", quarantine_table(entity)),
        )
        for place in tables:
            other = first.setdefault(tuple(part.casefold() for part in place), entity)
            if other.name.casefold() != entity.name.casefold():
                path = "/".join(part for part in place if part)
                findings.add(files[entity.name], "", f"`{entity.name}` and `{other.name}` would both write {path}")


def quarantine_table(entity: Entity) -> str:
    """The table in LH_Meta that keeps the rows an entity refused."""
    return f"quarantine_{entity.layer.name}_{entity.table}"
