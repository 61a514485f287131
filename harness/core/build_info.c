#include "harness/core/build_info.h"

#include <cjson/cJSON.h>
#include <curl/curl.h>
#include <libxml/parser.h>
#include <microhttpd.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#ifndef HUMCHECK_VERSION
#define HUMCHECK_VERSION "0.1.0"
#endif
#ifdef HUMCHECK_COMMIT
#define COMMIT        HUMCHECK_COMMIT
#define COMMIT_SUFFIX " (" HUMCHECK_COMMIT ")"
#else
#define COMMIT        ""
#define COMMIT_SUFFIX ""
#endif
#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

const struct build_info build_info = {HUMCHECK_VERSION, COMMIT, COMPILER};
const char build_program[] = "humcheck " HUMCHECK_VERSION COMMIT_SUFFIX;

static const char *yaml_loaded(char *buf, size_t size)
{
    (void)snprintf(buf, size, "%s", yaml_get_version_string());
    return buf;
}

static const char *cjson_loaded(char *buf, size_t size)
{
    (void)snprintf(buf, size, "%s", cJSON_Version());
    return buf;
}

/* libxml2 says 20914 for 2.9.14. */
static const char *xml_loaded(char *buf, size_t size)
{
    long v = strtol(xmlParserVersion, NULL, 10);

    (void)snprintf(buf, size, "%ld.%ld.%ld", v / 10000, v / 100 % 100, v % 100);
    return buf;
}

static const char *sqlite_loaded(char *buf, size_t size)
{
    (void)snprintf(buf, size, "%s", sqlite3_libversion());
    return buf;
}

static const char *curl_loaded(char *buf, size_t size)
{
    const curl_version_info_data *v = curl_version_info(CURLVERSION_NOW);

    (void)snprintf(buf, size, "%s with %s", v->version, v->ssl_version ? v->ssl_version : "no TLS");
    return buf;
}

static const char *microhttpd_loaded(char *buf, size_t size)
{
    (void)snprintf(buf, size, "%s", MHD_get_version());
    return buf;
}

/* clang-format off */
const struct build_library build_libraries[] = {
    {"libyaml",       "reads suites",          yaml_loaded},
    {"cJSON",         "writes JSON lines",     cjson_loaded},
    {"libxml2",       "writes JUnit XML",      xml_loaded},
    {"SQLite",        "keeps answers",         sqlite_loaded},
    {"libcurl",       "asks servers",          curl_loaded},
    {"libmicrohttpd", "serves kept answers",   microhttpd_loaded},
};
/* clang-format on */
const int build_library_count = sizeof build_libraries / sizeof build_libraries[0];

const char *build_fault(void)
{
#ifdef HUMCHECK_FAULTS
    const char *name = getenv("HUMCHECK_FAULT");

    return name && *name ? name : NULL;
#else
    return NULL;
#endif
}

bool build_wants_colour(void)
{
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");

    return !(no_colour && *no_colour) && !(term && !strcmp(term, "dumb"));
}
