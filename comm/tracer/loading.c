/* Programs that load MPI by dlopen and take its functions by dlsym get those of the tracer, where it has them. The tracer is
 * linked with MPI, so the library that they load is the one that is there already. What is asked for by RTLD_NEXT goes by
 * the caller: the call is passed on as a jump, which leaves the address that it returns to. */
#define _GNU_SOURCE
#include "tracer.h"

#ifndef RS_SIMULATED
#include <dlfcn.h>
#include <features.h>
#include <string.h>

#if defined(__GLIBC__) && defined(__OPTIMIZE__)
typedef void *(*search)(void *, const char *);

static search real_search(void)
{
    static search found;
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    for (size_t i = 0; found == NULL && i < sizeof versions / sizeof *versions; i++)
        found = (search)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    return found;
}

/* A function of the tracer itself; NULL where it has none of that name, and the search goes on as it would without it. */
static void *wrapped(search real, const char *name)
{
    Dl_info own, found;
    void *there = real(RTLD_DEFAULT, name);
    if (there == NULL || !dladdr((void *)real_search, &own) || !dladdr(there, &found))
        return NULL;
    return own.dli_fbase == found.dli_fbase ? there : NULL;
}

__attribute__((visibility("default"))) void *dlsym(void *handle, const char *name)
{
    search real = real_search();
    if (handle != RTLD_NEXT && handle != RTLD_DEFAULT && name != NULL && strncmp(name, "MPI_", 4) == 0) {
        void *ours = wrapped(real, name);
        if (ours != NULL)
            return ours;
    }
    return real(handle, name);
}
#endif
#endif
