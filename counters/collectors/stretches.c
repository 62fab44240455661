/*
 * Preloaded under callgrind: a function of its own in front of each MPI call that communicates.
 *
 * Callgrind can dump its counters at the entry of a function, and can stop collecting inside one; of a single function it
 * does one of both. A jump from MPI_Send to PMPI_Send makes two functions of it: counters are dumped at the first, and
 * nothing is collected inside the second. A jump leaves registers and stack as they are, so no prototype is needed.
 * CALLS(X) comes from the list that reads the dumps again.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include "calls.h"

#define SLOT(name, lower) __attribute__((visibility("hidden"))) void *c_##lower, *f_##lower;
CALLS(SLOT)

#if defined(__x86_64__)
#define GO(slot) "jmp *" slot "(%rip)\n"
#elif defined(__aarch64__)
#define GO(slot) "adrp x16, " slot "\n\tldr x16, [x16, :lo12:" slot "]\n\tbr x16\n"
#else
#error "no jump is known for this processor"
#endif

#define STUB(symbol, slot)                                                            \
    __asm__(".text\n.globl " #symbol "\n.type " #symbol ", %function\n" #symbol ":\n\t" \
            GO(#slot) ".size " #symbol ", . - " #symbol "\n");
#define STUBS(name, lower) STUB(MPI_##name, c_##lower) STUB(mpi_##lower##_, f_##lower)
CALLS(STUBS)

#define FILL(name, lower) c_##lower = dlsym(RTLD_NEXT, "PMPI_" #name), f_##lower = dlsym(RTLD_NEXT, "pmpi_" #lower "_");

__attribute__((constructor)) static void fill(void) { CALLS(FILL) }
