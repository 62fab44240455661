/* Call sites in programs of Python: all their calls of MPI come from one extension module (mpi4py's MPI.*.so), and it is a
 * function of Python that made them. The interpreter in this process is asked for it by its public functions. Bindings
 * give the interpreter's lock back before they call MPI. It is taken for a moment where no other thread of Python could
 * want it; where others run, waiting for it might never end, and the address in the module stays the call site. */
#define _GNU_SOURCE
#include "tracer.h"

#include <stdio.h>
#include <string.h>
#ifndef RS_SIMULATED
#include <dlfcn.h>
#include <link.h>
#include <strings.h>
#include <sys/mman.h>

enum { SITES = 8192, EXIT = 1, TEXT = 496 };

typedef struct {
    const void *code;
    uint64_t passed; /* of the import system or of the binding itself: the function that called it is meant */
    char text[TEXT]; /* name, file and first line, between tabs */
} python_site;

typedef struct {
    uintptr_t begin, end;
} code_range;

static python_site *sites; /* the first is none; places by the address of the code, kept alive by a reference */
static uint32_t used = EXIT + 1, *places;
static code_range binding, interpreter;

static struct {
    int (*is_initialized)(void), (*ensure)(void);
    void (*release)(int), (*hold)(void *), (*drop)(void *), (*fetch)(void **, void **, void **);
    void (*restore)(void *, void *, void *), (*clear)(void);
    void *(*mine)(void), *(*current)(void), *(*main)(void), *(*threads)(void *), *(*next)(void *);
    void *(*frame)(void), *(*back)(void *), *(*code)(void *), *(*attribute)(void *, const char *);
    const char *(*text)(void *);
    long (*number)(void *);
} py;

static int within(uint64_t pc, code_range range) { return pc >= range.begin && pc < range.end; }

static int find_code(struct dl_phdr_info *info, size_t size, void *unused)
{
    const char *name = strrchr(info->dlpi_name, '/');
    int i;
    (void)size, (void)unused;
    for (i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        code_range range = {begin, begin + info->dlpi_phdr[i].p_memsz};
        if (info->dlpi_phdr[i].p_type != PT_LOAD || !(info->dlpi_phdr[i].p_flags & PF_X))
            continue;
        if (within((uint64_t)(uintptr_t)py.is_initialized, range))
            interpreter = range;
        else if (name != NULL && strncasecmp(name, "/mpi.", 5) == 0)
            binding = range;
    }
    return 0;
}

/* Whether `name`, or the name it had in earlier versions, is a function of the interpreter; it is kept in `*into`. */
static int find(void *into, const char *name, const char *former)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    if (found == NULL && former != NULL)
        found = dlsym(RTLD_DEFAULT, former);
    *(void **)into = found;
    return found != NULL;
}

/* PyFrame_GetBack is of Python 3.9, which is the first that can be asked. */
void rs_python_begin(void)
{
    if (!find(&py.is_initialized, "Py_IsInitialized", NULL))
        return;
    dl_iterate_phdr(find_code, NULL);
    if (binding.end == 0)
        return;
    if (!find(&py.ensure, "PyGILState_Ensure", NULL) || !find(&py.release, "PyGILState_Release", NULL)
        || !find(&py.mine, "PyGILState_GetThisThreadState", NULL)
        || !find(&py.current, "PyThreadState_GetUnchecked", "_PyThreadState_UncheckedGet")
        || !find(&py.main, "PyInterpreterState_Main", NULL)
        || !find(&py.threads, "PyInterpreterState_ThreadHead", NULL) || !find(&py.next, "PyThreadState_Next", NULL)
        || !find(&py.frame, "PyEval_GetFrame", NULL) || !find(&py.back, "PyFrame_GetBack", NULL)
        || !find(&py.code, "PyFrame_GetCode", NULL) || !find(&py.attribute, "PyObject_GetAttrString", NULL)
        || !find(&py.text, "PyUnicode_AsUTF8", NULL) || !find(&py.number, "PyLong_AsLong", NULL)
        || !find(&py.hold, "Py_IncRef", NULL) || !find(&py.drop, "Py_DecRef", NULL)
        || !find(&py.fetch, "PyErr_Fetch", NULL) || !find(&py.restore, "PyErr_Restore", NULL)
        || !find(&py.clear, "PyErr_Clear", NULL))
        return;
    sites = mmap(NULL, sizeof *sites * SITES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    places = mmap(NULL, sizeof *places * 2 * SITES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sites == MAP_FAILED || places == MAP_FAILED)
        return;
    strcpy(sites[EXIT].text, "(exit of Python)");
    rs_state.outer = RS_ASK;
}

/* The attribute `name` of `code`, a new reference, or NULL. */
static void *attribute(void *code, const char *name)
{
    void *found = py.attribute(code, name);
    if (found == NULL)
        py.clear();
    return found;
}

static void describe(python_site *site, void *code)
{
    void *name = attribute(code, "co_qualname"), *file = attribute(code, "co_filename");
    void *line = attribute(code, "co_firstlineno");
    const char *said, *path;
    if (name == NULL) /* before Python 3.11 */
        name = attribute(code, "co_name");
    said = name != NULL ? py.text(name) : NULL;
    path = file != NULL ? py.text(file) : NULL;
    said = said != NULL ? said : "?";
    path = path != NULL ? path : "?";
    site->passed = strncmp(path, "<frozen ", 8) == 0 || strstr(path, "/mpi4py/") != NULL;
    if (strlen(path) > TEXT / 2) /* its end says most */
        path += strlen(path) - TEXT / 2;
    snprintf(site->text, TEXT, "%.200s\t%s\t%ld", said, path, line != NULL ? py.number(line) : 0);
    if (name != NULL)
        py.drop(name);
    if (file != NULL)
        py.drop(file);
    if (line != NULL)
        py.drop(line);
    py.clear();
}

/* Number of the site of `code`; 0 where there is no room for another. */
static uint32_t number_of(void *code)
{
    uint64_t h = (uint64_t)(uintptr_t)code * UINT64_C(0x9E3779B97F4A7C15);
    uint32_t at = (uint32_t)(h >> 40) & (2 * SITES - 1), found;
    void *type, *value, *trace;
    for (; places[at] != 0; at = (at + 1) & (2 * SITES - 1))
        if (sites[places[at]].code == code)
            return places[at];
    if (used == SITES)
        return 0;
    found = used;
    py.hold(code); /* while it lives nothing else has its address */
    py.fetch(&type, &value, &trace);
    describe(&sites[found], code);
    py.restore(type, value, trace);
    sites[found].code = code;
    places[at] = found;
    used = found + 1; /* last: a signal handler writes whole ones only */
    return found;
}

static uint32_t innermost(void)
{
    void *frame = py.frame(), *code, *outer;
    uint32_t first = 0, found = 0;
    if (frame != NULL)
        py.hold(frame);
    for (; frame != NULL; frame = outer) {
        code = py.code(frame);
        found = number_of(code);
        py.drop(code);
        first = first != 0 ? first : found;
        outer = sites[found].passed ? py.back(frame) : NULL;
        py.drop(frame);
    }
    return found != 0 && !sites[found].passed ? found : first;
}

uint64_t rs_caller(const rs_thread *t, uint64_t pc)
{
    void *mine;
    uint32_t found;
    int state = 0, held;
    if (t->outer != RS_ASK)
        return t->outer;
    if (!within(pc, binding)) /* MPI_Finalize may be called by the interpreter, when all of Python is gone */
        return !within(pc, interpreter) || py.is_initialized() ? pc : RS_PYTHON | EXIT;
    if (!py.is_initialized())
        return RS_PYTHON | EXIT;
    if ((mine = py.mine()) == NULL)
        return pc;
    held = py.current() == mine;
    if (!held) {
        if (py.threads(py.main()) != mine || py.next(mine) != NULL)
            return pc;
        state = py.ensure();
    }
    rs_lock();
    found = innermost();
    rs_unlock();
    if (!held)
        py.release(state);
    return found != 0 ? RS_PYTHON | found : pc;
}

uint32_t rs_python_sites(const void **items, uint32_t *item)
{
    *items = sites;
    *item = sizeof *sites;
    return rs_state.outer == RS_ASK ? used : 0;
}
#else
void rs_python_begin(void) {}
uint64_t rs_caller(const rs_thread *t, uint64_t pc) { return t->outer != 0 ? t->outer : pc; }
uint32_t rs_python_sites(const void **items, uint32_t *item)
{
    *items = NULL;
    *item = 1;
    return 0;
}
#endif
