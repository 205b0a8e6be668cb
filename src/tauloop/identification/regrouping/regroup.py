"""Base parameters of a machine as formulas in its lengths."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tauloop.common.errors import IdentificationError, InputError, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, listed, option
from tauloop.common.progress import Progress
from tauloop.common.records import dataclass
from tauloop.formats.library import mechanism_of
from tauloop.identification.regrouping.regrouping import (
    AnalyticRegrouping,
    ColumnParameter,
    analytic_regrouping,
)
from tauloop.identification.regrouping.regrouping_columns import ProductColumns, StandardColumns
from tauloop.mechanism.description.units import si_unit
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model.model import MachineSource


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolicBaseOptions(Options):
    """Options of the symbolic regrouping.

    Attributes:
        products: expressions in parameters of the machine file that replace the inertial
            parameters, such as m1 * d_c1.
        lengths: parameters of the machine file on which the coefficients may depend; by default all
            its lengths.
        seed: seed of the random geometries with which formulas are found and checked.

    Examples:
        >>> import tauloop as tl
        >>> tl.SymbolicBaseOptions(seed=3).seed
        3
    """

    products: tuple[str, ...] = option((), read=listed, repeated=True)
    lengths: tuple[str, ...] = option((), read=listed, repeated=True)
    seed: int = option(0, least=0)


@keywords(SymbolicBaseOptions)
@solving(IdentificationError)
def symbolic_base_parameters(
    machine: MachineSource,
    options: SymbolicBaseOptions | None = None,
    *,
    progress: Progress | None = None,
) -> AnalyticRegrouping:
    """Return the base parameters of a machine as formulas in its lengths.

    An example for a planar four-bar is ``crank.mcx + crank_length coupler.m -
    crank_length/coupler_length coupler.mcx``.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        options: products that replace the inertial parameters, lengths, and seed.
        progress: called with the completed and the total number of steps.

    Raises:
        InputError: a product cannot be read, or the machine has no such length; lists all problems.
        IdentificationError: the rank is ambiguous, or a coefficient is not a sum of monomials of
            the lengths.

    Source: see `analytic_regrouping`.

    Examples:
        >>> import tauloop as tl
        >>> formulas = tl.symbolic_base_parameters(tl.load("pendulum_arm"))
        >>> formulas.to_pandas().index[0]
        'column.Izz + upper_arm.Izz + upper_length^2 lower_arm.m + lower_arm.Izz'
    """
    mechanism = mechanism_of(machine)
    options = options or SymbolicBaseOptions()
    known = {parameter.name: parameter for parameter in mechanism.parameters}
    InputError.raise_if_any(unknown_names(options.lengths, known, "no parameter {!r}", "lengths"))
    lengths = {}
    for name, parameter in known.items():
        is_length = si_unit(parameter.unit) == "m" and parameter.value != 0.0
        if name in options.lengths or (is_length and not options.lengths):
            lengths[name] = parameter.value
    standard = StandardColumns(mechanism)
    rng = np.random.default_rng(options.seed)
    if options.products:
        columns = ProductColumns.of(standard, options.products)
        return analytic_regrouping(
            columns, columns.quantities, lengths, rng, values=columns.values(), progress=progress
        )
    model, _ = standard(lengths)
    inertial = [k for k, parameter in enumerate(model.parameters) if parameter.group == "inertia"]

    def regressor(geometry: Mapping[str, float]) -> np.ndarray:
        return standard(geometry)[1][:, inertial]

    quantities = [
        ColumnParameter(name=model.parameters[k].name, unit=model.parameters[k].unit)
        for k in inertial
    ]
    return analytic_regrouping(
        regressor, quantities, lengths, rng, values=model.pi[inertial], progress=progress
    )
