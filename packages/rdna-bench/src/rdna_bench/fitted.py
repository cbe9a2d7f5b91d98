"""Tables that stay readable where there is little room: columns are left out, and the output says which."""

from __future__ import annotations

import os
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

#: Characters of a line where nobody says how many there are: stdout is a pipe or a file.
PIPE_WIDTH = 200


def output_console() -> Console:
    """Stdout: as wide as the terminal or ``COLUMNS`` says, and `PIPE_WIDTH` characters where it is no terminal."""
    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    return console


@dataclass(frozen=True)
class Fitted:
    """A table without as many of its ``expendable`` columns, named by their headings in the order in which they go, as
    it takes to fit; where that is not enough, its cells are folded."""

    table: Table
    expendable: tuple[str, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        gone: list[str] = []
        table = self.table
        while (wanted := Measurement.get(console, options.update(width=10_000), table).maximum) > options.max_width:
            if len(gone) == len(self.expendable):
                yield _without(self.table, gone, fold=True)
                yield f"cells are folded: {wanted} columns are needed, there are {options.max_width}"
                break
            gone.append(self.expendable[len(gone)])
            table = _without(self.table, gone)
        else:
            yield table
        if gone:
            yield escape(f"left out for want of room: {', '.join(gone)}; a wider terminal, a pipe or --json has them")


def _without(table: Table, headings: list[str], *, fold: bool = False) -> Table:
    kept = [column for column in table.columns if column.header not in headings]
    result = Table(
        title=table.title,
        title_justify=table.title_justify,
        title_style=table.title_style,
        box=table.box,
        padding=table.padding,
        pad_edge=table.pad_edge,
        show_edge=table.show_edge,
    )
    for column in kept:
        overflow = "fold" if fold else column.overflow
        result.add_column(column.header, justify=column.justify, no_wrap=column.no_wrap and not fold, overflow=overflow)
    for row in zip(*(column.cells for column in kept), strict=True):
        result.add_row(*row)
    return result
