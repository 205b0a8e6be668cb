"""Verification of a machine: comparison of dynamics and Jacobians with all installed engines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.datasets import item_rows
from tauloop.common.errors import Problems
from tauloop.common.keywords import keywords
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.options import Options, option
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.progress import Progress
from tauloop.common.records import dataclass
from tauloop.common.result import Result, diagnostic, provenance
from tauloop.equations.named_values import TOOL_PORT, wrench_of
from tauloop.formats.library import mechanism_of
from tauloop.mechanism.model import Mechanism, omission_diagnostics
from tauloop.model.model import MachineSource
from tauloop.verification.engines.check import MAX_STATE_CONDITION, check_with_engines
from tauloop.verification.engines.comparison import (
    FORWARD_DYNAMICS,
    OWN_FORWARD,
    OWN_INVERSE,
    OWN_UNDER_WRENCH,
    UNDER_WRENCH,
    EngineComparison,
)

#: Largest accepted relative difference. Rounding errors, amplified by the conditioning of the
#: loops, are much smaller.
TOLERANCE = 1e-9
#: Number of states in the result, for display.
MAX_DISPLAYED_STATES = 24
#: Tolerances of accelerations, and of forces that are computed from accelerations. They are larger
#: because the condition number of the mass matrix also amplifies rounding errors.
TOLERANCES = dict.fromkeys(
    (FORWARD_DYNAMICS, OWN_FORWARD, OWN_INVERSE, UNDER_WRENCH, OWN_UNDER_WRENCH), 1e-8
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOptions(Options):
    """Options of a comparison with engines.

    Attributes:
        states: number of random consistent states.
        seed: seed of the random states.
        wrench: wrench at the tool, such as 'fx=10,mz=0.5' (N, N m, base frame), for an additional
            comparison.
        max_condition: largest condition number of the linear loop equations; states above it are
            not compared, because their rounding errors are amplified on both sides.

    Examples:
        >>> import tauloop as tl
        >>> tl.VerifyOptions(states=3, seed=2).states
        3
    """

    states: int = option(1000, least=1)
    seed: int = option(0, least=0)
    wrench: tuple[float, ...] | None = option(None, read=wrench_of, metavar="VALUES")
    max_condition: float = option(MAX_STATE_CONDITION, least=1.0)

    def _note_mismatches(self, problems: Problems) -> None:
        """Add a problem if the wrench does not have six components."""
        if self.wrench is not None and len(self.wrench) != len(TOOL_PORT.columns):
            problems.add(
                "wrench",
                f"has {counted(len(self.wrench), 'number')}",
                f"give {', '.join(TOOL_PORT.columns)}",
            )


def _reasons(not_run: tuple[tuple[str, str], ...]) -> list[dict[str, str]]:
    """Return engines and reasons as dicts for JSON."""
    return [{"engine": engine, "reason": reason} for engine, reason in not_run]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedMachine(Result):
    """Comparison of a machine with engines; the diagnostics contain the worst value of each check.

    Attributes:
        machine: name of the machine.
        options: options of the comparison.
        distinct_states: number of distinct states.
        comparisons: a comparison for each engine and quantity that could be compared.
        not_run: engines and quantities that could not be compared, with the reason; they do not
            change the status.
        mechanism: the machine.
        q: coordinates (N, n_q) of the machine at up to 24 of the distinct states, for display.
    """

    machine: str
    options: VerifyOptions = field(
        metadata=json_keys(states="states", condition="max_condition", seed="seed", wrench="wrench")
    )
    distinct_states: int | None = field(metadata=json_keys("different_states"))
    comparisons: tuple[EngineComparison, ...] = field(
        metadata=json_keys("engines")
        | item_rows("comparison", "largest_difference", "residual", label="label")
    )
    not_run: tuple[tuple[str, str], ...] = field(metadata=json_keys(summary=_reasons))
    mechanism: Mechanism = field(metadata=OMITTED)
    q: np.ndarray = field(metadata=OMITTED)
    different = old_attribute("different", "distinct_states")

    @property
    @in_json()
    def tolerance(self) -> float:
        """Largest accepted relative difference of quantities that are not in `tolerances`."""
        return TOLERANCE

    @property
    @in_json()
    def tolerances(self) -> Mapping[str, float]:
        """Largest accepted relative differences, by quantity."""
        return TOLERANCES


def agrees(row: EngineComparison) -> bool:
    """Return whether a comparison is within its tolerance."""
    return bool(row.worst <= TOLERANCES.get(row.quantity, TOLERANCE))


@keywords(VerifyOptions)
def verify(
    machine: MachineSource,
    options: VerifyOptions | None = None,
    *,
    progress: Progress | None = None,
) -> VerifiedMachine:
    """Compare dynamics and Jacobians with all installed engines at random consistent states.

    The engines close all loops themselves and do not use Tauloop's equations (see
    `tauloop.verification.engines.check`).

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        options: number of states, wrench and largest condition number.
        progress: called with the completed and the total number of steps.

    Returns:
        The comparison: `comparisons` for each engine and quantity, `not_run` with the reasons.

    Raises:
        AssemblyError: the mechanism cannot be assembled.
        EngineError: no engine could be used; the error lists all reasons.

    Examples:
        >>> import tauloop as tl
        >>> tl.verify("four_bar", states=3).status.value
        'ok'
    """
    options = options or VerifyOptions()
    mechanism = mechanism_of(machine)
    rng = np.random.default_rng(options.seed)
    wrench = None if options.wrench is None else np.array(options.wrench)
    checks = check_with_engines(
        mechanism,
        options.states,
        rng,
        wrench=wrench,
        condition=options.max_condition,
        progress=progress,
    )
    return VerifiedMachine(
        machine=mechanism.name,
        options=options,
        distinct_states=checks.distinct_states,
        comparisons=checks.comparisons,
        not_run=checks.not_run,
        mechanism=mechanism,
        q=np.asarray(checks.q)[:MAX_DISPLAYED_STATES],
        diagnostics=omission_diagnostics(mechanism)
        + tuple(
            diagnostic(
                f"{row.quantity}, {row.engine}, {row.method}",
                row.worst,
                at_most=TOLERANCES.get(row.quantity, TOLERANCE),
                advice=f"the values differ at state {row.sample}, {row.column}: use a smaller "
                "max_condition; if the difference remains, report it with the machine file",
            )
            for row in checks.comparisons
        ),
        provenance=provenance(options={"seed": options.seed, "states": options.states}),
    )
