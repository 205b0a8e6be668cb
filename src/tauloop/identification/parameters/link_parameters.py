"""From base parameters to masses, mass centres and inertias of links: what is determined, what forms families.

Forces determine base parameters, which are fewer than the parameters of the links. What a user
knows besides, from a drawing or a scale, determines some of the others; the rest are families in
which one value follows from another, and whose members are bounded since links have to be able to
exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.linalg import qr
from scipy.optimize import least_squares
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtri

from tauloop.common.datasets import Variable, rows
from tauloop.common.errors import IdentificationError, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.common.result import Result, diagnostic, plain, provenance
from tauloop.common.shown import ReprMixin
from tauloop.formats.library import mechanism_of
from tauloop.identification.estimation.result import Identification
from tauloop.identification.machine_result import MachineIdentification
from tauloop.identification.parameters.base_estimates import BaseEstimates
from tauloop.identification.parameters.link_equations import LinkEquations
from tauloop.identification.parameters.link_intervals import LinkSet
from tauloop.identification.parameters.link_quantities import LinkQuantities
from tauloop.mechanism.description.quantities import pairs_reader
from tauloop.model.model import MachineSource

#: Directions of the scaled equations below this share of the largest change nothing.
UNSEEN = 1e-8
#: A parameter that such a direction moves by less than this share of its size is determined.
STILL = 1e-6
#: Standard deviations below this share of a row are rounding, so that weights of exact values are
#: finite.
ROUNDING = 1e-9
#: So many other members of a family are looked at, and so far away, as a share of the parameters'
#: sizes.
OTHERS, AWAY = 2, 0.2
#: Parameters that one rather states, by unit: a scale or a drawing says masses and centres sooner
#: than inertias.
STATED = {"kg": 4.0, "m": 2.0}
#: The end of an interval below this share of a parameter's size is zero: the solver's own accuracy.
ZERO = 1e-7
#: Standard deviations (all rows together) that estimates may be away from links that can exist.
FAR = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkOptions(Options):
    """What is known of the links, and how sure intervals are.

    Attributes:
        known: parameters that are known, such as 'm4=12.5 kg' or, with a standard deviation,
            'm4=12.5 kg +- 0.1 kg': parameters of the machine file, or standard parameters such as
            forearm.m.
        confidence: share of cases in which the true value is in its interval; 0 for intervals at
            the estimates as they are.
        seed: seed of the draws by which dependences are found.

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
    """One unknown parameter of the machine file.

    Attributes:
        name, unit: as in the machine file, SI.
        links: bodies and rods whose inertia it is of.
        file: the value of the machine file; None where it has none.
        value, deviation: where it is determined, with its standard deviation; None otherwise.
        kind: "sum", "centre" or "central inertia" where it has an interval; "" where it is none of
            these.
        lower, upper: its interval over all links that can exist; None for no end, and for what is
            determined.
        family: number of the family it belongs to, from 0; None where it is determined, or no force
            depends on it.
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
    """Parameters that change together without a change of any force.

    Attributes:
        members: their names.
        freedoms: how many of them must be stated so that the others follow.
        stated: that many of them from which all others follow; there are other choices.
        changes: of all members for a change of 1 (SI) of the stated one, where that is one; at the
            member of the family that is nearest to the machine file.
    """

    members: tuple[str, ...]
    freedoms: int
    stated: tuple[str, ...]
    changes: Mapping[str, float] | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkParameters(Result):
    """What base parameters say of a machine's links.

    Attributes:
        machine: its name.
        parameters: the unknown parameters.
        families: those of them that are not determined.
        unseen: those on which no estimate depends; nothing is said of them.
        known: what was stated, SI: value and standard deviation by name.
        covariance: of the determined parameters (n, n), in the order of `parameters`; zero for the
            others.
    """

    machine: str
    parameters: tuple[LinkParameter, ...]
    families: tuple[LinkFamily, ...]
    unseen: tuple[str, ...]
    known: Mapping[str, tuple[float, float]]
    covariance: np.ndarray

    def variables(self) -> Iterator[Variable]:
        """Unknown parameters: values with deviations where they are determined, else intervals."""
        names = ("value", "deviation", "lower", "upper", "file")
        figures = {
            name: [getattr(parameter, name) for parameter in self.parameters] for name in names
        }
        return rows(
            "parameter",
            (p.name for p in self.parameters),
            (p.unit for p in self.parameters),
            **figures,
        )

    def __getitem__(self, name: str) -> LinkParameter:
        """The parameter of that name."""
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
    """Masses, mass centres and inertias of a machine's links from its base parameters and what is known.

    With base parameters b = B p(x) of the unknown parameters x of the machine file: x is fitted to
    b and to what is known, weighted by the deviations; directions N of dx that change neither form
    families, and parameters that none of them moves are determined, with the covariance of the fit.
    The others lie in an interval: all values that agree with b (within the deviations, by the
    profile of the likelihood) and that links can have, whose masses are not negative and whose
    pseudo-inertias are positive semidefinite.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine; parameters that its
            links share are one unknown.
        estimates: base parameters with their covariance, or what `identify` has found, or its JSON
            file.
        options: what is known; confidence.
        progress: called with what is done and what there is to do.

    Raises:
        InputError: a known name is no parameter, or its value no such quantity; a file holds no
            estimates.
        IdentificationError: no links have these values; CVXPY is not installed.

    Source: Gautier and Khalil 1990, Direct calculation of minimum set of inertial parameters of
        serial robots, for base parameters; Wensing, Kim and Slotine 2018, Linear matrix
        inequalities for physically consistent inertial parameter identification, for links that can
        exist.

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
    if isinstance(estimates, str | Path):
        estimates = BaseEstimates.read(Path(estimates))
    if not isinstance(estimates, BaseEstimates):
        estimates = BaseEstimates.of(estimates)
    equations = LinkEquations(mechanism, estimates, options.known)
    if not equations.unknown:
        raise IdentificationError.of(
            "known", "all parameters are known", "leave out what is sought"
        )
    rng, stages = np.random.default_rng(options.seed), Stages(progress, 1 + len(equations.unknown))
    x, missed = _fitted(equations, equations.start)
    N, covariance = _directions(equations, x)
    # where a parameter stands still at one member of a family, such as at the middle of a link, it
    # moves at others
    steps = equations.sizes * (rng.normal(scale=AWAY, size=(OTHERS, N.shape[1])) @ N.T)
    members = [x, *(_fitted(equations, x + step)[0] for step in steps)]
    moved = [N, *(_directions(equations, member)[0] for member in members[1:])]
    is_seen = np.any(
        [np.abs(equations.jacobian(member)).max(axis=0) > 0.0 for member in members], axis=0
    )
    is_free = np.max([np.linalg.norm(M, axis=1) for M in moved], axis=0) > STILL
    families = tuple(_families(equations, moved, is_free & is_seen))
    quantities = LinkQuantities(equations, rng)
    links = LinkSet(quantities)
    nearest = links.nearest()
    links.within(float(np.hypot(nearest, ndtri(0.5 + 0.5 * options.confidence))))
    stages.done()
    parameters = []
    for k, parameter in enumerate(stages.over(equations.unknown)):
        if not is_seen[k]:
            continue
        quantity = quantities.unknown[k] if is_free[k] else None
        lower, upper = links.interval(quantity) if quantity is not None else (None, None)
        parameters.append(
            LinkParameter(
                name=parameter.name,
                unit=parameter.unit,
                links=equations.links(k),
                file=None if np.isnan(parameter.value) else parameter.value,
                value=None if is_free[k] else float(x[k]),
                deviation=None if is_free[k] else float(np.sqrt(covariance[k, k])),
                kind=quantity.kind if quantity is not None else "",
                lower=_rounded(lower, equations.sizes[k]),
                upper=_rounded(upper, equations.sizes[k]),
                family=next(
                    (i for i, family in enumerate(families) if parameter.name in family.members),
                    None,
                ),
            )
        )
    return LinkParameters(
        machine=mechanism.name,
        parameters=tuple(parameters),
        families=families,
        unseen=tuple(
            parameter.name
            for parameter, seen in zip(equations.unknown, is_seen, strict=True)
            if not seen
        ),
        known=equations.known,
        covariance=np.where(is_free | is_free[:, None], 0.0, covariance)[np.ix_(is_seen, is_seen)],
        diagnostics=(
            diagnostic(
                "distance of the estimates from links that can exist, in standard deviations",
                nearest,
                at_most=FAR,
                advice="no links have these values within their deviations: look at known values, units and at what "
                "the model leaves out",
            ),
            diagnostic(
                "largest misfit of estimates and known values, in standard deviations",
                missed,
                at_most=FAR,
                advice="known values contradict the estimates: look at both, and give known values their deviations",
            ),
        ),
        provenance=provenance(
            packages=("numpy", "scipy", "casadi", "cvxpy", "clarabel"),
            options=plain(options),
            inputs={"machine": mechanism.name, "base_parameters": len(estimates.values)},
        ),
    )


def _whitening(equations: LinkEquations) -> np.ndarray:
    """W (m, m) with W^T W the inverse of the rows' covariance; rounding stands for the deviation of exact rows."""
    sizes = np.abs(equations.right) + np.abs(equations.jacobian(equations.start)) @ equations.sizes
    C = equations.covariance + np.diag((ROUNDING * sizes) ** 2)
    return np.asarray(np.linalg.inv(np.linalg.cholesky(C)))


def _fitted(equations: LinkEquations, start: np.ndarray) -> tuple[np.ndarray, float]:
    """The unknowns nearest to a start that fit best, and the largest misfit of a row in standard deviations.

    With P the projection on what no unknown can fit: (W^T P W r)_i over the root of (W^T P W)_ii,
    which is standard normal where the row has no error but its own, however rows are correlated;
    rows that fit anyway have none.

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
    left, variances = W.T @ misfit(z), np.diag(redundant)
    is_judged = variances > UNSEEN * (W**2).sum(axis=0)
    return z * sizes, float(
        np.max(np.abs(left[is_judged]) / np.sqrt(variances[is_judged]), initial=0.0)
    )


def _directions(equations: LinkEquations, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """N (n, d), changes of the unknowns over their sizes that no row sees, and the covariance (n, n) of the others."""
    sizes, J = equations.sizes, equations.jacobian(x) * equations.sizes
    norms = np.linalg.norm(J, axis=1, keepdims=True)
    _, s, Vt = np.linalg.svd(J / np.where(norms > 0.0, norms, 1.0))
    rank = int(np.sum(s > UNSEEN * s[0]))
    R = Vt[:rank].T
    seen = _whitening(equations) @ J @ R
    half = sizes[:, None] * (R @ np.linalg.pinv(seen))
    return Vt[rank:].T, half @ half.T


def _families(
    equations: LinkEquations, moved: Sequence[np.ndarray], is_free: np.ndarray
) -> Iterator[LinkFamily]:
    """Groups of unknowns that directions N (n, d) move together, here (first) or at other members of their family."""
    names, N = [parameter.name for parameter in equations.unknown], moved[0]
    worth = np.array([STATED.get(parameter.unit, 1.0) for parameter in equations.unknown])
    _, groups = connected_components(np.max([np.abs(M @ M.T) for M in moved], axis=0) > STILL)
    for group in dict.fromkeys(groups[is_free].tolist()):
        members = np.flatnonzero(groups == group)
        freedoms = min(round(float((M[members] ** 2).sum())) for M in moved)
        pivots = members[qr((worth[:, None] * N)[members].T, mode="r", pivoting=True)[1][:freedoms]]
        changes = None
        if freedoms == 1:
            change = (
                np.where(np.abs(N[members, 0]) > STILL, N[members, 0], 0.0)
                * equations.sizes[members]
            )
            change /= change[np.searchsorted(members, pivots[0])]
            changes = {names[k]: float(size) for k, size in zip(members, change, strict=True)}
        yield LinkFamily(
            members=tuple(names[k] for k in members),
            freedoms=freedoms,
            stated=tuple(names[k] for k in sorted(pivots)),
            changes=changes,
        )


def _rounded(end: float | None, size: float) -> float | None:
    """An end of an interval; the solver's zero is one."""
    return 0.0 if end is not None and abs(end) < ZERO * size else end
