"""Tables of certified boxes, and of checks of their proofs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tauloop.common.counts import counted
from tauloop.design.certificate import ProofClaims
from tauloop.design.certification import CertificateCheck, Certification
from tauloop.display.pieces import Printed, Table
from tauloop.display.tables import doubts, table


def certificate_tables(result: Certification) -> Iterator[Printed]:
    """Yield the box, the proved claims and distances, and a pose that violates a claim."""
    shape = "Cylinder" if result.claims.round else "Box"
    yield _box(f"{shape} of {result.model.mechanism.name}: {result.verdict}", result.ranges)
    if result.verdict == "proved":
        yield from _proved_claims(result.claims)
    if result.options.maximize_box and result.verdict == "proved":
        yield f"largest proved factor on the given ranges, about their middles: {result.scale:.3g}"
    if result.measures:
        yield table(
            "Proved distances from singularities",
            "kind",
            ("at least", ".4g"),
            rows=list(result.measures.items()),
        )
    if result.counterexample is not None:
        yield table(
            f"A pose that violates a claim: {result.violated}",
            "axis",
            ("value [m, rad]", ".6g"),
            rows=list(result.counterexample.items()),
        )
    if result.violating_machine is not None:
        yield table(
            "The machine within the deviations that violates it",
            "parameter",
            ("value [SI]", ".8g"),
            rows=list(result.violating_machine.items()),
        )
    yield (
        f"{result.boxes} of {counted(result.evaluated, 'evaluated box')} proved in "
        f"{result.duration:.2g} s of processor time; undecided: {100 * result.undecided:.3g} % of the volume"
    )
    if result.assumed:
        equations = counted(len(result.assumed), "loop equation")
        yield f"assumed redundant, as for exact dimensions: {equations}"
    yield from doubts(result)


def _proved_claims(claims: ProofClaims) -> Iterator[str]:
    """Yield the proved claims other than distances from singularities."""
    if claims.round:
        axes = ", ".join(name.rpartition(".")[2] for name in claims.round)
        yield f"the ranges of {axes} are diameters"
    if claims.clearance or claims.radii:
        surfaces = "surfaces" if claims.radii else "center lines"
        yield f"proved: {surfaces} of rods are more than {claims.clearance:.4g} m apart"
    if claims.cone is not None or claims.cones:
        yield "proved: rods and joints stay within their cones"
    if claims.forces:
        wrench = " with every wrench in the ranges" if claims.wrench else ""
        yield f"proved: forces and tensions at rest{wrench} stay within the limits of the file"
    if claims.limits:
        yield "proved: errors of the tool due to encoders and parameters stay within the limits"


def certificate_check_tables(result: CertificateCheck) -> Iterator[Printed]:
    """Yield the verdict, the box of a certificate, and the claims that do not hold."""
    state = "holds" if not result.problems else "does not hold"
    yield _box(f"Certificate of {result.machine}: {state}", result.ranges)
    yield f"{counted(result.boxes, 'box')} checked"
    yield from doubts(result)


def _box(title: str, ranges: Mapping[str, tuple[float, float]]) -> Table:
    return table(
        title,
        "axis",
        ("from [m, rad]", ".6g"),
        ("to [m, rad]", ".6g"),
        rows=[(name, low, high) for name, (low, high) in ranges.items()],
    )
