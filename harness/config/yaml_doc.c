#include "harness/config/yaml_doc.h"

#include "harness/config/source.h"
#include "harness/core/utf8.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

enum { CHUNK = 64, POOL = 4096, SHOWN = 40 };

/* A list or map that is open. */
struct frame {
    struct doc_node *node;
    struct doc_node **tail; /* where the next child is linked */
    const char *key;        /* read, its value not yet */
    struct place key_at;
    bool discard; /* the key was refused: read its value, but do not link it */
};

struct builder {
    struct source src;
    struct arena *arena;
    struct errs *errs;
    enum err_code rc; /* of the first error */
    bool stop, broken;
    struct frame stack[DOC_DEPTH];
    int depth;
    struct doc_node *root;
    struct doc_node *chunk; /* nodes not yet used */
    size_t chunk_left, nodes;
    struct place anchor; /* the first anchor or alias */
    size_t anchors;
    char *pool; /* text not yet used */
    size_t pool_left;
};

#define BAD(b, at, ...) failed((b), errs_add((b)->errs, ERR_CONFIG, (at), __VA_ARGS__))

static void failed(struct builder *b, enum err_code code)
{
    if (!b->rc)
        b->rc = code;
}

/* What cannot be read on from. */
static void give_up(struct builder *b)
{
    b->stop = true;
    b->broken = true;
}

static void out_of_memory(struct builder *b)
{
    failed(b, errs_add(b->errs, ERR_NOMEM, place_at(b->src.name, 0, 0), "no memory for the file"));
    give_up(b);
}

static struct place place_of(const struct builder *b, const yaml_mark_t *m)
{
    return place_at(b->src.name, (int)m->line + 1, (int)m->column + 1);
}

static struct doc_node *new_node(struct builder *b)
{
    if (!b->chunk_left) {
        b->chunk = ARENA_NEW(b->arena, CHUNK, struct doc_node);
        b->chunk_left = b->chunk ? CHUNK : 0;
    }
    if (!b->chunk_left) {
        out_of_memory(b);
        return NULL;
    }
    b->chunk_left--;
    return b->chunk++;
}

static const char *keep_text(struct builder *b, const char *text, size_t n)
{
    char *p = b->pool;

    if (n + 1 > b->pool_left) {
        size_t size = n + 1 > POOL ? n + 1 : POOL;

        p = arena_alloc(b->arena, size, 1);
        b->pool_left = p ? size : 0;
    }
    if (!p) {
        out_of_memory(b);
        return "";
    }
    memcpy(p, text, n);
    p[n] = '\0';
    b->pool = p + n + 1;
    b->pool_left -= n + 1;
    return p;
}

static struct frame *top(struct builder *b)
{
    return b->depth ? &b->stack[b->depth - 1] : NULL;
}

static bool awaits_key(struct builder *b)
{
    const struct frame *f = top(b);

    return f && f->node->kind == DOC_MAP && !f->key;
}

/* A new value where the parser stands; NULL: no room. */
static struct doc_node *add_node(struct builder *b, enum doc_kind kind, const yaml_event_t *ev)
{
    struct doc_node *n = new_node(b);
    struct frame *f = top(b);

    if (!n)
        return NULL;
    n->kind = kind;
    n->at = place_of(b, &ev->start_mark);
    if (++b->nodes > DOC_NODES) {
        BAD(b, n->at, "a file may have at most %d values", DOC_NODES);
        give_up(b);
    }
    if (!f) {
        b->root = n;
        return n;
    }
    n->key = f->key;
    n->key_at = f->key_at;
    if (!f->discard) {
        *f->tail = n;
        f->tail = &n->next;
        f->node->count++;
    }
    f->key = NULL;
    f->discard = false;
    return n;
}

static void note_anchor(struct builder *b, const yaml_event_t *ev)
{
    if (!b->anchors++)
        b->anchor = place_of(b, &ev->start_mark);
}

/* One error for all of them, since a file that has one tends to have many. */
static void refuse_anchors(struct builder *b)
{
    if (b->anchors > 1)
        BAD(b, b->anchor, "anchors and aliases are not allowed (and %zu more of them)",
            b->anchors - 1);
    else if (b->anchors)
        BAD(b, b->anchor, "anchors and aliases are not allowed");
}

static void refuse_properties(struct builder *b, const yaml_event_t *ev, const yaml_char_t *anchor,
                              const yaml_char_t *tag)
{
    if (anchor)
        note_anchor(b, ev);
    if (tag)
        BAD(b, place_of(b, &ev->start_mark), "tags are not allowed: remove '!...'");
}

static void check_key(struct builder *b, struct frame *f)
{
    const struct doc_node *first = doc_find(f->node, f->key);

    if (first)
        BAD(b, f->key_at, "'%.*s' is given twice; first at line %d", 2 * SHOWN, f->key,
            first->key_at.line);
    if (!*f->key)
        BAD(b, f->key_at, "a key is missing before ':'");
    f->discard = first || !*f->key;
    if (f->node->count >= DOC_KEYS) {
        BAD(b, f->key_at, "a map may have at most %d keys", DOC_KEYS);
        give_up(b);
    }
}

static void take_key(struct builder *b, const yaml_event_t *ev, const char *text)
{
    struct frame *f = top(b);

    f->key = text;
    f->key_at = place_of(b, &ev->start_mark);
    if (!strcmp(text, "<<") && ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
        BAD(b, f->key_at, "merge keys ('<<') are not allowed: write the keys out");
        f->discard = true;
        return;
    }
    check_key(b, f);
}

/* Whether the text stands in the file as it is, which an escape or a line break inside it
 * prevents. */
static void find_verbatim(struct builder *b, struct doc_node *n, const yaml_mark_t *m, bool marked)
{
    size_t left, length = strlen(n->text);
    const char *raw = source_at(&b->src, m->line, m->column + marked, &left);

    n->text_at = n->at;
    n->text_at.column += marked;
    n->verbatim = length <= left && !memcmp(raw, n->text, length) && !strchr(n->text, '\n');
}

static void on_scalar(struct builder *b, const yaml_event_t *ev)
{
    yaml_scalar_style_t style = ev->data.scalar.style;
    const char *value = (const char *)ev->data.scalar.value, *text;
    struct doc_node *n;

    refuse_properties(b, ev, ev->data.scalar.anchor, ev->data.scalar.tag);
    if (memchr(value, '\0', ev->data.scalar.length))
        BAD(b, place_of(b, &ev->start_mark), "a text may not contain the character '\\0'");
    text = keep_text(b, value, strlen(value));
    if (awaits_key(b)) {
        take_key(b, ev, text);
        return;
    }
    n = add_node(b, DOC_TEXT, ev);
    if (!n)
        return;
    n->text = text;
    n->quoted = style != YAML_PLAIN_SCALAR_STYLE;
    find_verbatim(b, n, &ev->start_mark,
                  style == YAML_SINGLE_QUOTED_SCALAR_STYLE ||
                      style == YAML_DOUBLE_QUOTED_SCALAR_STYLE);
}

static void on_alias(struct builder *b, const yaml_event_t *ev)
{
    struct frame *f = top(b);

    note_anchor(b, ev);
    if (awaits_key(b)) {
        f->key = "";
        f->discard = true;
        return;
    }
    (void)add_node(b, DOC_REFUSED, ev);
}

static void on_open(struct builder *b, enum doc_kind kind, const yaml_event_t *ev)
{
    struct doc_node *n;

    if (awaits_key(b)) {
        BAD(b, place_of(b, &ev->start_mark), "a key must be a single text, not a %s",
            kind == DOC_LIST ? "list" : "map");
        give_up(b);
        return;
    }
    if (b->depth == DOC_DEPTH) {
        BAD(b, place_of(b, &ev->start_mark), "lists and maps may be at most %d deep", DOC_DEPTH);
        give_up(b);
        return;
    }
    n = add_node(b, kind, ev);
    if (n)
        b->stack[b->depth++] = (struct frame){.node = n, .tail = &n->child};
}

static void on_document(struct builder *b, const yaml_event_t *ev)
{
    struct place at = place_of(b, &ev->start_mark);

    if (b->root) {
        BAD(b, at, "a file is one document: a second one starts here");
        b->stop = true;
    }
    if (ev->data.document_start.version_directive ||
        ev->data.document_start.tag_directives.start != ev->data.document_start.tag_directives.end)
        BAD(b, at, "directives ('%%') are not allowed");
}

static void on_event(struct builder *b, const yaml_event_t *ev)
{
    switch (ev->type) {
    case YAML_DOCUMENT_START_EVENT:
        on_document(b, ev);
        break;
    case YAML_ALIAS_EVENT:
        on_alias(b, ev);
        break;
    case YAML_SCALAR_EVENT:
        on_scalar(b, ev);
        break;
    case YAML_SEQUENCE_START_EVENT:
        refuse_properties(b, ev, ev->data.sequence_start.anchor, ev->data.sequence_start.tag);
        on_open(b, DOC_LIST, ev);
        break;
    case YAML_MAPPING_START_EVENT:
        refuse_properties(b, ev, ev->data.mapping_start.anchor, ev->data.mapping_start.tag);
        on_open(b, DOC_MAP, ev);
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        b->depth--;
        break;
    case YAML_STREAM_END_EVENT:
        b->stop = true;
        break;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        break;
    }
}

/* What libyaml 0.2.5 says of broken YAML, and the sentence for it. With `opened`, its place is
 * where the thing starts that is broken (the context), and where that was noticed is added. */
/* clang-format off */
static const struct {
    const char *context, *problem; /* context NULL: any */
    bool opened;
    const char *sentence;
} problems[] = {
    {"while scanning a quoted scalar", "found unexpected end of stream", true,
     "this quote is never closed"},
    {"while scanning a quoted scalar", "found unexpected document indicator", true,
     "this quote is not closed before the document ends"},
    {"while parsing a flow sequence", NULL, true,
     "this list is not closed: ',' or ']' is missing (quote texts with commas or brackets)"},
    {"while parsing a flow mapping", NULL, true,
     "this map is not closed: ',' or '}' is missing (quote texts with commas or brackets)"},
    {"while parsing a block collection", NULL, true,
     "this list goes wrong: each item must start with '- ' in the same column"},
    {"while parsing a block mapping", NULL, true,
     "this map goes wrong: each line must be 'key: value', with all keys in the same column"},
    {"while scanning a simple key", NULL, true,
     "this line is neither 'key: value' nor '- item': ':' is missing within 1024 characters"},
    {"while parsing a quoted scalar", "found unknown escape character", true,
     "this text has an unknown escape after '\\': use single quotes"},
    {"while parsing a quoted scalar", NULL, true,
     "this text has a broken escape after '\\': use single quotes"},
    {"while scanning a block scalar", NULL, true,
     "this block of text is broken: nothing may follow '|' or '>', and its lines must be indented "
     "by spaces"},
    {"while scanning an anchor", NULL, true,
     "anchors and aliases are not allowed"},
    {"while scanning an alias", NULL, true,
     "anchors and aliases are not allowed"},
    {"while scanning a tag", NULL, true,
     "tags are not allowed: remove '!...'"},
    {"while parsing a node", "found undefined tag handle", true,
     "tags are not allowed: remove '!...'"},
    {"while parsing a tag", NULL, true,
     "tags are not allowed: remove '!...'"},
    {"while scanning a directive", NULL, true,
     "directives ('%') are not allowed"},
    {"while scanning a %YAML directive", NULL, true,
     "directives ('%') are not allowed"},
    {"while scanning a %TAG directive", NULL, true,
     "directives ('%') are not allowed"},
    {NULL, "found incompatible YAML document", false,
     "directives ('%') are not allowed"},
    {NULL, "found character that cannot start any token", false,
     "a value cannot start with this character: put it in quotes"},
    {NULL, "mapping values are not allowed in this context", false,
     "':' is not allowed here: put 'key: value' on a line of its own, in the column of the other "
     "keys, or write {key: value}"},
    {NULL, "block sequence entries are not allowed in this context", false,
     "'- ' is not allowed here: start the list on its own line, or write [a, b]"},
    {NULL, "mapping keys are not allowed in this context", false,
     "'? ' is not allowed here"},
    {NULL, "did not find expected node content", false,
     "a value is missing here"},
    {NULL, "did not find expected <document start>", false,
     "a file is one document: nothing may follow '...'"},
    {NULL, "found a tab character that violates indentation", false,
     "tabs may not indent YAML: use spaces"},
};
/* clang-format on */
enum { PROBLEM_COUNT = sizeof problems / sizeof problems[0] };

static int problem_index(const yaml_parser_t *p)
{
    int i = 0;

    for (; i < PROBLEM_COUNT; i++)
        if ((!problems[i].context || (p->context && !strcmp(problems[i].context, p->context))) &&
            (!problems[i].problem || (p->problem && !strcmp(problems[i].problem, p->problem))))
            break;
    return i;
}

static void on_syntax_error(struct builder *b, const yaml_parser_t *p)
{
    struct place seen = place_of(b, &p->problem_mark);
    struct place opened = place_of(b, &p->context_mark);
    int i = problem_index(p);

    give_up(b);
    if (p->error == YAML_MEMORY_ERROR)
        out_of_memory(b);
    else if (i == PROBLEM_COUNT)
        BAD(b, seen, "the YAML is broken here: %s%s%s", p->context ? p->context : "",
            p->context ? ", " : "", p->problem ? p->problem : "unreadable");
    else if (!problems[i].opened || p->problem_mark.index == p->context_mark.index)
        BAD(b, seen, "%s", problems[i].sentence);
    else if (seen.line == opened.line)
        BAD(b, opened, "%s; noticed at column %d", problems[i].sentence, seen.column);
    else
        BAD(b, opened, "%s; noticed at line %d, column %d", problems[i].sentence, seen.line,
            seen.column);
}

static void read_events(struct builder *b, yaml_parser_t *p)
{
    while (!b->stop) {
        yaml_event_t ev;

        if (!yaml_parser_parse(p, &ev)) {
            on_syntax_error(b, p);
            return;
        }
        on_event(b, &ev);
        yaml_event_delete(&ev);
    }
}

enum err_code doc_parse(const char *name, const char *text, size_t size, struct arena *arena,
                        const struct doc_node **root, struct errs *errs)
{
    struct builder b = {.arena = arena, .errs = errs};
    yaml_parser_t parser;

    *root = NULL;
    TRY(source_check(name, text, size, arena, &b.src, errs));
    if (!yaml_parser_initialize(&parser)) {
        out_of_memory(&b);
        return b.rc;
    }
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)b.src.text, b.src.size);
    read_events(&b, &parser);
    yaml_parser_delete(&parser);
    refuse_anchors(&b);
    if (b.broken)
        return b.rc;
    if (!b.root)
        return errs_add(errs, ERR_CONFIG, place_at(name, 0, 0), "the file is empty");
    *root = b.root;
    return b.rc;
}

const struct doc_node *doc_find(const struct doc_node *map, const char *key)
{
    for (const struct doc_node *n = map->child; n; n = n->next)
        if (!strcmp(n->key, key))
            return n;
    return NULL;
}

/* Bytes of at most SHOWN characters of s. */
static int shown_bytes(const char *s)
{
    size_t n = strlen(s), bytes = 0;

    for (int i = 0; i < SHOWN && bytes < n; i++) {
        uint32_t c;
        size_t len = utf8_next(s + bytes, n - bytes, &c);

        bytes += len ? len : 1;
    }
    return (int)bytes;
}

const char *doc_show(const struct doc_node *n, char *buf, size_t size)
{
    int bytes;

    if (n->kind == DOC_LIST)
        return "a list";
    if (n->kind != DOC_TEXT)
        return "a map";
    if (!*n->text)
        return n->quoted ? "an empty text" : "nothing";
    bytes = shown_bytes(n->text);
    (void)snprintf(buf, size, "'%.*s%s'%s", bytes, n->text, n->text[bytes] ? "..." : "",
                   n->quoted ? " in quotes" : "");
    return buf;
}
