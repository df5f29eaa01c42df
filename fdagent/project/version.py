"""The metadata version: one digest of all that decides what a run of this project does.

Guarantees: two projects have the same version exactly when layers, environments and entities (their SQL included) were
read as the same values; comments and white space of the TOML files, key order, file order, line ends, `sql` or
`sql_file`, an explicit default and the folder's place make no difference; SQL counts to the letter. A later version of the program that knows more keys gives an old
project the same digest, because a value equal to its default is left out.

Environments are part of it: their variables say where rows come from, their ids where tables go, so that a change of
either has to be promoted by a person as well. A path in `vars` counts as it is written; the project's own place never
does. The price: a change of one environment asks for a promotion of each.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from fdagent.project.model import Entity, Environment, Layer

SHORT = 12
"""Hex digits that people are shown."""

_IMPLIED = frozenset({"name", "layer", "table", "file", "sql_file"})
"""An entity's fields that its name says, or the place of the project."""
_UNORDERED = {"sources": "alias", "columns": "source"}
"""Fields that come from a TOML table, whose keys have no order, with the field to sort them by."""


def metadata_version(
    layers: Mapping[str, Layer], environments: Mapping[str, Environment], entities: Mapping[str, Entity]
) -> str:
    """SHA-256 of the normalised content, as 64 hex digits."""
    content = {
        "layers": {name: _plain(layer) for name, layer in layers.items()},
        "environments": {name: _plain(environment) for name, environment in environments.items()},
        "entities": {name: _entity(entity) for name, entity in entities.items()},
    }
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def short(version: str) -> str:
    """The version as people are shown it."""
    return version[:SHORT]


def _entity(entity: Entity) -> dict[str, Any]:
    values: dict[str, Any] = {key: value for key, value in _plain(entity).items() if key not in _IMPLIED}
    for key, by in _UNORDERED.items():
        in_file_order = key == "columns" and entity.files is not None and not entity.files.csv.header
        if key in values and not in_file_order:
            values[key] = sorted(values[key], key=lambda item, by=by: item[by])  # type: ignore[misc]
    return values


def _plain(value: Any) -> Any:
    """A value as JSON has it, without the fields that have their default."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: _plain(part)
            for field in fields(value)
            if (part := getattr(value, field.name)) != _default(field)
        }
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, tuple) else value


def _default(field: Any) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default
