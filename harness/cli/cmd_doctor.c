#include "harness/cli/commands.h"
#include "harness/cli/machine.h"
#include "harness/core/build_info.h"
#include "harness/core/proc.h"
#include "harness/kernel/provider.h"
#include "harness/report/table.h"
#include "reference/blas.h"

struct doctor {
    struct table table;
    struct errs *errs; /* what is broken and needed */
};

static void tell(struct doctor *d, const char *what, const char *text)
{
    const char *cells[] = {what, text ? text : "no memory"};

    (void)table_add(&d->table, cells);
}

static void tell_build(struct doctor *d)
{
    struct arena *a = d->table.arena;
    char buf[256];

    tell(d, "humcheck",
         arena_printf(a, "%s, commit %s", build_info.version,
                      build_info.commit[0] ? build_info.commit : "unknown"));
    tell(d, "compiler", build_info.compiler);
    for (int i = 0; i < build_library_count; i++) {
        const struct build_library *l = &build_libraries[i];

        tell(d, l->name, arena_printf(a, "%s, %s", l->loaded(buf, sizeof buf), l->use));
    }
    ref_blas_version(buf, sizeof buf);
    tell(d, "BLAS", buf);
}

static void test_blas(struct doctor *d)
{
    char reason[HUM_REASON_BYTES] = "";
    double started = proc_now();

    ref_blas_init();
    if (ref_blas_self_test(reason, sizeof reason)) {
        tell(d, "BLAS self-test",
             arena_printf(d->table.arena, "exact products of integers are exact (%.0f ms)",
                          1e3 * (proc_now() - started)));
        return;
    }
    tell(d, "BLAS self-test", "failed");
    (void)errs_add(d->errs, ERR_INFRA, NOWHERE, "the BLAS library computes wrong products: %s",
                   reason);
}

static void tell_machine(struct doctor *d)
{
    struct arena *a = d->table.arena;
    const char *broken = machine_arithmetic();
    struct machine_cpu cpu;

    machine_cpu(&cpu);
    tell(d, "processor", cpu.model);
    tell(d, "features", cpu.features[0] ? cpu.features : "unknown");
    tell(d, "cores", arena_printf(a, "%d", machine_cores()));
    tell(d, "memory", arena_printf(a, "%.1f GiB", (double)machine_memory_bytes() * 0x1p-30));
    tell(d, "arithmetic", broken ? "wrong" : "rounds to nearest, keeps subnormals");
    if (broken)
        (void)errs_add(d->errs, ERR_INFRA, NOWHERE, "%s, so no reference can be computed", broken);
}

static void test_provider(struct doctor *d, const struct hum_provider *p)
{
    struct arena *a = d->table.arena;
    char reason[HUM_REASON_BYTES] = "";
    void *handle = NULL;

    if (p->open(1, &handle, reason) == HUM_OK) {
        p->close(handle);
        tell(d, arena_printf(a, "provider %s", p->name),
             arena_printf(a, "version %s on %s, opens", p->version, p->device));
        return;
    }
    reason[sizeof reason - 1] = '\0';
    tell(d, arena_printf(a, "provider %s", p->name), "cannot be opened");
    (void)errs_add(d->errs, ERR_INFRA, NOWHERE, "the provider %s cannot be opened: %s", p->name,
                   reason);
}

/* None is not broken: the cpu provider needs none. */
static void tell_gpus(struct doctor *d)
{
    struct arena *a = d->table.arena;
    struct machine_gpus g;

    machine_gpus(&g);
    if (!g.count)
        tell(d, "GPU", arena_printf(a, "none: %s", g.reason));
    if (g.cuda)
        tell(d, "CUDA driver",
             arena_printf(a, "serves CUDA %d.%d", g.cuda / 1000, g.cuda % 1000 / 10));
    for (int i = 0; i < g.count; i++)
        tell(d, arena_printf(a, "GPU %d", i),
             arena_printf(a, "%s, sm_%d, %.0f GiB", g.gpus[i].name, g.gpus[i].sm,
                          (double)g.gpus[i].memory_bytes * 0x1p-30));
}

static int run_doctor(const struct options *o, struct arena *arena, struct errs *errs)
{
    struct doctor d = {.table = {.arena = arena, .aligns = "ll"}, .errs = errs};
    const struct hum_provider *outside;

    tell_build(&d);
    test_blas(&d);
    tell_machine(&d);
    for (int i = 0; i < builtin_provider_count; i++)
        test_provider(&d, builtin_providers[i]);
    outside = o->provider ? provider_find(o->provider, errs) : NULL;
    if (outside)
        test_provider(&d, outside);
    tell_gpus(&d);
    table_print(&d.table, stdout);
    return errs->count ? commands_failed(errs) : 0;
}

/* clang-format off */
static const struct cli_option options[] = {
    {"provider", OPT_TEXT, OPTION_AT(provider), "PATH.so", NULL, 0, "look at this provider too"},
};
/* clang-format on */

const struct command command_doctor = {
    .name = "doctor",
    .operands = "",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .run = run_doctor,
    .help = "say what this program and machine are, and whether what humcheck needs works",
};
