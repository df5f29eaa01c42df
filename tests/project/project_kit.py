"""A small project to change, and the sentences that loading it gives."""

from collections.abc import Mapping
from pathlib import Path

from fdagent.errors import ProjectError
from fdagent.project.load import load_project

LAYERS = """\
format = 1
[bronze]
rank = 1
lakehouse = "LH_Bronze"
[silver]
rank = 2
lakehouse = "LH_Silver"
[gold]
rank = 3
lakehouse = "LH_Gold"
"""

ENVIRONMENTS = """\
format = 1
[dev]
target = "local"
vars = { landing = "landing" }
"""

BRONZE = """\
[source]
files = "{landing}/orders_*.csv"
[load]
mode = "append"
"""

SILVER = """\
[source]
entity = "bronze.orders"
[transform]
sql = "select * from {source}"
[load]
mode = "scd1"
key = ["order_id"]
order_by = "updated_at"
"""

GOLD = """\
[source]
o = "silver.orders"
[transform]
sql = "select count(*) as orders from {o}"
[load]
mode = "overwrite"
"""

BRONZE_FILE = "entities/bronze/orders.toml"
SILVER_FILE = "entities/silver/orders.toml"
GOLD_FILE = "entities/gold/revenue.toml"

FILES: Mapping[str, str] = {
    "layers.toml": LAYERS,
    "environments.toml": ENVIRONMENTS,
    BRONZE_FILE: BRONZE,
    SILVER_FILE: SILVER,
    GOLD_FILE: GOLD,
}


def write(root: Path, files: Mapping[str, str | bytes | None]) -> Path:
    """Write files (None: remove) under `root`."""
    for name, content in files.items():
        path = root / name
        if content is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def project(root: Path, **changes: str | bytes | None) -> Path:
    """The project with some files replaced, under the names `layers`, `environments`, `bronze`, `silver`, `gold`."""
    names = {
        "layers": "layers.toml",
        "environments": "environments.toml",
        "bronze": BRONZE_FILE,
        "silver": SILVER_FILE,
        "gold": GOLD_FILE,
    }
    write(root, FILES)
    return write(root, {names[key]: content for key, content in changes.items()})


def problems(root: Path) -> tuple[str, ...]:
    """The sentences a load gives; none when it loads."""
    try:
        load_project(root)
    except ProjectError as error:
        return error.problems or (str(error),)
    return ()
