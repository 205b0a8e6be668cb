"""Payload and friction tracked along logs of a Delta in closed form (NumPy), and the same as C."""

import json
import shutil
import subprocess
from dataclasses import replace

import delta_by_hand as delta
import numpy as np
import pytest

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.export.microcontroller import export_tracker
from tauloop.identification import PreparationOptions
from tauloop.identification.online import CausalFilters, RecursiveFit, TrackOptions
from tauloop.logs import write_log
from tauloop.model import Model

PERIOD, PICKED_UP, PAYLOAD = 0.002, 3.0, 0.5
NAMES = ["leg1.motor", "leg2.motor", "leg3.motor"]
OPTIONS = TrackOptions(max_payload=2.0)
FILTERS = CausalFilters(
    period=PERIOD, motion=250.0, rows=60.0, interval=10, standstill=(0.01, 0.01, 0.01)
)


def recorded(seed, *, duration=6.0, payload=0.0, noise=0.05, motion=None, friction=None):
    """Return a log with a payload (kg) from `PICKED_UP` on, and further friction (N m) as a function of time."""
    rng = np.random.default_rng(1000 + seed)
    motion = motion or delta.multisine(seed)
    time = PERIOD * np.arange(round(duration / PERIOD))
    forces = delta.forces(motion, time, payload * (time >= PICKED_UP))
    if friction is not None:
        velocity = (motion(time + 1e-4) - motion(time - 1e-4)) / 2e-4
        forces += friction(time)[:, None] * np.sign(velocity)
    sensors = tl.logs.Sensors(resolution=[1e-5] * 3, force_noise=[noise] * 3)
    return tl.logs.measure(
        time, motion(time), forces, NAMES, ["rad"] * 3, ["N m"] * 3, sensors, rng
    )


@pytest.fixture(scope="module")
def model():
    return Model(delta.machine())


@pytest.fixture(scope="module")
def saved(model):
    preparation = PreparationOptions(cutoff=20.0, trim=100, decimation=5)
    return tl.identify(
        model, recorded(100, duration=20.0), tl.IdentificationOptions(preparation=preparation)
    )


def test_the_closed_form_is_the_machine(model):
    time, motion, step = np.arange(0.0, 1.0, 0.01), delta.multisine(1), 1e-4
    before, now, after = (motion(time + shift) for shift in (-step, 0.0, step))
    rates = (after - before) / (2 * step), (after - 2 * now + before) / step**2
    assert model.actuators.inverse_dynamics(now, *rates).force == pytest.approx(
        delta.forces(motion, time), abs=1e-6
    )


def after_half_a_second(track):
    estimates, deviations = track.of("payload")
    place = np.argmin(np.abs(track.time - (PICKED_UP + 0.5)))
    return estimates[place], deviations[place]


@pytest.mark.parametrize("seed", range(3))
def test_a_payload_is_known_to_five_percent_within_half_a_second(model, saved, seed):
    track = tl.track_parameters(model, recorded(seed, payload=PAYLOAD), saved, OPTIONS)
    assert track.status.value == "ok", track.advice
    estimate, _ = after_half_a_second(track)
    assert estimate == pytest.approx(PAYLOAD, rel=0.05)


@pytest.mark.nightly
def test_a_payload_is_known_in_23_of_24_seeds_and_its_interval_covers(model, saved):
    estimates = []
    covered = []
    for seed in range(24):
        track = tl.track_parameters(model, recorded(seed, payload=PAYLOAD), saved, OPTIONS)
        estimates.append(after_half_a_second(track)[0])
        settled = track.time > PICKED_UP + 0.5
        values, deviations = track.of("payload")
        covered.append(np.mean(np.abs(values[settled] - PAYLOAD) < 1.96 * deviations[settled]))
    errors = np.abs(np.array(estimates) - PAYLOAD) / PAYLOAD
    assert (errors < 0.05).sum() >= 23
    assert np.mean(covered) > 0.93


def test_everything_else_is_held_by_the_saved_fit(model, saved):
    track = tl.track_parameters(model, recorded(0, payload=PAYLOAD), saved, OPTIONS)
    fit = saved.whole_log or saved.identification
    for name, value, deviation in zip(
        fit.base.base, fit.values, fit.standard_deviations, strict=True
    ):
        if not name.representative.endswith(("coulomb", "viscous")):
            assert abs(track.final[name.representative] - value) < 3 * deviation


def test_friction_that_grows_is_followed(model, saved):
    grown = recorded(4, duration=30.0, friction=lambda time: np.minimum(0.01 * time, 0.15))
    track = tl.track_parameters(model, grown, saved, OPTIONS)
    coulomb, deviation = track.of("leg1.motor.coulomb")
    assert coulomb[-1] == pytest.approx(delta.COULOMB + 0.15, abs=0.03)
    assert abs(coulomb[-1] - delta.COULOMB - 0.15) < 3 * deviation[-1]
    assert abs(track.of("payload")[0][-1]) < 0.05  # friction is not taken for a payload


def test_at_rest_the_estimates_are_frozen(model, saved):
    swing = delta.multisine(2)

    def slowing(time):
        """Time of the swing, which slows down to a stop from 4 to 6 s."""
        share = np.clip((time - 4.0) / 2.0, 0.0, 1.0)
        return np.where(time < 4.0, time, 4.0 + 2.0 * (share - share**3 + share**4 / 2.0))

    still = recorded(2, duration=12.0, payload=PAYLOAD, motion=lambda time: swing(slowing(time)))
    track = tl.track_parameters(model, still, saved, OPTIONS)
    estimates, deviations = track.of("payload")
    assert track.frozen[-1].any()
    assert estimates[-1] == pytest.approx(PAYLOAD, rel=0.05)
    at_rest = track.time > 6.2
    assert np.ptp(estimates[at_rest]) < 1e-9
    assert deviations[-1] < 1.1 * OPTIONS.max_payload


def test_the_rows_of_an_identification_give_its_values(saved):
    fit, data = saved.identification, saved.training
    kept, columns = data.kept, fit.base.independent
    recursive = RecursiveFit(
        [item.representative for item in fit.base.base],
        noise=1.0 / fit.estimate.weights[: len(kept)],
    )
    for row, force in zip(
        data.regressor[:, kept][:, :, columns], data.forces[:, kept], strict=True
    ):
        recursive.update(row, force)
    assert recursive.values == pytest.approx(
        fit.values, rel=1e-10, abs=1e-10 * np.abs(fit.values).max()
    )


def test_a_fit_from_its_file_tracks_alike(model, saved, tmp_path):
    log = recorded(7, payload=PAYLOAD, duration=4.0)
    path = saved.write_json(tmp_path / "identified.json")
    from_file = tl.track_parameters(model, log, path, OPTIONS)
    assert from_file.estimates == pytest.approx(
        tl.track_parameters(model, log, saved, OPTIONS).estimates, rel=1e-9
    )
    content = json.loads(json.dumps(from_file.as_dict()))
    assert {item["name"] for item in content["tracked"]} == set(from_file.names)


def test_a_fit_of_another_machine_is_refused(saved):
    with pytest.raises(InputError, match="not a parameter of this machine"):
        tl.track_parameters(tl.load("five_bar"), recorded(0, duration=1.0), saved, OPTIONS)


def test_redundant_actuators_are_refused(saved):
    with pytest.raises(InputError, match="redundant"):
        tl.track_parameters(tl.load("cable_robot"), recorded(0, duration=1.0), saved, OPTIONS)


def test_nothing_to_track_is_refused():
    with pytest.raises(InputError, match="max_payload and friction_change are both 0"):
        TrackOptions(max_payload=0.0, friction_change=0.0)


MAIN = r"""
#include "arm_tracker.h"
#include <stdio.h>
int main(void)
{
    static arm_tracker tracker;
    double position[3], force[3], value[ARM_TRACKER_PARAMETERS];
    int k, made;
    arm_tracker_begin(&tracker);
    while (scanf("%lf %lf %lf %lf %lf %lf", position, position + 1, position + 2, force, force + 1, force + 2) == 6) {
        made = arm_tracker_step(&tracker, position, force);
        if (made < 0) {
            printf("refused\n");
        } else if (made) {
            arm_tracker_values(&tracker, value);
            for (k = 0; k < ARM_TRACKER_PARAMETERS; ++k) printf("%.17g ", value[k]);
            for (k = 0; k < ARM_TRACKER_TRACKED; ++k) printf("%.17g ", tracker.deviation[k]);
            printf("\n");
        }
    }
    return 0;
}
"""


def compiled(export, folder, compiler=("gcc", "-std=c99", "-O1")):
    (folder / "main.c").write_text(MAIN, encoding="ascii")
    for name, text in export.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    flags = [
        "-Wall",
        "-Wextra",
        "-Werror",
        "-fsanitize=undefined",
        "-fno-sanitize-recover=all",
    ]
    sources = ["main.c", "arm_tracker.c", "arm.c"]
    subprocess.run([*compiler, *flags, "-o", "main", *sources, "-lm"], cwd=folder, check=True)
    return folder / "main"


def lines_of(program, rows):
    text = "\n".join(" ".join(map(repr, row)) for row in rows.tolist())
    return subprocess.run(
        [program], input=text, capture_output=True, text=True, check=True
    ).stdout.splitlines()


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc, and it is not here")
def test_the_tracker_in_c_gives_the_same_estimates(model, saved, tmp_path):
    log = recorded(3, payload=PAYLOAD, duration=5.0)
    position, force = tl.logs.samples(log, "position"), tl.logs.samples(log, "force")
    expected = tl.track_parameters(model, log, saved, OPTIONS)
    export = export_tracker(model, saved, OPTIONS, filters=expected.filters, name="arm")
    program = compiled(export, tmp_path)
    lines = lines_of(program, np.hstack([position, force]))
    values = np.array([[float(number) for number in line.split()] for line in lines])
    count = len(expected.final)
    places = [list(expected.final).index(name) for name in expected.names]
    assert values[:, places] == pytest.approx(expected.estimates, abs=1e-9)
    assert values[:, count:] == pytest.approx(expected.deviations, rel=1e-9)
    spoilt = np.hstack([position, force])[:50]
    spoilt[20, 1] = np.nan
    assert lines_of(program, spoilt).count("refused") == 1
    beyond = np.hstack([position, force])[:50]
    beyond[:, :3] = [0.0, 0.0, np.pi]
    assert "refused" in lines_of(program, beyond)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++, and it is not here")
def test_the_tracker_is_a_program_in_cpp_too(model, saved, tmp_path):
    export = export_tracker(model, saved, OPTIONS, filters=FILTERS, name="arm")
    program = compiled(export, tmp_path, ("g++", "-x", "c++", "-std=c++17", "-O0"))
    assert lines_of(program, np.zeros((1, 6))) == []


def test_filters_of_another_machine_are_refused(model, saved):
    with pytest.raises(InputError, match="2 standstill speeds for 3 motors"):
        export_tracker(model, saved, OPTIONS, filters=replace(FILTERS, standstill=(0.01, 0.01)))
    with pytest.raises(InputError, match="period"):
        replace(FILTERS, period=0.0)


def test_drop_outs_of_an_encoder_make_the_track_doubtful(model, saved):
    log = recorded(5, duration=4.0)
    values = log["position.leg1.motor"].to_numpy().copy()
    values[[700, 1300]] = 0.0
    log["position.leg1.motor"] = log["position.leg1.motor"].copy(data=values)
    track = tl.track_parameters(model, log, saved, OPTIONS)
    assert track.status.value == "doubtful"
    assert any("position.leg1.motor" in line for line in track.advice)


def test_forces_that_the_recording_knows_are_taken_off(model, saved, tmp_path):
    """A spring that the machine file lacks looks like a payload, unless the recording states it."""
    log = recorded(0, payload=PAYLOAD)
    expected = tl.track_parameters(model, log, saved, OPTIONS)
    for name in NAMES:
        log[f"force.{name}"].values += 1.5 + 0.8 * log[f"position.{name}"].values
    write_log(tmp_path / "log.csv", log)
    plain = "format: tauloop-log/1\nfiles: [{path: log.csv}]\n"
    known = "known_forces:\n" + "".join(
        f"  {name}: {{polynomial: [1.5 N m, 0.8 N m/rad]}}\n" for name in NAMES
    )
    (tmp_path / "plain.yaml").write_text(plain, encoding="utf-8")
    (tmp_path / "known.yaml").write_text(plain + known, encoding="utf-8")
    track = tl.track_parameters(model, tmp_path / "known.yaml", saved, OPTIONS)
    assert track.status.value == "ok", track.advice
    assert track.estimates == pytest.approx(expected.estimates, abs=1e-6)
    unknown = tl.track_parameters(model, tmp_path / "plain.yaml", saved, OPTIONS)
    assert abs(after_half_a_second(unknown)[0] - PAYLOAD) > 0.1


def test_a_force_at_its_limit_makes_the_track_doubtful(model, saved):
    log = recorded(5, duration=4.0)
    limit = float(np.abs(log[f"force.{NAMES[0]}"]).quantile(0.97))
    log[f"force.{NAMES[0]}"] = log[f"force.{NAMES[0]}"].clip(-limit, limit)
    at_limit = int((np.abs(log[f"force.{NAMES[0]}"]) == limit).sum())
    track = tl.track_parameters(model, log, saved, OPTIONS)
    counts = {item.name: item.value for item in track.diagnostics}
    # runs of five and more
    assert 0.5 * at_limit < counts[f"samples of force.{NAMES[0]} at its limit"] <= at_limit
    assert track.status.value == "doubtful"
    assert any("the drive's force differs from the logged force" in line for line in track.advice)


def test_a_fit_that_found_gains_is_refused(model, saved):
    estimates = replace(tl.identification.BaseEstimates.of(saved), has_gains=True)
    with pytest.raises(InputError, match="gains of the drives"):
        tl.track_parameters(model, recorded(0, duration=1.0), estimates, OPTIONS)
