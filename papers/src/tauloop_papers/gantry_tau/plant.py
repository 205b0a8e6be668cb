"""The machine as built, recorded with and without structure, with effects that models neglect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np
import xarray as xr

from tauloop.identification import Cone, consistency_cones
from tauloop.logs import Sensors, measure
from tauloop.mechanism import Mechanism, moved
from tauloop.model import Model
from tauloop.motion import FourierSeries, Multisine, SampledMotion
from tauloop_papers.gantry_tau.settings import HandErrors, TwoRunSettings


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parts:
    """Components of the forces of a connected run at the measured actuators (N, n), for one period.

    Attributes:
        structure: forces of the structure alone on a rigid frame.
        vibration: forces due to the frame's acceleration.
        own: forces of the actuator: inertia, friction and hysteresis under load.
        others: forces of structure and vibration at the other actuators (N, m).
    """

    structure: np.ndarray
    vibration: np.ndarray
    own: np.ndarray
    others: np.ndarray


class Plant:
    """The machine as built.

    Attributes:
        geometry: errors of independent parameters, SI.
        pi: dynamic parameters of the structure as built.
        masses: masses of its bodies and links, kg.
    """

    def __init__(self, settings: TwoRunSettings, model: Model, rng: np.random.Generator) -> None:
        """Draw the errors of hand measurement, and assemble the machine with them.

        Args:
            settings: settings of the experiment.
            model: the machine as described, without removed parts.
            rng: generator of the errors.
        """
        self.settings = settings
        nominal = model.mechanism
        self.geometry: Mapping[str, float] = {
            parameter.name: float(rng.normal(0.0, deviation))
            for parameter in nominal.parameters
            for pattern, deviation in settings.built.geometry.items()
            if fnmatchcase(parameter.name, pattern)
        }
        bodies = consistency_cones(model.parameters)
        self.pi = built_parameters(
            model.pi, bodies, settings.built, rng.normal(size=hand_errors(model.pi, bodies))
        )
        self.masses: Mapping[str, float] = {
            body.element: body.mass(self.pi) for body in bodies if body.mass(self.pi) > 0.0
        }
        built = nominal.with_values(
            {name: nominal.parameters[name].value + error for name, error in self.geometry.items()}
        )
        self._still = Model(built)
        self._pulled = Model(_pulled(built, settings.frame.direction))
        names = tuple(actuator.name for actuator in nominal.actuators)
        self._names = names
        self._measured = [names.index(name) for name in settings.measured]
        self._others = [k for k in range(len(names)) if k not in self._measured]

    def parts(self, motion: SampledMotion) -> Parts:
        """Return the forces of one period of a periodic motion, with the structure connected."""
        rate, mass = self.settings.recording.rate, self.settings.drive.mass
        start = self._still.actuators.track(motion.position).q
        everything, pulled_everything = (
            model.actuators.regressor(
                motion.position, motion.velocity, motion.acceleration, start=start
            )
            @ self.pi
            for model in (self._still, self._pulled)
        )
        force, pulled = everything[:, self._measured], pulled_everything[:, self._measured]
        velocity, acceleration = (
            motion.velocity[:, self._measured],
            motion.acceleration[:, self._measured],
        )
        shaken = self._shaken(force, acceleration)
        return Parts(
            structure=force,
            # an accelerating frame acts as changed gravity on the structure and the moved
            # mass
            vibration=shaken[:, None] * (force - pulled + mass),
            own=mass * acceleration + self.settings.drive.bristles.force(velocity, rate, force),
            others=(everything + shaken[:, None] * (everything - pulled_everything))[
                :, self._others
            ],
        )

    def own(self, motion: SampledMotion) -> np.ndarray:
        """Return forces (N, n) of the measured actuators without the structure."""
        rate, mass = self.settings.recording.rate, self.settings.drive.mass
        velocity, acceleration = (
            motion.velocity[:, self._measured],
            motion.acceleration[:, self._measured],
        )
        shaken = self._shaken(np.zeros_like(acceleration), acceleration)
        return np.asarray(
            mass * (acceleration + shaken[:, None])
            + self.settings.drive.bristles.force(velocity, rate)
        )

    def leftover(self, motion: SampledMotion, parts: Parts) -> tuple[np.ndarray, np.ndarray]:
        """Return remainders (N, n) of friction under load and frame vibration after subtraction."""
        bristles, rate = self.settings.drive.bristles, self.settings.recording.rate
        velocity = motion.velocity[:, self._measured]
        unloaded = bristles.force(velocity, rate)
        shaken = (
            self.own(motion)
            - unloaded
            - self.settings.drive.mass * motion.acceleration[:, self._measured]
        )
        return bristles.force(velocity, rate, parts.structure) - unloaded, parts.vibration - shaken

    def _shaken(self, force: np.ndarray, acceleration: np.ndarray) -> np.ndarray:
        """Return the acceleration (N,) of the frame under the reaction of all moved parts."""
        reaction = -(force + self.settings.drive.mass * acceleration).sum(axis=1)
        return self.settings.frame.acceleration(reaction, self.settings.recording.rate)

    def record(
        self, motion: FourierSeries | Multisine, rng: np.random.Generator, longer: float = 1.0
    ) -> tuple[xr.Dataset, xr.Dataset, Parts]:
        """Return logs of the connected and the disconnected run, and the components of the former.

        Args:
            motion: motion of all actuators, with the period of the settings.
            rng: generator of noise.
            longer: factor of the number of periods.
        """
        recording = self.settings.recording
        time = np.arange(round(recording.rate * recording.period)) / recording.rate
        sampled = motion.sample(time)
        parts = self.parts(sampled)
        periods = round(longer * recording.periods)
        whole = parts.structure + parts.vibration + parts.own
        connected = self._log(self._names, sampled, whole, rng, periods)
        later = motion.sample(time - recording.late)
        return (
            connected,
            self._log(self.settings.measured, later, self.own(later), rng, periods),
            parts,
        )

    def _log(
        self,
        names: tuple[str, ...],
        motion: SampledMotion,
        force: np.ndarray,
        rng: np.random.Generator,
        periods: int,
    ) -> xr.Dataset:
        """Return the log of all periods of a run; only measured actuators have forces."""
        recording, n = self.settings.recording, len(names)
        chosen = [self._names.index(name) for name in names]
        whole = np.zeros((len(force), n))
        whole[:, [names.index(name) for name in self.settings.measured]] = force
        units = [self._still.actuators.ports.position.units[k] for k in chosen]
        log = measure(
            np.arange(len(force) * periods) / recording.rate,
            np.tile(motion.position[:, chosen], (periods, 1)),
            np.tile(whole, (periods, 1)),
            names,
            units,
            [self._still.output_ports("actuators")[1][k] for k in chosen],
            Sensors(
                resolution=np.full(n, recording.resolution), force_noise=np.full(n, recording.noise)
            ),
            rng,
        )
        return log.drop_vars(
            [f"force.{name}" for name in names if name not in self.settings.measured]
        )


def hand_errors(pi: np.ndarray, bodies: tuple[Cone, ...]) -> int:
    """Return the number of errors of hand measurement that `built_parameters` takes."""
    weighed = _weighed(pi, bodies)
    kinds = {body.matrix(pi).tobytes(): len(body.matrix(pi)) - 1 for body in weighed}
    return len(weighed) + sum(1 + 2 * size for size in kinds.values())


def built_parameters(
    pi: np.ndarray, bodies: tuple[Cone, ...], errors: HandErrors, z: np.ndarray, scale: float = 1.0
) -> np.ndarray:
    """Return dynamic parameters (..., n_pi) of bodies with errors of masses, centers and radii.

    Masses and radii of gyration are scaled and centers shifted, so that every body stays physically
    possible. Equal bodies share their errors, apart from the spread of their masses.

    Args:
        pi: nominal parameters (n_pi,).
        bodies: cones of the parameters; bodies without mass stay as they are.
        errors: standard deviations.
        z: errors in standard deviations (..., `hand_errors`): mass, center and radii of each kind
            of body, and the spread of each body.
        scale: factor of all errors.
    """
    values = np.broadcast_to(pi, (*z.shape[:-1], len(pi))).copy()
    kinds: dict[bytes, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
    left = scale * z
    for body in _weighed(pi, bodies):
        P = body.matrix(pi)
        kind, size = P.tobytes(), len(P) - 1
        if kind not in kinds:
            kinds[kind] = (
                errors.mass * left[..., 0],
                errors.center * left[..., 1 : 1 + size],
                errors.radius * left[..., 1 + size : 1 + 2 * size],
            )
            left = left[..., 1 + 2 * size :]
        heavier, shifted, wider = kinds[kind]
        center = P[:-1, -1] / P[-1, -1]
        about = P[:-1, :-1] / P[-1, -1] - np.outer(center, center)
        mass = P[-1, -1] * (1.0 + heavier) * (1.0 + errors.spread * left[..., 0])
        left = left[..., 1:]
        first, scaled = center + shifted, 1.0 + wider
        matrix = np.ones((*z.shape[:-1], size + 1, size + 1))
        matrix[..., :-1, :-1] = about * _outer(scaled) + _outer(first)
        matrix[..., :-1, -1] = matrix[..., -1, :-1] = first
        values[..., body.columns] = body.parameters(mass[..., None, None] * matrix)
    return values


def _outer(vector: np.ndarray) -> np.ndarray:
    return np.asarray(vector[..., :, None] * vector[..., None, :])


def _weighed(pi: np.ndarray, bodies: tuple[Cone, ...]) -> list[Cone]:
    """Return the bodies that were weighed by hand."""
    return [body for body in bodies if body.is_inertial and body.mass(pi) > 0.0]


def _pulled(mechanism: Mechanism, direction: tuple[float, ...]) -> Mechanism:
    """Return the machine with 1 m/s^2 more gravity along a direction."""
    return replace(mechanism, gravity=moved(mechanism.gravity, direction))
