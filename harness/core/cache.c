#include "harness/core/cache.h"

#include <stdio.h>
#include <stdlib.h>

bool cache_path(const char *name, char *buf, size_t size)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;

    if (cache && cache[0] == '/')
        n = snprintf(buf, size, "%s/humcheck/%s", cache, name);
    else if (home && home[0] == '/')
        n = snprintf(buf, size, "%s/.cache/humcheck/%s", home, name);
    return n >= 0 && (size_t)n < size;
}
