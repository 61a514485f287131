#include "harness/cli/commands.h"
#include "harness/weights/compare.h"
#include "harness/weights/describe.h"

enum { EXIT_DIFFERENT = 1 };

static void print_description(const struct description *d)
{
    const struct table *tables[] = {&d->head, &d->tensors, &d->layers, &d->findings};

    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        if (i && tables[i]->first)
            (void)putchar('\n');
        table_print(tables[i], stdout);
    }
}

static int run_describe(const char *path, struct arena *arena, struct errs *errs)
{
    struct checkpoint c;
    struct description d;
    enum err_code rc = checkpoint_open(path, arena, &c, errs);

    if (!rc) {
        rc = describe_checkpoint(&c, path, arena, &d, errs);
        if (rc != ERR_NOMEM)
            print_description(&d);
    }
    checkpoint_close(&c);
    if (rc)
        return commands_failed(errs);
    return d.suspicious ? EXIT_DIFFERENT : 0;
}

static void print_comparison(const struct comparison *d)
{
    table_print(&d->differences, stdout);
    if (d->differences.first)
        (void)putchar('\n');
    (void)printf("%zu layers and %zu other tensors are in both; %zu names differ: %s\n", d->layers,
                 d->tensors, d->different, d->different ? "different" : "the same");
}

static int run_compare(const char *const *paths, struct arena *arena, struct errs *errs)
{
    struct checkpoint c[2];
    struct comparison d;
    enum err_code rc = checkpoint_open(paths[0], arena, &c[0], errs);
    enum err_code second = checkpoint_open(paths[1], arena, &c[1], errs);

    rc = rc ? rc : second;
    if (!rc) {
        rc = compare_checkpoints(&c[0], &c[1], arena, &d, errs);
        if (rc != ERR_NOMEM)
            print_comparison(&d);
    }
    checkpoint_close(&c[0]);
    checkpoint_close(&c[1]);
    if (rc)
        return commands_failed(errs);
    return d.different ? EXIT_DIFFERENT : 0;
}

static int run_weights(const struct options *o, struct arena *arena, struct errs *errs)
{
    if (o->operand_count == 1)
        return run_describe(o->operands[0], arena, errs);
    return run_compare(o->operands, arena, errs);
}

const struct command command_weights = {
    .name = "weights",
    .operands = "CHECKPOINT [CHECKPOINT]",
    .min_operands = 1,
    .max_operands = 2,
    .run = run_weights,
    .help = "describe a checkpoint's quantized weights, or compare two checkpoints",
    .about = "A checkpoint is a .safetensors file, an index (.json) of several, or a folder with "
             "one of them;\n"
             "config.json beside it says how it is quantized. Two checkpoints are the same when "
             "their layers\n"
             "have the same codes and scales in Humming's standard form, whatever their schemas. "
             "Exit code 1:\n"
             "different, or suspicious (NaN codes or scales, codes or zero points out of range).\n",
};
