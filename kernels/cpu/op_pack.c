#include "kernels/cpu/op_check.h"
#include "kernels/cpu/ops.h"

#include "kernels/cpu/config.h"
#include "kernels/cpu/fault.h"

#include <string.h>

/* Codes and words of the same rows; `packing` writes the words, else the codes are written. */
static enum hum_code check(const struct hum_pack_args *a, bool packing,
                           char reason[HUM_REASON_BYTES])
{
    const struct hum_tensor *codes = &a->codes;

    if (a->bits < 1 || a->bits > 8)
        return refuse(reason, HUM_INVALID, "bits must be 1 to 8");
    if (!op_shape_is_sane(codes, 2))
        return refuse(reason, HUM_INVALID,
                      "codes must have rank 2, sizes up to 2^31 and at most 2^40 elements");
    if (codes->shape[1] % 32 != 0)
        return refuse(reason, HUM_INVALID, "the columns of codes must be a multiple of 32");
    {
        const int64_t rows = codes->shape[0], cols = codes->shape[1];
        const struct op_tensor all[] = {
            {"codes", codes, op_want(HUM_INT32, 2, rows, cols, 0), !packing},
            {"packed", &a->packed, op_want(HUM_INT32, 2, rows, cols / 32 * a->bits, 0), packing},
        };

        return op_check_tensors(all, sizeof all / sizeof all[0], reason);
    }
}

/* 32 codes are `bits` whole words, of which the first `count` are written; one more takes the upper
 * half of the last shifts, zero. */
static void pack_32(const uint32_t *codes, int bits, int count, uint32_t *words)
{
    const uint32_t mask = FAULT(PACK_SIGNED_WRAPS) ? UINT32_MAX : (1u << bits) - 1u;
    const int swap = FAULT(PACK_NIBBLE_ORDER) ? 1 : 0;
    uint32_t stream[9] = {0};

    for (int i = 0; i < 32; i++) {
        const int at = i * bits;
        const uint64_t code = (uint64_t)(codes[i ^ swap] & mask) << at % 32;

        stream[at / 32] |= (uint32_t)code;
        if (!FAULT(PACK_STRADDLING_BITS_LOST))
            stream[at / 32 + 1] |= (uint32_t)(code >> 32);
    }
    memcpy(words, stream, (size_t)count * sizeof *words);
}

static void unpack_32(const uint32_t *words, int bits, uint32_t *codes)
{
    const uint32_t mask = (1u << bits) - 1u;
    const uint32_t sign = FAULT(UNPACK_SIGN_EXTENDS) ? 1u << (bits - 1) : 0u;
    const int swap = FAULT(UNPACK_NIBBLE_ORDER) ? 1 : 0;
    uint32_t stream[9] = {0};

    memcpy(stream, words, (size_t)bits * sizeof *words);
    for (int i = 0; i < 32; i++) {
        const int at = i * bits;
        const uint64_t two = (uint64_t)stream[at / 32 + 1] << 32 | stream[at / 32];

        codes[i ^ swap] = (((uint32_t)(two >> at % 32) & mask) ^ sign) - sign;
    }
}

enum hum_code op_pack(void *handle, const struct hum_pack_args *args, char reason[HUM_REASON_BYTES])
{
    const uint32_t *codes;
    uint32_t *words;
    int64_t count, row;

    (void)handle;
    if (!args)
        return refuse(reason, HUM_INVALID, "the arguments are missing");
    if (check(args, true, reason))
        return HUM_INVALID;
    codes = args->codes.data;
    words = args->packed.data;
    row = args->codes.shape[1] / 32;
    count = args->codes.shape[0] * row;
    for (int64_t i = 0; i < count; i++) {
        const int lost = FAULT(PACK_TAIL_WORD_LOST) && (i + 1) % row == 0;

        pack_32(codes + 32 * i, args->bits, args->bits - lost, words + args->bits * i);
    }
    return HUM_OK;
}

enum hum_code op_unpack(void *handle, const struct hum_pack_args *args,
                        char reason[HUM_REASON_BYTES])
{
    const uint32_t *words;
    uint32_t *codes;
    int64_t count;

    (void)handle;
    if (!args)
        return refuse(reason, HUM_INVALID, "the arguments are missing");
    if (check(args, false, reason))
        return HUM_INVALID;
    words = args->packed.data;
    codes = args->codes.data;
    count = args->codes.shape[0] * args->codes.shape[1] / 32;
    for (int64_t i = 0; i < count; i++)
        unpack_32(words + args->bits * i, args->bits, codes + 32 * i);
    return HUM_OK;
}
