"""Pages of reports in a real browser: they ask for nothing, draw every figure, play, and can be printed."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import Page, browser, executable
from command_line import run
from commands import function_of, written_by
from extras import extra
from kills import RACKS, prepare
from reported import REPORTED

import tauloop as tl
from tauloop.cli.app import command_words
from tauloop.cli.commands import COMMANDS
from tauloop.display import MotionScene, Paragraph, Plot, page_record, read_record
from tauloop.display.page_records import KEY
from tauloop.drives import load_drive
from tauloop.viewer.pages.plotly_renderer import figure

needs_browser = pytest.mark.skipif(
    executable() is None, reason="needs Chromium or Chrome, and none is installed"
)

#: Largest record of results whose figures are coarse, bytes.
SMALL_RECORD = 750_000
#: A name that would end the script, or lead elsewhere, were it pasted into the page.
HOSTILE = (
    "</script><script>document.body.innerHTML='gone'</script><a href='https://evil.example'>x</a>"
)
#: What a page shows: points of every line of every figure, names in legends, share of every film
#: that is over.
POINTS = "[...document.querySelectorAll('.drawing')].map(d => d.data.map(t => (t.y || t.r).length))"
DRAWN = "[...document.querySelectorAll('.drawing')].map(d => d.querySelectorAll('.trace').length)"
SHARES = "[...document.querySelectorAll('.scene iframe')].map(f => Number(f.dataset.share ?? -1))"
#: Of every machine: width of its still picture, whether that is loaded, and whether the film is
#: shown.
STILLS = """[...document.querySelectorAll('.scene')].map(s => [s.querySelector('img').offsetWidth,
    s.querySelector('img').naturalWidth > 300, s.querySelector('iframe').offsetWidth > 0])"""
CURSORS = "[...document.querySelectorAll('.cursor')].map(c => Number(c.dataset.time))"


#: Boxes of elements on the page: left, top, right and bottom, pixels.
BOXES = """[...document.querySelectorAll(%r)].map(e => e.getBoundingClientRect())
    .map(b => [b.left, b.top, b.right, b.bottom])"""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log and measured poses of a five-bar."""
    folder = tmp_path_factory.mktemp("inputs")
    prepare(folder)
    return folder


def opened(page: Page, path: Path, width: int = 1200, *, has_figures: bool = True) -> None:
    """Open a page and wait until its figures are drawn."""
    page.ask("Network.enable")
    page.ask(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=900,
        deviceScaleFactor=1,
        mobile=False,
    )
    page.open(path.as_uri())
    if has_figures:
        page.wait(lambda: page.run("document.documentElement.dataset.drawn"), "figures are drawn")


def require_closed(page: Page, path: Path) -> None:
    """Nothing was asked from outside, and nothing went wrong."""
    asked = [event["request"]["url"] for event in page.happened("Network.requestWillBeSent")]
    assert [
        address for address in asked if not address.startswith(("data:", "blob:", "about:"))
    ] == [path.as_uri()]
    assert page.errors() == []


def plots_of(shown: Any) -> list[Plot]:
    """Plots of a record in the order of the page: those that move with the machine come first."""
    plots = [piece for piece in shown.pieces if isinstance(piece, Plot)]
    return sorted(plots, key=lambda plot: not plot.over_time)


def require_figures(page: Page, shown: Any) -> None:
    """Every figure has its traces, and these their points."""
    points = [
        [len(trace.get("y", trace.get("r"))) for trace in figure(plot)["data"]]
        for plot in plots_of(shown)
    ]
    for plot, counts in zip(plots_of(shown), points, strict=True):
        assert {len(trace.y) for trace in plot.traces} <= {*counts}
    assert page.run(POINTS) == points
    assert all(count > 0 for count in page.run(DRAWN))


@needs_browser
def test_a_page_of_an_identification_plays_beside_its_figures(inputs: Path, tmp_path: Path) -> None:
    extra("viser")
    extra("plotly")
    result = tl.identify(tl.load("five_bar"), inputs / "log.csv")
    written = tl.write_report(result, tmp_path / "report.html")
    shown = written.records[0]
    assert len(plots_of(shown)) == 7
    with browser(executable(), tmp_path / "profile") as page:
        opened(page, written.path)
        require_figures(page, shown)
        page.wait(lambda: page.run(SHARES)[0] > 0.05, "the machine plays")
        first = page.run(CURSORS)
        page.wait(lambda: abs(page.run(CURSORS)[0] - first[0]) > 0.02, "the cursor follows")
        shares, cursors = page.run(f"[{SHARES}, {CURSORS}]")
        moving = [plot for plot in plots_of(shown) if plot.over_time]
        assert len(cursors) == len(moving)
        (scene,) = (piece for piece in shown.pieces if isinstance(piece, MotionScene))
        assert cursors == pytest.approx(
            [scene.time[0] + shares[0] * (scene.time[-1] - scene.time[0])] * len(moving)
        )
        pdf = base64.b64decode(page.ask("Page.printToPDF", printBackground=True)["data"])
        assert len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 3
        # the still machine; figures are drawn as lines
        assert rb"/Subtype /Image" in pdf or rb"/Subtype/Image" in pdf
        assert page.run(STILLS) == [[0, True, True]]
        page.ask("Emulation.setEmulatedMedia", media="print")
        width, is_loaded, is_film_shown = page.run(STILLS)[0]
        assert (width > 200, is_loaded, is_film_shown) == (True, True, False)
        page.ask("Emulation.setEmulatedMedia", media="screen")
        page.ask(
            "Emulation.setDeviceMetricsOverride",
            width=390,
            height=800,
            deviceScaleFactor=1,
            mobile=False,
        )
        page.wait(
            lambda: page.run("document.documentElement.scrollWidth") <= 390,
            "nothing is wider than the screen",
        )
        require_closed(page, written.path)


@needs_browser
def test_results_that_are_no_motion_show_their_machine(tmp_path: Path) -> None:
    """A workspace walks round its border, a verification through its states; a drive line says that it has none."""
    extra("viser")
    extra("plotly")
    model = tl.Model(tl.load("five_bar"))
    ranges = {"x": (-0.32, 0.32), "y": (-0.6, 0.6)}
    results = [
        tl.workspace(model, tl.WorkspaceOptions(ranges=ranges, resolution=0.04)),
        tl.verify(model, tl.VerifyOptions(states=6)),
        tl.count_operations(tl.load("four_bar")),
        tl.simulate_drive_line(load_drive("dual_motor_axis"), tl.DriveOptions(cycle=False)),
    ]
    files = [
        page_record(result).write_json(tmp_path / f"{i}.json", {})
        for i, result in enumerate(results)
    ]
    assert max(path.stat().st_size for path in files) < SMALL_RECORD
    written = tl.write_report(files, tmp_path / "report.html")
    scenes = [
        [piece for piece in shown.pieces if isinstance(piece, MotionScene)]
        for shown in written.records
    ]
    assert [len(each) for each in scenes] == [1, 1, 1, 0]
    assert len(scenes[1][0].q) == 6
    assert any(
        "A drive line has no machine to show" in piece.text
        for piece in written.records[3].pieces
        if isinstance(piece, Paragraph)
    )
    walked = model.platform_position(np.array(scenes[0][0].q))
    assert np.ptp(walked, axis=0) == pytest.approx([0.64, 1.16], abs=0.03)
    with browser(executable(), tmp_path / "profile") as page:
        opened(page, written.path)
        assert all(count > 0 for count in page.run(DRAWN))
        page.wait(lambda: page.run(SHARES)[0] > 0.0, "the machine walks")
        assert page.run(STILLS) == [[0, True, True]] * 3
        require_closed(page, written.path)


@needs_browser
def test_hostile_names_are_words(tmp_path: Path) -> None:
    extra("plotly")
    path = tmp_path / "hostile.json"
    made = hostile()
    path.write_text(json.dumps({KEY: made}), encoding="utf-8")
    report = tl.write_report([path], tmp_path / "report.html")
    with browser(executable(), tmp_path / "profile") as page:
        opened(page, report.path)
        assert page.run("document.title") == HOSTILE
        assert page.run("document.querySelector('.careful li').innerText") == HOSTILE
        assert page.run("document.querySelector('td').innerText") == HOSTILE
        assert page.run("document.querySelector('figcaption').innerText") == HOSTILE
        assert page.run("document.querySelectorAll('a').length") == 0
        assert HOSTILE in page.run("document.querySelector('.drawing').textContent")
        require_closed(page, report.path)


def hostile() -> dict[str, Any]:
    """A record whose every text is hostile."""
    shown = page_record(tl.count_operations(tl.load("five_bar"))).as_dict()
    trace = {"name": HOSTILE, "x": [HOSTILE, "b"], "y": [1.0, 2.0], "labels": [HOSTILE, ""]}
    two = [trace, {"name": "other", "x": ["b"], "y": [None]}]
    pieces = [
        {"piece": "paragraph", "text": HOSTILE, "tone": "doubtful"},
        {"piece": "table", "title": HOSTILE, "heads": [HOSTILE], "cells": [[HOSTILE]]},
        {
            "piece": "plot",
            "title": HOSTILE,
            "x": HOSTILE,
            "y": HOSTILE,
            "traces": two,
            "note": HOSTILE,
        },
    ]
    return {**shown, "title": HOSTILE, "status": "doubtful", "pieces": pieces, "made": []}


def test_a_machine_that_cannot_be_shown_is_said_in_its_place(tmp_path: Path) -> None:
    extra("viser")
    made = hostile()
    scene = {
        "piece": "motionscene",
        "title": "t",
        "machine": "name: [",
        "time": [0.0, 1.0],
        "q": [[0.0], [1.0]],
    }
    path = tmp_path / "scene.json"
    path.write_text(json.dumps({KEY: {**made, "pieces": [scene]}}), encoding="utf-8")
    tl.write_report(path, tmp_path / "report.html")
    assert "The machine cannot be shown" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_doubts_come_first_and_are_words(tmp_path: Path) -> None:
    result = tl.simulate(tl.load("five_bar"), tl.SimulationOptions(duration=0.02))
    shown = page_record(result)
    doubts = [
        piece.text
        for piece in shown.pieces
        if isinstance(piece, Paragraph) and piece.tone == "doubtful"
    ]
    assert all(any(advice in doubt for doubt in doubts) for advice in result.advice)


def test_forces_of_a_long_record_keep_their_extremes() -> None:
    result = tl.simulate(tl.load("five_bar"), tl.SimulationOptions(duration=0.5))
    (positions,) = (
        piece
        for piece in page_record(result).pieces
        if getattr(piece, "title", "") == "Position of the platform"
    )
    ports = result.system.model.platform.ports
    for trace, values in zip(positions.traces, result.q.T[list(ports.q)], strict=True):
        assert [min(trace.y), max(trace.y)] == pytest.approx([values.min(), values.max()], rel=1e-5)
        assert np.interp(trace.x, result.time, values) == pytest.approx(np.array(trace.y), abs=1e-5)


@pytest.mark.nightly
@needs_browser
def test_pages_of_all_kinds_of_results_are_drawn(inputs: Path, tmp_path: Path) -> None:
    for module in ("viser", "plotly", "pinocchio"):
        extra(module)
    with browser(executable(), tmp_path / "profile") as page:
        for words, (plots, scenes) in REPORTED.items():
            file, out = tmp_path / "result.json", tmp_path / "page.html"
            text = words.replace("INPUTS", str(inputs)).replace("RACKS", str(RACKS))
            assert run(*text.split(), "--out", file, code=None).exit_code < 2, words
            run("report", file, "--out", out)
            shown = read_record(file)
            opened(page, out, has_figures=plots > 0)
            require_figures(page, shown)
            counted = (
                len(plots_of(shown)),
                sum(isinstance(piece, MotionScene) for piece in shown.pieces),
            )
            assert counted == (plots, scenes), words
            assert page.run("document.querySelectorAll('.drawing .main-svg').length") >= plots
            if scenes:
                page.wait(lambda: page.run(SHARES)[0] > 0.0, f"the machine plays: {words}")
            pdf = base64.b64decode(page.ask("Page.printToPDF", printBackground=True)["data"])
            assert len(re.findall(rb"/Type\s*/Page\b", pdf)) >= min(2, plots + 1)
            require_closed(page, out)


def test_every_command_with_a_file_for_reports_has_its_page() -> None:
    of_other_tests = {"identify", "log track", "study show"}
    reported = {command_words(words.split()) for words in REPORTED}
    assert reported | of_other_tests == set(commands_with_files())


def commands_with_files() -> list[str]:
    """Return the commands whose `--out` takes a JSON file."""
    return [name for name in COMMANDS if "json_file" in written_by(function_of(name))]


@pytest.fixture(scope="module")
def first_screens(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Function that writes a report of a simulation, or the page of `demo`, once."""
    extra("viser")
    extra("plotly")
    folder = tmp_path_factory.mktemp("pages")

    @cache
    def written(kind: str) -> Path:
        if kind == "demo":
            return tl.demo("five_bar", folder / "demo.html").path
        result = tl.simulate("five_bar", duration=0.1)
        return tl.write_report(result, folder / "report.html").path

    return written


@needs_browser
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("kind", ["report", "demo"])
def test_the_first_screen_answers_and_no_half_is_empty(
    first_screens: Callable[[str], Path], tmp_path: Path, kind: str, width: int
) -> None:
    path = first_screens(kind)
    with browser(executable(), tmp_path / "profile") as page:
        opened(page, path, width)
        assert page.run("document.documentElement.scrollWidth") <= width
        (scene,) = page.run(BOXES % ".scene iframe")
        numbers, verdict = page.run(BOXES % ".numbers > div"), page.run(BOXES % ".fine")
        assert len(numbers) >= 3
        names = page.run("[...document.querySelectorAll('.numbers dt')].map(e => e.innerText)")
        assert names[0] == "duration"
        assert any(name.startswith("peak ") for name in names)
        if kind == "report":
            assert len(verdict) == 1
        if width == 1280:  # all of it without scrolling
            for left, top, right, bottom in (scene, *numbers, *verdict):
                assert left >= 0
                assert top >= 0
                assert right <= width
                assert bottom <= 900
            assert min(box[0] for box in numbers) >= scene[2]  # next to the machine
        else:
            assert scene[3] <= 900
            assert min(box[1] for box in numbers) >= scene[3]  # below the machine
        plots = page.run(BOXES % ".plots .drawing")
        wide = 520 if width == 1280 else 340
        assert all(right - left >= wide for left, _, right, _ in plots)
        rows = {round(top): 0.0 for _, top, _, _ in plots}
        for left, top, right, _ in plots:
            rows[round(top)] += right - left
        assert min(rows.values()) > 0.85 * (page.run("document.body.clientWidth") - 60)
        assert page.run("[...document.querySelectorAll('details')].map(d => d.open)") == [False]
        assert "SHA" not in page.text()
        if kind == "demo":
            cards = page.run("[...document.querySelectorAll('.card h3')].map(e => e.innerText)")
            assert len(cards) == 5
            assert "five_bar: a tour" in page.run("document.querySelector('h1').innerText")
            commands = page.run("[...document.querySelectorAll('.card pre')].map(e => e.innerText)")
            for text in commands:
                for line in text.split("\n"):
                    name, _, rest = line.partition(" ")
                    assert name == "tauloop"
                    assert command_words(rest.split())
        page.run("document.querySelector('summary').click()")
        assert "Versions" in page.text()
        require_closed(page, path)
