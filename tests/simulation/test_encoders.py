"""More encoders than freedoms: the best state, what is left, and the encoder that disagrees."""

import ctypes
import subprocess

import numpy as np
import pytest
from compiled_machines import STRICT, compilers
from scipy.optimize import least_squares

import tauloop as tl
from tauloop.export.microcontroller import export_encoder_fit
from tauloop.model import Model
from tauloop.simulation.observers import fit_encoders

#: m or rad.
NOISE = 1e-4
EXTRA = 2
#: Three steps of Gauss and Newton against as many as it takes: among noise, and where an encoder is
#: 5 mm off; m or rad.
SAME, JUMPED = 1e-10, 1e-6


def read(model, q, extra):
    actuators = [actuator.name for actuator in model.mechanism.actuators]
    readings = dict(zip(actuators, model.actuator_position(q).T, strict=True))
    places = [model.topology.coordinate_names.index(name) for name in extra]
    return {**readings, **dict(zip(extra, q[:, places].T, strict=True))}


def passive(model):
    """Joints that no actuator drives; where there are none, what a laser may measure of the platform."""
    driven = {model.topology.q_of_v[i] for i in model.assembly.driven}
    own = set(model.platform.ports.q)
    single = [i for i in model.topology.q_of_v if i >= 0 and i not in driven]
    single.sort(key=lambda i: i in own)
    return [model.topology.coordinate_names[i] for i in single][:EXTRA]


@pytest.mark.parametrize("name", ["five_bar", "delta", "hexapod"])
def test_exact_readings_leave_nothing_and_noise_what_scipy_leaves(name):
    model, rng = Model(tl.load(name)), np.random.default_rng(2)
    q = model.assembly.states[:4]
    extra = passive(model)
    assert len(extra) == EXTRA
    exact = fit_encoders(model, read(model, q, extra), noise=NOISE)
    assert exact.redundancy == EXTRA
    assert np.abs(exact.residual).max() < 1e-9
    assert exact.position == pytest.approx(model.platform_position(q), abs=1e-9)
    noisy = {
        n: value + NOISE * rng.normal(size=len(q)) for n, value in read(model, q, extra).items()
    }
    fitted = fit_encoders(model, noisy, noise=NOISE)
    assert fitted.status.value == "ok"
    # the second way: SciPy's least squares over the actuators' positions, through forward
    # kinematics
    row = np.array([noisy[n][0] for n in fitted.encoders])

    def left(x):
        state = model.forward_kinematics(x, start=q[0]).q[None]
        return (row - np.array([v[0] for v in read(model, state, extra).values()])) / NOISE

    best = least_squares(left, model.actuator_position(q[:1])[0], xtol=1e-14, ftol=1e-14)
    assert fitted.residual[0] / NOISE == pytest.approx(best.fun, abs=1e-4)


def test_an_encoder_with_a_wrong_zero_is_named():
    model = Model(tl.load("delta"))
    q = model.assembly.states[:6]
    extra = passive(model)
    readings = read(model, q, extra)
    bad = extra[1]
    fitted = fit_encoders(model, {**readings, bad: readings[bad] + 50 * NOISE}, noise=NOISE)
    assert fitted.status.value == "doubtful"
    assert bad in fitted.advice[0]
    assert f"residual.{bad}" in fitted.to_pandas().columns


def test_without_more_encoders_than_freedoms_there_is_no_diagnostics():
    model = Model(tl.load("five_bar"))
    fitted = fit_encoders(model, read(model, model.assembly.states[:2], []))
    assert fitted.redundancy == 0
    assert fitted.diagnostics[0].value is None


def test_readings_that_do_not_fit_are_refused_at_once():
    model = Model(tl.load("five_bar"))
    with pytest.raises(tl.InputError) as error:
        fit_encoders(model, {"elbow9": 1.0})
    assert len(error.value.problems) == 3
    readings = read(model, model.assembly.states[:2], [])
    with pytest.raises(tl.InputError) as error:
        fit_encoders(model, {**readings, next(iter(readings)): [1.0]}, noise=-1.0)
    assert len(error.value.problems) == 2


MACHINES = (
    "five_bar",
    *(pytest.param(name, marks=pytest.mark.nightly) for name in ("delta", "hexapod", "rcid")),
)


@pytest.mark.skipif(not compilers(), reason="needs a C compiler, and there is none here")
@pytest.mark.parametrize("name", MACHINES)
def test_the_exported_fit_is_that_of_python_sample_by_sample(name, tmp_path):
    """C in a library against the function, whose steps go on until nothing moves; and its own test program."""
    model, rng = Model(tl.load(name)), np.random.default_rng(3)
    extra = passive(model)
    q = model.assembly.states[:4]
    readings = {
        n: value + NOISE * rng.normal(size=len(q)) for n, value in read(model, q, extra).items()
    }
    readings[extra[0]][2] += 50 * NOISE  # one encoder jumps
    fitted = fit_encoders(model, readings, noise=NOISE, start=q[0])
    made = export_encoder_fit(model, tuple(readings), noise=NOISE, folder=tmp_path)
    assert made.manifest["noise"] == dict.fromkeys(readings, NOISE)
    words = [compilers()[0], *STRICT, f"{name}.c"]
    subprocess.run([*words, "-shared", "-fPIC", "-o", "fit.so", "-lm"], cwd=tmp_path, check=True)
    call = ctypes.CDLL(str(tmp_path / "fit.so"))[f"{name}_encoder_fit"]
    for k in range(len(q)):
        inputs = [np.array([values[k] for values in readings.values()]), np.array(q[k])]
        sizes = (model.topology.n_q, len(readings), len(readings), 1, 4)
        outputs = [np.zeros(size) for size in sizes]
        call(*(ctypes.c_void_p(array.ctypes.data) for array in (*inputs, *outputs)))
        state, residual, standardized, move, health = outputs
        near = SAME if k != 2 else JUMPED
        assert np.abs(state - fitted.q[k]).max() < near
        assert np.abs(residual - fitted.residual[k]).max() < near
        assert standardized == pytest.approx(fitted.standardized[k], abs=near / NOISE)
        assert move < 10 * near
        assert health[0] >= 0
        assert health[1] > 1e-9
        assert (np.abs(standardized).max() > 4) == (k == 2)
        assert k != 2 or np.argmax(np.abs(standardized)) == list(readings).index(extra[0])
    subprocess.run([*words, f"{name}_check.c", "-o", "check", "-lm"], cwd=tmp_path, check=True)
    subprocess.run([tmp_path / "check"], check=True, stdout=subprocess.DEVNULL)


def test_encoders_that_cannot_be_exported_are_refused_at_once():
    with pytest.raises(tl.InputError) as error:
        export_encoder_fit(
            Model(tl.load("five_bar"), free=("tip_mass",)),
            ("elbow9", "motor_1", "motor_1"),
            noise=0.0,
        )
    what = [problem.what for problem in error.value.problems]
    for words in (
        "no actuator or coordinate",
        "free parameters",
        "the leading actuator motor_2 is missing",
        "a name occurs twice",
        "not positive",
    ):
        assert any(words in text for text in what), words
