"""Writers of small files of binary formats, so that tests say in the open what is in them."""

from __future__ import annotations

import io
import struct
import tarfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import pytest

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
            index = b"CUBEX.INDEX" + struct.pack("<ihBi", 1, 0, 0, len(places)) + struct.pack(f"<{len(places)}i", *places)
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
            f'<region id="{number}" mod="" begin="-1" end="-1"><name>{escape(name)}</name><mangled_name/><paradigm/>'
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


@pytest.fixture
def write_cube() -> Callable[..., Path]:
    """Writer of CUBE4 archives."""
    return CubeWriter()
