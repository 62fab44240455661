/* Processes that the program starts by MPI_Comm_spawn. They inherit the environment of whoever starts processes there, not
 * that of this rank: their command is handed to env, which loads the tracer into them as into this one and names their
 * world. The name is that of the world of the rank that starts them, its number there, and which of its worlds it is.
 *
 * A command that only the library can find, by what the info object says of folders, is left as it is: its processes are
 * not traced, and the reader reports that. */
#define _GNU_SOURCE
#include "tracer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME = 64, PATH = 4096, LINES = 1 << 16 };

static char world[NAME];
static char started[LINES]; /* this world's name, then a line for each that was started: name, or none, and processes */
static size_t started_used;

const char *rs_world_name(void)
{
    const char *name = getenv("RANKSIGHT_TRACE_WORLD");
    if (world[0] == '\0' && name != NULL && strlen(name) < NAME && strspn(name, "0123456789._") == strlen(name))
        strcpy(world, name);
    return world;
}

/* Of a launched program that started none there is nothing to write. */
uint32_t rs_worlds(const char **text)
{
    if (started_used == 0)
        started_used = (size_t)snprintf(started, sizeof started, "%s\n", rs_world_name());
    *text = started;
    return started_used > 1 ? (uint32_t)started_used : 0;
}

#ifdef RS_SIMULATED

void rs_spawn_begin(rs_spawn *s, MPI_Comm comm, int root, int n, char **commands, char ***arguments, const MPI_Info *infos)
{
    *s = (rs_spawn){.commands = commands, .arguments = arguments};
}
void rs_spawn_end(rs_spawn *s, int result, const MPI_Comm *others) {}

#else

static const char *const passed[] = {"LD_PRELOAD", "RANKSIGHT_TRACE_DIR", "RANKSIGHT_TRACE_EVENTS", "RANKSIGHT_TRACE_GATHER",
                                     "RANKSIGHT_TRACE_GROUP", "RANKSIGHT_CPU_TIME"};
enum { PASSED = sizeof passed / sizeof *passed };
static const char ENV[] = "/usr/bin/env";
static const char WORLD[] = "RANKSIGHT_TRACE_WORLD";

static int has_key(MPI_Info info, const char *key)
{
    char value[2];
    int has = 0;
    if (info == MPI_INFO_NULL)
        return 0;
#if MPI_VERSION >= 4
    int room = sizeof value;
    PMPI_Info_get_string(info, key, &room, value, &has);
#else
    PMPI_Info_get(info, key, sizeof value - 1, value, &has);
#endif
    return has;
}

static int on_path(const char *command)
{
    const char *at = getenv("PATH"), *end;
    char file[PATH];
    for (; at != NULL && *at != '\0'; at = *end == ':' ? end + 1 : end) {
        end = strchrnul(at, ':');
        if (snprintf(file, sizeof file, "%.*s/%s", (int)(end - at), at, command) < PATH && access(file, X_OK) == 0)
            return 1;
    }
    return 0;
}

/* The command as env finds it too, to be freed; NULL where it may be another program, or a variable to env. */
static char *for_env(const char *command, MPI_Info info)
{
    char *found = malloc(strlen(command) + 3);
    int local = strchr(command, '/') == NULL && !on_path(command);
    if (found == NULL || strchr(command, '=') != NULL || (local && access(command, X_OK) != 0)
        || (command[0] != '/' && (has_key(info, "wdir") || has_key(info, "path")))) {
        free(found);
        return NULL;
    }
    sprintf(found, "%s%s", local ? "./" : "", command);
    return found;
}

static char *variable(const char *name, const char *value)
{
    char *text = malloc(strlen(name) + strlen(value) + 2);
    if (text != NULL)
        sprintf(text, "%s=%s", name, value);
    return text;
}

/* Name of the world that is to be started. */
static int name_next(char *name)
{
    static unsigned count;
    unsigned number;
    rs_lock();
    number = ++count;
    rs_unlock();
    return snprintf(name, NAME, "%s%s%d.%u", rs_world_name(), *rs_world_name() == '\0' ? "" : "_", rs_state.rank, number)
           < NAME;
}

/* env's words for one command: the variables, the command and its own words. */
static char **words(char **variables, char *command, char **arguments)
{
    size_t n = 0, own = 0, i;
    char **all;
    while (variables[n] != NULL)
        n++;
    while (arguments != MPI_ARGV_NULL && arguments[own] != NULL)
        own++;
    if ((all = calloc(n + own + 2, sizeof *all)) == NULL)
        return NULL;
    memcpy(all, variables, n * sizeof *all);
    all[n] = command;
    for (i = 0; i < own; i++)
        all[n + 1 + i] = arguments[i];
    return all;
}

static int prepare(rs_spawn *s, int n, char **commands, char ***arguments, const MPI_Info *infos)
{
    int i, used = 0, complete;
    for (i = 0; i < PASSED; i++)
        if (getenv(passed[i]) != NULL && (s->variables[used] = variable(passed[i], getenv(passed[i]))) != NULL)
            used++;
    s->own = calloc((size_t)n, sizeof *s->own);
    s->commands = calloc((size_t)n, sizeof *s->commands);
    s->arguments = calloc((size_t)n, sizeof *s->arguments);
    complete = s->own != NULL && s->commands != NULL && s->arguments != NULL && name_next(s->name)
               && (s->variables[used] = variable(WORLD, s->name)) != NULL;
    for (i = 0; i < n && complete; i++) {
        s->own[i] = for_env(commands[i], infos[i]);
        s->commands[i] = (char *)ENV;
        s->arguments[i] = s->own[i] == NULL ? NULL
                          : words(s->variables, s->own[i], arguments == MPI_ARGVS_NULL ? MPI_ARGV_NULL : arguments[i]);
        complete = s->arguments[i] != NULL;
    }
    return complete;
}

static void release(rs_spawn *s)
{
    int i;
    for (i = 0; i < s->n; i++) {
        if (s->own != NULL)
            free(s->own[i]);
        if (s->arguments != NULL)
            free(s->arguments[i]);
    }
    for (i = 0; i <= PASSED; i++)
        free(s->variables[i]);
    free(s->own);
    free(s->arguments);
    free(s->commands);
}

/* What the root of a spawn is to pass on instead of its commands and their words; others, and one that cannot, the same. */
void rs_spawn_begin(rs_spawn *s, MPI_Comm comm, int root, int n, char **commands, char ***arguments, const MPI_Info *infos)
{
    int me = -1;
    _Static_assert(sizeof s->variables / sizeof *s->variables > PASSED + 1, "the last is NULL");
    *s = (rs_spawn){.commands = commands, .arguments = arguments};
    if (!rs_state.active || comm == MPI_COMM_NULL || PMPI_Comm_rank(comm, &me) != MPI_SUCCESS || me != root)
        return;
    s->root = 1;
    s->n = n > 0 ? n : 0;
    if (n > 0 && getenv("LD_PRELOAD") != NULL && access(ENV, X_OK) == 0 && prepare(s, n, commands, arguments, infos))
        return;
    release(s);
    *s = (rs_spawn){.commands = commands, .arguments = arguments, .root = 1};
}

void rs_spawn_end(rs_spawn *s, int result, const MPI_Comm *others)
{
    const char *text;
    int processes = 0;
    if (s->root && result == MPI_SUCCESS && PMPI_Comm_remote_size(*others, &processes) == MPI_SUCCESS) {
        rs_lock();
        rs_worlds(&text);
        if (started_used + NAME + 16 < LINES) /* those that find no place have traces of their own */
            started_used += (size_t)sprintf(started + started_used, "%s\t%d\n", s->name, processes);
        rs_unlock();
    }
    if (s->n > 0)
        release(s);
}

#endif
