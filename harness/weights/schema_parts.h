/* schema_parts.h - what the conversions of single schemas share; for schema*.c only.
 *
 * A conversion runs in three steps: `settings` reads the config, `shape` reads the sizes of each
 * part and finds its tensors, `fill` writes the part's rows. In between the arrays are
 * allocated, afterwards factors of whole parts are merged.
 */
#ifndef HARNESS_WEIGHTS_SCHEMA_PARTS_H
#define HARNESS_WEIGHTS_SCHEMA_PARTS_H

#include "harness/weights/schema.h"

/* Where a part's own factor (a tensor scale, or the global scale of NVFP4) goes. */
enum factor { FACTOR_NONE, FACTOR_SCALE, FACTOR_SCALE_2 };

struct part {
    const char *name;
    const struct tensor *main;
    const struct tensor *scale, *zero; /* NULL: none */
    int64_t n, k, row;                 /* sizes; first row in the layer */
    bool dense, zero_dense;            /* packed words: codes may straddle words (else none does) */
    double factor;                     /* exact in f32 */
};

struct work {
    const struct schema *schema;
    const struct schema_request *r;
    struct arena *arena;
    struct standard *out;
    struct errs *errs;
    struct part *parts;

    /* Settings. */
    int bits;      /* of integer codes */
    bool zeros;    /* zero points are stored and count */
    int zero_plus; /* zero point = stored value + this */
    enum factor factor;
    bool inverse;           /* the stored factor is the reciprocal of the scale */
    bool blocks_repeated;   /* block scales are written as group scales */
    int64_t stored_group_n; /* rows of the file that share a scale; 1 without blocks */

    /* While filling. */
    uint32_t *words;
    uint8_t *row;
};

/* A sentence about a tensor of part p (place: its file), or about the config. */
#define PART_BAD(w, p, ...) \
    errs_add((w)->errs, ERR_CONFIG, place_at((p)->main->file, 0, 0), __VA_ARGS__)
#define CONFIG_BAD(w, ...) \
    errs_add((w)->errs, ERR_CONFIG, place_at((w)->r->config_file, 0, 0), __VA_ARGS__)

enum err_code parts_no_memory(struct work *w);

/* Members of the config. `key` missing: false is an error with a sentence where `must`. */
enum err_code config_integer(struct work *w, const struct json *config, const char *key,
                             int64_t low, int64_t high, int64_t *out);
enum err_code config_flag(struct work *w, const struct json *config, const char *key, bool *out);
/* json_text(config.key) is `word`. */
bool config_says(const struct json *config, const char *key, const char *word);
/* A member that is true or a number other than 0. */
bool config_true(const struct json *config, const char *key);
/* "group_size" as -1 (one group) or above 0, to out->scale and out->group. */
enum err_code config_group(struct work *w, const struct json *config, const char *key);
/* "weight_block_size" as [n, k], to out->scale, bs (f32; NULL, the parameters' format, for blocks
 * written as groups), group and group_n. */
enum err_code config_blocks(struct work *w, const struct json *config, const char *key);

/* The tensor `p->name suffix`, of one of `formats` (" F16 BF16 "); *out is NULL if it is missing
 * and that is allowed. */
enum err_code part_tensor(struct work *w, const struct part *p, const char *suffix,
                          const char *formats, bool must, const struct tensor **out);
/* t is rank 2 of this shape. `t` NULL: holds. */
enum err_code part_matrix(struct work *w, const struct part *p, const struct tensor *t,
                          int64_t rows, int64_t cols);
bool tensor_is(const struct tensor *t, const char *formats);

/* p->scale of 16 or 32 bits becomes group or channel scales: sets out->bs, or checks it. */
enum err_code part_scale_format(struct work *w, const struct part *p);
/* The one number of t, a finite or infinite float, as p->factor; the inverse is rounded to f32. */
enum err_code part_factor(struct work *w, struct part *p, const struct tensor *t);

/* All scales of a part stored (rows, groups), blocks repeated where asked; and stored (groups,
 * rows). */
void put_scales(struct work *w, const struct part *p);
void put_scales_transposed(struct work *w, const struct part *p);
/* Zero point at (row of the part, group). */
void put_zero(struct work *w, const struct part *p, int64_t row, int64_t g, int stored);
/* A stored integer in two's complement as an offset-binary code. */
void put_signed(struct work *w, const struct part *p, int64_t row, int64_t l, int value);
/* `count` words of t: elements first, first + step, ... */
struct words {
    const struct tensor *t;
    int64_t first, step, count;
};
/* n codes of w->bits from words. */
void get_codes(struct work *w, const struct words *from, int64_t n, bool dense, uint8_t *out);
/* Rows of bytes with two 4-bit codes each, the low nibble first; or of one 8-bit code each. */
void put_codes(struct work *w, const struct part *p);

/* Words of n codes: dense as reference/pack.h, else 32 / bits codes a word. */
int64_t words_of(int64_t n, int bits, bool dense);

/* Rows of the table, by file. */
bool gptq_detect(const struct json *c);
enum err_code gptq_settings(struct work *w);
enum err_code gptq_shape(struct work *w, struct part *p);
enum err_code gptq_fill(struct work *w, const struct part *p);
bool awq_detect(const struct json *c);
enum err_code awq_settings(struct work *w);
enum err_code awq_shape(struct work *w, struct part *p);
enum err_code awq_fill(struct work *w, const struct part *p);
bool autoround_gptq_detect(const struct json *c);
bool autoround_awq_detect(const struct json *c);
enum err_code autoround_settings(struct work *w);
bool bitnet_detect(const struct json *c);
enum err_code bitnet_settings(struct work *w);
enum err_code bitnet_shape(struct work *w, struct part *p);
enum err_code bitnet_fill(struct work *w, const struct part *p);

bool fp8_detect(const struct json *c);
enum err_code fp8_settings(struct work *w);
enum err_code fp8_shape(struct work *w, struct part *p);
enum err_code float_fill(struct work *w, const struct part *p);
bool mxfp4_detect(const struct json *c);
enum err_code mxfp4_settings(struct work *w);
enum err_code mxfp4_shape(struct work *w, struct part *p);
enum err_code gpt_oss_shape(struct work *w, struct part *p);
bool modelopt_nvfp4_detect(const struct json *c);
enum err_code modelopt_nvfp4_settings(struct work *w);
enum err_code modelopt_nvfp4_shape(struct work *w, struct part *p);
bool modelopt_mxfp8_detect(const struct json *c);
enum err_code modelopt_mxfp8_settings(struct work *w);
enum err_code modelopt_mxfp8_shape(struct work *w, struct part *p);
/* Sizes of a matrix of two codes a byte (or F4) with one scale for `group` of them. */
enum err_code fp4_shape(struct work *w, struct part *p, const char *scale_formats, int64_t group);

bool ct_int_detect(const struct json *c);
enum err_code ct_int_settings(struct work *w);
enum err_code ct_int_shape(struct work *w, struct part *p);
enum err_code ct_int_fill(struct work *w, const struct part *p);
bool ct_float_detect(const struct json *c);
enum err_code ct_float_settings(struct work *w);
enum err_code ct_float_shape(struct work *w, struct part *p);
bool ct_pack_detect(const struct json *c);
enum err_code ct_pack_settings(struct work *w);
enum err_code ct_pack_shape(struct work *w, struct part *p);
enum err_code ct_pack_fill(struct work *w, const struct part *p);
bool ct_nvfp4_detect(const struct json *c);
enum err_code ct_nvfp4_settings(struct work *w);
enum err_code ct_nvfp4_shape(struct work *w, struct part *p);
bool ct_mxfp4_detect(const struct json *c);
enum err_code ct_mxfp4_settings(struct work *w);
/* The text of "format" of a compressed-tensors config; NULL: none. */
const char *ct_format(const struct json *c);

#endif
