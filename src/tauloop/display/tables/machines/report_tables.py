"""Tables of a written report: contents and size of its page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tauloop.display.pieces import Printed
from tauloop.display.tables import table


def report_tables(report: Any) -> Iterator[Printed]:
    """Yield a table with a row for each result, and the size of the page."""
    contents = report.as_dict()
    rows = []
    for item in contents["results"]:
        counts = (len(item[name]) for name in ("tables", "plots", "scenes"))
        rows.append((item["title"], item["status"], *counts))
    heads = (("tables", ""), ("plots", ""), ("machines in motion", ""))
    yield table("Report", "result", "status", *heads, rows=rows)
    yield f"written: {contents['path']} ({contents['size'] / 1e6:.1f} MB)"
