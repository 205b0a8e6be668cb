"""The site from the disk, where `make docs` has built it and there is a browser: its search, and what is copied."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import browser, executable

from conftest import ROOT

#: What a reader does: click, type a word.
TYPED = """(() => {
  document.querySelector('#__search').click()
  const query = document.querySelector('input[name=query]')
  query.focus()
  query.value = 'regressor'
  query.dispatchEvent(new Event('input', {bubbles: true}))
  query.dispatchEvent(new KeyboardEvent('keyup', {bubbles: true}))
})()"""


#: What the button beside a block of code puts into the clipboard.
COPIED = """(() => {
  const code = document.querySelector('pre > code')
  code.setAttribute('data-md-copying', '')
  return code.innerText.trimEnd()
})()"""


@pytest.mark.nightly
def test_commands_are_copied_without_prompts_and_answers(tmp_path: Path) -> None:
    page_of_check, program = ROOT / "site" / "check.html", executable()
    if program is None or not page_of_check.exists():
        pytest.skip("needs Chromium and the site that `make docs` builds")
    with browser(program, tmp_path) as page:
        page.open(page_of_check.as_uri())
        assert page.run(COPIED) == "tauloop check five_bar"


@pytest.mark.nightly
def test_a_word_is_found_from_the_disk(tmp_path: Path) -> None:
    site, program = ROOT / "site" / "index.html", executable()
    if program is None or not site.exists():
        pytest.skip("needs Chromium and the site that `make docs` builds")
    with browser(program, tmp_path) as page:
        page.open(site.as_uri())
        page.run(TYPED)
        page.wait(
            lambda: page.run("document.querySelectorAll('.md-search-result__item').length"),
            "pages are found",
        )
        assert page.errors() == []
