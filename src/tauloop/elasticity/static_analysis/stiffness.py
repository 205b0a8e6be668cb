"""Stiffness, deflection, stress and buckling of a machine with its motors held."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import ClassVar

import numpy as np

from tauloop.common.datasets import (
    channels,
    in_table,
    numbered,
    quantity_over,
    several,
)
from tauloop.common.errors import PoseError, solving
from tauloop.common.files import csv_text
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, provenance
from tauloop.elasticity.frame.assembled import AssembledStructure, assemble
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.frame.preload import DeadLoad, geometric_stiffness, preload_stiffness
from tauloop.elasticity.frame.statics import (
    ToolCompliance,
    end_loads,
    energy_shares,
    gravity_load,
    tool_compliance,
)
from tauloop.elasticity.heat.expansion import (
    ThermalExpansionOptions,
    expansions_of,
    heat_loads,
    rise_diagnostics,
    temperatures_of,
)
from tauloop.elasticity.machine.poses import (
    DIRECTIONS as DIRECTIONS,
    TWIST_UNITS as TWIST_UNITS,
    PoseInput,
    gravity_vector,
    machine_coordinates,
    require_elastic_data,
    rigid_parts,
)
from tauloop.elasticity.machine.structure import (
    MachineStructure,
    StructureOptions,
    machine_structure,
)
from tauloop.elasticity.machine.symbolic_structure import SymbolicStructure, compliance_derivatives
from tauloop.elasticity.static_analysis.beam_loads import BeamLoads, beam_loads
from tauloop.elasticity.static_analysis.gradients import (
    ElasticGradient,
    ElasticLaw,
    compliance_parameters,
    require_parameters,
)
from tauloop.equations.named_values import TOOL_PORT, named_values
from tauloop.mechanism.description.units import EXPANSION, TEMPERATURE
from tauloop.mechanism.elastic.inertia import ElementMass
from tauloop.mechanism.model import Mechanism, omission_diagnostics
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled

#: Units of translational and rotational stiffness.
STIFFNESS_UNITS = ("N/m",) * 3 + ("N m/rad",) * 3
#: Number of modes per link and plane that represent bending for the buckling load.
BUCKLING_MODES = 3
#: Largest relative difference between the energy of all elements and the work of a wrench.
ENERGY_TOLERANCE = 1e-6
#: Fraction of the buckling load above which loads change the stiffness noticeably.
MAX_BUCKLING_UTILIZATION = 0.05
#: Largest deflection, as a fraction of the machine's size, for which linear equations are accurate.
MAX_DEFLECTION = 0.01
#: The tool counts as rigid in a direction if its displacement due to a unit load, relative to the
#: largest, is below this value. Rounding errors are about 1e-15.
RIGID_TOLERANCE = 1e-12
#: Relative step of finite differences, whose second-order errors cancel (Richardson).
DIFFERENCE_STEP = 1e-3
#: Note on a load factor without the geometric stiffness of constraints.
CONSTRAINED_NOTE = (
    "rigid rods or joints close loops: the load factor accounts only for axial forces in beams"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StiffnessOptions(Options):
    """Mechanical and thermal loads (see `thermal_expansion`), and the beam theory.

    Attributes:
        wrench: wrench at the tool, such as 'fx=10,mz=0.5' (N, N m, base frame).
        weightless: neglect the weight of the machine.
        loaded: include the geometric stiffness of all loads; the given poses are then equilibrium
            poses of the loaded machine.
        shear: include shear deformation of beams (Timoshenko).
        temperatures: temperature of each part relative to the reference temperature, K; a number
            for all parts that have a coefficient of expansion.
        expansions: coefficients of expansion by part, 1/K, instead of the file's; or one number
            for all parts for which the file states none. The base, and bodies without beams,
            expand uniformly if they have a coefficient.

    Examples:
        >>> import tauloop as tl
        >>> tl.StiffnessOptions(wrench={"fx": 100.0}).wrench
        {'fx': 100.0}
    """

    wrench: str | Mapping[str, str | float] | tuple[float, ...] | None = option(
        None, read=str, metavar="VALUES"
    )
    weightless: bool = option(False)
    loaded: bool = option(False)
    shear: bool = option(False)
    temperatures: float | Mapping[str, float] = option(
        0.0, unit=TEMPERATURE, below=np.inf, read=temperatures_of, metavar="VALUES"
    )
    expansions: float | Mapping[str, float] | None = option(
        None, unit=EXPANSION, below=np.inf, read=expansions_of, metavar="VALUES"
    )

    @property
    def has_heat(self) -> bool:
        """Whether the temperature of a part differs from the reference."""
        return bool(self.rises.any())

    @property
    def rises(self) -> np.ndarray:
        """All temperatures of `temperatures` relative to the reference temperature, K."""
        stated = self.temperatures
        values = [*stated.values()] if isinstance(stated, Mapping) else [stated]
        return np.array(values, dtype=float)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stiffness(Result):
    """The stiffness of a machine at N poses with its motors held.

    Twists (small translations and rotation vectors) and wrenches are those of the tool center
    point, in the axes of the base.

    Attributes:
        model: the machine.
        options: loads and theory.
        platform: (N, n) positions of the platform.
        tool: (N, 3) tool center points, m.
        compliance: (N, 6, 6) twist (m, rad) per wrench (N, N m).
        items: names of the s elastic items.
        shares: (N, 6, s) fraction of the compliance in each direction that each item causes.
        worst_shares: (N, s) the same fraction in the worst direction of force.
        deflection: (N, 6) twist of the tool due to weight and wrench, m and rad.
        beams: names of the b beams.
        axial: (N, b) mean axial forces in beams under these loads, N; tension is positive.
        stress: (N, b) largest equivalent stress in each beam, Pa; NaN for composite sections.
        yield_safety: (N, b) safety factor: strength over stress; NaN where no strength is stated.
        buckling_safety: (N, b) safety factor: Euler's buckling load of the beam over its
            compressive force; infinite in tension, NaN unless both ends are ball joints.
        load_factor: (N,) buckling load factor: factor of all loads at which the whole machine
            buckles.
        masses: masses of elastic links as specified, and masses of their sections and fittings.
        rigid: names of the rigid parts.
        notes: assumptions about this machine.
        structure: the structure in n minimal coordinates.
        unit_displacement: (N, n, 6) displacement of `structure` due to unit wrenches at the tool.
        laws: expressions of the stiffness of the items.
        tool_body: body or node of the structure that carries the tool.
        coordinates: (N, n_q) coordinates of the machine.
    """

    quantity_order: ClassVar[tuple[str, ...]] = (
        "pose",
        "position",
        "stiffness",
        "worst_stiffness",
        "deflection",
        "axial",
        "stress",
        "load_factor",
    )
    model: Model = field(metadata=json_keys(machine="mechanism.name"))
    options: StiffnessOptions = field(metadata=OMITTED)
    platform: np.ndarray = field(
        metadata=several(
            numbered("pose"),
            channels("pose", port="model.platform.ports.position", name="position"),
        )
    )
    tool: np.ndarray = field(metadata=json_keys("tool_m"))
    compliance: np.ndarray
    items: tuple[str, ...]
    shares: np.ndarray
    worst_shares: np.ndarray
    deflection: np.ndarray = field(metadata=channels("pose", names=DIRECTIONS, units=TWIST_UNITS))
    beams: tuple[str, ...]
    axial: np.ndarray = field(
        metadata=json_keys("axial_force_N") | channels("pose", names="beams", unit="N")
    )
    stress: np.ndarray = field(
        metadata=json_keys("stress_Pa", nullable=True) | channels("pose", names="beams", unit="Pa")
    )
    yield_safety: np.ndarray = field(metadata=json_keys(nullable=True))
    buckling_safety: np.ndarray = field(metadata=json_keys(nullable=True))
    load_factor: np.ndarray = field(metadata=json_keys(nullable=True) | quantity_over("pose"))
    masses: tuple[ElementMass, ...]
    rigid: tuple[str, ...]
    notes: tuple[str, ...]
    structure: AssembledStructure = field(metadata=OMITTED)
    unit_displacement: np.ndarray = field(metadata=OMITTED)
    laws: tuple[ElasticLaw, ...] = field(metadata=OMITTED)
    tool_body: str = field(metadata=OMITTED)
    coordinates: np.ndarray = field(metadata=OMITTED)

    @property
    @in_json(nullable=True)
    def stiffness(self) -> np.ndarray:
        """Inverse of the compliance (N, 6, 6); NaN where the tool is rigid in a direction."""
        result = np.full_like(self.compliance, np.nan)
        scales = self._compliance_scale
        for pose, (matrix, scale) in enumerate(zip(self.compliance, scales, strict=True)):
            if scale.min() > 0.0:
                normalized = matrix / np.outer(scale, scale)
                result[pose] = np.linalg.inv(normalized) / np.outer(scale, scale)
        return result

    @property
    @in_table(channels("pose", names=DIRECTIONS, units=STIFFNESS_UNITS, name="stiffness"))
    @in_json(nullable=True)
    def directional(self) -> np.ndarray:
        """Stiffness 1 / C_ii (N, 6) against a single force or moment in each direction."""
        diagonal = np.diagonal(self.compliance, axis1=1, axis2=2)
        diagonal = np.where(self._compliance_scale > 0.0, diagonal, 0.0)
        return np.divide(1.0, diagonal, out=np.full(diagonal.shape, np.inf), where=diagonal > 0.0)

    @property
    def _compliance_scale(self) -> np.ndarray:
        """Square root (N, 6) of the compliance in each direction; zero where the tool is rigid."""
        scale = np.sqrt(np.diagonal(self.compliance, axis1=1, axis2=2))
        lengths = scale * np.repeat([1.0, self.structure.structure.length], 3)
        is_rigid = lengths <= RIGID_TOLERANCE * lengths.max(axis=1, keepdims=True, initial=0.0)
        return np.where(is_rigid, 0.0, scale)

    @property
    @in_table(quantity_over("pose", name="worst_stiffness.translational", unit="N/m"))
    @in_json(nullable=True)
    def worst_translational(self) -> np.ndarray:
        """Smallest stiffness (N,) against a force in any direction, N/m."""
        return worst_stiffness(self.compliance[:, :3, :3])[0]

    @property
    @in_json()
    def worst_translational_direction(self) -> np.ndarray:
        """Direction (N, 3) of the force with the largest deflection along it."""
        return worst_stiffness(self.compliance[:, :3, :3])[1]

    @property
    @in_table(quantity_over("pose", name="worst_stiffness.rotational", unit="N m/rad"))
    @in_json(nullable=True)
    def worst_rotational(self) -> np.ndarray:
        """Smallest stiffness (N,) against a moment about any axis, N m/rad."""
        return worst_stiffness(self.compliance[:, 3:, 3:])[0]

    @property
    def weakest(self) -> tuple[str, ...]:
        """Item that causes the largest fraction of the compliance in the worst direction, by pose."""
        return tuple(self.items[index] for index in np.argmax(self.worst_shares, axis=1))

    def elastic_gradient(self, parameters: Sequence[str] | None = None) -> ElasticGradient:
        """Return the derivatives of the compliance with respect to parameters of the machine file.

        The independent coordinates of the platform are fixed; the other coordinates follow from the
        loop closure. The derivatives are exact, except with `loaded`: then they are fourth-order
        finite differences, with an estimate of their error.

        Args:
            parameters: names of independent parameters; by default all parameters of geometry and
                elasticity.

        Raises:
            InputError: a parameter is unknown.

        Examples:
            >>> import tauloop as tl
            >>> machine = tl.loads('''
            ... format: tauloop-machine/1
            ... name: slide
            ... provenance: {status: chosen, source: example}
            ... gravity: [0, 0, -9.81 m/s^2]
            ... parameters: {k: 5 N/um}
            ... bodies: {cart: {mass: 2 kg}}
            ... joints: {rail: {type: prismatic, axis: x, parent: base, child: cart}}
            ... actuators: {motor: {on: rail, force: 10 N, stiffness: k}}
            ... platform: {body: cart, independent: [rail]}
            ... ''')
            >>> gradient = tl.stiffness(machine).elastic_gradient()
            >>> gradient.parameters, f"{gradient.compliance[0, 0, 0, 0]:.2g}"
            (('k',), '-4e-14')
        """
        mechanism = self.model.mechanism
        names = parameters
        if names is None:
            names = compliance_parameters(mechanism, self.laws)
        require_parameters(mechanism, names)
        if self.options.loaded:
            return self._loaded_gradient(names)
        symbolic = SymbolicStructure(
            self.model,
            self.structure,
            self.tool_body,
            self.laws,
            self.unit_displacement,
            names,
            has_shear=self.options.shear,
        )
        result = compliance_derivatives(symbolic, self.coordinates)
        scale = self._compliance_scale
        # In directions in which the tool is rigid, both compliances are rounding errors.
        inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0.0)
        difference = np.abs(result.compliance - self.compliance)
        error = (difference * inverse[:, :, None] * inverse[:, None, :]).max()
        return ElasticGradient(
            parameters=tuple(names), compliance=result.derivatives, error=float(error)
        )

    def _loaded_gradient(self, names: Sequence[str]) -> ElasticGradient:
        """Return the derivatives of the loaded machine's compliance by finite differences."""
        mechanism = self.model.mechanism

        def compliance(name: str, value: float) -> np.ndarray:
            changed = Model(mechanism.with_values({name: value}))
            return stiffness(changed, self.platform, self.options).compliance

        columns, errors = [], []
        for name in names:
            nominal = mechanism.parameters[name].value
            step = DIFFERENCE_STEP * (abs(nominal) or self.structure.structure.length)
            coarse = _central_difference(compliance, name, nominal, step)
            fine = _central_difference(compliance, name, nominal, 0.5 * step)
            columns.append((4.0 * fine - coarse) / 3.0)
            largest = np.abs(columns[-1]).max()
            # The error of `fine` is about |fine - coarse| / 3, so |fine - coarse| is a
            # conservative bound on the error of the extrapolated column.
            errors.append(np.abs(fine - coarse).max() / largest if largest > 0.0 else 0.0)
        return ElasticGradient(
            parameters=tuple(names),
            compliance=np.stack(columns, axis=-1),
            error=float(max(errors, default=0.0)),
        )

    def to_csv(self) -> str:
        """Return a CSV text: the contribution of each item to the compliance in each direction."""
        units = ("m/N",) * 3 + ("rad/(N m)",) * 3
        heads = [f"{name} [{unit}]" for name, unit in zip(DIRECTIONS, units, strict=True)]
        diagonal = np.diagonal(self.compliance, axis1=1, axis2=2)
        rows: list[tuple[object, ...]] = []
        for pose, (total, shares) in enumerate(zip(diagonal, self.shares, strict=True), start=1):
            for name, share in zip(self.items, shares.T, strict=True):
                rows.append((pose, name, *(total * share).tolist()))
        return csv_text(("pose", "part", *heads), rows)


def _central_difference(
    function: Callable[[str, float], Array], name: str, value: float, step: float
) -> Array:
    """Return the central difference quotient of a function of a parameter's name and value."""
    return (function(name, value + step) - function(name, value - step)) / (2.0 * step)


def worst_stiffness(compliance: Array) -> tuple[Array, Array]:
    """Return the smallest stiffness (N,) and its direction (N, 3) from compliances (N, 3, 3)."""
    values, vectors = np.linalg.eigh(compliance)
    largest = values[:, -1]
    stiffness = np.divide(1.0, largest, out=np.full(len(largest), np.inf), where=largest > 0.0)
    direction = vectors[:, :, -1]
    rows = np.arange(len(direction))
    sign = np.sign(direction[rows, np.argmax(np.abs(direction), axis=1)])
    return stiffness, direction * sign[:, None]


@keywords(StiffnessOptions)
@solving(PoseError)
def stiffness(
    machine: MachineSource,
    poses: PoseInput = None,
    options: StiffnessOptions | None = None,
    *,
    actuators: object | None = None,
) -> Stiffness:
    """Return the stiffness of a machine at its tool, deflection, stresses and buckling loads.

    Motors are held; their drives deflect according to the stiffness in the file. Compliance, the
    fractions of it that items cause, and deflection are valid for small motions about the pose. The
    load factor includes the geometric stiffness of all loads.

    Args:
        machine: a model, a mechanism, a path, or the name of a shipped machine.
        poses: poses of the platform; by default the reference pose. A single pose by names, such as
            ``{"x": "10 mm"}``, or rows (N, n) of its independent coordinates, SI.
        options: loads and theory.
        actuators: positions of the actuators of one pose, instead of poses of the platform.

    Raises:
        InputError: the machine has no elastic data, or an argument is wrong.
        AssemblyError: a part can move without any deformation.
        PoseError: a pose is out of reach or singular.

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
        >>> result = tl.stiffness(machine, wrench={"fx": 10.0})
        >>> print(f"{result.directional[0, 0]:.0f} N/m, {1e6 * result.deflection[0, 0]:.0f} um")
        5000000 N/m, 2 um
    """
    model, options = modeled(machine), options or StiffnessOptions()
    q, limit_diagnostics = machine_coordinates(model, poses, actuators)
    loaded = _loaded_machine(model, q, options)
    return _result(model, options, q, loaded, limit_diagnostics)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _LoadedMachine:
    """A machine in equilibrium with its loads, and its compliance.

    Attributes:
        elastic_machine: structure of the machine, in the twists of all bodies.
        assembled: the same structure in minimal coordinates.
        wrench: (6,) wrench at the tool, N and N m.
        deflection: (N, 6) twist of the tool, m and rad.
        compliance: compliance at the tool.
        loads: forces, stresses and safety factors of the beams.
    """

    elastic_machine: MachineStructure
    assembled: AssembledStructure
    wrench: Array
    deflection: Array
    compliance: ToolCompliance
    loads: BeamLoads


def _loaded_machine(model: Model, q: Array, options: StiffnessOptions) -> _LoadedMachine:
    """Return a machine at coordinates (N, n_q) under weight, wrench and heat.

    Raises:
        InputError: the machine has no elastic data, or the wrench is wrong.
        AssemblyError: a part can move without any deformation.
    """
    mechanism = model.mechanism
    settings = StructureOptions(modes=BUCKLING_MODES, has_shear=options.shear, has_rod_modes=False)
    elastic_machine = machine_structure(model, q, settings)
    require_elastic_data(mechanism, elastic_machine)
    assembled = assemble(elastic_machine.structure)
    gravity = np.zeros(3) if options.weightless else gravity_vector(mechanism)
    wrench = np.asarray(named_values(TOOL_PORT, "wrench", options.wrench, np.zeros(6)), float)
    motion = assembled.point_motion(elastic_machine.tool_body, elastic_machine.tool_point)
    load = gravity_load(assembled, gravity) + np.swapaxes(motion, -1, -2) @ wrench
    displacement = np.linalg.solve(assembled.stiffness, load[..., None])[..., 0]
    by_heat = _heat_loads(mechanism, elastic_machine, assembled, options)
    tool_load = DeadLoad(
        body=elastic_machine.tool_body, point=elastic_machine.tool_point, wrench=wrench
    )
    if options.loaded:
        geometric = geometric_stiffness(assembled, displacement, gravity, (tool_load,), by_heat)
    else:
        geometric = preload_stiffness(assembled, displacement, gravity, (tool_load,), by_heat)
    compliance = tool_compliance(
        assembled,
        elastic_machine.tool_body,
        elastic_machine.tool_point,
        geometric=geometric if options.loaded else None,
    )
    at_ends = end_loads(assembled, displacement, gravity)
    for name, load_by_heat in (by_heat or {}).items():
        at_ends[name] = at_ends[name] + load_by_heat
    return _LoadedMachine(
        elastic_machine=elastic_machine,
        assembled=assembled,
        wrench=wrench,
        deflection=(motion @ displacement[..., None])[..., 0],
        compliance=compliance,
        loads=beam_loads(elastic_machine, assembled, at_ends, gravity, geometric),
    )


def _heat_loads(
    mechanism: Mechanism,
    elastic_machine: MachineStructure,
    assembled: AssembledStructure,
    options: StiffnessOptions,
) -> dict[str, Array] | None:
    """Return the end loads of elements due to restrained thermal expansion; None without heat."""
    if not options.has_heat:
        return None
    heated = ThermalExpansionOptions(
        temperatures=options.temperatures, expansions=options.expansions
    )
    return heat_loads(mechanism, elastic_machine, assembled, heated)


def _result(
    model: Model,
    options: StiffnessOptions,
    q: Array,
    loaded: _LoadedMachine,
    limit_diagnostics: tuple[Diagnostic, ...],
) -> Stiffness:
    """Return the public result of a loaded machine."""
    elastic_machine, assembled, compliance = (
        loaded.elastic_machine,
        loaded.assembled,
        loaded.compliance,
    )
    worst = worst_stiffness(compliance.matrix[:, :3, :3])[1]
    in_worst = compliance.displacement[:, :, :3] @ worst[..., None]
    loads = loaded.loads
    is_constrained = bool(assembled.constraints)
    return Stiffness(
        model=model,
        options=options,
        platform=model.platform_position(q),
        tool=elastic_machine.tool_point,
        compliance=compliance.matrix,
        items=compliance.items,
        shares=compliance.shares,
        worst_shares=energy_shares(assembled, in_worst)[1][:, 0],
        deflection=loaded.deflection,
        beams=loads.names,
        axial=loads.axial,
        stress=loads.stress,
        yield_safety=loads.yield_safety,
        buckling_safety=loads.buckling_safety,
        load_factor=loads.load_factor,
        masses=elastic_machine.masses,
        rigid=rigid_parts(model.mechanism, elastic_machine),
        notes=(*elastic_machine.notes, CONSTRAINED_NOTE)
        if is_constrained
        else elastic_machine.notes,
        structure=assembled,
        unit_displacement=compliance.displacement,
        laws=elastic_machine.laws,
        tool_body=elastic_machine.tool_body,
        coordinates=q,
        diagnostics=(
            *_diagnostics(
                assembled, compliance, loaded.deflection, loads, is_loaded=options.loaded
            ),
            *(rise_diagnostics(options.rises) if options.has_heat else ()),
            *limit_diagnostics,
            *omission_diagnostics(model.mechanism),
        ),
        provenance=provenance(
            options=_stated_options(options, loaded.wrench),
            inputs={"machine": model.mechanism.name, "poses": len(q)},
        ),
    )


def _stated_options(options: StiffnessOptions, wrench: Array) -> dict[str, object]:
    """Return the options for the provenance of a result."""
    return {
        "wrench": wrench.tolist(),
        "weightless": options.weightless,
        "loaded": options.loaded,
        "shear": options.shear,
        "temperatures": options.temperatures,
        "expansions": options.expansions,
    }


def _diagnostics(
    assembled: AssembledStructure,
    compliance: ToolCompliance,
    deflection: Array,
    loads: BeamLoads,
    *,
    is_loaded: bool,
) -> Iterator[Diagnostic]:
    """Yield diagnostics of the energy balance, the linearity and the strength."""
    if not is_loaded:
        yield _energy_diagnostic(assembled, compliance)
    size = assembled.structure.length
    yield diagnostic(
        "largest deflection, fraction of the machine's size",
        np.linalg.norm(deflection[:, :3], axis=1).max() / size,
        at_most=MAX_DEFLECTION,
        advice="the linear equations hold only for small deflections; reduce the loads",
    )
    yield diagnostic(
        "largest load as a fraction of the buckling load",
        (1.0 / loads.load_factor).max(),
        at_most=1.0 if is_loaded else MAX_BUCKLING_UTILIZATION,
        advice="reduce the loads"
        if is_loaded
        else "the stiffness is that of the unloaded machine; set `loaded` to include the loads",
    )
    for name, values, advice in (
        ("yield", loads.yield_safety, "choose a larger section or a stronger material"),
        ("buckling", loads.buckling_safety, "choose a rod with a larger bending stiffness"),
    ):
        known = values[~np.isnan(values)]
        if len(known) and np.isfinite(known.min()):
            yield diagnostic(
                f"minimum safety factor against {name}", known.min(), at_least=1.0, advice=advice
            )


def _energy_diagnostic(assembled: AssembledStructure, compliance: ToolCompliance) -> Diagnostic:
    """Return a diagnostic: the energy of all elements compared with the work of unit wrenches."""
    work = np.diagonal(compliance.matrix, axis1=1, axis2=2)
    energy = np.zeros_like(work)
    for _, rows, matrix in assembled.elastic_items:
        local = rows @ compliance.displacement
        energy += np.sum(local * (matrix @ local), axis=1)
    scale = np.abs(work).max(axis=0)
    error = np.abs(energy - work) / np.where(scale > 0.0, scale, 1.0)
    return diagnostic(
        "relative difference between strain energy and external work of unit wrenches",
        error.max(),
        at_most=ENERGY_TOLERANCE,
        advice="check stiffnesses that differ by many orders of magnitude",
    )
