"""Machines with drive lines as FMUs: friction that sticks, gaps, and the instants at which they close."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from compiled_machines import compilers
from extras import extra
from fmus import Instance
from machine_texts import WITHOUT_COULOMB, shipped_text

from tauloop.compiler.c.calling.compiler import PORTABLE_FLAGS, Compiler
from tauloop.compiler.c.calling.library import require_compiler
from tauloop.drives.machine.circle import Circle, circle_trajectory
from tauloop.drives.machine.path import PATH_INTEGRATOR, DrivenMachine, PathRun
from tauloop.export.fmu import FmuExport, FmuOptions, export_fmu
from tauloop.export.fmu.plant import plant_functions
from tauloop.formats import load, loads
from tauloop.integrate.sampled import CompiledSamples, SampledRun, SampledTrace
from tauloop.mechanism.model import Mechanism
from tauloop.model import Model

fmpy = extra("fmpy")
CVodeSolver = extra("fmpy.sundials").CVodeSolver
validate_fmu = extra("fmpy.validation").validate_fmu

pytestmark = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)
#: Time between samples, s: a power of two, of which importers' sums are exact.
STEP = 2.0**-10
#: Bars: split steps, and steps of CVODE, over the largest state; instants of contacts, s.
SPLIT, OTHER_INTEGRATOR, SAME_INSTANT = 1e-12, 1e-7, 1e-8
#: Split steps are other steps, and differ by their errors: ten times less at a tenth of the
#: tolerance. At this one rounding is left, which stiff contacts make larger: some times what the
#: last bit of the torques does.
FINE, LAST_BITS, ROUNDED = 1e-13, 4, 5e-12
RACKS = Path(__file__).parents[2] / "examples" / "gantry_tau_racks" / "gantry_tau_racks.yaml"
LINE = """{load: crank, inertias: {rotor: {inertia: 2e-5 kg m^2,
  friction: {viscous: 1e-5 N m s/rad, coulomb: 0.01 N m}}, wheel: {inertia: 1e-4 kg m^2,
  lugre: {stiffness: 50 N m/rad, damping: 0.1 N m s/rad, viscous: 0.01 N m s/rad, coulomb: 0.02 N m,
  static: 0.03 N m, stribeck: 0.1 rad/s}}}, connections: {gear: {first: rotor, second: wheel, gear: 10,
  BACKLASH: {gap: 0.2 deg, stiffness: 2000 N m/rad, damping: 2 N m s/rad}},
  flange: {first: wheel, second: crank, rigid: yes}}, motors: {m: {on: rotor, torque: 0.5 N m}},
  encoders: {e: {on: rotor}}, control: {position: {encoder: e, gain: 30}, speed: {encoder: e, gain: 0.01}, motor: m,
  sample_time: 1 ms}}"""


def five_bar(backlash: str) -> Mechanism:
    """A five-bar with a geared motor, sticking, with play and bristles; the other actuator acts directly."""
    line = f"motor_1: {{drive: {LINE.replace('BACKLASH', backlash)}, "
    return loads(shipped_text("five_bar", WITHOUT_COULOMB, ("motor_1: {", line)))


class PortableCode:
    """What `CompiledSamples` asks of an evaluator: the compiler with the options of FMUs."""

    folder = None

    def is_large(self, samples: float) -> bool:
        return True

    def compiler(self, samples: float) -> Compiler:
        return replace(require_compiler(), flags=PORTABLE_FLAGS)


class Case:
    """A machine as an FMU, and the same equations in Tauloop's own loop around its integrator, compiled alike.

    Attributes:
        torques: of every sample (N, n).
        first: values at the start that differ from the FMU's.
    """

    def __init__(
        self, mechanism: Mechanism, torques: np.ndarray, folder: Path, first: dict[str, float]
    ) -> None:
        self.model, self.torques, self.first = Model(mechanism), torques, first
        options = FmuOptions(tolerance=1e-11)
        self.export: FmuExport = export_fmu(self.model, options, folder=folder)
        self.states = [state.name for state in self.export.variables.states]
        self.inputs = [variable.name for variable in self.export.variables.inputs]
        self.modes = [mode.name for mode in self.export.variables.modes]
        self.method = options.integrator.method
        self.functions = plant_functions(self.model, self.method.atol)

    @cache  # noqa: B019 (it lives as long as the tests of this file)
    def own(self, tolerance: float = 1e-11) -> SampledTrace:
        """The run of Tauloop's own loop."""
        system = self.functions.system
        samples = CompiledSamples(system, PortableCode())
        values = {variable.name: variable.start for variable in self.export.variables.parameters}
        course = SampledRun(
            period=STEP,
            inputs=self.torques,
            y=self.steps(0)[0],
            held=np.zeros(0),
            q=self.model.assembly.q,
            p=np.array([values[name] for name in self.functions.constants], dtype=float),
            method=FmuOptions(tolerance=tolerance).integrator.method,
            max_steps=10**7,
        )
        trace = samples(course)
        assert trace.is_whole
        return trace

    def asked(self, k: int) -> dict[str, float]:
        return dict(zip(self.inputs, map(float, self.torques[k]), strict=True))

    def steps(
        self,
        count: int,
        splits: int = 1,
        tolerance: float | None = None,
        *,
        early: bool = False,
        factor: float = 1.0,
    ) -> np.ndarray:
        """States at samples (count + 1, n) of co-simulation; maybe returning early, or with other torques."""
        calls = [0]

        def update(*arguments: object) -> None:
            calls[0] += 1
            arguments[6][0], arguments[7][0] = calls[0] % 3 == 0, arguments[1]  # type: ignore[index]

        further = {"early_return_allowed": True, "intermediate_update": update} if early else {}
        instance = Instance(self.export.written[0], **further)
        instance.begin(self.first | self.asked(0), tolerance=tolerance)
        rows = [instance.get(self.states)]
        for k in range(count):
            instance.set({name: factor * torque for name, torque in self.asked(k).items()})
            for part in range(splits):
                done = instance.step((k + part / splits) * STEP, STEP / splits)
            while early and done[3] < (k + 1) * STEP:
                done = instance.step(done[3], (k + 1) * STEP - done[3])
            rows.append(instance.get(self.states))
        instance.free()
        return np.array(rows)

    @property
    def indicators(self) -> int:
        """Number of event indicators."""
        return len(self.export.variables.guards)

    def exchanged(
        self, count: int, tolerance: float = 1e-10
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Times (N,), states and modes, recorded at samples and behind events of model exchange in CVODE."""
        instance = Instance(self.export.written[0], "ModelExchange")
        instance.begin(self.first | self.asked(0))
        instance.update()
        instance.fmu.enterContinuousTimeMode()
        solver = CVodeSolver(
            nx=len(self.states),
            nz=self.indicators,
            get_x=instance.fmu.getContinuousStates,
            set_x=instance.fmu.setContinuousStates,
            get_dx=instance.fmu.getContinuousStateDerivatives,
            get_z=instance.fmu.getEventIndicators,
            get_nominals=instance.fmu.getNominalsOfContinuousStates,
            set_time=instance.fmu.setTime,
            input=_Held(),
            startTime=0.0,
            relativeTolerance=tolerance,
            maxNumSteps=20_000,
        )
        rows, time = [], 0.0
        for k in range(count):
            instance.fmu.enterEventMode()
            instance.set(self.asked(k))
            instance.update()
            instance.fmu.enterContinuousTimeMode()
            solver.reset(time)
            rows.append((time, instance.get(self.states), instance.get(self.modes)))
            while time < (k + 1) * STEP:
                is_event, _, time = solver.step(time, (k + 1) * STEP)
                instance.fmu.setTime(time)
                instance.fmu.completedIntegratorStep()
                if is_event:
                    instance.fmu.enterEventMode()
                    assert not instance.update()[0]
                    instance.fmu.enterContinuousTimeMode()
                    solver.reset(time)
                    rows.append((time, instance.get(self.states), instance.get(self.modes)))
        rows.append((time, instance.get(self.states), instance.get(self.modes)))
        times, states, modes = zip(*rows, strict=True)
        return np.array(times), np.array(states), np.array(modes)


class _Held:
    """Inputs that do not change within a sample."""

    def apply(self, time: float) -> None:
        """Nothing."""


@pytest.fixture(scope="module", params=["backlash", "exact_backlash"])
def line(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    time = np.arange(129) * STEP
    torques = np.stack(
        [0.4 * np.sin(2 * np.pi * 30 * time), 0.5 * np.cos(2 * np.pi * 6 * time)], axis=1
    )
    return Case(five_bar(request.param), torques, tmp_path_factory.mktemp("line"), {})


@pytest.fixture(scope="module")
def racks(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """The Gantry-Tau with racks, driven by the torques that its own control asks for on a circle."""
    mechanism = load(RACKS)
    machine = DrivenMachine(mechanism)
    circle = circle_trajectory(
        machine.model, Circle(columns=("platform.x", "platform.y"), radius=0.02, speed=0.2)
    )
    run = PathRun(machine, circle, None, 0.1)
    held = machine.runner(run.sampled_run(PATH_INTEGRATOR)).held
    columns, at = [], 0
    for line in machine.system.lines:
        at += line.held_size
        columns += range(at - len(line.line.motors), at)
    start = dict(
        zip(machine.model.platform.ports.position.columns, run.platform[0].tolist(), strict=True)
    )
    return Case(mechanism, held[:1025, columns], tmp_path_factory.mktemp("racks"), start)


def contacts(times: np.ndarray, modes: np.ndarray) -> np.ndarray:
    """Instants at which modes change."""
    flips = np.flatnonzero((modes[1:] != modes[:-1]).any(axis=1))
    return np.asarray(times[flips + 1])


def check(case: Case, count: int) -> None:
    """Co-simulation to the last bit, early returns likewise, and split steps but for rounding."""
    assert validate_fmu(str(case.export.written[0])) == []
    own = case.own().states[: count + 1]
    assert case.own().events > 6
    largest = np.abs(own).max()
    assert (case.steps(count) == own).all()
    whole, early = (case.steps(count, tolerance=FINE, early=early) for early in (False, True))
    assert (whole == case.own(FINE).states[: count + 1]).all()
    assert (early == whole).all()
    split = np.abs(case.steps(count, 3, tolerance=FINE) - whole).max()
    last_bit = np.abs(case.steps(count, tolerance=FINE, factor=1 + 2.0**-52) - whole).max()
    assert last_bit < ROUNDED * largest
    assert split < max(SPLIT * largest, LAST_BITS * last_bit)


def check_exchange(case: Case, count: int, tolerance: float) -> None:
    """Model exchange in CVODE, and instants of contacts, which are those of co-simulation."""
    own = case.own().states[: count + 1]
    times, states, modes = case.exchanged(count, tolerance)
    rows = [int(np.flatnonzero(np.abs(times - k * STEP) < 1e-12)[-1]) for k in range(count + 1)]
    assert np.abs(states[rows] - own).max() < OTHER_INTEGRATOR * np.abs(own).max()
    met = contacts(times, modes)
    seen: list[tuple[float, np.ndarray]] = []
    instance: Instance | None = None

    def update(*arguments: object) -> None:
        assert instance is not None
        seen.append((float(arguments[1]), instance.get(case.modes)))  # type: ignore[arg-type]

    instance = Instance(case.export.written[0], intermediate_update=update)
    instance.begin(case.first | case.asked(0))
    for k in range(count):
        seen.append((k * STEP, instance.get(case.modes)))
        instance.set(case.asked(k))
        instance.step(k * STEP, STEP)
    instance.free()
    # a flip is seen behind the step that follows the event
    instants = np.array([time for time, _ in seen])
    flips = np.flatnonzero((np.diff([modes for _, modes in seen], axis=0) != 0).any(axis=1))
    ours = instants[flips]
    between = ours[np.abs(ours / STEP - np.round(ours / STEP)) > 1e-6]
    assert len(between) > 3
    assert all(np.abs(met - instant).min() < SAME_INSTANT for instant in between)


def test_a_line_with_play_is_our_integrator_to_the_last_bit(line: Case) -> None:
    check(line, 128)


def test_model_exchange_meets_the_same_contacts_at_the_same_instants(line: Case) -> None:
    # behind contacts a rotor swings at 1000 rad/s, where CVODE's errors add up: 6e-7 of its speed
    # at 1e-10
    check_exchange(line, 128, 1e-11)


def test_dry_friction_of_joints_turns_at_events_of_model_exchange(tmp_path: Path) -> None:
    """CVODE meets the zeros of the speeds, at which it jumps; co-simulation is led there by its errors alone."""
    time = np.arange(129) * STEP
    # the first part holds the machine
    torques = np.stack([-1.5 + 2.0 * np.cos(160 * time), 1.5 - 2.0 * np.cos(120 * time)], axis=1)
    torques = np.hstack([torques, np.zeros((len(time), 6))])
    case = Case(load("five_bar"), torques, tmp_path, {})
    turns = [variable.name for variable in case.export.variables.turns]
    assert turns == ["shoulder_1.turns", "shoulder_2.turns"]
    times, states, _ = case.exchanged(128)
    rows = [int(np.flatnonzero(np.abs(times - k * STEP) < 1e-12)[-1]) for k in range(129)]
    whole = case.steps(128, tolerance=1e-12)
    assert np.abs(states[rows] - whole).max() < OTHER_INTEGRATOR * np.abs(whole).max()
    events = np.setdiff1d(np.round(times, 15), np.round(np.arange(129) * STEP, 15))
    assert len(events) > 3
    instance = Instance(case.export.written[0])
    instance.begin(case.first | case.asked(0), tolerance=1e-12)
    now, near = 0.0, []
    for k in range(128):
        instance.set(case.asked(k))
        for end in (*events[(events > k * STEP) & (events < (k + 1) * STEP)], (k + 1) * STEP):
            instance.step(now, end - now)
            now = end
            if end in events:
                speed = instance.get(turns)
                instance.step(now, 1e-7)
                now += 1e-7
                near.append(np.abs(speed / ((instance.get(turns) - speed) / 1e-7)).min())
    assert max(near) < SAME_INSTANT
    instance.free()


def test_encoders_and_signals_are_outputs_with_units(line: Case) -> None:
    variables = {variable.name: variable for variable in line.export.variables.all}
    assert variables["motor_1.e"].unit == "rad"
    assert variables["motor_1.m.torque"].unit == "N m"
    assert variables["motor_1.gear.force"].unit == "N m"
    assert variables["motor_1.m.torque_asked"].causality == "input"
    gap = next(variable for name, variable in variables.items() if name.endswith("gap"))
    assert (gap.causality, gap.unit, gap.start, gap.shown[0]) == (
        "parameter",
        "rad",
        np.radians(0.2),
        "deg",
    )  # type: ignore[index]
    instance = Instance(line.export.written[0])
    instance.begin(line.asked(5))
    measured, rotor, torque = instance.get(
        ["motor_1.e", "motor_1.rotor.position", "motor_1.m.torque"]
    )
    assert measured == rotor
    assert torque == pytest.approx(line.torques[5, 0])
    instance.free()


@pytest.mark.nightly
def test_a_gantry_with_racks_is_our_integrator_over_a_second(racks: Case) -> None:
    check(racks, 1024)


@pytest.mark.nightly
def test_a_gantry_with_racks_in_model_exchange_over_a_second(racks: Case) -> None:
    check_exchange(racks, 1024, 1e-10)
