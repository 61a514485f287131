#include "harness/kernel/provider.h"

#include "harness/config/near.h"
#include "harness/core/cache.h"
#include "kernels/cpu/cpu.h"
#include "kernels/humming/remote.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef HUMCHECK_SOURCE
#define HUMCHECK_SOURCE "." /* the build says where the sources are */
#endif

const struct hum_provider *const builtin_providers[] = {&hum_cpu_provider};
const int builtin_provider_count = sizeof builtin_providers / sizeof builtin_providers[0];

enum { PATH_BYTES = PROVIDER_PATH, NAMES_BYTES = 128, HINT_BYTES = 64 };

static bool is_file(const char *name)
{
    size_t n = strlen(name);

    return strchr(name, '/') || (n > 3 && !strcmp(name + n - 3, ".so"));
}

static const struct hum_provider *find_builtin(const char *name, struct errs *errs)
{
    char names[NAMES_BYTES] = "", hint[HINT_BYTES];
    struct near near = near_to(name);

    for (int i = 0; i < builtin_provider_count; i++) {
        size_t used = strlen(names);

        if (!strcmp(name, builtin_providers[i]->name))
            return builtin_providers[i];
        near_offer(&near, builtin_providers[i]->name);
        (void)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                       builtin_providers[i]->name);
    }
    (void)errs_add(
        errs, ERR_INFRA, NOWHERE,
        "unknown provider '%s': built in are %s; a shared library needs a '/' in its name; others "
        "are worker:PROGRAM and humming:PATH%s",
        name, names, near_hint(&near, hint, sizeof hint));
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

static const char program_kind[] = "worker:", package_kind[] = "humming:";

static bool is_package(const char *folder)
{
    char path[PATH_BYTES];
    struct stat st;

    return *folder && snprintf(path, sizeof path, "%s/humming", folder) < PATH_BYTES &&
           stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* "0.1.12": a number first, and never a path. */
static bool is_version(const char *what)
{
    static const char version[] = "0123456789abcdefghijklmnopqrstuvwxyz.+-";

    return *what >= '0' && *what <= '9' && !what[strspn(what, version)];
}

/* Where the package of "humming:WHAT" lies: in the folder WHAT, or where ci/wheels --cache has put
 * the version WHAT. A folder comes first. False: `errs` has a sentence. */
static bool package_folder(const char *name, const char *what, char folder[PATH_BYTES],
                           struct errs *errs)
{
    char wheel[PATH_BYTES];

    (void)snprintf(folder, PATH_BYTES, "%s", what);
    if (is_package(folder))
        return true;
    if (!is_version(what)) {
        (void)errs_add(errs, ERR_INFRA, NOWHERE,
                       "%s: there is no package 'humming' in '%s': name the folder that holds it "
                       "(a checkout, or an unpacked wheel)",
                       name, what);
        return false;
    }
    (void)snprintf(wheel, sizeof wheel, "wheels/humming-kernels-%s", what);
    if (cache_path(wheel, folder, PATH_BYTES) && is_package(folder))
        return true;
    (void)errs_add(errs, ERR_INFRA, NOWHERE,
                   "%s: version %s is not in the cache, and no folder of this name holds it; "
                   "ci/wheels --cache humming-kernels==%s pyelftools fetches it",
                   name, what, what);
    return false;
}

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
    const bool upstream = !strncmp(name, package_kind, sizeof package_kind - 1);
    const char *what = name + (upstream ? sizeof package_kind : sizeof program_kind) - 1;
    char path[PATH_BYTES], folder[PATH_BYTES], reason[HUM_REASON_BYTES];
    const char *argv[REMOTE_ARGUMENTS + 1] = {what};
    const struct hum_provider *p;

    if (upstream) {
        if (!package_folder(name, what, folder, errs))
            return NULL;
        upstream_worker(path);
        argv[0] = "python3";
        argv[1] = path;
        argv[2] = folder;
    }
    p = remote_provider(argv, reason);
    if (!p)
        (void)errs_add(errs, ERR_INFRA, NOWHERE, "cannot use the provider '%s': %s", name, reason);
    return p;
}

bool provider_is_worker(const char *name)
{
    return !strncmp(name, program_kind, sizeof program_kind - 1) ||
           !strncmp(name, package_kind, sizeof package_kind - 1);
}

/* "hummin:PATH": a kind that there is none of, unless a file has that name. */
static bool is_unknown_kind(const char *name, struct errs *errs)
{
    const size_t length = strcspn(name, ":/");
    char kind[32], hint[HINT_BYTES];
    struct near near;

    if (name[length] != ':' || access(name, F_OK) == 0)
        return false;
    (void)snprintf(kind, sizeof kind, "%.*s", length < 30 ? (int)length + 1 : 30, name);
    near = near_to(kind);
    near_offer(&near, program_kind);
    near_offer(&near, package_kind);
    (void)errs_add(errs, ERR_INFRA, NOWHERE,
                   "unknown provider '%s': there is no such file, and no kind '%s'; the kinds are "
                   "worker:PROGRAM and humming:PATH%s",
                   name, kind, near_hint(&near, hint, sizeof hint));
    return true;
}

const char *provider_semantics(const char *name, char path[PROVIDER_PATH])
{
    static const char worker[] = "worker.py", file[] = "semantics.yaml";
    size_t folder;

    if (strncmp(name, "humming:", 8) != 0)
        return NULL;
    upstream_worker(path);
    folder = strlen(path) - (sizeof worker - 1);
    (void)snprintf(path + folder, PROVIDER_PATH - folder, "%s", file);
    return access(path, R_OK) == 0 ? path : NULL;
}

const struct hum_provider *provider_find(const char *name, struct errs *errs)
{
    char path[PATH_BYTES];
    int n;

    if (provider_is_worker(name))
        return find_worker(name, errs);
    if (is_unknown_kind(name, errs))
        return NULL;
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
