"""Masses, centers of mass and inertias of links from base parameters.

Forces determine base parameters, which are fewer than the parameters of the links. Known values,
from a drawing or a scale, determine further parameters. The remaining parameters form families: if
enough members of a family are known, the other members follow. The members of a family have bounds,
because links must be physically realizable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path

import numpy as np
from scipy.linalg import qr
from scipy.optimize import least_squares
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtri

from tauloop.common.counts import counted
from tauloop.common.datasets import item_rows
from tauloop.common.errors import IdentificationError, solving
from tauloop.common.keywords import keywords
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.options import Options, option, pairs_reader
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, plain, provenance
from tauloop.common.shown import ReprMixin
from tauloop.formats.library import mechanism_of
from tauloop.identification.estimation.result import Identification
from tauloop.identification.links.link_equations import LinkEquations
from tauloop.identification.links.link_intervals import LinkSet
from tauloop.identification.links.link_quantities import LinkQuantities, LinkQuantity
from tauloop.identification.machine_result import MachineIdentification
from tauloop.identification.parameters.base_estimates import BaseEstimates
from tauloop.model.model import MachineSource

#: Directions of the scaled unknowns with a singular value below this fraction of the largest are
#: null directions: they change no row.
NULL_DIRECTION_TOLERANCE = 1e-8
#: A parameter is determined if null directions change it by less than this fraction of its size.
DETERMINED_TOLERANCE = 1e-6
#: Smallest standard deviation as a fraction of a row, so that weights of exact values are finite.
MIN_RELATIVE_DEVIATION = 1e-9
#: Number of other solutions, along the families, at which the equations are evaluated.
OTHER_MEMBERS = 2
#: Standard deviation of their distance from the fitted solution, as a fraction of the parameters'
#: sizes.
MEMBER_DISTANCE = 0.2
#: Preference, by unit (otherwise 1), with which parameters are suggested to be measured. Masses and
#: centers of mass are easier to measure than inertias.
PREFERENCES = {"kg": 4.0, "m": 2.0}
#: The end of an interval counts as zero if it is below this fraction of the parameter's size, which
#: is the accuracy of the solver.
ZERO_TOLERANCE = 1e-7
#: Largest accepted distance of estimates from physically possible links, in standard deviations of
#: all rows together.
MAX_DEVIATIONS = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkOptions(Options):
    """Known values of links, and the confidence of intervals.

    Attributes:
        known: known parameters, such as 'm4=12.5 kg', with or without a standard deviation
            ('m4=12.5 kg +- 0.1 kg'): parameters of the machine file, or standard parameters such as
            forearm.m.
        confidence: probability that an interval contains the true value; 0 for intervals that
            ignore the errors of the estimates.
        seed: seed of the random draws by which dependences are found.

    Examples:
        >>> import tauloop as tl
        >>> tl.LinkOptions(known={"m4": "12.5 kg +- 0.1 kg"}).confidence
        0.95
    """

    known: Mapping[str, float | str | tuple[float, float]] = option(
        factory=dict,
        read=pairs_reader("known", "'m4=12.5 kg +- 0.1 kg'"),
        repeated=True,
        metavar="NAME=VALUE",
    )
    confidence: float = option(0.95, least=0.0, below=1.0)
    seed: int = option(0, least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkParameter:
    """An unknown parameter of the machine file.

    Attributes:
        name: name in the machine file.
        unit: SI unit.
        links: bodies and rods whose inertia depends on the parameter.
        file: value in the machine file; None if the file has no value.
        value: value if the parameter is determined; None otherwise.
        deviation: standard deviation of the value; None if the parameter is not determined.
        kind: "sum", "center" or "central inertia" if the parameter has an interval; "" otherwise.
        lower, upper: interval over all physically possible links; None for an unbounded end, and
            for determined parameters.
        family: index of the parameter's family, from 0; None for determined parameters.
    """

    name: str
    unit: str
    links: tuple[str, ...]
    file: float | None
    value: float | None
    deviation: float | None
    kind: str
    lower: float | None
    upper: float | None
    family: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFamily(ReprMixin):
    """Undetermined parameters that can change together without changing any force.

    Attributes:
        members: names of the parameters.
        freedoms: number of members that must be known to determine the others.
        stated: a choice of `freedoms` members that determine the others if they are measured.
        changes: changes of all members for a change of 1 (SI) of the member in `stated`, evaluated
            at the values nearest to the machine file; None for a family with several freedoms.
    """

    members: tuple[str, ...]
    freedoms: int
    stated: tuple[str, ...]
    changes: Mapping[str, float] | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkParameters(Result):
    """Link parameters that follow from base parameters.

    Attributes:
        machine: name of the machine.
        parameters: the unknown parameters that affect the estimates.
        families: families of the parameters that are not determined.
        unidentifiable: unknown parameters on which no estimate depends.
        known: known values and their standard deviations, SI, by name.
        covariance: (n, n) covariance of the determined parameters, in the order of `parameters`;
            zero for parameters that are not determined.
    """

    machine: str
    parameters: tuple[LinkParameter, ...] = field(
        metadata=item_rows("parameter", "value", "deviation", "lower", "upper", "file", unit="unit")
    )
    families: tuple[LinkFamily, ...]
    unidentifiable: tuple[str, ...]
    known: Mapping[str, tuple[float, float]]
    covariance: np.ndarray

    unseen = old_attribute("unseen", "unidentifiable")

    def __getitem__(self, name: str) -> LinkParameter:
        """Return the parameter with a name."""
        return {parameter.name: parameter for parameter in self.parameters}[name]


@keywords(LinkOptions)
@solving(IdentificationError)
def link_parameters(
    machine: MachineSource,
    estimates: BaseEstimates | Identification | MachineIdentification | str | Path,
    options: LinkOptions | None = None,
    *,
    progress: Progress | None = None,
) -> LinkParameters:
    """Return masses, centers of mass and inertias of a machine's links from its base parameters.

    The base parameters b = B p(x) depend on the unknown parameters x of the machine file. The
    unknowns x are fitted to b and to known values, weighted by their standard deviations. The
    directions N of dx that change neither b nor the known values form families. Parameters that no
    direction changes are determined, with the covariance of the fit. For some of the other
    parameters an interval is computed (`LinkParameter.kind`). It contains all values that agree
    with b (within the standard deviations, by the profile likelihood) and with physically possible
    links, which have non-negative masses and positive semidefinite pseudo-inertias.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine. A parameter that
            several links share is one unknown.
        estimates: base parameters with their covariance, a result of `identify`, or its JSON file.
        options: known values, and the confidence of intervals.
        progress: called with the completed and the total number of steps.

    Raises:
        InputError: a known name is not a parameter, or its value has the wrong dimension, or a file
            does not contain estimates.
        IdentificationError: no physically possible links have these values, or CVXPY is not
            installed.

    Source: Gautier and Khalil 1990, Direct calculation of minimum set of inertial parameters of
        serial robots, for base parameters; Wensing, Kim and Slotine 2018, Linear matrix
        inequalities for physically consistent inertial parameter identification, for physically
        possible links.

    Examples:
        >>> import tauloop as tl
        >>> import numpy as np
        >>> text = '''
        ... format: tauloop-machine/1
        ... name: pendulum
        ... provenance: {status: chosen, source: an example}
        ... gravity: [0, 0, -9.81 m/s^2]
        ... parameters: {m: 2 kg, c: 0.3 m, I: 0.05 kg m^2}
        ... bodies:
        ...   bar: {mass: m, center: [c, 0, 0], inertia: {xx: 1e-3 kg m^2, yy: I, zz: I}}
        ... joints:
        ...   pin: {type: revolute, axis: y, parent: base, child: bar}
        ... actuators: {motor: {on: pin}}
        ... platform: {body: bar, independent: [pin]}
        ... '''
        >>> fitted = tl.identification.BaseEstimates(
        ...     parameters=("bar.mcx", "bar.Iyy"),
        ...     regrouping=np.eye(2),
        ...     values=np.array([0.6, 0.23]),
        ...     covariance=np.zeros((2, 2)),
        ... )
        >>> links = tl.link_parameters(tl.loads(text), fitted, known={"m": "2 kg"})
        >>> links.to_pandas()["value"].round(3).to_dict()
        {'c': 0.3, 'I': 0.05}
    """
    mechanism = mechanism_of(machine)
    options = options or LinkOptions()
    fitted = _base_estimates(estimates)
    equations = LinkEquations(mechanism, fitted, options.known)
    _require_unknown(equations)
    rng = np.random.default_rng(options.seed)
    stages = Stages(progress, 1 + len(equations.unknown))
    solution = _solution(equations, rng)
    families = tuple(_families(equations, solution.directions, solution.is_free & solution.is_seen))
    quantities = LinkQuantities(equations, rng)
    links = LinkSet(quantities)
    nearest = links.nearest()
    half_width = float(ndtri(0.5 + 0.5 * options.confidence))
    links.within(float(np.hypot(nearest, half_width)))
    stages.done()
    parameters = []
    for k in stages.over(range(len(equations.unknown))):
        if solution.is_seen[k]:
            quantity = quantities.unknown[k] if solution.is_free[k] else None
            parameters.append(_link_parameter(equations, solution, k, quantity, links, families))
    return LinkParameters(
        machine=mechanism.name,
        parameters=tuple(parameters),
        families=families,
        unidentifiable=_unseen(equations, solution),
        known=equations.known,
        covariance=solution.covariance_of_determined,
        diagnostics=(
            *_diagnostics(nearest, solution.misfit),
            *_value_diagnostics(parameters, half_width, equations),
        ),
        provenance=provenance(
            packages=("numpy", "scipy", "casadi", "cvxpy", "clarabel"),
            options=plain(options),
            inputs={"machine": mechanism.name, "base_parameters": len(fitted.values)},
        ),
    )


def _require_unknown(equations: LinkEquations) -> None:
    """Reject equations in which all parameters are known."""
    if not equations.unknown:
        raise IdentificationError.of(
            "known",
            f"all parameters are known ({counted(len(equations.known), 'value')})",
            "remove the parameters to be computed from the known values",
        )


def _unseen(equations: LinkEquations, solution: _Solution) -> tuple[str, ...]:
    """Return the names of the parameters that the base parameters do not contain."""
    seen = zip(equations.unknown, solution.is_seen, strict=True)
    return tuple(parameter.name for parameter, is_seen in seen if not is_seen)


def _base_estimates(
    estimates: BaseEstimates | Identification | MachineIdentification | str | Path,
) -> BaseEstimates:
    """Return base parameters with their covariance, from estimates, a result or a file."""
    if isinstance(estimates, str | Path):
        return BaseEstimates.read(Path(estimates))
    return estimates if isinstance(estimates, BaseEstimates) else BaseEstimates.of(estimates)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Solution:
    """Unknowns that agree with the estimates, and which of them the estimates determine.

    Attributes:
        x: fitted unknowns (n,), SI.
        covariance: covariance (n, n) of the fit.
        misfit: largest misfit of a row, in standard deviations.
        directions: null directions N (n, d) at the fitted unknowns, then at other points of the
            families.
        is_seen: (n,) True for unknowns on which some estimate depends.
        is_free: (n,) True for unknowns that are not determined.
    """

    x: np.ndarray
    covariance: np.ndarray
    misfit: float
    directions: tuple[np.ndarray, ...]
    is_seen: np.ndarray
    is_free: np.ndarray

    @property
    def covariance_of_determined(self) -> np.ndarray:
        """Covariance of the unknowns in `is_seen`; zero for undetermined unknowns."""
        determined = np.where(self.is_free | self.is_free[:, None], 0.0, self.covariance)
        return determined[np.ix_(self.is_seen, self.is_seen)]


def _solution(equations: LinkEquations, rng: np.random.Generator) -> _Solution:
    """Return the fitted unknowns, with the directions in which they are not determined.

    The estimates can be stationary in a parameter at one point of a family, such as the middle of a
    link, but not at other points. The directions are therefore computed at several points.
    """
    x, misfit = _fitted(equations, equations.start)
    N, covariance = _null_directions(equations, x)
    draws = rng.normal(scale=MEMBER_DISTANCE, size=(OTHER_MEMBERS, N.shape[1]))
    members, directions = [x], [N]
    for step in equations.sizes * (draws @ N.T):
        member, _ = _fitted(equations, x + step)
        members.append(member)
        directions.append(_null_directions(equations, member)[0])
    slopes = [np.abs(equations.jacobian(member)).max(axis=0) for member in members]
    changes = np.max([np.linalg.norm(M, axis=1) for M in directions], axis=0)
    return _Solution(
        x=x,
        covariance=covariance,
        misfit=misfit,
        directions=tuple(directions),
        is_seen=np.any(np.array(slopes) > 0.0, axis=0),
        is_free=changes > DETERMINED_TOLERANCE,
    )


def _link_parameter(
    equations: LinkEquations,
    solution: _Solution,
    k: int,
    quantity: LinkQuantity | None,
    links: LinkSet,
    families: Sequence[LinkFamily],
) -> LinkParameter:
    """Return the value of the unknown with index k, or its interval if it is not determined.

    Args:
        equations: the equations.
        solution: their solution.
        k: index of the unknown.
        quantity: the unknown as a quantity of links; None if it is determined or has no interval.
        links: the physically possible links.
        families: families of the unknowns that are not determined.
    """
    parameter = equations.unknown[k]
    is_free = solution.is_free[k]
    lower, upper = links.interval(quantity) if quantity is not None else (None, None)
    family = next((i for i, item in enumerate(families) if parameter.name in item.members), None)
    return LinkParameter(
        name=parameter.name,
        unit=parameter.unit,
        links=equations.links(k),
        file=None if np.isnan(parameter.value) else parameter.value,
        value=None if is_free else float(solution.x[k]),
        deviation=None if is_free else float(np.sqrt(solution.covariance[k, k])),
        kind=quantity.kind if quantity is not None else "",
        lower=_without_solver_zero(lower, equations.sizes[k]),
        upper=_without_solver_zero(upper, equations.sizes[k]),
        family=family,
    )


def _diagnostics(nearest: float, misfit: float) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of the estimates, both in standard deviations.

    Args:
        nearest: distance of the estimates from physically possible links.
        misfit: largest misfit of a row.
    """
    return (
        diagnostic(
            "distance of the estimates from physically possible links, in standard deviations",
            nearest,
            at_most=MAX_DEVIATIONS,
            advice="no physically consistent links have these values within their standard deviations: check "
            "known values and units, and whether the model lacks an effect",
        ),
        diagnostic(
            "largest misfit of estimates and known values, in standard deviations",
            misfit,
            at_most=MAX_DEVIATIONS,
            advice="known values contradict the estimates: check both, and give known values with standard "
            "deviations",
        ),
    )


def _value_diagnostics(
    parameters: Sequence[LinkParameter], deviations: float, equations: LinkEquations
) -> tuple[Diagnostic, ...]:
    """Return diagnostics of determined masses and inertias.

    If a base parameter has a large error, masses can be impossible although the estimates agree
    with possible links within their deviations.

    Args:
        parameters: the parameters that affect the estimates.
        deviations: half width of the confidence interval, in standard deviations.
        equations: the equations, with the sizes of their unknowns.
    """
    sizes = {
        item.name: float(size)
        for item, size in zip(equations.unknown, equations.sizes, strict=True)
    }
    negative, wide = [], []
    for item in parameters:
        if item.value is None or item.deviation is None:
            continue
        text = f"{item.name} = {item.value:.4g} +- {item.deviation:.2g} {item.unit}"
        is_mass = item.unit == "kg"
        if is_mass and item.value < -item.deviation:
            negative.append(text)
        # a product of inertia can be zero
        size = abs(item.value) if is_mass else max(abs(item.value), sizes[item.name])
        if item.unit in ("kg", "kg m^2") and deviations * item.deviation > size:
            wide.append(text)
    remedy = "identify from a longer log with more excitation, or give known values"
    return (
        diagnostic(
            "masses below zero by more than their standard deviation",
            len(negative),
            at_most=0.0,
            advice=f"a mass cannot be negative ({', '.join(negative)}): {remedy}",
        ),
        diagnostic(
            "masses and inertias whose confidence interval is wider than twice their size",
            len(wide),
            at_most=0.0,
            advice=f"the estimates do not determine them ({', '.join(wide)}): {remedy}",
        ),
    )


def _whitening(equations: LinkEquations) -> np.ndarray:
    """Return W (m, m) with W^T W the inverse of the rows' covariance.

    Exact rows have the standard deviation `MIN_RELATIVE_DEVIATION`.
    """
    sizes = np.abs(equations.right) + np.abs(equations.jacobian(equations.start)) @ equations.sizes
    C = equations.covariance + np.diag((MIN_RELATIVE_DEVIATION * sizes) ** 2)
    return np.asarray(np.linalg.inv(np.linalg.cholesky(C)))


def _fitted(equations: LinkEquations, start: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the least-squares unknowns nearest to a start, and the largest misfit of a row.

    The misfit of row i is (W^T P W r)_i divided by the square root of (W^T P W)_ii, where P
    projects on the redundant part of the rows. Its unit is the standard deviation; it has a
    standard normal distribution if the errors of the rows have the given covariance. Rows without
    redundancy have no misfit.

    Source: Baarda 1968, A testing procedure for use in geodetic networks (the test of single rows).
    """
    W = _whitening(equations)
    sizes = equations.sizes

    def misfit(z: np.ndarray) -> np.ndarray:
        return np.asarray(W @ (equations(z * sizes) - equations.right))

    def slope(z: np.ndarray) -> np.ndarray:
        return np.asarray(W @ equations.jacobian(z * sizes) * sizes)

    z = least_squares(
        misfit, start / sizes, slope, xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=200
    ).x
    J = slope(z)
    redundant = W.T @ (np.eye(len(W)) - J @ np.linalg.pinv(J)) @ W
    residual, variances = W.T @ misfit(z), np.diag(redundant)
    is_redundant = variances > NULL_DIRECTION_TOLERANCE * (W**2).sum(axis=0)
    misfits = np.abs(residual[is_redundant]) / np.sqrt(variances[is_redundant])
    return z * sizes, float(np.max(misfits, initial=0.0))


def _null_directions(equations: LinkEquations, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the directions of the unknowns that change no row, and the covariance of the unknowns.

    Returns:
        N (n, d) in units of the unknowns' sizes; covariance (n, n) without the directions N.
    """
    sizes = equations.sizes
    J = equations.jacobian(x) * sizes
    norms = np.linalg.norm(J, axis=1, keepdims=True)
    _, s, Vt = np.linalg.svd(J / np.where(norms > 0.0, norms, 1.0))
    rank = int(np.sum(s > NULL_DIRECTION_TOLERANCE * s[0]))
    R = Vt[:rank].T
    whitened = _whitening(equations) @ J @ R
    square_root = sizes[:, None] * (R @ np.linalg.pinv(whitened))
    return Vt[rank:].T, square_root @ square_root.T


def _families(
    equations: LinkEquations, directions: Sequence[np.ndarray], is_free: np.ndarray
) -> Iterator[LinkFamily]:
    """Yield groups of unknowns that change together.

    Args:
        equations: the equations.
        directions: null directions N (n, d) at the fitted unknowns, then at other points of the
            families.
        is_free: (n,) True for unknowns that are not determined.
    """
    names = [parameter.name for parameter in equations.unknown]
    N = directions[0]
    preferences = np.array([PREFERENCES.get(item.unit, 1.0) for item in equations.unknown])
    coupling = np.max([np.abs(M @ M.T) for M in directions], axis=0)
    _, groups = connected_components(coupling > DETERMINED_TOLERANCE)
    for group in dict.fromkeys(groups[is_free].tolist()):
        members = np.flatnonzero(groups == group)
        freedoms = min(round(float((M[members] ** 2).sum())) for M in directions)
        weighted = preferences[members, None] * N[members]
        _, order = qr(weighted.T, mode="r", pivoting=True)
        pivots = members[order[:freedoms]]
        changes = None
        if freedoms == 1:
            # columns of N may mix directions of several families
            direction = np.linalg.svd(N[members], full_matrices=False)[0][:, 0]
            direction = np.where(np.abs(direction) > DETERMINED_TOLERANCE, direction, 0.0)
            change = direction * equations.sizes[members]
            change /= change[np.searchsorted(members, pivots[0])]
            changes = {names[k]: float(size) for k, size in zip(members, change, strict=True)}
        yield LinkFamily(
            members=tuple(names[k] for k in members),
            freedoms=freedoms,
            stated=tuple(names[k] for k in sorted(pivots)),
            changes=changes,
        )


def _without_solver_zero(end: float | None, size: float) -> float | None:
    """Return the end of an interval; exactly zero if it is zero within the solver's accuracy."""
    return 0.0 if end is not None and abs(end) < ZERO_TOLERANCE * size else end
