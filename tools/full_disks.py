"""``unshare -rm python full_disks.py FULL LEFT NAME...``: run commands with a full disk; prints a list of faults.

FULL is the disk that is full: that of the ``outputs``, of the ``cache`` or of ``temporary`` files;
``home`` makes the whole home folder read-only. LEFT lists the free space on the disk of the
outputs, one round each, such as 0,4 (KiB). The disks are mounted in a namespace of this process
alone, and vanish with it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

#: Everything is below this folder, which every Linux has; only this process sees the mounts.
PLACE = Path("/mnt")
#: Size of a disk and of a page of memory, KiB, and the file that fills the disk.
SIZE, PAGE = 64, 4
FILLER = "filler"
#: What a message must contain by the disk that is full: the reason, or the remedy.
REASONS = {
    "outputs": "No space left on device",
    "cache": "No space left on device",
    "temporary": "TMPDIR=FOLDER",
    "home": "Read-only file system",
}
#: Folders that programs fall back to when TMPDIR is full.
TEMPORARY = ("/tmp", "/var/tmp", "/usr/tmp")


def mount(folder: Path, *options: str) -> Path:
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", *options, "tmpfs", str(folder)], check=True)
    return folder


def unmount(folder: Path) -> None:
    subprocess.run(["umount", str(folder)], check=True)


def full(folder: Path, left: int = 0) -> Path:
    """Fill a small disk until `left` KiB are free."""
    filler = folder / FILLER
    with filler.open("wb", buffering=0) as stream:
        with suppress(OSError):
            while stream.write(bytes(1024)):
                pass
    os.truncate(filler, filler.stat().st_size - 1024 * left)
    return folder


def surround(which: str) -> None:
    """Mount the disks and name them in the environment, before a module that reads the environment is imported."""
    mount(PLACE)
    for name in ("home", "cache", "tmp"):
        (PLACE / name).mkdir()
    os.environ |= {
        "HOME": str(PLACE / "home"),
        "XDG_CACHE_HOME": str(PLACE / "cache"),
        "TMPDIR": str(PLACE / "tmp"),
    }
    os.environ["XDG_CONFIG_HOME"] = str(PLACE / "home" / ".config")
    if which == "home":
        mount(PLACE / "home", "-o", "ro")
        os.environ["XDG_CACHE_HOME"] = str(PLACE / "home" / ".cache")
    if which == "cache":
        full(mount(PLACE / "cache", "-o", f"size={SIZE}k"))


def fill_temporary() -> None:
    """Fill the disk of temporary files, and mount it at all fallback folders."""
    full(mount(PLACE / "tmp", "-o", f"size={SIZE}k"))
    for folder in TEMPORARY:
        needed = any(
            Path(path).resolve().is_relative_to(folder)
            for path in (__file__, sys.prefix, sys.base_prefix)
        )
        if Path(folder).is_dir() and not Path(folder).is_symlink() and not needed:
            subprocess.run(["mount", "--bind", str(PLACE / "tmp"), folder], check=True)
    os.chdir(PLACE / "tmp")


def faults(name: str, which: str, rounds: list[int]) -> list[str]:
    """Run one command with the full disk; return one line for each unexpected result."""
    words = kills.COMMANDS[name]
    if which != "outputs":
        out = PLACE / f"out-{name}"
        out.mkdir()
        return _judged(name, words, out, {}, which, refuses=False)
    reference = PLACE / f"reference-{name}"
    reference.mkdir()
    kills.run(words, reference)
    new = {file: len(content) for file, content in kills.content_of(reference).items()}
    lines = [] if new else [f"{name}: wrote nothing although there was space"]
    folders = tuple(kills.folders_of(words))
    for left in rounds:
        # each old file takes a page of memory
        out = mount(PLACE / "disk", "-o", f"size={SIZE + PAGE * len(new)}k")
        for file in new:
            # The state of a search is accepted only with the same task.
            if not file.startswith(folders) and kills.SEARCH_FOLDER not in file:
                (out / file).parent.mkdir(parents=True, exist_ok=True)
                (out / file).write_bytes(kills.old_content(file))
        full(out, left)
        lines += _judged(f"{name}, {left} KiB left", words, out, new, which, refuses=left == 0)
        unmount(out)
    return lines


def _judged(
    name: str,
    words: tuple[str, ...],
    out: Path,
    new: dict[str, int],
    which: str,
    *,
    refuses: bool,
) -> list[str]:
    """Check exit code, messages and files of one run; `new` has the sizes of complete files."""
    errors = PLACE / "said"
    code = os.waitstatus_to_exitcode(kills.run(words, out, errors=errors)[0])
    text = errors.read_text(errors="replace")
    lines = []
    if code not in ((2,) if refuses else (0, 1, 2)) or "Traceback" in text:
        lines.append(f"{name}: ended with {code}: {text[-1000:]}")
    if code == 2 and REASONS[which] not in text:
        lines.append(f"{name}: the message does not contain {REASONS[which]!r}: {text[-1000:]}")
    if code != 2 and not any(out.iterdir()):
        lines.append(f"{name}: ended with {code} and wrote nothing")
    present = kills.content_of(out)
    present.pop(FILLER, None)
    lines += [
        f"{name}: left {file} behind" for file in (present.keys() - new.keys() if new else ())
    ]
    folders = kills.folders_of(words)
    for folder in folders:
        written = {file: len(content) for file, content in present.items() if folder in file}
        complete = {file: size for file, size in new.items() if folder in file}
        if written and new and written != complete:
            lines.append(f"{name}: {folder} is incomplete")
    for file, size in new.items():
        content = present.get(file, b"")
        if file.startswith(tuple(folders)) or content == kills.old_content(file):
            continue
        if kills.SEARCH_FOLDER in file and file not in present:
            continue
        if not kills.is_whole(file, content, size):
            lines.append(
                f"{name}: {file} has {len(content)} bytes, neither the old nor the new file"
            )
    return lines


if __name__ == "__main__":
    which, rounds, names = sys.argv[1], [int(left) for left in sys.argv[2].split(",")], sys.argv[3:]
    surround(which)
    import kills  # reads its folders on import

    kills.GIVEN.mkdir()
    kills.GIVEN = kills.GIVEN.rename(PLACE / "given")
    if any("{given}" in word for name in names for word in kills.COMMANDS[name]):
        kills.prepare(kills.GIVEN)
    if which == "temporary":
        fill_temporary()
        kills.tempfile.tempdir = None  # to be determined again
    print(json.dumps([line for name in names for line in faults(name, which, rounds)], indent=1))
