"""What becomes of an identification: figures of the fit, JSON, figure, table; and the base of all results."""

from __future__ import annotations

import dataclasses
import enum
import json
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from planar_arm import NAMES, TRUE, UNITS, arm_data
from rich.console import Console

from tauloop.common.errors import IdentificationError, InputError
from tauloop.common.files import write_file
from tauloop.common.result import (
    Diagnostic,
    Provenance,
    Result,
    Status,
    plain,
    provenance,
    write_json,
)
from tauloop.display import (
    Plot,
    PrintedPieces,
    identification_figure,
    identification_table,
    save_figure,
)
from tauloop.display.plots.identification.identification_plots import fit_plots
from tauloop.display.sampling import FIGURE_INTERVALS, thin
from tauloop.identification import (
    Identification,
    OrdinaryLeastSquares,
    RegressionData,
    WeightedLeastSquares,
    evaluate,
    fit_regression,
    split_data,
)


@pytest.fixture(scope="module")
def data() -> tuple[RegressionData, RegressionData]:
    return split_data(arm_data(1000, noise=(0.4, 0.1)))


@pytest.fixture(scope="module")
def result(data) -> Identification:
    return fit_regression(*data, WeightedLeastSquares())


# Figures of the fit


def test_fit_of_an_output_by_hand():
    measured = np.array([[1.0, 10.0], [-4.0, 0.0], [2.0, 0.0]])
    predicted = np.array([[0.0, 10.0], [-4.0, 0.0], [4.0, 0.0]])
    first, second = evaluate(measured, predicted, ("a", "b"), ("N", "N m"))
    assert first.rmse == pytest.approx(math.sqrt(5 / 3))
    assert first.bias == pytest.approx(-1 / 3)
    assert first.rmse_percent == pytest.approx(100 * math.sqrt(5 / 3) / 4)
    assert first.relative_error_percent == pytest.approx(100 * math.sqrt(5 / 21))
    assert (first.largest_residual, first.scale, first.samples, first.unit) == (2.0, 4.0, 3, "N")
    assert first.residual_correlation == 0.0
    assert (second.rmse, second.bias, second.residual_correlation) == (0.0, 0.0, None)


def test_percentages_of_both_parts_refer_to_one_force(data, result):
    largest = np.max([np.abs(part.forces).max(axis=0) for part in data], axis=0)
    for fits, part in ((result.training, data[0]), (result.held_out, data[1])):
        residual = part.forces - result.predict(part.regressor)
        for k, fit_of_output in enumerate(fits):
            assert fit_of_output.scale == largest[k]
            assert fit_of_output.rmse == pytest.approx(np.sqrt(np.mean(residual[:, k] ** 2)))
            assert fit_of_output.rmse_percent == pytest.approx(
                100 * fit_of_output.rmse / largest[k]
            )
            assert fit_of_output.samples == len(part)


def test_evaluation_refuses_arrays_that_do_not_agree():
    with pytest.raises(
        IdentificationError,
        match=r"the shapes do not match: measured \(3, 2\), predicted \(3, 1\), 2 outputs",
    ):
        evaluate(np.ones((3, 2)), np.ones((3, 1)), ("a", "b"), ("N", "N"))


# JSON


def test_json_holds_everything_and_only_finite_numbers(tmp_path, result):
    path = result.write_json(tmp_path / "arm.json")
    content = json.loads(
        path.read_text(encoding="utf-8"), parse_constant=lambda name: pytest.fail(f"holds {name}")
    )
    assert content == result.as_dict()
    assert content["format"] == "tauloop-identification/1"
    assert content["status"] == "ok"
    assert content["estimator"] == {"name": "WeightedLeastSquares", "reweightings": 3}
    assert content["rank"]["base_parameters"] == 6
    assert content["rank"]["options"]["tolerance"] == 1e-8
    first = content["base_parameters"][0]
    assert first["name"] == "link1.mx + 0.4 link2.m"
    assert first["terms"] == [{"parameter": "link2.m", "coefficient": pytest.approx(0.4, rel=1e-9)}]
    assert first["relative_standard_deviation_percent"] == pytest.approx(
        100 * first["standard_deviation"] / abs(first["value"])
    )
    assert content["no_effect"] == ["link1.m"]
    assert list(content["regressor_parameters"]) == list(NAMES)
    assert [output["name"] for output in content["outputs"]] == ["shoulder", "elbow"]
    assert content["outputs"][1]["held_out"]["rmse"] == result.held_out[1].rmse
    assert content["condition"] == {
        "unit_norm_columns": result.condition,
        "si": result.condition_si,
    }
    assert content["provenance"]["inputs"]["training_samples"] == 700
    assert content["provenance"]["versions"]["numpy"] == np.__version__


def test_undefined_figures_are_null_not_nan():
    """Every column independent: no gap; one parameter exactly zero: no percentage; no residual: no correlation."""
    regressor = np.zeros((60, 2, 2))
    regressor[:30, 0, 0] = regressor[30:, 1, 1] = np.linspace(1.0, 2.0, 30)
    forces = np.zeros((60, 2))
    forces[:30, 0] = 3.0 * regressor[:30, 0, 0] + np.tile([0.5, -0.5], 15)
    forces[30:, 1] = np.tile([1e-3, -1e-3], 15)
    forces[30:, 1] -= (
        regressor[30:, 1, 1]
        * (forces[30:, 1] @ regressor[30:, 1, 1])
        / np.sum(regressor[30:, 1, 1] ** 2)
    )
    data = RegressionData(
        regressor=regressor,
        forces=forces,
        parameters=("a", "b"),
        parameter_units=("kg", "kg"),
        outputs=("x", "y"),
        output_units=("N", "N"),
    )
    fitted = fit_regression(data, None, OrdinaryLeastSquares())
    estimate = dataclasses.replace(fitted.estimate, values=np.array([fitted.values[0], 0.0]))
    content = dataclasses.replace(fitted, estimate=estimate).as_dict()
    assert content["rank"]["gap"] is None
    assert content["base_parameters"][1]["relative_standard_deviation_percent"] is None
    assert content["outputs"][0]["held_out"] is None
    json.dumps(content, allow_nan=False)


def test_equal_runs_give_equal_files(tmp_path, data, result):
    again = fit_regression(*data, WeightedLeastSquares())
    first, second = result.write_json(tmp_path / "a.json"), again.write_json(tmp_path / "b.json")
    assert first.read_bytes() == second.read_bytes()


def test_files_are_whole_or_untouched(tmp_path):
    path = write_json(tmp_path / "result.json", {"value": 1.5})
    before = path.read_bytes()
    with pytest.raises(ValueError, match="contains nan"):
        write_json(path, {"value": float("nan")})

    def fail(temporary):
        temporary.write_text("half of it")
        raise RuntimeError("interrupted")

    with pytest.raises(RuntimeError, match="interrupted"):
        write_file(path, fail)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_folder_that_is_not_there(tmp_path, result):
    with pytest.raises(InputError, match=r"cannot be written: No such file or directory") as caught:
        result.write_json(tmp_path / "missing" / "arm.json")
    assert "existing folder" in str(caught.value)


# The base of all results


class Color(enum.Enum):
    RED = "red"


def test_plain_data_of_everything():
    diagnostics = Diagnostic(name="gap", value=2.0, lower=1.0)
    values = {
        "array": np.array([[1, 2]]),
        "number": np.float64(1.5),
        "flag": np.bool_(True),
        "enum": Color.RED,
        "nested": (diagnostics, None, {3: "x"}),
        "set": {"b", "a"},
    }
    assert plain(values) == {
        "array": [[1, 2]],
        "number": 1.5,
        "flag": True,
        "enum": "red",
        "nested": [
            {"name": "gap", "value": 2.0, "unit": "", "lower": 1.0, "upper": None, "advice": ""},
            None,
            {"3": "x"},
        ],
        "set": ["a", "b"],
    }
    with pytest.raises(ValueError, match="contains inf"):
        plain({"x": [np.inf]})
    with pytest.raises(ValueError, match="no plain form of object"):
        plain(object())


def test_status_and_advice_follow_from_diagnostics():
    good = Diagnostic(name="closure", value=1e-15, unit="m", upper=1e-12, advice="check lengths")
    bad = Diagnostic(name="condition", value=1e7, upper=1e4, advice="move more")
    unknown = Diagnostic(name="gap", value=None, lower=1e3, advice="never said")
    origin = Provenance(versions={})
    assert Result(diagnostics=(good, unknown), provenance=origin).status is Status.OK
    doubtful = Result(diagnostics=(good, bad, unknown), provenance=origin)
    assert doubtful.status is Status.DOUBTFUL
    assert doubtful.advice == ("condition: 1e+07 (limit: at most 1e+04): move more",)
    assert str(good) == "closure: 1e-15 m (limit: at most 1e-12)"
    assert str(unknown) == "gap: not defined"


def test_provenance_names_versions():
    origin = provenance(packages=("numpy", "no-such-package"), options={"order": 4})
    assert set(origin.versions) == {"python", "tauloop", "numpy", "no-such-package"}
    assert origin.versions["no-such-package"] == "not installed as a package"
    assert origin.options == {"order": 4}


# The figure


def test_plots_have_measured_predicted_and_residual_forces(data, result):
    plots = [piece for piece in fit_plots(result, *data) if isinstance(piece, Plot)]
    forces = np.concatenate([part.forces for part in data])
    predicted = np.concatenate([result.predict(part.regressor) for part in data])
    time = np.concatenate([part.time for part in data])
    for k, plot in enumerate(plots[:2]):
        drawn = {trace.name: trace for trace in plot.traces}
        assert np.interp(drawn["measured"].x, time, forces[:, k]) == pytest.approx(
            np.array(drawn["measured"].y), rel=1e-5, abs=1e-5
        )
        assert np.interp(drawn["predicted"].x, time, predicted[:, k]) == pytest.approx(
            np.array(drawn["predicted"].y), rel=1e-5, abs=1e-5
        )
        for part, judged in (("training", result.training[k]), ("held out", result.held_out[k])):
            text = f"{part} RMSE {judged.rmse:.3g} N m ({judged.rmse_percent:.1f} %)"
            assert text in plot.title
        (span,) = plot.spans
        assert (span.start, span.end) == (data[1].time[0], data[1].time[-1])
        assert (plot.x, plot.y) == ("time [s]", "torque [N m]")
    residual, spectrum = plots[2:]
    for k, trace in enumerate(residual.traces):
        errors = np.interp(trace.x, time, (forces - predicted)[:, k])
        assert errors == pytest.approx(np.array(trace.y), rel=1e-5, abs=1e-5)
    assert spectrum.x == "frequency [Hz]"


def test_held_out_data_of_another_run_have_plots_of_their_own(data, result):
    training, held_out = data
    other = dataclasses.replace(held_out, time=held_out.time - held_out.time[0])
    plots = [piece for piece in fit_plots(result, training, other) if isinstance(piece, Plot)]
    titles = [plot.title for plot in plots if "RMSE" in plot.title]
    assert ["held out:" in title for title in titles] == [False, False, True, True]
    assert [len(plot.spans) for plot in plots[:2]] == [0, 0]


@pytest.mark.parametrize("count", [2, 6])
def test_nothing_in_the_figure_covers_anything_else(data, result, count):
    """Boxes of the legend, titles and panels as they are drawn, with up to six outputs of long names."""
    training, held_out = (
        dataclasses.replace(
            part,
            regressor=np.tile(part.regressor, (1, count // 2, 1)),
            forces=np.tile(part.forces, (1, count // 2))
            + 0.01 * np.arange(count) * np.sin(part.time)[:, None],
            outputs=tuple(f"leg{k}.actuator" for k in range(count)),
            output_units=("N m",) * count,
            measured=None,
        )
        for part in data
    )
    fitted = fit_regression(training, held_out, WeightedLeastSquares())
    figure = identification_figure(fitted, training, held_out)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    panels = [axes.get_window_extent(renderer) for axes in figure.axes]
    titles = [axes._left_title.get_window_extent(renderer) for axes in figure.axes]
    legends = [axes.get_legend() for axes in figure.axes]
    heads = [legend.get_window_extent(renderer) for legend in legends if legend is not None]
    # the heading leaves room for the summary, which is a text of its own
    summary = next(text for text in figure.texts if text is not figure._suptitle)
    heads.append(summary.get_window_extent(renderer))
    boxes = [*panels, *titles, *heads]
    for k, box in enumerate(boxes):
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= figure.bbox.width
        assert box.y1 <= figure.bbox.height
        assert not any(box.overlaps(other) for other in boxes[k + 1 :]), k
    for axes in figure.axes:
        labels = [
            label.get_window_extent(renderer)
            for label in axes.get_yticklabels()
            if label.get_visible()
        ]
        inside = [
            box
            for box in labels
            if axes.bbox.y0 - 1 <= (box.y0 + box.y1) / 2 <= axes.bbox.y1 + 1 and box.width
        ]
        assert not any(a.overlaps(b) for k, a in enumerate(inside) for b in inside[k + 1 :])


def test_figure_without_held_out_data_or_time(tmp_path):
    training = arm_data(5000, noise=(0.1, 0.1), time=None)
    figure = identification_figure(fit_regression(training, None, OrdinaryLeastSquares()), training)
    assert len(figure.axes) == 4  # two outputs, residuals, their spectrum
    assert figure.axes[0].get_xlabel() == "sample"
    assert len(figure.axes[0].lines[1].get_xdata()) <= 2 * FIGURE_INTERVALS
    path = save_figure(figure, tmp_path / "arm.png", dpi=60)
    assert path.read_bytes().startswith(b"\x89PNG\r\n")
    assert list(tmp_path.iterdir()) == [path]


def test_figure_of_a_perfect_fit(tmp_path):
    training = arm_data(200)
    save_figure(
        identification_figure(fit_regression(training, None, OrdinaryLeastSquares()), training),
        tmp_path / "a.svg",
    )


def test_figure_file_of_unknown_kind(tmp_path, data, result):
    with pytest.raises(InputError, match=r"unknown file extension 'docx'.*\n.*png"):
        save_figure(identification_figure(result, *data), tmp_path / "arm.docx")


@given(st.integers(1, 20_000), st.integers(0, 2**32 - 1))
def test_thinning_keeps_extremes_and_order(count, seed):
    time, values = np.arange(count) / 10, np.random.default_rng(seed).standard_normal(count)
    thinned_time, thinned = thin(time, values)
    assert len(thinned) <= max(3 * FIGURE_INTERVALS, count if count <= 2 * FIGURE_INTERVALS else 0)
    assert (thinned.min(), thinned.max()) == (values.min(), values.max())
    assert np.all(np.diff(thinned_time) > 0)
    np.testing.assert_array_equal(thinned, values[np.searchsorted(time, thinned_time)])


# The table


def shown(table: PrintedPieces, width: int = 110) -> str:
    console = Console(width=width, color_system=None, legacy_windows=False, markup=False)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def test_table_shows_parameters_and_fit(result):
    text = shown(identification_table(result))
    assert "6 base parameters of 8 unknowns (tolerance 1e-08, gap " in text
    assert "4 alone, 3 in combinations, 1 without effect" in text
    assert "700 training and 300 held-out samples" in text
    assert "status: ok" in text
    (row,) = [line for line in text.splitlines() if "link1.mx + 0.4 link2.m" in line]
    value, deviation = result.values[0], result.standard_deviations[0]
    assert row.split()[-5:] == [
        f"{value:.4g}",
        f"{deviation:.2g}",
        f"{100 * deviation / abs(value):.3g}",
        "kg",
        "m",
    ]
    rows = [
        line.split() for line in text.splitlines() if "training " in line or "held out" in line
    ][-4:]
    for cells, judged in zip(
        rows,
        (result.training[0], result.held_out[0], result.training[1], result.held_out[1]),
        strict=True,
    ):
        assert f"{judged.rmse:.3g}" in cells
        assert f"{judged.rmse_percent:.2f}" in cells
        assert f"{judged.relative_error_percent:.2f}" in cells


def test_table_beside_reference_values(result):
    text = shown(identification_table(result, reference=TRUE))
    (row,) = [line for line in text.splitlines() if "link1.mx + 0.4 link2.m" in line]
    assert "1.4" in row.split()


def test_table_fits_a_narrow_terminal(result):
    assert max(map(len, shown(identification_table(result), width=80).splitlines())) <= 80


def test_table_says_what_is_doubtful_and_takes_names_as_they_are(data):
    names = ("[red]a", *NAMES[1:])
    training = dataclasses.replace(data[0], parameters=names)
    fitted = fit_regression(training, None, OrdinaryLeastSquares())
    item = Diagnostic(
        name="condition", value=1e9, upper=1e4, advice="record a motion that excites more"
    )
    text = shown(identification_table(dataclasses.replace(fitted, diagnostics=(item,))))
    assert "status: doubtful" in text
    assert "condition: 1e+09 (limit: at most 1e+04): record a motion that excites more" in text
    tagged = dataclasses.replace(
        data[0], parameters=tuple(f"[b]{name}" for name in NAMES), parameter_units=UNITS
    )
    assert "[b]link1.mx + 0.4 [b]link2.m" in shown(
        identification_table(fit_regression(tagged, None, OrdinaryLeastSquares()))
    )
