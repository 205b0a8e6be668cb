"""Pages that lead to others: first page, cheat sheet, families of the gallery, weights of the search."""

from __future__ import annotations

import re
from pathlib import Path

import cheat_sheet
import gallery_pages
import pytest
import site_hook
from browser import browser, executable

import tauloop as tl
from conftest import ROOT

DOCS = ROOT / "docs"
#: What a user types, and the page that must come first.
QUESTIONS = {
    "motor sizing": "how-to/choose-motors.html",
    "stiffness": "how-to/stiffness.html",
    "inverse kinematics": "kinematics.html",
}
#: Questions of three new users, and the pages that answer them.
ANSWERS = {
    "motors, gears, thermal margin": "how-to/choose-motors",
    "forces in joints and bearings": "how-to/joint-forces",
    "payload": "how-to/payload",
    "my own dimensions, stops, cams, drums": "machine-file tutorials/machine",
    "reach, work box, what limits it": "workspace",
    "camber, toe, own quantities": "how-to/outputs",
    "stiffness": "how-to/stiffness",
    "cycle time": "cycles",
    "a log of another program": "identification/recordings how-to/drive-currents ros-bags",
    "masses, friction and their error bars": "identification identification/error-bars",
    "filters and repairs of a log": "identification/preparation",
    "lengths and zeros": "calibration pose-selection",
    "a table for a paper": "notebooks",
    "is the model right": "verify",
    "a parallel ankle": "actuator-maps",
    "closed loops in URDF and MJCF": "importing how-to/closed-urdf",
    "JAX, CasADi, PyTorch": "how-to/jax-and-casadi how-to/pytorch",
    "Rerun and Foxglove": "how-to/rerun-and-foxglove",
    "ROS 2, FMU, C, microcontrollers": "ros2 fmu generated-code microcontrollers",
    "firmware of printers": "how-to/printer-firmware",
    "pages for others": "reports viewing",
    "systems, extras, licenses": "faq dependencies",
    "one page to print": "cheat-sheet",
}
TYPED = """(() => {
  document.querySelector('#__search').click()
  const query = document.querySelector('input[name=query]')
  query.focus()
  query.value = '%s'
  query.dispatchEvent(new Event('input', {bubbles: true}))
  query.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true}))
})()"""
FIRST_RESULT = "document.querySelector('.md-search-result__item a')?.getAttribute('href')"


def test_the_cheat_sheet_is_printed_from_its_page_on_one_page() -> None:
    content = cheat_sheet.PDF.read_bytes()
    assert f"/Title ({cheat_sheet.title()})".encode() in content, "python tools/cheat_sheet.py"
    assert len(re.findall(rb"/Type\s*/Page\b", content)) == 1


def test_the_machine_of_the_cheat_sheet_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "three_slides.yaml"
    path.write_text(cheat_sheet.MACHINE.read_text(encoding="utf-8"), encoding="utf-8")
    assert tl.check(path).status == "ok"


def test_every_machine_has_one_family() -> None:
    named = [name for names in gallery_pages.FAMILIES.values() for name in names]
    assert sorted(named) == sorted(tl.shipped_machines())


def test_machines_with_two_translations_have_a_picture_of_their_workspace() -> None:
    drawn = {path.name for path in gallery_pages.GALLERY.glob("*-workspace.png")}
    wanted = [
        name for name in tl.shipped_machines() if gallery_pages.workspace_plane(tl.load(name))
    ]
    assert drawn == {f"{name}-workspace.png" for name in wanted}
    assert len(drawn) > 15


def test_the_site_states_the_version_and_weighs_pages_that_exist() -> None:
    assert site_hook.version() == tl.__version__
    assert all((DOCS / name).is_file() for name in site_hook.SEARCH_WEIGHTS)
    assert {name.replace(".md", ".html") for name in site_hook.SEARCH_WEIGHTS} == set(
        QUESTIONS.values()
    )


def test_the_first_page_shows_a_machine_and_five_tasks() -> None:
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    (film,) = re.findall(r'<iframe src="gallery/films/(\w+)\.html"', text)
    assert film in tl.shipped_machines()
    cards = re.findall(r"^- \[!\[[^]]+\]\(([^)]+)\)\]\((tutorials/\w+\.md)\)$", text, re.M)
    assert len(cards) == 5
    assert all((DOCS / path).is_file() for card in cards for path in card)


def linked(page: Path) -> set[Path]:
    """Pages that a page links to."""
    names = re.findall(r"\]\(([^)#\s]+\.md)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    targets = {(page.parent / name).resolve() for name in names}
    return {target for target in targets if target.is_file()}


@pytest.mark.parametrize("start", [ROOT / "README.md", DOCS / "index.md"], ids=["README", "site"])
def test_questions_of_new_users_are_answered_within_three_pages(start: Path) -> None:
    first = linked(start)
    second = {target for page in first for target in linked(page)}
    within_three_pages = {start} | first | second
    answers = {DOCS / f"{name}.md" for names in ANSWERS.values() for name in names.split()}
    assert sorted(answers - within_three_pages) == []


@pytest.mark.nightly
@pytest.mark.parametrize("words", QUESTIONS)
def test_the_search_of_the_site_finds_the_page_first(words: str, tmp_path: Path) -> None:
    site, program = ROOT / "site" / "index.html", executable()
    if program is None or not site.exists():
        pytest.skip("needs Chromium and the site that `make docs` builds")
    with browser(program, tmp_path) as page:
        page.open(site.as_uri())
        page.run(TYPED % words)
        page.wait(lambda: page.run(FIRST_RESULT), "pages are found")
        first_page = str(page.run(FIRST_RESULT)).partition("?")[0].partition("#")[0]
        assert first_page.endswith(QUESTIONS[words])
        assert page.errors() == []
