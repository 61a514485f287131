#include "harness/kernel/pool_order.h"

struct held {
    struct held *next; /* in the list of spare ones */
    struct record record;
};

enum { ARENA_ALIGN = 64 };

size_t order_bytes(size_t count)
{
    return count * (sizeof(struct held *) + sizeof(struct held) + ARENA_ALIGN) + ARENA_ALIGN;
}

bool order_init(struct order *o, const struct pool_sink *sink, size_t count, struct arena *arena)
{
    *o = (struct order){.sink = sink, .arena = arena, .count = count};
    o->held = ARENA_NEW(arena, count, struct held *);
    return o->held != NULL;
}

static enum err_code hold(struct order *o, size_t turn, const struct record *r, struct errs *errs)
{
    struct held *h = o->spare ? o->spare : ARENA_NEW(o->arena, 1, struct held);

    if (!h)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory to keep a record");
    o->spare = h->next;
    h->record = *r;
    o->held[turn] = h;
    return ERR_NONE;
}

static enum err_code deliver(struct order *o, const struct record *r, struct errs *errs)
{
    o->delivered++;
    return o->sink->record(o->sink->context, r, errs);
}

enum err_code order_add(struct order *o, const struct record *r, struct errs *errs)
{
    size_t turn = o->turns ? o->turns[r->index] : r->index;

    if (turn != o->delivered)
        return hold(o, turn, r, errs);
    TRY(deliver(o, r, errs));
    while (o->delivered < o->count && o->held[o->delivered]) {
        struct held *h = o->held[o->delivered];

        o->held[o->delivered] = NULL;
        h->next = o->spare;
        o->spare = h;
        TRY(deliver(o, &h->record, errs));
    }
    return ERR_NONE;
}

enum err_code order_end(struct order *o, struct errs *errs)
{
    for (size_t turn = o->delivered; turn < o->count; turn++) {
        struct held *h = o->held[turn];

        o->held[turn] = NULL;
        if (h)
            TRY(deliver(o, &h->record, errs));
    }
    return ERR_NONE;
}
