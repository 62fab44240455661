"""Writers of small files of binary formats, so that tests say in the open what is in them."""

from __future__ import annotations

import io
import json
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import numpy as np

Node = tuple[str, list["Node"]]
CODES = {"UINT64": "Q", "DOUBLE": "d", "MAXDOUBLE": "d", "INT32": "i"}


class CubeWriter:
    """Writes a CUBE4 archive: ``tree`` is (region, children), ``metrics`` name -> (kind, type, unit, rows)."""

    def __call__(
        self,
        path: Path,
        tree: Node,
        ranks: Sequence[int],
        metrics: Mapping[str, tuple[str, str, str, Mapping[int, Sequence[float]] | None]],
        compress: bool = False,
        extra: Sequence[tarfile.TarInfo] = (),
        anchor_end: str = "</cube>",
    ) -> Path:
        members: dict[str, bytes] = {}
        described = []
        for number, (name, (kind, type_, unit, rows)) in enumerate(metrics.items()):
            described.append(
                f'<metric id="{number}" type="{kind}"><disp_name>{name}</disp_name><uniq_name>{name}</uniq_name>'
                f"<dtype>{type_}</dtype><uom>{unit}</uom><url></url><descr></descr></metric>"
            )
            if rows is None:
                continue
            places = sorted(rows)
            index = (
                b"CUBEX.INDEX" + struct.pack("<ihBi", 1, 0, 0, len(places)) + struct.pack(f"<{len(places)}i", *places)
            )
            values = [value for place in places for value in rows[place]]
            raw = struct.pack(f"<{len(values)}{CODES[type_]}", *values)
            if compress:
                packed = zlib.compress(raw)
                data = b"ZCUBEX.DATA" + struct.pack("<qqqq", 1, 0, 0, len(packed)) + packed
            else:
                data = b"CUBEX.DATA" + raw
            members[f"{number}.index"], members[f"{number}.data"] = index, data
        regions: list[str] = []
        calls = self._calls(tree, regions)
        named = "".join(
            f'<region id="{number}" mod="{"io.c" if name == "io" else ""}" begin="{7 if name == "io" else -1}" end="-1">'
            f"<name>{escape(name)}</name><mangled_name/><paradigm/>"
            "<role/><url/><descr/></region>"
            for number, name in enumerate(regions)
        )
        groups = "".join(
            f'<locationgroup Id="{place}"><name>p</name><rank>{rank}</rank><type>process</type>'
            + "".join(
                f'<location Id="{at}"><name>t</name><rank>{at}</rank><type>thread</type></location>'
                for at, owner in enumerate(ranks)
                if owner == rank
            )
            + "</locationgroup>"
            for place, rank in enumerate(dict.fromkeys(ranks))
        )
        anchor = (
            '<?xml version="1.0" encoding="UTF-8"?><cube version="4.4">'
            f"<metrics>{''.join(described)}</metrics><program>{named}{calls}</program>"
            f'<system><systemtreenode Id="0" class="machine"><name>m</name>{groups}</systemtreenode></system>{anchor_end}'
        )
        members["anchor.xml"] = anchor.encode()
        with tarfile.open(path, "w") as archive:
            for info in extra:
                archive.addfile(info, io.BytesIO(b""))
            for name, content in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
        return path

    def _calls(self, node: Node, regions: list[str], numbers: list[int] | None = None) -> str:
        numbers = [0] if numbers is None else numbers
        name, children = node
        if name not in regions:
            regions.append(name)
        own = numbers[0]
        numbers[0] += 1
        inner = "".join(self._calls(child, regions, numbers) for child in children)
        return f'<cnode id="{own}" calleeId={quoteattr(str(regions.index(name)))}>{inner}</cnode>'


class Database:
    """Writes meta.db and profile.db of HPCToolkit: contexts are (number, function or "", relation, children)."""

    def __init__(self) -> None:
        self.meta = bytearray(b"HPCTOOLKITmeta\x04\x00" + bytes(128))

    def _put(self, content: bytes, data: bytearray | None = None) -> int:
        data = self.meta if data is None else data
        data.extend(bytes(-len(data) % 8))
        data.extend(content)
        return len(data) - len(content)

    def _text(self, text: str) -> int:
        return self._put(text.encode() + b"\0")

    def _level(self, contexts: list) -> tuple[int, int]:
        blocks = b""
        for number, function, relation, children in contexts:
            size, offset = self._level(children) if children else (0, 0)
            words = b""
            if function:
                name = self._text(function)
                words = struct.pack("<Q", self._put(struct.pack("<QQQQLL", name, 0, 0, 0, 0, 0)))
            kind = 0 if function else 2
            head = struct.pack("<QQLHBBB", size, offset, number, 0, kind, len(words) // 8, relation)
            blocks += head + bytes(32 - len(head)) + words
        return len(blocks), self._put(blocks)

    def write(
        self,
        folder: Path,
        contexts: list,
        metrics: Sequence[str],
        threads: Sequence[tuple[int, int, Mapping[int, Mapping[int, float]]]],
    ) -> Path:
        """Write to `folder`; metric m has the number 2m in scope ``function`` and 2m + 1 in scope ``execution``."""
        names = [self._text(name) for name in ("SUMMARY", "NODE", "RANK", "THREAD")]
        pointers = self._put(struct.pack("<4Q", *names))
        kinds = self._put(struct.pack("<QB", pointers, 4))
        scopes = [self._put(struct.pack("<Q", self._text(name))) for name in ("function", "execution")]
        described = b""
        for number, name in enumerate(metrics):
            instances = b"".join(struct.pack("<QH6x", scope, 2 * number + at) for at, scope in enumerate(scopes))
            described += struct.pack("<QQQHH4x", self._text(name), self._put(instances), 0, 2, 0)
        first = self._put(described)
        metric = self._put(struct.pack("<QLBBB", first, len(metrics), 32, 16, 32))
        size, offset = self._level(contexts)
        entry = self._put(struct.pack("<QQLH10x", size, offset, 0, 1))
        context = self._put(struct.pack("<QHB", entry, 1, 32))
        for place, at in ((32, kinds), (48, metric), (64, context)):
            struct.pack_into("<QQ", self.meta, place, 0, at)
        folder.mkdir(exist_ok=True)
        (folder / "meta.db").write_bytes(bytes(self.meta))
        data = bytearray(b"HPCTOOLKITprof\x04\x00" + bytes(64))
        infos = struct.pack("<QQLLQQLL", 0, 0, 0, 0, 0, 0, 1, 0)  # the summary
        for rank, thread, values in threads:
            ids = (
                struct.pack("<H6x", 2)
                + struct.pack("<BBHLQ", 2, 0, 0, rank, rank)
                + struct.pack("<BBHLQ", 3, 0, 0, thread, thread)
            )
            index, table, count = b"", b"", 0
            for number, given in values.items():
                index += struct.pack("<LQ", number, count)
                for one, value in given.items():
                    table += struct.pack("<Hd", one, value)
                    count += 1
            at_ids, at_index, at_table = (self._put(piece, data) for piece in (ids, index, table))
            infos += struct.pack("<QQLLQQLL", count, at_table, len(values), 0, at_index, at_ids, 0, 0)
        profiles = self._put(infos, data)
        struct.pack_into("<QQ", data, 16, 0, self._put(struct.pack("<QLB", profiles, len(threads) + 1, 48), data))
        (folder / "profile.db").write_bytes(bytes(data))
        return folder


def save_extrap(path: Path, entries: Sequence[Mapping[str, object]]) -> None:
    """Write what Extra-P 4 saves of `entries`, points of one kernel's time at p = 2, 4 and 8, with two values each."""
    stream, places = io.BytesIO(), []
    stream.write(b"Extra-P VALUES\0\0")
    for p in (2, 4, 8):
        places.append(stream.tell())
        np.lib.format.write_array(stream, np.array([p, p + 0.5]))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("values/0.vals", stream.getvalue())
        archive.writestr("values/0.indx", b"Extra-P INDEX\0\0\0" + struct.pack("<4Q", 3, *places))
        content = {"Extra-P": "4.2.5", "parameters": ["p"], "measurements": {"main": {"time": list(entries)}}}
        archive.writestr("experiment.json", json.dumps(content))
