"""``python tools/walk.py``: time the way of a new user from the README to a verified machine in an empty environment.

It runs what a new user would run without knowledge of the repository: a clone, the commands of the
README's first two blocks, those of the first tutorial. All of them are read from these texts. They
run one after the other in one shell with an empty home folder and only the system's programs on its
path; the environment is the one that the README creates. Pages that would open in a browser are not
checked. The walk ends where the tutorial does: with ``tauloop verify``, every line of which must
agree. The limit is ten minutes.
"""

from __future__ import annotations

import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README, TUTORIAL = "README.md", "docs/tutorials/machine.md"
#: Time limit of the whole walk, s.
LIMIT = 600.0


def readme_commands(text: str) -> list[str]:
    """Return the commands of the README's blocks below "Install" and "First result", without comments."""
    parts = [text.split(f"\n## {heading}\n")[1] for heading in ("Install", "First result")]
    blocks = [re.findall(r"^```console\n(.*?)^```", part, re.M | re.S)[0] for part in parts]
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return [line.removeprefix("$ ").split("  #")[0].strip() for line in lines]


def tutorial_commands(text: str) -> list[str]:
    """Return the blocks of commands of the tutorial, up to the one that verifies."""
    blocks = [block.strip() for block in re.findall(r"^```bash\n(.*?)^```", text, re.M | re.S)]
    last = next(i for i, block in enumerate(blocks) if block.startswith("tauloop verify"))
    return blocks[: last + 1]


def script(clone: Path, own: Path) -> str:
    """Return all commands, each printed before it runs; once Tauloop is installed, they run in a separate folder."""
    readme = readme_commands((clone / README).read_text(encoding="utf-8"))
    tutorial = tutorial_commands((clone / TUTORIAL).read_text(encoding="utf-8"))
    first = next(i for i, command in enumerate(readme) if command.startswith("tauloop "))
    steps = [*readme[:first], f"cd {shlex.quote(str(own))}", *readme[first:], *tutorial]
    return "\n".join(f"echo {shlex.quote(f'$ {step}')}\n{step}" for step in steps)


def disagreeing(printed: str) -> list[str]:
    """Lines of the last verification that do not agree, or a word that there is none."""
    table = printed.rpartition("random states")[2]
    compared = re.findall(r"^.* (?:Pinocchio|MuJoCo)  .*$", table, re.M)
    return (
        [line for line in compared if not line.rstrip().endswith("agrees")]
        if compared
        else ["nothing is compared"]
    )


def walk(folder: Path) -> float:
    """Walk in an empty folder, and give the seconds that it took.

    Raises:
        SystemExit: a command fails, or an engine does not agree.
    """
    clone, own = folder / "tauloop", folder / "own"
    own.mkdir()
    subprocess.run(
        ["git", "clone", "--quiet", "--depth", "1", ROOT.as_uri(), str(clone)], check=True
    )
    # where packages are
    settings = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    path = f"{Path(sys.executable).resolve().parent}:/usr/local/bin:/usr/bin:/bin"
    empty = {"PATH": path, "HOME": str(folder), "LANG": "C.UTF-8", "BROWSER": "true"}
    begin = time.monotonic()
    command = ["bash", "-e", "-c", script(clone, own)]
    done = subprocess.run(
        command,
        cwd=clone,
        env=settings | empty,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - begin
    print(done.stdout, flush=True)
    if done.returncode:
        raise SystemExit(f"the walk ends with exit code {done.returncode}")
    if lines := disagreeing(done.stdout):
        raise SystemExit("\n".join(["tauloop verify does not agree:", *lines]))
    return seconds


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as empty:
        took = walk(Path(empty))
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = used.ru_utime + used.ru_stime
        print(
            f"from the README to a verified machine: {took:.0f} s of {LIMIT:.0f}, {processor:.0f} s of processor time"
        )
    sys.exit(took > LIMIT)
