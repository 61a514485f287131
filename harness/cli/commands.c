#include "harness/cli/commands.h"

int commands_failed(const struct errs *errs)
{
    return errs->count ? err_exit_code(errs->items[0].code) : err_exit_code(ERR_INFRA);
}

static enum err_code load_suites(const struct options *o, struct arena *arena, struct suite *suites,
                                 struct errs *errs)
{
    enum err_code first = ERR_NONE;

    for (size_t i = 0; i < o->operand_count; i++) {
        enum err_code rc = suite_load(o->operands[i], arena, &suites[i], errs);

        first = first ? first : rc;
    }
    return first;
}

enum err_code commands_plan(const struct options *o, struct arena *arena, struct plan *out,
                            struct errs *errs)
{
    struct suite *suites = ARENA_NEW(arena, o->operand_count, struct suite);
    struct plan_options how = {.provider = o->provider,
                               .filter = o->filter,
                               .shard = o->shards ? (int)o->shard : 1,
                               .shards = o->shards ? (int)o->shards : 1,
                               .has_seed = o->has_seed,
                               .seed = o->seed};

    if (!suites)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for %zu suites", o->operand_count);
    TRY(load_suites(o, arena, suites, errs));
    return plan_make(suites, o->operand_count, &how, arena, out, errs);
}
