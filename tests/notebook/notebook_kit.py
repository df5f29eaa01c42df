"""The pipeline notebook, run by a real kernel over a folder that stands in for the lakehouse."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "deploy" / "pipeline" / "run_on_agent.ipynb"
STAND_IN = '''"""Stands in for Fabric's notebookutils over a local folder, and keeps what the notebook exits with."""
from pathlib import Path

ROOT = Path({root!r})


class fs:
    @staticmethod
    def _path(path):
        assert path.startswith("Files/_fabric_desktop/"), path
        return ROOT / path.removeprefix("Files/_fabric_desktop/")

    @staticmethod
    def exists(path):
        return fs._path(path).exists()

    @staticmethod
    def put(path, content, overwrite=False):
        target = fs._path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists() and not overwrite:
            raise FileExistsError(path)
        aside = target.with_name(target.name + ".tmp")
        aside.write_text(content, encoding="utf-8")
        aside.replace(target)

    @staticmethod
    def head(path, most):
        return fs._path(path).read_bytes()[:most].decode("utf-8")


class notebook:
    @staticmethod
    def exit(value):
        (ROOT.parent / "exit.json").write_text(value, encoding="utf-8")
'''
QUICK = "FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.05, 0.2"


def client(folder: Path, control: Path, **parameters: object) -> NotebookClient:
    """The notebook, ready to execute with other parameters and short waits."""
    (folder / "notebookutils.py").write_text(STAND_IN.format(root=str(control)), encoding="utf-8")
    book = nbformat.read(NOTEBOOK, as_version=4)
    place = next(n for n, cell in enumerate(book.cells) if "parameters" in cell.metadata.get("tags", []))
    lines = [f"{name} = {value!r}" for name, value in parameters.items()]
    book.cells.insert(place + 1, nbformat.v4.new_code_cell("\n".join(lines)))
    book.cells.insert(place + 3, nbformat.v4.new_code_cell(QUICK))
    return NotebookClient(book, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}})


def printed(book: NotebookClient) -> str:
    """Everything the notebook printed."""
    outputs = (output for cell in book.nb.cells for output in cell.get("outputs", []))
    return "".join(output.get("text", "") for output in outputs)
