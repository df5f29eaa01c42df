"""A project with one entity a load mode, each over the same files; its tables are worked out here from those files alone."""

from collections import Counter
from typing import Any

from deltalake import DeltaTable
from process_kit import Site

from models.run import RunStatus

FILES = '[source]\nfiles = "{landing}/orders_*.csv"\n'
ENTITIES = {
    "bronze.appended": f'{FILES}[load]\nmode = "append"\n',
    "silver.merged": f"""{FILES}
[columns]
updated_at = {{ type = "timestamp" }}
[load]
mode = "scd1"
key = ["order_id"]
order_by = "updated_at"
[[checks]]
not_null = ["amount"]
severity = "quarantine"
""",
    "gold.whole": f"""{FILES}take = "all"
[transform]
sql = "select customer, count(*) as orders from {{source}} group by customer"
[load]
mode = "overwrite"
""",
}


class Modes(Site):
    """A project with one entity a load mode, each over the same files."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for path in (self.root / "entities").rglob("*.*"):
            path.unlink()
        for name, toml in ENTITIES.items():
            self.entity(name, toml)
        self.promote()
        self.good: list[dict[str, str]] = []
        self.refused: dict[str, Counter] = {name: Counter() for name in ENTITIES}

    def next(self, entity: str) -> str:
        """Deliver a file and ask for one entity; the job's id."""
        self.good += self.deliver()
        n, file = self.delivered, f"landing/orders_2027-02-{self.delivered:02d}.csv"
        if entity == "gold.whole":
            self.refused[entity] += Counter((f"landing/orders_2027-02-{i:02d}.csv", 8) for i in range(1, n + 1))
        else:
            self.refused[entity] += Counter([(file, 8)] + [(file, None)] * (entity == "silver.merged"))
        return self.ask(entity)

    def expected(self, entity: str) -> list[dict]:
        """The table's rows as the delivered files say."""
        if entity == "bronze.appended":
            return self.good
        if entity == "gold.whole":
            return [{"customer": who, "orders": n} for who, n in Counter(row["customer"] for row in self.good).items()]
        newest: dict[str, dict[str, str]] = {}
        for row in sorted(self.good, key=lambda row: row["updated_at"]):
            if row["amount"]:
                newest[row["order_id"]] = row
        return list(newest.values())

    def check(self, entity: str, job: str, status: RunStatus, *, attempt: int) -> None:
        """The table, its quarantine, the job's one commit and its one row in the run log are what they should be."""
        self.check_rows(entity)
        folder = self.places.table(self.places.project.entities[entity])
        commits = [info for info in DeltaTable(str(folder)).history() if info.get("app_id") == f"fdagent/{job}"]
        assert len(commits) == 1
        (row,) = [row for row in self.log() if row.job_id == job]
        assert (row.entity, row.status, row.attempt) == (entity, status, attempt)
        assert self.unflushed() == 0

    def check_rows(self, entity: str) -> None:
        """The table and its quarantine are what the delivered files say."""
        places = self.places
        found = DeltaTable(str(places.table(places.project.entities[entity]))).to_pyarrow_table().to_pylist()
        names = [name for name in found[0] if not name.startswith("_")]
        assert texts(found, names) == texts(self.expected(entity), names)
        refused = DeltaTable(str(places.quarantine(places.project.entities[entity]))).to_pyarrow_table().to_pylist()
        assert Counter((row["file"], row["line"]) for row in refused) == self.refused[entity]


def texts(rows: list[dict[str, Any]], names: list[str]) -> Counter[tuple[str, ...]]:
    """Rows as texts, counted."""
    return Counter(tuple(_text(row.get(name)) for name in names) for row in rows)


def _text(value: Any) -> str:
    return value.strftime("%Y-%m-%dT%H:%M:%SZ") if hasattr(value, "strftime") else "" if value is None else str(value)
