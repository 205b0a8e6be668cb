"""Static compliance by the procedure of ISO 9283: displacement of the tool under growing forces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import ClassVar

import numpy as np

from tauloop.common.datasets import channels, dimension, in_table, quantity_over
from tauloop.common.errors import InputError, PoseError, solving
from tauloop.common.files import csv_text
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, provenance
from tauloop.elasticity.frame.assembled import AssembledStructure, assemble
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.frame.deformed import deformed_structure
from tauloop.elasticity.frame.preload import DeadLoad, preload_stiffness
from tauloop.elasticity.frame.statics import gravity_load
from tauloop.elasticity.machine.poses import (
    PoseInput,
    gravity_vector,
    machine_coordinates,
    require_elastic_data,
)
from tauloop.elasticity.machine.structure import (
    MachineStructure,
    StructureOptions,
    machine_structure,
)
from tauloop.mechanism.description.units import FORCE, quantity
from tauloop.mechanism.model import omission_diagnostics
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled

#: Directions of the forces, in the axes of the base.
LOAD_DIRECTIONS = ("+x", "-x", "+y", "-y", "+z", "-z")
#: Unit vectors (6, 3) of these directions.
_UNIT_VECTORS = np.stack([np.eye(3), -np.eye(3)], axis=1).reshape(6, 3)
#: Fractions of the rated load at which the displacement is calculated.
FRACTIONS = np.arange(1, 11) / 10.0
#: Largest displacement, as a fraction of the machine's size, for which second-order equations are
#: accurate.
MAX_DISPLACEMENT = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticComplianceOptions(Options):
    """Options of the beam theory.

    Attributes:
        shear: include shear deformation of beams (Timoshenko).

    Examples:
        >>> import tauloop as tl
        >>> tl.StaticComplianceOptions(shear=True).shear
        True
    """

    shear: bool = option(False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticCompliance(Result):
    """Displacement of the tool under 10 % to 100 % of a rated load in 6 directions.

    Attributes:
        model: the machine.
        options: options of the beam theory.
        platform: (n,) position of the platform.
        tool: (3,) tool center point, m.
        directions: names of the directions.
        load: (10,) forces, N.
        displacement: (6, 10, 3) displacement of the tool center point under each force, m, relative
            to its position under weight alone.
        notes: assumptions about this machine.
    """

    quantity_order: ClassVar[tuple[str, ...]] = ("direction", "load", "compliance", "displacement")
    model: Model = field(metadata=json_keys(machine="mechanism.name"))
    options: StaticComplianceOptions = field(metadata=OMITTED)
    platform: np.ndarray
    tool: np.ndarray = field(metadata=json_keys("tool_m"))
    directions: tuple[str, ...] = field(metadata=dimension("direction"))
    load: np.ndarray = field(metadata=json_keys("load_N") | dimension("load", unit="N"))
    displacement: np.ndarray = field(
        metadata=json_keys("displacement_m")
        | channels("direction", "load", names=("x", "y", "z"), unit="m")
    )
    notes: tuple[str, ...]

    @property
    @in_json("distance_m")
    def distance(self) -> np.ndarray:
        """Distance (6, 10) by which the tool center point moves, m."""
        return np.asarray(np.linalg.norm(self.displacement, axis=-1))

    @property
    @in_table(quantity_over("direction", "load", unit="m/N"))
    @in_json("compliance_m_N")
    def compliance(self) -> np.ndarray:
        """Distance per force (6, 10), m/N."""
        return np.asarray(self.distance / self.load)

    @property
    @in_json("worst_m_N")
    def worst(self) -> float:
        """Largest compliance of all directions and forces, m/N."""
        return float(self.compliance.max())

    def to_csv(self) -> str:
        """Return a CSV text: displacement and compliance by direction and force."""
        heads = [f"displacement.{axis} [m]" for axis in "xyz"]
        rows: list[tuple[object, ...]] = []
        for direction, displacements, compliances in zip(
            self.directions, self.displacement, self.compliance, strict=True
        ):
            for load, vector, compliance in zip(self.load, displacements, compliances, strict=True):
                rows.append((direction, float(load), *vector.tolist(), float(compliance)))
        return csv_text(("direction", "force [N]", *heads, "compliance [m/N]"), rows)


@keywords(StaticComplianceOptions)
@solving(PoseError)
def static_compliance(
    machine: MachineSource,
    rated_load: float | str,
    pose: PoseInput = None,
    options: StaticComplianceOptions | None = None,
) -> StaticCompliance:
    """Return the static compliance of a machine at its tool, by the procedure of ISO 9283.

    Forces along the three axes of the base, in both directions, grow in steps of 10 % to the rated
    load. The displacement of the tool is measured from the equilibrium under weight alone. The
    equilibrium is followed along the force: dx/dF = (K + K_g)⁻¹ Jᵀ at the deformed geometry. Motors
    are held. The model has no friction or backlash, so that repetitions give the same result.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        rated_load: largest force at the tool center point, N, or a string with a unit.
        pose: a single pose of the platform, see `stiffness`; by default the reference pose.
        options: options of the beam theory.

    Raises:
        InputError: the machine has no elastic data, or an argument is wrong.
        AssemblyError: a part can move without any deformation.
        PoseError: the pose is out of reach or singular.

    Examples:
        >>> import tauloop as tl
        >>> machine = tl.loads('''
        ... format: tauloop-machine/1
        ... name: slide
        ... provenance: {status: chosen, source: example}
        ... gravity: [0, 0, -9.81 m/s^2]
        ... bodies: {cart: {mass: 2 kg}}
        ... joints: {rail: {type: prismatic, axis: x, parent: base, child: cart}}
        ... actuators: {motor: {on: rail, force: 10 N, stiffness: 5 N/um}}
        ... platform: {body: cart, independent: [rail]}
        ... ''')
        >>> result = tl.static_compliance(machine, rated_load=100.0)
        >>> print(f"{1e3 * result.compliance[0, -1]:.4f} mm/N, {1e3 * result.distance[0, -1]:.2f} mm")
        0.0002 mm/N, 0.02 mm
    """
    model, options = modeled(machine), options or StaticComplianceOptions()
    force = _force(rated_load)
    mechanism = model.mechanism
    q, limit_diagnostics = machine_coordinates(model, pose)
    if len(q) != 1:
        raise InputError.of("pose", f"contains {len(q)} poses", "give a single pose")
    settings = StructureOptions(has_shear=options.shear, has_rod_modes=False)
    elastic_machine = machine_structure(model, np.repeat(q, len(LOAD_DIRECTIONS), axis=0), settings)
    require_elastic_data(mechanism, elastic_machine)
    gravity = gravity_vector(mechanism)
    path = _Equilibrium(elastic_machine, gravity, force)
    displacement = np.stack(list(path.displacements()), axis=1)
    notes = elastic_machine.notes
    if path.is_constrained:
        notes += ("rigid parts close loops: the geometric stiffness includes only forces in beams",)
    largest = float(np.linalg.norm(displacement, axis=-1).max())
    return StaticCompliance(
        model=model,
        options=options,
        platform=model.platform_position(q)[0],
        tool=elastic_machine.tool_point[0],
        directions=LOAD_DIRECTIONS,
        load=FRACTIONS * force,
        displacement=displacement,
        notes=notes,
        diagnostics=(
            *_diagnostics(largest / elastic_machine.structure.length),
            *limit_diagnostics,
            *omission_diagnostics(mechanism),
        ),
        provenance=provenance(
            options={"shear": options.shear},
            inputs={"machine": mechanism.name, "rated_load": force},
        ),
    )


def _force(rated_load: object) -> float:
    """Return a rated load, N.

    Raises:
        InputError: it is not a positive force.
    """
    remedy = "give the largest force at the tool, such as 500.0 or '500 N'"
    if isinstance(rated_load, str):
        value = quantity("rated_load", rated_load, FORCE)
    elif isinstance(rated_load, int | float | np.number):
        value = float(rated_load)
    else:
        raise InputError.of("rated_load", f"is not a force: {rated_load!r}", remedy)
    if not 0.0 < value < np.inf:
        raise InputError.of("rated_load", f"must be positive and finite, got {value:g} N", remedy)
    return value


class _Equilibrium:
    """The equilibria of a machine under growing forces in six directions.

    The six directions are six samples of the structure.
    """

    def __init__(
        self, elastic_machine: MachineStructure, gravity: Array, rated_load: float
    ) -> None:
        """Start at the given pose, which is the equilibrium under weight."""
        self.elastic_machine, self.gravity = elastic_machine, gravity
        self.wrench = rated_load * np.concatenate([_UNIT_VECTORS, np.zeros((6, 3))], axis=1)
        self.twists = {
            body.name: np.zeros((len(_UNIT_VECTORS), 6))
            for body in elastic_machine.structure.bodies
        }
        self.is_constrained = False
        self._arm = elastic_machine.tool_point - self._origin(elastic_machine)

    @staticmethod
    def _origin(elastic_machine: MachineStructure) -> Array:
        """Return the origin (6, 3) of the body or node that carries the tool."""
        origins = {body.name: body.origin for body in elastic_machine.structure.bodies}
        return origins.get(elastic_machine.tool_body, np.zeros(3))

    def displacements(self) -> Iterator[Array]:
        """Yield the displacement (6, 3) of the tool at each fraction of the rated load.

        The midpoint rule integrates the twists of the bodies from one fraction to the next.
        """
        previous = 0.0
        for fraction in FRACTIONS:
            step = fraction - previous
            slopes = self._slopes(self.twists, previous)
            midpoint = {
                name: twist + 0.5 * step * slopes[name] for name, twist in self.twists.items()
            }
            slopes = self._slopes(midpoint, previous + 0.5 * step)
            for name, slope in slopes.items():
                self.twists[name] = self.twists[name] + step * slope
            previous = float(fraction)
            yield self._tool(self.twists) - self.elastic_machine.tool_point

    def _tool(self, twists: dict[str, Array]) -> Array:
        """Return the tool center point (6, 3) of the deformed machine."""
        name = self.elastic_machine.tool_body
        if name not in twists:
            return self.elastic_machine.tool_point
        u, theta = twists[name][:, :3], twists[name][:, 3:]
        by_rotation = np.cross(theta, self._arm)
        return np.asarray(
            self.elastic_machine.tool_point + u + by_rotation + 0.5 * np.cross(theta, by_rotation)
        )

    def _slopes(self, twists: dict[str, Array], fraction: float) -> dict[str, Array]:
        """Return the derivatives (6, 6) of the bodies' twists with respect to the load fraction."""
        assembled = assemble(deformed_structure(self.elastic_machine.structure, twists))
        assembled.require_no_mechanism()
        self.is_constrained = bool(assembled.constraints)
        tool, point = self.elastic_machine.tool_body, self._tool(twists)
        by_wrench = (
            np.swapaxes(assembled.point_motion(tool, point), -1, -2) @ self.wrench[..., None]
        )
        tangent = assembled.stiffness + self._geometric(assembled, point, by_wrench, fraction)
        change = np.linalg.solve(tangent, by_wrench)
        return {name: (assembled.body_motion[name] @ change)[..., 0] for name in twists}

    def _geometric(
        self, assembled: AssembledStructure, point: Array, by_wrench: Array, fraction: float
    ) -> Array:
        """Return the geometric stiffness (6, n, n) due to weight and part of the rated load."""
        load = gravity_load(assembled, self.gravity)[..., None] + fraction * by_wrench
        displacement = np.asarray(np.linalg.solve(assembled.stiffness, load), dtype=float)[..., 0]
        at_tool = DeadLoad(
            body=self.elastic_machine.tool_body, point=point, wrench=fraction * self.wrench
        )
        return preload_stiffness(assembled, displacement, self.gravity, (at_tool,))


def _diagnostics(largest: float) -> Iterator[Diagnostic]:
    """Yield a diagnostic of the largest displacement, as a fraction of the machine's size."""
    yield diagnostic(
        "largest displacement, fraction of the machine's size",
        largest,
        at_most=MAX_DISPLACEMENT,
        advice="the motion of the bodies is accurate to second order; reduce the rated load",
    )
