#include "harness/weights/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHARDS_MAX = 10000, CONFIG_BYTES = 64 << 20 };

struct opening {
    struct checkpoint *out;
    const char *folder; /* with its '/', or "" */
    struct arena *arena;
    struct errs *errs;
};

static struct place whole(const char *file)
{
    return place_at(file, 0, 0);
}

static enum err_code no_memory(const struct opening *o, const char *file)
{
    return errs_add(o->errs, ERR_NOMEM, whole(file), "no memory for the checkpoint");
}

static enum err_code map_fd(int fd, const char *file, struct mapping *m, struct errs *errs)
{
    struct stat st;

    if (fstat(fd, &st))
        return errs_add(errs, ERR_CONFIG, whole(file), "the file cannot be read: %s",
                        strerror(errno));
    if (!S_ISREG(st.st_mode))
        return errs_add(errs, ERR_CONFIG, whole(file), "this is no regular file");
    m->size = (size_t)st.st_size;
    if (!m->size)
        return errs_add(errs, ERR_CONFIG, whole(file), "the file is empty");
    m->bytes = mmap(NULL, m->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (m->bytes != MAP_FAILED)
        return ERR_NONE;
    m->bytes = NULL;
    return errs_add(errs, ERR_CONFIG, whole(file), "the file cannot be mapped: %s",
                    strerror(errno));
}

static enum err_code map_file(const char *file, struct mapping *m, struct errs *errs)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    enum err_code rc;

    *m = (struct mapping){0};
    if (fd < 0)
        return errs_add(errs, ERR_CONFIG, whole(file), "the file cannot be read: %s",
                        strerror(errno));
    rc = map_fd(fd, file, m, errs);
    (void)close(fd);
    return rc;
}

static void unmap(struct mapping *m)
{
    if (m->bytes)
        (void)munmap(m->bytes, m->size);
    *m = (struct mapping){0};
}

/* A whole file of JSON; what the tree needs is copied. */
static enum err_code read_json(const struct opening *o, const char *file, const struct json **out)
{
    struct mapping m;
    struct json_source src = {.file = file};
    enum err_code rc;

    TRY(map_file(file, &m, o->errs));
    src.text = m.bytes;
    src.size = m.size;
    rc = m.size > CONFIG_BYTES ? errs_add(o->errs, ERR_CONFIG, whole(file),
                                          "%zu bytes are too many for this file", m.size)
                               : json_parse(&src, o->arena, out, o->errs);
    unmap(&m);
    return rc;
}

static enum err_code open_shard(const struct opening *o, const char *file, struct safetensors *st)
{
    struct mapping *m = &o->out->maps[o->out->map_count];

    TRY(map_file(file, m, o->errs));
    o->out->map_count++;
    return safetensors_parse(file, m->bytes, m->size, o->arena, st, o->errs);
}

/* A shard is a file of the index's own folder. */
static bool plain_name(const char *name)
{
    return name && *name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names of shards, each once, sorted. */
static enum err_code shard_names(const struct opening *o, const char *file, const struct json *map,
                                 const char ***out, size_t *count)
{
    const char **names = arena_alloc(o->arena, map->count, sizeof *names);
    size_t n = 0, kept = 0;

    if (!names)
        return no_memory(o, file);
    for (const struct json *m = map->first; m; m = m->next) {
        if (!plain_name(m->text))
            return errs_add(o->errs, ERR_CONFIG, whole(file),
                            "weight_map: tensor '%s' has no file name without folder", m->key);
        names[n++] = m->text;
    }
    qsort(names, n, sizeof *names, compare_texts);
    for (size_t i = 0; i < n; i++)
        if (!i || strcmp(names[i], names[i - 1]) != 0)
            names[kept++] = names[i];
    if (!kept || kept > SHARDS_MAX)
        return errs_add(o->errs, ERR_CONFIG, whole(file), "weight_map names %zu files, not 1 to %d",
                        kept, (int)SHARDS_MAX);
    *out = names;
    *count = kept;
    return ERR_NONE;
}

/* Every tensor of the index is in its shard, and no shard has another one. */
static enum err_code check_map(const struct opening *o, const char *file, const struct json *map)
{
    const struct safetensors *all = &o->out->tensors;
    enum err_code rc = ERR_NONE;

    for (const struct json *m = map->first; m; m = m->next) {
        const struct tensor *t = safetensors_find(all, m->key);
        const char *shard = arena_printf(o->arena, "%s%s", o->folder, m->text);

        if (!shard)
            return no_memory(o, file);
        if (!t || strcmp(t->file, shard) != 0)
            rc = errs_add(o->errs, ERR_CONFIG, whole(file),
                          "weight_map: tensor '%s' is not in '%s'", m->key, m->text);
    }
    if (!rc && all->count != map->count)
        rc = errs_add(o->errs, ERR_CONFIG, whole(file),
                      "the shards hold %zu tensors, weight_map names %zu", all->count, map->count);
    return rc;
}

/* Tensors of all shards in one sorted list; none may be in two. */
static enum err_code merge(const struct opening *o, const struct safetensors *parts, size_t n)
{
    struct tensor *all;
    size_t count = 0;
    enum err_code rc = ERR_NONE;

    for (size_t i = 0; i < n; i++)
        count += parts[i].count;
    all = arena_alloc(o->arena, count, sizeof *all);
    if (!all)
        return no_memory(o, o->folder);
    count = 0;
    for (size_t i = 0; i < n; i++) {
        if (parts[i].count)
            memcpy(all + count, parts[i].tensors, parts[i].count * sizeof *all);
        count += parts[i].count;
    }
    qsort(all, count, sizeof *all, tensor_compare);
    for (size_t i = 1; i < count; i++)
        if (!strcmp(all[i].name, all[i - 1].name))
            rc = errs_add(o->errs, ERR_CONFIG, whole(all[i].file), "tensor '%s' is also in '%s'",
                          all[i].name, all[i - 1].file);
    o->out->tensors = (struct safetensors){.tensors = all, .count = count};
    return rc;
}

static enum err_code open_shards(const struct opening *o, const char *file,
                                 const char *const *names, size_t n)
{
    struct safetensors *parts = ARENA_NEW(o->arena, n, struct safetensors);
    enum err_code rc = ERR_NONE;

    o->out->maps = ARENA_NEW(o->arena, n, struct mapping);
    if (!parts || !o->out->maps)
        return no_memory(o, file);
    for (size_t i = 0; i < n; i++) {
        const char *shard = arena_printf(o->arena, "%s%s", o->folder, names[i]);
        enum err_code got = shard ? open_shard(o, shard, &parts[i]) : no_memory(o, file);

        rc = rc ? rc : got;
    }
    return rc ? rc : merge(o, parts, n);
}

static enum err_code open_index(const struct opening *o, const char *file)
{
    const struct json *root = NULL, *map;
    const char **names = NULL;
    size_t n = 0;

    TRY(read_json(o, file, &root));
    map = json_get(root, "weight_map");
    if (!map || map->kind != JSON_OBJECT)
        return errs_add(o->errs, ERR_CONFIG, whole(file), "this index has no weight_map");
    TRY(shard_names(o, file, map, &names, &n));
    TRY(open_shards(o, file, names, n));
    return check_map(o, file, map);
}

static enum err_code open_file(const struct opening *o, const char *file)
{
    o->out->maps = ARENA_NEW(o->arena, 1, struct mapping);
    if (!o->out->maps)
        return no_memory(o, file);
    return open_shard(o, file, &o->out->tensors);
}

/* Where a quantization config may stand; `key` NULL: the whole file is one. */
static const struct {
    const char *file, *key;
} config_places[] = {
    {"config.json", "quantization_config"},
    {"config.json", "compression_config"},
    {"hf_quant_config.json", "quantization"},
    {"quantize_config.json", NULL},
    {"quant_config.json", NULL},
};
enum { CONFIG_PLACES = sizeof config_places / sizeof config_places[0] };

/* A member of the model's config, or of the part that describes the language model. */
static const struct json *model_member(const struct json *root, const char *key)
{
    const struct json *found = json_get(root, key);

    return found ? found : json_get(json_get(root, "text_config"), key);
}

static enum err_code find_config(const struct opening *o)
{
    for (int i = 0; i < CONFIG_PLACES; i++) {
        const char *file = arena_printf(o->arena, "%s%s", o->folder, config_places[i].file);
        const char *key = config_places[i].key, *param;
        const struct json *root = NULL;

        if (!file)
            return no_memory(o, config_places[i].file);
        if (access(file, F_OK))
            continue;
        TRY(read_json(o, file, &root));
        param = json_text(model_member(root, "torch_dtype"));
        param = param ? param : json_text(model_member(root, "dtype"));
        o->out->param = o->out->param ? o->out->param : param;
        o->out->config = key ? model_member(root, key) : root;
        if (!o->out->config)
            continue;
        o->out->config_file = file;
        if (o->out->config->kind == JSON_OBJECT)
            return ERR_NONE;
        return errs_add(o->errs, ERR_CONFIG, whole(file), "%s is no JSON object", key);
    }
    return ERR_NONE;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);

    return n >= m && !strcmp(s + n - m, end);
}

/* A folder stands for the index in it, or else for its only file. */
static const char *file_of(const char *path, struct arena *arena)
{
    struct stat st;
    const char *index;

    if (stat(path, &st) || !S_ISDIR(st.st_mode))
        return path;
    index = arena_printf(arena, "%s/model.safetensors.index.json", path);
    if (!index || !access(index, F_OK))
        return index;
    return arena_printf(arena, "%s/model.safetensors", path);
}

enum err_code checkpoint_open(const char *path, struct arena *arena, struct checkpoint *out,
                              struct errs *errs)
{
    struct opening o = {.out = out, .arena = arena, .errs = errs};
    const char *file = file_of(path, arena), *slash;

    *out = (struct checkpoint){0};
    if (!file)
        return no_memory(&o, path);
    slash = strrchr(file, '/');
    o.folder = slash ? arena_printf(arena, "%.*s", (int)(slash + 1 - file), file)
                     : arena_strdup(arena, "");
    if (!o.folder)
        return no_memory(&o, path);
    TRY(ends_with(file, ".json") ? open_index(&o, file) : open_file(&o, file));
    for (size_t i = 0; i < out->tensors.count; i++)
        out->bytes += out->tensors.tensors[i].bytes;
    return find_config(&o);
}

void checkpoint_close(struct checkpoint *c)
{
    for (size_t i = 0; i < c->map_count; i++)
        unmap(&c->maps[i]);
    *c = (struct checkpoint){0};
}
