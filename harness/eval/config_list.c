#include "harness/eval/config_list.h"

#include "harness/config/source.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FOLDER_ENTRIES = 4096 };

struct set_loader {
    struct arena *arena;
    struct config_set *set;
    struct errs *warnings, *errs;
    enum err_code rc;                  /* of the first error */
    const char *lists[CONFIG_SET_MAX]; /* met in folders: read when all configurations are known */
    size_t list_count;
};

static void failed(struct set_loader *l, enum err_code code)
{
    if (!l->rc)
        l->rc = code;
}

#define BAD(l, at, ...) failed((l), errs_add((l)->errs, ERR_CONFIG, (at), __VA_ARGS__))

static void no_memory(struct set_loader *l)
{
    failed(l, errs_add(l->errs, ERR_NOMEM, NOWHERE, "no memory for the configurations"));
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n > m && !strcmp(text + n - m, end);
}

/* "a/lists/../b.yaml" is "a/b.yaml" in messages. Only texts are changed: the folders were opened by
 * these names, and a link among them would show a name that is not its own. */
static void tidy_path(char *path)
{
    char *up = strstr(path, "/../");

    while (up) {
        char *start = up;

        while (start > path && start[-1] != '/')
            start--;
        if (start == up || !strncmp(start, "../", 3) || !strncmp(start, "./", 2))
            return;
        memmove(start, up + 4, strlen(up + 4) + 1);
        up = strstr(path, "/../");
    }
}

/* The item of a file, by whatever path it was met. */
static struct config_item *find(struct set_loader *l, const struct stat *st)
{
    for (size_t i = 0; i < l->set->count; i++)
        if (l->set->items[i].device == st->st_dev && l->set->items[i].inode == st->st_ino)
            return &l->set->items[i];
    return NULL;
}

/* The item of a configuration, loaded once. NULL after an error. */
static struct config_item *add(struct set_loader *l, const char *path)
{
    struct stat st = {0};
    struct config_item *item = stat(path, &st) ? NULL : find(l, &st);

    if (item)
        return item;
    if (l->set->count == CONFIG_SET_MAX) {
        BAD(l, place_at(path, 0, 0), "more than %d configurations", CONFIG_SET_MAX);
        return NULL;
    }
    item = &l->set->items[l->set->count++];
    item->device = st.st_dev;
    item->inode = st.st_ino;
    item->rc = eval_config_load(path, l->arena, &item->config, l->warnings, l->errs);
    if (item->rc)
        failed(l, item->rc);
    return item;
}

/* One line of a list, without blanks at its ends. */
static void add_line(struct set_loader *l, struct place at, const char *name)
{
    const char *slash = strrchr(at.file, '/');
    int folder = slash ? (int)(slash - at.file) + 1 : 0;
    char *path = arena_printf(l->arena, "%.*s%s", folder, at.file, name);
    struct stat st;
    struct config_item *item;

    if (!path) {
        no_memory(l);
        return;
    }
    if (name[0] == '/') {
        BAD(l, at, "names are relative to the list's folder");
        return;
    }
    tidy_path(path);
    if (stat(path, &st)) {
        BAD(l, at, "the configuration '%.200s' cannot be found: %s", path, strerror(errno));
        return;
    }
    item = add(l, path);
    if (item && item->lists == l->set->lists)
        BAD(l, at, "'%.200s' is named twice in this list", name);
    if (item)
        item->lists = l->set->lists;
}

static size_t read_lines(struct set_loader *l, const char *path, const char *text, size_t size)
{
    struct place at = place_at(path, 0, 1);
    size_t names = 0;

    for (const char *line = text, *end = text + size; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        const char *next = stop ? stop + 1 : end;
        const char *name;

        at.line++;
        at.column = 1;
        for (stop = stop ? stop : end; line < stop && strchr(" \t", *line); line++)
            at.column++;
        while (stop > line && strchr(" \t\r", stop[-1]))
            stop--;
        name = arena_printf(l->arena, "%.*s", (int)(stop - line), line);
        if (name && *name && *name != '#') {
            names++;
            add_line(l, at, name);
        }
        line = next;
    }
    return names;
}

static void add_list(struct set_loader *l, const char *path)
{
    const char *text, *problem;
    struct source src;
    enum err_code code;
    size_t size;

    l->set->lists++;
    problem = source_read(path, l->arena, &text, &size, &code);
    if (problem)
        failed(l, errs_add(l->errs, code, place_at(path, 0, 0), "the list cannot be read: %s",
                           problem));
    else if ((code = source_check(path, text, size, l->arena, &src, l->errs)))
        failed(l, code);
    else if (!read_lines(l, path, src.text, src.size))
        BAD(l, place_at(path, 0, 0), "the list names no configuration: nothing would be checked");
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names in a folder, sorted, without hidden ones; their number. */
static size_t names_of(struct set_loader *l, const char *path, const char **names)
{
    DIR *dir = opendir(path);
    size_t count = 0;

    if (!dir) {
        failed(l, errs_add(l->errs, ERR_CONFIG, place_at(path, 0, 0),
                           "the folder cannot be read: %s", strerror(errno)));
        return 0;
    }
    for (struct dirent *d = readdir(dir); d; d = readdir(dir)) {
        if (d->d_name[0] == '.')
            continue;
        if (count == FOLDER_ENTRIES) {
            BAD(l, place_at(path, 0, 0), "the folder has more than %d files", FOLDER_ENTRIES);
            break;
        }
        names[count] = arena_strdup(l->arena, d->d_name);
        if (!names[count++])
            no_memory(l);
    }
    (void)closedir(dir);
    if (l->rc == ERR_NOMEM)
        return 0;
    qsort(names, count, sizeof *names, by_name);
    return count;
}

static void walk(struct set_loader *l, const char *path, int depth)
{
    const char **names = arena_alloc(l->arena, FOLDER_ENTRIES, sizeof *names);
    size_t count = names ? names_of(l, path, names) : 0, n = strlen(path);

    if (!names)
        no_memory(l);
    for (size_t i = 0; i < count; i++) {
        const char *file =
            arena_printf(l->arena, "%s%s%s", path, path[n - 1] == '/' ? "" : "/", names[i]);
        struct stat st;

        if (!file) {
            no_memory(l);
            return;
        }
        if (!stat(file, &st) && S_ISDIR(st.st_mode) && depth < CONFIG_SET_DEPTH)
            walk(l, file, depth + 1);
        else if (ends_with(file, ".yaml") || ends_with(file, ".yml"))
            (void)add(l, file);
        else if (ends_with(file, ".txt") && l->list_count < CONFIG_SET_MAX)
            l->lists[l->list_count++] = file;
    }
}

static void check_listed(struct set_loader *l, size_t first, const char *folder)
{
    size_t missing = 0;

    if (l->set->count == first)
        BAD(l, place_at(folder, 0, 0), "the folder has no configuration (.yaml)");
    for (size_t i = first; i < l->set->count; i++)
        missing += !l->set->items[i].lists;
    if (!l->list_count && missing) {
        BAD(l, place_at(folder, 0, 0),
            "the folder has %zu configurations and no list (.txt): no gate would run them",
            missing);
        return;
    }
    for (size_t i = first; i < l->set->count; i++)
        if (!l->set->items[i].lists)
            BAD(l, place_at(l->set->items[i].config.path, 0, 0),
                "no list names this configuration: no gate would run it");
}

static void add_folder(struct set_loader *l, const char *path)
{
    size_t first = l->set->count;

    l->list_count = 0;
    walk(l, path, 1);
    for (size_t i = 0; i < l->list_count; i++)
        add_list(l, l->lists[i]);
    if (l->rc != ERR_NOMEM)
        check_listed(l, first, path);
}

enum err_code config_set_load(const char *const *operands, size_t count, struct arena *arena,
                              struct config_set *out, struct errs *warnings, struct errs *errs)
{
    struct set_loader *l = ARENA_NEW(arena, 1, struct set_loader);

    *out = (struct config_set){.items = ARENA_NEW(arena, CONFIG_SET_MAX, struct config_item)};
    if (!l || !out->items)
        return errs_add(errs, ERR_NOMEM, NOWHERE, "no memory for the configurations");
    *l = (struct set_loader){.arena = arena, .set = out, .warnings = warnings, .errs = errs};
    for (size_t i = 0; i < count; i++) {
        struct stat st;

        if (!stat(operands[i], &st) && S_ISDIR(st.st_mode))
            add_folder(l, operands[i]);
        else if (ends_with(operands[i], ".txt"))
            add_list(l, operands[i]);
        else
            (void)add(l, operands[i]);
    }
    return l->rc;
}
