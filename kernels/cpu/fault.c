#include "kernels/cpu/fault.h"

#include <ctype.h>
#include <stdlib.h>

enum hum_fault hum_fault_now;

#define TEXT(id) #id,
static const char *const identifiers[] = {HUM_FAULTS(TEXT)};
#undef TEXT

enum { NAME_BYTES = 64 };

const char *hum_fault_name(int index)
{
    static char name[NAME_BYTES];
    const char *id;
    size_t n = 0;

    if (index < 1 || index >= HUM_FAULT_COUNT)
        return NULL;
    for (id = identifiers[index - 1]; *id && n + 1 < sizeof name; id++)
        name[n++] = *id == '_' ? '-' : (char)tolower((unsigned char)*id);
    name[n] = '\0';
    return name;
}

/* Before main: worker processes inherit the variable, and no call of the contract is the first in
 * all programs. */
__attribute__((constructor)) static void switch_on(void)
{
    const char *wanted = getenv("HUMCHECK_FAULT");

    for (int i = 1; wanted && i < HUM_FAULT_COUNT; i++) {
        const char *name = hum_fault_name(i), *w = wanted;

        while (*w && *w == *name)
            w++, name++;
        if (*w == *name)
            hum_fault_now = (enum hum_fault)i;
    }
}
