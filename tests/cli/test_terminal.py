"""What commands print: nothing that steers a terminal, whole JSON, and a word where the output cannot be written."""

from __future__ import annotations

import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from commands import SOON
from rich.table import Table
from terminals import in_terminal, shown
from typer.testing import CliRunner

from tauloop.cli import main
from tauloop.cli.app import app
from tauloop.cli.terminal.screen import CONTROL_CHARACTERS, Screen, json_text, visible

FULL = Path("/dev/full")
#: A colour, a bell, a window's title, a carriage return, C1, a turn of direction, half of a
#: character.
STEERS = "\x1b[31mred\x07\x1b]0;title\x07\rover\x9b31m\u202egnp.exe\u2028\udc80"
WRITTEN_OUT = r"\x1b[31mred\x07\x1b]0;title\x07\rover\x9b31m\u202egnp.exe\u2028\udc80"
MACHINE = """
format: tauloop-machine/1
name: m
description: "steers \\e[31m a terminal \\a \\u202E"
provenance: {status: chosen, source: "x \\e[2J"}
gravity: [0, 0, -9.81 m/s^2]
bodies: {b: {mass: 1 kg, center: [0.1 m, 0, 0]}}
joints: {j: {type: revolute, axis: z, parent: base, child: b, reference: 0 deg}}
actuators: {a: {on: j}}
platform: {body: b, independent: [j]}
"""


def tauloop(*arguments: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", "from tauloop.cli import main; main()", *arguments]
    return subprocess.run(command, check=False, stderr=subprocess.PIPE, **options)  # type: ignore[call-overload]


def test_signs_that_steer_are_written_out():
    assert visible(STEERS) == WRITTEN_OUT
    assert visible("Grüße: 5 µm ± 2 °, 日本\n\t") == "Grüße: 5 µm ± 2 °, 日本\n\t"


def test_a_console_prints_them_written_out_and_keeps_its_own_styles():
    stream = io.StringIO()
    screen = Screen(
        file=stream, force_terminal=True, width=200, color_system="truecolor", legacy_windows=False
    )
    screen.print(STEERS, style="bold", soft_wrap=True)
    table = Table("name")
    table.add_row(f"{STEERS[:10]}")
    screen.print(table)
    text = stream.getvalue()
    assert text.startswith("\x1b[1m")
    rest = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert CONTROL_CHARACTERS.search(rest) is None
    assert r"\x9b31m\u202egnp.exe" in rest


#: What Rich's consoles would make bold, a picture, and an error.
MARKUP = "[bold]a :smile: [/x]"


def test_a_console_reads_no_markup_in_names_and_colours_no_numbers():
    stream = io.StringIO()
    screen = Screen(
        file=stream, force_terminal=True, width=200, color_system="truecolor", legacy_windows=False
    )
    screen.print(f"{MARKUP} 5.0", f"in {MARKUP}")
    assert stream.getvalue() == f"{MARKUP} 5.0 in {MARKUP}\n"
    table = Table(f"head {MARKUP}", title=f"title {MARKUP}")
    table.add_row(f"cell {MARKUP}")
    screen.print(table)
    for word in ("head", "title", "cell"):
        assert f"{word} {MARKUP}" in stream.getvalue()


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_a_doubtful_result_names_its_file_as_it_is(quiet, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "[bold]m:smile:.yaml"
    Path(name).write_text(MACHINE.replace("actuators: {a: {on: j}}\n", ""), encoding="utf-8")
    result = CliRunner().invoke(app, ["check", name, *quiet], env={"COLUMNS": "200"})
    assert result.exit_code == 1
    assert name in (result.stderr if quiet else result.stdout)


def test_json_says_the_same_with_escapes():
    text = json_text({"name": STEERS})
    assert CONTROL_CHARACTERS.search(text) is None
    assert json.loads(text) == {"name": STEERS}


@pytest.mark.parametrize(
    "command", [["check", "{}"], ["show", "{}", "--table"], ["show", "{}", "--json"]]
)
def test_a_machine_file_cannot_steer_the_terminal(command, tmp_path):
    path = tmp_path / "m.yaml"
    path.write_text(MACHINE, encoding="utf-8")
    result = CliRunner().invoke(app, [word.format(path) for word in command])
    assert result.exit_code in (0, 1)
    assert CONTROL_CHARACTERS.search(result.output) is None


@pytest.mark.parametrize("as_json", [False, True])
def test_messages_cannot_steer_the_terminal(as_json, tmp_path):
    """A name in a file, and the name of the file itself."""
    path = tmp_path / "a\x1b[31m\udcff.yaml"
    path.write_text(MACHINE.replace("type: revolute", 'type: "rev\\e[31molute"'), encoding="utf-8")
    result = CliRunner().invoke(app, ["check", str(path), *(["--json"] if as_json else [])])
    assert result.exit_code == 2
    assert CONTROL_CHARACTERS.search(result.output) is None
    assert "olute" in result.output


@pytest.mark.skipif(not FULL.exists(), reason=f"needs {FULL}, a disk that is always full")
@pytest.mark.parametrize(
    "arguments", [["list"], ["check", "delta", "--json"], ["env", "schema"], ["--help"]]
)
def test_a_full_output_is_said_and_no_traceback(arguments):
    with FULL.open("wb") as full:
        done = tauloop(*arguments, stdout=full)
    assert done.returncode == 2
    assert done.stderr == b"standard output: cannot be written: No space left on device\n"


def test_a_closed_pipe_is_no_error_worth_a_word():
    reading, writing = os.pipe()
    os.close(reading)
    done = tauloop("env", "schema", stdout=writing)
    os.close(writing)
    assert done.stderr == b""


#: Commands that print by Rich, by Typer, and of Typer itself; a result, JSON, and problems of an
#: input.
PRINTING = [
    ["list"],
    ["env", "schema"],
    ["--help"],
    ["show", "five_bar"],
    ["show", "five_bar", "--json"],
    ["show", "none"],
]


def in_shell(redirection: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[bytes]:
    """The program with its streams as a shell hands them over."""
    words = [sys.executable, "-c", "from tauloop.cli import main; main()", *arguments]
    command = ["bash", "-o", "pipefail", "-c", f'"$@" {redirection}', "bash", *words]
    return subprocess.run(command, check=False, capture_output=True, env={**os.environ, **more})


@pytest.mark.parametrize("arguments", PRINTING)
def test_a_closed_output_is_stated_and_ends_with_two(arguments):
    done = in_shell(">&-", *arguments)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    if arguments[-1] != "none":
        assert done.stderr == b"standard output: cannot be written: Bad file descriptor\n"


def test_a_quiet_command_needs_no_output():
    done = in_shell(">&-", "show", "five_bar", "--quiet")
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    "arguments", [["show", "five_bar"], ["show", "five_bar", "--json"], ["show", "none"]]
)
@pytest.mark.parametrize("redirection", ["2>&-", "<&-", "<&- 2>&-"])
def test_other_closed_streams_change_no_result(arguments, redirection):
    done, usual = in_shell(redirection, *arguments), in_shell("", *arguments)
    assert usual.returncode == (2 if "none" in arguments else 0)
    assert (done.returncode, done.stdout) == (usual.returncode, usual.stdout)
    assert done.stderr == (b"" if "2>&-" in redirection else usual.stderr)


@pytest.mark.parametrize("redirection", ["<&- >&- 2>&-", ">&- 2>&-"])
def test_a_command_without_any_stream_ends_with_two(redirection):
    assert in_shell(redirection, "show", "five_bar").returncode == 2


def test_a_closed_stream_does_not_give_its_number_to_a_file(tmp_path):
    """What a library prints would go into it; the file here is the first that the command opens for long."""
    out = tmp_path / "stroke.csv"
    done = in_shell(
        ">&- 2>&-", "plan", "stroke", "five_bar", "--end", "x=0.02", "--out", str(out), "--quiet"
    )
    assert done.returncode == 0
    assert len(out.read_text().splitlines()) > 10


@pytest.mark.parametrize("arguments", PRINTING)
@pytest.mark.parametrize("redirection", ["| true", "2>&1 | true"])
def test_a_reader_that_has_ended_is_no_error_worth_a_word(arguments, redirection):
    """It may have read all before; what is never right is the exit code of a doubtful result, or a traceback."""
    done = in_shell(redirection, *arguments)
    assert done.returncode in (0, 2)
    assert b"Traceback" not in done.stderr
    if arguments[-1] != "none":
        assert done.stderr == b""


def test_a_width_that_is_none_is_ignored():
    usual = in_shell("", "list", COLUMNS="80", LINES="25").stdout
    assert usual.count(b"\n") > 10
    for columns in ("0", "\N{SUPERSCRIPT TWO}", "1" * 5000):
        done = in_shell("", "list", COLUMNS=columns, LINES=columns)
        assert (done.returncode, done.stdout) == (0, usual), columns


@pytest.mark.parametrize("backend", ["nonsense", "module://nowhere", "tkagg"])
def test_a_backend_of_matplotlib_does_not_matter_for_files(backend, tmp_path):
    out = tmp_path / "figure.png"
    done = in_shell("", "show", "five_bar", "--out", str(out), MPLBACKEND=backend)
    assert (done.returncode, done.stderr) == (0, b"")
    assert out.stat().st_size > 1000


def test_an_output_of_another_alphabet_is_written_with_escapes(tmp_path):
    path = tmp_path / "m.yaml"
    path.write_text(
        MACHINE.replace("name: m", "name: m").replace("steers", "stört µ"), encoding="utf-8"
    )
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = tauloop("show", str(path), stdout=subprocess.PIPE, env=environment)
    assert b"Traceback" not in done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("name", ["50$ arm", "$\\frac{1$", "a$b_{$c", "$$", "\\$"])
def test_dollar_signs_in_names_are_drawn_as_they_are(name, tmp_path):
    from matplotlib.figure import Figure

    from tauloop.display.renderers.figure_style import save_figure

    figure = Figure()
    axes = figure.subplots()
    axes.loglog([1, 1000], [1e-3, 1], label=name)
    axes.set_title(name)
    axes.set_xlabel(name)
    axes.legend()
    figure.suptitle(name)
    path = save_figure(figure, tmp_path / "a.svg")
    assert path.stat().st_size > 1000


# Ctrl-C

BUSY = {
    "machine code": "import hashlib; print('busy', flush=True); hashlib.pbkdf2_hmac('sha256', b'', b'', 2_000_000_000)",
    "an interrupt that is swallowed": """
import time
print('busy', flush=True)
while True:
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        pass
""",
}
KEEPS = """
import signal, time
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(1))
print('busy', flush=True)
while not seen:
    time.sleep(0.01)
time.sleep(3.0)
print('the best so far', flush=True)
"""


def interrupted(code: str, times: int = 1) -> tuple[int, bytes, float]:
    """Exit code, what was printed, and the time from the last interrupt to the end."""
    whole = (
        "from tauloop.cli.terminal.process import ends_soon\nwith ends_soon():\n"
        + textwrap.indent(code, "    ")
    )
    with subprocess.Popen(
        [sys.executable, "-c", whole], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        time.sleep(0.5)  # the next line has begun
        for _ in range(times - 1):
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    return process.returncode, output, time.monotonic() - start


def test_a_search_that_keeps_its_best_result_is_left_alone():
    code, text, took = interrupted(KEEPS)
    assert code == 0
    assert text == b"the best so far\n"
    assert took > SOON


def test_a_second_interrupt_ends_such_a_search_too():
    code, text, took = interrupted(KEEPS.replace("3.0", "30.0"), times=2)
    assert (code, text) == (130, b"")
    assert took < SOON


STARTS = """
import subprocess, sys
group = subprocess.Popen(
    [sys.executable, "-c", "import subprocess; subprocess.Popen(['sleep', 'NAP']).wait()"], start_new_session=True
)
alone = subprocess.Popen(["sleep", "NAP"])
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's list of processes")
@pytest.mark.parametrize("what", [*BUSY, "Python"])
def test_an_interrupt_ends_a_command_soon_with_all_that_it_has_started(what):
    """Compilers lead a group each, workers do not; whatever they have started is in their group."""
    nap = f"98.{os.getpid()}"  # its own, whatever other tests have asleep
    busy = BUSY.get(what, "import time; print('busy', flush=True); time.sleep(60)")
    code, _, took = interrupted(STARTS.replace("NAP", nap) + busy)
    # Python itself ends as the signal does
    assert code == (130 if what in BUSY else -signal.SIGINT)
    assert took < SOON
    mine = f"sleep\0{nap}\0".encode()
    assert [place for place in Path("/proc").glob("[1-9]*/cmdline") if read(place) == mine] == []


def read(place: Path) -> bytes:
    """A file of a process that may end at this moment."""
    try:
        return place.read_bytes()
    except OSError:
        return b""


def test_an_interrupt_while_the_command_line_is_imported_leaves_no_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tauloop.cli.app.app", interrupted)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130


def test_ctrl_c_ends_a_search_of_modes() -> None:
    with in_terminal("modes", "hexapod") as (process, terminal):
        seen = shown(terminal, until=b"complex solutions")
        assert b"complex solutions" in seen
        assert process.poll() is None
        before, begun = processor_time(process.pid), time.monotonic()
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        process.send_signal(signal.SIGINT)
        rest = shown(terminal)
        process.wait(timeout=60)
        waited = time.monotonic() - begun
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = ended.ru_utime + ended.ru_stime - children.ru_utime - children.ru_stime - before
    # on cores that others keep busy the clock runs on while the process waits
    assert min(waited, used) < SOON
    assert process.returncode == 130
    assert b"Traceback" not in seen + rest


def processor_time(process: int) -> float:
    """Of a running process, s (proc(5))."""
    with open(f"/proc/{process}/stat", encoding="ascii") as stream:
        user, system = stream.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
