"""Mutated files for all readers, read one after another in this process, which is bounded in memory and time.

``python mutating.py FOLDER TURNS [SEED]``: FOLDER holds a folder of samples for each reader, by its name; a sample is
a file, or a folder whose files are mutated one at a time. Prints as JSON how many inputs were read and refused, and
what else happened: any error but InputError, more than 1 GiB of memory, or more than 5 CPU seconds for one input.
"""

from __future__ import annotations

import json
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from types import FrameType

MEMORY, CPU = 1 << 30, 5
TOKEN = re.compile(rb"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[A-Za-z_]+|[^\n]|\n")
NUMBER = re.compile(rb"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
NUMBERS = (b"-1", b"0", b"1.5", b"1e300", b"-1e300", b"nan", b"inf", b"1e999", b"4294967296", b"18446744073709551616",
           b"9" * 30, b"9" * 5000, b"\xc2\xb2", b"0x7fffffff", b"", b"1_000")  # fmt: skip
NASTY = (b"\x00", b"\xff", b"\xe2\x80\xae", b"\x1b[31m", b'"', b",", b"\n", b"{", b"[" * 3000, b"<a>" * 3000, b"../../etc",
         b"null", b"true", b"\\", b"%s", b"|", b"(" * 500, b" " * 20_000, b"a-" * 10_000)  # fmt: skip
INTEGERS = (0, 1, 0xFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)


def mutated(content: bytes, dice: random.Random) -> bytes:
    """`content` with one to three of the things that go wrong, and that somebody may do."""
    for _ in range(dice.randint(1, 3)):
        text = b"\x00" not in content[:1000]
        way = dice.randrange(7 if text else 3)
        at = dice.randrange(len(content) + 1)
        if way == 0:
            content = content[:at] + bytes([dice.randrange(256)]) + content[at + 1 :]
        elif way == 1:
            end = min(len(content), at + dice.randint(1, 64))
            content = content[:at] + content[at:end] * dice.choice((0, 2, 50)) + content[end:]
        elif way == 2 and not text:
            size = dice.choice((1, 2, 4, 8))
            value = dice.choice(INTEGERS) & ((1 << 8 * size) - 1)
            content = content[:at] + value.to_bytes(size, dice.choice(("little", "big"))) + content[at + size :]
        elif way in (3, 4):
            found = list((NUMBER if way == 3 else TOKEN).finditer(content))
            if found:
                one = dice.choice(found)
                new = dice.choice(NUMBERS) if way == 3 else dice.choice((*NASTY, dice.choice(found)[0]))
                content = content[: one.start()] + new + content[one.end() :]
        else:
            lines = content.splitlines(keepends=True) or [b""]
            one, other = dice.randrange(len(lines)), dice.randrange(len(lines))
            lines[one] = lines[other] if way == 5 else lines[one] * dice.choice((0, 3, 300))
            content = b"".join(lines)
    return content


def attempt(reader: str, path: Path) -> str:
    """What came of reading: ``read``, ``refused``, or what should not have happened."""
    from ranksight.core.errors import InputError
    from ranksight.core.reading import READERS, check

    def late(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, CPU)
    try:
        if path.is_file():
            with path.open("rb") as stream:
                READERS[reader].recognises(path, stream.read(4096))
        for reading in READERS[reader].read(path):
            check(reading, str(path))
        return "read"
    except InputError as error:
        return "refused" if "\n" not in str(error) else f"a message of several lines: {error}"
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-2 if isinstance(error, TimeoutError) else -1]
        return f"{type(error).__name__} {error}"[:200] + f" at {place.filename}:{place.lineno}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def main(samples: Path, turns: int, seed: str) -> None:
    """Mutate and read each sample so many times."""
    import ranksight.cli.import_  # noqa: F401 - what is loaded counts against no limit
    from ranksight.core.reading import READERS

    todo = [(entry.name, sample) for entry in sorted(samples.iterdir()) for sample in sorted(entry.iterdir())]
    for reader, sample in todo:
        assert attempt(reader, sample) == "read", (reader, sample.name, attempt(reader, sample))
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    counts: dict[str, int] = dict.fromkeys(READERS, 0)
    found: list[list[str]] = []
    refused = 0
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(turns):
            for reader, sample in todo:
                dice = random.Random(f"{seed} {reader} {sample.name} {turn}")
                path = Path(folder) / sample.name
                if sample.is_dir():
                    shutil.copytree(sample, path)
                    file = path / dice.choice(sorted(entry.name for entry in sample.iterdir()))
                    file.write_bytes(mutated(file.read_bytes(), dice))
                else:
                    path.write_bytes(mutated(sample.read_bytes(), dice))
                said = attempt(reader, path)
                counts[reader] += 1
                refused += said == "refused"
                if said not in ("read", "refused"):
                    found.append([reader, sample.name, str(turn), said])
                shutil.rmtree(path) if sample.is_dir() else path.unlink()
    print(json.dumps({"counts": counts, "refused": refused, "found": found}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "1")
