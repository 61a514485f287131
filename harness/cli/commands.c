#include "harness/cli/commands.h"
#include "harness/cli/machine.h"
#include "harness/core/build_info.h"
#include "harness/faults/catalogue.h"
#include "harness/kernel/provider.h"
#include "harness/kernel/semantics.h"

const char commands_no_faults[] =
    "this build has no faults; configure one that has: cmake --preset faults";

int commands_failed(const struct errs *errs)
{
    return errs->count ? err_exit_code(errs->items[0].code) : err_exit_code(ERR_INFRA);
}

size_t commands_memory(int jobs)
{
    const size_t least = (size_t)256 << 20;
    size_t share = (size_t)(machine_memory_bytes() / 4 * 3 / (uint64_t)jobs);

    return share < least ? least : share;
}

/* A fault that does not exist would be a run without one. */
static enum err_code check_fault(struct errs *errs)
{
#ifdef HUMCHECK_FAULTS
    if (build_fault() && !fault_find(build_fault()))
        return errs_add(errs, ERR_USAGE, NOWHERE,
                        "HUMCHECK_FAULT names no fault: '%s'; 'humcheck list faults' names them",
                        build_fault());
#endif
    (void)errs;
    return ERR_NONE;
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
                               .semantics = o->semantics,
                               .filter = o->filter,
                               .shard = o->shards ? (int)o->shard : 1,
                               .shards = o->shards ? (int)o->shards : 1,
                               .has_seed = o->has_seed,
                               .seed = o->seed};

    TRY(check_fault(errs));
    if (!suites)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for %zu suites", o->operand_count);
    TRY(load_suites(o, arena, suites, errs));
    return plan_make(suites, o->operand_count, &how, arena, out, errs);
}

const struct hum_provider *commands_provider(const struct options *o, struct arena *arena,
                                             struct plan *plan, struct errs *errs)
{
    char own[PROVIDER_PATH];
    const char *path = o->semantics ? o->semantics : provider_semantics(o->provider, own);
    const char *kept = path ? arena_printf(arena, "%s", path) : NULL, *name;
    const struct hum_provider *p;
    struct semantics semantics;

    if (path && !kept) {
        (void)errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the table of semantics");
        return NULL;
    }
    if (semantics_load(kept, arena, &semantics, errs))
        return NULL;
    p = provider_find(o->provider, errs);
    name = p ? arena_printf(arena, "%s %s", p->name, p->version) : NULL;
    plan->rules = name ? semantics_of(&semantics, name) : 0;
    if (p && !name)
        (void)errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the name of the provider");
    return name ? p : NULL;
}
