"""Stiffness, first natural frequency and thermal error over a workspace map."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from tauloop.common.errors import InputError, PoseError, Problems, solving
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, listed, option
from tauloop.common.records import dataclass
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.heat.expansion import (
    ThermalExpansionOptions,
    expansions_of,
    temperatures_of,
    thermal_expansion,
)
from tauloop.elasticity.machine.poses import DIRECTIONS, CoordinateRows
from tauloop.elasticity.static_analysis.batch_compliance import compliance_at
from tauloop.elasticity.static_analysis.stiffness import worst_stiffness
from tauloop.elasticity.vibrations.vibration import VibrationOptions, vibration
from tauloop.kinematics.workspaces.map import Workspace
from tauloop.kinematics.workspaces.quantities import QuantityKind, with_quantities
from tauloop.mechanism.description.units import EXPANSION, TEMPERATURE
from tauloop.mechanism.suggestions import unknown_names
from tauloop.model import Model

#: Number of poses that are calculated together.
MAP_CHUNK = 256


def _force_stiffness(name: str, label: str) -> QuantityKind:
    """Return the description of a stiffness against a force."""
    return QuantityKind(name=name, label=label, unit="N/m", shown_unit="N/um", factor=1e-6)


def _moment_stiffness(name: str, label: str) -> QuantityKind:
    """Return the description of a stiffness against a moment."""
    return QuantityKind(name=name, label=label, unit="N m/rad", shown_unit="N m/mrad", factor=1e-3)


_KINDS = (
    _force_stiffness("stiffness", "stiffness in the softest direction"),
    *(_force_stiffness(f"stiffness.{axis}", f"stiffness along {axis}") for axis in DIRECTIONS[:3]),
    _moment_stiffness("stiffness.moment", "stiffness against the worst moment"),
    *(
        _moment_stiffness(f"stiffness.{axis}", f"stiffness about {axis[1:]}")
        for axis in DIRECTIONS[3:]
    ),
    QuantityKind(name="frequency", label="first natural frequency", unit="Hz", shown_unit="Hz"),
    QuantityKind(
        name="heat",
        label="thermal error of the tool",
        unit="m",
        shown_unit="um",
        factor=1e6,
        is_better_low=True,
    ),
)
#: Quantities that a map can have, by name.
ELASTIC_QUANTITIES: Mapping[str, QuantityKind] = {kind.name: kind for kind in _KINDS}


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticMapOptions(Options):
    """Quantities of an elastic machine over a map.

    Attributes:
        quantities: mapped quantities: stiffness (in the softest direction), stiffness.x to
            stiffness.rz, stiffness.moment, frequency, heat.
        temperatures: temperature of each part relative to the reference temperature, K, for `heat`;
            a number for all parts that have a coefficient of expansion.
        expansions: coefficients of expansion by part, 1/K, as in `thermal_expansion`.
        shear: include shear deformation of beams (Timoshenko).

    Examples:
        >>> import tauloop as tl
        >>> tl.ElasticMapOptions(quantities=("stiffness.z", "frequency")).temperatures
        1.0
    """

    quantities: tuple[str, ...] = option(("stiffness",), read=listed, metavar="NAMES")
    temperatures: float | Mapping[str, float] = option(
        1.0, unit=TEMPERATURE, below=np.inf, read=temperatures_of, metavar="VALUES"
    )
    expansions: float | Mapping[str, float] | None = option(
        None, unit=EXPANSION, below=np.inf, read=expansions_of, metavar="VALUES"
    )
    shear: bool = option(False)


@keywords(ElasticMapOptions)
@solving(PoseError)
def elastic_map(
    workspace: Workspace,
    options: ElasticMapOptions | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Workspace:
    """Return a workspace map with elastic quantities of its usable poses.

    These are stiffness, first natural frequency and thermal error. Motors are held. `quantities` of
    the map contains the worst value of each quantity and its pose, which is also searched for
    between the points of the grid.

    Args:
        workspace: a map of an elastic machine, see `workspace`.
        options: quantities and temperatures.
        progress: called with the number of finished poses and the number of all poses.

    Raises:
        InputError: a quantity is unknown, or the machine has no data for it.
        AssemblyError: a part can move without any deformation.

    Examples:
        >>> import tauloop as tl
        >>> machine = tl.loads('''
        ... format: tauloop-machine/1
        ... name: slide
        ... provenance: {status: chosen, source: example}
        ... gravity: [0, 0, -9.81 m/s^2]
        ... bodies: {cart: {mass: 2 kg}}
        ... joints: {rail: {type: prismatic, axis: x, parent: base, child: cart, limits: [0, 1 m]}}
        ... actuators: {motor: {on: rail, force: 10 N, stiffness: 5 N/um}}
        ... platform: {body: cart, independent: [rail]}
        ... ''')
        >>> grid = tl.workspace(machine, resolution=0.5, ranges={"rail": (0.0, 1.0)})
        >>> (frequency,) = tl.elastic_map(grid, quantities=("frequency",)).quantities
        >>> print(f"{frequency.worst:.1f} {frequency.unit}")
        251.6 Hz
    """
    options = options or ElasticMapOptions()
    source: object = workspace
    if not isinstance(source, Workspace):
        what = f"is not a map: {type(source).__name__}"
        raise InputError.of("workspace", what, "give the result of `tl.workspace`")
    problems = Problems()
    problems += unknown_names(options.quantities, tuple(ELASTIC_QUANTITIES), "is not a quantity")
    for name in sorted(set(options.quantities) & {item.name for item in workspace.quantities}):
        problems.add(f"quantities.{name}", "is already in the map", "omit it")
    if not options.quantities:
        problems.add("quantities", "is empty", f"name at least one, such as {'stiffness'!r}")
    InputError.raise_if_any(problems)
    names = tuple(dict.fromkeys(options.quantities))
    return with_quantities(
        workspace,
        tuple(ELASTIC_QUANTITIES[name] for name in names),
        partial(_quantities, workspace.model, options, names),
        at_once=MAP_CHUNK,
        progress=progress,
    )


def _quantities(
    model: Model, options: ElasticMapOptions, names: tuple[str, ...], q: Array
) -> dict[str, Array]:
    """Return quantities (N,) by name at coordinates (N, n_q)."""
    values: dict[str, Array] = {}
    if any(name.startswith("stiffness") for name in names):
        values |= _stiffness(model, q, has_shear=options.shear)
    if "frequency" in names:
        settings = VibrationOptions(count=1, shear=options.shear)
        modes = vibration(model, CoordinateRows(q), settings)
        values["frequency"] = modes.frequency[:, 0]
    if "heat" in names:
        heated = ThermalExpansionOptions(
            temperatures=options.temperatures, expansions=options.expansions
        )
        heat = thermal_expansion(model, CoordinateRows(q), heated)
        values["heat"] = heat.distance
    return {name: values[name] for name in names}


def _stiffness(model: Model, q: Array, *, has_shear: bool) -> dict[str, Array]:
    """Return all kinds of stiffness (N,) by name."""
    compliance = compliance_at(model, q, has_shear=has_shear)
    with np.errstate(divide="ignore"):
        directional = 1.0 / np.diagonal(compliance, axis1=1, axis2=2)
    values = {f"stiffness.{name}": directional[:, k] for k, name in enumerate(DIRECTIONS)}
    values["stiffness"] = worst_stiffness(compliance[:, :3, :3])[0]
    values["stiffness.moment"] = worst_stiffness(compliance[:, 3:, 3:])[0]
    return values
