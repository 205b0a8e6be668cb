"""Studies: sample i depends on seed and i alone; parts hold all that is known; errors name everything with its line."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from compiled_machines import compilers
from extras import extra
from scipy import stats

import tauloop as tl
from tauloop.common.errors import DescriptionError, InputError
from tauloop.common.files import exclusive_lock
from tauloop.study import (
    AccuracyOptions,
    StudyFolder,
    VariedInput,
    accuracy,
    loads_study,
    read_results,
    workers,
)
from tauloop.study.calculations import CALCULATIONS, calculation, scalar
from tauloop.study.folder import MAX_DISTINCT_PROBLEMS
from tauloop.study.variations import SAMPLES_PER_BLOCK, inputs_of
from tauloop.study.workers import compute, own_version

needs_compiler = pytest.mark.skipif(
    not compilers(), reason="needs a C compiler, and there is none here"
)
EXAMPLE = Path(__file__).parents[2] / "examples" / "delta_tolerances"
TOLERANCES = """
format: tauloop-study/1
machine: delta
samples: 300
seed: 3
vary:
  arm_length: {normal: 20 um}
  forearm_length: {uniform: 50 um}
compute: {result: accuracy, options: {poses: 50}}
yield: {largest: {most: 60 um}}
"""
#: Tool errors of two routes differ by the rounding of coordinates of about a metre.
ROUNDING = 1e-13


def columns(folder: Path) -> dict[str, np.ndarray]:
    names = (
        "sample",
        "input.arm_length",
        "input.forearm_length",
        "output.rms",
        "output.largest",
        "problem",
    )
    return {name: StudyFolder(folder).column(name) for name in names}


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    return all(np.array_equal(a[name], b[name]) for name in a)


VARIATIONS = (
    VariedInput(name="x", kind="normal", about=2.0, spread=0.5),
    VariedInput(name="y", kind="uniform", about=-1.0, spread=0.25),
    VariedInput(name="n", kind="list", values=(1.0, 2.0, 3.0)),
    VariedInput(name="word", kind="list", values=("a", "b")),
)


def test_a_sample_depends_on_the_seed_and_its_number_alone():
    whole = inputs_of(VARIATIONS, 5, 0, 3 * SAMPLES_PER_BLOCK + 7)
    for first, last in (
        (0, 1),
        (SAMPLES_PER_BLOCK - 1, SAMPLES_PER_BLOCK + 1),
        (2 * SAMPLES_PER_BLOCK, 3 * SAMPLES_PER_BLOCK),
        (1500, 3000),
    ):
        part = inputs_of(VARIATIONS, 5, first, last)
        for name, values in part.items():
            np.testing.assert_array_equal(values, whole[name][first:last])
    other = inputs_of(VARIATIONS, 6, 0, 10)
    assert not (other["x"] == whole["x"][:10]).any()


def test_draws_have_their_distributions_and_lists_all_their_combinations():
    inputs = inputs_of(VARIATIONS, 1, 0, 30_000)
    assert stats.kstest(inputs["x"], stats.norm(2.0, 0.5).cdf).pvalue > 1e-3
    assert stats.kstest(inputs["y"], stats.uniform(-1.25, 0.5).cdf).pvalue > 1e-3
    assert abs(np.corrcoef(inputs["x"], inputs["y"])[0, 1]) < 4 / np.sqrt(30_000)
    pairs = list(zip(inputs["n"], inputs["word"], strict=True))
    assert pairs[:6] == list(itertools.product((1.0, 2.0, 3.0), ("a", "b")))
    assert pairs[:6] == pairs[6:12]


@needs_compiler
@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("five_bar", ("crank_length", "link_length")),
        pytest.param("delta", ("arm_length", "motor_radius"), marks=pytest.mark.nightly),
        pytest.param("hexapod", ("base_radius",), marks=pytest.mark.nightly),
    ],
)
def test_accuracy_is_that_of_each_machine_alone(name, names):
    """The other route assembles each machine anew and follows it from its reference pose."""
    nominal = tl.load(name)
    rng = np.random.default_rng(1)
    values = {n: nominal.parameters[n].value * (1 + 1e-4 * rng.normal(size=3)) for n in names}
    options = AccuracyOptions(poses=20)
    errors = accuracy(nominal, values, options)
    model = tl.Model(nominal)
    states = tl.kinematics.random_states(model, 20, np.random.default_rng(0))
    intended, p = (
        model.platform.tool(model.platform_position(states.q), start=states.q),
        model.actuator_position(states.q),
    )
    for k in range(3):
        other = tl.Model(nominal.with_values({n: values[n][k] for n in names}))
        there = other.actuators.tool(p, start=states.q)
        distance = np.linalg.norm(there.place - intended.place, axis=1)
        assert errors.largest[k] == pytest.approx(distance.max(), abs=ROUNDING)
        assert errors.mean[k] == pytest.approx(distance.mean(), abs=ROUNDING)
        assert errors.rms[k] == pytest.approx(np.sqrt((distance**2).mean()), abs=ROUNDING)
        # trace of the rotation between them
        turn = np.einsum("nij,nij->n", there.rotation, intended.rotation)
        assert np.cos(errors.rotation[k]) == pytest.approx((turn.min() - 1) / 2, abs=1e-12)


@needs_compiler
def test_a_study_is_the_same_whoever_computes_it_and_goes_on_where_it_stopped(tmp_path):
    extra("pyarrow")
    study, seen = loads_study(TOLERANCES), []
    result = tl.run_study(
        study, tmp_path / "here", progress=lambda done, total: seen.append((done, total))
    )
    assert seen[-1] == (300, 300)
    assert seen == sorted(seen)
    here = columns(tmp_path / "here")
    np.testing.assert_array_equal(here["sample"], np.arange(300))
    direct = accuracy(
        tl.load("delta"),
        {n: here[f"input.{n}"] for n in study.parameters},
        AccuracyOptions(poses=50),
    )
    np.testing.assert_array_equal(direct.largest, here["output.largest"])
    largest = next(item for item in result.scalars if item.name == "largest")
    assert largest.greatest == direct.largest.max()
    assert largest.greatest_inputs["arm_length"] == here["input.arm_length"][largest.greatest_at]
    assert largest.mean == pytest.approx(direct.largest.mean(), rel=1e-14)
    assert largest.quantiles["0.5"] == np.quantile(direct.largest, 0.5)
    assert result.passed == (direct.largest <= 60e-6).sum()
    # two processes, other batches
    with pytest.raises(InputError, match="already contains a study"):
        tl.run_study(study, tmp_path / "here")
    tl.run_study(study, tmp_path / "two", tl.StudyOptions(workers=2))
    assert same(columns(tmp_path / "two"), here)
    # stopped: parts are gone; what is left of one that was being written does not count
    parts = StudyFolder(tmp_path / "two").parts()
    parts[1].path.rename(parts[1].path.with_suffix(".tmp"))
    parts[-1].path.unlink()
    assert read_results(study, tmp_path / "two").samples < 300
    again = tl.run_study(study, tmp_path / "two", tl.StudyOptions(resume=True))
    assert same(columns(tmp_path / "two"), here)
    assert again.scalars == result.scalars
    # nothing counts twice
    shutil.copy(parts[0].path, parts[0].path.with_name("samples-0000000000-0000000002.parquet"))
    with pytest.raises(InputError, match="contains samples that"):
        read_results(study, tmp_path / "two")


def test_a_folder_is_one_studys_and_one_process(tmp_path):
    extra("pyarrow")
    study = loads_study(TOLERANCES)
    folder = StudyFolder(tmp_path / "s")
    with folder.locked():
        folder.begin(study, {"tauloop": "1"}, resume=False)
    other = loads_study(TOLERANCES.replace("seed: 3", "seed: 4"))
    with pytest.raises(InputError) as error:
        folder.begin(other, {"tauloop": "2"}, resume=True)
    assert len(error.value.problems) == 2
    assert "was started with tauloop 1, but this is 2" in str(error.value)
    with (
        exclusive_lock(tmp_path),
        pytest.raises(InputError, match="another process is using this folder"),
        exclusive_lock(tmp_path),
    ):
        pass
    # whoever begins there writes the manifest, and nobody else
    busy = StudyFolder(tmp_path / "busy")
    with busy.locked(), pytest.raises(InputError, match="another process is using this folder"):
        tl.run_study(study, tmp_path / "busy")
    assert busy.manifest == {}


@pytest.fixture
def done(tmp_path: Path) -> tuple[tl.study.Study, Path]:
    """A study whose folder holds four parts, two of them of one size."""
    extra("pyarrow")
    study, folder = loads_study(TOLERANCES), StudyFolder(tmp_path / "s")
    with folder.locked():
        folder.begin(study, {"tauloop": own_version()}, resume=False)
        for first, last in ((0, 10), (10, 20), (20, 60), (60, 300)):
            batch = compute(study, own_version(), first, last)
            folder.write(first, batch.inputs, batch.outcome)
    return study, tmp_path / "s"


@needs_compiler
@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "{}",
        "[]",
        '""',
        '{"format": "tauloop-study-folder/2", "study": "S", "versions": []}',
        '{"format": "x"}',
    ],
)
def test_parts_without_a_manifest_that_says_whose_they_are_are_nobodys(text, done):
    study, folder = done
    manifest = folder / "study.json"
    manifest.unlink() if text is None else manifest.write_text(text.replace("S", study.digest))
    for asked in (study, loads_study(TOLERANCES.replace("seed: 3", "seed: 4"))):
        for resume in (True, False):
            with pytest.raises(InputError, match=r"no study\.json, so the study|is not a manifest"):
                tl.run_study(asked, folder, tl.StudyOptions(resume=resume))


@needs_compiler
def test_parts_that_are_swapped_of_another_study_or_damaged_are_named(done, tmp_path):
    study, folder = done
    names = [part.path.name for part in StudyFolder(folder).parts()]
    parts = {name: (folder / "parts" / name).read_bytes() for name in names}
    other = loads_study(TOLERANCES.replace("seed: 3", "seed: 4"))
    foreign = StudyFolder(tmp_path / "other")
    with foreign.locked():
        foreign.begin(other, {}, resume=False)
        batch = compute(other, own_version(), 0, 10)
        alien = foreign.write(0, batch.inputs, batch.outcome).read_bytes()
    group = extra("pyarrow").parquet.ParquetFile(folder / "parts" / names[3]).metadata.row_group(0)
    column = next(
        c
        for c in map(group.column, range(group.num_columns))
        if c.path_in_schema == "output.largest"
    )
    flipped = bytearray(parts[names[3]])
    flipped[column.dictionary_page_offset + column.total_compressed_size - 9] ^= 1
    for name, content in (
        (names[0], parts[names[1]]),  # of the same size
        (names[0], alien),
        (names[0], parts[names[0]][:200]),
        (names[0], b""),
        (names[3], bytes(flipped)),  # one bit
    ):
        (folder / "parts" / name).write_bytes(content)
        with pytest.raises(InputError, match=r"is damaged|does not match its file name") as error:
            read_results(study, folder)
        assert name in str(error.value)
        (folder / "parts" / name).unlink()
        assert tl.run_study(study, folder, tl.StudyOptions(resume=True)).samples == 300
        shutil.rmtree(folder / "parts")
        (folder / "parts").mkdir()
        for part, bytes_of in parts.items():
            (folder / "parts" / part).write_bytes(bytes_of)
    shutil.rmtree(folder / "parts")
    with pytest.raises(InputError, match="cannot be read"):
        read_results(study, folder)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be created"):
        tl.run_study(study, tmp_path / "file")


@needs_compiler
def test_what_has_a_problem_does_not_pass_and_problems_take_little_memory(tmp_path):
    extra("pyarrow")
    text = TOLERANCES.replace("samples: 300", "samples: 250").replace(
        "uniform: 50 um", "uniform: 100 mm"
    )
    text = text.replace(
        "result: accuracy, options: {poses: 50}", "result: dynamics, options: {pose: z=-0.72}"
    )
    keep = "keep: {force: force/0/0, no: force/0/9}\nyield: {force: {most: 1e3}}"
    result = tl.run_study(loads_study(text.partition("yield")[0] + keep), tmp_path / "s")
    reached = next(item.count for item in result.scalars)
    assert 50 < reached < 250 - MAX_DISTINCT_PROBLEMS
    assert result.passed == 0  # those that close lack what is kept of them
    assert sum(result.problems.values()) == 250
    assert len(result.problems) <= MAX_DISTINCT_PROBLEMS + 1
    assert result.status.value == "doubtful"
    assert all(type(name) is str for name in result.problems)


@needs_compiler
def test_a_machine_outside_the_bounds_of_its_file_has_no_accuracy(tmp_path):
    extra("pyarrow")
    machine = tl.load("delta")
    table = [replace(p, lower=0.26) if p.name == "arm_length" else p for p in machine.parameters]
    bounded = replace(machine, parameters=type(machine.parameters)(tuple(table)))
    lengths = np.array([0.2599, 0.2601])
    kept = calculation("accuracy", bounded, ("arm_length",), {"poses": "5"}, {}).run(
        {"arm_length": lengths}, []
    )
    assert kept.problems == ("a parameter is outside its bounds", "")
    assert np.isnan(kept.values["largest"]).tolist() == [True, False]


@needs_compiler
def test_a_study_without_variations_is_the_machine_itself(tmp_path):
    extra("pyarrow")
    text = "{format: tauloop-study/1, machine: delta, compute: {result: accuracy, options: {poses: 5}}}"
    assert tl.run_study(loads_study(text), tmp_path / "s").scalars[0].greatest == 0.0


SWEEP = """
format: tauloop-study/1
machine: delta
vary:
  forearm_length: {grid: [0.2 m, 0.5 m], steps: 4}
  options.velocity: {list: ["x=0", "x=1"]}
compute: {result: dynamics, options: {pose: "z=-0.45"}}
keep: {force: force/0/0}
whole: [7]
"""


def test_any_commands_result_can_be_swept_and_what_is_refused_has_its_reason(tmp_path):
    extra("pyarrow")
    study = loads_study(SWEEP)
    result = tl.run_study(study, tmp_path / "s")
    folder = StudyFolder(tmp_path / "s")
    force, problem = folder.column("output.force"), folder.column("problem")
    assert study.count == result.samples == 8
    assert np.isnan(force[:2]).all()  # with forearms of 0.2 m it does not close
    assert all(problem[:2])
    assert result.problems[problem[0]] >= 1
    for k in (6, 7):
        machine = tl.load("delta").with_values({"forearm_length": 0.5})
        options = tl.DynamicsOptions(pose="z=-0.45", velocity=f"x={k - 6}")
        assert force[k] == tl.inverse_dynamics(machine, options).forces.force[0, 0]
    whole = json.loads((tmp_path / "s" / "whole" / "sample-0000000007.json").read_text())
    assert scalar(whole, "force/0/0") == force[7]


def test_everything_wrong_with_a_file_is_named_with_its_line():
    text = """format: tauloop-study/1
machine: delta
samples: 3
design: sobol
vary:
  arm_lenght: {normal: 20 um}
  forearm_length: {normal: 20 um, uniform: 1 mm}
  plate_radius: {normal: 20 N}
  motor_radius: {list: [0.2 m]}
  options.possition: {list: [a]}
compute: {result: dynamics, options: {velocitty: x=1}}
yield: {nothing: {most: 1}}
"""
    with pytest.raises(DescriptionError) as error:
        loads_study(text, "s.yaml")
    problems = {(problem.line, problem.where) for problem in error.value.problems}
    wanted = [
        (3, "samples"),
        (6, "vary.arm_lenght"),
        (7, "vary.forearm_length"),
        (8, "vary.plate_radius.normal"),
        (6, "vary"),
        (1, ""),
    ]
    assert not [item for item in wanted if item not in problems], problems
    text = str(error.value)
    for words in (
        "did you mean arm_length",
        "is not a power of two",
        "choose among",
        "no number of the result",
        "possition",
    ):
        assert words in text


HEAD = "format: tauloop-study/1\nmachine: delta\n"
ACCURACY = "compute: {result: accuracy, options: {poses: 5}}\n"
DRAWN = "vary: {arm_length: {normal: 20 um}}\n"


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("samples: 4\n" + ACCURACY, 3, "nothing is random, so all 4 samples would be equal"),
        (
            "vary: {arm_length: {grid: [0.2 m, 0.3 m], steps: 1}}\n" + ACCURACY,
            3,
            "'1' is out of range",
        ),
        (
            "vary: {arm_length: {grid: [0.2 m, 0.3 m], steps: 2, about: 1 m}}\n" + ACCURACY,
            3,
            "about has no effect",
        ),
        ("samples: 4\ndesign: sobol\n" + ACCURACY, 1, "Sobol indices need varied inputs"),
        (
            "samples: 1\ndesign: sobol\n" + DRAWN + ACCURACY,
            3,
            "1 is not a power of two (2 or more)",
        ),
        ("samples: 10\nwhole: [3, 10]\n" + DRAWN + ACCURACY, 4, "there is no sample 10"),
        (
            DRAWN + ACCURACY + "yield: {largest: {least: 1 mm, most: 1 um}}\n",
            5,
            "no sample can pass",
        ),
        (DRAWN + ACCURACY + "yield: {largest: {most: 1 kg}}\n", 5, "where a length"),
        (
            "vary: {options.pose: {list: [z=-0.5]}}\n"
            "compute: {result: dynamics, options: {velocitty: x=1}}\nkeep: {f: force/0/0}\n",
            4,
            "is not an option of dynamics",
        ),
        (
            "samples: 1000\nvary: {arm_length: {grid: [0.2 m, 0.3 m], steps: 1000000}, plate_radius: {normal: 1 um}}\n"
            + ACCURACY,
            3,
            "1000000000 samples are more than",
        ),
    ],
)
def test_what_would_go_wrong_in_every_sample_is_said_before_the_first(text, line, what):
    with pytest.raises(DescriptionError) as error:
        loads_study(HEAD + text, "s.yaml")
    assert [problem.line for problem in error.value.problems] == [line]
    assert what in str(error.value)


def test_the_interval_of_a_yield_is_wilsons(tmp_path):
    extra("pyarrow")
    text = SWEEP.replace(
        "keep: {force: force/0/0}", "keep: {force: force/0/0}\nyield: {force: {most: 1e3}}"
    )
    low, high = tl.run_study(loads_study(text), tmp_path / "s").yield_interval
    z, share, n = stats.norm.ppf(0.975), 6 / 8, 8  # two of the eight do not close
    middle, half = share + z**2 / (2 * n), z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    assert (low, high) == pytest.approx(
        ((middle - half) / (1 + z**2 / n), (middle + half) / (1 + z**2 / n)), rel=1e-12
    )


def test_sobol_indices_of_a_sum_are_the_shares_of_its_variances():
    extra("SALib")
    from tauloop.study.design import sobol_design, sobol_indices

    design = sobol_design(512, 3, 1)
    assert design.shape == (512 * 5, 3)
    weights = np.array([1.0, 2.0, 3.0])
    indices = sobol_indices("y", ("a", "b", "c"), design @ weights, 1)
    for item, share in zip(indices, weights**2 / (weights**2).sum(), strict=True):
        assert item.first == pytest.approx(share, abs=0.02)
        assert item.total == pytest.approx(share, abs=0.02)


@needs_compiler
def test_all_cores_take_part_where_the_rest_is_worth_it(tmp_path, monkeypatch):
    """From the second batch on, in processes; never for a script that would run once more when they begin."""
    extra("pyarrow")
    study, begun, processes = loads_study(TOLERANCES), [], workers.Processes
    tl.run_study(study, tmp_path / "alone")
    assert not begun
    monkeypatch.setattr(workers, "MIN_WORK_FOR_PROCESSES", 0.0)
    monkeypatch.setattr(workers, "cores", lambda: 2)
    monkeypatch.setattr(workers, "Processes", lambda width: begun.append(width) or processes(width))
    script = tmp_path / "script.py"
    script.write_text("import tauloop")
    for text, expected in (("import tauloop", []), ("if __name__ == '__main__':\n    pass", [2])):
        script.write_text(text)
        monkeypatch.setattr(sys.modules["__main__"], "__file__", str(script), raising=False)
        tl.run_study(study, tmp_path / str(len(text)))
        assert begun == expected
        assert same(columns(tmp_path / str(len(text))), columns(tmp_path / "alone"))


@pytest.mark.nightly
@needs_compiler
def test_a_killed_worker_changes_nothing(tmp_path):
    extra("pyarrow")
    text = TOLERANCES.replace("samples: 300", "samples: 20000").replace("poses: 50", "poses: 1000")
    study = loads_study(text)
    killed = []

    def kill(done: int, total: int) -> None:
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        # the tracker of resources is a child too
        workers = [
            child
            for child in children
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
        ]
        if done > 500 and len(killed) < 2 and workers:
            killed.append(int(workers[-1]))
            os.kill(killed[-1], signal.SIGKILL)

    result = tl.run_study(study, tmp_path / "s", tl.StudyOptions(workers=2), progress=kill)
    assert killed
    assert result.samples == 20_000
    assert result.set_aside == ()
    values = columns(tmp_path / "s")
    inputs = {name: values[f"input.{name}"] for name in study.parameters}
    direct = accuracy(tl.load("delta"), inputs, AccuracyOptions(poses=1000))
    np.testing.assert_array_equal(values["output.largest"], direct.largest)


def test_options_are_drawn_too_and_each_name_of_them_for_itself(tmp_path):
    extra("pyarrow")
    text = """
format: tauloop-study/1
machine: delta
samples: 8
vary:
  options.pose.x: {uniform: 100 mm, about: 0}
  options.pose.z: {grid: [-0.5 m, -450 mm], steps: 2}
compute: {result: ik, options: {pose: ["z=-0.4", "y=0.05"]}}
keep: {motor: poses/0/actuators/0}
design: random
"""
    study = loads_study(text)
    assert study.count == 16
    tl.run_study(study, tmp_path / "s")
    kept = StudyFolder(tmp_path / "s")
    x, z = kept.column("input.options.pose.x"), kept.column("input.options.pose.z")
    assert np.ptp(x) > 0.15
    assert set(z) == {-0.5, -0.45}
    delta, motor = tl.load("delta"), kept.column("output.motor")
    for k in (0, 15):
        answer = tl.inverse_kinematics(delta, [x[k], 0.05, z[k]]).as_dict()["poses"][0]
        np.testing.assert_allclose(motor[k], answer["actuators"][0], atol=ROUNDING)
    bad = (
        text.replace("100 mm", "1 rad")
        .replace(", about: 0", "")
        .replace("[-0.5 m, -450 mm]", "[-0.5 m, 3 rad]")
    )
    with pytest.raises(DescriptionError) as error:
        loads_study(
            bad.replace("  options.pose.z", "  options.pose: {list: [x=1]}\n  options.pose.z")
        )
    problems = "\n".join(str(problem) for problem in error.value.problems)
    for what in ("add `about: VALUE`", "rad", "both pose and its"):
        assert what in problems


def test_old_names_of_options_work_with_a_warning():
    """In the options of a calculation, and in names of variations."""
    text = (
        "{format: tauloop-study/1, machine: delta, seed: 1, "
        "compute: {result: ik, options: {platform: 'z=-0.5', within_limits: true}}, "
        "vary: {options.platform.x: {uniform: 10 mm, about: 0}}, keep: {first: poses/0/residual}}"
    )
    with pytest.warns(DeprecationWarning, match="option platform of a study is .*: use pose"):
        study = loads_study(text)
    assert study.options == {"pose": "z=-0.5", "within_limits": "true"}
    assert [item.name for item in study.variations] == ["options.pose.x"]
    assert loads_study(text.replace("platform", "pose")) == study
    both = text.replace("{platform: 'z=-0.5'", "{platform: 'z=-0.5', pose: 'z=-0.4'")
    with (
        pytest.warns(DeprecationWarning, match="use pose"),
        pytest.raises(DescriptionError, match="platform: is the old name of pose, which is"),
    ):
        loads_study(both)


def test_an_old_key_of_a_result_warns_once_at_its_line(tmp_path: Path):
    """Not again for each sample."""
    text = """format: tauloop-study/1
machine: four_bar
seed: 1
samples: 3
vary:
  options.pose.crank_pin: {uniform: 0.01 rad, about: 0.2 rad}
compute: {result: ik, options: {pose: crank_pin=0.2}}
keep: {first: evidence/largest loop residual/value}
"""
    file = tmp_path / "study.yaml"
    file.write_text(text)
    with pytest.warns(DeprecationWarning, match="keep evidence/largest loop residual") as caught:
        study = tl.load_study(file)
    assert [(item.filename, item.lineno) for item in caught] == [(str(file), 8)]
    assert study.keep == {"first": "diagnostics/largest loop residual/value"}
    result = tl.run_study(study, tmp_path / "results")
    assert np.isfinite(result.scalars[0].mean)


def test_every_calculation_is_found_without_an_old_name():
    for name, command in CALCULATIONS.items():
        assert isinstance(command.options, type), name
        assert name == "accuracy" or callable(command.function), name
