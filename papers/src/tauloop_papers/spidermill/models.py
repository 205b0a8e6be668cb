"""Plant and reduced model of one machine: their forces on the same motion, and the errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tauloop.formats import load
from tauloop.identification import ProductColumns, RegressionData, StandardColumns, driven_at
from tauloop.kinematics import ReductionOptions, reduce_model
from tauloop.mechanism import Mechanism, moved
from tauloop.model import Model
from tauloop.motion import FourierSeries
from tauloop_papers.spidermill.settings import ReducedSettings


def displaced_ends(
    mechanism: Mechanism, offsets: Mapping[str, tuple[float, float, float]]
) -> Mechanism:
    """Return the machine with displaced far ends of some rods (m, in the frame of their body)."""
    rods = []
    for rod in mechanism.rods:
        if rod.name in offsets:
            rod = replace(
                rod, end=replace(rod.end, position=moved(rod.end.position, offsets[rod.name]))
            )
        rods.append(rod)
    return replace(mechanism, rods=tuple(rods))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trajectory:
    """A motion of the active joints and of the platform.

    Attributes:
        name: purpose of the motion.
        time: times (N,), s.
        joints: angles (N, n), rad.
        position, velocity, acceleration: motion of the platform (N, n), SI.
    """

    name: str
    time: np.ndarray
    joints: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray


class Reduced:
    """The reduced model: actuated joints for motions, products of parameters for forces."""

    def __init__(self, settings: ReducedSettings) -> None:
        """Reduce the machine, without the offset of the plant."""
        options = ReductionOptions(
            massless_rods=settings.massless, share_parameters=True, seed=settings.seed
        )
        self.settings = settings
        self.mechanism = reduce_model(load(settings.machine), options).mechanism
        self.model = Model(self.mechanism)
        self.driven_mechanism = driven_at(self.mechanism, settings.joints)
        self._driven = Model(self.driven_mechanism)
        standard = StandardColumns(self.mechanism)
        self.products = ProductColumns.of(standard, settings.products)
        self.other = ProductColumns.of(standard, settings.products, settings.placed)

    @property
    def lengths(self) -> dict[str, float]:
        """Nominal lengths by name, m."""
        return {name: self.mechanism.parameters.values[name] for name in self.settings.lengths}

    def trajectory(self, name: str, series: FourierSeries) -> Trajectory:
        """Return one period of a series of the active joints, with the platform's motion.

        Raises:
            PoseError: the motion leaves the workspace.
        """
        count = int(np.ceil(series.period * self.settings.frequency - 1e-9))
        motion = series.sample(np.arange(count) / self.settings.frequency)
        functions = self._driven.actuators
        start = functions.track(motion.position).q
        state = functions.kinematics(
            motion.position, motion.velocity, motion.acceleration, start=start
        )
        places = list(self._driven.platform.ports.v)
        return Trajectory(
            name=name,
            time=motion.time,
            joints=motion.position,
            position=self._driven.platform_position(state.q),
            velocity=np.asarray(state.v)[:, places],
            acceleration=np.asarray(state.a)[:, places],
        )

    def columns(self, trajectory: Trajectory, columns: ProductColumns) -> np.ndarray:
        """Return the regressor (N, n_u, n_products) of a trajectory in the products."""
        Y = self.model.platform.regressor(
            trajectory.position, trajectory.velocity, trajectory.acceleration
        )
        return np.asarray(Y @ columns.shares(self.model, Y.reshape(-1, Y.shape[-1]), self.lengths))

    def data(self, trajectory: Trajectory, forces: np.ndarray) -> RegressionData:
        """Return regression data in the products."""
        outputs, units = self.model.output_ports("actuators")
        return RegressionData(
            regressor=self.columns(trajectory, self.products),
            forces=forces,
            parameters=tuple(quantity.name for quantity in self.products.quantities),
            parameter_units=tuple(quantity.unit for quantity in self.products.quantities),
            outputs=outputs,
            output_units=units,
            time=trajectory.time,
        )


class Plant:
    """The unreduced machine, with the effects that the reduced model neglects."""

    def __init__(self, settings: ReducedSettings, size: float | None = None) -> None:
        """Build the plant.

        Args:
            settings: settings of the experiment.
            size: size of every offset, m; as in the settings by default.
        """
        offsets = settings.contact_offset
        if size is not None:
            offsets = {name: _scaled(offset, size) for name, offset in offsets.items()}
        self.model = Model(displaced_ends(load(settings.machine), offsets))
        self._extra = np.array(
            [parameter.element in settings.massless for parameter in self.model.parameters]
        )

    def forces(self, trajectory: Trajectory, factors: tuple[float, ...] = (1.0,)) -> np.ndarray:
        """Return actuator forces (n_factors, N, n_u) for scaled masses of the neglected rods.

        Raises:
            PoseError: the trajectory is out of reach.
        """
        Y = self.model.platform.regressor(
            trajectory.position, trajectory.velocity, trajectory.acceleration
        )
        pi = self.model.pi
        return np.array([Y @ np.where(self._extra, factor * pi, pi) for factor in factors])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit:
    """Forces of plant and model on one trajectory, and their differences, by actuator.

    Attributes:
        trajectory: the motion.
        measured: forces of the plant (N, n_u), N.
        before, after: forces of the model with the parameters of the full machine, and with the
            estimated ones.
        counted: whether samples (N, n_u) count in relative errors.
    """

    trajectory: Trajectory
    measured: np.ndarray
    before: np.ndarray
    after: np.ndarray
    counted: np.ndarray

    def relative(self, predicted: np.ndarray) -> np.ndarray:
        """Return mean relative errors (n_u,) of the samples that count."""
        return mean_relative(self.measured, predicted, self.counted)

    def rms(self, predicted: np.ndarray) -> np.ndarray:
        """Return root mean square errors (n_u,) of all samples, divided by the largest force."""
        error = np.sqrt(((predicted - self.measured) ** 2).mean(axis=0))
        return np.asarray(error / np.abs(self.measured).max(axis=0))

    @property
    def cuts(self) -> np.ndarray:
        """Reduction of the mean relative errors by the estimation, as shares (n_u,)."""
        return np.asarray(1.0 - self.relative(self.after) / self.relative(self.before))


def counted(forces: np.ndarray, least: float) -> np.ndarray:
    """Return which samples (N, n_u) have a force of at least a share of the largest."""
    return np.asarray(np.abs(forces) >= least * np.abs(forces).max(axis=-2, keepdims=True))


def mean_relative(measured: np.ndarray, predicted: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return means (..., n_u) of |predicted - measured| / |measured| over the counted samples."""
    shares = np.abs(predicted - measured) / np.where(counts, np.abs(measured), np.inf)
    return np.asarray(shares.sum(axis=-2) / counts.sum(axis=-2))


def _scaled(offset: tuple[float, float, float], size: float) -> tuple[float, float, float]:
    x, y, z = (size * np.array(offset) / np.linalg.norm(offset)).tolist()
    return x, y, z
