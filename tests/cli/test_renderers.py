"""Plots have the same traces, points and units in Matplotlib and in Plotly, and records hold all of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_line import run
from kills import RACKS, prepare
from matplotlib.figure import Figure
from plots_alike import require_alike
from reported import REPORTED

import tauloop as tl
from tauloop.common.errors import Problems
from tauloop.common.result import plain
from tauloop.display import (
    PARTS,
    Paragraph,
    Plot,
    PlotClass,
    PlotSpan,
    PlotTrace,
    Table,
    draw_plot,
    read_record,
)
from tauloop.display.page_records import tagged
from tauloop.display.pieces import TRACE_STYLES
from tauloop.display.record_reading import pieces_of
from tauloop.viewer.pages import plotly_renderer

#: Words of commands whose results take long to compute. By day, `test_cli.py` looks at the plots of
#: `identify`, and `accuracy compliance` is the one of an elastic machine.
SLOW = {
    *("calibrate", "verify", "transfer", "cycle", "backlash", "poses", "excitation", "synthesize"),
    *("identify", "stiffness", "thermal", "vibration", "ballbar"),
}
#: Commands of results with plots that are not in `REPORTED`, and those of other machines.
MORE = (
    "identify five_bar INPUTS/log.csv",
    "plan stroke five_bar --end x=0.05 --duration 0.1",
    "workspace four_bar",
    "accuracy backlash gantry_tau_3dof --plane y,z",
)
#: Words of commands that write no record, and no picture.
WITHOUT_RECORD, WITHOUT_PICTURE = {"stroke", "backlash"}, {"cost", "verify"}
#: Results without plots.
WITHOUT_PLOTS = {
    *("study", "--folded", "certify", "tolerances", "compensate", "compensation-table"),
    "drive-stiffness",
}
COMMANDS = [
    pytest.param(words, marks=[pytest.mark.nightly] if SLOW & {*words.split()} else [])
    for words in (*REPORTED, *MORE)
    if not WITHOUT_PLOTS & {*words.split()}
]
EVERYTHING = Plot(
    title="t",
    x="x [m]",
    y="y [N]",
    traces=tuple(
        PlotTrace(name=style, x=(0.0, 1.0), y=(1.0, 2.0), deviation=(0.1, 0.1), style=style)
        for style in TRACE_STYLES
        if style != "bars"
    ),
    spans=(
        PlotSpan(name="held out", start=0.0, end=0.5, color="#f6f3ea", label="a"),
        PlotSpan(name="band", start=1.0, end=1.5, color="#9db9d9", across=True),
    ),
    grid=((1.0, None), (2.0, 3.0)),
    grid_x=(0.0, 1.0),
    grid_y=(0.0, 1.0),
    grid_range=(0.0, 3.0),
    contours=True,
    classes=(PlotClass(name="singular", color="#c8553d"),),
    class_grid=((None, 0.0), (None, None)),
)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    prepare(folder)
    return folder


@pytest.mark.parametrize("words", COMMANDS)
def test_plots_are_the_same_on_pages_and_in_figures(
    words: str, inputs: Path, tmp_path: Path
) -> None:
    text = words.replace("INPUTS", str(inputs)).replace("RACKS", str(RACKS))
    record, picture = tmp_path / "result.json", tmp_path / "result.png"
    has_record = not WITHOUT_RECORD & {*words.split()}
    has_picture = not WITHOUT_PICTURE & {*words.split()}
    files = ["--out", record] if has_record else []
    files += ["--out", picture] if has_picture else []
    assert run(*text.split(), *files, code=None).exit_code < 2
    if has_picture:
        assert picture.read_bytes().startswith(b"\x89PNG")
    if has_record:
        plots = [piece for piece in read_record(record).pieces if isinstance(piece, Plot)]
        assert plots
        for plot in plots:
            require_alike(plot)
            assert len({trace.name for trace in plot.traces}) == len(plot.traces)


def test_every_style_span_and_class_has_its_place_in_both() -> None:
    require_alike(EVERYTHING)
    axes = Figure().add_subplot()
    draw_plot(axes, EVERYTHING)
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    shapes = plotly_renderer.figure(EVERYTHING)["layout"]["shapes"]
    assert {"held out", "band", "singular"} <= {*legend}
    assert [shape["showlegend"] for shape in shapes] == [True, True]
    bars = PlotTrace(name="a", x=("p", "q"), y=(1.0, 2.0), base=(0.5, None), style="bars")
    for sideways in (False, True):
        plot = Plot(title="", x="", y="share [1]", traces=(bars,), sideways=sideways)
        require_alike(plot)
        ((item),) = plotly_renderer.figure(plot)["data"]
        assert item["x" if sideways else "y"] == [0.5, None]


def test_a_record_holds_all_of_a_plot_and_refuses_what_does_not_fit() -> None:
    problems = Problems()
    assert pieces_of(plain([tagged(EVERYTHING)]), "pieces", problems) == (EVERYTHING,)
    assert not problems
    wrong = tagged(EVERYTHING) | {
        "spans": [{"name": "s", "start": 0, "end": 1, "color": "url(x)"}],
        "classes": [],
        "grid_range": [1],
    }
    assert pieces_of(plain([wrong]), "pieces", problems)
    where = [problem.where for problem in problems]
    assert where == ["pieces[0].class_grid", "pieces[0].grid_range", "pieces[0].spans[0].color"]


def test_records_of_earlier_versions_are_read(tmp_path: Path) -> None:
    trace = '{"name": "a", "x": [0], "y": [1], "look": "points"}'
    old = (
        '{"report": {"format": "tauloop-report/1", "kind": "K", "title": "t", "status": "ok",'
        '"made": [{"piece": "words", "text": "w"}], "pieces": ['
        '{"piece": "rows", "title": "t", "heads": ["a"], "cells": [["1"]]},'
        f'{{"piece": "plot", "title": "t", "x": "x", "y": "y", "traces": [{trace}]}}]}}}}'
    )
    path = tmp_path / "old.json"
    path.write_text(old, encoding="utf-8")
    record = read_record(path)
    table, plot = record.pieces
    assert isinstance(table, Table)
    assert record.made == (Paragraph(text="w"),)
    assert isinstance(plot, Plot)
    assert plot.traces[0].style == "points"


def test_every_result_with_plots_is_drawn_from_them() -> None:
    """A figure of its own has a machine, or a measure that is chosen."""
    own = {part.takes for part in PARTS.values() if vars(part).get("functions", {}).get("figure")}
    drawn = {part.takes for part in PARTS.values() if vars(part).get("functions", {}).get("plots")}
    assert own & drawn == {"Modes", "Workspace"}
    result = tl.simulate(tl.load("five_bar"), tl.SimulationOptions(duration=0.02))
    figure = PARTS["Simulation"].figure(result)
    assert figure is not None
    plots = [piece for piece in PARTS["Simulation"].plots(result) if isinstance(piece, Plot)]
    assert [axes.get_title(loc="left") for axes in figure.axes] == [plot.title for plot in plots]
    for axes, plot in zip(figure.axes, plots, strict=True):
        for line, trace in zip(axes.lines, plot.traces, strict=True):
            np.testing.assert_array_equal(line.get_ydata(), trace.y)


@pytest.mark.parametrize(("largest", "labels"), [(3.0, None), (20.0, "D2"), (5e3, 1)])
def test_a_logarithmic_axis_of_names_has_no_crowded_labels(largest, labels) -> None:
    """Names are at the side, so that the values are along x."""
    bars = PlotTrace(name="", x=("a", "b"), y=(1.0, largest), style="bars")
    plot = Plot(title="", x="", y="value", traces=(bars,), sideways=True, log_y=True)
    layout = plotly_renderer.figure(plot)["layout"]
    assert layout["xaxis"]["type"] == "log"
    assert layout["xaxis"].get("dtick") == labels
