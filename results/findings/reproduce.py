#!/usr/bin/env python3
"""Reproduces the findings of this folder with upstream alone: reproduce.py FOLDER [NAME...].

FOLDER holds the package `humming`. Needs PyTorch and a GPU of compute capability 9.0. Each finding
prints one line: what was seen, and "confirmed" or "not seen".
"""

import dataclasses
import json
import sys

sys.path.insert(0, sys.argv[1])
import torch
from humming import dtypes, ops
from humming.config import LayerConfig, TuningConfig
from humming.transform import process_fused_e8m0_scale, transform_humming_tensors
from humming.tune import get_heuristics_config


def layer(a, b, n, k, **more):
    c = more.pop("c", a if a in ("float16", "bfloat16") else "bfloat16")
    return LayerConfig(a_dtype=a, b_dtype=b, c_dtype=c, shape_n=n, shape_k=k, **more)


def weights(config, bits, group, seed=1):
    torch.manual_seed(seed)
    n, k = config.shape_n, config.shape_k
    words = torch.randint(-(2**31), 2**31 - 1, (n, k * bits // 32), dtype=torch.int32, device="cuda")
    scale = torch.rand((n, k // group if group else 1), device="cuda") / 64 + 1 / 64
    return transform_humming_tensors(config, {"weight": words, "weight_scale": scale.to(config.param_dtype)})


def launch(config, made, a, tuning=None, **more):
    compute = {"gemm_type": "dense"}
    return ops.humming_gemm(
        layer_config=config.to_str(),
        compute_config=json.dumps(compute),
        tuning_config=json.dumps(tuning) if tuning else None,
        inputs=a,
        locks=torch.zeros(1024, dtype=torch.int32, device="cuda"),
        **made,
        **more,
    )


def stream_k_repeats():
    config = layer("bfloat16", "uint4", 512, 4096, weight_scale_group_size=128)
    made = weights(config, 4, 128)
    a = torch.randn((513, 4096), device="cuda").to(torch.bfloat16)
    runs = [launch(config, made, a) for _ in range(8)]
    differ = max((runs[0].view(torch.int16) != r.view(torch.int16)).sum().item() for r in runs)
    return differ > 0, f"{differ} of {runs[0].numel()} outputs differ between equal launches"


def batch_invariant_refused():
    config = layer("bfloat16", "uint4", 512, 1024, weight_scale_group_size=128)
    tuning = get_heuristics_config(config, shape_m=17, use_batch_invariant=True)
    block, warp = tuning["block_shape"], tuning["warp_shape"]
    try:
        made = weights(config, 4, 128)
        ops.humming_gemm(
            layer_config=config.to_str(),
            compute_config=json.dumps({"gemm_type": "dense", "use_batch_invariant": True}),
            tuning_config=json.dumps(tuning),
            inputs=torch.randn((17, 1024), device="cuda").to(torch.bfloat16),
            locks=torch.zeros(1024, dtype=torch.int32, device="cuda"),
            **made,
        )
        return False, f"block {block} warp {warp} runs"
    except AssertionError as error:
        return True, f"block {block} warp {warp}: {error}"


def zero_point_of_unrounded_scale():
    torch.manual_seed(3)
    x = torch.rand((8, 256), device="cuda") * 3 - 1
    code, scale, zero = ops.quant_weight(x, "float32", "uint4", 128, True, True, True, True)
    s = torch.ldexp(torch.ones_like(zero), scale.view(torch.uint8).to(torch.int32) - 127)
    s, zero = s.repeat_interleave(128, 1), zero.repeat_interleave(128, 1)
    worst = ((code - zero) * s - x).abs().max() / s.max()
    return worst.item() > 0.6, f"dequantized values are off by up to {worst.item():.3f} steps (0.5 is the rounding)"


def no_scale_wraps():
    x = torch.full((1, 32), 65504.0, device="cuda", dtype=torch.float16)
    code, _, _ = ops.quant_weight(x, "float16", "float8e4m3", 32, False, False, False, False)
    value = code[0, 0].to(torch.uint8).view(torch.float8_e4m3fn).float().item()
    return value != 448.0, f"65504 becomes code {code[0, 0].item():#x} = {value}"


def minus_zero():
    words = torch.full((64, 32), 0x11111111 | -(2**31), dtype=torch.int32, device="cuda")
    scale = torch.full((64, 8), 127, dtype=torch.uint8, device="cuda")
    scale[:, ::2] = 100
    config = layer(
        "int8", "float4e2m1", 64, 256, bs_dtype="float8e8m0", weight_scale_group_size=32
    )
    made, _, _ = process_fused_e8m0_scale(config, words.clone(), scale.clone())
    nibbles = torch.stack([(made >> (4 * i)) & 15 for i in range(8)])
    count = (nibbles == 8).sum().item()
    return count > 0, f"{count} codes of -0 (8) out of weights that have none"


def small_f16_outputs():
    config = layer("float8e4m3", "uint4", 256, 512, c="float16", weight_scale_type="channel")
    words = torch.full((256, 64), -0x77777778, dtype=torch.int32, device="cuda")  # codes 8: zeros
    words[:, 0] = -0x77777770  # codes 0 and 9: -8 and 1
    scale = torch.ones((256, 1), device="cuda", dtype=torch.float16)
    made = transform_humming_tensors(config, {"weight": words, "weight_scale": scale})
    a = torch.zeros((1, 512), device="cuda")
    a[0, 0], a[0, 1] = -128, 1
    input_scale = torch.full((1, 1), 2.0**-16, device="cuda")
    out = launch(config, made, a.to(torch.float8_e4m3fn), input_scale=input_scale)
    value, right = out[0, 0].item(), 1025 * 2.0**-16
    return value != right, f"1025 x 2^-16 = {right}, a number of f16, becomes {value}"


def unchecked_locks():
    config = layer("bfloat16", "uint4", 2048, 4096, weight_scale_group_size=128)
    made = weights(config, 4, 128)
    a = torch.randn((8, 4096), device="cuda").to(torch.bfloat16)
    try:
        ops.humming_gemm(
            layer_config=config.to_str(),
            compute_config=json.dumps({"gemm_type": "dense"}),
            inputs=a,
            locks=torch.zeros(1, dtype=torch.int32, device="cuda"),
            **made,
        )
        torch.cuda.synchronize()
        return True, "one lock is accepted for a product of more tiles"
    except Exception as error:
        return False, f"refused: {str(error)[:80]}"


def packed(config, codes, groups=1):
    """Weights of these codes, all scales 1."""
    words = ops.pack_weight(codes.int().contiguous(), num_bits=config.b_dtype.num_bits)
    scale = torch.ones((config.shape_n, groups), device="cuda").to(config.param_dtype)
    return transform_humming_tensors(config, {"weight": words, "weight_scale": scale})


def ones(m):
    return torch.ones((m, 1), device="cuda")


def whole_numbers(m, k):
    torch.manual_seed(2)
    return torch.randint(-2, 3, (m, k), device="cuda")


def int4_copies():
    """All activations and weights are 1, so an output says how many of 512 products it has."""
    of_layer = {f.name for f in dataclasses.fields(LayerConfig)} & {"mma_type"}
    config = layer("int4", "int4", 128, 512, weight_scale_type="channel", **{name: "mma" for name in of_layer})
    tuning = {"block_shape": [16, 128, 512], "warp_shape": [16, 32, 128], "num_stages": 3}
    tuning |= {"use_stream_k": False, "use_warp_spec": False, "use_tma": True}
    if "mma_type" in {f.name for f in dataclasses.fields(TuningConfig)}:
        tuning["mma_type"] = "mma"
    made = packed(config, torch.full((128, 512), 9, device="cuda"))
    a = torch.full((16, 256), 0x11, dtype=torch.uint8, device="cuda")
    out = launch(config, made, a, tuning, input_scale=ones(16)).float()
    wrong, first = (out != 512).sum().item(), out[0, 0].item()
    return wrong > 0, f"{wrong} of {out.numel()} outputs are not 512, the first is {first:g}"


def two_bit_floats():
    config = layer("bfloat16", "float2e1m0", 256, 512, weight_scale_type="channel")
    torch.manual_seed(1)
    codes = torch.randint(0, 4, (256, 512), device="cuda")
    values = torch.tensor([0.0, 2, 0, -2], dtype=torch.float64, device="cuda")[codes]
    a = whole_numbers(16, 512)
    out = launch(config, packed(config, codes), a.bfloat16())
    differ = out.double() != (a.double() @ values.T).bfloat16().double()
    columns = sorted({n % 32 // 16 for n in differ.any(0).nonzero().view(-1).tolist()})
    text = f"{differ.sum()} of {out.numel()} outputs are wrong, in halves {columns} of 32 columns"
    return bool(columns), text


def odd_bits_packed_k():
    said, bad = [], 0
    for bits in (3, 4, 5):
        config = layer("float8e4m3", f"uint{bits}", 256, 512, weight_scale_group_size=128)
        torch.manual_seed(1)
        codes = torch.randint(0, 2**bits, (256, 512), device="cuda")
        a = whole_numbers(16, 512)
        made = packed(config, codes, 4)
        out = launch(config, made, a.float().to(torch.float8_e4m3fn), input_scale=ones(16))
        want = (a.double() @ (codes.double() - 2 ** (bits - 1)).T).bfloat16()
        wrong = (out.double() != want.double()).sum().item()
        bad += wrong
        layout = "packed-K" if getattr(config, "use_packed_k_layout", False) else "ordinary"
        said.append(f"{bits} bits, {layout} layout: {wrong} of {out.numel()} outputs are wrong")
    return bad > 0, "; ".join(said)


def e5m2_integers_f16():
    """All activations and weights are 1: 512 is right. Weights of column 0 are 0."""
    try:
        config = layer("float8e5m2", "uint4", 256, 512, c="float16", weight_scale_type="channel")
        codes = torch.full((256, 512), 9, device="cuda")
        codes[0] = 8
        a = torch.ones((16, 512), device="cuda").to(torch.float8_e5m2)
        out = launch(config, packed(config, codes), a, input_scale=ones(16))
    except ValueError as error:
        return False, f"refused: {str(error)[:80]}"
    zero, one = out[0, 0].item(), out[0, 1].item()
    return zero != 0 or one != 512, f"0 becomes {zero}, 512 becomes {one}"


FINDINGS = {
    "stream-k-repeats": stream_k_repeats,
    "batch-invariant-refused": batch_invariant_refused,
    "zero-point-of-unrounded-scale": zero_point_of_unrounded_scale,
    "no-scale-wraps": no_scale_wraps,
    "minus-zero": minus_zero,
    "small-f16-outputs": small_f16_outputs,
    "unchecked-locks": unchecked_locks,
    "int4-copies": int4_copies,
    "two-bit-floats": two_bit_floats,
    "odd-bits-packed-k": odd_bits_packed_k,
    "e5m2-integers-f16": e5m2_integers_f16,
}

for name in sys.argv[2:] or FINDINGS:
    try:
        seen, what = FINDINGS[name]()
        print(f"{name}: {'confirmed' if seen else 'not seen'}: {what}", flush=True)
    except Exception as error:
        print(f"{name}: could not run: {type(error).__name__}: {str(error)[:200]}", flush=True)
