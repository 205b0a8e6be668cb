"""Wrong machine files: each mistake with its line, key path and remedy, all at once, and never another exception."""

# ruff: noqa: E501 (one mistake, one line: a table is easier to read)

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from core_machines import CORE_MACHINES
from hypothesis import example, given, settings, strategies as st

from tauloop.common.errors import DescriptionError, Problem
from tauloop.formats import load, loads, machine_path
from tauloop.mechanism.description.cursor import MAX_PROBLEMS
from tauloop.mechanism.description.yaml_nodes import MAX_BYTES, MAX_DEPTH
from tauloop.mechanism.expression import chain, ordered

BENCH = """\
format: tauloop-machine/1
name: bench
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
parameters:
  radius: 0.2 m
  reach: 2 * radius
  tilt: 30 deg
  weight: 1.5 kg
frames:
  side: {on: base, at: [radius, 0, 0], turn: [{z: tilt}]}
bodies:
  plate:
    mass: weight
    center: [0, 0, 10 mm]
    inertia: {xx: 0.02 kg m^2, yy: 0.02 kg m^2, zz: 0.03 kg m^2}
  arm: {mass: 0.4 kg}
  yoke: massless
joints:
  pin:
    type: revolute
    axis: y
    parent: side
    child: arm
    reference: 20 deg
    limits: [-40 deg, 90 deg]
    friction: {viscous: 0.1 N m s/rad, coulomb: 0.2 N m}
  fork:
    type: universal
    axes: [x, y]
    parent: {on: arm, at: [reach, 0, 0]}
    child: yoke
    reference: {first: 10 deg}
rods:
  bar:
    from: {on: arm, at: [reach, 0, 0]}
    to: plate
    length: 0.5 m
    model: slender
    link: {mass: 0.1 kg, center: 0.25 m, inertia: 2e-3 kg m^2}
  jack:
    from: base
    to: {on: plate, at: [0, radius, 0]}
    telescopic: {reference: 0.6 m, limits: [0.4 m, 0.8 m]}
    model: full
    lower: {mass: 1 kg, center: [0, 0, 0.2 m], inertia: {xx: 0.1 kg m^2, yy: 0.1 kg m^2, zz: 0.01 kg m^2}}
    first_axis: [1, 0, 0]
    spin: universal
actuators:
  motor: {on: pin, ratio: 20, inertia: 1e-4 kg m^2, force: 5 N m}
  ram: {on: jack}
legs:
  - name: leg
    repeat: 2
    each: {phi: [0 deg, 180 deg]}
    bodies:
      foot: {mass: 1 kg}
    joints:
      hinge: {type: revolute, axis: z, parent: {on: base, turn: [{z: phi}]}, child: foot}
platform:
  body: plate
  motion: free
  independent: [x, y, z, wx, wy, wz]
  reference: {at: [0, 0, 0.5 m]}
  limits: {z: [0.3 m, 0.7 m]}
"""


def problems(text: str) -> tuple[Problem, ...]:
    with pytest.raises(DescriptionError) as raised:
        loads(text, "bench.yaml")
    for problem in raised.value.problems:
        assert problem.file == "bench.yaml"
        assert problem.what
        assert problem.remedy, problem
    return raised.value.problems


def changed(*edits: tuple[str, str]) -> tuple[str, int]:
    """The bench with some text replaced, and the line of the first replacement."""
    text = BENCH
    for old, new in edits:
        assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times"
        text = text.replace(old, new)
    old, new = edits[0]
    return text, text[: text.index(new)].count("\n") + 1 + len(new) - len(new.lstrip("\n"))


def test_the_bench_itself_is_right() -> None:
    assert loads(BENCH).name == "bench"


# One mistake each: what is replaced, by what, and the problem's key path, text and remedy. The
# problem is in the line of the replacement unless a number of lines further down is added.
MISTAKES: list[tuple[str, str, str, str, str] | tuple[str, str, str, str, str, int]] = [
    # keys and words
    ("tauloop-machine/1", "tauloop-machine/9", "format", "'tauloop-machine/9' is not a valid value", "tauloop-machine/1"),
    ("name: bench", "name: my bench", "name", "'my bench' is not a valid name", "letters, digits and _"),
    ("gravity:", "gravitation:", "gravitation", "unknown key in a machine", "did you mean gravity?"),
    ("status: chosen", "status: guessed", "provenance.status", "'guessed' is not a valid value", "one of given, inferred"),
    ("mass: weight", "mas: weight", "bodies.plate.mas", "unknown key in a body", "did you mean mass?"),
    ("    mass: weight\n", "", "bodies.plate.mass", "this key of a body is missing", "add mass", -0),
    ("  arm: {mass: 0.4 kg}", "  arm:", "bodies.arm", "the value after the colon is missing", "remove the key"),
    ("  arm: {mass: 0.4 kg}", "  arm: [0.4 kg]", "bodies.arm", "this is a list", "massless or a body"),
    ("yoke: massless", "yoke: weightless", "bodies.yoke", "'weightless' is not a valid value", "massless"),
    ("type: universal", "type: cardan", "joints.fork.type", "'cardan' is not a valid value", "did you mean universal?"),
    ("type: universal", "type: knuckle", "joints.fork.type", "'knuckle' is not a valid value", "fixed, revolute, prismatic"),
    ("model: slender", "model: slim", "rods.bar.model", "'slim' is not a valid value", "slender, full, massless"),
    ("motion: free", "motion: freely", "platform.motion", "'freely' is not a valid value", "did you mean free?"),
    ("  arm: {mass", "  2arm: {mass", "bodies.2arm", "'2arm' is not a valid name", "start with a letter"),
    ("  tilt: 30 deg", "  tilt: 30 deg\n  sin: 2", "parameters.sin", "sin is reserved: it is a function", "another", 1),
    ("  tilt: 30 deg", "  tilt: 30 deg\n  i: 2", "parameters.i", "i is reserved: it is the number", "another", 1),
    ("yoke: massless", "base: massless", "bodies.base", "base is reserved", "another name"),
    ("yoke: massless", "motor: massless", "actuators.motor", "motor is already used by a body in line 18", "another", 32),
    ("yoke: massless", "leg1: massless", "legs[0]", "leg1 is already used by a body in line 18", "another", 35),
    ("source: test}", "source: a, b}", "provenance.b", "unknown key", "did you mean|known keys are"),
    ("source: test}", "source: a, as b}", "provenance.as b", "unknown key", "a comma ends a text"),
    # values and units
    ("radius: 0.2 m\n", "radius: 0.2\n", "frames.side.at[0]", "'radius' has no unit where a length (m)", "line 6", 5),
    ("  tilt: 30 deg", "  tilt: 30", "frames.side.turn[0].z", "'tilt' has no unit where an angle", "line 8", 3),
    ("length: 0.5 m", "length: 0.5", "rods.bar.length", "'0.5' has no unit where a length (m)", "such as 0.5 m"),
    ("length: 0.5 m", "length: 0.5 kg", "rods.bar.length", "'0.5 kg' is a mass (kg) where a length (m)", "check"),
    ("length: 0.5 m", "length: 0.5 cubit", "rods.bar.length", "unknown unit 'cubit'", "known units are"),
    ("length: 0.5 m", "length: 0 m", "rods.bar.length", "must be positive, got 0 m", "correct"),
    ("length: 0.5 m", "length: radius - 0.5 m", "rods.bar.length", "must be positive, got -0.3 m", "correct"),
    ("length: 0.5 m", "length: 1e999 m", "rods.bar.length", "the number 1e999 is too large", "exponent"),
    ("length: 0.5 m", "length: .inf", "rods.bar.length", ".inf is not a finite number", "finite"),
    ("length: 0.5 m", "length: nan", "rods.bar.length", "nan is not a finite number", "finite"),
    ("length: 0.5 m", "length: 1 m / (tilt - tilt)", "rods.bar.length", "no real value", "division by zero"),
    ("length: 0.5 m", "length: sqrt(-radius * radius)", "rods.bar.length", "no real value", "root of a negative"),
    ("length: 0.5 m", "length: reech", "rods.bar.length", "unknown name reech", "did you mean reach?"),
    ("length: 0.5 m", "length: arm.length", "rods.bar.length", "unknown name arm.length", "define it"),
    ("length: 0.5 m", "length: exp(2) * 1 m", "rods.bar.length", "unknown function exp", "functions are"),
    ("length: 0.5 m", "length: ().__class__", "rods.bar.length", "unexpected '.' at character 3", "use only numbers"),
    ("length: 0.5 m", "length: i * 1 m", "rods.bar.length", "i is the number of a repeated leg", "write a number"),
    ("length: 0.5 m", "length: radius + weight", "rods.bar.length", "adds a length (m) to a mass", "weight is a mass"),
    ("reference: 20 deg", "reference: 20", "joints.pin.reference", "'20' has no unit where an angle", "such as 20 deg"),
    ("reference: 20 deg", "reference: 20 mm", "joints.pin.reference", "is a length (m) where an angle", "check"),
    ("0.1 N m s/rad", "0.1 N s/m", "joints.pin.friction.viscous", "a viscous coefficient (N s/m)", "check the unit"),
    ("coulomb: 0.2 N m", "coulomb: -0.2 N m", "joints.pin.friction.coulomb", "must be not negative, got -0.2", "sign"),
    ("limits: [-40 deg, 90 deg]", "speed: 10 Hz", "joints.pin.speed", "has no angular unit", "rpm"),
    ("radius: 0.2 m\n", "radius: {value: 0.2 m, bounds: [2 m, 1 m]}\n", "parameters.radius.bounds", "2 m is not below", "swap"),
    ("radius: 0.2 m\n", "radius: {value: 0.2 m, bounds: [1 m, 2 m]}\n", "parameters.radius.bounds", "do not contain the value 0.2 m", "widen"),
    ("radius: 0.2 m\n", "radius: {value: 0.2 m, bounds: [0, 1 kg]}\n", "parameters.radius.bounds[1]", "a mass (kg)", "check"),
    ("reach: 2 * radius", "reach: {value: 2 * radius, bounds: [0 m, 1 m]}", "parameters.reach.bounds", "cannot have bounds", "literals"),
    ("reference: 20 deg", "reference: {value: 20 deg, bounds: [0 deg, 1 rad]}", "joints.pin.reference.bounds", "is not a parameter", "remove"),
    ("force: 5 N m", "force: {value: 5 N m, bounds: [1 N m, 9 N m]}", "actuators.motor.force.bounds", "is not a parameter", "remove"),
    ("reach: 2 * radius", "reach: 2 * reach", "parameters.reach", "in a cycle: reach -> reach", "does not depend on the others"),
    ("reach: 2 * radius", "reach: 2 * a\n  a: b\n  b: 3 * reach", "parameters.reach", "reach -> a -> b -> reach", "not depend on the others"),
    ("radius: 0.2 m\n", "radius: [0.2 m]\n", "parameters.radius", "this is a list", "a value with its unit"),
    ("gravity: [0, 0, -9.81 m/s^2]", "gravity: [0, -9.81 m/s^2]", "gravity", "has 2 items, not 3", "a list of 3"),
    ("gravity: [0, 0, -9.81 m/s^2]", "gravity: -9.81 m/s^2", "gravity", "this is the text", "a list of 3"),
    ("-9.81 m/s^2", "-9.81 m/s", "gravity[2]", "a speed (m/s) where an acceleration", "check"),
    # frames and placements
    ("side: {on: base", "side: {on: sides", "frames.side.on", "no body or frame named sides", "did you mean side?"),
    ("side: {on: base", "side: {on: side", "frames.side", "cycle: side -> side", "on a body"),
    ("{on: base, at: [radius", "{on: pin, at: [radius", "frames.side.on", "pin is a joint, not a body or frame", "name a"),
    ("turn: [{z: tilt}]", "turn: [{z: tilt, x: tilt}]", "frames.side.turn[0]", "exactly one axis, not 2", "one item for each"),
    ("turn: [{z: tilt}]", "turn: [{}]", "frames.side.turn[0]", "exactly one axis, not 0", "one item for each"),
    ("turn: [{z: tilt}]", "turn: {z: tilt}", "frames.side.turn", "this is a mapping", "a list"),
    # bodies
    ("arm: {mass: 0.4 kg}", "arm: {mass: 0 kg, center: [0, 0, 1 mm]}", "bodies.arm.mass", "must be positive, got 0 kg", "write `massless`"),
    ("arm: {mass: 0.4 kg}", "arm: {mass: -1 kg}", "bodies.arm.mass", "must be positive, got -1 kg", "correct"),
    ("xx: 0.02 kg m^2", "xx: 0.005 kg m^2", "bodies.plate.inertia", "0.005, 0.02 and 0.03 kg m^2: the largest exceeds the sum of the others, 0.025", "flat body"),
    ("xx: 0.02 kg m^2", "xx: -0.02 kg m^2", "bodies.plate.inertia", "-0.02, 0.02 and 0.03 kg m^2: none may be negative", "signs"),
    ("zz: 0.03 kg m^2}\n  arm", "zz: 0.03 kg m^2, xy: 0.05 kg m^2}\n  arm", "bodies.plate.inertia", "are -0.03, 0.03 and 0.07", "signs"),
    ("center: [0, 0, 10 mm]", "center: [0, 0, 200 mm]\n    about: origin", "bodies.plate.inertia", "none may be negative", "point the inertia refers to", 2),
    ("center: [0, 0, 10 mm]", "first_moment: [0, 0, 1 kg m]", "bodies.plate.first_moment", "the inertia about the origin is required", "about: origin"),
    ("center: [0, 0, 10 mm]", "center: [0, 0, 0]\n    first_moment: [0, 0, 0]\n    about: origin", "bodies.plate.first_moment", "the same value twice", "keep one", 1),
    ("center: [0, 0, 10 mm]", "center: [0, 0, 1e200 m]", "bodies.plate", "mass, mass center or moments of inertia are too large", "exponents", -1),
    ("center: [0, 0, 10 mm]", "center: 10 mm", "bodies.plate.center", "this is the text '10 mm'", "a list of 3"),
    ("arm: {mass: 0.4 kg}", "arm: {mass: 0.4 kg, about: origin}", "bodies.arm.about", "given without `inertia`", "remove `about`"),
    # joints
    ("axis: y", "axis: yy", "joints.pin.axis", "'yy' is not a valid value", "did you mean y"),
    ("axis: y", "axis: [0, 0, 0]", "joints.pin.axis", "zero or not finite", "not all zero"),
    ("axis: y", "axis: [0, 1]", "joints.pin.axis", "has 2 items, not 3", "a list of 3"),
    ("    axis: y\n", "", "joints.pin.axis", "a revolute joint needs an axis", "add axis: z", 0),
    ("axes: [x, y]", "axis: x", "joints.fork.axis", "a universal joint has no axis", "use axes"),
    ("axes: [x, y]", "axes: [x, x]", "joints.fork.axes", "is 0 deg, not 90 deg", "two revolute joints"),
    ("axes: [x, y]", "axes: [x, [0.1, 1, 0]]", "joints.fork.axes", "is 84.29 deg, not 90 deg", "two revolute joints"),
    ("child: arm", "child: side", "joints.pin.child", "both frames are on base", "two different bodies"),
    ("child: arm", "child: arms", "joints.pin.child", "no body or frame named arms", "did you mean arm?"),
    ("reference: 20 deg", "reference: 100 deg", "joints.pin.limits", "start value 100 deg is outside the limits -40 deg to 90 deg", "widen", 1),
    ("limits: [-40 deg, 90 deg]", "limits: [90 deg, -40 deg]", "joints.pin.limits", "the lower end 90 deg is not below the upper end -40 deg", "swap"),
    ("limits: [-40 deg, 90 deg]", "limits: [90 deg]", "joints.pin.limits", "has 1 item, not 2", "a list of 2"),
    ("reference: {first: 10 deg}", "reference: 10 deg", "joints.fork.reference", "has 2 coordinates", "first, second"),
    ("reference: {first: 10 deg}", "reference: {third: 1 deg}", "joints.fork.reference.third", "unknown key in a joint reference", "known keys"),
    ("reference: {first: 10 deg}", "reference: {slide: 1 m}", "joints.fork.reference.slide", "a universal joint has no slide", "use first, second"),
    ("reference: {first: 10 deg}", "speed: 1 rad/s", "joints.fork.speed", "has several degrees of freedom", "freedoms: {first"),
    ("reference: {first: 10 deg}", "freedoms: {third: {speed: 1 rad/s}}", "joints.fork.freedoms.third", "has no degree of freedom third", "first, second"),
    ("reference: 20 deg", "reference: {first: 20 deg}", "joints.pin.reference", "has one coordinate", "single start value"),
    # rods
    ("    length: 0.5 m\n", "", "rods.bar.length", "neither `length` nor `telescopic`", "add `length`", -0),
    ("telescopic: {ref", "length: 1 m\n    telescopic: {ref", "rods.jack.length", "has both `length` and `telescopic`", "keep one"),
    ("to: {on: plate, at", "to: {on: base, at", "rods.jack.to", "both ends are on base", "two different bodies"),
    ("to: plate", "to: plato", "rods.bar.to", "no body or frame named plato", "did you mean plate?"),
    ("    link: {mass: 0.1 kg, center: 0.25 m, inertia: 2e-3 kg m^2}\n", "", "rods.bar.link", "inertia of a slender rod is missing", "model: massless", -0),
    ("    link: {mass: 0.1 kg,", "    lower: {mass: 0.1 kg,", "rods.bar.lower", "a fixed rod has no lower", "use link"),
    ("model: slender", "model: massless", "rods.bar.link", "a massless rod has no inertia", "change the model", 1),
    ("center: 0.25 m,", "", "rods.bar.link.center", "mass center of a slender link is missing", "distance along"),
    ("center: 0.25 m,", "center: [0, 0, 0.25 m],", "rods.bar.link.center", "on the line of the rod", "one distance"),
    ("inertia: 2e-3 kg m^2}", "inertia: -2e-3 kg m^2}", "rods.bar.link.inertia", "must be not negative", "sign"),
    ("inertia: 2e-3 kg m^2}", "inertia: {xx: 1 kg m^2}}", "rods.bar.link.inertia", "a single moment", "one value"),
    ("inertia: 2e-3 kg m^2}", "about: origin}", "rods.bar.link.about", "a slender link has no about", "`mass`, `center`"),
    ("center: [0, 0, 0.2 m],", "center: 0.2 m,", "rods.jack.lower.center", "three coordinates", "[x, y, z]"),
    ("    first_axis: [1, 0, 0]\n", "", "rods.jack.first_axis", "a full rod needs first_axis", "first_axis: [0, 0, 1]", -0),
    ("    spin: universal\n", "", "rods.jack.spin", "a full rod needs spin", "spin: universal", -0),
    ("model: slender", "model: slender\n    spin: none", "rods.bar.spin", "a slender rod has no spin", "model: full", 1),
    ("first_axis: [1, 0, 0]", "first_axis: [1 m, 0, 0]", "rods.jack.first_axis[0]", "a length (m) where a plain number", "check"),
    ("limits: [0.4 m, 0.8 m]", "limits: [-0.1 m, 0.8 m]", "rods.jack.telescopic.limits", "shortest length must be positive, got -0.1 m", "raise"),
    ("limits: [0.4 m, 0.8 m]", "limits: [0.7 m, 0.8 m]", "rods.jack.telescopic.limits", "start value 0.6 m is outside the limits", "widen"),
    # actuators
    ("{on: pin,", "{on: pins,", "actuators.motor.on", "no coordinate named pins", "did you mean pin?"),
    ("{on: pin,", "{on: {pin: 2},", "actuators.motor.on", "this is a mapping", r"several go under drives: {NAME: value"),
    ("{on: pin,", "{on: [pin],", "actuators.motor.on", "this is a list", r"several go under drives: {NAME: value"),
    ("ram: {on: jack}", "ram: {drives: jack}", "actuators.ram.drives", "this is the text 'jack'", r"drives: {NAME: value, ...}; or write one name under on"),
    ("{on: pin,", "{on: fork,", "actuators.motor.on", "fork is a universal joint, which has several degrees of freedom", "fork.first, fork.second"),
    ("{on: pin,", "{on: fork.third,", "actuators.motor.on", "no coordinate named fork.third", "did you mean fork.first"),
    ("{on: pin,", "{on: bar,", "actuators.motor.on", "no coordinate named bar", "define it"),
    ("{on: pin,", "{on: platform.wx,", "actuators.motor.on", "an angular velocity, which has no coordinate", "revolute"),
    ("{on: pin,", "{on: jack,", "actuators.motor.inertia", "a moment of inertia (kg m^2) where a mass", "check"),
    ("ram: {on: jack}", "ram: {on: pin}", "actuators.ram", "pin is already driven by motor", "couple them"),
    ("ram: {on: jack}", "ram: {drives: {}}", "actuators.ram.drives", "the mapping is empty", "write a mapping from"),
    ("ram: {on: jack}", "ram: {force: 5 N}", "actuators.ram.on", "drives nothing", "add `on` or `drives`"),
    ("ram: {on: jack}", "ram: {on: jack, drives: {pin: 2}}", "actuators.ram.drives", "both `on` and `drives`", "keep one"),
    ("ram: {on: jack}", "ram: {drives: {pin: 2, jack: 3}}", "actuators.ram.drives", "rotary for one coordinate, linear for another", "units"),
    ("ram: {on: jack}", "ram: {drives: {fork.first: 2}, ratio: 2}", "actuators.ram.ratio", "a ratio for each coordinate", "remove `ratio`"),
    ("child: foot}", "child: foot}\n    actuators: {m: {drives: {hinge: 1, leg1.hinge: 2}}}", "legs[0].actuators.m.drives.leg1.hinge", "appears twice in this actuator", "once", 1),
    ("ratio: 20", "ratio: 0", "actuators.motor.ratio", "must not be zero", "correct"),
    ("ratio: 20", "ratio: 20 N", "actuators.motor.ratio", "a force (N), so ratio times pin is neither", "rad/m"),
    ("force: 5 N m", "force: 0 N m", "actuators.motor.force", "must be positive", "correct"),
    # legs
    ("repeat: 2", "repeat: 0", "legs[0].repeat", "'0' is out of range", "from 1 to 64"),
    ("repeat: 2", "repeat: 65", "legs[0].repeat", "'65' is out of range", "from 1 to 64"),
    ("repeat: 2", "repeat: two", "legs[0].repeat", "'two' is out of range", "whole number"),
    ("repeat: 2", "repeat: 3", "legs[0].each.phi", "2 values for 3 legs", "change repeat", 1),
    ("each: {phi: [0 deg, 180 deg]}", "each: {phi: [0 deg]}", "legs[0].each.phi", "1 value for 2 legs", "one value for each"),
    ("each: {phi: [0 deg, 180 deg]}", "each: {phi: [0, 1]}", "legs[0].joints.hinge.parent.turn[0].z", "'phi' has no unit", "line 55", 4),
    ("[{z: phi}]", "[{z: phy}]", "legs[0].joints.hinge.parent.turn[0].z", "unknown name phy", "did you mean phi"),
    ("    each: {phi: ", "    parameters: {phi: 1 deg}\n    each: {phi: ", "legs[0].parameters.phi", "already defined in line 56", "keep one"),
    # platform and the whole
    ("body: plate", "body: plat", "platform.body", "no body named plat", "did you mean plate?"),
    ("body: plate", "body: pin", "platform.body", "pin is a joint, not a body", "name a body"),
    ("body: plate", "body: base", "platform.body", "the immovable base", "a body that moves"),
    ("z, wx, wy, wz]", "z, wx, wy, w]", "platform.independent[5]", "a free joint has no degree of freedom w", "did you mean"),
    ("z, wx, wy, wz]", "z, wx, wy, x]", "platform.independent[5]", "x is named twice", "once"),
    ("z, wx, wy, wz]", "z, angle]", "platform.independent[3]", "a free joint has no degree of freedom angle", "its degrees of freedom are x, y"),
    ("  motion: free\n", "", "bodies.plate", "no chain of joints leads from base to plate", "platform.motion", -49),
    ("limits: {z: [0.3 m, 0.7 m]}", "limits: {wz: [0 deg, 1 deg]}", "platform.limits.wz", "which has no coordinate", "limit other"),
    ("limits: {z: [0.3 m, 0.7 m]}", "limits: {z: [0.6 m, 0.7 m]}", "platform.limits.z", "start value 0.5 m is outside the limits", "widen"),
    ("limits: {z: [0.3 m, 0.7 m]}", "limits: {h: [0.6 m, 0.7 m]}", "platform.limits.h", "a free joint has no degree of freedom h", "its degrees of freedom"),
    ("yoke: massless", "yoke: massless\n  spare: {mass: 1 kg}", "bodies.spare", "no chain of joints", "give it a joint", 1),
    ("  pin:\n", "  platform:\n", "platform.motion", "adds a joint named platform, but a joint has this name", "rename", 42),
]  # fmt: skip


@pytest.mark.parametrize(
    "mistake", MISTAKES, ids=lambda m: m[2] + ": " + m[1].strip().split("\n")[0][:40]
)
def test_a_mistake_is_told_in_its_place(mistake: tuple[str, str, str, str, str, int]) -> None:
    old, new, where, what, remedy, *further = mistake
    text, line = changed((old, new))
    refusals = [
        problem for problem in problems(text) if problem.where == where and what in problem.what
    ]
    assert len(refusals) == 1, "\n".join(map(str, problems(text)))
    assert any(part in refusals[0].remedy for part in remedy.split("|")), refusals[0]
    if new:
        assert refusals[0].line == line + (further[0] if further else 0), refusals[0]
    else:  # a key that is missing belongs to the mapping that lacks it
        assert refusals[0].line is not None
        assert 0 < refusals[0].line <= text.count("\n")


def test_all_mistakes_are_told_at_once_in_the_order_of_lines() -> None:
    text, _ = changed(
        ("name: bench", "name: 1"),
        ("tilt: 30 deg", "tilt: 30 dag"),
        ("mass: weight", "mass: wait"),
        ("axis: y", "axis: q"),
        ("length: 0.5 m", "length: -1 m"),
        ("repeat: 2", "repeat: 3"),
        ("body: plate", "body: plat"),
    )
    refusals = problems(text)
    assert [problem.where for problem in refusals] == [
        "name",
        "parameters.tilt",
        "bodies.plate.mass",
        "joints.pin.axis",
        "rods.bar.length",
        "legs[0].each.phi",
        "platform.body",
    ]
    lines = [problem.line or 0 for problem in refusals]
    assert lines == sorted(lines)


def test_a_mistake_in_a_leg_is_told_once_for_all_legs() -> None:
    text, _ = changed(("parent: {on: base, turn: [{z: phi}]}", "parent: foot"))
    assert [problem.where for problem in problems(text)].count("legs[0].joints.hinge.child") == 1


def test_very_many_mistakes_are_counted() -> None:
    wrong = "".join(f"  p{i}: 1 parsec\n" for i in range(MAX_PROBLEMS + 50))
    text, _ = changed(("  tilt: 30 deg\n", "  tilt: 30 deg\n" + wrong))
    refusals = problems(text)
    assert len(refusals) == MAX_PROBLEMS + 1
    assert refusals[-1].what == "and 50 more problems"


# --- hostile and broken YAML
# ------------------------------------------------------------------------------------------

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "what", "line"),
    [
        ("", "the file is empty", None),
        ("# only a remark\n", "the file is empty", None),
        ("---\n", "the file is empty", None),
        ("just text", "this is the text 'just text'", 1),
        ("- a\n- b\n", "this is a list", 1),
        (BOMB, "the anchor &a is not allowed", 1),
        ("a: *b\n", "the alias *b is not allowed", 1),
        (
            "a: !!python/object/apply:os.system ['ls']\n",
            "the tag tag:yaml.org,2002:python/object/apply:os.system",
            1,
        ),
        ("a: !!float 1\n", "the tag tag:yaml.org,2002:float", 1),
        ("a: 1\nb: 2\na: 3\n", "the key is repeated; it is already in line 1", 3),
        ("? [a, b]\n: 1\n", "a key is a list or a mapping", 1),
        ("a: 1\n---\nb: 2\n", "a second document", 2),
        ("a: [1, 2\nb: 3\n", "this is not YAML", 2),
        ("a: b: c\n", "this is not YAML", 1),
        ("a:\n\t- b\n", "this is not YAML", 2),
        ('a: "open\n', "this is not YAML", 2),
        ("a: \x07\n", "this is not YAML text", None),
        ("%YAML 9.9\n---\na: 1\n", "this is not YAML", 1),
        ("[" * (MAX_DEPTH + 1), f"nested more than {MAX_DEPTH} levels deep", 1),
        (
            "\n".join(" " * i + "a:" for i in range(MAX_DEPTH + 2)),
            f"nested more than {MAX_DEPTH} levels deep",
            None,
        ),
        ("<<: {name: bench}\n", "unknown key in a machine", 1),
    ],
    ids=lambda value: repr(value)[:30] if isinstance(value, str) else "",
)
def test_text_that_is_no_description(text: str, what: str, line: int | None) -> None:
    refusals = [problem for problem in problems(text) if what in problem.what]
    assert refusals, "\n".join(map(str, problems(text)))
    if line is not None:
        assert refusals[0].line == line


def test_the_remedy_for_a_list_of_bodies_is_a_mapping_from_names() -> None:
    (problem,) = (problem for problem in problems("bodies: [arm]\n") if problem.where == "bodies")
    assert problem.remedy == "write a mapping from names"


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"name: \x00\x01\x02", "this is a binary file: byte 7 is zero"),
        ("name: bench\nsource: Müller".encode("latin-1"), "byte 22 is not UTF-8 text"),
        (b"\x89PNG\r\n\x1a\n\x00", "this is a binary file"),
        (b"a: 1\n" * (MAX_BYTES // 5 + 1), "the file is larger than 2 MB"),
        (b"", "the file is empty"),
    ],
    ids=["binary", "latin-1", "picture", "large", "empty"],
)
def test_files_that_are_no_text(tmp_path: Path, data: bytes, what: str) -> None:
    path = tmp_path / "machine.yaml"
    path.write_bytes(data)
    with pytest.raises(DescriptionError) as raised:
        load(path)
    (problem,) = raised.value.problems
    assert what in problem.what
    assert problem.remedy
    assert problem.file == str(path)


def test_text_that_is_too_long() -> None:
    assert "larger than 2 MB" in problems("#" * (MAX_BYTES + 1))[0].what


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match="there is no such file"):
        load(tmp_path / "missing.yaml")
    with pytest.raises(DescriptionError, match="this is a folder"):
        load(tmp_path)


def test_names_of_machines_that_do_not_exist() -> None:
    with pytest.raises(DescriptionError, match="did you mean delta") as raised:
        load("dleta")
    assert "./dleta" in raised.value.problems[0].remedy
    with pytest.raises(DescriptionError, match=r"there are agile_eye, bennett"):
        machine_path("../secret")


# --- descriptions that would grow without end
# -------------------------------------------------------------------------


def test_doubling_parameters_are_refused() -> None:
    doubling = "".join(f"  d{i}: d{i - 1} + d{i - 1}\n" for i in range(1, 64))
    text, _ = changed(("  tilt: 30 deg\n", "  tilt: 30 deg\n  d0: 1 m\n" + doubling))
    (problem,) = problems(text)
    assert "too large" in problem.what


def test_long_chains_of_parameters_are_refused_not_followed() -> None:
    links = "".join(f"  c{i}: c{i + 1} + 1 mm\n" for i in range(3000))
    text, _ = changed(("  tilt: 30 deg\n", f"  tilt: 30 deg\n{links}  c3000: 1 m\n"))
    (problem,) = problems(text)
    assert "too large" in problem.what


def test_long_circles_are_told_in_short() -> None:
    links = "".join(f"  c{i}: c{(i + 1) % 3000} + 1 mm\n" for i in range(3000))
    text, _ = changed(("  tilt: 30 deg\n", "  tilt: 30 deg\n" + links))
    (problem,) = problems(text)
    assert "c0 -> c1 -> c2" in problem.what
    assert len(problem.what) < 300


def test_long_chains_of_turned_frames_are_refused() -> None:
    frames = "".join(
        f"  f{i}: {{on: f{i - 1}, at: [radius, 0, 0], turn: [{{z: tilt}}, {{x: tilt}}]}}\n"
        for i in range(1, 40)
    )
    text, _ = changed(
        (
            "bodies:\n  plate:",
            f"  f0: {{on: base, at: [radius, 0, 0], turn: [{{z: tilt}}]}}\n{frames}bodies:\n  plate:",
        )
    )
    assert any("too many nested rotations" in problem.what for problem in problems(text))


@given(
    graph=st.dictionaries(
        st.sampled_from("abcdefgh"),
        st.lists(st.sampled_from("abcdefghxyz"), max_size=4),
        max_size=8,
    )
)
def test_order_of_things_that_need_each_other(graph: dict[str, list[str]]) -> None:
    circles: list[list[str]] = []
    order = ordered(graph, circles.append)
    assert sorted(order) == sorted(graph)
    for circle in circles:
        assert circle[0] == circle[-1]
        assert all(need in graph[name] for name, need in pairwise(circle))
    if not circles:
        place = {name: i for i, name in enumerate(order)}
        assert all(
            place[need] < place[name] for name in graph for need in graph[name] if need in graph
        )


def test_chain_of_names() -> None:
    assert chain(["a", "b", "a"]) == "a -> b -> a"
    assert "... 8 more ..." in chain([f"n{i}" for i in range(20)])


# --- anything at all
# --------------------------------------------------------------------------------------------------

SHIPPED = [machine_path(name).read_text(encoding="utf-8") for name in CORE_MACHINES]
WORDS = sorted(
    {
        word
        for text in [BENCH, *SHIPPED]
        for word in re.findall(r"[A-Za-z_.0-9]+|[^\sA-Za-z0-9]", text)
    }
)
ODD = [
    "0",
    "-1",
    "1e999",
    "1e308",
    "1e-300",
    ".nan",
    "[1, 2]",
    "{a: 1}",
    "",
    "null",
    "*x",
    "&x",
    "!!int",
    '"',
    "\t",
    "\n",
]


@settings(max_examples=150)
@given(
    which=st.integers(0, len(SHIPPED)),
    edits=st.lists(
        st.tuples(
            st.sampled_from(["word", "drop", "double", "cut"]),
            st.integers(0, 10**6),
            st.sampled_from(WORDS + ODD),
        ),
        min_size=1,
        max_size=4,
    ),
)
@example(which=0, edits=[("word", 40, "1e308")])
def test_no_text_brings_anything_but_a_mechanism_or_its_problems(
    which: int, edits: list[tuple[str, int, str]]
) -> None:
    text = [BENCH, *SHIPPED][which]
    for how, place, word in edits:
        if how == "word":
            parts = re.split(r"([A-Za-z_.0-9]+|[^\sA-Za-z0-9])", text)
            parts[2 * (place % max(1, len(parts) // 2)) + (len(parts) > 1)] = word
            text = "".join(parts)
            continue
        lines = text.split("\n")
        i = place % len(lines)
        if how == "cut":
            lines[i] = lines[i][: place % (len(lines[i]) + 1)]
        else:
            lines[i : i + 1] = [] if how == "drop" else [lines[i]] * 2
        text = "\n".join(lines)
    try:
        mechanism = loads(text)
    except DescriptionError as error:
        problems = error.problems
    else:
        assert all(
            abs(mechanism.value(component)) < float("inf") for component in mechanism.gravity
        )
        return
    assert problems
    assert all(problem.what and problem.remedy for problem in problems)
