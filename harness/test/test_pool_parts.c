/* The pool's parts, each alone: messages, order, last words. */
#include "harness/kernel/pool_order.h"
#include "harness/kernel/pool_tail.h"
#include "harness/kernel/pool_wire.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- messages ----------------------------------------------------------------------------- */

static struct wire_message sample(int type)
{
    struct wire_message m = {.type = (enum wire_type)type};

    if (type == WIRE_HELLO)
        m.hash = 0xfedcba9876543210u;
    if (type == WIRE_PROBLEM || type == WIRE_DONE)
        m.problem = UINT64_MAX;
    if (type == WIRE_PROBLEM || type == WIRE_STAGE)
        m.begin = 12345678901u;
    if (type == WIRE_PROBLEM)
        m.end = 1;
    if (type == WIRE_STAGE)
        m.stage = STAGE_JUDGE;
    if (type == WIRE_ERROR)
        memset(m.text, 'e', sizeof m.text - 1);
    if (type == WIRE_RECORD) {
        m.record = (struct record){.index = 7, .verdict = VERDICT_FAIL, .got = -0.0, .at_row = -1};
        memset(m.record.reason, 'r', sizeof m.record.reason - 1);
        memset(m.record.unit, 'u', sizeof m.record.unit - 1);
    }
    return m;
}

/* A frame as wire_send writes it; returns its bytes. */
static size_t frame_of(const struct wire_message *m, unsigned char out[WIRE_FRAME_BYTES])
{
    int ends[2];
    ssize_t n;

    ck_assert_int_eq(pipe(ends), 0);
    ck_assert(wire_send(ends[1], m));
    n = read(ends[0], out, WIRE_FRAME_BYTES);
    ck_assert_int_ge((int)n, WIRE_HEADER_BYTES);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return (size_t)n;
}

static void feed(struct wire_buffer *b, const unsigned char *bytes, size_t n)
{
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq((int)write(ends[1], bytes, n), (int)n);
    ck_assert_int_eq(wire_read(b, ends[0]), WIRE_OK);
    (void)close(ends[1]);
    ck_assert_int_eq(wire_read(b, ends[0]), WIRE_END);
    (void)close(ends[0]);
}

/* Two messages arrive in two pieces, cut at every place. */
START_TEST(every_type_survives_every_cut)
{
    struct wire_message m = sample(_i), got;
    unsigned char frames[2 * WIRE_FRAME_BYTES];
    size_t n = frame_of(&m, frames);

    memcpy(frames + n, frames, n);
    for (size_t cut = 1; cut < 2 * n; cut += 1 + cut / 16) {
        struct wire_buffer b = {0};
        int whole = cut >= n;

        feed(&b, frames, cut);
        for (int i = 0; i < whole; i++)
            ck_assert_int_eq(wire_take(&b, &got), WIRE_OK);
        ck_assert_int_eq(wire_take(&b, &got), WIRE_WAIT);
        feed(&b, frames + cut, 2 * n - cut);
        for (int i = whole; i < 2; i++) {
            ck_assert_int_eq(wire_take(&b, &got), WIRE_OK);
            ck_assert_msg(!memcmp(&got, &m, sizeof m), "type %d cut at %zu", _i, cut);
        }
        ck_assert_int_eq(wire_take(&b, &got), WIRE_WAIT);
    }
}
END_TEST

/* Every bit of the header decides. */
START_TEST(a_flipped_bit_of_the_header_is_seen)
{
    struct wire_message m = sample(_i), got;
    unsigned char frame[WIRE_FRAME_BYTES];
    size_t n = frame_of(&m, frame);

    for (int bit = 0; bit < 8 * WIRE_HEADER_BYTES; bit++) {
        struct wire_buffer b = {0};
        enum wire_status status;

        frame[bit / 8] ^= (unsigned char)(1u << bit % 8);
        feed(&b, frame, n);
        status = wire_take(&b, &got);
        /* HELLO and DONE have one number each: their types differ by what they mean only */
        ck_assert_msg(status == WIRE_BAD || got.type != m.type, "type %d bit %d", _i, bit);
        frame[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
}
END_TEST

#define AT(member) offsetof(struct record, member), sizeof(((struct record *)NULL)->member)

static const struct {
    const char *name;
    size_t offset, size;
} must_be_sound[] = {
    {"suite", AT(suite)},
    {"id", AT(id)},
    {"provider", AT(provider)},
    {"family", AT(family)},
    {"check", AT(check)},
    {"fill", AT(fill)},
    {"reason", AT(reason)},
    {"repro", AT(repro)},
    {"kernel", AT(kernel)},
    {"unit", AT(unit)},
    {"verdict", AT(verdict)},
    {"diagnosis", AT(diagnosis)},
    {"known", AT(known)},
    {"output_hash", AT(output_hash)},
    {"against_verdict", AT(against_verdict)},
    {"against_hash", AT(against_hash)},
    {"bits", AT(bits)},
};

START_TEST(a_record_with_an_endless_text_is_bad)
{
    struct wire_message m = sample(WIRE_RECORD), got;
    unsigned char frame[WIRE_FRAME_BYTES];
    struct wire_buffer b = {0};
    size_t n;

    memset((unsigned char *)&m.record + must_be_sound[_i].offset, 'x', must_be_sound[_i].size);
    n = frame_of(&m, frame);
    feed(&b, frame, n);
    ck_assert_msg(wire_take(&b, &got) == WIRE_BAD, "%s", must_be_sound[_i].name);
}
END_TEST

START_TEST(other_bad_contents)
{
    struct wire_message text = sample(WIRE_ERROR), stage = sample(WIRE_STAGE), got;
    unsigned char frame[WIRE_FRAME_BYTES];
    const unsigned beyond = STAGE_JUDGE + 1;
    struct wire_buffer b = {0};

    memset(text.text, 'x', sizeof text.text);
    feed(&b, frame, frame_of(&text, frame));
    ck_assert_int_eq(wire_take(&b, &got), WIRE_BAD);
    b.used = 0;
    memcpy(&stage.stage, &beyond, sizeof beyond);
    feed(&b, frame, frame_of(&stage, frame));
    ck_assert_int_eq(wire_take(&b, &got), WIRE_BAD);
}
END_TEST

/* ---- order -------------------------------------------------------------------------------- */

enum { RECORDS = 6, PERMUTATIONS = 720 };

struct got {
    uint64_t next;
    double payload;
    uint64_t fail_at;
};

static enum err_code take(void *context, const struct record *r, struct errs *errs)
{
    struct got *g = context;

    if (g->fail_at && r->index == g->fail_at)
        return errs_add(errs, ERR_IO, NOWHERE, "full");
    ck_assert_uint_eq(r->index, g->next);
    ck_assert_double_eq(r->got, 10.0 * (double)r->index);
    g->next++;
    return ERR_NONE;
}

/* The permutation of 0..RECORDS-1 with this number (factorial digits). */
static void permute(int number, int out[RECORDS])
{
    int left[RECORDS];

    for (int i = 0; i < RECORDS; i++)
        left[i] = i;
    for (int i = 0; i < RECORDS; i++) {
        int rest = RECORDS - i, at = number % rest;

        number /= rest;
        out[i] = left[at];
        left[at] = left[rest - 1];
    }
}

/* Two rounds of each, so that memory of records that waited is used again. */
START_TEST(every_permutation_comes_out_sorted)
{
    struct arena arena;
    struct errs errs = {0};

    ck_assert(arena_init(&arena, (size_t)1 << 20));
    for (int number = 0; number < PERMUTATIONS; number++) {
        struct got g = {0};
        const struct pool_sink sink = {.record = take, .context = &g};
        struct order order;
        int perm[RECORDS];
        size_t used;

        arena_reset(&arena);
        permute(number, perm);
        ck_assert(order_init(&order, &sink, 2 * RECORDS, &arena));
        for (int i = 0; i < 2 * RECORDS; i++) {
            int index = perm[i % RECORDS] + i / RECORDS * RECORDS;
            struct record r = {.index = (uint64_t)index, .got = 10.0 * index};

            if (i == RECORDS)
                used = arena.used;
            ck_assert_int_eq(order_add(&order, &r, &errs), ERR_NONE);
        }
        ck_assert_uint_eq(g.next, 2 * RECORDS);
        ck_assert_uint_eq(order.delivered, 2 * RECORDS);
        ck_assert_uint_eq(arena.used, used);
    }
    arena_free(&arena);
}
END_TEST

START_TEST(error_of_the_sink_is_returned)
{
    struct arena arena;
    struct errs errs = {0};
    struct got g = {.fail_at = 1};
    const struct pool_sink sink = {.record = take, .context = &g};
    struct order order;

    ck_assert(arena_init(&arena, order_bytes(3)));
    ck_assert(order_init(&order, &sink, 3, &arena));
    for (uint64_t i = 2; i > 0; i--) {
        struct record r = {.index = i, .got = 10.0 * (double)i};

        ck_assert_int_eq(order_add(&order, &r, &errs), ERR_NONE);
    }
    ck_assert_int_eq(order_add(&order, &(struct record){.index = 0}, &errs), ERR_IO);
    ck_assert_uint_eq(g.next, 1);
    errs_free(&errs);
    arena_free(&arena);
}
END_TEST

static enum err_code take_digit(void *context, const struct record *r, struct errs *errs)
{
    uint64_t *digits = context;

    (void)errs;
    *digits = 10 * *digits + r->index;
    return ERR_NONE;
}

/* Records 1, 3 and 4 wait for 0 and 2 when the run ends: they are not lost, and come once. */
START_TEST(what_waits_at_the_end_is_delivered)
{
    static const uint64_t came[] = {4, 1, 3};
    struct arena arena;
    struct errs errs = {0};
    uint64_t digits = 9;
    const struct pool_sink sink = {.record = take_digit, .context = &digits};
    struct order order;

    ck_assert(arena_init(&arena, order_bytes(5)));
    ck_assert(order_init(&order, &sink, 5, &arena));
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_eq(order_add(&order, &(struct record){.index = came[i]}, &errs), ERR_NONE);
    ck_assert_uint_eq(digits, 9);
    ck_assert_int_eq(order_end(&order, &errs), ERR_NONE);
    ck_assert_uint_eq(digits, 9134);
    ck_assert_int_eq(order_end(&order, &errs), ERR_NONE);
    ck_assert_uint_eq(digits, 9134);
    arena_free(&arena);
}
END_TEST

/* ---- last words --------------------------------------------------------------------------- */

static const struct {
    const char *pieces[3];
    const char *words;
} words[] = {
    {{"", NULL}, ""},
    {{"one", " two", "\n"}, "one two"},
    {{"\n\n a \t\r\n b\n", NULL}, "a b"},
    {{"old\x1e", "new", NULL}, "new"},
    {{"old", "older\x1e", NULL}, ""},
    {{"\x1eone\x1etwo\x1ethree", NULL}, "three"},
    {{"\x1b[31mred\xc3\xa9\x7f.", NULL}, "[31mred ."},
};

START_TEST(last_words)
{
    struct tail t = {0};
    char buf[TAIL_WORDS];

    for (int i = 0; i < 3 && words[_i].pieces[i]; i++)
        tail_keep(&t, words[_i].pieces[i], strlen(words[_i].pieces[i]));
    ck_assert_str_eq(tail_words(&t, buf), words[_i].words);
}
END_TEST

/* Of more than fits, the end is kept. */
START_TEST(the_end_is_kept)
{
    struct tail t = {0};
    char buf[TAIL_WORDS], text[TAIL_BYTES];

    for (int round = 0; round < 5; round++) {
        size_t n = TAIL_BYTES - (size_t)round * 1000;

        memset(text, 'a' + round, sizeof text);
        text[n - 1] = (char)('0' + round);
        tail_keep(&t, text, n);
        ck_assert_uint_le(t.used, TAIL_BYTES);
        ck_assert_int_eq(t.bytes[t.used - 1], '0' + round);
    }
    ck_assert_uint_eq(strlen(tail_words(&t, buf)), TAIL_WORDS - 1);
    ck_assert_int_eq(t.bytes[TAIL_BYTES - 96 - 1], '3');
    ck_assert_int_eq(t.bytes[0], 'b' + 0);
}
END_TEST

static Suite *parts_suite(void)
{
    Suite *s = suite_create("pool_parts");
    TCase *tc = tcase_create("all");

    tcase_add_loop_test(tc, every_type_survives_every_cut, 0, WIRE_COUNT);
    tcase_add_loop_test(tc, a_flipped_bit_of_the_header_is_seen, 0, WIRE_COUNT);
    tcase_add_loop_test(tc, a_record_with_an_endless_text_is_bad, 0,
                        (int)(sizeof must_be_sound / sizeof must_be_sound[0]));
    tcase_add_test(tc, other_bad_contents);
    tcase_add_test(tc, every_permutation_comes_out_sorted);
    tcase_add_test(tc, error_of_the_sink_is_returned);
    tcase_add_test(tc, what_waits_at_the_end_is_delivered);
    tcase_add_loop_test(tc, last_words, 0, (int)(sizeof words / sizeof words[0]));
    tcase_add_test(tc, the_end_is_kept);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    SRunner *r = srunner_create(parts_suite());
    int failed;

    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
