#include "harness/eval/environment.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* What a server gets of ours: what programs need to run at all, proxies, and the families that say
 * which GPUs there are and where models lie. A family ends with an underscore. */
/* clang-format off */
static const char *const passed[] = {
    "PATH",       "HOME",        "USER",       "LOGNAME",     "SHELL",          "LANG",
    "LC_",        "TZ",          "TMPDIR",     "TERM",        "LD_LIBRARY_PATH", "VIRTUAL_ENV",
    "CONDA_",     "XDG_",        "CUDA_",      "NVIDIA_",     "NCCL_",          "HF_",
    "HUGGINGFACE_", "TRANSFORMERS_", "VLLM_",  "HUMMING_",    "ROCR_",          "HIP_",
    "http_proxy", "https_proxy", "no_proxy",   "HTTP_PROXY",  "HTTPS_PROXY",    "NO_PROXY",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "OMP_NUM_THREADS",
};
/* clang-format on */
enum { PASSED = sizeof passed / sizeof passed[0] };

static bool is_passed(const char *variable)
{
    for (int i = 0; i < PASSED; i++) {
        size_t n = strlen(passed[i]);

        if (!strncmp(variable, passed[i], n) && (passed[i][n - 1] == '_' || variable[n] == '='))
            return true;
    }
    return false;
}

/* Does the configuration set the variable "NAME=value"? */
static bool is_stated(const struct eval_config *c, const char *variable)
{
    for (size_t i = 0; i < c->env_count; i++) {
        size_t n = strlen(c->env[i].name);

        if (!strncmp(variable, c->env[i].name, n) && variable[n] == '=')
            return true;
    }
    return false;
}

/* What vLLM's test sets without saying so, unless it is stated. */
static bool add_added(const struct eval_config *c, struct arena *arena, char **out, size_t *n)
{
    struct eval_added added[EVAL_ADDED];

    if (!eval_config_added(c, arena, added))
        return false;
    for (int i = 0; i < EVAL_ADDED; i++)
        if (added[i].is_env && !added[i].stated)
            out[(*n)++] = arena_strdup(arena, added[i].words[0]);
    return true;
}

static bool is_added(char *const *out, size_t n, const char *variable)
{
    size_t name = strcspn(variable, "=") + 1;

    for (size_t i = 0; i < n; i++)
        if (out[i] && !strncmp(out[i], variable, name))
            return true;
    return false;
}

char *const *environment_make(const struct eval_config *c, struct arena *arena)
{
    size_t ours = 0, n = 0;
    char **out;

    while (environ[ours])
        ours++;
    out = ARENA_NEW(arena, ours + c->env_count + EVAL_ADDED + 1, char *);
    if (!out || !add_added(c, arena, out, &n))
        return NULL;
    for (size_t i = 0; i < c->env_count; i++)
        out[n++] = arena_printf(arena, "%s=%s", c->env[i].name, c->env[i].value);
    for (size_t i = 0; i < ours; i++)
        if (is_passed(environ[i]) && !is_stated(c, environ[i]) && !is_added(out, n, environ[i]))
            out[n++] = environ[i];
    for (size_t i = 0; i < n; i++)
        if (!out[i])
            return NULL;
    return out;
}

const char *environment_value(const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; environ[i]; i++)
        if (!strncmp(environ[i], name, n) && environ[i][n] == '=' && environ[i][n + 1])
            return environ[i] + n + 1;
    return NULL;
}

bool environment_search(const char *program, char *path, size_t size)
{
    const char *at = environment_value("PATH");
    int n;

    if (strchr(program, '/')) {
        n = snprintf(path, size, "%s", program);
        return n >= 0 && (size_t)n < size && !access(path, X_OK);
    }
    while (at && *at) {
        size_t length = strcspn(at, ":");

        n = snprintf(path, size, "%.*s/%s", (int)length, length ? at : ".", program);
        if (length && n >= 0 && (size_t)n < size && !access(path, X_OK))
            return true;
        at += length + (at[length] == ':');
    }
    return false;
}
