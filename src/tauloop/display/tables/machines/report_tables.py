"""A written report for the terminal: what its page shows, and how large it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tauloop.display.pieces import Printed
from tauloop.display.tables import table


def report_tables(report: Any) -> Iterator[Printed]:
    """One line for each result, and the page's size."""
    shown = report.as_dict()
    rows = (
        (
            item["title"],
            item["status"],
            *(len(item[kind]) for kind in ("tables", "plots", "scenes")),
        )
        for item in shown["results"]
    )
    heads = (("tables", ""), ("plots", ""), ("machines in motion", ""))
    yield table("Report", "result", "status", *heads, rows=rows)
    yield f"written: {shown['path']} ({shown['size'] / 1e6:.1f} MB)"
