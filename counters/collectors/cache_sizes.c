/*
 * A tool for valgrind: counts per function and call arc as callgrind makes them, for all sizes of the last level at once.
 *
 * Every data access goes to the first level, and what misses there to each of the larger caches, which do not know each
 * other: each is the last level of a simulation of two levels, as callgrind's is. With sets that are nested (powers of
 * two, one length of line) a line that was the last used of its set in one cache is so in every one of more sets, and
 * the search ends. The first larger cache also simulates dirty lines: written lines are marked as they are first written
 * in the first level. Instructions are counted and go to no cache.
 *
 * --caches=BYTES,WAYS,LINE:BYTES,WAYS,LINE:...   first level, level with dirty lines, others by their number of sets
 * --out-file=NAME                                %p is the process
 * --only-instructions=yes                        nothing but their number, which a request of this tool's own asks for
 * --program=NAME:NAME:...                        names of object files that are the program's own
 *
 * Events: Ir Dr Dw, D1mr D1mw, dirty, and for each larger cache its misses of reads and writes, r<n> w<n>, n from 0.
 * Understands callgrind's requests to start, stop, zero and dump, and one of its own: from here on, counts weigh so much.
 * NAME.code lists what was executed while it counted: address in the object as linked, bytes, object.
 * Further weights make sums that differ from the first by what occurrences differ by: events with a suffix after
 * those of the first, and calls<suffix> in front of them. A last sum takes the place of all others where functions of the
 * program differ in them and the run is simulated at further places therefore, as a request asks.
 * The prologue of every block is one comparison; the rest is done where the function changes.
 */
#include "pub_tool_basics.h"
#include "pub_tool_aspacemgr.h"
#include "pub_tool_clientstate.h"
#include "pub_tool_clreq.h"
#include "pub_tool_debuginfo.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_machine.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_options.h"
#include "pub_tool_threadstate.h"
#include "pub_tool_tooliface.h"
#include "pub_tool_transtab.h"
#include "pub_tool_vki.h"

enum { IR, DR, DW, D1MR, D1MW, DIRTY, FIXED, CACHES = 32, EVENTS = FIXED + 2 * CACHES, SHOWN = 4, SUMS };
enum { JUMP, CALL, RETURN };
/* callgrind.h numbers its requests so; the weight, in millionths, is this tool's own. */
enum { DUMP = VG_USERREQ_TOOL_BASE('C', 'T'), ZERO, TOGGLE, DUMP_AT, START, STOP, WEIGH = VG_USERREQ_TOOL_BASE('R', 'S'), INSTRUCTIONS, GOES_ON };
#define DIFFERENT 1e-5 /* of the instructions: a hundred times as much may be missing of a long run */
#define HEAVY 0.01
#define UNUSED (~(UWord)0)

typedef struct { UInt ways, bits, mask, *tags; } Cache;
typedef struct Arc { struct Arc *next; struct Function *to; Int active; double calls[SUMS], *cost; } Arc;
typedef struct Function {
    struct Function *next;
    HChar *name, *object, *file;
    UInt line;
    Bool entered, resolves, own;
    const DebugInfo *unnamed; /* of code without a symbol, whose blocks have a function each: the object */
    double *cost;
    Arc *arcs;
} Function;
typedef struct { Addr address; UInt bytes; const HChar *object; } Block;
typedef struct { Addr stack; Function *function; Arc *arc; } Frame;
typedef struct {
    Frame *frames;
    double *starts, *sum; /* of each frame, the thread's sums when it began; like all costs, by weight and event */
    Int depth, room;
    ULong expected, kind;
} Thread;

static const HChar *caches_option = NULL, *out_option = "cache-sizes.%p", *own_option = "";
static Cache first, larger[CACHES];
static UChar *written; /* lines of the first level that the level with dirty lines knows as written */
static UInt line_bits;
static Int sizes, events;
static ULong total[EVENTS], last[EVENTS];
static double weight[SUMS] = {1.0};
static const HChar *suffix[SHOWN] = {"", ".turns", ".pairs", ".halves"};
static Int sums = 1; /* weights that are used */
static Bool counting = True, only, missed, done;
static ULong expected, kind; /* the function that the program is in, 0 after a call or return; and which of them */
static Function *table[8192];
static Block *blocks; /* of code that was executed */
static SizeT block_count, block_room;
static Thread *threads, *now;

#include "cache_levels.h"
#include "cache_calls.h"
#include "cache_blocks.h"

/* ---- threads, requests, output ---------------------------------------------------------------------------------- */

static void on_thread(ThreadId id, ULong blocks) {
    Thread *next = &threads[id];
    if (next->sum == NULL) next->sum = zeros();
    if (next == now) return;
    if (now) settle(), now->expected = expected, now->kind = kind;
    now = next, expected = next->expected, kind = next->kind;
}

static void leave_all(void) {
    Thread *stays = now;
    if (now) settle();
    for (now = threads; now < threads + VG_N_THREADS; now++) {
        while (now->depth) pop();
        now->expected = 0, now->kind = JUMP;
    }
    now = stays, expected = 0, kind = JUMP;
}

static void zero(void) {
    Int h;
    leave_all();
    for (h = 0; h < 8192; h++)
        for (Function *function = table[h]; function; function = function->next) {
            VG_(memset)(function->cost, 0, SUMS * EVENTS * sizeof(double));
            for (Arc *arc = function->arcs; arc; arc = arc->next)
                VG_(memset)(arc->calls, 0, sizeof arc->calls), VG_(memset)(arc->cost, 0, SUMS * EVENTS * sizeof(double));
        }
}

/* From now on costs are kept by as many weights: frames are then of another size. */
static void use_sums(Int count) {
    Thread *thread;
    leave_all();
    for (thread = threads; thread < threads + VG_N_THREADS; thread++) thread->room = 0;
    sums = count;
}

/* Whether the instructions of a function of weight differ in sums that occurrences differ in. */
static Bool differs(const Function *function, double whole) {
    double counted = function->cost[IR], most = counted * DIFFERENT > 2 ? counted * DIFFERENT : 2;
    Int s;
    for (s = 1; function->own && counted > HEAVY * whole && s < SHOWN; s++) {
        double change = function->cost[s * EVENTS + IR] - counted;
        if (change > most || change < -most) return True;
    }
    return False;
}

static void replace(double *cost, Int count) {
    for (Int s = 0; s < SHOWN; s++) VG_(memcpy)(cost + s * count, cost + SHOWN * count, count * sizeof(double));
}

/* Whether functions differ; all sums are then the last one. */
static Bool goes_on(void) {
    double whole = 0;
    Bool found = False;
    Int h;
    Function *function;
    if (sums < SUMS) return False;
    leave_all();
    for (h = 0; h < 8192; h++)
        for (function = table[h]; function; function = function->next) whole += function->own ? function->cost[IR] : 0;
    for (h = 0; h < 8192 && !found; h++)
        for (function = table[h]; function && !found; function = function->next) found = differs(function, whole);
    for (h = 0; h < 8192 && found; h++)
        for (function = table[h]; function; function = function->next) {
            replace(function->cost, EVENTS);
            for (Arc *arc = function->arcs; arc; arc = arc->next) replace(arc->calls, 1), replace(arc->cost, EVENTS);
        }
    use_sums(SHOWN);
    return found;
}

static void count(Bool start) {
    if (start == counting) return;
    leave_all();
    counting = start;
    VG_(discard_translations_safely)((Addr)0x1000, ~(SizeT)0xfff, "cache sizes");
}

/* A line of costs, those in further sums behind the number of calls over the arc in each; without zeros at its end. */
static void print_costs(VgFile *file, UInt line, const double *calls, const double *cost) {
    Int s, k, zeros = 0;
    VG_(fprintf)(file, "%u", line);
    for (s = 0; s < sums && s < SHOWN; s++)
        for (k = s ? -1 : 0; k < events; k++) {
            double value = k >= 0 ? cost[s * EVENTS + k] : calls ? calls[s] : 0.0;
            if (value < 0.5) {
                zeros++;
                continue;
            }
            for (; zeros; zeros--) VG_(fprintf)(file, " 0");
            VG_(fprintf)(file, " %llu", (ULong)(value + 0.5));
        }
    VG_(fprintf)(file, "\n");
}

static void print_events(VgFile *file) {
    Int s, k;
    for (s = 0; s < sums && s < SHOWN; s++) {
        const HChar *of = suffix[s];
        if (s) VG_(fprintf)(file, " calls%s", of);
        VG_(fprintf)(file, " Ir%s Dr%s Dw%s D1mr%s D1mw%s dirty%s", of, of, of, of, of, of);
        for (k = 0; k < sizes; k++) VG_(fprintf)(file, " r%d%s w%d%s", k, of, k, of);
    }
}

static void print_function(VgFile *file, const Function *function) {
    VG_(fprintf)(file, "\nob=%s\nfl=%s\nfn=%s\n", function->object, function->file ? function->file : "???", function->name);
    print_costs(file, function->line, NULL, function->cost);
    for (Arc *arc = function->arcs; arc; arc = arc->next) {
        if (arc->calls[0] < 0.5) continue;
        VG_(fprintf)(file, "cob=%s\ncfi=%s\ncfn=%s\ncalls=%llu %u\n", arc->to->object,
                     arc->to->file ? arc->to->file : "???", arc->to->name, (ULong)(arc->calls[0] + 0.5), arc->to->line);
        print_costs(file, function->line, arc->calls, arc->cost);
    }
}

static void write_costs(void) {
    HChar *name = VG_(expand_file_name)("--out-file", out_option);
    VgFile *file = VG_(fopen)(name, VKI_O_CREAT | VKI_O_TRUNC | VKI_O_WRONLY, 0644);
    double sum[EVENTS] = {0};
    Int h, k;
    if (file == NULL) VG_(umsg)("cannot write %s\n", name);
    VG_(free)(name);
    if (file == NULL) return;
    VG_(fprintf)(file, "version: 1\ncreator: callgrind, cache sizes\npid: %d\ncmd: %s\npositions: line\nevents:",
                 VG_(getpid)(), VG_(args_the_exename));
    print_events(file);
    VG_(fprintf)(file, "\n");
    for (h = 0; h < 8192; h++)
        for (Function *function = table[h]; function; function = function->next) {
            if (function->cost[IR] < 0.5 && function->arcs == NULL) continue;
            print_function(file, function);
            for (k = 0; k < events; k++) sum[k] += function->cost[k];
        }
    VG_(fprintf)(file, "\ntotals:");
    for (k = 0; k < events; k++) VG_(fprintf)(file, " %llu", (ULong)(sum[k] + 0.5));
    VG_(fprintf)(file, "\n");
    VG_(fclose)(file);
}

static void write_code(void) {
    HChar *base = VG_(expand_file_name)("--out-file", out_option), *name = VG_(malloc)("name", VG_(strlen)(base) + 16);
    VgFile *file;
    SizeT k;
    VG_(sprintf)(name, "%s.code", base);
    file = VG_(fopen)(name, VKI_O_CREAT | VKI_O_TRUNC | VKI_O_WRONLY, 0644);
    for (k = 0; file && k < block_count; k++)
        VG_(fprintf)(file, "%lx %u %s\n", blocks[k].address, blocks[k].bytes, blocks[k].object);
    if (file) VG_(fclose)(file);
    VG_(free)(base), VG_(free)(name);
}

static void write_files(void) {
    leave_all();
    write_costs();
    if (sums > 1) write_code();
}

static Bool request(ThreadId id, UWord *words, UWord *answer) {
    Int s;
    if (!VG_IS_TOOL_USERREQ('C', 'T', words[0]) && !VG_IS_TOOL_USERREQ('R', 'S', words[0])) return False;
    *answer = 0;
    switch (words[0]) {
    case START: count(True); break;
    case STOP: count(False); break;
    case ZERO: zero(); break;
    case DUMP: case DUMP_AT: write_files(), done = True; break;
    case INSTRUCTIONS: *answer = total[IR] + 1; break; /* 0 is the answer where nothing counts */
    case WEIGH:
        if (counting && now) settle();
        for (s = 0; s < SUMS; s++) weight[s] = (double)words[1 + s] / 1e6;
        if (sums == 1) use_sums(words[SUMS] == UNUSED ? SHOWN : SUMS);
        break;
    case GOES_ON: *answer = goes_on(); break;
    default: break;
    }
    return True;
}

static Cache cache_of(const HChar **text) {
    Cache cache = {0};
    HChar *end;
    ULong bytes = VG_(strtoull10)(*text, &end), sets;
    UInt line;
    cache.ways = *end == ',' ? (UInt)VG_(strtoull10)(end + 1, &end) : 0;
    line = *end == ',' ? (UInt)VG_(strtoull10)(end + 1, &end) : 0;
    sets = cache.ways && line ? bytes / cache.ways / line : 0;
    if (sets == 0 || sets & (sets - 1) || line & (line - 1)) VG_(fmsg_bad_option)("--caches", "sets no power of two: %s\n", *text);
    while ((1u << line_bits) < line) line_bits++;
    while ((1u << cache.bits) < sets) cache.bits++;
    cache.mask = (UInt)sets - 1;
    cache.tags = VG_(calloc)("tags", sets * cache.ways, sizeof(UInt));
    *text = *end == ':' ? end + 1 : end;
    return cache;
}

static void begin(void) {
    const HChar *text = caches_option;
    if (!text) VG_(fmsg_bad_option)("--caches", "is missing\n");
    first = cache_of(&text);
    written = VG_(calloc)("written", (SizeT)(first.mask + 1) * first.ways, 1);
    while (*text && sizes < CACHES) larger[sizes++] = cache_of(&text);
    if (*text) VG_(fmsg_bad_option)("--caches", "names more than %d\n", CACHES + 1);
    events = FIXED + 2 * sizes;
    threads = VG_(calloc)("threads", VG_N_THREADS, sizeof(Thread));
    on_thread(1, 0);
}

static void end(Int status) {
    if (!done && !only) write_files();
}

static void forked(ThreadId id) { zero(), done = False; }

static Bool option(const HChar *arg) {
    if VG_STR_CLO(arg, "--caches", caches_option) {}
    else if VG_STR_CLO(arg, "--out-file", out_option) {}
    else if VG_BOOL_CLO(arg, "--instr-atstart", counting) {}
    else if VG_STR_CLO(arg, "--program", own_option) {}
    else if VG_BOOL_CLO(arg, "--only-instructions", only) {}
    else return False;
    return True;
}

static void usage(void) { VG_(printf)("    --caches=BYTES,WAYS,LINE:...  --out-file=NAME  --instr-atstart=yes|no  --only-instructions=yes|no  --program=NAME:...\n"); }
static void nothing(void) {}

static void before_options(void) {
    VG_(details_name)("cachesizes");
    VG_(details_version)(NULL);
    VG_(details_description)("counts per function for all sizes of a cache");
    VG_(details_copyright_author)("");
    VG_(details_bug_reports_to)("");
    VG_(basic_tool_funcs)(begin, instrument, end);
    VG_(needs_superblock_discards)((void (*)(Addr, VexGuestExtents))nothing);
    VG_(needs_command_line_options)(option, usage, nothing);
    VG_(needs_client_requests)(request);
    VG_(track_start_client_code)(on_thread);
    VG_(atfork)(NULL, NULL, forked);
    VG_(clo_vex_control).guest_chase = False;
    VG_(clo_vex_control).iropt_unroll_thresh = 0;
}

VG_DETERMINE_INTERFACE_VERSION(before_options)
