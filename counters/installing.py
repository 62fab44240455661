"""The line that installs a tool on the machine at hand."""

from __future__ import annotations

from pathlib import Path

_LINES = {
    "debian": "apt-get install {debian}",
    "fedora": "dnf install {fedora}",
    "suse": "zypper install {fedora}",
    "arch": "pacman -S {arch}",
    "alpine": "apk add {alpine}",
}
_PACKAGES = {
    "valgrind": dict.fromkeys(("debian", "fedora", "arch", "alpine"), "valgrind"),
    "perf": {
        "debian": "linux-perf",
        "ubuntu": "linux-tools-$(uname -r)",
        "fedora": "perf",
        "arch": "perf",
        "alpine": "perf",
    },
    "likwid-perfctr": {"debian": "likwid", "fedora": "likwid", "arch": "likwid", "alpine": "likwid"},
    "papi_avail": {"debian": "papi-tools", "fedora": "papi", "arch": "papi", "alpine": "papi"},
    "gcc": dict.fromkeys(("debian", "fedora", "arch", "alpine"), "gcc"),
}
_MODULES = {"likwid-perfctr": "likwid", "papi_avail": "papi", "perf": "perf", "valgrind": "valgrind", "gcc": "gcc"}


def _family(release: Path) -> tuple[str, str]:
    entries: dict[str, str] = {}
    try:
        for line in release.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition("=")
            entries[key] = value.strip().strip('"')
    except OSError:
        return "", ""
    names = [entries.get("ID", ""), *entries.get("ID_LIKE", "").split()]
    aliases = {"rhel": "fedora", "centos": "fedora", "opensuse": "suse", "sles": "suse", "ubuntu": "debian"}
    for name in names:
        name = aliases.get(name, name)
        if name in _LINES:
            return name, names[0]
    return "", names[0]


def how_to_install(tool: str, release: Path = Path("/etc/os-release")) -> str:
    """What to type to get `tool` here: the distribution's line for an owner of the machine, the module on a cluster."""
    family, name = _family(release)
    module = f"'module load {_MODULES.get(tool, tool)}' where the site has it"
    packages = _PACKAGES.get(tool, {})
    if not family or not packages:
        return f"install {_MODULES.get(tool, tool)}, or {module}"
    package = packages.get(name, packages.get(family, packages["fedora"]))
    line = _LINES[family].format_map(dict.fromkeys(("debian", "fedora", "arch", "alpine"), package))
    return f"sudo {line}, or {module}"
