"""``python tools/cheat_sheet.py``: print the cheat sheet of docs/ as a PDF of one page, by Chromium.

The title of the PDF contains a digest of its content, by which a test finds an outdated file.
"""

from __future__ import annotations

import hashlib
import html
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE, MACHINE, PDF = (ROOT / "docs" / f"cheat-sheet.{ending}" for ending in ("md", "yaml", "pdf"))
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
STYLE = """
@page { size: A4 landscape; margin: 9mm; }
body { font: 8.5pt/1.35 sans-serif; margin: 0; }
h1 { font-size: 14pt; margin: 0 0 2mm; }
main { display: grid; grid-template-columns: 1.25fr 1fr; gap: 7mm; }
table { border-collapse: collapse; width: 100%; }
td { border-top: 0.2mm solid #999; padding: 1mm; vertical-align: top; }
td:first-child { font-weight: bold; width: 22mm; }
code { display: block; font-size: 7.4pt; }
pre { font-size: 7pt; line-height: 1.3; background: #f3f3f3; padding: 2mm; margin: 0; }
"""


def title() -> str:
    """Return the title of the PDF: the name of the page and the digest of its HTML."""
    return f"Tauloop cheat sheet {hashlib.sha256(body().encode()).hexdigest()[:12]}"


def document() -> str:
    """Return the page of the PDF as HTML."""
    return f'<!doctype html><meta charset="utf-8"><title>{title()}</title>{body()}'


def body() -> str:
    """Return the HTML of the tables and the machine file."""
    text = PAGE.read_text(encoding="utf-8")
    machine = MACHINE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| (`.*`) \|$", text, re.M)
    lines = []
    for task, commands in rows:
        shown = "".join(
            f"<code>{html.escape(command)}</code>" for command in commands.strip("`").split("`, `")
        )
        lines.append(f"<tr><td>{html.escape(task)}</td><td>{shown}</td></tr>")
    note = re.search(r"^Exit codes: .*$", text, re.M)
    assert note is not None
    return f"""<style>{STYLE}</style>
<h1>Tauloop on one page</h1>
<main><div><table>{"".join(lines)}</table><p>{html.escape(note[0].replace("`", ""))}</p></div>
<pre>{html.escape(machine)}</pre></main>"""


def write(target: Path) -> None:
    """Write the PDF."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        sys.exit(f"needs one of {', '.join(BROWSERS)}")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "page.html"
        source.write_text(document(), encoding="utf-8")
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
        command = [program, *flags, f"--print-to-pdf={target}", source.as_uri()]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL, timeout=120)


if __name__ == "__main__":
    write(PDF)
