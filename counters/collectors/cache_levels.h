/* Part of cache_sizes.c: the first level and the larger caches behind it. */

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
