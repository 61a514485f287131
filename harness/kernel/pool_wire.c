#include "harness/kernel/pool_wire.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#define MAGIC 0x6d756831u /* "1hum" in memory, little endian */

struct field {
    size_t offset, size;
};

enum { MAX_FIELDS = 3 };

#define FIELD(member)                                                                        \
    {                                                                                        \
        offsetof(struct wire_message, member), sizeof(((struct wire_message *)NULL)->member) \
    }

/* What a message of each type carries, in this order. */
/* clang-format off */
static const struct layout {
    struct field fields[MAX_FIELDS];
} layouts[WIRE_COUNT] = {
    [WIRE_HELLO]   = {{FIELD(hash)}},
    [WIRE_PROBLEM] = {{FIELD(problem), FIELD(begin), FIELD(end)}},
    [WIRE_STAGE]   = {{FIELD(begin), FIELD(stage)}},
    [WIRE_RECORD]  = {{FIELD(record)}},
    [WIRE_DONE]    = {{FIELD(problem)}},
    [WIRE_ERROR]   = {{FIELD(text)}},
};
/* clang-format on */

static uint32_t payload_bytes(uint32_t type)
{
    size_t n = 0;

    for (int i = 0; i < MAX_FIELDS; i++)
        n += layouts[type].fields[i].size;
    return (uint32_t)n;
}

static void copy_out(const struct wire_message *m, unsigned char *to)
{
    for (int i = 0; i < MAX_FIELDS; i++) {
        const struct field *f = &layouts[m->type].fields[i];

        memcpy(to, (const unsigned char *)m + f->offset, f->size);
        to += f->size;
    }
}

static void copy_in(struct wire_message *m, const unsigned char *from)
{
    for (int i = 0; i < MAX_FIELDS; i++) {
        const struct field *f = &layouts[m->type].fields[i];

        memcpy((unsigned char *)m + f->offset, from, f->size);
        from += f->size;
    }
}

bool wire_send(int fd, const struct wire_message *m)
{
    unsigned char frame[WIRE_FRAME_BYTES];
    uint32_t head[3] = {MAGIC, (uint32_t)m->type, payload_bytes((uint32_t)m->type)};
    size_t size = sizeof head + head[2], sent = 0;

    memcpy(frame, head, sizeof head);
    copy_out(m, frame + sizeof head);
    while (sent < size) {
        ssize_t n = write(fd, frame + sent, size - sent);

        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0)
            sent += (size_t)n;
    }
    return true;
}

enum wire_status wire_read(struct wire_buffer *b, int fd)
{
    ssize_t n = read(fd, b->bytes + b->used, sizeof b->bytes - b->used);

    if (n < 0)
        return errno == EINTR || errno == EAGAIN ? WIRE_WAIT : WIRE_END;
    if (n == 0)
        return WIRE_END;
    b->used += (size_t)n;
    return WIRE_OK;
}

static bool ends(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

/* An enumerator that came from outside, read as the number it is: looking at it as its own type
 * would already assume what is to be checked. */
static bool below(const void *enumerator, unsigned count)
{
    unsigned value;

    _Static_assert(sizeof(enum verdict) == sizeof value && sizeof(enum stage) == sizeof value,
                   "enumerations of the messages have the size of an unsigned");
    memcpy(&value, enumerator, sizeof value);
    return value < count;
}

static bool sound(const struct wire_message *m)
{
    const struct record *r = &m->record;

    for (int i = 0; i < record_column_count; i++)
        if (record_columns[i].type == COL_TEXT &&
            !ends(record_member(r, &record_columns[i]), record_columns[i].size))
            return false;
    return ends(m->text, sizeof m->text) && below(&m->stage, STAGE_JUDGE + 1) &&
           below(&m->record.verdict, VERDICT_COUNT);
}

enum wire_status wire_take(struct wire_buffer *b, struct wire_message *out)
{
    uint32_t head[3];
    size_t size;

    _Static_assert(sizeof head == WIRE_HEADER_BYTES, "the header is three words");
    if (b->used < sizeof head)
        return WIRE_WAIT;
    memcpy(head, b->bytes, sizeof head);
    if (head[0] != MAGIC || head[1] >= WIRE_COUNT || head[2] != payload_bytes(head[1]))
        return WIRE_BAD;
    size = sizeof head + head[2];
    if (b->used < size)
        return WIRE_WAIT;
    memset(out, 0, sizeof *out);
    out->type = (enum wire_type)head[1];
    copy_in(out, b->bytes + sizeof head);
    b->used -= size;
    memmove(b->bytes, b->bytes + size, b->used);
    return sound(out) ? WIRE_OK : WIRE_BAD;
}
