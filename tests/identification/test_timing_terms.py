"""Logs of a Delta and a five-bar from closed forms in NumPy: no bias from the rates, and what intervals count."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tauloop import IdentificationOptions, Model, identify
from tauloop.compiler.c import Interpreted
from tauloop.identification import MachineIdentification, PreparationOptions

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
#: Mean error of a mass over 24 logs, in standard deviations; by chance it is 0.2.
BIAS = 0.5
#: Without noise masses are off by this share, that of the ends of the filter; central differences
#: make 2e-2.
EXACT = 1e-6
#: Options that are not chosen by validation, which takes most of the time and is tested elsewhere.
PREPARED = {"cutoff": 30.0, "decimation": 5}


@pytest.fixture
def closed_form(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("closed_form")


@pytest.fixture(scope="module")
def models() -> dict[str, Model]:
    return {}


def model_of(truth: Any, models: dict[str, Model]) -> Model:
    if truth.name not in models:
        models[truth.name] = Model(truth.mechanism, evaluator=Interpreted())
    return models[truth.name]


def identified(
    truth: Any, models: dict[str, Model], log: Any, **preparation: Any
) -> MachineIdentification:
    options = IdentificationOptions(
        unknowns=truth.parameters, preparation=PreparationOptions(**{"trim": 50, **preparation})
    )
    return identify(model_of(truth, models), log, options)


def errors_of(truth: Any, models: dict[str, Model], result: MachineIdentification) -> np.ndarray:
    fitted = result.identification
    values = truth.parameter_values(result.training.unknowns, model_of(truth, models))
    return np.asarray(fitted.values - fitted.base.regroup(values))


def masses_of(result: MachineIdentification) -> list[bool]:
    return [
        parameter.representative in ("plate_mass", "forearm_mass")
        for parameter in result.identification.base.base
    ]


@pytest.mark.parametrize("name", ["five_bar", "delta"])
def test_closed_forms_are_the_models_forces(
    closed_form: ModuleType, models: dict[str, Model], name: str
) -> None:
    truth = getattr(closed_form, name)()
    motion = truth.motion.at(np.arange(0.0, 2.0, 0.05))
    forces = model_of(truth, models).actuators.inverse_dynamics(*motion).force
    np.testing.assert_allclose(truth.forces(motion), forces, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("rate", [500.0, 200.0, 100.0])
def test_without_noise_rates_make_no_bias(
    closed_form: ModuleType, models: dict[str, Model], rate: float
) -> None:
    truth = replace(closed_form.delta(), coulomb=np.zeros(3))
    log = closed_form.log_of(
        truth, np.random.default_rng(0), rate=rate, step=0.0, noise=0.0, seconds=10.0
    )
    result = identified(truth, models, log)
    errors = errors_of(truth, models, result) / result.identification.values
    assert np.abs(errors[masses_of(result)]).max() < EXACT


@pytest.mark.nightly
@pytest.mark.parametrize("rate", [500.0, 200.0, 100.0])
def test_masses_have_no_bias_at_any_rate(
    closed_form: ModuleType, models: dict[str, Model], rate: float
) -> None:
    truth = closed_form.delta()
    off = []
    for seed in range(24):
        log = closed_form.log_of(truth, np.random.default_rng(seed), rate=rate)
        result = identified(truth, models, log)
        assert result.status.value == "ok"
        off.append(errors_of(truth, models, result) / result.identification.standard_deviations)
    assert np.abs(np.mean(off, axis=0))[masses_of(result)].max() < BIAS


def test_accelerations_that_jump_at_reversals_are_no_stribeck_friction(
    closed_form: ModuleType, models: dict[str, Model]
) -> None:
    """A controlled motor with dry friction: a filter of the motion alone smooths what the forces keep."""
    plain = closed_form.delta()
    truth = replace(plain, motion=closed_form.Jolted(smooth=plain.motion, jump=8.0))
    log = closed_form.log_of(truth, np.random.default_rng(1), seconds=10.0)
    result = identified(truth, models, log, cutoff=30.0, decimation=5)
    assert not [problem for problem in result.data_findings if "Stribeck" in problem.what]


def test_a_late_force_is_a_finding_with_its_size(
    closed_form: ModuleType, models: dict[str, Model]
) -> None:
    truth = closed_form.delta()
    log = closed_form.log_of(truth, np.random.default_rng(2), late=2e-3, seconds=10.0)
    terms = [
        term
        for term in identified(truth, models, log, **PREPARED).identification.timing
        if term.is_shown
    ]
    (late,) = [term for term in terms if term.kind == "delay" and len(term.outputs) == 3]
    assert late.value == pytest.approx(2e-3, abs=4.0 * late.deviation)


def test_ends_that_a_filter_made_smaller_do_not_count(
    closed_form: ModuleType, models: dict[str, Model]
) -> None:
    """They have the late force, but its derivative is not known there."""
    truth = replace(closed_form.delta(), coulomb=np.zeros(3))
    log = closed_form.log_of(
        truth, np.random.default_rng(2), late=1e-3, noise=1e-5, step=0.0, seconds=10.0
    )
    terms = identified(truth, models, log, **PREPARED).identification.timing
    (late,) = [term for term in terms if term.kind == "delay" and term.is_of_all]
    assert late.value == pytest.approx(1e-3, rel=5e-3)


def bending_of_all(result: MachineIdentification) -> Any:
    (bent,) = [
        term for term in result.identification.timing if term.kind == "bending" and term.is_of_all
    ]
    return bent


def test_without_noise_the_fit_with_bending_has_no_bias(
    closed_form: ModuleType, models: dict[str, Model]
) -> None:
    """Droop under the weight moves masses as swinging does: by 0.4 %, fitted without it."""
    truth = replace(closed_form.delta(), coulomb=np.zeros(3))
    log = closed_form.log_of(
        truth, np.random.default_rng(0), step=0.0, noise=1e-6, bending=60.0, seconds=10.0
    )
    result = identified(truth, models, log, **PREPARED)
    bent = bending_of_all(result)
    assert bent.value == pytest.approx(1.0 / (2.0 * np.pi * 60.0) ** 2, rel=0.03)
    errors = errors_of(truth, models, result) / result.identification.values
    left = errors + bent.shift / result.identification.values
    masses = masses_of(result)
    assert np.abs(errors[masses]).max() > 3e-3
    assert np.abs(left[masses]).max() < 0.3 * np.abs(errors[masses]).max()


def test_a_transmission_that_bends_is_a_finding_with_its_stiffness(
    closed_form: ModuleType, models: dict[str, Model]
) -> None:
    truth = closed_form.delta()
    log = closed_form.log_of(truth, np.random.default_rng(3), bending=60.0)
    result = identified(truth, models, log, decimation=5)
    bent = bending_of_all(result)
    assert bent.is_shown
    assert bent.stiffnesses[0] == pytest.approx(
        closed_form.stiffness_of(truth, 60.0)[0], rel=4.0 * bent.deviation / bent.value
    )
    assert result.status.value == "doubtful"
    (problem,) = result.identification.timing_problems
    assert "its stiffness is" in problem.what
    assert "plate_mass is 0.619" in problem.what.partition("With this term in the fit")[2]


def test_bending_that_residuals_do_not_show_is_counted(
    closed_form: ModuleType, models: dict[str, Model]
) -> None:
    truth = closed_form.delta()
    log = closed_form.log_of(truth, np.random.default_rng(3), bending=150.0)
    result = identified(truth, models, log, **PREPARED)
    bent = bending_of_all(result)
    assert not bent.is_shown
    assert (np.diag(bent.expected_square) <= result.identification.standard_deviations**2).all()
    assert np.diag(bent.expected_square).max() > 0.0


def test_a_sound_log_has_no_timing_finding(
    closed_form: ModuleType, models: dict[str, Model]
) -> None:
    truth = closed_form.five_bar()
    log = closed_form.log_of(truth, np.random.default_rng(4), seconds=10.0)
    result = identified(truth, models, log, **PREPARED)
    assert result.status.value == "ok"
    assert not result.identification.timing_problems
    (loss,) = [
        item
        for item in result.diagnostics
        if "the low-pass removes at the highest frequency of the motion" in item.name
    ]
    assert loss.value is not None
    assert loss.value < 1e-3


def test_a_cut_off_in_the_motion_is_doubtful(
    closed_form: ModuleType, models: dict[str, Model]
) -> None:
    truth = closed_form.five_bar()
    log = closed_form.log_of(truth, np.random.default_rng(5), seconds=10.0)
    result = identified(truth, models, log, decimation=5, cutoff=2.0, order=1)
    assert result.status.value != "ok"
    (loss,) = [
        item
        for item in result.diagnostics
        if "the low-pass removes at the highest frequency of the motion" in item.name
    ]
    assert not loss.is_good
