"""Results in a folder: each is kept when it is done, and pages are made of what lies there."""

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
from tauloop.viewer import View
from tauloop_papers.controllers import controllers, functions, measured
from tauloop_papers.reproduction import EXPERIMENTS, LONG, Experiment, Progress, Reproduction

#: Figures are drawn for pages and for eyes.
ENDINGS = ("svg", "png")
#: Films are pages, and pictures that move anywhere.
FILM_ENDINGS = ("html", "gif")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A result as it lies in a folder.

    Attributes:
        experiment: what was done.
        folder: where it lies.
        data: what its JSON file holds: `status`, `result`, `advice`, `captions` of figures, what is
            `undrawn`, `films` (machines in motion), what the `controllers` functions are, the
            `machine` where it is not the paper's, and `code`, which says of which settings and
            sources it is the result. Equal runs give equal files.
    """

    experiment: Experiment
    folder: Path
    data: Mapping[str, Any]

    @property
    def status(self) -> Status:
        """Of the result."""
        return Status(self.data["status"])

    def figure(self, part: str, ending: str = "svg") -> Path:
        """File of a figure or film."""
        return self.folder / f"{self.experiment.name}-{part}.{ending}"

    @property
    def files(self) -> list[Path]:
        """All files of the result: figures, films and C, then its JSON."""
        drawn = [self.figure(part, ending) for part in self.data["captions"] for ending in ENDINGS]
        drawn += [
            self.figure(part, ending) for part in self.data["films"] for ending in FILM_ENDINGS
        ]
        drawn += [self.folder / file for item in self.data["controllers"] for file in item["files"]]
        return [*drawn, self.folder / f"{self.experiment.name}.json"]

    @property
    def measured(self) -> dict[str, Any]:
        """How the C ran here, by the name of an export; not among the files, for no two runs take the same time."""
        path = self.folder / f"{self.experiment.name}-measured.json"
        try:
            return dict(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return {}


def keep(reproduction: Reproduction, folder: Path, code: str, *, is_filmed: bool = True) -> Kept:
    """Write a result: its figures first, so that where there is the JSON file there is all of it.

    Args:
        reproduction: the result.
        folder: which is there.
        code: `code_of` the experiment, taken before it began: its program may have been changed
            since.
        is_filmed: films become files of their own, too, beside what pages show.

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
        "controllers": [
            {
                "name": export.name,
                "files": [f"{experiment.name}-c/{export.name}/{file}" for file in export.files],
                "functions": functions(export),
            }
            for export in made
        ],
    }
    kept = Kept(experiment=experiment, folder=folder, data=plain(data))
    for part, figure in drawn.items():
        for ending in ENDINGS:
            save_figure(figure, kept.figure(part, ending))
    for part, shown in films.items():
        for ending in FILM_ENDINGS if is_filmed else ():
            shown.save_film(kept.figure(part, ending))
    for export, item in zip(made, kept.data["controllers"], strict=True):
        for file, text in zip(item["files"], export.files.values(), strict=True):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            write_text(folder / file, text)
    if runs:
        write_json(folder / f"{experiment.name}-measured.json", plain(runs))
    write_json(kept.files[-1], kept.data)
    return kept


def _scene(shown: View, title: str) -> Piece:
    """A machine in motion as pages show it."""
    if shown.playback is None:
        raise ValueError(f"{title}: nothing moves")
    (scene,) = motion(shown.model, shown.playback.time, shown.playback.q, title, is_motion=False)
    return scene


def read_kept(experiment: Experiment, folder: Path) -> Kept | None:
    """What an earlier run has left; None where it is missing, damaged, or of other settings or sources."""
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
    """Of what settings (the paper's without them), programs and versions a result is: equal codes, equal figures."""
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
    """Do all experiments but long searches, and keep each in the folder when it is done; go on where a run was left.

    Args:
        folder: for results and figures.
        progress: called with every step that begins, and of which experiment.
        again: do those again, too, whose result is there, of the same settings, sources and
            versions.
        after_each: called with all that is there.

    Raises:
        TauloopError: an experiment cannot be done; the others are done first, and kept.
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
    """Do one experiment, and keep its result."""
    code = code_of(item, settings)
    return keep(item.run(progress, settings), folder, code)


def regular() -> list[Experiment]:
    """All experiments but long searches, which are asked for by name."""
    return [item for item in EXPERIMENTS.values() if item.budget <= LONG]
