/* pool_wire.h - the messages between the pool and its workers, as frames on a pipe.
 *
 * A frame is three uint32_t (magic, type, bytes of payload) and the payload, in the machine's own
 * byte order and layout: both ends are the same executable. Whatever arrives is checked here, since
 * a worker runs foreign code that may have overwritten anything: a frame that passes has a known
 * type, the length of that type, texts that end and enumerators that exist. That it also makes
 * sense (the right case) is for the receiver to check.
 */
#ifndef HARNESS_KERNEL_POOL_WIRE_H
#define HARNESS_KERNEL_POOL_WIRE_H

#include "harness/core/err.h"
#include "harness/kernel/runner.h"

#include <stdbool.h>
#include <stdint.h>

enum wire_type {
    WIRE_HELLO,   /* from a worker: ready; `hash` of its plan */
    WIRE_PROBLEM, /* to a worker: run cases [begin, end) of `problem` */
    WIRE_STAGE,   /* from a worker: case `begin` has come to `stage` */
    WIRE_RECORD,  /* from a worker: the result of a case */
    WIRE_DONE,    /* from a worker: `problem` is finished */
    WIRE_ERROR,   /* from a worker: it gives up, for the reason in `text` */
    WIRE_COUNT
};

/* Only the members named beside the type are sent; the others are zero on arrival. */
struct wire_message {
    enum wire_type type;
    uint64_t hash;
    uint64_t problem, begin, end;
    enum stage stage;
    char text[ERR_TEXT];
    struct record record;
};

enum { WIRE_HEADER_BYTES = 12, WIRE_FRAME_BYTES = WIRE_HEADER_BYTES + (int)sizeof(struct record) };

/* Written by a worker on its standard error when a case begins (ASCII "record separator"). */
enum { WIRE_CASE_MARK = 0x1e };

/* Bytes received that are not a whole frame yet. Starts as {0}. */
struct wire_buffer {
    size_t used;
    unsigned char bytes[2 * WIRE_FRAME_BYTES];
};

enum wire_status {
    WIRE_OK,   /* read: some bytes came. take: a message */
    WIRE_WAIT, /* nothing more at present */
    WIRE_END,  /* the other side is gone */
    WIRE_BAD   /* what came is no message; the stream cannot be trusted any more */
};

/* Write one frame, whole. false: the other side is gone. Only for blocking descriptors. */
bool wire_send(int fd, const struct wire_message *m);

/* One read(2) into the buffer: WIRE_OK, WIRE_WAIT or WIRE_END. Take all messages before the next
 * call: there is always room for a frame then. */
enum wire_status wire_read(struct wire_buffer *b, int fd);

/* The first message of the buffer: WIRE_OK, WIRE_WAIT or WIRE_BAD. */
enum wire_status wire_take(struct wire_buffer *b, struct wire_message *out);

#endif
