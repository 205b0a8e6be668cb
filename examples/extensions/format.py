"""A format of one's own: machine files packed by gzip."""

import gzip
import zlib
from pathlib import Path

import tauloop as tl
from tauloop.common.errors import DescriptionError, Problem
from tauloop.common.files import write_file
from tauloop.formats import Format, ImportOptions, Written
from tauloop.testing import check_format

#: No machine is described by so many characters.
MOST = 10_000_000


class Packed(Format):
    """A machine file, packed."""

    name, title, endings = "packed", "a packed machine file", (".gz",)

    def read(self, path: Path, side: Path | None, options: ImportOptions | None) -> tl.Mechanism:
        """See `Format`."""
        try:
            with gzip.open(path, "rt", encoding="utf-8") as stream:
                text = stream.read(MOST)
        except (OSError, EOFError, ValueError, zlib.error) as error:
            raise DescriptionError(
                Problem(where="", what=f"cannot be unpacked: {error}", file=str(path))
            ) from None
        return tl.loads(text, str(path))

    def write(self, mechanism: tl.Mechanism, path: Path) -> Written:
        """See `Format`; without the time, so that equal machines give equal files."""
        data = gzip.compress(tl.dumps(mechanism).encode(), mtime=0)
        return Written(files=(write_file(path, lambda place: place.write_bytes(data)),))


if __name__ == "__main__":
    check_format(Packed())
    print("Packed machine files are a format: tl.convert('delta', 'delta.gz')")
