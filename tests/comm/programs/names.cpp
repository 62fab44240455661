// Functions whose names must be found: in a namespace, overloaded, static, a template, a method.
#include <mpi.h>
namespace flow {
struct Solver {
    __attribute__((noinline)) void step(double x);
};
void Solver::step(double x) { double y; MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }
template <typename T> __attribute__((noinline)) void pass(T)
{
    MPI_Barrier(MPI_COMM_WORLD);
    asm volatile(""); // or the call would be the function's end, and return to its caller
}
} // namespace flow
static __attribute__((noinline, noclone)) void hidden() { int x = 1; MPI_Bcast(&x, 1, MPI_INT, 0, MPI_COMM_WORLD); }
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    flow::Solver().step(1.0);
    flow::pass<int>(1);
    hidden();
    MPI_Finalize();
}
