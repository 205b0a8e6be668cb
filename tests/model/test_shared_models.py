"""Models of the same machine share assembly, programs and machine code; others do not."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import numpy as np
import pytest

import tauloop as tl
from tauloop.compiler.c import Compiled, Interpreted
from tauloop.compiler.c.calling.evaluator import Evaluator
from tauloop.equations.assembly.freedoms.locks import Locks
from tauloop.model.model import ASSEMBLIES

FIVE_BAR_PARAMETER = tl.load("five_bar").parameters.names[0]


def torque(model):
    position = model.platform_position(model.assembly.q)
    rates = np.full(len(model.assembly.independent), 0.3)
    return model.inverse_dynamics(position, rates, -rates).force


def test_a_second_model_uses_the_programs_of_the_first():
    text = tl.dumps(tl.load("five_bar"))
    first, second = tl.Model(tl.loads(text)), tl.Model(tl.loads(text))
    assert first.assembly is second.assembly
    assert first.platform is second.platform
    assert first.actuators is second.actuators
    assert first.platform is not first.actuators
    np.testing.assert_array_equal(torque(first), torque(second))


def test_functions_by_name_assemble_the_machine_once(monkeypatch):
    import tauloop.model.model as module

    calls = []
    assemble = module.assemble
    monkeypatch.setattr(
        module, "assemble", lambda *parts: calls.append(parts[0]) or assemble(*parts)
    )
    for _ in range(3):
        tl.forward_kinematics("five_bar", [1.9, 1.2])
    assert len(calls) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"free": [FIVE_BAR_PARAMETER]},
        {"formulation": "lagrange"},
        {"evaluator": Interpreted()},
        {"evaluator": Compiled(threads=2)},
    ],
    ids=lambda options: next(iter(options)),
)
def test_other_functions_of_the_same_assembly(options):
    first, second = tl.Model("five_bar"), tl.Model("five_bar", **options)
    assert first.assembly is second.assembly
    assert first.platform is not second.platform
    np.testing.assert_allclose(torque(first), torque(second), rtol=1e-12)


def test_other_machines_and_poses_are_not_shared():
    machine = tl.load("five_bar")
    first = tl.Model(machine)
    name = machine.parameters.names[0]
    changed = machine.with_values({name: 1.001 * machine.parameters[name].value})
    assert tl.Model(changed).assembly is not first.assembly
    assert tl.Model(machine, locks=Locks(spins=False)).assembly is not first.assembly
    elsewhere = first.at(first.assembly.states[1])
    assert elsewhere.platform is not first.platform
    assert tl.Model(machine).assembly is first.assembly  # `at` has not changed it


def test_a_changed_file_is_read_again(tmp_path):
    path, text = tmp_path / "mine.yaml", tl.dumps(tl.load("four_bar"))
    path.write_text(text, encoding="utf-8")
    before = tl.Model(path)
    path.write_text(text.replace("name: four_bar", "name: other_bar"), encoding="utf-8")
    assert tl.Model(path).mechanism.name == "other_bar"
    assert tl.Model(path).assembly is not before.assembly


def test_mutable_evaluators_are_not_shared():
    class Mutable(Evaluator):
        __hash__ = None

        def __eq__(self, other):
            return True

        def kernel(self, function, samples=np.inf):
            return None

        def tracker(self, function, samples=np.inf, *, in_lanes):
            return None

        def wants_code(self, program, samples):
            return False

        def rows(self, *parts):
            raise NotImplementedError

    evaluator = Mutable()
    first, second = (tl.Model("five_bar", evaluator=evaluator) for _ in range(2))
    assert first.platform is not second.platform
    np.testing.assert_allclose(torque(first), torque(second), rtol=1e-12)


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(ASSEMBLIES, "largest", ASSEMBLIES.largest / 15)
    ASSEMBLIES.clear()
    machine = tl.load("four_bar")
    name = machine.parameters.names[0]
    value = machine.parameters[name].value
    for k in range(8):
        tl.Model(machine.with_values({name: value * (1.0 + 1e-6 * k)}))
    velocities = tl.Model(machine).topology.n_v
    assert 2 * velocities <= len(ASSEMBLIES) * velocities <= ASSEMBLIES.largest < 8 * velocities


def test_threads_share_one_set_of_programs():
    ASSEMBLIES.clear()
    with ThreadPoolExecutor(4) as threads:
        models = list(threads.map(lambda _: tl.Model("five_bar"), range(8)))
        forces = list(threads.map(torque, models))
    assert len({id(model.assembly) for model in models}) == 1
    for force in forces:
        np.testing.assert_array_equal(force, forces[0])


def test_a_copy_gives_the_same_results():
    model = tl.Model("five_bar")
    for copy in (pickle.loads(pickle.dumps(tl.Model("five_bar"))), deepcopy(tl.Model("five_bar"))):
        np.testing.assert_allclose(torque(copy), torque(model), rtol=1e-12)


def test_a_used_motion_is_pickled_without_its_code():
    model = tl.Model("five_bar")
    forces = torque(model)
    model.inverse_dynamics(
        [model.platform_position(model.assembly.q)] * 100, *np.zeros((2, 100, 2))
    )
    copy = pickle.loads(pickle.dumps(model))
    assert "platform" in vars(copy)
    np.testing.assert_allclose(torque(copy), forces, rtol=1e-12)
