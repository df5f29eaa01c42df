"""A person in a folder with a metadata project, who gives commands; each is run in this process as the entry point does."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from fdagent.cli.main import commands, run
from fdagent.project.scaffold import write_scaffold

LANDING = "landing/orders_2027-01-15.csv"


@dataclass(frozen=True)
class Said:
    """How a command ended: its exit code, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def all(self) -> str:
        return self.out + self.err


@dataclass
class Person:
    """Someone who stands in `project`."""

    project: Path
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *words: str, code: int = 0) -> Said:
        """Give a command; it must end with this exit code and without a traceback."""
        self.capsys.readouterr()
        found = run(commands(list(words)), list(words))
        said = Said(found, *self.capsys.readouterr())
        assert found == code, said.all
        assert "Traceback" not in said.all
        return said

    def set_up(self) -> None:
        """The project that `fdagent init` writes, promoted."""
        write_scaffold(self.project)
        self("promote", "dev", "--yes")

    def write(self, name: str, text: str) -> Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def edit(self, name: str, old: str, new: str) -> None:
        """Change a text in a file of the project."""
        path = self.project / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def runs(self, code: int = 0) -> Said:
        """Promote what is there, ask for all of it, and run it."""
        self("promote", "dev", "--yes")
        self("enqueue", "dev")
        return self("run", "--until-idle", code=code)

    def last_job(self) -> dict[str, Any]:
        """The job that ended last."""
        last: dict[str, Any] = self("status", "--json").json["finished"][0]
        return last

    def table(self, lakehouse: str, name: str) -> Path:
        return self.project / ".local/dev" / lakehouse / "Tables" / name

    def rows(self, lakehouse: str, name: str) -> list[dict[str, Any]]:
        """A table's rows; none when there is no table."""
        folder = self.table(lakehouse, name)
        if not (folder / "_delta_log").is_dir():
            return []
        found: list[dict[str, Any]] = DeltaTable(str(folder)).to_pyarrow_table().to_pylist()
        return found

    def changes_nothing(self, act: Callable[[], Said]) -> Said:
        """Do something that must leave every file as it is."""
        before = tree(self.project)
        said = act()
        assert tree(self.project) == before
        return said


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder with a digest of its content, and every folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in sorted(folder.rglob("*"))
    }
