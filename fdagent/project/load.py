"""Reading a metadata project: a folder in, a checked `Project` out, or every problem it has at once.

Guarantees: writes nothing and needs no network; a `Project` that is returned was checked whole; a `ProjectError` names
all that could be seen in this reading, one sentence a problem. Does not guarantee that a folder changed while it is
read gives one state of it; the metadata version then names what was read.
"""

from itertools import islice
from pathlib import Path

from fdagent.errors import ProjectError
from fdagent.project.entities import read_entity
from fdagent.project.files import Files
from fdagent.project.layers import ENVIRONMENTS_FILE, LAYERS_FILE, UNKNOWN_RANK, read_environments, read_layers
from fdagent.project.model import Entity, Environment, Layer, Project
from fdagent.project.names import equal_but_for_case, part_problem
from fdagent.project.problems import Findings, did_you_mean, found, printable
from fdagent.project.references import check_places, check_references, check_variables
from fdagent.project.version import metadata_version

ENTITIES_FOLDER = "entities"
MAX_ENTITIES = 10_000
PATTERN_SIGNS = "%*?["
"""delta-rs takes the first for an escape, DuckDB the others for a pattern: they would not mean one folder."""
_SUFFIX = ".toml"


def load_project(root: Path) -> Project:
    """Read and check the project in `root`.

    Raises:
        ProjectError: `root` is no metadata project, or has problems; `problems` has one sentence for each.
    """
    findings = Findings()
    files = Files(root, findings)
    _must_be_a_project(files.root)
    layers = _layers(files, findings)
    environments = _environments(files, layers, findings)
    entities = _entities(files, layers, environments, findings)
    if findings.sentences:
        number = len(findings.sentences)
        raise ProjectError(
            f"The metadata project in {printable(str(files.root))} has {number} problem{'s' if number > 1 else ''}.",
            findings.sentences,
        )
    return Project(
        root=files.root,
        layers=layers or {},
        environments=environments,
        entities=entities,
        metadata_version=metadata_version(layers or {}, environments, entities),
    )


def _must_be_a_project(root: Path) -> None:
    problem = ""
    try:
        str(root).encode()
        names = {path.name for path in root.iterdir()}
        if LAYERS_FILE not in names:
            problem = f"it has no {LAYERS_FILE}"
        elif signs := [sign for sign in PATTERN_SIGNS if sign in str(root)]:
            problem = f"its path has a {signs[0]!r}, which stands for other signs in file patterns: rename the folder"
    except UnicodeEncodeError:
        # Neither DuckDB nor delta-rs opens a file below such a folder.
        problem = "its path is not UTF-8: rename the folder"
    except FileNotFoundError:
        problem = "there is no such folder"
    except NotADirectoryError:
        problem = "it is a file"
    except OSError as error:
        problem = f"the folder can't be read ({(error.strerror or type(error).__name__).lower()})"
    if problem:
        raise ProjectError(
            f"{printable(str(root))} is not a metadata project: {problem}.",
            fix=f"Name the folder that holds {LAYERS_FILE}, or make a new project with `fdagent init FOLDER`.",
        )


def _layers(files: Files, findings: Findings) -> dict[str, Layer] | None:
    values = files.toml(LAYERS_FILE)
    return None if values is None else read_layers(values, findings)


def _environments(files: Files, layers: dict[str, Layer] | None, findings: Findings) -> dict[str, Environment]:
    values = files.toml(ENVIRONMENTS_FILE)
    return {} if values is None else read_environments(values, layers, findings)


def _entities(
    files: Files, layers: dict[str, Layer] | None, environments: dict[str, Environment], findings: Findings
) -> dict[str, Entity]:
    """All entities that can be read, by name; what is wrong between them is reported too."""
    places = _entity_files(files, layers, findings)
    if not places and not findings.sentences:
        findings.add(ENTITIES_FOLDER, "", "holds no entity, expected files such as entities/bronze/orders.toml")
    entities: dict[str, Entity] = {}
    for name, file in islice(places.items(), MAX_ENTITIES):
        _, folder, base = file.split("/")
        layer = (layers or {}).get(folder) or Layer(name=folder, rank=UNKNOWN_RANK, lakehouse="")
        entity = read_entity(files, findings, file, layer, base[: -len(_SUFFIX)])
        if entity is not None:
            entities[name] = entity
    check_references(entities, places, findings)
    check_variables(entities.values(), environments, places, findings)
    check_places(entities.values(), places, findings)
    return entities


def _entity_files(files: Files, layers: dict[str, Layer] | None, findings: Findings) -> dict[str, str]:
    """Entity name -> its file, for every file that is an entity's; what lies where it is not read is reported."""
    places: dict[str, str] = {}
    for folder in files.names(ENTITIES_FOLDER):
        path = f"{ENTITIES_FOLDER}/{folder}"
        if not files.is_folder(path):
            if folder.lower().endswith(_SUFFIX):
                findings.add(path, "", "lies in no layer's folder, expected entities/<layer>/<table>.toml")
            continue
        tables = _tables(files, path, findings)
        if layers and folder not in layers and (tables or folder != "__pycache__"):
            findings.add(path, "", f"{found(folder)} is not a layer of {LAYERS_FILE}{did_you_mean(folder, layers)}")
        places.update({f"{folder}.{table}": f"{path}/{table}{_SUFFIX}" for table in tables})
    if len(places) > MAX_ENTITIES:
        findings.add(ENTITIES_FOLDER, "", f"holds {len(places)} entities; {MAX_ENTITIES} are allowed")
    return places


def _tables(files: Files, path: str, findings: Findings) -> list[str]:
    """The tables that have a file in a layer's folder, whatever their names are; a bad name is reported."""
    tables = []
    for name in files.names(path):
        file = f"{path}/{name}"
        stem = name[: -len(_SUFFIX)]
        if not name.lower().endswith(_SUFFIX):
            if files.is_folder(file) and any(inner.lower().endswith(_SUFFIX) for inner in files.names(file)):
                findings.add(file, "", "holds entities that are not read, expected entities/<layer>/<table>.toml")
        elif not name.endswith(_SUFFIX):
            findings.add(file, "", f"expected the ending {_SUFFIX} in small letters")
        else:
            tables.append(stem)
            if problem := part_problem(stem):
                findings.add(file, "", f"the table name {found(stem)} {problem}")
    for one, other in equal_but_for_case(tables):
        findings.add(f"{path}/{other}{_SUFFIX}", "", f"{found(one)} and {found(other)} differ only in letter case")
    return tables
