"""Tool deflection due to loads, weight and temperature, with derivatives with respect to all unknowns.

Encoders determine the rigid pose. With motors held, loads and temperatures then displace the tool
by the small displacement (translation and rotation vector)

    d = J K⁻¹ (w_g + Jᵀ w) + Σ_p t_p (α_p (T_p + o_p))

with the Jacobian J of the tool center point with respect to the structure's coordinates, the
stiffness K of the structure, its weight w_g, the wrench w at the tool, and the displacement t_p of
the tool due to unit free strain of part p with the coefficient of thermal expansion α_p, measured
temperature T_p and thermometer offset o_p. Without a load only the weight deflects the machine. The
estimated geometry is that of the weightless machine at the reference temperature.

Derivatives follow from the energy: ∂d = -Xᵀ ∂K u with X = K⁻¹ Jᵀ and the elastic deformation u of
each item due to load, weight and temperature. The displacement (`twist` in the code) is always
evaluated with the corrected geometry. The derivatives neglect its change with geometry and pose,
which is a second-order effect.

Source: Przemieniecki 1968, Theory of matrix structural analysis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any, cast

import numpy as np

from tauloop.calibration.measurements.series import Series
from tauloop.calibration.problem.loaded_machine import (
    STRUCTURE_OPTIONS,
    ElasticMachine,
    thermometer_offset,
    with_any_values,
)
from tauloop.calibration.problem.unknowns import Unknown
from tauloop.common.errors import AssemblyError, InputError
from tauloop.common.records import dataclass
from tauloop.elasticity.frame.assembled import AssembledStructure, assemble
from tauloop.elasticity.frame.statics import gravity_load
from tauloop.elasticity.frame.thermal import ThermalResponse, thermal_response
from tauloop.elasticity.heat.expansion import stated_expansions, unit_expansion
from tauloop.elasticity.machine.constants import share_geometry
from tauloop.elasticity.machine.poses import gravity_vector
from tauloop.elasticity.machine.structure import (
    MachineStructure,
    machine_structure,
)
from tauloop.elasticity.static_analysis.gradients import (
    geometric_parameters,
    item_motions,
    stiffness_gradient,
)
from tauloop.equations.assembly.loops import Loops, loops
from tauloop.mechanism.expression import leaves
from tauloop.mechanism.model import Mechanism
from tauloop.model import Model

#: Relative step of central differences of weights and coefficients of expansion, which are
#: polynomials of at most second degree in the parameters of sections and bodies.
SECTION_DIFFERENCE_STEP = 1e-3
#: Maximum number of stored machines with corrected values.
MAX_STORED = 4


def _weight_parameters(mechanism: Mechanism) -> frozenset[str]:
    """Return the parameters on which the weight of the machine depends."""
    parts: list[object] = [mechanism.gravity]
    beams = []
    for body in mechanism.bodies:
        parts.append(body.inertia)
        beams += [item.beam for item in body.beams]
    for rod in mechanism.rods:
        parts += [rod.lower, rod.upper]
        beams += [beam for beam in (rod.lower_beam, rod.upper_beam) if beam is not None]
    for beam in beams:
        for segment in beam.segments:
            sections = (segment.start, segment.end)
            parts += [section.properties.mass_per_length for section in sections]
    return frozenset().union(*map(leaves, parts))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _LoopsOnly:
    """Stand-in for an `Assembly` that provides only the loops of a machine."""

    loops: Loops


@dataclass(frozen=True, kw_only=True, eq=False)
class _ModelStandIn:
    """Stand-in for a `Model` that provides only the data for its elastic structure, unassembled.

    Attributes:
        mechanism: the machine.
        assembly: loops of the machine.
    """

    mechanism: Mechanism
    assembly: _LoopsOnly

    def structure(self, q: np.ndarray) -> MachineStructure:
        """Return the structure at coordinates (M, n_q)."""
        return machine_structure(cast(Model, self), q, STRUCTURE_OPTIONS)

    def with_weights(self, mechanism: Mechanism) -> _ModelStandIn:
        """Return the machine with other masses and sections, but with the same geometry."""
        changed = _ModelStandIn(mechanism=mechanism, assembly=self.assembly)
        share_geometry(cast(Model, changed), cast(Model, self))
        return changed


def _stand_in(mechanism: Mechanism) -> _ModelStandIn:
    """Return a stand-in for the model of a machine at its nominal values."""
    return _ModelStandIn(mechanism=mechanism, assembly=_LoopsOnly(loops=loops(mechanism)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Deflected:
    """A loaded and heated machine at M poses.

    Attributes:
        machine: the machine with corrected values.
        assembled: stiffness, weight and motions of the structure in its n minimal coordinates.
        full_structure: structure in all coordinates, with the body and point of the tool.
        unit_displacement: (M, n, 6) displacement due to unit wrenches at the tool.
        displacement: (M, n, 1) displacement due to loads and weight.
        response: response to the free expansion of all heated parts; None if there are none.
        coefficients: (p,) coefficients of expansion of the heated parts, 1/K.
        temperature_rises: (M, p) temperature rises of the heated parts above the reference, K.
        thermal_displacement: (M, 6, p) displacement of the tool due to unit free strain
            (α ΔT = 1) of each part.
        twist: (M, 6) deflection of the tool, m and rad.
    """

    machine: _ModelStandIn
    assembled: AssembledStructure
    full_structure: MachineStructure
    unit_displacement: np.ndarray
    displacement: np.ndarray
    response: ThermalResponse | None
    coefficients: np.ndarray
    temperature_rises: np.ndarray
    thermal_displacement: np.ndarray
    twist: np.ndarray

    @property
    def mechanism(self) -> Mechanism:
        """The machine's description with corrected values."""
        return self.machine.mechanism


class Deflection:
    """Deflection of the tool of a machine as a function of the unknowns of a calibration."""

    def __init__(
        self, mechanism: Mechanism, unknowns: Sequence[Unknown], machine: ElasticMachine
    ) -> None:
        """Determine which unknowns affect stiffness, weight, expansion and temperatures.

        Args:
            mechanism: the machine with the joints of the calibration's coordinates.
            unknowns: all unknowns of the calibration.
            machine: elastic and thermal data of the machine.
        """
        self.mechanism = mechanism
        self.unknowns = tuple(unknowns)
        self.machine = machine
        names = tuple(part for group in machine.parts.values() for part in group)
        self.parts = tuple(part for part in machine.expansions if part in names)
        known = set(mechanism.parameters.names)
        self.members = {m for u in self.unknowns for m in u.members if m in known}
        self._machines: dict[bytes, _ModelStandIn] = {}
        candidates = _weight_parameters(mechanism) & self.members
        self.weights = tuple(sorted(candidates - geometric_parameters(mechanism)))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without stored machines, so that copies between processes are small."""
        return {**self.__dict__, "_machines": {}}

    def affects_deflection(self, unknown: Unknown) -> bool:
        """Return whether an unknown is a parameter of stiffness or expansion."""
        elastic = set(self.machine.elastic)
        parameters = self.mechanism.parameters
        return any(
            name in elastic or parameters[name].unit == "1/K"
            for name in unknown.members
            if name in self.members
        )

    def at(self, series: Series) -> PoseDeflection:
        """Return the deflection at the poses of a series."""
        count = len(series.encoders)
        loads = np.zeros((count, 6)) if series.loads is None else series.loads
        readings = series.temperatures
        temperatures = np.zeros((count, 0)) if readings is None else readings
        return PoseDeflection(
            shared=self, loads=loads, thermometers=series.thermometers, temperatures=temperatures
        )

    def values(self, x: np.ndarray) -> dict[str, float]:
        """Return the values of all unknown parameters of the machine, SI."""
        start = self.mechanism.parameters.values
        values = {}
        for unknown, correction in zip(self.unknowns, x, strict=True):
            for member in unknown.members:
                if member in self.members:
                    values[member] = start[member] + float(correction)
        return values

    def corrected(self, x: np.ndarray) -> _ModelStandIn:
        """Return the machine with corrected values; the last few are stored."""
        key = x.tobytes()
        if key not in self._machines:
            if len(self._machines) >= MAX_STORED:
                self._machines.clear()
            self._machines[key] = _stand_in(with_any_values(self.mechanism, self.values(x)))
        return self._machines[key]

    def weight_derivative(self, machine: _ModelStandIn, q: np.ndarray, name: str) -> np.ndarray:
        """Return the derivative (M, n) of the weight with respect to a parameter.

        It is computed by central differences. The parameter does not change the geometry (see
        `weights`), so its structures differ in masses and sections alone.
        """
        mechanism = machine.mechanism
        value = mechanism.parameters[name].value
        step = SECTION_DIFFERENCE_STEP * (abs(value) or 1.0)
        loads = []
        for sign in (1.0, -1.0):
            changed = machine.with_weights(with_any_values(mechanism, {name: value + sign * step}))
            assembled = assemble(changed.structure(q).structure)
            loads.append(gravity_load(assembled, gravity_vector(mechanism)))
        return np.asarray((loads[0] - loads[1]) / (2.0 * step))

    def expansion_derivative(self, deflected: _Deflected, name: str) -> np.ndarray:
        """Return the derivative (p,) of all expansion coefficients with respect to a parameter."""
        mechanism = deflected.mechanism
        value = mechanism.parameters[name].value
        step = SECTION_DIFFERENCE_STEP * (abs(value) or 1.0)
        above = with_any_values(mechanism, {name: value + step})
        below = with_any_values(mechanism, {name: value - step})
        upper = self.coefficients(above, deflected.full_structure)
        lower = self.coefficients(below, deflected.full_structure)
        return np.asarray((upper - lower) / (2.0 * step))

    def coefficients(self, mechanism: Mechanism, structure: MachineStructure) -> np.ndarray:
        """Return the coefficients of expansion (p,) of the heated parts, 1/K."""
        expansions = stated_expansions(mechanism, structure)
        return np.array([expansions[part] for part in self.parts], dtype=float)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PoseDeflection:
    """Deflection of the tool at the M poses of a series.

    Attributes:
        shared: the machine.
        loads: (M, 6) wrenches at the tool center point, in the axes of the base, N and N m.
        thermometers: names (k) of the thermometers.
        temperatures: (M, k) readings of the thermometers above the reference, K.
    """

    shared: Deflection
    loads: np.ndarray
    thermometers: tuple[str, ...]
    temperatures: np.ndarray
    _last: list[tuple[tuple[bytes, bytes], _Deflected]] = field(default_factory=list)

    def take(self, rows: np.ndarray) -> PoseDeflection:
        """Return the deflection at some of the poses."""
        loads, temperatures = self.loads[rows], self.temperatures[rows]
        return replace(self, loads=loads, temperatures=temperatures, _last=[])

    def twist(self, x: np.ndarray, q: np.ndarray, *, trial: bool = True) -> np.ndarray:
        """Return the deflections (M, 6) of the tool center point, in the axes of the base.

        A deflection is a displacement, m, and a rotation vector, rad.

        Args:
            x: corrections of all unknowns.
            q: coordinates (M, n_q) of the rigid poses.
            trial: if True, the result is NaN if the machine cannot be evaluated, such as with a
                negative stiffness; otherwise an error is raised.
        """
        try:
            return self._deflected(x, q).twist
        except (InputError, AssemblyError, np.linalg.LinAlgError):
            if not trial:
                raise
            return np.full((len(q), 6), np.nan)

    def unknown_derivatives(self, x: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Return the derivatives (M, 6, n) of the deflections with respect to all unknowns."""
        shared, deflected = self.shared, self._deflected(x, q)
        result = np.zeros((len(q), 6, len(shared.unknowns)))
        by_name = self._by_parameters(deflected, q)
        by_name |= self._by_offsets(deflected)
        for i, unknown in enumerate(shared.unknowns):
            for member in unknown.members:
                if member in by_name:
                    result[:, :, i] += by_name[member]
        return result

    def temperature_derivatives(self, x: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Return the derivatives (M, 6, k) of the deflections with respect to the thermometer readings."""
        columns = self._by_offsets(self._deflected(x, q))
        parts = [columns[thermometer_offset(name)] for name in self.thermometers]
        return np.stack(parts, axis=2) if parts else np.zeros((len(q), 6, 0))

    def _deflected(self, x: np.ndarray, q: np.ndarray) -> _Deflected:
        """Return the loaded and heated machine, which is stored for the derivatives."""
        key = (x.tobytes(), q.tobytes())
        if self._last and self._last[0][0] == key:
            return self._last[0][1]
        deflected = self._compute_deflected(x, q)
        self._last[:] = [(key, deflected)]
        return deflected

    def _compute_deflected(self, x: np.ndarray, q: np.ndarray) -> _Deflected:
        """Compute the loaded and heated machine."""
        shared = self.shared
        corrected = shared.corrected(x)
        mechanism = corrected.mechanism
        full_structure = corrected.structure(q)
        assembled = assemble(full_structure.structure)
        assembled.require_no_mechanism()
        motion = assembled.point_motion(full_structure.tool_body, full_structure.tool_point)
        transposed = np.swapaxes(motion, -1, -2)
        weight = gravity_load(assembled, gravity_vector(mechanism))
        load = weight[..., None] + transposed @ self.loads[..., None]
        right_sides = np.concatenate([transposed, load], axis=-1)
        displacements = np.linalg.solve(assembled.stiffness, right_sides)
        unit_displacement = displacements[..., :6]
        displacement = displacements[..., 6:]
        twist = (motion @ displacement)[..., 0]
        response = None
        temperature_rises = self._temperature_rises(x)
        coefficients = shared.coefficients(mechanism, full_structure)
        thermal_displacement = np.zeros((len(q), 6, len(shared.parts)))
        if len(shared.parts):
            expansion = unit_expansion(mechanism, full_structure, shared.parts)
            response = thermal_response(assembled, expansion)
            thermal_displacement = response.point_motion(
                full_structure.tool_body, full_structure.tool_point
            )
            thermal_strains = coefficients * temperature_rises
            twist = twist + (thermal_displacement @ thermal_strains[..., None])[..., 0]
        return _Deflected(
            machine=corrected,
            assembled=assembled,
            full_structure=full_structure,
            unit_displacement=unit_displacement,
            displacement=displacement,
            response=response,
            coefficients=coefficients,
            temperature_rises=temperature_rises,
            thermal_displacement=thermal_displacement,
            twist=twist,
        )

    def _temperature_rises(self, x: np.ndarray) -> np.ndarray:
        """Return the temperature rises (M, p) of all heated parts, K: readings plus offsets."""
        shared = self.shared
        offsets = {
            member: float(correction)
            for unknown, correction in zip(shared.unknowns, x, strict=True)
            for member in unknown.members
        }
        rises = np.zeros((len(self.temperatures), len(shared.parts)))
        for column, name in enumerate(self.thermometers):
            rise = self.temperatures[:, column] + offsets.get(thermometer_offset(name), 0.0)
            for part in shared.machine.parts[name]:
                rises[:, shared.parts.index(part)] = rise
        return rises

    def _by_offsets(self, deflected: _Deflected) -> dict[str, np.ndarray]:
        """Return the derivatives (M, 6) of the deflections with respect to thermometer offsets."""
        per_kelvin = deflected.thermal_displacement * deflected.coefficients
        shared = self.shared
        result = {}
        for name in self.thermometers:
            columns = [shared.parts.index(part) for part in shared.machine.parts[name]]
            result[thermometer_offset(name)] = per_kelvin[:, :, columns].sum(axis=2)
        return result

    def _by_parameters(self, deflected: _Deflected, q: np.ndarray) -> dict[str, np.ndarray]:
        """Return the derivatives (M, 6) of the deflections with respect to machine parameters."""
        shared = self.shared
        result = {name: np.zeros((len(q), 6)) for name in shared.members}
        elastic = tuple(name for name in shared.machine.elastic if name in shared.members)
        if elastic:
            rows = item_motions(deflected.assembled)
            left = {name: motion @ deflected.unit_displacement for name, motion in rows.items()}
            right = {name: motion @ deflected.displacement for name, motion in rows.items()}
            if deflected.response is not None:
                thermal_strains = (deflected.coefficients * deflected.temperature_rises)[..., None]
                for name, deformation in deflected.response.deformations.items():
                    right[name] = right[name] + deformation @ thermal_strains
            gradient = stiffness_gradient(
                deflected.mechanism,
                deflected.assembled,
                deflected.full_structure.laws,
                elastic,
                left,
                right,
            )
            for index, name in enumerate(elastic):
                result[name] -= gradient[:, :, 0, index]
        for name in shared.weights:
            change = shared.weight_derivative(deflected.machine, q, name)
            result[name] += (np.swapaxes(deflected.unit_displacement, -1, -2) @ change[..., None])[
                ..., 0
            ]
        if len(shared.parts):
            for name in sorted(shared.members):
                if shared.mechanism.parameters[name].unit == "1/K":
                    change = shared.expansion_derivative(deflected, name)
                    thermal_strains = (change * deflected.temperature_rises)[..., None]
                    result[name] += (deflected.thermal_displacement @ thermal_strains)[..., 0]
        return result
