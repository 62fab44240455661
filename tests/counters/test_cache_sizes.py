"""One simulation for all cache sizes, against callgrind with one size at a time."""

import shutil
import subprocess

import pandas as pd
import pytest

from ranksight.counters.attribution import attribute
from ranksight.counters.callgrind_profile import read
from ranksight.counters.collectors import cache_sizes
from ranksight.platforms import SimulatedCache

SOURCE = """
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#define KERNEL __attribute__((noinline))
KERNEL double triad(double *a, double *b, double *c, long n) {
    for (long i = 0; i < n; i++) a[i] = b[i] + 3 * c[i];
    return a[n / 2];
}
KERNEL long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
KERNEL double look(double *a, long n) {
    double sum = 0;
    for (unsigned i = 0, x = 1; i < 30000; i++) sum += a[(x = x * 1664525u + 1013904223u) % n] * exp(1e-3 * i / n);
    return sum;
}
int main(void) {
    double sum = fib(12);
    for (long n = 3000; n < 90000; n *= 3) {
        double *a = calloc(n, 8), *b = calloc(n, 8), *c = calloc(n, 8);
        for (int k = 0; k < 5; k++) sum += triad(a, b, c, n);
        sum += look(a, n);
        free(a), free(b), free(c);
    }
    return sum == 1;
}
"""
FIRST, SECOND, LAST = (
    SimulatedCache(k, *cache, 64) for k, cache in ((1, (32768, 8)), (2, (393216, 12)), (3, (1 << 22, 16)))
)


def test_sizes_are_in_the_order_that_the_search_needs():
    first, last, *others = cache_sizes.sizes((FIRST, SECOND, LAST))
    assert (first, last) == (FIRST.option, LAST.option)
    sets = [int(size) // int(ways) for size, ways, _ in (option.split(",") for option in others)]
    assert sets == sorted(sets)
    assert SECOND.option in others
    assert LAST.option not in others
    assert cache_sizes.sizes((FIRST, SimulatedCache(2, 1 << 20, 16, 128), LAST)) == ()


def test_table_has_each_size_once():
    options = cache_sizes.sizes((FIRST, LAST, LAST))
    columns = [f"{kind}{number}" for number in range(len(options) - 1) for kind in "rw"]
    table = cache_sizes.by_size(pd.DataFrame(1.0, ["a", "b"], columns), options, 3)
    assert table["bytes"].tolist() == 2 * sorted({int(option.split(",")[0]) for option in options[1:]})
    assert set(table["rank"]) == {3}


def test_sums_of_one_file_are_profiles_of_their_own(tmp_path):
    lines = ["creator: callgrind, cache sizes", "events: Ir Dr calls.turns Ir.turns Dr.turns", "ob=/home/me/app"]
    lines += ["fn=main", "1 10 4 0 12 5", "cfn=work", "calls=3 7", "1 30 9 4 36", "cfn=seldom", "calls=2 9", "1 5 1"]
    lines += ["fn=work", "7 30 9 0 36", "fn=seldom", "9 5 1", "totals: 45 14"]
    (tmp_path / "sizes").write_text("\n".join([*lines, ""]))
    found = cache_sizes.sums(read(tmp_path / "sizes"))
    assert list(found) == ["", "turns"]
    kernels = {name: attribute(profile).kernels for name, profile in found.items()}
    assert kernels[""].loc[["main", "seldom", "work"]].to_numpy().tolist() == [[1, 10, 4], [2, 5, 1], [3, 30, 9]]
    assert kernels["turns"].loc[["main", "work"]].to_numpy().tolist() == [[1, 12, 5], [4, 36, 0]]
    assert list(kernels["turns"]) == ["visits", "Ir", "Dr"]


def test_without_a_compiler_there_is_no_tool(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    cache_sizes._compiled.cache_clear()
    assert not cache_sizes.install(tmp_path)
    cache_sizes._compiled.cache_clear()


@pytest.mark.valgrind
def test_it_is_compiled_once(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cache_sizes._compiled.cache_clear()
    tool = cache_sizes._compiled()
    if tool is None:
        pytest.skip("no compiler, or no libraries of valgrind")
    (kept,) = (tmp_path / "cache" / "ranksight" / cache_sizes.TOOL).glob(f"*/{cache_sizes.TOOL}")
    assert kept.read_bytes() == tool
    monkeypatch.setattr(cache_sizes, "_compile", lambda: pytest.fail("compiled again"))
    cache_sizes._compiled.cache_clear()
    assert cache_sizes._compiled() == tool
    monkeypatch.setattr(cache_sizes, "_compile", lambda: b"another")
    monkeypatch.setattr(cache_sizes, "_OPTIONS", ("-O3",))
    cache_sizes._compiled.cache_clear()
    assert cache_sizes._compiled() == b"another"
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    cache_sizes._compiled.cache_clear()
    assert cache_sizes._compiled() == b"another"
    cache_sizes._compiled.cache_clear()


@pytest.mark.valgrind
@pytest.mark.parametrize("flags", [("-g",), ("-s",)])
def test_counts_are_callgrinds_at_every_size(tmp_path, flags):
    if not cache_sizes.install(tmp_path):
        pytest.skip("no compiler, or no libraries of valgrind")
    (tmp_path / "p.c").write_text(SOURCE)
    program = tmp_path / "p"
    subprocess.run(["cc", "-O2", *flags, "-o", program, tmp_path / "p.c", "-lm"], check=True)
    valgrind = ["env", f"VALGRIND_LIB={tmp_path / 'valgrind'}", shutil.which("valgrind"), "-q"]
    options = cache_sizes.sizes((FIRST, SECOND, LAST))
    tool = [f"--tool={cache_sizes.TOOL}", f"--caches={':'.join(options)}", f"--out-file={tmp_path}/all"]
    subprocess.run([*valgrind, *tool, program], check=True)
    ours = attribute(read(tmp_path / "all")).kernels
    for number, option in list(enumerate(options[1:]))[1:4]:
        caches = [f"--D1={FIRST.option}", f"--LL={option}", f"--callgrind-out-file={tmp_path}/one"]
        subprocess.run(["valgrind", "-q", "--tool=callgrind", "--cache-sim=yes", *caches, program], check=True)
        theirs = attribute(read(tmp_path / "one")).kernels
        heavy = theirs.index[theirs["Ir"] > 1e-3 * theirs["Ir"].sum()]
        assert len(heavy) >= 4
        for name in ("visits", "Ir", "Dr", "Dw"):
            assert ours.loc[heavy, name].tolist() == theirs.loc[heavy, name].tolist()
        for mine, other in ((f"r{number}", "DLmr"), (f"w{number}", "DLmw"), ("D1mr", "D1mr")):
            assert ours.loc[heavy, mine].to_numpy() == pytest.approx(
                theirs.loc[heavy, other].to_numpy(), rel=5e-3, abs=60
            )
