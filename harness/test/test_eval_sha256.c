#include "harness/eval/sha256.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) (int)(sizeof(a) / sizeof(a)[0])

/* NIST, "SHA-256" of the examples with intermediate values, and of the CAVP response files
 * SHA256ShortMsg.rsp (the messages of 0 and 8 bits). */
/* clang-format off */
static const struct {
    const char *text;
    size_t repeats;
    const char *digest;
} vectors[] = {
    {"", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"\xd3", 1, "28969cdfa74a12c82f3bad960b0b000aca2ac329deea5c2328ebc6f2ba9802c1"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmno"
     "pqrsmnopqrstnopqrstu", 1, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    {"a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
};
/* clang-format on */

START_TEST(published_vectors)
{
    struct sha256 s;
    char hex[SHA256_HEX];

    sha256_init(&s);
    for (size_t i = 0; i < vectors[_i].repeats; i++)
        sha256_add(&s, vectors[_i].text, strlen(vectors[_i].text));
    ck_assert_str_eq(sha256_end(&s, hex), vectors[_i].digest);
}
END_TEST

enum { LENGTH = 200 };

/* Every length up to three blocks, cut in two everywhere: the same digest, and no two equal. */
START_TEST(pieces_do_not_matter)
{
    static char seen[LENGTH][SHA256_HEX];
    char data[LENGTH], hex[SHA256_HEX];
    struct sha256 s;

    memset(data, 'x', sizeof data);
    for (size_t n = 0; n < LENGTH; n++) {
        (void)sha256_hex(data, n, seen[n]);
        for (size_t cut = 0; cut <= n; cut++) {
            sha256_init(&s);
            sha256_add(&s, data, cut);
            sha256_add(&s, data + cut, n - cut);
            ck_assert_str_eq(sha256_end(&s, hex), seen[n]);
        }
        for (size_t m = 0; m < n; m++)
            ck_assert_str_ne(seen[m], seen[n]);
    }
}
END_TEST

/* The digest of the digests of all lengths, computed with Python's hashlib. */
START_TEST(padding_of_every_length)
{
    struct sha256 s;
    char data[LENGTH], hex[SHA256_HEX];

    memset(data, 'x', sizeof data);
    sha256_init(&s);
    for (size_t n = 0; n < LENGTH; n++)
        sha256_add(&s, sha256_hex(data, n, hex), SHA256_HEX - 1);
    ck_assert_str_eq(sha256_end(&s, hex),
                     "f61ffcc417e1f0e59eba2da7fa32fbe05b64e478b68c6bacf990455f00248b98");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sha256");
    TCase *tc = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_loop_test(tc, published_vectors, 0, COUNT(vectors));
    tcase_add_test(tc, pieces_do_not_matter);
    tcase_add_test(tc, padding_of_every_length);
    suite_add_tcase(s, tc);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
