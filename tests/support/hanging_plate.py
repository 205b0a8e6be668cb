"""A plate that hangs on fewer cables than it has freedoms: its pose from lengths and weight, by lines of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import root
from scipy.spatial.transform import Rotation

WEIGHT = np.array([0.0, 0.0, -9.81])


@dataclass(frozen=True)
class HangingPlate:
    """A rigid plate on k cables: anchors (k, 3) on the frame, points (k, 3) on the plate, mass and its centre (3,)."""

    anchors: np.ndarray
    points: np.ndarray
    mass: float = 4.0
    center: np.ndarray = field(default_factory=lambda: np.array([0.02, -0.01, -0.03]))

    def pose(
        self, lengths: np.ndarray, near: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Position (3,), rotation vector (3,) and tensions (k,) by lengths, forces and moments together."""

        def left(z: np.ndarray) -> np.ndarray:
            turn = Rotation.from_rotvec(z[3:6])
            arms = turn.apply(self.points)
            line = self.anchors - (z[:3] + arms)
            length = np.linalg.norm(line, axis=1)
            pull = z[6:, None] * line / length[:, None]
            weight = self.mass * WEIGHT
            moment = np.cross(arms, pull).sum(axis=0) + np.cross(turn.apply(self.center), weight)
            return np.concatenate(
                [length - lengths, (pull.sum(axis=0) + weight) / 40.0, moment / 10.0]
            )

        start = np.concatenate([near, np.zeros(3), np.full(len(lengths), 10.0)])
        solution = root(left, start, method="lm", tol=1e-13)
        if np.abs(solution.fun).max() > 1e-10:
            raise AssertionError(f"no equilibrium near {near}: {solution.message}")
        return solution.x[:3], solution.x[3:6], solution.x[6:]

    def hung(
        self, count: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Lengths (N, k), positions (N, 3), rotation vectors (N, 3) and tensions of hanging poses with taut cables."""
        rows: list[tuple[np.ndarray, ...]] = []
        while len(rows) < count:
            near = rng.uniform([-0.3, -0.3, 0.6], [0.3, 0.3, 1.3])
            lengths = np.linalg.norm(self.anchors - (near + self.points), axis=1) + rng.uniform(
                -0.02, 0.02
            )
            position, turn, tension = self.pose(lengths, near)
            if tension.min() > 1.0:
                rows.append((lengths, position, turn, tension))
        lengths, positions, turns, tensions = (
            np.array(column) for column in zip(*rows, strict=True)
        )
        return lengths, positions, turns, tensions

    def text(self) -> str:
        """Its machine file; the x of every point on the plate and of the mass centre are parameters."""

        def point(x: object, *others: float) -> str:
            return f"[{x}, " + ", ".join(f"{float(value)!r} m" for value in others) + "]"

        rows = [
            f"  cable{i}: {{from: {{on: base, at: {point(f'{float(a[0])!r} m', *a[1:])}}}, "
            f"to: {{on: plate, at: {point(f'point{i}', *b[1:])}}}, telescopic: {{reference: 1.5 m}}, model: massless, "
            f"tension: {{least: 1 N, greatest: 500 N}}}}"
            for i, (a, b) in enumerate(zip(self.anchors, self.points, strict=True), 1)
        ]
        parameters = [f"  point{i}: {float(b[0])!r} m" for i, b in enumerate(self.points, 1)]
        return "\n".join(
            [
                "format: tauloop-machine/1",
                "name: hanging_plate",
                "provenance: {status: chosen, source: a test}",
                "gravity: [0, 0, -9.81 m/s^2]",
                "parameters:",
                *parameters,
                f"  centre_x: {float(self.center[0])!r} m",
                "bodies:",
                f"  plate: {{mass: {self.mass!r} kg, center: {point('centre_x', *self.center[1:])}, "
                "inertia: {xx: 0.05 kg m^2, yy: 0.06 kg m^2, zz: 0.08 kg m^2}}",
                "rods:",
                *rows,
                "actuators:",
                *(f"  winch{i}: {{on: cable{i}}}" for i in range(1, len(rows) + 1)),
                "platform: {body: plate, motion: free, independent: [x, y, z, wx, wy, wz], "
                "reference: {at: [0 m, 0 m, 1 m]}}",
            ]
        )


@dataclass(frozen=True)
class PulleyPlate:
    """A rigid plate on k lines over swivelling pulleys that stretch.

    A line arrives at its anchor along the swivel axis, upwards (`up` 1) or downwards (-1), goes
    round the pulley and on to the plate in the plane of both.

    Attributes:
        anchors, points: where lines arrive (k, 3), and points (k, 3) on the plate.
        up: direction of every line at its anchor.
        radius: of all pulleys, m.
        stiffness: of every line, N/m; infinite for none that stretches.
        mass, centre: of the plate.
    """

    anchors: np.ndarray
    points: np.ndarray
    up: np.ndarray
    radius: float = 0.04
    stiffness: float = np.inf
    mass: float = 4.0
    center: np.ndarray = field(default_factory=lambda: np.array([0.02, -0.01, -0.03]))

    def lines(self, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lengths (k,) from the anchors to ends (k, 3), and directions (k, 3) in which lines arrive there.

        In the plane (u away from the swivel axis, w along it) with the origin in the pulley's
        centre, the line leaves the pulley after the angle a at r (-cos a, sin a), in the direction
        (sin a, cos a).
        """
        d, r = ends - self.anchors, self.radius
        aside = np.hypot(d[:, 0], d[:, 1])
        u, w = aside - r, d[:, 2] * self.up
        straight = np.sqrt(u**2 + w**2 - r**2)
        angle = np.arctan2(r * w + straight * u, straight * w - r * u) % (2.0 * np.pi)
        outward = d[:, :2] / aside[:, None]
        direction = np.column_stack([np.sin(angle)[:, None] * outward, np.cos(angle) * self.up])
        return straight + r * angle, direction

    def pose(
        self, winches: np.ndarray, near: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Position (3,), rotation vector (3,) and tensions (k,) at lengths (k,) that the winches have let out."""

        def left(z: np.ndarray) -> np.ndarray:
            turn = Rotation.from_rotvec(z[3:6])
            arms = turn.apply(self.points)
            lengths, direction = self.lines(z[:3] + arms)
            tension = self.mass * 3.0 * z[6:]
            pull = -tension[:, None] * direction
            weight = self.mass * WEIGHT
            moment = np.cross(arms, pull).sum(axis=0) + np.cross(turn.apply(self.center), weight)
            balance = np.concatenate([pull.sum(axis=0) + weight, 4.0 * moment]) / (10.0 * self.mass)
            return np.concatenate([lengths - winches - tension / self.stiffness, balance])

        start = np.concatenate([near, np.zeros(3), np.ones(len(winches))])
        solution = root(left, start, method="lm", tol=1e-13)
        if np.abs(solution.fun).max() > 1e-10:
            raise AssertionError(f"no equilibrium near {near}: {solution.message}")
        return solution.x[:3], solution.x[3:6], self.mass * 3.0 * solution.x[6:]

    def text(self) -> str:
        """Its machine file: pulleys are two joints without mass, and a drum lets out what is straight and wound."""
        stretches = np.isfinite(self.stiffness)
        bodies, joints, couplings, winches = [], [], [], []
        for i, (anchor, point, up) in enumerate(
            zip(self.anchors, self.points, self.up, strict=True), 1
        ):
            a, b = (
                ", ".join(f"{float(value)!r} m" for value in vector) for vector in (anchor, point)
            )
            ahead = np.array([0.0, 0.0, 1.0]) - anchor
            turn = "" if up > 0 else ", turn: [{x: 180 deg}]"
            bodies.append(
                f"  fork{i}: massless\n  exit{i}: massless\n  end{i}: massless\n  rope{i}: massless"
            )
            joints += [
                f"  drum{i}: {{type: prismatic, axis: z, parent: base, child: rope{i}, reference: 1.5 m}}",
                f"  swivel{i}: {{type: revolute, axis: z, parent: {{on: base, at: [{a}]{turn}}}, child: fork{i}, "
                f"reference: {float(np.arctan2(ahead[1] * up, ahead[0]))!r} rad}}",
                f"  wrap{i}: {{type: revolute, axis: y, parent: {{on: fork{i}, at: [radius, 0, 0]}}, child: exit{i}, "
                "reference: 130 deg}",
                f"  free{i}: {{type: prismatic, axis: z, parent: {{on: exit{i}, at: [-radius, 0, 0]}}, child: end{i}, "
                "reference: 1.4 m}",
            ]
            last = f"end{i}"
            if stretches:
                last = f"tip{i}"
                bodies.append(f"  {last}: massless")
                joints.append(
                    f"  stretch{i}: {{type: prismatic, axis: z, parent: end{i}, child: {last}, reference: 1 mm, "
                    "spring: {stiffness: stiffness, rest: 0 m}}"
                )
            joints.append(
                f"  eye{i}: {{type: spherical, parent: {last}, child: {{on: plate, at: [{b}]}}}}"
            )
            couplings.append(f"  line{i}: {{of: {{drum{i}: 1, free{i}: -1, wrap{i}: -radius}}}}")
            winches.append(f"  winch{i}: {{on: drum{i}}}")
        center = ", ".join(["centre_x", *(f"{float(value)!r} m" for value in self.center[1:])])
        stiffness = [f"  stiffness: {self.stiffness!r} N/m"] if stretches else []
        return "\n".join(
            [
                "format: tauloop-machine/1",
                "name: pulley_plate",
                "provenance: {status: chosen, source: a test}",
                "gravity: [0, 0, -9.81 m/s^2]",
                "parameters:",
                f"  radius: {self.radius!r} m",
                f"  centre_x: {float(self.center[0])!r} m",
                *stiffness,
                "bodies:",
                f"  plate: {{mass: {self.mass!r} kg, center: [{center}], "
                "inertia: {xx: 0.05 kg m^2, yy: 0.06 kg m^2, zz: 0.08 kg m^2}}",
                *bodies,
                "joints:",
                *joints,
                "couplings:",
                *couplings,
                "actuators:",
                *winches,
                "platform: {body: plate, motion: free, independent: [x, y, z, wx, wy, wz], "
                "reference: {at: [0 m, 0 m, 1 m]}}",
            ]
        )
