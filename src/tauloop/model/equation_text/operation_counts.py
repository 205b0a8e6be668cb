"""Operation counts of a machine's functions by formulation, compared with published counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from tauloop.common.datasets import Tabular, Variable, rows
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.plain import OMITTED, json_keys
from tauloop.common.progress import Progress
from tauloop.common.records import dataclass
from tauloop.common.result import Status
from tauloop.equations.ports import PLATFORM, Entry
from tauloop.formats.library import mechanism_of
from tauloop.mechanism.model import Mechanism
from tauloop.model.equation_text.costs import (
    ADDED_UP,
    ALL,
    ON_PLATFORM,
    SAMPLED,
    VELOCITY_MATRIX,
    Cost,
    costs,
    not_requested,
)
from tauloop.model.equation_text.published import Published, published_operations
from tauloop.model.model import MachineSource

#: Ratios that are shown: quantity, formulation, and the formulation that it is compared with.
RATIOS = (
    (VELOCITY_MATRIX, "generalized-momentum", "lagrange"),
    (VELOCITY_MATRIX, "generalized-momentum", ON_PLATFORM),
    ("inverse dynamics", "hamilton", "lagrange"),
    ("inverse dynamics", SAMPLED, "lagrange"),
)
#: Published counts to compare with: a paper's total is the sum of its rows; its Lagrange and
#: Hamilton counts are one each.
PRINTED = {ADDED_UP: ALL, ON_PLATFORM: "lagrange", SAMPLED: "hamilton"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CountOptions(Options):
    """Options of operation counts.

    Attributes:
        coordinates: coordinates in which the motion is given: platform or actuators.
        derivatives: count functions with their Jacobians too.
        on_platform: also count Lagrange's equations in platform coordinates, which differentiate
            the mass matrix of the platform; it takes seconds for six degrees of freedom.
        lagrange_regressor: also count the regressor by Lagrange's equations, which is the
            longest function; it takes seconds for six legs.

    Examples:
        >>> import tauloop as tl
        >>> print(tl.CountOptions(coordinates=tl.equations.assembly.ACTUATORS).coordinates)
        actuators
    """

    coordinates: Entry = option(PLATFORM)
    derivatives: bool = False
    on_platform: bool = False
    lagrange_regressor: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Ratio of the numbers of operations of two formulations.

    Attributes:
        quantity, frame, part: counted quantity, frame of its matrices, and part of the machine.
        formulation, against: the formulations of the numerator and the denominator.
        ours: ratio of Tauloop's totals.
        published: ratio that a paper gives for its machine; None if there is none.
        source: the paper and its table.
    """

    quantity: str
    frame: str
    part: str
    formulation: str
    against: str
    ours: float
    published: float | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationCounts(Tabular):
    """Operations of quantities in all formulations.

    Attributes:
        machine: name of the machine.
        options: options of the counts.
        costs: one row for each quantity, formulation, frame and part.
        ratios: ratios of totals, compared with those of papers.
        published: operation counts that papers state for this machine.
        left_out: quantities that could not be counted, with the reason.
        not_requested: quantities that are counted only on request, each with the option
            (`CountOptions`) that requests it.
        mechanism: the machine, to show it.
    """

    machine: str
    options: CountOptions = field(metadata=json_keys(entry="coordinates.name"))
    costs: tuple[Cost, ...]
    ratios: tuple[Ratio, ...]
    published: Published
    left_out: dict[str, str]
    not_requested: dict[str, str]
    mechanism: Mechanism = field(metadata=OMITTED)

    def variables(self) -> Iterator[Variable]:
        """Yield the operations of every function outside Newton loops and in each iteration."""
        names = [
            ", ".join(filter(None, (c.quantity, c.formulation, c.frame, c.part)))
            for c in self.costs
        ]
        each = [sum(cost.each_iteration.values()) for cost in self.costs]
        return rows(
            "function", names, total=[cost.total for cost in self.costs], each_iteration=each
        )

    @property
    def status(self) -> Status:
        """OK: a count is exact."""
        return Status.OK


@keywords(CountOptions)
def count_operations(
    machine: MachineSource,
    options: CountOptions | None = None,
    *,
    progress: Progress | None = None,
) -> OperationCounts:
    """Count the operations of a machine's functions.

    All parameters are constants, and common subexpressions are computed once. Counts that take long
    are made only on request (`CountOptions`); the result lists them (`not_requested`).

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        options: the given motion and further counts.
        progress: called with the completed and the total work.

    Returns:
        The numbers of operations of every function in every formulation (`costs`).

    Raises:
        AssemblyError: the machine does not work as described.

    Examples:
        >>> import tauloop as tl
        >>> counts = tl.count_operations(tl.load("four_bar"))
        >>> "inverse dynamics" in {cost.quantity for cost in counts.costs}
        True
    """
    options = options or CountOptions()
    mechanism = mechanism_of(machine)
    requested = {
        "derivatives": options.derivatives,
        "on_platform": options.on_platform,
        "lagrange_regressor": options.lagrange_regressor,
    }
    rows, left_out = costs(mechanism, options.coordinates, **requested, progress=progress)
    paper = published_operations(mechanism.name)
    return OperationCounts(
        machine=mechanism.name,
        options=options,
        costs=rows,
        ratios=tuple(_ratios(rows, paper)),
        published=paper,
        left_out=left_out,
        not_requested=not_requested(rows, **requested),
        mechanism=mechanism,
    )


def _ratios(rows: tuple[Cost, ...], paper: Published) -> Iterator[Ratio]:
    totals = {(row.quantity, row.frame, row.part, row.formulation): row.total for row in rows}
    for wanted, formulation, against in RATIOS:
        for (quantity, frame, part, name), total in totals.items():
            other = totals.get((quantity, frame, part, against), 0)
            if (quantity, name) == (wanted, formulation) and other:
                printed = (PRINTED.get(name, name) for name in (part, formulation, against))
                published, source = _published_ratio(paper, quantity, *printed)
                yield Ratio(
                    quantity=quantity,
                    frame=frame,
                    part=part,
                    formulation=formulation,
                    against=against,
                    ours=total / other,
                    published=published,
                    source=source,
                )


def _published_ratio(
    paper: Published, quantity: str, part: str, formulation: str, against: str
) -> tuple[float | None, str]:
    """Return a published ratio, or the ratio of two published totals, and its source."""
    rows = {
        row.formulation: row for row in paper.counts if (row.quantity, row.part) == (quantity, part)
    }
    if formulation in rows and against in rows:
        return rows[formulation].total / rows[against].total, rows[formulation].source
    for row in paper.ratios:
        if (row.quantity, row.formulation, row.against) == (
            quantity,
            formulation,
            against,
        ) and part == ALL:
            return row.ratio, row.source
    return None, ""
