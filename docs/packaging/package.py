"""Spack package of Ranksight; copy it to packages/py-ranksight/package.py of a repository of your own."""

from spack.package import depends_on, license, variant, version
from spack_repo.builtin.build_systems.python import PythonPackage


class PyRanksight(PythonPackage):
    """Predicts the runtime of MPI programs at scale from hardware counters of a few small runs."""

    license("MIT")

    # The clone is named by "spack develop --path", or give the package a git of your site.
    version("main", branch="main")

    variant("mpi", default=True, description="measure MPI programs: an MPI and its compiler wrapper")
    variant("valgrind", default=True, description="count instructions and loads by simulation")
    variant("hatchet", default=False, description="export to Hatchet")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-setuptools@77:", type="build")
    depends_on("py-numpy@2.0:", type=("build", "run"))
    depends_on("py-scipy@1.13:", type=("build", "run"))
    depends_on("py-pandas@2.2:", type=("build", "run"))
    depends_on("py-pyarrow@16:", type=("build", "run"))
    depends_on("py-lmfit@1.3:", type=("build", "run"))
    depends_on("py-msgspec@0.19:", type=("build", "run"))
    depends_on("py-matplotlib@3.9:", type=("build", "run"))
    depends_on("py-pyperf@2.7:", type=("build", "run"))
    depends_on("py-rich@13.7:", type=("build", "run"))
    depends_on("py-jinja2@3.1:", type=("build", "run"))
    depends_on("py-threadpoolctl@3.5:", type=("build", "run"))

    depends_on("mpi", when="+mpi", type="run")
    depends_on("valgrind", when="+valgrind", type="run")
    depends_on("py-hatchet@1.4:", when="+hatchet", type="run")
