#include "harness/test/made_file.h"
#include "harness/weights/checkpoint.h"
#include "harness/weights/safetensors.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct arena arena;
static struct errs errs;

static void setup(void)
{
    ck_assert(arena_init(&arena, (size_t)1 << 28));
}

static void teardown(void)
{
    errs_free(&errs);
    arena_free(&arena);
}

static enum err_code parse(struct made_file f, struct safetensors *out)
{
    return safetensors_parse("f.safetensors", f.bytes, f.size, &arena, out, &errs);
}

/* Some sentence has this part. */
static bool told(const char *part)
{
    for (size_t i = 0; i < errs.count; i++)
        if (strstr(errs.items[i].text, part))
            return true;
    return false;
}

static const char *all_told(void)
{
    const char *text = "";

    for (size_t i = 0; i < errs.count; i++)
        text = arena_printf(&arena, "%s[%s]", text, errs.items[i].text);
    return text;
}

#define T(name, dtype, shape, begin, end)                                                          \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end \
    "]}"

START_TEST(good_file)
{
    static const unsigned char data[] = {0x00, 0x3c, 0x00, 0xbc, 1, 2, 3, 4, 5, 6, 0x21};
    struct made_file f = made_raw(
        &arena,
        "{" T("b", "F16", "[2,1]", 0, 4) "," T("a", "U8", "[3,2]", 4, 10) "," T(
            "c", "F4", "[2]", 10, 11) "," T("empty", "F64", "[0,7]", 4,
                                            4) ",\"__metadata__\":{\"format\":\"pt\"}}  \n",
        data, sizeof data);
    struct safetensors s;
    const struct tensor *t;
    char text[64];

    ck_assert_msg(!parse(f, &s), "%s", all_told());
    ck_assert_uint_eq(s.count, 4);
    ck_assert_str_eq(json_text(json_get(s.metadata, "format")), "pt");
    t = safetensors_find(&s, "b");
    ck_assert_str_eq(tensor_describe(t, text, sizeof text), "F16 2x1");
    ck_assert(tensor_value(t, 0) == 1.0 && tensor_value(t, 1) == -1.0);
    ck_assert_ptr_eq(t->data, f.bytes + t->at);
    t = safetensors_find(&s, "a");
    ck_assert_int_eq(t->elements, 6);
    ck_assert_uint_eq(tensor_code(t, 5), 6);
    t = safetensors_find(&s, "c"); /* the low nibble is the even element */
    ck_assert_uint_eq(tensor_code(t, 0), 1);
    ck_assert_uint_eq(tensor_code(t, 1), 2);
    ck_assert_ptr_null(safetensors_find(&s, "d"));
}
END_TEST

/* One element of every format: the table's size is the one that fits. */
START_TEST(every_format)
{
    const struct safetensors_format *f = &safetensors_formats[_i];
    int elements = 8; /* whole bytes for 4 and 6 bits */
    static const unsigned char zeros[64];
    const char *header =
        arena_printf(&arena, "{\"x\":{\"dtype\":\"%s\",\"shape\":[%d],\"data_offsets\":[0,%d]}}",
                     f->name, elements, f->bits);
    struct safetensors s;

    ck_assert_msg(!parse(made_raw(&arena, header, zeros, (size_t)f->bits), &s), "%s", all_told());
    ck_assert_uint_eq(s.tensors[0].bytes, (uint64_t)f->bits);
    ck_assert(parse(made_raw(&arena, header, zeros, (size_t)f->bits - 1), &s));
    ck_assert(told("but the file has"));
}
END_TEST

/* clang-format off */
static const struct {
    const char *header;
    int bytes; /* of data */
    const char *sentence;
} bad[] = {
    {"[]", 0, "byte 8: the header does not start with '{'"},
    {" {}", 0, "byte 8: the header does not start with '{'"},
    {"{", 0, "byte 9: a text in double quotes is expected"},
    {"{}x", 0, "byte 10: something follows the value"},
    {"{\"a\":{}", 0, "byte 15: a comma or the closing bracket"},
    {"{\"a\" {}}", 0, "byte 13: a colon is expected"},
    {"{\"a\\x\":{}}", 0, "byte 11: an unknown escape"},
    {"{\"a\\u0000\":{}}", 0, "a NUL character in a text"},
    {"{\"a\\ud800\":{}}", 0, "half of a surrogate pair"},
    {"{\"a\\ud800\\u0041\":{}}", 0, "half of a surrogate pair"},
    {"{\"a\\udc00\":{}}", 0, "half of a surrogate pair"},
    {"{\"a\\u12g4\":{}}", 0, "\\u without four hexadecimal digits"},
    {"{\"\xff\":{}}", 0, "byte 10: a byte that is not UTF-8"},
    {"{\"a\nb\":{}}", 0, "a control character in a text"},
    {"{\"a", 0, "a text without an end"},
    {"{\"a\":tru}", 0, "byte 13: a value is expected"},
    {"{" T("a", "U8", "[01]", 0, 1) "}", 1, "this is no number"},
    {"{" T("a", "U8", "[1.0]", 0, 1) "}", 1, "a whole number from 0 to 2^53 - 1"},
    {"{" T("a", "U8", "[1e0]", 0, 1) "}", 1, "a whole number from 0 to 2^53 - 1"},
    {"{" T("a", "U8", "[-1]", 0, 1) "}", 1, "a whole number from 0 to 2^53 - 1"},
    {"{" T("a", "U8", "[9007199254740992]", 0, 1) "}", 1, "a whole number from 0 to 2^53 - 1"},
    {"{" T("a", "U8", "[9007199254740991]", 0, 1) "}", 1, "its shape need 9007199254740991"},
    {"{" T("a", "U8", "[9007199254740993]", 0, 1) "}", 1, "a whole number from 0 to 2^53 - 1"},
    {"{" T("a", "U8", "[18446744073709551617]", 0, 1) "}", 1, "a whole number from 0 to 2^53 - 1"},
    {"{\"a\":1}", 0, "tensor 'a' is no JSON object"},
    {"{\"a\":{}}", 0, "tensor 'a' has no dtype"},
    {"{" T("a", "Q4", "[1]", 0, 1) "}", 1, "the unknown dtype 'Q4'"},
    {"{" T("a", "f32", "[1]", 0, 4) "}", 4, "the unknown dtype 'f32'"},
    {"{" T("a", "U8", "1", 0, 1) "}", 1, "has no shape"},
    {"{" T("a", "U8", "[true]", 0, 1) "}", 1, "a size of its shape is no whole number"},
    {"{" T("a", "U8", "[4294967296,4294967296,4294967296]", 0, 1) "}", 1, "overflows 63 bits"},
    {"{" T("a", "F64", "[1152921504606846,8000]", 0, 1) "}", 1, "more than 2^63 bits"},
    {"{" T("a", "U8", "[3]", 0, 4) "}", 4, "has 4 bytes at byte 61, but U8 and its shape need 3"},
    {"{" T("a", "F32", "[]", 0, 3) "}", 3, "has 3 bytes at byte 61, but F32 and its shape need 4"},
    {"{" T("a", "F4", "[3]", 0, 1) "}", 1, "3 elements of 4 bits do not fill whole bytes"},
    {"{" T("a", "U8", "[1]", 0, 2) "}", 1, "ends at byte 63, but the file has 62 bytes"},
    {"{" T("a", "U8", "[1]", 1, 0) "}", 1, "begin (1) behind their end (0)"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1, "has no data_offsets"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,1]}}", 1, "has no data_offsets"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":0}}", 1, "a key 'x'"},
    {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
     "the key 'dtype' stands twice"},
    {"{" T("a", "U8", "[1]", 0, 1) "," T("a", "U8", "[1]", 1, 2) "}", 2, "the key 'a' stands twice"},
    {"{" T("a", "U8", "[2]", 0, 2) "," T("b", "U8", "[2]", 1, 3) "}", 3,
     "tensor 'b' starts at byte 114 inside tensor 'a'"},
    {"{" T("a", "U8", "[1]", 0, 1) "," T("b", "U8", "[1]", 2, 3) "}", 3,
     "bytes 114 to 114 before tensor 'b' belong to no tensor"},
    {"{" T("a", "U8", "[1]", 0, 1) "}", 3, "bytes 62 to 63 at the end belong to no tensor"},
    {"{}", 1, "bytes 10 to 10 at the end belong to no tensor"},
    {"{\"__metadata__\":[]}", 0, "__metadata__ is no JSON object"},
    {"{\"__metadata__\":{\"a\":null}}", 0, "the value of 'a' is no text"},
};
/* clang-format on */

START_TEST(bad_files)
{
    static const unsigned char zeros[16];
    struct safetensors s;

    ck_assert(parse(made_raw(&arena, bad[_i].header, zeros, (size_t)bad[_i].bytes), &s) ==
              ERR_CONFIG);
    ck_assert_msg(told(bad[_i].sentence), "'%s' is not in %s", bad[_i].sentence, all_told());
    ck_assert_str_eq(errs.items[0].at.file, "f.safetensors");
}
END_TEST

/* Every mistake of a file is told at once. */
START_TEST(all_at_once)
{
    struct safetensors s;
    struct made_file f =
        made_raw(&arena, "{" T("a", "Q", "[1]", 0, 1) "," T("b", "U8", "[2]", 0, 1) "}", "xy", 2);

    ck_assert(parse(f, &s));
    ck_assert_uint_eq(errs.count, 2);
}
END_TEST

START_TEST(lengths)
{
    static const uint8_t hundred_million[4] = {0x00, 0xe1, 0xf5, 0x05};
    unsigned char bytes[16] = {0};
    struct safetensors s;

    for (size_t n = 0; n < 8; n++)
        ck_assert(safetensors_parse("f", bytes, n, &arena, &s, &errs) == ERR_CONFIG);
    ck_assert(told("7 bytes are no safetensors file"));
    bytes[0] = 9;
    ck_assert(safetensors_parse("f", bytes, 16, &arena, &s, &errs) == ERR_CONFIG);
    ck_assert(told("the header of 9 bytes does not fit in a file of 16 bytes"));
    memset(bytes, 0xff, 8);
    ck_assert(safetensors_parse("f", bytes, 16, &arena, &s, &errs) == ERR_CONFIG);
    ck_assert(told("18446744073709551615 bytes is above the format's limit"));
    memset(bytes, 0, 8);
    ck_assert(safetensors_parse("f", bytes, 16, &arena, &s, &errs) == ERR_CONFIG);
    memcpy(bytes, hundred_million, sizeof hundred_million); /* allowed, but not here */
    ck_assert(safetensors_parse("f", bytes, 16, &arena, &s, &errs) == ERR_CONFIG);
    ck_assert(told("the header of 100000000 bytes does not fit"));
    bytes[0] = 1;
    ck_assert(safetensors_parse("f", bytes, 16, &arena, &s, &errs) == ERR_CONFIG);
    ck_assert(told("a header of 100000001 bytes is above"));
}
END_TEST

/* A NUL byte is no escape, though strchr(3) finds it at the end of every list. */
START_TEST(nul_byte)
{
    struct made_file f = made_raw(&arena, "{\"a\\?b\":{}}", "", 0);
    struct safetensors s;

    *(unsigned char *)memchr(f.bytes + 8, '?', f.size - 8) = '\0';
    ck_assert(parse(f, &s) == ERR_CONFIG);
    ck_assert_msg(told("byte 11: an unknown escape"), "%s", all_told());
}
END_TEST

/* Cut anywhere, a good file is refused; with any byte changed, it is read or refused. */
START_TEST(cut_and_changed)
{
    static const unsigned char data[] = {1, 2, 3, 4};
    struct made_file f =
        made_raw(&arena, "{" T("a", "U8", "[2]", 0, 2) "," T("b", "F16", "[1]", 2, 4) "}", data, 4);
    struct safetensors s;

    for (size_t n = 0; n < f.size; n++)
        ck_assert(safetensors_parse("f", f.bytes, n, &arena, &s, &errs) != ERR_NONE);
    for (size_t i = 0; i < f.size; i++)
        for (unsigned change = 1; change < 256; change += 37) {
            struct errs own = {0};
            enum err_code rc;

            f.bytes[i] ^= (unsigned char)change;
            rc = safetensors_parse("f", f.bytes, f.size, &arena, &s, &own);
            ck_assert(!rc == !own.count);
            f.bytes[i] ^= (unsigned char)change;
            errs_free(&own);
        }
}
END_TEST

/* ---- JSON beyond the header ---- */

/* clang-format off */
static const struct {
    const char *text;
    double value; /* NaN: no JSON */
} numbers[] = {
    {"0", 0.0}, {"-0", 0.0}, {"-12.5e+1", -125.0}, {"1E2", 100.0}, {"0.5", 0.5},
    {"+1", (double)NAN}, {"01", (double)NAN}, {".5", (double)NAN}, {"1.", (double)NAN},
    {"1e", (double)NAN}, {"0x10", (double)NAN}, {"-", (double)NAN}, {"NaN", (double)NAN},
    {"1111111111111111111111111111111111111111111111111111111111111", (double)NAN},
};
/* clang-format on */

START_TEST(json_numbers)
{
    struct json_source src = {
        .file = "c", .text = numbers[_i].text, .size = strlen(numbers[_i].text)};
    const struct json *j;
    enum err_code rc = json_parse(&src, &arena, &j, &errs);

    if (isnan(numbers[_i].value)) {
        ck_assert(rc == ERR_CONFIG);
        return;
    }
    ck_assert(!rc);
    ck_assert(j->number == numbers[_i].value);
}
END_TEST

START_TEST(json_depth)
{
    char text[2 * JSON_DEPTH + 3];
    struct json_source src = {.file = "c", .text = text};
    const struct json *j;

    for (int depth = JSON_DEPTH; depth <= JSON_DEPTH + 1; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        src.size = 2 * (size_t)depth;
        ck_assert_int_eq(json_parse(&src, &arena, &j, &errs) == ERR_NONE, depth == JSON_DEPTH);
    }
    ck_assert(told("more than 64 levels"));
}
END_TEST

START_TEST(json_texts)
{
    static const char text[] = "{\"k\\u00e9\\ud83d\\ude00\": \"a\\\"\\\\\\/\\n\", \"b\": true}";
    struct json_source src = {.file = "c", .text = text, .size = sizeof text - 1};
    const struct json *j;
    int64_t x;

    ck_assert(!json_parse(&src, &arena, &j, &errs));
    ck_assert_str_eq(json_text(json_get(j, "k\xc3\xa9\xf0\x9f\x98\x80")), "a\"\\/\n");
    ck_assert(!json_integer(json_get(j, "b"), &x));
    ck_assert_ptr_null(json_get(j, "c"));
    ck_assert_ptr_null(json_get(NULL, "c"));
}
END_TEST

/* ---- files of an index ---- */

static const char *folder;

static void make_folder(void)
{
    static char name[] = "/tmp/test_safetensors_XXXXXX";

    setup();
    folder = mkdtemp(name);
    ck_assert_ptr_nonnull(folder);
    ck_assert(!chdir(folder));
}

static void remove_folder(void)
{
    static const char *const names[] = {"1.safetensors", "2.safetensors", "config.json",
                                        "model.safetensors.index.json", "hf_quant_config.json"};

    for (int i = 0; i < COUNT(names); i++)
        (void)remove(names[i]);
    ck_assert(!chdir("/"));
    ck_assert(!rmdir(folder));
    teardown();
}

static void write_file(const char *name, const void *bytes, size_t size)
{
    FILE *f = fopen(name, "wb");

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, size, f), size);
    ck_assert(!fclose(f));
}

static void write_text(const char *name, const char *text)
{
    write_file(name, text, strlen(text));
}

static void write_shards(void)
{
    struct made_file one = made_raw(&arena, "{" T("b", "U8", "[1]", 0, 1) "}", "x", 1);
    struct made_file two =
        made_raw(&arena, "{" T("a", "U8", "[1]", 0, 1) "," T("c", "U8", "[1]", 1, 2) "}", "yz", 2);

    write_file("1.safetensors", one.bytes, one.size);
    write_file("2.safetensors", two.bytes, two.size);
}

#define ONE "1.safetensors"
#define TWO "2.safetensors"

/* clang-format off */
static const struct {
    const char *map, *sentence; /* NULL: good */
} indices[] = {
    {"{\"weight_map\":{\"a\":\"" TWO "\",\"b\":\"" ONE "\",\"c\":\"" TWO "\"}}", NULL},
    {"{\"weight_map\":{\"a\":\"" ONE "\",\"b\":\"" ONE "\",\"c\":\"" TWO "\"}}",
     "tensor 'a' is not in '1.safetensors'"},
    {"{\"weight_map\":{\"a\":\"" TWO "\",\"b\":\"" ONE "\"}}", "the shards hold 3 tensors"},
    {"{\"weight_map\":{\"a\":\"" TWO "\",\"d\":\"" ONE "\",\"c\":\"" TWO "\"}}", "tensor 'd' is not in"},
    {"{\"weight_map\":{\"a\":\"../2.safetensors\"}}", "has no file name without folder"},
    {"{\"weight_map\":{\"a\":\"..\"}}", "has no file name without folder"},
    {"{\"weight_map\":{\"a\":2}}", "has no file name without folder"},
    {"{\"weight_map\":{}}", "names 0 files"},
    {"{\"weight_map\":{\"a\":\"3.safetensors\"}}", "cannot be read: No such file"},
    {"{}", "has no weight_map"},
    {"{\"weight_map\":{\"a\":\"" TWO "\",\"a\":\"" ONE "\"}}", "the key 'a' stands twice"},
};
/* clang-format on */

START_TEST(index_files)
{
    struct checkpoint c;
    enum err_code rc;

    write_shards();
    write_text("model.safetensors.index.json", indices[_i].map);
    rc = checkpoint_open(_i % 2 ? "model.safetensors.index.json" : ".", &arena, &c, &errs);
    if (indices[_i].sentence) {
        ck_assert(rc == ERR_CONFIG);
        ck_assert_msg(told(indices[_i].sentence), "%s", all_told());
    } else {
        ck_assert_msg(!rc, "%s", all_told());
        ck_assert_uint_eq(c.tensors.count, 3);
        ck_assert_uint_eq(c.map_count, 2);
        ck_assert_uint_eq(c.bytes, 3);
        ck_assert_int_eq(*safetensors_find(&c.tensors, "b")->data, 'x');
        ck_assert_int_eq(*safetensors_find(&c.tensors, "c")->data, 'z');
        ck_assert_ptr_null(c.config);
    }
    checkpoint_close(&c);
}
END_TEST

START_TEST(twice_in_shards)
{
    struct made_file f = made_raw(&arena, "{" T("a", "U8", "[1]", 0, 1) "}", "x", 1);
    struct checkpoint c;

    write_file(ONE, f.bytes, f.size);
    write_file(TWO, f.bytes, f.size);
    write_text("model.safetensors.index.json",
               "{\"weight_map\":{\"a\":\"" ONE "\",\"b\":\"" TWO "\"}}");
    ck_assert(checkpoint_open(".", &arena, &c, &errs) == ERR_CONFIG);
    ck_assert_msg(told("tensor 'a' is also in"), "%s", all_told());
    checkpoint_close(&c);
}
END_TEST

/* clang-format off */
static const struct {
    const char *file, *text, *method, *param; /* method NULL: no config is found */
} configs[] = {
    {"config.json", "{\"quantization_config\":{\"quant_method\":\"awq\"},\"torch_dtype\":\"float16\"}",
     "awq", "float16"},
    {"config.json", "{\"text_config\":{\"quantization_config\":{\"quant_method\":\"fp8\"},"
                    "\"dtype\":\"bfloat16\"}}", "fp8", "bfloat16"},
    {"config.json", "{\"torch_dtype\":\"bfloat16\"}", NULL, "bfloat16"},
    {"hf_quant_config.json", "{\"quantization\":{\"quant_method\":\"modelopt\"}}", "modelopt", NULL},
};
/* clang-format on */

START_TEST(config_files)
{
    struct checkpoint c;

    write_shards();
    write_text(configs[_i].file, configs[_i].text);
    ck_assert_msg(!checkpoint_open(ONE, &arena, &c, &errs), "%s", all_told());
    ck_assert_pstr_eq(json_text(json_get(c.config, "quant_method")), configs[_i].method);
    ck_assert_pstr_eq(c.param, configs[_i].param);
    checkpoint_close(&c);
}
END_TEST

START_TEST(unreadable)
{
    struct checkpoint c;

    write_text("config.json", "");
    ck_assert(checkpoint_open("nothing.safetensors", &arena, &c, &errs) == ERR_CONFIG);
    checkpoint_close(&c);
    ck_assert(checkpoint_open("config.json", &arena, &c, &errs) == ERR_CONFIG);
    checkpoint_close(&c);
    ck_assert(told("the file is empty"));
    ck_assert(checkpoint_open("/dev/null", &arena, &c, &errs) == ERR_CONFIG);
    checkpoint_close(&c);
    ck_assert(told("this is no regular file"));
    write_shards();
    write_text("config.json", "{\"quantization_config\": 5}");
    ck_assert(checkpoint_open(ONE, &arena, &c, &errs) == ERR_CONFIG);
    checkpoint_close(&c);
    ck_assert(told("quantization_config is no JSON object"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("safetensors");
    TCase *bytes = tcase_create("bytes"), *files = tcase_create("files");
    SRunner *r;
    int failed;

    tcase_add_checked_fixture(bytes, setup, teardown);
    tcase_add_test(bytes, good_file);
    tcase_add_loop_test(bytes, every_format, 0, safetensors_format_count);
    tcase_add_loop_test(bytes, bad_files, 0, COUNT(bad));
    tcase_add_test(bytes, all_at_once);
    tcase_add_test(bytes, lengths);
    tcase_add_test(bytes, nul_byte);
    tcase_add_test(bytes, cut_and_changed);
    tcase_add_loop_test(bytes, json_numbers, 0, COUNT(numbers));
    tcase_add_test(bytes, json_depth);
    tcase_add_test(bytes, json_texts);
    suite_add_tcase(s, bytes);
    tcase_add_checked_fixture(files, make_folder, remove_folder);
    tcase_add_loop_test(files, index_files, 0, COUNT(indices));
    tcase_add_test(files, twice_in_shards);
    tcase_add_loop_test(files, config_files, 0, COUNT(configs));
    tcase_add_test(files, unreadable);
    suite_add_tcase(s, files);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
