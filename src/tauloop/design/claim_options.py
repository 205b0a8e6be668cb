"""Resolution of the options of a certificate to claims about the parts of a machine."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.design.certificate import ProofClaims
from tauloop.design.certify_options import CertifyOptions
from tauloop.design.loads import ERROR_DIRECTIONS
from tauloop.design.pose_limits import cone_candidates
from tauloop.design.problem import NeededFunctions
from tauloop.design.tolerances.sources import Amounts, Candidate, amounts
from tauloop.equations.named_values import TOOL_PORT, by_column
from tauloop.equations.ports import motor_port
from tauloop.mechanism.expression import leaves
from tauloop.mechanism.model import Rod
from tauloop.model import Model

#: Value of the option `rod_radii` with which the radii of rods are read from the machine file.
FROM_FILE = "file"


def claims_of(model: Model, options: CertifyOptions) -> ProofClaims:
    """Return the claims about a machine that options state.

    Raises:
        InputError: names, units or values are wrong; the error lists all of them.
    """
    problems = Problems()
    limits = amounts("limits", options.limits, error_candidates(), problems)
    encoders = amounts("encoders", options.encoders, encoder_candidates(model), problems)
    cones = _cones(model, options, problems)
    radii = _radii(model, options.rod_radii, problems)
    wrench: tuple[tuple[float, float], ...] = ()
    with problems.collecting(InputError):
        wrench = _wrench_ranges(options.wrenches)
    if limits and not encoders and not options.deviations:
        problems.add(
            "encoders",
            "no errors of encoders or parameters are given",
            "give encoder errors, such as encoders={'*': '20urad'}, or deviations of parameters",
        )
    if encoders and not limits:
        problems.add(
            "limits", "no error limit is given", "give a limit, such as limits={'x': '50 um'}"
        )
    InputError.raise_if_any(problems)
    return ProofClaims(
        parallel=options.parallel,
        serial=options.serial,
        constraint=options.constraint,
        length=options.moment_length or model.assembly.loops.length,
        clearance=options.clearance,
        cone=options.cone,
        drawing=options.drawing_limits,
        tolerances=dict(options.deviations),
        cones=cones,
        radii=radii,
        forces=options.static_forces or bool(wrench),
        wrench=wrench,
        limits=limits,
        encoders=encoders,
        round=(),
    )


def needed_functions(model: Model, claims: ProofClaims) -> NeededFunctions:
    """Return the functions of a machine that claims need.

    Raises:
        InputError: a parameter with a deviation changes masses, and forces are claimed.
    """
    loads = claims.forces or bool(claims.limits)
    if claims.forces:
        _require_fixed_loads(model, claims.tolerances)
    cones = dict(claims.cones)
    if claims.cone is not None:
        for rod in model.mechanism.rods:
            cones.setdefault(f"{rod.name}.start", claims.cone)
            cones.setdefault(f"{rod.name}.end", claims.cone)
    return NeededFunctions(
        tolerances=claims.tolerances,
        with_drawing=claims.drawing,
        cones=cones,
        clearance=claims.clearance > 0.0 or bool(claims.radii),
        radii=claims.radii,
        velocities=claims.serial > 0.0 or claims.constraint > 0.0,
        loads=loads,
        errors=bool(claims.limits),
        length=claims.length,
    )


def unknown_names_in(model: Model, claims: ProofClaims) -> list[str]:
    """Return names in claims that the machine does not have."""
    known_names = {
        "cones": set(cone_candidates(model)),
        "radii": {rod.name for rod in model.mechanism.rods},
        "limits": set(ERROR_DIRECTIONS),
        "encoders": {actuator.name for actuator in model.mechanism.actuators},
    }
    unknown = []
    for field, names in known_names.items():
        unknown += [name for name in getattr(claims, field) if name not in names]
    return unknown


def _require_fixed_loads(model: Model, tolerances: Mapping[str, float]) -> None:
    """Check that deviations do not change masses, inertias, springs or gravity.

    Raises:
        InputError: a deviation changes a mass, an inertia, a spring or gravity.
    """
    mechanism = model.mechanism
    expressions = tuple(parameter.expression for parameter in model.parameters)
    changing = sorted(leaves((*expressions, *mechanism.gravity)) & tolerances.keys())
    if changing:
        what = f"masses, springs or gravity depend on {', '.join(changing[:3])}"
        remedy = "omit these deviations, or certify without `static_forces`"
        raise InputError.of("deviations", what, remedy)


def error_candidates() -> tuple[Candidate, ...]:
    """Return the directions of errors of the tool with their units."""
    units = ("m",) * 3 + ("rad",) * 3
    return tuple(
        Candidate(name=name, unit=unit) for name, unit in zip(ERROR_DIRECTIONS, units, strict=True)
    )


def encoder_candidates(model: Model) -> tuple[Candidate, ...]:
    """Return the actuators with the units of their positions."""
    motors = motor_port(model.assembly, "position", "rad", "m")
    return tuple(
        Candidate(name=actuator.name, unit=unit)
        for actuator, unit in zip(model.mechanism.actuators, motors.units, strict=True)
    )


def _cones(model: Model, options: CertifyOptions, problems: Problems) -> dict[str, float]:
    """Return the largest half-angles of cones by the names of joints and ends of rods, rad."""
    candidates = [Candidate(name=name, unit="rad") for name in cone_candidates(model)]
    cones = amounts("cones", options.cones, candidates, problems)
    for name, angle in cones.items():
        if not 0.0 < angle < np.pi:
            problems.add("cones", f"{name} is {angle:g} rad", "give an angle between 0 and 180 deg")
    return cones


def _radii(model: Model, stated: Amounts | None, problems: Problems) -> dict[str, float]:
    """Return the radii of rods by name, m."""
    if stated != FROM_FILE:
        candidates = [Candidate(name=rod.name, unit="m") for rod in model.mechanism.rods]
        return amounts("rod_radii", stated, candidates, problems)
    radii = {rod.name: _file_radius(model, rod) for rod in model.mechanism.rods}
    missing = [name for name, radius in radii.items() if radius == 0.0]
    if missing:
        what = f"the file gives no cross section for {', '.join(missing[:3])}"
        problems.add("rod_radii", what, "give radii by name, such as '*=25mm'")
    return radii


def _file_radius(model: Model, rod: Rod) -> float:
    """Return the largest distance of a rod's surface from its axis, m; 0 without cross sections."""
    radius = 0.0
    for beam in (rod.lower_beam, rod.upper_beam):
        if beam is None:
            continue
        for section in beam.sections:
            extent = section.properties.extent
            if extent is not None:
                half_sides = [model.mechanism.value(side) for side in extent]
                distance = max(half_sides) if section.is_round else math.hypot(*half_sides)
                radius = max(radius, distance)
    return radius


def _wrench_ranges(ranges: Mapping[str, tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Return the ranges of the six components of a wrench; empty without one.

    Raises:
        InputError: a name, a unit, or the order of the ends is wrong.
    """
    if not ranges:
        return ()
    units = dict(zip(TOOL_PORT.columns, TOOL_PORT.units, strict=True))
    stated = by_column(units, ranges, "wrenches")
    for name, (low, high) in stated.items():
        if low > high:
            what = f"{name} is empty ({low:g} to {high:g})"
            raise InputError.of("wrenches", what, "give the lower end first")
    return tuple(stated.get(name, (0.0, 0.0)) for name in TOOL_PORT.columns)
