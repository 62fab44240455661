"""The line that installs a tool on the machine at hand."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_INSTALL = {
    "debian": "apt-get install",
    "fedora": "dnf install",
    "suse": "zypper install",
    "arch": "pacman -S",
    "alpine": "apk add",
}
_PACKAGES = {
    "valgrind": "valgrind",
    "perf": "perf",
    "likwid-perfctr": "likwid",
    "papi_avail": "papi",
    "gcc": "gcc",
}
"""The package, and the module on a cluster, of each tool."""
_CALLED_OTHERWISE = {
    ("perf", "debian"): "linux-perf",
    ("perf", "ubuntu"): "linux-tools-$(uname -r)",
    ("papi_avail", "debian"): "papi-tools",
}
_ALIASES = {"rhel": "fedora", "centos": "fedora", "opensuse": "suse", "sles": "suse", "ubuntu": "debian"}


def how_to_install(tool: str, release: Path = Path("/etc/os-release")) -> str:
    """What to type to get `tool` here: the distribution's line for an owner of the machine, the module on a cluster."""
    entries: dict[str, str] = {}
    with suppress(OSError):
        for line in release.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition("=")
            entries[key] = value.strip().strip('"')
    name = entries.get("ID", "")
    families = (_ALIASES.get(each, each) for each in [name, *entries.get("ID_LIKE", "").split()])
    family = next((each for each in families if each in _INSTALL), "")
    usual = _PACKAGES.get(tool, tool)
    module = f"'module load {usual}' where the site has it"
    if not family or tool not in _PACKAGES:
        return f"install {usual}, or {module}"
    package = _CALLED_OTHERWISE.get((tool, name)) or _CALLED_OTHERWISE.get((tool, family), usual)
    return f"sudo {_INSTALL[family]} {package}, or {module}"
