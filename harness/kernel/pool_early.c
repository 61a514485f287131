#include "harness/kernel/pool_early.h"

void pool_early_start(struct pool_early *e, char *const *argv, size_t count)
{
    const struct proc_options o = {
        .path = "/proc/self/exe", .argv = argv, .pipes = PROC_IN | PROC_OUT | PROC_ERR};
    struct errs unsaid = {0};

    for (e->count = 0; e->count < count; e->count++)
        if (proc_spawn(&e->procs[e->count], &o, &unsaid))
            break;
    errs_free(&unsaid);
}

bool pool_early_take(struct pool_early *e, struct proc *proc)
{
    if (e->count == 0)
        return false;
    *proc = e->procs[--e->count];
    return true;
}

void pool_early_end(struct pool_early *e)
{
    struct proc left;

    while (pool_early_take(e, &left))
        (void)proc_kill(&left);
}
