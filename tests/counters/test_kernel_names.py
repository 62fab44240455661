"""Whose code an object file holds, and the names of kernels."""

from __future__ import annotations

import pytest

from ranksight.core.symbols import label
from ranksight.counters.objects import kernel_name, owner, owner_of


@pytest.mark.parametrize(
    ("path", "whose"),
    [
        ("/home/me/heat", "application"),
        ("/home/me/libmpi", "application"),
        ("", "application"),
        ("/home/me/lib/libfiniteVolume.so", "library"),
        ("/opt/lib/libopenblas.so.0", "library"),
        ("/usr/lib/libmpi.so.40", "mpi"),
        ("/usr/lib/libmpi_mpifh.so.40.30.1", "mpi"),
        ("/usr/lib/libmpichcxx.so.12", "mpi"),
        ("/opt/cray/pe/lib64/libmpi_cray.so.12", "mpi"),
        ("/usr/lib/libopen-pal.so.80", "mpi"),
        ("/usr/lib/libprrte.so.3", "mpi"),
        ("/usr/lib/libucp.so.0", "mpi"),
        ("/usr/lib/ucx/libuct_ib.so.0", "mpi"),
        ("/usr/lib/openmpi/mca_btl_vader.so", "mpi"),
        ("/usr/lib/libpmix.so.2", "mpi"),
        ("/usr/lib/libfabric.so.1", "mpi"),
        ("/run/place/between_init_and_finalize.so", "mpi"),
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", "runtime"),
        ("/usr/lib/libc-2.31.so", "runtime"),
        ("/usr/lib/libm.so.6", "runtime"),
        ("/usr/lib/libgfortran.so.5.0.0", "runtime"),
        ("/usr/lib/libstdc++.so.6.0.30", "runtime"),
        ("/usr/lib/libgomp.so.1", "runtime"),
        ("/lib64/ld-linux-x86-64.so.2", "system"),
        ("/usr/lib/ld-2.31.so", "system"),
        ("/usr/libexec/valgrind/vgpreload_core-amd64-linux.so", "system"),
        ("[kernel.kallsyms]", "system"),
        ("[vdso]", "system"),
    ],
)
def test_owners(path, whose):
    assert owner(path) == whose


@pytest.mark.parametrize(
    "name",
    ["PMPI_Allreduce", "MPI_Send", "mpi_send_", "ompi_request_wait", "MPIDI_CH3I_Progress", "ucp_worker_progress"],
)
def test_an_mpi_linked_statically_shows_by_its_names(name):
    assert owner_of(name, "/home/me/heat") == "mpi"


@pytest.mark.parametrize("name", ["main", "mpi_like", "MPIX", "mcalc", "composite"])
def test_names_of_applications_are_not_taken_for_mpi(name):
    assert owner_of(name, "/home/me/heat") == "application"


@pytest.mark.parametrize(
    ("function", "path", "kernel"),
    [
        ("apply.constprop.0", "/b/heat", "apply"),
        ("apply.isra.0.part.3.cold", "/b/heat", "apply"),
        ("fib'2", "/b/heat", "fib"),
        ("a::f(int) [clone .isra.0] [clone .cold]", "/b/heat", "a::f(int)"),
        ("solve._omp_fn.1", "/b/heat", "solve"),
        ("std::vector<int>::at(unsigned long) const", "/b/heat", "std::vector<int>::at(unsigned long) const"),
        ("0x0000000000001430", "/b/heat", "0x1430 [heat]"),
        ("0x0000000000027180", "/usr/lib/libc.so.6", "(no symbol) [libc]"),
        ("[unknown]", "/b/libx.so.3", "(no symbol) [libx]"),
        ("_start", "/b/heat", ""),
        ("(below main)", "/usr/lib/libc.so.6", ""),
        ("init", "/b/heat", "init"),
        ("__memcpy_avx_unaligned_erms", "/usr/lib/libc.so.6", "memcpy [libc]"),
        ("__memmove_avx512_unaligned_erms", "/usr/lib/libc.so.6", "memcpy [libc]"),
        ("memcpy@@GLIBC_2.14", "/usr/lib/libc.so.6", "memcpy [libc]"),
        ("__memset_evex_unaligned", "/usr/lib/libc.so.6", "memset [libc]"),
        ("__ieee754_exp_fma", "/usr/lib/libm.so.6", "exp [libm]"),
        ("__fmod_finite@GLIBC_2.15", "/usr/lib/libm.so.6", "fmod [libm]"),
        ("__sin_fma", "/usr/lib/libm-2.31.so", "sin [libm]"),
        ("_int_malloc", "/usr/lib/libc.so.6", "malloc [libc]"),
    ],
)
def test_kernel_names(function, path, kernel):
    assert kernel_name(function, path) == kernel


def test_labels():
    assert label("/usr/lib/libc-2.31.so") == "libc"
    assert label("/b/app (deleted)") == "app"
