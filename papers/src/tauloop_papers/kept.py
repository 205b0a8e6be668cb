"""Results in a folder: each is stored when it is complete, and pages show the stored results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import tauloop as tl
from tauloop.common.files import write_text
from tauloop.common.result import Status, plain, provenance, write_json
from tauloop.display import Piece, motion, save_figure
from tauloop.export.c import Export
from tauloop.viewer import View
from tauloop_papers.controllers import controllers, functions, measured
from tauloop_papers.reproduction import EXPERIMENTS, LONG, Experiment, Progress, Reproduction

#: File types of figures, for pages and for viewers.
ENDINGS = ("svg", "png")
#: File types of films: web pages and animated pictures.
FILM_ENDINGS = ("html", "gif")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A stored result in a folder.

    Attributes:
        experiment: the experiment.
        folder: folder of the result.
        data: content of its JSON file: `status`, `result`, `advice`, `captions` of figures,
            descriptions of `undrawn` figures, `films`, `controllers`, the `machine` if it is not
            the paper's, and `code`, a hash of settings and sources. Equal runs give equal files.
    """

    experiment: Experiment
    folder: Path
    data: Mapping[str, Any]

    @property
    def status(self) -> Status:
        """Status of the result."""
        return Status(self.data["status"])

    def figure(self, part: str, ending: str = "svg") -> Path:
        """Return the file of a figure or film."""
        return self.folder / f"{self.experiment.name}-{part}.{ending}"

    @property
    def files(self) -> list[Path]:
        """All files of the result: figures, films, C code and JSON."""
        drawn = [self.figure(part, ending) for part in self.data["captions"] for ending in ENDINGS]
        drawn += [
            self.figure(part, ending) for part in self.data["films"] for ending in FILM_ENDINGS
        ]
        drawn += [self.folder / file for item in self.data["controllers"] for file in item["files"]]
        return [*drawn, self.folder / f"{self.experiment.name}.json"]

    @property
    def measured(self) -> dict[str, Any]:
        """Results of the C code on this computer by export; not among the files, as times vary."""
        path = self.folder / f"{self.experiment.name}-measured.json"
        try:
            return dict(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return {}


def keep(reproduction: Reproduction, folder: Path, code: str, *, is_filmed: bool = True) -> Kept:
    """Write a result; the JSON file comes last, so that it exists only with all other files.

    Args:
        reproduction: the result.
        folder: an existing folder.
        code: `code_of` the experiment, computed before it began, because its program may have been
            changed since.
        is_filmed: whether to write films as separate files, in addition to those on pages.

    Raises:
        InputError: the folder cannot be written.
    """
    experiment = reproduction.experiment
    machine = experiment.machine_of(getattr(reproduction, "settings", None))
    made = controllers(experiment.name, machine)
    runs = {export.name: measured(export) for export in made}
    faults = [f"{name}: {run.verdict}" for name, run in runs.items() if run.agrees is False]
    films, drawn = experiment.films(reproduction), experiment.figures(reproduction)
    data = {
        "status": Status.DOUBTFUL if faults else reproduction.status,
        "code": code,
        "machine": machine if machine != experiment.machine_of(experiment.settings) else "",
        "captions": {part: experiment.captions[part] for part in drawn},
        "undrawn": experiment.undrawn,
        "films": {
            part: _scene(shown, experiment.films_shown[part]) for part, shown in films.items()
        },
        "advice": (*reproduction.advice, *faults),
        "result": reproduction,
        "controllers": [_controller_data(experiment.name, export) for export in made],
    }
    kept = Kept(experiment=experiment, folder=folder, data=plain(data))
    for part, figure in drawn.items():
        for ending in ENDINGS:
            save_figure(figure, kept.figure(part, ending))
    for part, shown in films.items():
        for ending in FILM_ENDINGS if is_filmed else ():
            shown.save_animation(kept.figure(part, ending))
    for export, item in zip(made, kept.data["controllers"], strict=True):
        for file, text in zip(item["files"], export.files.values(), strict=True):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            write_text(folder / file, text)
    if runs:
        write_json(folder / f"{experiment.name}-measured.json", plain(runs))
    write_json(kept.files[-1], kept.data)
    return kept


def _controller_data(name: str, export: Export) -> dict[str, Any]:
    """Return the data of an export for the JSON file."""
    return {
        "name": export.name,
        "files": [f"{name}-c/{export.name}/{file}" for file in export.files],
        "functions": functions(export),
    }


def _scene(shown: View, title: str) -> Piece:
    """Return the piece of a page that shows a machine in motion."""
    if shown.playback is None:
        raise ValueError(f"{title}: the machine does not move")
    (scene,) = motion(shown.model, shown.playback.time, shown.playback.q, title, is_motion=False)
    return scene


def read_kept(experiment: Experiment, folder: Path) -> Kept | None:
    """Return a stored result; None if it is missing, damaged, or of other settings or sources."""
    try:
        data = json.loads((folder / f"{experiment.name}.json").read_text(encoding="utf-8"))
        kept = Kept(experiment=experiment, folder=folder, data=data)
        is_whole = data["code"] == code_of(experiment) and all(
            path.is_file() for path in kept.files
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return kept if is_whole else None


def code_of(experiment: Experiment, settings: Any = None) -> str:
    """Return a hash of settings (the paper's by default), programs and versions of a result.

    Equal hashes mean equal results.
    """
    made_by = provenance(
        packages=("numpy", "scipy", "casadi"), options=plain(settings or experiment.settings)
    )
    digest = hashlib.sha256(json.dumps(plain(made_by), sort_keys=True).encode())
    for root in (Path(tl.__file__).parent, Path(__file__).parent):
        for path in sorted(
            path for path in root.rglob("*") if path.suffix in (".py", ".c", ".yaml", ".json")
        ):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def reproduce_all(
    folder: Path,
    progress: Callable[[Experiment, str], None] = lambda *_: None,
    *,
    again: bool = False,
    after_each: Callable[[list[Kept]], object] = lambda _: None,
) -> list[Kept]:
    """Reproduce all experiments except long searches, and store each result; continue a former run.

        folder: folder of results and figures.
        progress: called with the experiment and the step that begins.
        again: whether to repeat experiments with a stored result of the same settings, sources and
            versions.
        after_each: called with all stored results.

    Raises:
        TauloopError: an experiment fails; the others are reproduced and stored first.
    """
    there: list[Kept] = []
    failures: list[tl.TauloopError] = []
    for item in regular():
        kept = None if again else read_kept(item, folder)
        try:
            there.append(kept or done(item, folder, partial(progress, item)))
        except tl.TauloopError as error:
            failures.append(error)
        after_each(there)
    if failures:
        raise failures[0]
    return there


def done(
    item: Experiment, folder: Path, progress: Progress = lambda _: None, settings: Any = None
) -> Kept:
    """Reproduce one experiment, and store its result."""
    code = code_of(item, settings)
    return keep(item.run(progress, settings), folder, code)


def regular() -> list[Experiment]:
    """Return all experiments except long searches, which must be named."""
    return [item for item in EXPERIMENTS.values() if item.budget <= LONG]
