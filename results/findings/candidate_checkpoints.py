"""candidate_checkpoints.py - what upstream's readers make of tensors of checkpoints."""

import dataclasses

import torch
from candidate_tools import E2M1, activations, gemm, layer, pow2, tiles, wrong
from humming.transform import transform_humming_tensors


def convert(schema, tensors, n, k):
    return schema.convert_humming(tensors, [n], [k], torch.bfloat16)


def gptq_zero_points():
    from humming.schema import GPTQWeightSchema

    schema = GPTQWeightSchema(bits=4, group_size=128, sym=False)
    tensors = {
        "qweight": torch.zeros((32, 64), dtype=torch.int32, device="cuda"),
        "scales": torch.ones((2, 64), dtype=torch.bfloat16, device="cuda"),
        "qzeros": torch.full((2, 8), 0x77777777, dtype=torch.int32, device="cuda"),
        "g_idx": torch.arange(256, dtype=torch.int32, device="cuda") // 128,
    }
    _, made = convert(schema, tensors, 64, 256)
    zero = int(made["zero_point"].flatten()[0]) & 15
    return zero == 7, f"a stored 7, which the first format of GPTQ means as 8, becomes {zero}"


def fp8_block_scales():
    from humming.schema import Fp8WeightSchema

    names = {f.name for f in dataclasses.fields(Fp8WeightSchema)}
    block = {"weight_block_size": [128, 128]} if "weight_block_size" in names else {}
    schema = Fp8WeightSchema(**block)
    scale = torch.full((2, 2), 1 + 2**-12, device="cuda")
    tensors = {
        "weight": torch.zeros((256, 256), device="cuda").to(torch.float8_e4m3fn),
        "weight_scale_inv": scale,
    }
    made_schema, made = convert(schema, tensors, 256, 256)
    kept = made["weight_scale"].float().flatten()[0].item()
    return (
        kept != scale[0, 0].item(),
        f"block scale {scale[0, 0].item():.7f} (f32) becomes {kept:.7f} ({made['weight_scale'].dtype}, {made_schema.weight_scale_type})",
    )


def modelopt_shape():
    import humming.schema.modelopt as modelopt

    said, seen = [], False
    for name in dir(modelopt):
        if name not in ("ModeloptNvfp4WeightSchema", "ModeloptMxfp8WeightSchema"):
            continue
        try:
            tensors = {"weight": torch.zeros((64, 128), dtype=torch.uint8)}
            said.append(f"{name}: {getattr(modelopt, name).infer_shape(None, tensors)[:2]}")
        except Exception as error:
            seen = True
            said.append(f"{name}: {type(error).__name__}: {str(error)[:60]}")
    return seen, "; ".join(said) or "no class found"


AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]  # the column that stands at place i of a word (AutoAWQ)


def awq_words(codes):
    """Codes of 4 bits, eight columns a word, in AWQ's order."""
    columns = codes.view(codes.size(0), -1, 8)[..., AWQ_ORDER].long()
    words = sum(columns[..., i] << 4 * i for i in range(8))
    return torch.where(words >= 2**31, words - 2**32, words).int()


def product(config, tensors, w, m=16):
    """How many outputs of a product with the tensors that a reader made differ from a w."""
    a = activations("bfloat16", m, config.shape_k, live=16)
    made = transform_humming_tensors(config, dict(tensors))
    got = gemm(config, made, a, tiles(config, m=16))
    return wrong(got, (a.double() @ w.double().T).float().to(torch.bfloat16)), got.numel()


def awq_order():
    from humming.schema import AWQWeightSchema

    n, k, group = 256, 512, 128
    torch.manual_seed(3)
    codes = torch.randint(0, 16, (k, n), device="cuda")
    zeros = torch.randint(0, 16, (k // group, n), device="cuda")
    scale = pow2(torch.randint(-1, 2, (k // group, n), device="cuda"))
    tensors = {
        "qweight": awq_words(codes),
        "qzeros": awq_words(zeros),
        "scales": scale.to(torch.bfloat16),
    }
    _, made = convert(AWQWeightSchema(bits=4, group_size=group), tensors, n, k)
    config = layer("bfloat16", "uint4", n, k, weight_scale_group_size=group, has_zero_point=True)
    w = (codes - zeros.repeat_interleave(group, 0)) * scale.repeat_interleave(group, 0)
    bad, count = product(config, made, w.T)
    return bad > 0, f"{bad} of {count} outputs are wrong with codes and zero points in AWQ's order"


def nvfp4_global_scale():
    """One second scale for a tensor; two for the parts of a merged layer, along n and along k."""
    from humming.schema.modelopt import ModeloptNvfp4WeightSchema

    n, k = 256, 512
    torch.manual_seed(4)
    codes = torch.randint(0, 16, (n, k), device="cuda")
    packed = (codes[:, ::2] | codes[:, 1::2] << 4).to(torch.uint8)
    scale = pow2(torch.randint(-1, 2, (n, k // 16), device="cuda"))
    table = torch.tensor(E2M1 + [-x for x in E2M1], dtype=torch.float64, device="cuda")
    w = table[codes] * scale.repeat_interleave(16, 1)
    half = torch.ones((n, k), dtype=torch.float64, device="cuda")
    by_rows, by_columns = half.clone(), half.clone()
    by_rows[: n // 2] = by_columns[:, : k // 2] = 0.25
    parts = {
        "one": ([n], [k], [0.25], 0.25 * half),
        "rows": ([n // 2, n // 2], [k], [0.25, 1.0], by_rows),
        "columns": ([n], [k // 2, k // 2], [0.25, 1.0], by_columns),
    }
    said, seen = [], False
    for name, (ns, ks, second, factor) in parts.items():
        tensors = {
            "weight": packed.clone(),
            "weight_scale": scale.float().to(torch.float8_e4m3fn),
            "weight_scale_2": torch.tensor(second, device="cuda"),
        }
        try:
            schema, made = ModeloptNvfp4WeightSchema(quant_algo="nvfp4").convert_humming(
                tensors, ns, ks, torch.bfloat16
            )
        except RuntimeError as error:
            seen = True
            said.append(f"{name}: refused: {str(error)[:60]}")
            continue
        kept = {"weight_scale_group_size": 16, "weight_scale_2_type": schema.weight_scale_2_type}
        if schema.bs_dtype is not None:
            kept["bs_dtype"] = schema.bs_dtype
        bad, count = product(layer("bfloat16", "float4e2m1", n, k, **kept), made, w * factor)
        seen |= bad > 0
        second_type = getattr(schema.weight_scale_2_type, "value", schema.weight_scale_2_type)
        said.append(f"{name} (second scale: {second_type}): {bad} of {count} outputs wrong")
    return seen, "; ".join(said)
