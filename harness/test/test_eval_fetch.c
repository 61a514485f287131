#include "harness/eval/fetch.h"

#include <arpa/inet.h>
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(a) (int)(sizeof(a) / sizeof(a)[0])

enum { ARENA = 1 << 20, TEXT = 512, BODY = 300000, UNSAID = 1 };

static struct arena arena;
static struct errs errs;
static char folder[] = "/tmp/fetch_XXXXXX", base[TEXT];
static char body[2][BODY];
static char hex[2][SHA256_HEX];
static struct dataset_file files[2];
static pid_t server;
static int done_calls;

static bool send_all(int fd, const char *data, size_t size)
{
    while (size) {
        ssize_t n = send(fd, data, size, MSG_NOSIGNAL);

        if (n <= 0)
            return false;
        data += n;
        size -= (size_t)n;
    }
    return true;
}

/* What the server answers, by the first folder of the path: the head's status and length (0: that
 * of the file), how much of the body comes, whether a byte of it is wrong, and whether the
 * connection then stays open. */
/* clang-format off */
static const struct answer {
    const char *folder, *status;
    size_t length, bytes; /* 0: those of the file; length UNSAID: no such header */
    bool wrong, stays;
} answers[] = {
    {"good",     "200 OK",                            0,        0,        false, false},
    {"wrong",    "200 OK",                            0,        0,        true,  false},
    {"cut",      "200 OK",                            0,        1000,     false, false},
    {"short",    "200 OK",                            1000,     1000,     false, false},
    {"long",     "200 OK",                            BODY + 1, BODY,     false, true},
    {"unsaid",   "200 OK",                            UNSAID,   BODY,     false, true},
    {"missing",  "404 Not Found",                     10,       10,       false, false},
    {"moved",    "302 Found\r\nLocation: /good/a.txt", 10,      10,       false, false},
    {"error",    "500 Internal Server Error",         10,       10,       false, false},
    {"partial",  "206 Partial Content",               0,        0,        false, false},
    {"stays",    "200 OK",                            0,        1000,     false, true},
};
/* clang-format on */

static void answer(int fd)
{
    char request[4096], head[TEXT], where[32], name;
    ssize_t n = recv(fd, request, sizeof request - 1, 0);
    static char wrong[BODY];

    request[n > 0 ? n : 0] = '\0';
    if (sscanf(request, "GET /%31[^/]/%c", where, &name) != 2)
        return;
    for (int i = 0; i < COUNT(answers); i++) {
        const struct answer *a = &answers[i];
        const struct dataset_file *f = &files[name == 'b'];

        if (strcmp(a->folder, where) != 0)
            continue;
        memcpy(wrong, body[name == 'b'], BODY);
        if (a->wrong)
            wrong[f->bytes / 2] = ' '; /* which no body has */
        (void)snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n", a->status,
                       a->length ? a->length : f->bytes);
        if (a->length == UNSAID)
            (void)snprintf(head, sizeof head, "HTTP/1.1 %s\r\n\r\n", a->status);
        if (send_all(fd, head, strlen(head)) &&
            send_all(fd, wrong, a->bytes ? a->bytes : f->bytes) && a->stays)
            (void)recv(fd, request, sizeof request, 0);
    }
}

static void serve(int listener)
{
    for (;;) {
        int fd = accept(listener, NULL, NULL);

        if (fd < 0)
            _exit(1);
        answer(fd);
        (void)close(fd);
    }
}

static void start_server(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_ge(listener, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&at, size), 0);
    ck_assert_int_eq(listen(listener, 8), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&at, &size), 0);
    (void)snprintf(base, sizeof base, "http://127.0.0.1:%d/", ntohs(at.sin_port));
    server = fork();
    ck_assert_int_ge(server, 0);
    if (!server)
        serve(listener);
    (void)close(listener);
}

static void stop_server(void)
{
    if (server > 0) {
        (void)kill(server, SIGKILL);
        (void)waitpid(server, NULL, 0);
    }
    server = 0;
}

static void setup(void)
{
    static const size_t sizes[2] = {BODY, 12345};

    ck_assert(arena_init(&arena, ARENA));
    for (int f = 0; f < 2; f++) {
        for (size_t i = 0; i < BODY; i++)
            body[f][i] = (char)('!' + (i * 7 + i / 91 + (size_t)f) % 90);
        files[f] = (struct dataset_file){.name = f ? "b.txt" : "a.txt",
                                         .bytes = sizes[f],
                                         .sha256 = sha256_hex(body[f], sizes[f], hex[f])};
    }
    ck_assert_ptr_nonnull(mkdtemp(folder));
    start_server();
}

static void remove_all(const char *path)
{
    char file[2 * TEXT];
    DIR *dir = opendir(path);

    for (struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir)) {
        (void)snprintf(file, sizeof file, "%.255s/%.255s", path, d->d_name);
        if (d->d_name[0] != '.' || strlen(d->d_name) > 2)
            (void)unlink(file);
    }
    if (dir)
        (void)closedir(dir);
    (void)rmdir(path);
}

static void teardown(void)
{
    stop_server();
    remove_all(folder);
    errs_free(&errs);
    arena_free(&arena);
}

static void on_progress(void *ctx, const struct dataset_file *file, size_t bytes, bool done)
{
    ck_assert_ptr_eq(ctx, &done_calls);
    ck_assert_uint_le(bytes, file->bytes);
    done_calls += done;
}

static const volatile sig_atomic_t never = 0;

static enum err_code fetch(const char *where, const char *to, const volatile sig_atomic_t *flag)
{
    static char url[2 * TEXT];
    const struct fetch_options o = {.base = url,
                                    .folder = to,
                                    .files = files,
                                    .file_count = 2,
                                    .interrupted = flag,
                                    .progress = on_progress,
                                    .ctx = &done_calls};

    (void)snprintf(url, sizeof url, "%s%s", strstr(where, "://") ? "" : base, where);
    return fetch_gsm8k(&o, &arena, &errs);
}

/* How many files the folder has, hidden ones too. */
static int count_files(void)
{
    DIR *dir = opendir(folder);
    int n = -2; /* . and .. */

    while (dir && readdir(dir))
        n++;
    (void)closedir(dir);
    return n;
}

static void put(const char *name, const char *text)
{
    char path[TEXT];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(both_files_arrive)
{
    struct stat st;
    char path[TEXT];

    ck_assert_int_eq(fetch("good", folder, &never), ERR_NONE);
    ck_assert_int_eq(done_calls, 2);
    ck_assert(fetch_is_there(folder, &files[0]) && fetch_is_there(folder, &files[1]));
    ck_assert_int_eq(count_files(), 2);
    (void)snprintf(path, sizeof path, "%s/a.txt", folder);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0644);
    stop_server(); /* what is there is not asked for again */
    ck_assert_int_eq(fetch("good", folder, &never), ERR_NONE);
    ck_assert_int_eq(done_calls, 4);
}
END_TEST

START_TEST(folders_are_made)
{
    char path[TEXT];

    (void)snprintf(path, sizeof path, "%s/x", folder);
    ck_assert_int_eq(fetch("good", path, &never), ERR_NONE);
    ck_assert(fetch_is_there(path, &files[1]));
    remove_all(path);
}
END_TEST

START_TEST(a_wrong_file_is_replaced)
{
    put("a.txt", "something else");
    ck_assert(!fetch_is_there(folder, &files[0]));
    ck_assert_int_eq(fetch("good", folder, &never), ERR_NONE);
    ck_assert(fetch_is_there(folder, &files[0]));
}
END_TEST

/* What is said of a.txt. */
/* clang-format off */
static const struct {
    const char *where;
    enum err_code code;
    const char *says;
} refused[] = {
    {"wrong",   ERR_CONFIG, "not GSM8K's: 300000 bytes with SHA-256 "},
    {"short",   ERR_CONFIG, "not GSM8K's: 1000 bytes with SHA-256 "},
    {"long",    ERR_CONFIG, "not GSM8K's: more than 300000 bytes came"},
    {"cut",     ERR_INFRA,  "/a.txt did not come: "},
    {"missing", ERR_INFRA,  "/a.txt answers with HTTP status 404 (redirects are not followed)"},
    {"moved",   ERR_INFRA,  "/a.txt answers with HTTP status 302 (redirects are not followed)"},
    {"error",   ERR_INFRA,  "/a.txt answers with HTTP status 500 (redirects are not followed)"},
    {"partial", ERR_INFRA,  "/a.txt answers with HTTP status 206 (redirects are not followed)"},
    {"http://127.0.0.1:1/x", ERR_INFRA, "/a.txt did not come: "},
};
/* clang-format on */

START_TEST(other_things_are_refused)
{
    put("a.txt", "old");
    ck_assert_int_eq(fetch(refused[_i].where, folder, &never), refused[_i].code);
    ck_assert_uint_eq(errs.count, 2); /* one a file */
    ck_assert_msg(strstr(errs.items[0].text, refused[_i].says) != NULL, "%s", errs.items[0].text);
    ck_assert_int_eq(count_files(), 1); /* the old one, and nothing half */
    ck_assert(!fetch_is_there(folder, &files[0]));
    ck_assert_int_eq(done_calls, 0);
}
END_TEST

/* A server that does not say how much will come is cut off at the file's size. */
START_TEST(replies_without_a_length_are_cut_off)
{
    files[0] = files[1];
    ck_assert_int_eq(fetch("unsaid", folder, &never), ERR_CONFIG);
    ck_assert_str_eq(errs.items[0].text, "not GSM8K's: more than 12345 bytes came");
    ck_assert_int_eq(count_files(), 0);
}
END_TEST

START_TEST(other_addresses_are_refused)
{
    ck_assert_int_eq(fetch("ftp://127.0.0.1/x", folder, &never), ERR_CONFIG);
    ck_assert_int_eq(fetch("file:///etc", folder, &never), ERR_CONFIG);
    ck_assert_uint_eq(errs.count, 2);
    ck_assert_str_eq(errs.items[1].text,
                     "'file:///etc' is no address that begins with https:// or http://");
}
END_TEST

START_TEST(both_hashes_are_said)
{
    char wrong[BODY], other[SHA256_HEX];

    memcpy(wrong, body[0], BODY);
    wrong[BODY / 2] = ' ';
    (void)sha256_hex(wrong, BODY, other);
    ck_assert_int_eq(fetch("wrong", folder, &never), ERR_CONFIG);
    ck_assert_ptr_nonnull(strstr(errs.items[0].text, other));
    ck_assert_ptr_nonnull(strstr(errs.items[0].text, hex[0]));
    ck_assert_ptr_nonnull(strstr(errs.items[0].at.file, "/a.txt"));
}
END_TEST

START_TEST(an_interrupt_leaves_nothing)
{
    static volatile sig_atomic_t now = 1;

    ck_assert_int_eq(fetch("stays", folder, &now), ERR_INFRA);
    ck_assert_uint_eq(errs.count, 1);
    ck_assert_str_eq(errs.items[0].text, "the download was interrupted");
    ck_assert_int_eq(count_files(), 0);
}
END_TEST

START_TEST(folders_that_cannot_be)
{
    char path[TEXT];

    put("file", "");
    (void)snprintf(path, sizeof path, "%s/file/x", folder);
    ck_assert_int_eq(fetch("good", path, &never), ERR_IO);
    ck_assert_str_eq(errs.items[0].text, "cannot be made: Not a directory");
    ck_assert_int_eq(fetch("good", "", &never), ERR_CONFIG);
}
END_TEST

/* clang-format off */
static const struct {
    const char *cache, *home, *folder; /* NULL: not set; an error */
} caches[] = {
    {"/c",  "/h",  "/c/humcheck/gsm8k"},
    {NULL,  "/h",  "/h/.cache/humcheck/gsm8k"},
    {"",    "/h",  "/h/.cache/humcheck/gsm8k"},
    {"c",   "/h",  "/h/.cache/humcheck/gsm8k"},
    {NULL,  NULL,  NULL},
    {NULL,  "h",   NULL},
};
/* clang-format on */

static void set_variable(const char *name, const char *value)
{
    ck_assert_int_eq(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

START_TEST(where_the_cache_is)
{
    const char *got;

    set_variable("XDG_CACHE_HOME", caches[_i].cache);
    set_variable("HOME", caches[_i].home);
    got = fetch_cache(&arena, &errs);
    ck_assert_int_eq(!got, !caches[_i].folder);
    ck_assert_uint_eq(errs.count, !got);
    if (got)
        ck_assert_str_eq(got, caches[_i].folder);
}
END_TEST

/* The public address names the commit that dataset_files[] was measured at. */
START_TEST(the_public_address)
{
    ck_assert_int_eq(strncmp(fetch_base, "https://", 8), 0);
    ck_assert_ptr_nonnull(strstr(fetch_base, "/openai/grade-school-math/3101c7d5"));
    ck_assert_int_ne(fetch_base[strlen(fetch_base) - 1], '/');
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fetch");
    TCase *t = tcase_create("all");
    SRunner *r;
    int failed;

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, both_files_arrive);
    tcase_add_test(t, folders_are_made);
    tcase_add_test(t, a_wrong_file_is_replaced);
    tcase_add_loop_test(t, other_things_are_refused, 0, COUNT(refused));
    tcase_add_test(t, replies_without_a_length_are_cut_off);
    tcase_add_test(t, other_addresses_are_refused);
    tcase_add_test(t, both_hashes_are_said);
    tcase_add_test(t, an_interrupt_leaves_nothing);
    tcase_add_test(t, folders_that_cannot_be);
    tcase_add_loop_test(t, where_the_cache_is, 0, COUNT(caches));
    tcase_add_test(t, the_public_address);
    suite_add_tcase(s, t);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
