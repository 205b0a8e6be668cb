"""Machine files of any size: chains of four-bars, stacks of hexapods and 3-RRR tables, walking legs."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

from tauloop.formats import machine_path

HEAD = """format: tauloop-machine/1
name: {name}
provenance: {{status: chosen, source: a benchmark}}
gravity: [0, 0, -9.81 m/s^2]
"""
BAR = (
    "{mass: 0.2 kg, center: [0.05 m, 0, 0],"
    " inertia: {xx: 1e-5 kg m^2, yy: 2e-4 kg m^2, zz: 2e-4 kg m^2}}"
)
PLATE = "{mass: 2 kg, inertia: {xx: 0.01 kg m^2, yy: 0.01 kg m^2, zz: 0.02 kg m^2}}"


def four_bars(count: int) -> str:
    """Return a chain of four-bars, each on the coupler of the one before, with a motor each."""
    bodies: list[str] = []
    joints: list[str] = []
    for i in range(1, count + 1):
        base = "base" if i == 1 else f"coupler{i - 1}"
        bodies += [f"  {name}{i}: {BAR}" for name in ("crank", "coupler", "rocker")]
        joints += [
            f"  a{i}: {{type: revolute, axis: z, parent: {base}, child: crank{i},"
            " reference: 60 deg}",
            f"  b{i}: {{type: revolute, axis: z, parent: {{on: crank{i}, at: [0.1 m, 0, 0]}},"
            f" child: coupler{i}, reference: -31.555829187136734 deg}}",
            f"  c{i}: {{type: revolute, axis: z, parent: {{on: {base}, at: [0.3 m, 0, 0]}},"
            f" child: rocker{i}, reference: 90.99000071150375 deg}}",
            f"  d{i}: {{type: revolute, axis: z, parent: {{on: coupler{i}, at: [0.28 m, 0, 0]}},"
            f" child: {{on: rocker{i}, at: [0.22 m, 0, 0]}},"
            " reference: 62.545829898640484 deg}",
        ]
    motors = [f"  motor{i}: {{on: a{i}, force: 5 N m}}" for i in range(1, count + 1)]
    independent = ", ".join(f"a{i}" for i in range(1, count + 1))
    return _text(f"four_bars_{count}", bodies, joints, motors, f"coupler{count}", independent)


def hexapods(count: int) -> str:
    """Return hexapods on hexapods, with telescopic legs of variable length as motors."""
    bodies: list[str] = []
    joints: list[str] = []
    rods: list[str] = []
    motors: list[str] = []
    for i in range(1, count + 1):
        base = "base" if i == 1 else f"plate{i - 1}"
        bodies.append(f"  plate{i}: {PLATE}")
        joints.append(
            f"  move{i}: {{type: free, parent: {base}, child: plate{i},"
            " reference: {at: [0, 0, 0.2 m]}}"
        )
        for k in range(6):
            low = 60 * ((k + 1) // 2 * 2) + (10 if k % 2 == 0 else -10)
            high = 60 * (k // 2 * 2 + 1) + (-10 if k % 2 == 0 else 10)
            leg = f"leg{i}_{k + 1}"
            rods.append(
                f"  {leg}: {{from: {{on: {base}, at: [0.2 m * cos({low} deg), 0.2 m *"
                f" sin({low} deg), 0]}}, to: {{on: plate{i}, at: [0.15 m * cos({high} deg),"
                f" 0.15 m * sin({high} deg), 0]}}, telescopic: {{reference: 0.24 m}},"
                " model: massless}"
            )
            motors.append(f"  motor{i}_{k + 1}: {{on: {leg}, force: 50 N}}")
    independent = ", ".join(
        f"move{i}.{axis}" for i in range(1, count + 1) for axis in ("x", "y", "z", "wx", "wy", "wz")
    )
    return _text(
        f"hexapods_{count}", bodies, joints, motors, f"plate{count}", independent, rods=rods
    )


def planar_tables(count: int) -> str:
    """Return 3-RRR tables on 3-RRR tables, all in one plane."""
    bodies: list[str] = []
    joints: list[str] = []
    motors: list[str] = []
    for i in range(1, count + 1):
        base = "base" if i == 1 else f"plate{i - 1}"
        bodies.append(f"  plate{i}: {PLATE}")
        for k in range(3):
            leg, angle = f"{i}_{k + 1}", 90 + 120 * k
            bodies += [f"  crank{leg}: {BAR}", f"  link{leg}: {BAR}"]
            joints += [
                f"  a{leg}: {{type: revolute, axis: z, parent: {{on: {base}, at: [0.25 m *"
                f" cos({angle} deg), 0.25 m * sin({angle} deg), 0], turn: [{{z: {angle} deg}}]}},"
                f" child: crank{leg}, reference: 115 deg}}",
                f"  b{leg}: {{type: revolute, axis: z, parent: {{on: crank{leg}, at: [0.18 m, 0,"
                f" 0]}}, child: link{leg}, reference: 110 deg}}",
                f"  c{leg}: {{type: revolute, axis: z, parent: {{on: link{leg}, at: [0.2 m, 0,"
                f" 0]}}, child: {{on: plate{i}, at: [0.08 m * cos({angle} deg), 0.08 m *"
                f" sin({angle} deg), 0], turn: [{{z: {angle} deg}}]}}, reference: 135 deg}}",
            ]
            motors.append(f"  motor{leg}: {{on: a{leg}, force: 5 N m}}")
    independent = ", ".join(f"a{i}_{k}" for i in range(1, count + 1) for k in (1, 2, 3))
    return _text(f"tables_{count}", bodies, joints, motors, f"plate{count}", independent)


def jansen_legs(count: int) -> str:
    """Return Jansen's legs on one crankshaft, which all loops share."""
    head, rest = machine_path("jansen").read_text(encoding="utf-8").split("\nbodies:\n")
    bodies, rest = rest.split("\njoints:\n")
    joints, _ = rest.split("\nactuators:\n")
    shaft = re.findall(r"^  (?:crank|turn):.*$", f"{bodies}\n{joints}", re.MULTILINE)
    bodies = re.sub(r"^  crank:.*\n", "", bodies, flags=re.MULTILINE)
    joints = re.sub(r"^  turn:.*\n", "", joints, flags=re.MULTILINE)
    joints = re.sub(
        r"\{on: crank, (.*?)\}, (.*?), reference: (.*?)\}",
        r"{on: sector, \1}, \2, reference: \3 - phase}",
        joints,
    )
    phases = ", ".join(f"{120.0 * (i + 0.5) / count - 60.0:.3f} deg" for i in range(count))
    return "\n".join(
        [
            head,
            "bodies:",
            shaft[0],
            "joints:",
            shaft[1],
            "legs:",
            "  - name: leg",
            f"    repeat: {count}",
            f"    each: {{phase: [{phases}]}}",
            "    frames: {sector: {on: crank, turn: [{z: phase}]}}",
            "    bodies:",
            textwrap.indent(bodies, "    "),
            "    joints:",
            textwrap.indent(joints, "    "),
            "actuators: {motor: {on: turn, force: 1 N m}}",
            "platform: {body: leg1.lower, independent: [turn]}",
            "",
        ]
    )


def _text(
    name: str,
    bodies: list[str],
    joints: list[str],
    motors: list[str],
    platform: str,
    independent: str,
    rods: list[str] | None = None,
) -> str:
    lines = [HEAD.format(name=name), "bodies:", *bodies, "joints:", *joints]
    if rods:
        lines += ["rods:", *rods]
    lines += ["actuators:", *motors, "platform:", f"  body: {platform}"]
    return "\n".join([*lines, f"  independent: [{independent}]", ""])


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Machines of one kind and any size.

    Attributes:
        text: function of the number of stages that returns the machine file.
        loops: loops of a stage: the number of joints that close one.
    """

    text: Callable[[int], str]
    loops: int


FAMILIES = {
    "four-bars in a chain": Family(text=four_bars, loops=1),
    "3-RRR tables in a stack": Family(text=planar_tables, loops=2),
    "hexapods in a stack": Family(text=hexapods, loops=5),
    "Jansen's legs on one shaft": Family(text=jansen_legs, loops=3),
}
