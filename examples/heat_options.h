/* The command line. */
#ifndef HEAT_OPTIONS_H
#define HEAT_OPTIONS_H

#include <getopt.h>
#include <limits.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    long n, total, iterations, steps, table, crash;
    double imbalance, diffusion, check;
    int bug, wait;
} Options;

static const char HELP[] =
    "usage: heat [options]\n"
    "3-D heat conduction by implicit Euler steps and conjugate gradients, checked against the known solution.\n\n"
    "  --n N              cells per rank and dimension (weak scaling; default 16)\n"
    "  --total N          cells per dimension in total (strong scaling; uneven parts where it does not divide)\n"
    "  --iterations N     CG iterations a step, always all of them (default 25)\n"
    "  --steps N          time steps (default 2)\n"
    "  --diffusion X      diffusion number dt / h^2, mean of the three dimensions (default 0.5)\n"
    "  --lookup-table S   bytes of the look-up table per rank, such as 512Ki or 1Gi, rounded down (default 4Mi)\n"
    "  --imbalance F      rank r does 1 + F r / (ranks - 1) times the work in material_law (default 0)\n"
    "  --bug              plant a scalability bug: find_neighbour searches a list of all ranks in every exchange\n"
    "  --wait             plant a wait state: serialised_section hands a sum on from rank to rank\n"
    "  --crash RANK       that rank ends by SIGSEGV after its first step\n"
    "  --check TOL        largest relative error against the discrete solution (default: the bound that CG keeps)\n"
    "  --help             this text\n"
    "exit status: 0 results right, 1 results wrong or grid too small for the ranks, 2 bad options\n";

/* Ends all ranks: one line from rank 0. */
static void quit(int status, const char *format, ...) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        FILE *out = status == 0 ? stdout : stderr;
        va_list arguments;
        va_start(arguments, format);
        if (status != 0) fputs("heat: ", out);
        vfprintf(out, format, arguments);
        va_end(arguments);
        fflush(out);
    }
    MPI_Finalize();
    exit(status);
}

static long whole(const char *option, const char *text, long low, long high) {
    char *end;
    const long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < low || value > high)
        quit(2, "--%s takes a whole number from %ld to %ld, not '%s'\n", option, low, high, text);
    return value;
}

static double real(const char *option, const char *text, double low, double high) {
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= low && value <= high))
        quit(2, "--%s takes a number from %g to %g, not '%s'\n", option, low, high, text);
    return value;
}

static long bytes(const char *option, const char *text) {
    static const char *const units[] = {"", "Ki", "Mi", "Gi"};
    char *end;
    double value = strtod(text, &end);
    size_t unit = 0;
    while (unit < 4 && strcmp(end, units[unit]) != 0) unit++;
    for (size_t i = 0; i < unit && unit < 4; i++) value *= 1024;
    if (end == text || unit == 4 || !(value >= 64 && value <= 17179869184.0))
        quit(2, "--%s takes bytes from 64 to 16Gi, such as 4Mi, not '%s'\n", option, text);
    return (long)value;
}

static Options parse(int argc, char **argv) {
    static const struct option known[] = {
        {"n", required_argument, NULL, 'n'},         {"total", required_argument, NULL, 't'},
        {"iterations", required_argument, NULL, 'i'}, {"steps", required_argument, NULL, 's'},
        {"diffusion", required_argument, NULL, 'd'}, {"lookup-table", required_argument, NULL, 'l'},
        {"imbalance", required_argument, NULL, 'm'}, {"bug", no_argument, NULL, 'b'},
        {"wait", no_argument, NULL, 'w'},            {"crash", required_argument, NULL, 'c'},
        {"check", required_argument, NULL, 'k'},     {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0}};
    Options o = {.iterations = 25, .steps = 2, .table = 4 << 20, .crash = -1, .diffusion = 0.5, .check = -1};
    int key, at = 0;
    opterr = 0;
    while ((key = getopt_long(argc, argv, ":", known, &at)) != -1) {
        const char *name = key == '?' || key == ':' ? "" : known[at].name;
        switch (key) {
        case 'n': o.n = whole(name, optarg, 1, 4096); break;
        case 't': o.total = whole(name, optarg, 1, 1 << 20); break;
        case 'i': o.iterations = whole(name, optarg, 1, 1000000); break;
        case 's': o.steps = whole(name, optarg, 1, 1000000); break;
        case 'd': o.diffusion = real(name, optarg, 1e-6, 1e6); break;
        case 'l': o.table = bytes(name, optarg); break;
        case 'm': o.imbalance = real(name, optarg, 0, 1000); break;
        case 'b': o.bug = 1; break;
        case 'w': o.wait = 1; break;
        case 'c': o.crash = whole(name, optarg, 0, INT_MAX); break;
        case 'k': o.check = real(name, optarg, 0, 1e300); break;
        case 'h': quit(0, "%s", HELP); break;
        case ':': quit(2, "option '%s' needs a value; --help lists the options\n", argv[optind - 1]); break;
        default: quit(2, "no option '%s'; --help lists them\n", argv[optind - 1]);
        }
    }
    if (optind < argc) quit(2, "no argument '%s' is taken; --help lists the options\n", argv[optind]);
    if (o.n && o.total) quit(2, "--n and --total exclude each other: cells per rank, or in total\n");
    if (!o.n && !o.total) o.n = 16;
    return o;
}

#endif
