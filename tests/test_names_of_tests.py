"""Each test file has its own name: pytest imports test files by name alone, and CI runs all folders together."""

from __future__ import annotations

from collections import Counter

from conftest import ROOT


def test_no_two_test_files_share_a_name() -> None:
    files = [*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "papers" / "tests").rglob("test_*.py")]
    shared = [name for name, count in Counter(path.name for path in files).items() if count > 1]
    assert not shared, f"rename one of each: {', '.join(shared)}"
