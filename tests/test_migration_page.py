"""The page on migration follows from the tables of deprecated names."""

from __future__ import annotations

import migration_page


def test_the_page_follows_from_the_tables() -> None:
    page = migration_page.MIGRATION_PAGE.read_text(encoding="utf-8")
    assert page == migration_page.text(), "run python tools/migration_page.py"
