"""Certified boxes of poses from one call: a proof, a counterexample, or the best that was proved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from pathlib import Path

import numpy as np

from tauloop.common.datasets import Variable, rows
from tauloop.common.errors import InputError, PoseError, solving
from tauloop.common.keywords import keywords
from tauloop.common.optional import optional_module
from tauloop.common.plain import OMITTED, json_keys
from tauloop.common.progress import Progress
from tauloop.common.records import dataclass
from tauloop.common.result import Result, diagnostic, provenance
from tauloop.design.certificate import Proof, ProofClaims, read_proof, text_hash, write_proof
from tauloop.design.certify_options import CertifyOptions
from tauloop.design.claim_options import claims_of, needed_functions, unknown_names_in
from tauloop.design.domain import Domain
from tauloop.design.enclosure import Requirements
from tauloop.design.loads import load_limits
from tauloop.design.pose_symbols import MAX_ROTATION
from tauloop.design.problem import PoseProblem, pose_problem
from tauloop.design.search import BoxSearch, Budget, search
from tauloop.equations.named_values import by_column, full_name
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled

#: Number of steps of a progress bar.
PROGRESS_PARTS = 1000
#: Largest factor by which a box is scaled up or down.
MAX_SCALE = 64.0
#: Relative accuracy of the scale of the largest box.
SCALE_ACCURACY = 0.01
#: Verdicts of a search.
PROVED = "proved"
REFUTED = "refuted"
UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Certification(Result):
    """Outcome of a search for a proof over a box of poses.

    Attributes:
        model: the machine.
        options: the box and the claims.
        claims: the claims with all names.
        verdict: "proved", "refuted" or "undecided".
        ranges: the box: ranges of the axes that vary.
        scale: size of the box relative to the given ranges.
        counterexample: a pose that violates a claim, by name of its axes; None if there is none.
        violated: the claim that the counterexample violates; None without a counterexample.
        excess: value of the violated quantity minus its limit (negative); None without a
            counterexample, and if no assembly mode reaches the pose.
        violating_machine: values of the parameters with `deviations`, by name, of a machine that violates
            the claim; None if every machine within the deviations violates it.
        measures: proved lower bounds of the distances from singularities over the whole box.
        undecided: fraction of the volume that is not decided.
        hardest: the claim that was hardest to prove in the undecided boxes; None if none is undecided.
        boxes: number of proved boxes.
        evaluated: number of evaluated boxes, at all scales.
        duration: processor time of the search at all scales, s.
        assumed: loop equations that are redundant at exact dimensions and were not proved again.
        outcome: the boxes of the proof.
        problem: functions of the machine.
    """

    model: Model = field(metadata=json_keys(machine="mechanism.name"))
    options: CertifyOptions = field(metadata=OMITTED)
    claims: ProofClaims = field(metadata=OMITTED)
    verdict: str
    ranges: dict[str, tuple[float, float]]
    scale: float
    counterexample: dict[str, float] | None
    violated: str | None
    excess: float | None
    violating_machine: dict[str, float] | None
    measures: dict[str, float]
    undecided: float
    hardest: str | None
    boxes: int
    evaluated: int
    duration: float
    assumed: tuple[str, ...]
    outcome: BoxSearch = field(metadata=OMITTED)
    problem: PoseProblem = field(metadata=OMITTED)

    @property
    def proof(self) -> Proof:
        """The proof for a file.

        Raises:
            InputError: nothing is proved.
        """
        if self.verdict != PROVED:
            what = f"the box is {self.verdict}, which leaves nothing to write"
            raise InputError.of("proof", what, "certify a smaller box, or with a larger time_limit")
        outcome = self.outcome
        problem = self.problem
        return Proof(
            machine=self.model.mechanism.name,
            text_sha256=text_hash(self.model),
            claims=self.claims,
            axes=problem.axes,
            start=outcome.domain.start,
            varied=outcome.domain.varied,
            lower=outcome.domain.lower,
            upper=outcome.domain.upper,
            unknowns=problem.unknowns,
            cuts=np.array(outcome.path.cuts),
            path=outcome.path.unknowns,
            level=outcome.level,
            index=outcome.index,
            solutions=outcome.unknowns,
        )

    def write_proof(self, path: str | Path) -> Path:
        """Write the proof as a file that `tl.check_certificate` checks.

        Returns:
            The path.

        Raises:
            InputError: nothing is proved, or the folder is not writable.
        """
        return write_proof(path, self.proof)

    def _contents(self) -> dict[str, object]:
        return {
            "machine": self.model.mechanism.name,
            "verdict": self.verdict,
            "boxes": self.boxes,
            "status": self.status,
        }

    def variables(self) -> Iterator[Variable]:
        """Return the ranges of the box."""
        yield from rows("axis", list(self.ranges))
        for side, name in enumerate(("lower", "upper")):
            values = [ends[side] for ends in self.ranges.values()]
            yield Variable(name=name, values=values, over=("axis",), unit=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateCheck(Result):
    """Outcome of the check of a certificate.

    Attributes:
        machine: name of the machine.
        boxes: number of boxes of the certificate.
        problems: descriptions of the parts of the proof that are not confirmed.
        ranges: the certified box.
        claims: the claims about every pose of the box.
    """

    machine: str
    boxes: int
    problems: tuple[str, ...]
    ranges: dict[str, tuple[float, float]]
    claims: ProofClaims


@keywords(CertifyOptions)
@solving(PoseError)
def certify(
    machine: MachineSource,
    options: CertifyOptions | None = None,
    *,
    progress: Progress | None = None,
) -> Certification:
    """Prove that a machine reaches every pose of a box, away from stops and singularities.

    The verdict has three cases:

    - proved: every pose can be reached in the assembly mode of the reference pose, within stops, and
      farther from singularities than required;
    - refuted: the result contains a pose that violates a claim, which interval arithmetic proves;
    - undecided: the budget ended first; the result contains the distances that were proved.

    Branch and bound divides the box. Krawczyk's test proves that the loops close in each part.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        options: the box and the claims.
        progress: called with the decided volume and the total volume, in units of a progress bar.

    Returns:
        The verdict, with the boxes of the proof or a pose that violates a claim.

    Raises:
        InputError: unknown names, empty ranges, or a machine that proofs do not cover: passive
            degrees of freedom, cables on drums.
        PoseError: the loops do not close around its reference pose.

    Source: Merlet 2006, Parallel robots, chapter 7; Neumaier 1990, Interval methods for systems of
    equations.

    Examples:
        >>> import tauloop as tl
        >>> result = tl.certify("delta", ranges="x=-0.1:0.1,y=-0.1:0.1,z=-0.5:-0.45")
        >>> result.verdict, round(result.ranges["platform.z"][0], 3)
        ('proved', -0.5)
    """
    options = options or CertifyOptions()
    model = modeled(machine)
    claims = claims_of(model, options)
    problem = pose_problem(model, needed_functions(model, claims))
    domain = _domain(problem, options)
    claims = replace(claims, round=tuple(problem.axes[domain.varied[i]] for i in domain.round))
    requirements = _requirements(problem, claims)
    budget = Budget(boxes=options.max_boxes, duration=options.time_limit)

    def report(fraction: float) -> None:
        if progress is not None:
            progress(int(fraction * PROGRESS_PARTS), PROGRESS_PARTS)

    if options.maximize_box:
        outcome, scale, remaining = _largest(problem, requirements, domain, budget, report)
    else:
        outcome = search(problem, requirements, domain, budget, report)
        scale = 1.0
        remaining = budget.without(outcome)
    report(1.0)
    result = _result(options, claims, problem, outcome, scale)
    return replace(
        result,
        evaluated=budget.boxes - remaining.boxes,
        duration=budget.duration - remaining.duration,
    )


def _result(
    options: CertifyOptions,
    claims: ProofClaims,
    problem: PoseProblem,
    outcome: BoxSearch,
    scale: float,
) -> Certification:
    """Return the public result of a search."""
    model = problem.model
    violation = outcome.counterexample
    verdict = UNDECIDED
    if outcome.is_proved:
        verdict = PROVED
    elif violation is not None:
        verdict = REFUTED
    domain = outcome.domain
    measures = {} if violation is not None else outcome.measures
    return Certification(
        model=model,
        options=options,
        claims=claims,
        verdict=verdict,
        ranges={
            problem.axes[axis]: (float(low), float(high))
            for axis, low, high in zip(domain.varied, domain.lower, domain.upper, strict=True)
        },
        scale=scale,
        counterexample=None
        if violation is None
        else dict(zip(problem.axes, map(float, violation.pose), strict=True)),
        violated=None if violation is None else violation.claim,
        excess=None if violation is None or np.isinf(violation.excess) else violation.excess,
        violating_machine=_violating_machine(problem, outcome),
        measures=measures,
        undecided=outcome.undecided,
        hardest=None if verdict != UNDECIDED else outcome.worst,
        boxes=len(outcome.level),
        evaluated=outcome.n_evaluated,
        duration=outcome.duration,
        assumed=problem.dropped,
        outcome=outcome,
        problem=problem,
        diagnostics=(
            diagnostic(
                "poses that violate a claim",
                int(violation is not None),
                at_most=0.0,
                advice=_violation_text(problem, outcome),
            ),
            diagnostic(
                "fraction of the box that is not proved",
                0.0 if verdict == PROVED else max(outcome.undecided, np.finfo(float).tiny),
                at_most=0.0,
                advice=_undecided_text(outcome),
            ),
        ),
        provenance=provenance(
            options={"ranges": dict(options.ranges), "parallel": options.parallel},
            inputs={"machine": model.mechanism.name},
        ),
    )


def _violating_machine(problem: PoseProblem, outcome: BoxSearch) -> dict[str, float] | None:
    """Return the parameters of the machine that violates a claim; None if all machines do."""
    violation = outcome.counterexample
    if violation is None or violation.parameters is None:
        return None
    return dict(zip(problem.parameters, map(float, violation.parameters), strict=True))


def _violation_text(problem: PoseProblem, outcome: BoxSearch) -> str:
    """Return the violated claim, the pose and a remedy; "" without a violation."""
    violation = outcome.counterexample
    if violation is None:
        return ""
    pose = ", ".join(
        f"{name} = {value:.6g}" for name, value in zip(problem.axes, violation.pose, strict=True)
    )
    machine = ""
    remedy = "certify a smaller box"
    if violation.parameters is not None:
        machine = " for a machine within the deviations"
        remedy = f"{remedy} or smaller deviations"
    if np.isinf(violation.excess):
        return f"{violation.claim} has no solution at {pose}{machine}: {remedy}"
    return f"{violation.claim} fails by {-violation.excess:.3g} at {pose}{machine}: {remedy}"


def _undecided_text(outcome: BoxSearch) -> str:
    """Return the reason why a box is undecided, and a remedy."""
    if not outcome.path.is_complete:
        percent = 100.0 * outcome.path.cuts[-1]
        return (
            "the straight path from the reference to the center of the box is followed for only "
            f"{percent:.3g} %: choose a box that this path reaches without singular or unreachable poses"
        )
    if outcome.counterexample is not None:
        return "the search ended at the violation"
    return (
        f"{outcome.worst} was hardest to prove: certify a smaller box, smaller distances, "
        "or with a larger max_boxes and time_limit"
    )


def _requirements(problem: PoseProblem, claims: ProofClaims) -> Requirements:
    """Return the requirements of claims."""
    return Requirements(
        parallel=claims.parallel,
        serial=claims.serial,
        constraint=claims.constraint,
        clearance=claims.clearance,
        loads=load_limits(problem, claims),
    )


def _domain(problem: PoseProblem, options: CertifyOptions) -> Domain:
    """Return the box or cylinder.

    Raises:
        InputError: no ranges, unknown or repeated names, an empty range, or a rotation that is too
            large.
    """
    if not options.ranges:
        what = f"no range is given; the axes are {', '.join(problem.axes)}"
        raise InputError.of("ranges", what, "give ranges, such as x=-0.1:0.1")
    start = problem.reference[0].copy()
    units = dict(zip(problem.axes, problem.axis_units, strict=True))
    pose = by_column(units, options.pose, "pose")
    ranges = by_column(units, options.ranges, "ranges")
    for name, value in pose.items():
        if name in ranges:
            raise InputError.of("pose", f"{name} has a range too", "give a value or a range")
        start[problem.axes.index(name)] = value
    ends: dict[int, tuple[float, float]] = {}
    for name, (low, high) in ranges.items():
        if not low < high:
            raise InputError.of(
                "ranges", f"{name} is empty ({low:g} to {high:g})", "give the lower end first"
            )
        ends[problem.axes.index(name)] = (low, high)
    varied = tuple(sorted(ends))
    domain = Domain(
        start=start,
        varied=varied,
        lower=np.array([ends[axis][0] for axis in varied]),
        upper=np.array([ends[axis][1] for axis in varied]),
        round=_round_columns([problem.axes[axis] for axis in varied], options.cylinder),
    )
    _require_small_rotations(problem, domain)
    return domain


def _round_columns(axes: Sequence[str], cylinder: Sequence[str]) -> tuple[int, ...]:
    """Return the indices of the axes of a cylinder among the axes that vary.

    Raises:
        InputError: an axis has no range, a name is repeated, or there is a single axis.
    """
    names = [full_name(axes, name, "cylinder") for name in cylinder]
    if len(set(names)) == 1 or len(set(names)) < len(names):
        what = f"has the axes {', '.join(names)}"
        raise InputError.of(
            "cylinder", what, "give two or three axes that have ranges, such as x,y"
        )
    return tuple(sorted(axes.index(name) for name in names))


def _require_small_rotations(problem: PoseProblem, domain: Domain) -> None:
    """Check that rotations are small enough for the series of the quaternion.

    Raises:
        InputError: they are too large.
    """
    largest = np.abs(domain.start).copy()
    largest[list(domain.varied)] = np.maximum(np.abs(domain.lower), np.abs(domain.upper))
    is_rotation = [axis.endswith((".rx", ".ry", ".rz")) for axis in problem.axes]
    angle = float(np.linalg.norm(largest[np.array(is_rotation)]))
    if angle > MAX_ROTATION:
        what = f"rotations reach {angle:.3g} rad from the reference, more than {MAX_ROTATION:g} rad"
        raise InputError.of("ranges", what, "choose smaller rotations, or another reference pose")


def _largest(
    problem: PoseProblem,
    requirements: Requirements,
    domain: Domain,
    budget: Budget,
    report: Callable[[float], None],
) -> tuple[BoxSearch, float, Budget]:
    """Return the proof of the largest scaled box, its scale, and the remaining budget.

    The scale is doubled until a proof fails, and then bisected. Each search may use half of the
    remaining budget, so that all searches together do not exceed the budget.
    """
    first = search(problem, requirements, domain, budget.half, report)
    best = first
    low, high = (1.0, np.inf) if first.is_proved else (0.0, 1.0)
    remaining = budget.without(first)
    while high > (1.0 + SCALE_ACCURACY) * low:
        scale = 2.0 * low if np.isinf(high) else 0.5 * (low + high)
        if remaining.is_spent or not 1.0 / MAX_SCALE <= scale <= MAX_SCALE:
            break
        scaled = _scaled(problem, domain, scale)
        outcome = search(problem, requirements, scaled, remaining.half)
        remaining = remaining.without(outcome)
        if outcome.is_proved:
            best = outcome
            low = scale
        else:
            high = scale
    if best.is_proved:
        return best, low, remaining
    return first, 1.0, remaining


def _scaled(problem: PoseProblem, domain: Domain, scale: float) -> Domain:
    """Return a domain that is scaled by a factor about its center."""
    center = 0.5 * (domain.lower + domain.upper)
    half = 0.5 * (domain.upper - domain.lower)
    scaled = replace(domain, lower=center - scale * half, upper=center + scale * half)
    _require_small_rotations(problem, scaled)
    return scaled


@keywords()
@solving(PoseError)
def check_certificate(
    machine: MachineSource, path: str | Path, *, progress: Progress | None = None
) -> CertificateCheck:
    """Check the proof of a certified box by an independent implementation.

    The certificate divides the certified box into small boxes. The check proves with exact dyadic
    fractions that they cover it without overlap. In each small box it evaluates the claims with the
    ball arithmetic of python-flint's arb, without a search.

    Args:
        machine: the machine of the certificate.
        path: file of `Certification.write_proof`.
        progress: called with the number of checked boxes and the number of all boxes.

    Returns:
        The outcome, with the parts of the proof that are not confirmed.

    Raises:
        InputError: the file is not a certificate, or is damaged.
        EngineError: python-flint is not installed.

    Source: Johansson 2017, Arb: efficient arbitrary-precision midpoint-radius interval arithmetic.

    Examples:
        >>> import tauloop as tl
        >>> tl.check_certificate("delta", "missing.json")
        Traceback (most recent call last):
            ...
        tauloop.common.errors.InputError: path: missing.json cannot be read: ...
        ...
    """
    proof = read_proof(path)
    optional_module("flint", "python-flint", "design")
    problems = _checked_problems(modeled(machine), proof, progress)
    return CertificateCheck(
        machine=proof.machine,
        boxes=len(proof.level),
        problems=problems,
        ranges={
            proof.axes[axis]: (float(low), float(high))
            for axis, low, high in zip(proof.varied, proof.lower, proof.upper, strict=True)
        },
        claims=proof.claims,
        diagnostics=(
            diagnostic(
                "parts of the proof that do not hold",
                len(problems),
                at_most=0.0,
                advice=f"{'; '.join(problems[:3])}: certify the box again",
            ),
        ),
        provenance=provenance(options={}, inputs={"machine": proof.machine, "proof": str(path)}),
    )


def _checked_problems(model: Model, proof: Proof, progress: Progress | None) -> tuple[str, ...]:
    """Return descriptions of the parts of a proof that are not confirmed."""
    from tauloop.design.checking import checked

    if text_hash(model) != proof.text_sha256:
        return (
            f"the certificate is that of another machine or other parameters ({proof.machine}, "
            f"not {model.mechanism.name})",
        )
    unknown = unknown_names_in(model, proof.claims)
    if unknown:
        return (f"the claims contain names that the machine does not have: {', '.join(unknown)}",)
    problem = pose_problem(model, needed_functions(model, proof.claims))
    varied = {proof.axes[axis] for axis in proof.varied if 0 <= axis < len(proof.axes)}
    if not set(proof.claims.round) <= varied:
        return ("an axis of the cylinder does not vary",)
    if problem.axes != proof.axes or problem.unknowns != proof.unknowns:
        return ("the axes or unknowns are not those of the machine",)
    if len(proof.solutions) != len(proof.level):
        return ("boxes and solutions differ in number",)
    return checked(problem, proof, progress).problems
