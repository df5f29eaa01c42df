"""The small metadata project that `fdagent init` writes: it loads and runs as it is, and shows each kind of file.

Guarantees: a folder that holds anything (but a Git repository's own folder) is refused before a byte is written; a new
folder appears whole or not at all. In an empty folder that was there before, `layers.toml`, which makes it a project,
comes last, and what was written is taken away again when something fails.
"""

import errno
import shutil
import tempfile
from pathlib import Path

from fdagent.errors import DiskFull, UsageError
from fdagent.project.layers import LAYERS_FILE

FILES = {
    "layers.toml": """\
# The layers, and the lakehouse each one's tables lie in. An entity reads its own rank or a lower one.
format = 1

[bronze] # as delivered
rank = 1
lakehouse = "LH_Bronze"

[silver] # typed, checked, one row a key
rank = 2
lakehouse = "LH_Silver"

[gold] # what people read
rank = 3
lakehouse = "LH_Gold"
""",
    "environments.toml": """\
format = 1

[dev] # tables go to .local/dev/<lakehouse>/Tables/<table> in this folder
target = "local"
vars = { landing = "landing" }
""",
    "entities/bronze/orders.toml": """\
description = "Orders as delivered: each file once, every value as text"
owner = "you@example.com"

[source]
files = "{landing}/orders_*.csv"

[load]
mode = "append"
""",
    "entities/silver/orders.toml": """\
description = "One row per order, newest state"
owner = "you@example.com"

[source]
entity = "bronze.orders"

[transform]
sql_file = "orders.sql"

[load]
mode = "scd1"
key = ["order_id"]
order_by = "updated_at"

[[checks]] # rows without an amount, or with one that is no number, wait in the quarantine table
not_null = ["customer", "amount", "updated_at"]
severity = "quarantine"

[[checks]]
accepted = { status = ["NEW", "PAID", "SHIPPED"] }
severity = "warn"
""",
    "entities/silver/orders.sql": """\
select
    -- What can't be converted becomes NULL and waits in quarantine: a plain cast would stop the table for one bad value.
    try_cast(order_id as bigint) as order_id,
    customer,
    upper(status) as status,
    try_cast(amount as decimal(18, 2)) as amount,
    try_cast(updated_at as timestamptz) as updated_at
from {source}
""",
    "entities/gold/revenue_by_customer.toml": """\
description = "What each customer ordered, by the newest state of each order"
owner = "you@example.com"

[source]
orders = "silver.orders"

[transform]
sql = "select customer, count(*) as orders, sum(amount) as amount from {orders} group by customer"

[load]
mode = "overwrite"

[[checks]]
unique = ["customer"]
severity = "fail"
""",
    "landing/orders_2027-01-15.csv": """\
order_id,customer,status,amount,updated_at
1,Alder,new,120.50,2027-01-15T08:00:00Z
2,Birch,new,80.00,2027-01-15T08:05:00Z
2,Birch,paid,80.00,2027-01-15T09:30:00Z
3,Cedar,new,,2027-01-15T08:10:00Z
4,Alder,shipped,42.25,2027-01-15T10:00:00Z
""",
    ".gitignore": """\
.local/
""",
    "README.md": """\
# A metadata project

`layers.toml` and `environments.toml` say where tables lie, `entities/<layer>/<table>.toml` what each one is made of.
`landing/` has one file to start with: order 2 comes twice (the newest state wins), order 3 has no amount (quarantined).

    fdagent promote dev        # from now on, `dev` runs this version of the folder
    fdagent enqueue dev        # ask for a run of all entities
    fdagent run --until-idle   # run what was asked for
    fdagent status

Put a second file `landing/orders_2027-01-16.csv` beside the first one and enqueue again: bronze takes its rows alone;
silver reads all of bronze and changes what they change. Write the file as `orders_2027-01-16.csv.part` and rename it when
it is whole, so that no run meets half of it.
""",
}
"""Path in the project -> text."""


def write_scaffold(folder: Path) -> None:
    """Write the project into `folder`, which is empty or not there yet.

    Raises:
        UsageError: The folder holds something, is a file, or can't be written.
        DiskFull: No room; nothing is left behind.
    """
    try:
        there = folder.exists()
        if there and any(entry.name != ".git" for entry in folder.iterdir()):
            raise UsageError(
                f"{folder} is not empty; nothing was written.", fix="Name a folder that is empty or not there yet."
            )
        beside = folder if there else folder.absolute().parent
        beside.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fdagent-init-", dir=beside) as stage:
            project = Path(stage) / "project"
            _write_all(project)
            if there:
                _move_into(project, folder)
            else:
                project.rename(folder)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise DiskFull(f"No room is left for a project in {folder}; nothing was written.") from error
        raise UsageError(
            f"A project can't be written to {folder}: {(error.strerror or type(error).__name__).lower()}.",
            fix="Name a folder that is empty or not there yet, where you may write.",
        ) from error


def _write_all(project: Path) -> None:
    for name, text in FILES.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


def _move_into(project: Path, folder: Path) -> None:
    """Move the project's parts into a folder that stays the same one: a shell may stand in it."""
    moved: list[Path] = []
    try:
        for part in sorted(project.iterdir(), key=lambda path: (path.name == LAYERS_FILE, path.name)):
            part.rename(folder / part.name)
            moved.append(folder / part.name)
    except OSError:
        for path in moved:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        raise
