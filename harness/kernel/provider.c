#include "harness/kernel/provider.h"

#include "kernels/cpu/cpu.h"
#include "kernels/humming/remote.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef HUMCHECK_SOURCE
#define HUMCHECK_SOURCE "." /* the build says where the sources are */
#endif

const struct hum_provider *const builtin_providers[] = {&hum_cpu_provider};
const int builtin_provider_count = sizeof builtin_providers / sizeof builtin_providers[0];

enum { PATH_BYTES = 4096, NAMES_BYTES = 128 };

static bool is_file(const char *name)
{
    size_t n = strlen(name);

    return strchr(name, '/') || (n > 3 && !strcmp(name + n - 3, ".so"));
}

static const struct hum_provider *find_builtin(const char *name, struct errs *errs)
{
    char names[NAMES_BYTES] = "";

    for (int i = 0; i < builtin_provider_count; i++) {
        size_t used = strlen(names);

        if (!strcmp(name, builtin_providers[i]->name))
            return builtin_providers[i];
        (void)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                       builtin_providers[i]->name);
    }
    (void)errs_add(
        errs, ERR_INFRA, NOWHERE,
        "unknown provider '%s': built in are %s; a shared library needs a '/' in its name; others "
        "are worker:PROGRAM and humming:PATH",
        name, names);
    return NULL;
}

/* What the table lacks; NULL: nothing. The version comes first: a table of another version may have
 * any other layout. */
static const char *missing(const struct hum_provider *p)
{
    const struct {
        const char *name;
        bool there;
    } needs[] = {
        {"name", p->name},
        {"version", p->version},
        {"device", p->device},
        {"open", p->open},
        {"close", p->close},
        {"supports", p->supports},
        {"transform_shapes", p->transform_shapes},
        {"transform", p->transform},
        {"forward", p->forward},
    };
    bool memory = p->alloc || p->release || p->upload || p->download;

    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++)
        if (!needs[i].there)
            return needs[i].name;
    if (memory && !(p->alloc && p->release && p->upload && p->download))
        return "one of alloc, release, upload and download, which come together";
    return NULL;
}

static const struct hum_provider *check_table(const char *path, const struct hum_provider *p,
                                              struct errs *errs)
{
    const char *lacks;

    if (!p) {
        (void)errs_add(errs, ERR_INFRA, NOWHERE, "%s: %s() returned no provider", path,
                       HUM_PROVIDER_SYMBOL);
        return NULL;
    }
    if (p->abi_version != HUM_ABI_VERSION) {
        (void)errs_add(errs, ERR_INFRA, NOWHERE,
                       "%s was built for version %d of the kernel contract, this program has %d",
                       path, (int)p->abi_version, HUM_ABI_VERSION);
        return NULL;
    }
    lacks = missing(p);
    if (lacks) {
        (void)errs_add(errs, ERR_INFRA, NOWHERE, "%s: the provider lacks %s", path, lacks);
        return NULL;
    }
    return p;
}

static const struct hum_provider *load(const char *path, struct errs *errs)
{
    hum_provider_fn *table;
    const struct hum_provider *p;
    void *library, *symbol;
    struct stat st;

    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        (void)errs_add(errs, ERR_INFRA, NOWHERE,
                       "cannot load the provider: %s is not a regular file", path);
        return NULL; /* opening a pipe would wait for its other end */
    }
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        (void)errs_add(errs, ERR_INFRA, NOWHERE, "cannot load the provider: %s", dlerror());
        return NULL;
    }
    symbol = dlsym(library, HUM_PROVIDER_SYMBOL);
    if (!symbol) {
        (void)errs_add(errs, ERR_INFRA, NOWHERE, "%s is not a provider: it has no function %s",
                       path, HUM_PROVIDER_SYMBOL);
        (void)dlclose(library);
        return NULL;
    }
    _Static_assert(sizeof table == sizeof symbol, "POSIX: a function pointer fits a void *");
    memcpy(&table, &symbol, sizeof table); /* ISO C has no conversion between the two */
    p = check_table(path, table(), errs);
    if (!p)
        (void)dlclose(library);
    return p;
}

/* ---- workers ---- */

/* Where the worker for upstream's package lies: beside the program, else where it was built. */
static void upstream_worker(char path[PATH_BYTES])
{
    const ssize_t n = readlink("/proc/self/exe", path, PATH_BYTES - 1);
    const size_t used = n > 0 ? (size_t)n : 0;
    const char *slash;
    size_t folder;

    path[used] = '\0';
    slash = strrchr(path, '/');
    folder = slash ? (size_t)(slash - path) : 0;
    (void)snprintf(path + folder, PATH_BYTES - folder, "/humming/worker.py");
    if (!slash || access(path, R_OK) != 0)
        (void)snprintf(path, PATH_BYTES, "%s/kernels/humming/worker.py", HUMCHECK_SOURCE);
}

static const struct hum_provider *find_worker(const char *name, struct errs *errs)
{
    static const char program[] = "worker:", package[] = "humming:";
    const bool upstream = !strncmp(name, package, sizeof package - 1);
    const char *what = name + (upstream ? sizeof package : sizeof program) - 1;
    char path[PATH_BYTES], reason[HUM_REASON_BYTES];
    const char *argv[REMOTE_ARGUMENTS + 1] = {what};
    const struct hum_provider *p;
    struct stat st;

    if (upstream) {
        (void)snprintf(path, sizeof path, "%s/humming", what);
        if (!*what || stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
            (void)errs_add(errs, ERR_INFRA, NOWHERE,
                           "%s: there is no package 'humming' in '%s': name the folder that holds "
                           "it (a checkout, or an unpacked wheel)",
                           name, what);
            return NULL;
        }
        upstream_worker(path);
        argv[0] = "python3";
        argv[1] = path;
        argv[2] = what;
    }
    p = remote_provider(argv, reason);
    if (!p)
        (void)errs_add(errs, ERR_INFRA, NOWHERE, "cannot use the provider '%s': %s", name, reason);
    return p;
}

static bool is_worker(const char *name)
{
    return !strncmp(name, "worker:", 7) || !strncmp(name, "humming:", 8);
}

const struct hum_provider *provider_find(const char *name, struct errs *errs)
{
    char path[PATH_BYTES];
    int n;

    if (is_worker(name))
        return find_worker(name, errs);
    if (!is_file(name))
        return find_builtin(name, errs);
    /* Without a '/' dlopen would search the system's folders instead of this one. */
    n = snprintf(path, sizeof path, "%s%s", strchr(name, '/') ? "" : "./", name);
    if (n < 0 || n >= (int)sizeof path) {
        (void)errs_add(errs, ERR_INFRA, NOWHERE, "the provider's file name is too long");
        return NULL;
    }
    return load(path, errs);
}
