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
 *
 * Events: Ir Dr Dw, D1mr D1mw, dirty, and for each larger cache its misses of reads and writes, r<n> w<n>, n from 0.
 * Understands callgrind's requests to start, stop, zero and dump, and one of its own: from here on, counts weigh so much.
 * The prologue of every block is one comparison; the rest is done where the function changes.
 */
#include "pub_tool_basics.h"
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

enum { IR, DR, DW, D1MR, D1MW, DIRTY, FIXED, CACHES = 24, EVENTS = FIXED + 2 * CACHES };
enum { JUMP, CALL, RETURN };
/* callgrind.h numbers its requests so; the weight, in millionths, is this tool's own. */
enum { DUMP = VG_USERREQ_TOOL_BASE('C', 'T'), ZERO, TOGGLE, DUMP_AT, START, STOP, WEIGH = VG_USERREQ_TOOL_BASE('R', 'S') };

typedef struct { UInt ways, bits, mask, *tags; } Cache;
typedef struct Arc { struct Arc *next; struct Function *to; Int active; double calls, *cost; } Arc;
typedef struct Function {
    struct Function *next;
    HChar *name, *object, *file;
    UInt line;
    Bool entered, resolves;
    const DebugInfo *unnamed; /* of code without a symbol, whose blocks have a function each: the object */
    double *cost;
    Arc *arcs;
} Function;
typedef struct { Addr stack; Function *function; Arc *arc; } Frame;
typedef struct {
    Frame *frames;
    double *starts, *sum; /* of each frame, the thread's sum when it began */
    Int depth, room;
    ULong expected, kind;
} Thread;

static const HChar *caches_option = NULL, *out_option = "cache-sizes.%p";
static Cache first, larger[CACHES];
static UChar *written; /* lines of the first level that the level with dirty lines knows as written */
static UInt line_bits;
static Int sizes, events;
static ULong total[EVENTS], last[EVENTS];
static double weight = 1.0;
static Bool counting = True, missed, done;
static ULong expected, kind; /* the function that the program is in, 0 after a call or return; and which of them */
static Function *table[8192];
static Thread *threads, *now;

/* ---- caches ------------------------------------------------------------------------------------------------------ */

/* Whether the line was there; it is the last used of its set afterwards. `moved`: whether the order changed. */
static inline Bool find(const Cache *cache, ULong block, Bool *moved) {
    UInt *tags = cache->tags + (block & cache->mask) * cache->ways, tag = (UInt)(block >> cache->bits) + 1, held, k;
    if (tags[0] == tag) return True;
    *moved = True;
    for (held = tags[0], k = 1; k < cache->ways; k++) {
        UInt next = tags[k];
        tags[k] = held;
        held = next;
        if (next == tag) break;
    }
    tags[0] = tag;
    return held == tag;
}

/* The same of the cache with dirty lines, whose tags have a bit of their own for them. */
static Bool find_dirty(const Cache *cache, ULong block, Bool write) {
    UInt *tags = cache->tags + (block & cache->mask) * cache->ways, held, k;
    UInt tag = ((UInt)(block >> cache->bits) + 1) << 1, was = 0;
    Bool found = False;
    if ((tags[0] & ~1u) == tag) {
        tags[0] |= write;
        return True;
    }
    for (held = tags[0], k = 1; k < cache->ways && !found; k++) {
        UInt next = tags[k];
        tags[k] = held;
        held = next;
        found = (next & ~1u) == tag;
    }
    if (found) was = held & 1;
    else if (held & 1) total[DIRTY]++;
    tags[0] = tag | was | write;
    return found;
}

/* An access of one line or two: a miss if either misses, as callgrind counts. */
static void miss(ULong block, ULong end, Bool write) {
    Bool moved = True; /* of the cache before: the first has no smaller one */
    Int k;
    total[D1MR + write]++;
    missed = True;
    for (k = 0; k < sizes; k++) {
        ULong at;
        Bool hit = True;
        if (!moved) return;
        moved = k == 0;
        for (at = block; at <= end; at++)
            if (k == 0 ? !find_dirty(&larger[0], at, write) : !find(&larger[k], at, &moved)) hit = False;
        if (!hit) total[FIXED + 2 * k + write]++;
    }
}

static inline Bool lookup(ULong block, Bool write) {
    UInt set = (UInt)(block & first.mask), *tags = first.tags + set * first.ways, tag = (UInt)(block >> first.bits) + 1;
    UChar *marks = written + set * first.ways, mark = 0;
    UInt held, k;
    Bool found;
    if (tags[0] == tag) {
        if (write && !marks[0]) {
            marks[0] = 1;
            find_dirty(&larger[0], block, True);
            missed = True;
        }
        return True;
    }
    for (held = tags[0], mark = marks[0], k = 1; k < first.ways; k++) {
        UInt next = tags[k];
        UChar note = marks[k];
        tags[k] = held, marks[k] = mark;
        held = next, mark = note;
        if (next == tag) break;
    }
    found = held == tag;
    tags[0] = tag;
    marks[0] = (found && mark) || write;
    if (found && write && !mark) {
        find_dirty(&larger[0], block, True);
        missed = True;
    }
    return found;
}

static inline void access(Addr address, SizeT size, Bool write) {
    ULong block = address >> line_bits, end = (address + size - 1) >> line_bits;
    Bool hit;
    if (LIKELY(block == end)) {
        if (LIKELY(lookup(block, write))) return;
    } else {
        hit = lookup(block, write);
        hit &= lookup(end, write);
        if (hit) return;
    }
    miss(block, end, write);
}

static VG_REGPARM(2) void on_read(Addr address, SizeT size) { access(address, size, False); }
static VG_REGPARM(2) void on_write(Addr address, SizeT size) { access(address, size, True); }
static VG_REGPARM(2) void on_read_if(Addr address, SizeT size) { total[DR]++, access(address, size, False); }
static VG_REGPARM(2) void on_write_if(Addr address, SizeT size) { total[DW]++, access(address, size, True); }

/* ---- functions and calls ----------------------------------------------------------------------------------------- */

static double *zeros(void) { return VG_(calloc)("costs", EVENTS, sizeof(double)); }

/* What was counted since the last change goes to the function that the program is in. */
static void settle(void) {
    Int k, count = missed ? events : DW + 1;
    double *sum = now->sum, *cost = now->depth ? now->frames[now->depth - 1].function->cost : NULL;
    for (k = 0; k < count; k++) {
        double change = weight * (double)(Long)(total[k] - last[k]);
        last[k] = total[k];
        sum[k] += change;
        if (cost) cost[k] += change;
    }
    missed = False;
}

static void push(Function *function, Addr stack) {
    Arc *arc = NULL, **place;
    if (now->depth == now->room) {
        now->room = 2 * now->room + 64;
        now->frames = VG_(realloc)("frames", now->frames, now->room * sizeof(Frame));
        now->starts = VG_(realloc)("starts", now->starts, (SizeT)now->room * events * sizeof(double));
    }
    if (now->depth) {
        Function *from = now->frames[now->depth - 1].function;
        for (place = &from->arcs; *place && (*place)->to != function;) place = &(*place)->next;
        if ((arc = *place) == NULL) {
            arc = VG_(calloc)("arc", 1, sizeof *arc);
            arc->to = function;
            arc->cost = zeros();
        } else
            *place = arc->next;
        arc->next = from->arcs, from->arcs = arc;
        arc->calls += weight;
        arc->active++;
    }
    now->frames[now->depth] = (Frame){stack, function, arc};
    VG_(memcpy)(now->starts + (SizeT)now->depth * events, now->sum, events * sizeof(double));
    now->depth++;
}

static void pop(void) {
    Arc *arc = now->frames[--now->depth].arc;
    double *start = now->starts + (SizeT)now->depth * events;
    Int k;
    if (arc && --arc->active == 0)
        for (k = 0; k < events; k++) arc->cost[k] += now->sum[k] - start[k];
}

/* Whether it is a further block of the code without a symbol that the program is in. */
static Bool within(const Function *function) {
    return function->unnamed && now->depth && now->frames[now->depth - 1].function->unnamed == function->unnamed;
}

static VG_REGPARM(3) void on_entry(Function *function, Addr address, Addr stack) {
    ULong how = kind;
    if (how == JUMP && within(function)) {
        expected = (ULong)(UWord)function;
        return;
    }
    settle();
    kind = JUMP;
    expected = (ULong)(UWord)function;
    if (how != JUMP)
        while (now->depth && (now->frames[now->depth - 1].stack < stack
                              || (how == CALL && now->frames[now->depth - 1].stack == stack)))
            pop();
    if (how != CALL) {
        if (now->depth && (now->frames[now->depth - 1].function == function || within(function))) return;
        if (now->depth > 1 && now->frames[now->depth - 2].function == function && how == JUMP) {
            pop(); /* back from a part that the compiler moved away, or from a handler of signals */
            return;
        }
        /* The loader's resolver ends in a jump to what was called. */
        if (now->depth && now->frames[now->depth - 1].function->resolves) pop();
    }
    if (!function->entered && how != RETURN) {
        const HChar *file, *folder;
        UInt line;
        function->entered = True;
        if (VG_(get_filename_linenum)(VG_(current_DiEpoch)(), address, &file, &folder, &line)) {
            SizeT room = VG_(strlen)(file) + VG_(strlen)(folder) + 2;
            function->file = VG_(malloc)("file", room);
            VG_(snprintf)(function->file, (Int)room, "%s%s%s", folder, folder[0] ? "/" : "", file);
            function->line = line;
        }
    }
    push(function, stack);
}

static Function *function_at(Addr address) {
    DiEpoch epoch = VG_(current_DiEpoch)();
    DebugInfo *info = VG_(find_DebugInfo)(epoch, address);
    const HChar *name, *object = info ? VG_(DebugInfo_get_filename)(info) : "???", *at;
    HChar text[32];
    UInt hash = 5381;
    Bool named = VG_(get_fnname)(epoch, address, &name);
    Function *function;
    if (!named) {
        VG_(snprintf)(text, sizeof text, "0x%016lx", info ? address - VG_(DebugInfo_get_text_bias)(info) : address);
        name = text;
    }
    for (at = name; *at; at++) hash = hash * 33 + (UChar)*at;
    for (at = object; *at; at++) hash = hash * 33 + (UChar)*at;
    for (function = table[hash % 8192]; function; function = function->next)
        if (!VG_(strcmp)(function->name, name) && !VG_(strcmp)(function->object, object)) return function;
    function = VG_(calloc)("function", 1, sizeof *function);
    function->name = VG_(strdup)("name", name);
    function->object = VG_(strdup)("object", object);
    function->unnamed = named ? NULL : info;
    function->resolves = VG_(strncmp)(name, "_dl_runtime_resolve", 19) == 0;
    function->cost = zeros();
    function->next = table[hash % 8192];
    return table[hash % 8192] = function;
}

/* ---- instrumentation --------------------------------------------------------------------------------------------- */

static IRExpr *word(ULong value) { return IRExpr_Const(IRConst_U64(value)); }

static void add(IRSB *out, ULong *counter, UInt *count) {
    IRTemp before, after;
    if (*count == 0) return;
    before = newIRTemp(out->tyenv, Ity_I64), after = newIRTemp(out->tyenv, Ity_I64);
    addStmtToIRSB(out, IRStmt_WrTmp(before, IRExpr_Load(Iend_LE, Ity_I64, word((ULong)(UWord)counter))));
    addStmtToIRSB(out, IRStmt_WrTmp(after, IRExpr_Binop(Iop_Add64, IRExpr_RdTmp(before), word(*count))));
    addStmtToIRSB(out, IRStmt_Store(Iend_LE, word((ULong)(UWord)counter), IRExpr_RdTmp(after)));
    *count = 0;
}

static void set(IRSB *out, ULong *place, ULong value) {
    addStmtToIRSB(out, IRStmt_Store(Iend_LE, word((ULong)(UWord)place), word(value)));
}

static void call_access(IRSB *out, IRExpr *address, Int size, Bool write, IRExpr *guard) {
    void *helper = guard ? (write ? (void *)on_write_if : (void *)on_read_if) : write ? (void *)on_write : (void *)on_read;
    IRDirty *dirty = unsafeIRDirty_0_N(2, write ? "on_write" : "on_read", VG_(fnptr_to_fnentry)(helper),
                                       mkIRExprVec_2(address, word((ULong)size)));
    if (guard) dirty->guard = guard;
    addStmtToIRSB(out, IRStmt_Dirty(dirty));
}

static void prologue(IRSB *out, Function *function, Addr address, const VexGuestLayout *layout) {
    IRTemp held = newIRTemp(out->tyenv, Ity_I64), differs = newIRTemp(out->tyenv, Ity_I1);
    IRTemp stack = newIRTemp(out->tyenv, Ity_I64);
    IRDirty *dirty;
    addStmtToIRSB(out, IRStmt_WrTmp(held, IRExpr_Load(Iend_LE, Ity_I64, word((ULong)(UWord)&expected))));
    addStmtToIRSB(out, IRStmt_WrTmp(differs, IRExpr_Binop(Iop_CmpNE64, IRExpr_RdTmp(held), word((ULong)(UWord)function))));
    addStmtToIRSB(out, IRStmt_WrTmp(stack, IRExpr_Get(layout->offset_SP, Ity_I64)));
    dirty = unsafeIRDirty_0_N(3, "on_entry", VG_(fnptr_to_fnentry)((void *)on_entry),
                              mkIRExprVec_3(word((ULong)(UWord)function), word(address), IRExpr_RdTmp(stack)));
    dirty->guard = IRExpr_RdTmp(differs);
    addStmtToIRSB(out, IRStmt_Dirty(dirty));
}

static IRSB *instrument(VgCallbackClosure *closure, IRSB *in, const VexGuestLayout *layout, const VexGuestExtents *extents,
                        const VexArchInfo *info, IRType guest, IRType host) {
    IRSB *out;
    IRExpr *read = NULL; /* address that the instruction has read: to write there is no second access */
    UInt instructions = 0, reads = 0, writes = 0;
    Int k = 0, size;
    const HChar *name;
    Addr start = extents->base[0];
    if (!counting) return in;
    out = deepCopyIRSBExceptStmts(in);
    while (k < in->stmts_used && in->stmts[k]->tag != Ist_IMark) addStmtToIRSB(out, in->stmts[k++]);
    if (VG_(DebugInfo_sect_kind)(&name, start) != Vg_SectPLT) prologue(out, function_at(start), start, layout);
    for (; k < in->stmts_used; k++) {
        IRStmt *st = in->stmts[k];
        switch (st->tag) {
        case Ist_IMark:
            instructions++;
            read = NULL;
            break;
        case Ist_WrTmp:
            if (st->Ist.WrTmp.data->tag == Iex_Load) {
                IRExpr *load = st->Ist.WrTmp.data;
                reads++;
                read = load->Iex.Load.addr;
                call_access(out, read, sizeofIRType(load->Iex.Load.ty), False, NULL);
            }
            break;
        case Ist_Store:
            size = sizeofIRType(typeOfIRExpr(in->tyenv, st->Ist.Store.data));
            if (!read || !eqIRAtom(read, st->Ist.Store.addr)) writes++;
            call_access(out, st->Ist.Store.addr, size, True, NULL);
            break;
        case Ist_StoreG:
            size = sizeofIRType(typeOfIRExpr(in->tyenv, st->Ist.StoreG.details->data));
            call_access(out, st->Ist.StoreG.details->addr, size, True, st->Ist.StoreG.details->guard);
            break;
        case Ist_LoadG: {
            IRType wide, narrow;
            typeOfIRLoadGOp(st->Ist.LoadG.details->cvt, &wide, &narrow);
            call_access(out, st->Ist.LoadG.details->addr, sizeofIRType(narrow), False, st->Ist.LoadG.details->guard);
            break;
        }
        case Ist_Dirty: {
            IRDirty *dirty = st->Ist.Dirty.details;
            size = dirty->mSize < 32 ? dirty->mSize : 32;
            if (dirty->mFx == Ifx_Read || dirty->mFx == Ifx_Modify)
                reads++, call_access(out, dirty->mAddr, size, False, NULL);
            if (dirty->mFx == Ifx_Write) writes++;
            if (dirty->mFx == Ifx_Write || dirty->mFx == Ifx_Modify) call_access(out, dirty->mAddr, size, True, NULL);
            break;
        }
        case Ist_CAS:
            size = sizeofIRType(typeOfIRExpr(in->tyenv, st->Ist.CAS.details->dataLo));
            size *= st->Ist.CAS.details->dataHi ? 2 : 1;
            writes++;
            call_access(out, st->Ist.CAS.details->addr, size, False, NULL);
            call_access(out, st->Ist.CAS.details->addr, size, True, NULL);
            break;
        case Ist_LLSC:
            if (st->Ist.LLSC.storedata == NULL) {
                size = sizeofIRType(typeOfIRTemp(in->tyenv, st->Ist.LLSC.result));
                reads++, call_access(out, st->Ist.LLSC.addr, size, False, NULL);
            } else {
                size = sizeofIRType(typeOfIRExpr(in->tyenv, st->Ist.LLSC.storedata));
                writes++, call_access(out, st->Ist.LLSC.addr, size, True, NULL);
            }
            break;
        case Ist_Exit:
            add(out, &total[IR], &instructions), add(out, &total[DR], &reads), add(out, &total[DW], &writes);
            break;
        default:
            break;
        }
        addStmtToIRSB(out, st);
    }
    add(out, &total[IR], &instructions), add(out, &total[DR], &reads), add(out, &total[DW], &writes);
    if (in->jumpkind == Ijk_Call || in->jumpkind == Ijk_Ret)
        set(out, &expected, 0), set(out, &kind, in->jumpkind == Ijk_Call ? CALL : RETURN);
    return out;
}

/* ---- threads, requests, output ----------------------------------------------------------------------------------- */

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
            VG_(memset)(function->cost, 0, EVENTS * sizeof(double));
            for (Arc *arc = function->arcs; arc; arc = arc->next)
                arc->calls = 0, VG_(memset)(arc->cost, 0, EVENTS * sizeof(double));
        }
}

static void count(Bool start) {
    if (start == counting) return;
    leave_all();
    counting = start;
    VG_(discard_translations_safely)((Addr)0x1000, ~(SizeT)0xfff, "cache sizes");
}

static void print_costs(VgFile *file, UInt line, const double *cost) {
    Int k, end = events;
    while (end > 1 && cost[end - 1] < 0.5) end--;
    VG_(fprintf)(file, "%u", line);
    for (k = 0; k < end; k++) VG_(fprintf)(file, " %llu", (ULong)(cost[k] > 0 ? cost[k] + 0.5 : 0));
    VG_(fprintf)(file, "\n");
}

static void write_file(void) {
    HChar *name = VG_(expand_file_name)("--out-file", out_option);
    VgFile *file = VG_(fopen)(name, VKI_O_CREAT | VKI_O_TRUNC | VKI_O_WRONLY, 0644);
    double sum[EVENTS] = {0};
    Int h, k;
    leave_all();
    if (file == NULL) {
        VG_(umsg)("cannot write %s\n", name);
        return;
    }
    VG_(fprintf)(file, "version: 1\ncreator: callgrind, cache sizes\npid: %d\ncmd: %s\npositions: line\nevents: Ir Dr Dw D1mr D1mw dirty",
                 VG_(getpid)(), VG_(args_the_exename));
    for (k = 0; k < sizes; k++) VG_(fprintf)(file, " r%d w%d", k, k);
    VG_(fprintf)(file, "\n");
    for (h = 0; h < 8192; h++)
        for (Function *function = table[h]; function; function = function->next) {
            const HChar *where = function->file ? function->file : "???";
            if (function->cost[IR] < 0.5 && function->arcs == NULL) continue;
            VG_(fprintf)(file, "\nob=%s\nfl=%s\nfn=%s\n", function->object, where, function->name);
            print_costs(file, function->line, function->cost);
            for (k = 0; k < events; k++) sum[k] += function->cost[k];
            for (Arc *arc = function->arcs; arc; arc = arc->next) {
                if (arc->calls < 0.5) continue;
                VG_(fprintf)(file, "cob=%s\ncfi=%s\ncfn=%s\ncalls=%llu %u\n", arc->to->object,
                             arc->to->file ? arc->to->file : "???", arc->to->name, (ULong)(arc->calls + 0.5), arc->to->line);
                print_costs(file, function->line, arc->cost);
            }
        }
    VG_(fprintf)(file, "\ntotals:");
    for (k = 0; k < events; k++) VG_(fprintf)(file, " %llu", (ULong)(sum[k] + 0.5));
    VG_(fprintf)(file, "\n");
    VG_(fclose)(file);
    VG_(free)(name);
}

static Bool request(ThreadId id, UWord *words, UWord *answer) {
    if (!VG_IS_TOOL_USERREQ('C', 'T', words[0]) && !VG_IS_TOOL_USERREQ('R', 'S', words[0])) return False;
    *answer = 0;
    switch (words[0]) {
    case START: count(True); break;
    case STOP: count(False); break;
    case ZERO: zero(); break;
    case DUMP: case DUMP_AT: write_file(), done = True; break;
    case WEIGH:
        if (counting && now) settle();
        weight = (double)words[1] / 1e6;
        break;
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
    events = FIXED + 2 * sizes;
    threads = VG_(calloc)("threads", VG_N_THREADS, sizeof(Thread));
    on_thread(1, 0);
}

static void end(Int status) {
    if (!done) write_file();
}

static void forked(ThreadId id) { zero(), done = False; }

static Bool option(const HChar *arg) {
    if VG_STR_CLO(arg, "--caches", caches_option) {}
    else if VG_STR_CLO(arg, "--out-file", out_option) {}
    else if VG_BOOL_CLO(arg, "--instr-atstart", counting) {}
    else return False;
    return True;
}

static void usage(void) { VG_(printf)("    --caches=BYTES,WAYS,LINE:...  --out-file=NAME  --instr-atstart=yes|no\n"); }
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
