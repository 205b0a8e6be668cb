"""Table 1's pattern over the actuators: plants that can have it, and a bound for any plant.

For the first motion both models are compared with the same measured forces y. For each actuator,
with the printed errors e as shares of max|y| (eq. 3),

    |e_3dof - e_5dof| max|y| <= rms(f_3dof - f_5dof),    max|y| >= rms(f) / (1 + e),

for any y: similar models have similar errors, on a rigid machine or any other. If the models differ
enough, plants are searched: rigid bodies with errors of masses, mass centers, radii of gyration and
mounting, alone or with friction that increases with the load and a flexible frame.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.formats import load
from tauloop.identification import consistency_cones
from tauloop.mechanism import moved
from tauloop.model import Model
from tauloop_papers.gantry_tau.fits import multisine, three_freedoms
from tauloop_papers.gantry_tau.plant import built_parameters, hand_errors
from tauloop_papers.gantry_tau.results import Nearest, Pattern, Shown
from tauloop_papers.gantry_tau.settings import Held, TwoRunSettings

#: Results of the search (`pattern_search`).
FOUND = Path(__file__).with_name("found_plants.json")
#: Rows of Table 1 without identification, in order.
ROWS = ("3-DOF", "5-DOF I", "5-DOF II")
GRAVITY = 9.81


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilySettings:
    """The searched family of plants; SI.

    Attributes:
        lengths: lengths of the held actuators on the first motion.
        motions: strokes of the carts (m) and highest frequency (Hz) of eq. 2.
        structures: plants by their effects beyond rigid bodies, with the bounds of the friction's
            share of the load and of the frame's mobility, 1/kg.
        sizes: bounds of the errors of hand measurement and mounting, in standard deviations.
        rows: numbers of `ROWS` that must be met.
        mounting: standard deviation of the machine's rotation about its x and y axes, rad.
        starts: number of random starts; larger sizes also start from the result of the next smaller
            one.
        evaluations: maximum number of evaluations of a start.
        samples: samples of one period.
        seed: seed of motions and starts.
    """

    lengths: tuple[tuple[float, ...], ...]
    motions: tuple[tuple[float, float], ...]
    structures: Mapping[str, tuple[float, float]]
    sizes: tuple[float, ...]
    rows: tuple[int, ...]
    mounting: float
    starts: int
    evaluations: int
    samples: int
    seed: int


FAMILY = FamilySettings(
    lengths=((1.235, 1.27), (1.2, 1.3), (1.3, 1.2)),
    motions=((0.08, 1.2), (0.2, 1.2), (0.2, 2.0)),
    structures={"rigid": (0.0, 0.0), "with friction and frame": (0.1, 0.01)},
    sizes=(1.0, 2.0, 3.0),
    rows=(2, 3),
    mounting=np.pi / 180,
    starts=4,
    evaluations=40,
    samples=200,
    seed=3,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sampled:
    """One periodic motion of N samples.

    Attributes:
        upright: transposed regressor (n_pi, 3 N).
        along_x, along_y: its change by 1 m/s^2 of gravity along x and y.
        described: forces of the machine as described (N, 3), N.
        simple: forces of the 3-dof model with links of fixed length alone, and with all links
            (N, 3), N.
        friction: friction proportional to the load as described, per share of it (N, 3), N.
        time: times (N,), s.
        velocity, acceleration: motion of the carts (N, 3), m/s and m/s^2.
        rubbing: friction of the carts without load (N, 3), N.
        shaking: acceleration of a frame of 1 kg by the force on it, transposed (N, N), 1/kg.
    """

    upright: np.ndarray
    along_x: np.ndarray
    along_y: np.ndarray
    described: np.ndarray
    simple: tuple[np.ndarray, np.ndarray]
    friction: np.ndarray
    time: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    rubbing: np.ndarray
    shaking: np.ndarray


class Machines:
    """Machines and models that all families share.

    Attributes:
        model: the machine as described, without the parts that remain on the actuators.
        leaning: the same with 1 m/s^2 more of gravity along x, and along y.
        simple: the 3-dof model.
        fixed, whole: its parameters with links of fixed length alone, and with all links.
        bodies: cones of the model's parameters.
    """

    def __init__(self, settings: TwoRunSettings) -> None:
        """Assemble the machines."""
        mechanism = load(settings.machine).with_values(dict.fromkeys(settings.removed, 0.0))
        self.model = Model(mechanism)
        self.leaning = [
            Model(replace(mechanism, gravity=moved(mechanism.gravity, axis)))
            for axis in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
        ]
        self.simple, self.whole = three_freedoms(settings)
        self.fixed = np.array(self.simple.pi)
        self.bodies = consistency_cones(self.model.parameters)


class Family:
    """The plants for one pair of held lengths and one kind of motion.

    A plant is a vector of unknowns u: errors of hand measurement in standard deviations, two
    rotations of the mounting in standard deviations, the share of the telescopic links' masses in
    the 3-dof model (0: none, as for links of fixed length), the friction's share of the load, and
    the frame's mobility in 1/kg.
    """

    def __init__(
        self,
        machines: Machines,
        settings: TwoRunSettings,
        family: FamilySettings,
        held: Held,
        motion: tuple[float, float],
    ) -> None:
        """Sample both motions: of rows 1 and 2 with held lengths, and of row 3 with moving ones."""
        strokes, highest = motion
        multisines = replace(settings.multisine, strokes={"track?.motor": strokes}, highest=highest)
        self.machines = machines
        self.settings = replace(settings, multisine=multisines)
        self.family = family
        rng = np.random.default_rng(family.seed)
        self._motions = [self._sampled(lengths, rng) for lengths in (held, None)]

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return hand_errors(self.machines.model.pi, self.machines.bodies) + 5

    def bounds(self, structure: str, size: float) -> tuple[np.ndarray, np.ndarray]:
        """Return smallest and largest unknowns (n,) of a structure."""
        high = np.full(self.size, size)
        high[-3:] = 1.0, *self.family.structures[structure]
        low = -high
        low[-3:] = 0.0
        return low, high

    def rows(self, u: np.ndarray) -> np.ndarray:
        """Return rows of Table 1 (..., 3, 3), %, by model and actuator, for plants u (..., n)."""
        rows = []
        for k, sampled in enumerate(self._motions):
            y = self._forces(sampled, u)
            models = [sampled.described]
            if k == 0:
                models.insert(0, self._simple_forces(u[..., -3]))
            rows += [100.0 * _rms(y - f) / np.abs(y).max(axis=-2) for f in models]
        return np.stack(rows, axis=-2)

    def curves(self, u: np.ndarray) -> tuple[Shown, ...]:
        """Return the forces over time of one plant u (n,), as in the paper's Figures 3 to 5."""
        first, moving = self._motions
        pairs = (
            (first, self._simple_forces(u[-3])),
            (first, first.described),
            (moving, moving.described),
        )
        shown = []
        for name, (motion, model) in zip(ROWS, pairs, strict=True):
            own = self._own(motion, u)
            shown.append(
                Shown(
                    row=name,
                    time=motion.time,
                    connected=own + self._forces(motion, u),
                    own=own,
                    model=model,
                    velocity=motion.velocity,
                )
            )
        return tuple(shown)

    def _own(self, motion: _Sampled, u: np.ndarray) -> np.ndarray:
        """Return the forces of the disconnected run of a plant (N, 3), N."""
        mass = self.settings.drive.mass
        shaken = -u[-1] * mass * (motion.acceleration.sum(axis=-1) @ motion.shaking)
        return np.asarray(mass * (motion.acceleration + shaken[:, None]) + motion.rubbing)

    def bound(self, share: float) -> np.ndarray:
        """Return bounds of the difference between errors of 3-DOF and 5-DOF I (3,), points.

        Args:
            share: share of the telescopic links' masses in the 3-dof model.
        """
        stated = self.settings.stated.rows
        forces = self._simple_forces(np.array(share)), self._motions[0].described
        least = [
            _rms(f) / (1.0 + np.array(stated[name]) / 100.0)
            for f, name in zip(forces, ROWS[:2], strict=True)
        ]
        return np.asarray(100.0 * _rms(forces[0] - forces[1]) / np.maximum(*least))

    def _simple_forces(self, share: np.ndarray) -> np.ndarray:
        """Return forces of the 3-dof model on the first motion (..., N, 3), N, by mass share."""
        fixed, whole = self._motions[0].simple
        return np.asarray(fixed + share[..., None, None] * (whole - fixed))

    def _forces(self, motion: _Sampled, u: np.ndarray) -> np.ndarray:
        """Return the two-run forces of plants (..., N, 3), N, without noise."""
        machines = self.machines
        pi = built_parameters(machines.model.pi, machines.bodies, self.settings.built, u[..., :-5])
        turned = GRAVITY * self.family.mounting * u[..., None, None, -5:-3]
        upright, along_x, along_y = (
            (pi @ part).reshape(*pi.shape[:-1], -1, 3)
            for part in (motion.upright, motion.along_x, motion.along_y)
        )
        y = upright + turned[..., 0] * along_x + turned[..., 1] * along_y
        # an accelerating frame acts as changed gravity on the structure and the moved
        # mass
        mass, mobility = self.settings.drive.mass, u[..., -1, None]
        by_structure = -mobility * (y.sum(axis=-1) @ motion.shaking)
        whole = by_structure - mobility * mass * (motion.acceleration.sum(axis=-1) @ motion.shaking)
        vibration = mass * by_structure[..., None] - whole[..., None] * along_x
        return np.asarray(y + u[..., -2, None, None] * motion.friction + vibration)

    def _sampled(self, held: Held, rng: np.random.Generator) -> _Sampled:
        settings, family, machines = self.settings, self.family, self.machines
        model = machines.model
        names = [actuator.name for actuator in model.mechanism.actuators]
        kept = [names.index(name) for name in settings.measured]
        period = settings.recording.period
        motion = multisine(settings, model, held, rng)
        at = motion.sample(np.arange(family.samples) * period / family.samples)
        start = model.forward_kinematics(at.position).q
        regressor, along_x, along_y = (
            machine.actuators.regressor(at.position, at.velocity, at.acceleration, start=start)[
                :, kept
            ]
            for machine in (model, *machines.leaning)
        )
        carts = at.position[:, kept], at.velocity[:, kept], at.acceleration[:, kept]
        columns = machines.simple.actuators.regressor(*carts)
        force = regressor @ model.pi
        # friction for the load as described, on a finer grid than that of the forces
        fine, law = 10, replace(settings.drive.bristles, load_share=1.0)
        rate = fine * family.samples / period
        velocity = motion.sample(np.arange(fine * family.samples) / rate).velocity[:, kept]
        unloaded = law.force(velocity, rate)
        loaded = law.force(velocity, rate, np.repeat(force, fine, axis=0)) - unloaded
        mode, each = replace(settings.frame, mass=1.0), np.eye(family.samples)
        return _Sampled(
            upright=_transposed(regressor),
            along_x=_transposed(along_x - regressor),
            along_y=_transposed(along_y - regressor),
            described=force,
            simple=(columns @ machines.fixed, columns @ machines.whole),
            friction=loaded[::fine],
            time=np.asarray(at.time),
            velocity=at.velocity[:, kept],
            rubbing=unloaded[::fine],
            acceleration=at.acceleration[:, kept],
            shaking=np.stack([mode.acceleration(push, family.samples / period) for push in each]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of the search.

    Attributes:
        structure, held, motion, rows: as in the settings of the family.
    """

    structure: str
    held: tuple[float, ...]
    motion: tuple[float, float]
    rows: int

    @property
    def key(self) -> str:
        """Key of the cell in the file."""
        lengths = " ".join(f"{x:g}" for x in self.held)
        motion = " ".join(f"{x:g}" for x in self.motion)
        return f"{self.structure}; {self.rows} rows; held {lengths}; motion {motion}"


def cells(family: FamilySettings = FAMILY) -> Iterator[Cell]:
    """Yield all cells, grouped by family of motions."""
    for motion in family.motions:
        for held in family.lengths:
            for structure in family.structures:
                for rows in family.rows:
                    yield Cell(structure=structure, held=held, motion=motion, rows=rows)


def read(path: Path = FOUND) -> dict[str, list[dict[str, Any]]]:
    """Return the results by the cells' keys."""
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def printed_rows(settings: TwoRunSettings, count: int) -> np.ndarray:
    """Return the first rows of Table 1 (count, n), %."""
    return np.array([settings.stated.rows[name] for name in ROWS[:count]])


def pattern(settings: TwoRunSettings, family: FamilySettings = FAMILY) -> Pattern:
    """Return Table 1's pattern: the bounds, and the plants of the search, evaluated again."""
    machines, results = Machines(settings), read()
    families = {
        (held, motion): Family(machines, settings, family, held, motion)
        for held in family.lengths
        for motion in family.motions
    }
    small = family.motions[0]
    bounds = {
        f"held {held[0]:g} and {held[1]:g} m, {name}": families[held, small].bound(share)
        for held, share, name in (
            (family.lengths[0], 1.0, "all links' masses"),
            (family.lengths[1], 1.0, "all links' masses"),
            (family.lengths[0], 0.0, "masses of fixed links"),
        )
    }
    nearest: list[Nearest] = []
    curves: dict[int, tuple[Shown, ...]] = {}
    for structure in family.structures:
        for rows in family.rows:
            for k, size in enumerate(family.sizes):
                alike = [
                    cell
                    for cell in cells(family)
                    if (cell.structure, cell.rows) == (structure, rows)
                ]
                misses = [results[cell.key][k]["worst"] for cell in alike]
                cell = alike[int(np.argmin(misses))]
                u = np.array(results[cell.key][k]["u"])
                plants = families[cell.held, cell.motion]
                table = plants.rows(u)
                curves[len(nearest)] = plants.curves(u)
                nearest.append(
                    Nearest(
                        structure=structure,
                        rows=rows,
                        size=size,
                        held=cell.held,
                        motion=cell.motion,
                        share=float(u[-3]),
                        friction=float(u[-2]),
                        mobility=float(u[-1]),
                        table=table,
                        worst=float(np.abs(table[:rows] - printed_rows(settings, rows)).max()),
                    )
                )
    needed = np.abs(np.subtract(*printed_rows(settings, 2)))
    return Pattern(
        needed=needed, bounds=bounds, nearest=tuple(nearest), curves=curves[len(nearest) - 1]
    )


def _rms(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.sqrt(np.mean(values**2, axis=-2)))


def _transposed(regressor: np.ndarray) -> np.ndarray:
    """Return a regressor (N, 3, n_pi) as (n_pi, 3 N)."""
    return np.ascontiguousarray(regressor.reshape(-1, regressor.shape[-1]).T)
