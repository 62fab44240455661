/* Part of cache_sizes.c: functions, the calls between them, and what each of them costs. */

static double *zeros(void) { return VG_(calloc)("costs", SUMS * EVENTS, sizeof(double)); }

/* What was counted since the last change goes to the function that the program is in. */
static void settle(void) {
    Int k, s, count = missed ? events : DW + 1;
    double *sum = now->sum, *cost = now->depth ? now->frames[now->depth - 1].function->cost : NULL;
    for (k = 0; k < count; k++) {
        double change = (double)(Long)(total[k] - last[k]);
        last[k] = total[k];
        for (s = 0; s < sums; s++) {
            sum[s * EVENTS + k] += weight[s] * change;
            if (cost) cost[s * EVENTS + k] += weight[s] * change;
        }
    }
    missed = False;
}

/* The thread's sums when a frame began. */
static double *start_of(Int depth) { return now->starts + (SizeT)depth * sums * events; }

static void push(Function *function, Addr stack) {
    Arc *arc = NULL, **place;
    Int s;
    if (now->depth == now->room) {
        now->room = 2 * now->room + 64;
        now->frames = VG_(realloc)("frames", now->frames, now->room * sizeof(Frame));
        now->starts = VG_(realloc)("starts", now->starts, (SizeT)now->room * sums * events * sizeof(double));
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
        for (s = 0; s < sums; s++) arc->calls[s] += weight[s];
        arc->active++;
    }
    now->frames[now->depth] = (Frame){stack, function, arc};
    for (s = 0; s < sums; s++)
        VG_(memcpy)(start_of(now->depth) + s * events, now->sum + s * EVENTS, events * sizeof(double));
    now->depth++;
}

static void pop(void) {
    Arc *arc = now->frames[--now->depth].arc;
    double *start = start_of(now->depth);
    Int k, s;
    if (arc && --arc->active == 0)
        for (s = 0; s < sums; s++)
            for (k = 0; k < events; k++) arc->cost[s * EVENTS + k] += now->sum[s * EVENTS + k] - start[s * events + k];
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

/* Whether an object file is one of --program. */
static Bool is_own(const HChar *object) {
    const HChar *slash = VG_(strrchr)(object, '/'), *name = slash ? slash + 1 : object, *at = own_option;
    SizeT length = VG_(strlen)(name);
    for (; *at; at += *at == ':') {
        if (!VG_(strncmp)(at, name, length) && (at[length] == ':' || !at[length])) return True;
        while (*at && *at != ':') at++;
    }
    return False;
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
    function->own = is_own(object);
    function->cost = zeros();
    function->next = table[hash % 8192];
    return table[hash % 8192] = function;
}
