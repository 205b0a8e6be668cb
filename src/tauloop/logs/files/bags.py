"""ROS bags as tables: message fields are columns, and the messages of one topic are samples.

The samples are at the time stamps of one topic: that of the time column or, without a time column,
of the first requested column. Stamps are those in message headers, or the times of receipt if the
headers have none. Columns of other topics are interpolated at these stamps
(`time_base.INTERPOLATIONS`); at equal stamps they are unchanged. Samples outside the common time
range of all topics are omitted.
"""

from __future__ import annotations

import logging
import os.path
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from tauloop.common.errors import LogError
from tauloop.logs.checks.findings import LISTED_PER_KIND, Findings
from tauloop.logs.checks.time_base import StampedSignal
from tauloop.logs.files.reading_apart import bag_columns, bag_topics
from tauloop.logs.tables import KIND_DROPPED, MAX_MEASURED_NUMBER, LogTable
from tauloop.mechanism.suggestions import listing

#: Time columns of a topic, with the keys of their stamps (ns) in the reader process.
CLOCKS = {"header.stamp": "stamped", "received": "received"}
_STAMP, _RECEIVED = CLOCKS
#: Quantities of ROS joint states by field name.
JOINT_FIELDS = {"position": "position", "velocity": "velocity", "effort": "force"}
_JOINTS = "sensor_msgs/msg/JointState"
#: Clocks whose difference exceeds this value, s, have different zeros.
MAX_CLOCK_OFFSET = 1.0
#: Largest second stamp of a clock that starts at zero, in periods.
START_PERIODS = 10.0
_SECOND = 1e9
_LOGGER = logging.getLogger("tauloop")


class BagTable(LogTable):
    """A rosbag2 folder or file, or a ROS 1 bag; needs rosbags (``pip install 'tauloop[ros]'``).

    Columns have names such as ``/topic.field``: ``/joint_states.position[elbow]``,
    ``/efforts.data[0]``, ``/wrench.wrench.force.x``; time columns are ``/topic.header.stamp`` and
    ``/topic.received``.
    """

    def __init__(self, path: Path, between: str) -> None:
        """Read the topics.

        Raises:
            LogError: rosbags is missing, the bag is damaged, or none of its topics has numbers.
        """
        require_rosbags(str(path))
        head = bag_topics(path)
        self._topics, self._contents, self._between = head["topics"], head["contents"], between
        self.file = str(path)
        for cut in head["cuts"]:
            self._note(_cut_note(cut))
        units: dict[str, str] = {}
        for topic, info in self._topics.items():
            clocks: list[str] = []
            if info["fields"]:
                clocks = [*CLOCKS] if info["stamped"] else [_RECEIVED]
            units |= {f"{topic}.{field}": unit for field, unit in info["fields"].items()}
            units |= dict.fromkeys((f"{topic}.{clock}" for clock in clocks), "s")
        if not units:
            topics = sorted(f"{topic} ({info['kind']})" for topic, info in self._topics.items())
            what = f"no messages with supported numbers; the bag has {listing(topics) or 'nothing'}"
            what += "".join(f"; {note}" for note in self.notes)
            raise LogError.of("", what, "record joint states, arrays or wrenches", file=str(path))
        super().__init__(str(path), [*units], brackets_are_units=False)
        logged_units = self._logged_texts("units")
        self.units = tuple(logged_units.get(name, unit) for name, unit in units.items())

    def _logged_texts(self, key: str) -> dict[str, str]:
        """Return the description of columns in a Tauloop log; anything else is ignored."""
        part = self._contents.get(key) if isinstance(self._contents, dict) else None
        pairs = part.items() if isinstance(part, dict) else ()
        return {name: text for name, text in pairs if isinstance(text, str)}

    def _note(self, text: str) -> None:
        """Store a note for the results and log it as a warning for callers that show no notes."""
        if text not in self.notes:
            self.notes = (*self.notes, text)
            _LOGGER.warning("%s: %s", self.file, text)

    def channels(self) -> list[tuple[str, str, str]]:
        """Return the channels of a log that Tauloop wrote; for other bags, all joints by name."""
        logged_channels = [
            (text.partition("."), name) for name, text in self._logged_texts("channels").items()
        ]
        if logged_channels:
            return [(quantity, channel, name) for (quantity, _, channel), name in logged_channels]
        fields = [
            (_split(name)[1].partition("["), name)
            for name in self.names
            if self._is_of_joints(name)
        ]
        return [
            (JOINT_FIELDS[field], joint[:-1], name)
            for (field, _, joint), name in fields
            if field in JOINT_FIELDS
        ]

    def _is_of_joints(self, name: str) -> bool:
        return self._topics[_split(name)[0]]["kind"] == _JOINTS

    def clock(self, columns: Sequence[str]) -> str | None:
        """Return the stamps of the first column's topic, or its times of receipt."""
        topics = [_split(name)[0] for name in columns if name in self.names]
        return f"{topics[0]}.{self._clock_of(topics[0])}" if topics else None

    def _clock_of(self, topic: str, wanted: str = _STAMP) -> str:
        return wanted if self._topics[topic]["stamped"] else _RECEIVED

    def numbers(self, columns: Sequence[int], findings: Findings) -> np.ndarray:
        """Return the chosen columns at the stamps of one topic."""
        names = [self.names[column] for column in columns]
        before = findings.total
        fields = [name for name in dict.fromkeys(names) if _split(name)[1] not in CLOCKS]
        time_column = next((name for name in names if name not in fields), None)
        base, clock = _split(time_column or self.clock(fields) or "")
        loaded = self._load([base], fields)
        self._replace_zero_stamps(
            loaded, dict.fromkeys((base, *(_split(name)[0] for name in fields)))
        )
        clock = clock if clock == _RECEIVED else self._clock_of(base)
        self.may_be_late = clock == _RECEIVED
        self._check_zeros(loaded, {_split(name)[0] for name in fields}, base, findings)
        first = next((name for name in fields if _split(name)[0] == base), None)
        rows = loaded[f"{first} rows"] if first else np.arange(len(loaded[f"{base} received"]))
        start = loaded[f"{base} {CLOCKS[clock]}"][rows[:1]].sum()
        series = {name: self._series(name, clock, start, loaded) for name in fields}
        time = (loaded[f"{base} {CLOCKS[clock]}"][rows] - start) / _SECOND
        others = {
            name: signal for name, signal in series.items() if not np.array_equal(signal.time, time)
        }
        self._check_order(others, findings)
        shared = self._shared(time, others.values(), findings)
        if findings.total > before:
            return np.zeros((len(time), len(names)))
        time = time[shared]
        self.arrival = (
            None if self.may_be_late else loaded[f"{base} received"][rows][shared] / _SECOND
        )
        values = np.empty((len(time), len(names)))
        is_dropped = np.zeros(values.shape, dtype=bool)
        for k, name in enumerate(names):
            if name in others:
                values[:, k] = others[name].at(time, self._between)
                is_dropped[:, k] = self._dropped(name, others[name], time, findings)
            else:
                values[:, k] = series[name].values[shared] if name in series else time + self._start
        self._report_not_finite(np.where(is_dropped, 0.0, values), columns, findings)
        return np.where(is_dropped, np.nan, values)

    def _load(self, topics: Iterable[str], names: Iterable[str]) -> dict[str, np.ndarray]:
        """Return topics and columns from the reader process."""
        wanted: dict[str, list[str]] = {topic: [] for topic in topics}
        for name in names:
            topic, field = _split(name)
            wanted.setdefault(topic, []).append(field)
        return bag_columns(Path(self.file), wanted)

    def _replace_zero_stamps(self, loaded: Mapping[str, np.ndarray], topics: Iterable[str]) -> None:
        """Use times of receipt, with a note, if the publisher did not set the stamps (zero)."""
        for topic in topics:
            stamps = loaded[f"{topic} stamped"]
            zeros = int((stamps == 0).sum())
            if not self._topics[topic]["headed"] or not zeros or _is_zero_a_time(stamps):
                continue
            self._topics[topic]["stamped"] = False
            which = f"all {zeros}" if zeros == len(stamps) else f"{zeros} of {len(stamps)}"
            self._note(
                f"{which} stamps in the headers of {topic} are zero, so times of receipt are used, which may be late; "
                "let the publisher set header.stamp"
            )

    def _series(
        self, name: str, clock: str, start: int, loaded: Mapping[str, np.ndarray]
    ) -> StampedSignal:
        """Return the samples of a column with the first column's clock or the times of receipt."""
        topic = _split(name)[0]
        stamps = loaded[f"{topic} {CLOCKS[self._clock_of(topic, clock)]}"][loaded[f"{name} rows"]]
        return StampedSignal(time=(stamps - start) / _SECOND, values=loaded[name])

    @property
    def _start(self) -> float:
        """Return the time of the first sample, s, if the log states it; otherwise zero."""
        start = self._contents.get("start") if isinstance(self._contents, dict) else None
        if isinstance(start, int | float) and abs(start) < MAX_MEASURED_NUMBER:
            return float(start)
        return 0.0

    def _check_zeros(
        self, loaded: Mapping[str, np.ndarray], topics: Iterable[str], base: str, findings: Findings
    ) -> None:
        """Report topics with only times of receipt if other topics' stamps have another zero."""
        if self.may_be_late or not len(loaded[f"{base} received"]):
            return
        offsets = loaded[f"{base} received"] - loaded[f"{base} stamped"]
        clock_offset = float(np.median(offsets)) / _SECOND
        for topic in sorted(topics):
            if abs(clock_offset) > MAX_CLOCK_OFFSET and self._clock_of(topic) == _RECEIVED:
                what = (
                    f"has no stamps, and its times of receipt differ by {clock_offset:.6g} s "
                    f"from the stamps of {base}"
                )
                remedy = (
                    f"use the times of receipt of both: LogFile(time={f'{base}.{_RECEIVED}'!r})"
                )
                findings.add("clocks that differ", f"topic {topic}", what, remedy, self.file)

    def _check_order(self, others: Mapping[str, StampedSignal], findings: Findings) -> None:
        """Report clocks that do not increase on topics that need interpolation."""
        for name, signal in others.items():
            back = np.flatnonzero(np.diff(signal.time) <= 0.0)
            for k in back[:LISTED_PER_KIND]:
                what = f"time goes from {signal.time[k]:.10g} s to {signal.time[k + 1]:.10g} s at message {k + 2}"
                remedy = "the clock was reset, or a message is repeated: cut the bag there"
                findings.add("clocks that go back", f"column {name!r}", what, remedy, self.file)
            findings.count("clocks that go back", self.file, more=len(back[LISTED_PER_KIND:]))

    def _shared(
        self, time: np.ndarray, others: Iterable[StampedSignal], findings: Findings
    ) -> np.ndarray:
        """Return whether each sample (N,) is within the time range of every signal."""
        signals = list(others)
        if any(len(signal.time) == 0 for signal in signals):
            first, last = np.inf, -np.inf
        else:
            first = max((signal.time[0] for signal in signals), default=-np.inf)
            last = min((signal.time[-1] for signal in signals), default=np.inf)
        shared = (time >= first) & (time <= last)
        if not shared.any():
            what = "the time ranges of the requested topics do not overlap"
            findings.add(
                "topics without a common time",
                "topics",
                what,
                "use topics of the same recording",
                self.file,
            )
        return shared

    def _dropped(
        self, name: str, signal: StampedSignal, time: np.ndarray, findings: Findings
    ) -> np.ndarray:
        """Return whether messages of another topic are missing at each sample (N,)."""
        is_within = np.zeros(len(time), dtype=bool)
        late = self.may_be_late or not self._topics[_split(name)[0]]["stamped"]
        gaps = [
            gap
            for gap in signal.dropped(may_be_late=late)
            if ((time > gap[0]) & (time < gap[1])).any()
        ]
        for before, after, count in gaps:
            is_within |= (time > before) & (time < after)
            what = f"{count} messages are missing between t = {before:.10g} s and {after:.10g} s"
            remedy = "use the log before or after the gap, or fill the gap: FillGaps, --fill-gaps"
            findings.add(KIND_DROPPED, f"column {name!r}", what, remedy, self.file)
        return is_within


def _cut_note(cut: Mapping[str, Any]) -> str:
    """Return a note on a truncated file: where it ends, and which messages were read."""
    truncation = f"{cut['file']} is truncated at byte {cut['at']}"
    count = cut["messages"]
    if not count:
        return f"{truncation}, before its first message"
    last_time = np.datetime64(cut["last"], "ns")
    last = f"the last of the {count} messages before it was received at {last_time} UTC"
    if cut["all"]:
        return f"{truncation}, within its index; {last}"
    return f"{truncation}; {last}, and later messages are lost"


def _is_zero_a_time(stamps: np.ndarray) -> bool:
    """Return whether zero is a valid first stamp, as in simulated time: the next stamp is near."""
    later = stamps[1:]
    if len(later) < 2 or stamps[0] != 0 or (later <= 0).any():
        return False
    return bool(later[0] <= START_PERIODS * np.median(np.diff(later)))


def _split(name: str) -> tuple[str, str]:
    """Return topic and field of a column; topic names have no dots."""
    topic, _, field = name.partition(".")
    return topic, field


def is_bag(path: Path) -> bool:
    """Return whether a path is a bag: a folder with `metadata.yaml`, a .mcap, .db3 or .bag file."""
    return os.path.isfile(path / "metadata.yaml") or path.name.lower().endswith(
        (".mcap", ".db3", ".bag")
    )


def require_rosbags(file: str) -> None:
    """Raise an error if the package that reads and writes bags is missing.

    Raises:
        LogError: rosbags is not installed.
    """
    if find_spec("rosbags") is None:
        raise LogError.of(
            "",
            "ROS bags need rosbags, which is not installed",
            "pip install 'tauloop[ros]'",
            file=file,
        )
