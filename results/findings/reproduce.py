#!/usr/bin/env python3
"""Reproduces the findings of this folder with upstream alone: reproduce.py FOLDER [NAME...].

FOLDER holds the package `humming`. Needs PyTorch and a GPU of compute capability 9.0. Each finding
prints one line: what was seen, and "confirmed" or "not seen".
"""

import json
import sys

sys.path.insert(0, sys.argv[1])
import torch
from humming import dtypes, ops
from humming.config import LayerConfig
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
    config = layer("float8e4m3", "uint4", 128, 256, c="float16", weight_scale_type="channel")
    words = torch.full((128, 32), -0x77777778, dtype=torch.int32, device="cuda")  # codes 8: zeros
    words[:, 0] = -0x77777770  # codes 0 and 9: -8 and 1
    scale = torch.ones((128, 1), device="cuda", dtype=torch.float16)
    made = transform_humming_tensors(config, {"weight": words, "weight_scale": scale})
    a = torch.zeros((1, 256), device="cuda")
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


FINDINGS = {
    "stream-k-repeats": stream_k_repeats,
    "batch-invariant-refused": batch_invariant_refused,
    "zero-point-of-unrounded-scale": zero_point_of_unrounded_scale,
    "no-scale-wraps": no_scale_wraps,
    "minus-zero": minus_zero,
    "small-f16-outputs": small_f16_outputs,
    "unchecked-locks": unchecked_locks,
}

for name in sys.argv[2:] or FINDINGS:
    try:
        seen, what = FINDINGS[name]()
        print(f"{name}: {'confirmed' if seen else 'not seen'}: {what}", flush=True)
    except Exception as error:
        print(f"{name}: could not run: {type(error).__name__}: {str(error)[:200]}", flush=True)
