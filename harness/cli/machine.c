#include "harness/cli/machine.h"

#include <dlfcn.h>
#include <fenv.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int machine_cores(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n < 1 ? 1 : n > 4096 ? 4096 : (int)n;
}

uint64_t machine_memory_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
}

/* Those that decide which code the reference, OpenBLAS and the cpu kernels take; Linux' spelling
 * in /proc/cpuinfo, of x86 and of Arm. */
static const char *const features[] = {
    "sse4_2",     "avx",         "f16c",        "fma",      "avx2",       "avx512f", "avx512bw",
    "avx512vnni", "avx512_vnni", "avx512_bf16", "amx_tile", "amx_int8",   "asimd",   "fphp",
    "asimdhp",    "sve",         "sve2",        "bf16",     "avx512_fp16"};

static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = strstr(list, word); p; p = strstr(p + 1, word))
        if ((p == list || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\0'))
            return true;
    return false;
}

static void list_features(const char *flags, char *out, size_t size)
{
    size_t used = 0;

    for (size_t i = 0; i < sizeof features / sizeof features[0] && used < size; i++)
        if (has_word(flags, features[i]))
            used += (size_t)snprintf(out + used, size - used, "%s%s", used ? " " : "", features[i]);
}

void machine_cpu(struct machine_cpu *out)
{
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[8192];

    *out = (struct machine_cpu){.model = "unknown", .features = ""};
    while (f && !out->features[0] && fgets(line, sizeof line, f)) {
        char *value = strstr(line, ": ");

        if (!value)
            continue;
        line[strcspn(line, "\n")] = '\0';
        value += 2;
        if (!strncmp(line, "model name", 10))
            (void)snprintf(out->model, sizeof out->model, "%.90s", value);
        else if (!strncmp(line, "flags", 5) || !strncmp(line, "Features", 8))
            list_features(value, out->features, sizeof out->features);
    }
    if (f)
        (void)fclose(f);
}

const char *machine_arithmetic(void)
{
    volatile double smallest_normal = 0x1p-1022;

    if (fegetround() != FE_TONEAREST)
        return "the processor does not round to nearest";
    if (!(smallest_normal / 2 > 0))
        return "the processor flushes subnormal numbers to zero";
    return NULL;
}

/* Of the CUDA driver API: CUresult is an enum with 0 for success, CUdevice an int; the
 * attributes 75 and 76 are the compute capability, major and minor. Source: CUDA Driver API
 * Reference, "Initialization", "Version Management", "Device Management". */
enum { CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76 };

struct driver {
    int (*init)(unsigned flags);
    int (*version)(int *out);
    int (*count)(int *out);
    int (*get)(int *device, int ordinal);
    int (*name)(char *out, int size, int device);
    int (*attribute)(int *out, int attribute, int device);
    int (*memory)(size_t *bytes, int device);
};

/* POSIX gives functions as object pointers; ISO C has no cast between the two. */
static bool load(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);

    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static bool load_driver(void *library, struct driver *d)
{
    return load(library, "cuInit", &d->init) && load(library, "cuDriverGetVersion", &d->version) &&
           load(library, "cuDeviceGetCount", &d->count) && load(library, "cuDeviceGet", &d->get) &&
           load(library, "cuDeviceGetName", &d->name) &&
           load(library, "cuDeviceGetAttribute", &d->attribute) &&
           load(library, "cuDeviceTotalMem_v2", &d->memory);
}

static void read_gpu(const struct driver *d, int ordinal, struct machine_gpu *out)
{
    int device = 0, major = 0, minor = 0;
    size_t bytes = 0;

    *out = (struct machine_gpu){.name = "unknown"};
    if (d->get(&device, ordinal))
        return;
    (void)d->name(out->name, sizeof out->name, device);
    out->name[sizeof out->name - 1] = '\0';
    (void)d->attribute(&major, CAPABILITY_MAJOR, device);
    (void)d->attribute(&minor, CAPABILITY_MINOR, device);
    (void)d->memory(&bytes, device);
    out->sm = 10 * major + minor;
    out->memory_bytes = bytes;
}

static void say(struct machine_gpus *out, const char *text, int code)
{
    (void)snprintf(out->reason, sizeof out->reason, "%s (CUDA error %d)", text, code);
}

static void ask(const struct driver *d, struct machine_gpus *out)
{
    int rc = d->init(0);

    if (rc) {
        say(out, "the CUDA driver is installed, but finds no usable GPU", rc);
        return;
    }
    (void)d->version(&out->cuda);
    rc = d->count(&out->count);
    if (rc)
        out->count = 0;
    if (!out->count)
        say(out, "the CUDA driver sees no GPU", rc);
    if (out->count > MACHINE_GPUS)
        out->count = MACHINE_GPUS;
    for (int i = 0; i < out->count; i++)
        read_gpu(d, i, &out->gpus[i]);
}

void machine_gpus(struct machine_gpus *out)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    struct driver d = {0};

    *out = (struct machine_gpus){0};
    if (!library)
        (void)snprintf(out->reason, sizeof out->reason,
                       "the CUDA driver (libcuda.so.1) is not installed");
    else if (!load_driver(library, &d))
        (void)snprintf(out->reason, sizeof out->reason, "libcuda.so.1 is not a CUDA driver");
    else
        ask(&d, out);
    /* The driver stays loaded: unloading it after cuInit is not supported. */
}
