"""Operation counts that papers publish for their machines, for comparison with Tauloop's.

The file `machines/published/NAME.yaml` of the package `mechanism` belongs to the shipped machine
NAME. It contains `tables` (counts by part and formulation) and `ratios` (between two formulations,
if a paper gives only these). The values are only shown, not used in computations.
"""

from __future__ import annotations

from typing import Any

import yaml

from tauloop.common.records import dataclass
from tauloop.mechanism.shipped import SHIPPED

_PUBLISHED = SHIPPED / "published"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCount:
    """A row of a paper's table.

    Attributes:
        source: paper and table.
        quantity, part, formulation: names in Tauloop.
        called: name of the part of the machine in the paper.
        counts: operations by kind, such as additions.
    """

    source: str
    quantity: str
    part: str
    called: str
    formulation: str
    counts: dict[str, int]

    @property
    def total(self) -> int:
        """Number of all operations in the row."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRatio:
    """Ratio of the operations of two formulations, as a paper gives it."""

    source: str
    quantity: str
    formulation: str
    against: str
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """All operation counts published for one machine: rows of tables, and bare ratios."""

    counts: tuple[PublishedCount, ...] = ()
    ratios: tuple[PublishedRatio, ...] = ()


def published_operations(machine: str) -> Published:
    """Return the published operation counts of a machine; empty if there are none.

    Args:
        machine: name of the machine.
    """
    known = {path.stem: path for path in _PUBLISHED.glob("*.yaml")}
    if machine not in known:
        return Published()
    data: dict[str, list[dict[str, Any]]] = yaml.safe_load(
        known[machine].read_text(encoding="utf-8")
    )
    return Published(
        counts=tuple(
            PublishedCount(
                source=listing["source"],
                quantity=listing["quantity"],
                part=row["part"],
                called=row["as"],
                formulation=formulation,
                counts=counts,
            )
            for listing in data.get("tables", [])
            for row in listing["rows"]
            for formulation, counts in row.items()
            if formulation not in ("part", "as")
        ),
        ratios=tuple(PublishedRatio(**ratio) for ratio in data.get("ratios", [])),
    )
