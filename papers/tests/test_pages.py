"""Results that are kept, and their pages: whole after an interrupt, nothing pasted raw, drawn by a real browser."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, ClassVar

import matplotlib.image
import numpy as np
import pytest
from browser import Page, browser, executable
from command_line import run
from matplotlib.figure import Figure

import tauloop as tl
import tauloop_papers.command
import tauloop_papers.kept
from tauloop.common.errors import InputError
from tauloop.common.result import Status, provenance
from tauloop.display import read_record
from tauloop.viewer import Playback, View
from tauloop_papers import (
    EXPERIMENTS,
    Comparison,
    Experiment,
    PrintedRow,
    PrintedTable,
    Reproduction,
    keep,
    read_kept,
    reproduce_all,
    write_page,
)
from tauloop_papers.controllers import CONTROLLERS, Measured
from tauloop_papers.kept import code_of, done

#: So many pixels of the platform's colour are one.
PIXELS = 10
#: Figures that the papers print, by experiment.
PRINTED = {
    "gantry-tau": range(1, 7),
    "gantry-tau-calibration": range(1, 5),
    "dual-motor": range(5, 10),
    "nuwar": range(1, 4),
    "rcid": range(1, 5),
    "spidermill": range(1, 8),
}
#: What a name must not become.
HOSTILE = '<script>document.title = "run"</script> & <b>"bold"</b>'


@dataclass(frozen=True)
class Settings:
    """Of a small experiment."""

    count: int = 3


class SmallExperiment(Experiment):
    """Draws a line; a paper in a test."""

    settings = Settings()  # type: ignore[assignment]
    films_shown: ClassVar = {"swing": f"It swings {HOSTILE}"}  # type: ignore[misc]
    undrawn: ClassVar = {"Figure 9": f"a photograph {HOSTILE}"}  # type: ignore[misc]
    captions: ClassVar = {"line": f"A line {HOSTILE}"}  # type: ignore[misc]

    def run(self, progress: Any = lambda _: None, settings: Any = None) -> Reproduction:
        progress("drawing")
        if self.title == "interrupted":
            raise KeyboardInterrupt
        if self.title == "impossible":
            raise InputError.of(self.name, "cannot be done", "leave it")
        return result(self)

    def figures(self, reproduction: Reproduction) -> dict[str, Figure]:
        figure = Figure(figsize=(4.0, 2.0))
        figure.add_subplot().plot(range(self.settings.count))
        return {"line": figure}

    def films(self, reproduction: Reproduction) -> dict[str, View]:
        """A five-bar that goes up by 1 cm."""
        model = tl.Model(tl.load("five_bar"))
        way = model.platform_position(model.assembly.q) + 0.005 * np.outer(np.arange(3), [0.0, 1.0])
        played = Playback(time=0.1 * np.arange(3.0), q=model.platform.track(way).q)
        return {"swing": tl.view(model, tl.ViewOptions(motion=played))}


@pytest.fixture(autouse=True, scope="module")
def pages_alone() -> Iterator[None]:
    """Films as pages: a GIF takes seconds, and has a test of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tauloop_papers.kept, "FILM_ENDINGS", ("html",))
        yield


def small(name: str, title: str) -> Experiment:
    """Its source has a word that is wider than a telephone."""
    source = f"Source of {title}, papers/src/tauloop_papers/small_experiment/identification.py"
    return SmallExperiment(name=name, title=title, source=source, procedure="none", budget=1.0)


def result(item: Experiment) -> Reproduction:
    row = PrintedRow(name=f"row {HOSTILE}", stated=("1.5", ""), ours=("1.25", "7"))
    wide = PrintedRow(
        name="ellipse",
        stated=("", "", ""),
        ours=("35.55 (197.6)", "39.44 (196.4)", "39.55 (184.1)"),
    )
    return Reproduction(
        experiment=item,
        comparisons=(
            Comparison(
                quantity=f"length {HOSTILE}", unit="mm", stated="70", ours="70.1", why="rounded"
            ),
        ),
        choices=(f"chosen {HOSTILE}",),
        printed=(
            PrintedTable(
                name="Table 1", title="Sizes", columns=("part", "a", "b"), rows=(row,), why="so"
            ),
            PrintedTable(
                name="Table 2",
                title="Peaks",
                columns=("", "parabolic", "cycloidal", "fifth"),
                rows=(wide,),
            ),
        ),
        diagnostics=(),
        provenance=provenance(packages=(), options={}),
    )


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> dict[str, Experiment]:
    """Three experiments in place of the papers', the second of which is interrupted."""
    items = {
        name: small(name, title)
        for name, title in zip("abc", ("first", "interrupted", "third"), strict=True)
    }
    monkeypatch.setattr(tauloop_papers.kept, "EXPERIMENTS", items)
    return items


def test_what_is_done_is_kept_when_a_later_one_is_interrupted(
    three: dict[str, Experiment], tmp_path: Path
) -> None:
    pages: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        reproduce_all(tmp_path, after_each=lambda there: pages.append(len(there)))
    assert pages == [1]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a-line.png",
        "a-line.svg",
        "a-swing.html",
        "a.json",
    ]
    three["b"] = replace(three["b"], title="second")
    begun: list[str] = []
    there = reproduce_all(tmp_path, lambda item, _: begun.append(item.name))
    assert begun == ["b", "c"]  # the first is not done again
    assert [kept.experiment.name for kept in there] == ["a", "b", "c"]
    begun.clear()
    reproduce_all(tmp_path, lambda item, _: begun.append(item.name), again=True)
    assert begun == ["a", "b", "c"]


def test_one_that_cannot_be_done_keeps_no_other_from_it(
    three: dict[str, Experiment], tmp_path: Path
) -> None:
    three["b"] = replace(three["b"], title="impossible")
    with pytest.raises(InputError, match="cannot be done"):
        reproduce_all(tmp_path)
    assert (tmp_path / "c.json").exists()


@pytest.mark.parametrize("damage", ["settings", "figure", "text", "code"])
def test_results_of_other_settings_or_damaged_are_not_taken(damage: str, tmp_path: Path) -> None:
    item = small("a", "first")
    kept = keep(item.run(), tmp_path, code_of(item))
    assert read_kept(item, tmp_path) is not None
    if damage == "settings":
        type(item).settings = Settings(4)
    elif damage == "figure":
        kept.figure("line").unlink()
    elif damage == "text":
        kept.files[-1].write_text(kept.files[-1].read_text()[:100])
    else:
        kept.files[-1].write_text(json.dumps({**kept.data, "code": "of another program"}))
    try:
        assert read_kept(item, tmp_path) is None
    finally:
        type(item).settings = Settings()


def test_equal_runs_give_equal_files(tmp_path: Path) -> None:
    item = small("a", "first")
    first, second = ([path.read_bytes() for path in done(item, tmp_path).files] for _ in range(2))
    assert first == second


def test_the_controllers_code_lies_beside_its_page_and_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a compiler and without; a check that fails makes the result doubtful; times are not among equal files."""
    item, made = small("a", "first"), CONTROLLERS["dual-motor"]()
    monkeypatch.setattr(tauloop_papers.kept, "controllers", lambda *_: made)
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    kept = done(item, tmp_path)
    assert (tmp_path / "a-c" / made[0].name / f"{made[0].name}_check.c").read_text() == list(
        made[0].files.values()
    )[2]
    assert "no C compiler on this computer" in write_page(tmp_path / "a.html", [kept]).read_text(
        encoding="utf-8"
    )
    assert kept.status is Status.OK
    monkeypatch.undo()
    for agrees, verdict in ((True, "all agree"), (False, "FAILED")):
        run = Measured(
            compiler="cc", agrees=agrees, verdict=verdict, nanoseconds={made[0].name: 12.3}
        )
        monkeypatch.setattr(tauloop_papers.kept, "controllers", lambda *_: made)
        monkeypatch.setattr(tauloop_papers.kept, "measured", lambda _, run=run: run)
        kept = done(item, tmp_path)
        page = write_page(tmp_path / "a.html", [kept]).read_text(encoding="utf-8")
        assert verdict in page
        assert ">12<" in page
        assert (kept.status is Status.OK) == agrees
        assert not any("measured" in path.name for path in kept.files)
    assert "12.3" not in kept.files[-1].read_text(encoding="utf-8")


def test_a_report_of_the_results_file_shows_what_the_papers_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    item, made = small("a", "first"), CONTROLLERS["dual-motor"]()
    ran = Measured(
        compiler="cc", agrees=True, verdict="all agree", nanoseconds={made[0].name: 12.3}
    )
    monkeypatch.setattr(tauloop_papers.command, "experiment", lambda _: item)
    monkeypatch.setattr(tauloop_papers.kept, "controllers", lambda *_: made)
    monkeypatch.setattr(tauloop_papers.kept, "measured", lambda _: ran)
    pages = tmp_path / "pages"
    run("paper", "reproduce", "a", "--out", pages, "--out", tmp_path / "a.json")
    run("report", tmp_path / "a.json", "--out", tmp_path / "report.html")
    shown, own = (
        (path.read_text(encoding="utf-8")) for path in (tmp_path / "report.html", pages / "a.html")
    )
    assert shown[shown.index("<section") :] == own[own.index("<section") :]
    assert all(
        word in shown for word in ("70.1", "<iframe", "data:image/svg+xml", made[0].name, ">12<")
    )
    (alone := tmp_path / "alone").mkdir()
    run("paper", "reproduce", "a", "--out", alone / "a.json")
    assert [path.name for path in alone.iterdir()] == ["a.json"]
    assert read_record(alone / "a.json") == read_record(tmp_path / "a.json")
    for words in (["all"], ["a", "--note"], []):
        run("paper", "reproduce", *words, "--out", tmp_path / "b.json", code=2)


@pytest.mark.parametrize("columns", [80, 160])
def test_a_terminal_cuts_no_word_of_a_result(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a narrow screen what is compared is a list; printed and own figures of a table stand in rows of their own."""
    item, long = small("a", "first"), " ".join(f"sentence{k}_of_many_letters" for k in range(12))
    why = Comparison(quantity="width", unit="mm", stated="", ours="1", why=long)
    row = PrintedRow(name=long, stated=("1.5",), ours=("1.25",))
    table = PrintedTable(name="Table 2", title="Long", columns=("", "value"), rows=(row,))
    made = replace(result(item), comparisons=(*result(item).comparisons, why), printed=(table,))
    monkeypatch.setattr(tauloop_papers.command, "experiment", lambda _: item)
    monkeypatch.setattr(SmallExperiment, "run", lambda *_: made)
    shown = run("paper", "reproduce", "a", columns=columns).stdout
    lines = shown.split("\n")
    assert max(map(len, lines)) <= columns
    assert "…" not in shown
    for k in range(12):
        assert shown.split().count(f"sentence{k}_of_many_letters") == 2
    assert any(line.split()[-2:] == ["printed", "1.5"] for line in lines)
    assert any(line.split() == ["ours", "1.25"] for line in lines)
    assert any(line.split() == ["ours", "70.1"] for line in lines) == (columns == 80)


def test_a_row_has_as_many_cells_as_its_table_has_heads() -> None:
    row = PrintedRow(name="x", stated=("1",), ours=("1", "2"))
    with pytest.raises(ValueError, match="2 cells"):
        PrintedTable(name="Table 1", title="", columns=("", "a", "b"), rows=(row,))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_says_what_its_figures_show(name: str) -> None:
    assert EXPERIMENTS[name].captions
    assert EXPERIMENTS[name].budget > 0


@pytest.mark.parametrize("name", PRINTED)
def test_every_figure_of_a_paper_is_drawn_or_the_page_says_why_not(name: str) -> None:
    """By the numbers that captions and reasons name."""
    item = EXPERIMENTS[name]
    named = " ".join((*item.captions.values(), *item.undrawn, *item.films_shown.values()))
    lists = re.findall(r"Figures? ((?:\d+[ab]?(?:, | and )?)+)", named)
    assert {int(number) for text in lists for number in re.findall(r"\d+", text)} >= set(
        PRINTED[name]
    )
    assert all(item.undrawn.values())


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of two experiments, one of them missing."""
    folder = tmp_path_factory.mktemp("page")
    there = [done(small(name, f"title {name} {HOSTILE}"), folder) for name in "ab"]
    return write_page(folder / "index.html", there, [small("c", "third")])


def test_a_page_is_one_file_with_every_name_as_text(written: Path) -> None:
    elements: set[str] = set()
    reader = HTMLParser(convert_charrefs=True)
    reader.handle_starttag = lambda tag, _: elements.add(tag)  # type: ignore[method-assign]
    reader.feed(written.read_text(encoding="utf-8"))
    assert {"table", "figure", "style", "iframe"} <= elements
    assert not {"script", "b", "link"} & elements


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    path = executable()
    if path is None:
        pytest.skip("needs Chromium or Chrome, and none is installed")
    with browser(path, tmp_path_factory.mktemp("profile")) as opened:
        opened.ask("Network.enable")
        yield opened


@pytest.mark.parametrize("width", [1200, 390])
def test_a_browser_shows_the_page_and_asks_for_nothing_else(
    page: Page, written: Path, width: int
) -> None:
    page.ask(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=900,
        deviceScaleFactor=1,
        mobile=width < 500,
    )
    page.open(written.as_uri())
    shown = page.text()
    assert f"Figure 9: a photograph {HOSTILE}" in shown
    assert shown.count(HOSTILE) >= 6  # titles, rows, quantities and choices, as they are written
    assert "third (c): not done yet" in shown
    assert page.run("document.title").startswith("Reproductions of five papers")
    assert page.run("[...document.images].every(one => one.complete && one.naturalWidth > 0)")
    assert page.run("document.documentElement.scrollWidth") <= width  # nothing sticks out
    edge = "Math.max(...[...document.querySelectorAll('table')].map(each => each.getBoundingClientRect().right))"
    assert page.run(edge) <= width  # nor has anybody to push a table aside
    assert page.run("document.querySelectorAll('td .upper')[0].innerText") == "1.5"
    page.run("document.querySelector('iframe').scrollIntoView()")
    page.wait(lambda: colored(page) > PIXELS, "the machine is drawn in its frame")
    asked = {
        request["request"]["url"].partition(":")[0]
        for request in page.happened("Network.requestWillBeSent")
    }
    assert asked <= {"file", "data", "blob"}
    assert page.errors() == []
    page.open("about:blank")  # or software goes on drawing, with all of a core


def colored(page: Page) -> int:
    """Pixels that are more red than blue, as platforms are, where the frame is, scrolled to the top; no figure is."""
    picture = matplotlib.image.imread(io.BytesIO(page.picture()), format="png")[:350, :, :3]
    return int((picture[:, :, 0] - picture[:, :, 2] > 0.25).sum())
