/* Part of cache_sizes.c: what is added to blocks of the program, so that its accesses and calls are seen. */

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

/* The object that code is of: tables of jumps to libraries are outside of what is known as its text. */
static const DebugInfo *object_at(Addr address) {
    const DebugInfo *info = VG_(find_DebugInfo)(VG_(current_DiEpoch)(), address);
    const NSegment *segment = info ? NULL : VG_(am_find_nsegment)(address);
    const HChar *file = segment && segment->kind == SkFileC ? VG_(am_get_filename)(segment) : NULL;
    if (file == NULL) return info;
    while ((info = VG_(next_DebugInfo)(info)) && VG_(strcmp)(VG_(DebugInfo_get_filename)(info), file));
    return info;
}

/* Keep that code was executed: a block goes on behind jumps, in other places than where it begins. */
static void executed(const VexGuestExtents *extents) {
    for (Int k = 0; sums > 1 && k < extents->n_used; k++) {
        const DebugInfo *info = object_at(extents->base[k]);
        const HChar *object = info ? VG_(DebugInfo_get_filename)(info) : NULL;
        const HChar *before = block_count ? blocks[block_count - 1].object : "";
        if (object == NULL) continue;
        if (block_count == block_room) {
            block_room = 2 * block_room + 1024;
            blocks = VG_(realloc)("blocks", blocks, block_room * sizeof(Block));
        }
        if (VG_(strcmp)(object, before)) before = VG_(strdup)("object", object);
        blocks[block_count++] = (Block){extents->base[k] - VG_(DebugInfo_get_text_bias)(info), extents->len[k], before};
    }
}

/* The block with its instructions counted, and nothing else. */
static IRSB *counted(IRSB *in) {
    IRSB *out = deepCopyIRSBExceptStmts(in);
    UInt instructions = 0;
    for (Int k = 0; k < in->stmts_used; k++) {
        if (in->stmts[k]->tag == Ist_IMark) instructions++;
        if (in->stmts[k]->tag == Ist_Exit) add(out, &total[IR], &instructions);
        addStmtToIRSB(out, in->stmts[k]);
    }
    add(out, &total[IR], &instructions);
    return out;
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
    if (only) return counted(in);
    out = deepCopyIRSBExceptStmts(in);
    while (k < in->stmts_used && in->stmts[k]->tag != Ist_IMark) addStmtToIRSB(out, in->stmts[k++]);
    executed(extents);
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
