"""`diagram`: any record's chart as a picture or text, and whether the pages in docs/ are fresh."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fdagent.errors import NotFound, UsageError

DOCS = Path("docs")


class Form(StrEnum):
    """What a chart is drawn as."""

    MERMAID = "mermaid"
    DOT = "dot"
    SVG = "svg"
    PNG = "png"


def diagram(
    chart: Annotated[str, typer.Argument(help="A record's chart; none: list them.")] = "",
    form: Annotated[Form, typer.Option("--format", "-f", help="svg and png need Graphviz.")] = Form.MERMAID,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A file; else the terminal.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Say whether the pages in docs/ are fresh.")] = False,
    write: Annotated[bool, typer.Option("--write", help="Write the pages in docs/ anew.")] = False,
) -> int:
    """Draw a record's chart, for reviewers."""
    if check or write:
        return _pages(write=write)
    from machines.registry import CHARTS

    if not chart:
        print("\n".join(CHARTS))
        return 0
    if chart not in CHARTS:
        raise NotFound(f"There is no chart {chart!r}.", fix=f"Choose one of {', '.join(CHARTS)}.")
    _put(_drawn(chart, form), output)
    return 0


def _drawn(name: str, form: Form) -> bytes:
    from machines.graph import dot, picture
    from machines.mermaid import mermaid
    from machines.registry import CHARTS

    chart = CHARTS[name]
    if form is Form.MERMAID:
        return f"{mermaid(chart)}\n".encode()
    return f"{dot(chart)}\n".encode() if form is Form.DOT else picture(chart, form.value)


def _put(content: bytes, output: Path | None) -> None:
    if output is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    try:
        output.write_bytes(content)
    except OSError as err:
        raise UsageError(f"{output} can't be written: {err.strerror}.", fix="Name another file.") from err
    print(f"Wrote {output}.")


def _pages(*, write: bool) -> int:
    from machines import diagram as pages

    if not DOCS.is_dir():
        raise UsageError(f"There is no {DOCS}/ folder here.", fix="Change into a checkout of fdagent.")
    if write:
        pages.write(DOCS)
    differ = pages.check(DOCS)
    for name in differ:
        print(f"{DOCS / name} differs from the code; `fdagent diagram --write` makes it anew.")
    if not differ:
        print("Every page is fresh.")
    return 1 if differ else 0
