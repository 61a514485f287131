"""candidate_numbers.py - scales and formats: one function a candidate, as in
candidate_cases.py.
"""

import torch
from humming import ops
from humming.transform import process_fused_e8m0_scale

from candidate_tools import (
    TORCH,
    activations,
    gemm,
    layer,
    near,
    offsets,
    pow2,
    problem,
    tiles,
    transformed,
    value,
    wrong,
)

FUSED_RANGE = {"int8": 3, "float8e4m3": 11}


# ---- bias and partial sums ----


def bias_under_f16():
    """f16 accumulators: the bias must be added once, with and without channel scales."""
    said, bad, tried = [], 0, 0
    for a in ("float16", "float8e4m3"):
        for group in (128, 0):
            for mma in ("mma", "wgmma"):
                more = {} if mma == "wgmma" else {"use_packed_k_layout": False}
                p = problem(
                    a,
                    "uint4",
                    33,
                    256,
                    1024,
                    group,
                    live=3,
                    bias=True,
                    mma=mma,
                    c="float16",
                    **more,
                )
                how = tiles(p.config, mma)
                try:
                    got = gemm(p.config, p.weights, p.a, how, {"use_f16_accum": True})
                except AssertionError as error:
                    said.append(f"{a} {mma} group {group} is refused: {str(error)[:60]}")
                    continue
                tried += 1
                count = wrong(got, p.want())
                bad += count
                if count:
                    there = p.bias != 0
                    times = (got.double() - p.want().double() + p.bias.double())[:, there]
                    times = (times / p.bias[there].double()).median().item()
                    said.append(f"{a} {mma} group {group}: {count} wrong, bias {times:g} times")
    text = "; ".join([f"{tried} of 8 ran, {bad} outputs wrong", *said])
    return bad > 0 if tried else None, text


def bias_under_stream_k():
    bad, total = 0, 0
    for a in ("bfloat16", "float8e4m3"):
        for group in (128, 0):
            p = problem(a, "uint4", 17, 512, 4096, group, live=3, bias=True)
            for _ in range(20):
                got = gemm(p.config, p.weights, p.a, tiles(p.config, m=16, use_stream_k=True))
                bad, total = bad + wrong(got, p.want()), total + got.numel()
    return bad > 0, f"{bad} of {total} outputs are wrong"


def precision_under_stream_k():
    torch.manual_seed(4)
    p = problem("bfloat16", "uint4", 8, 512, 8192)
    a = torch.randn((8, 8192), device="cuda").bfloat16()
    want = a.double() @ p.w.T
    errors = []
    for stream_k in (False, True):
        got = gemm(p.config, p.weights, a, tiles(p.config, m=16, use_stream_k=stream_k))
        errors.append(
            (got.double() - want).pow(2).mean().sqrt().item() / want.pow(2).mean().sqrt().item()
        )
    return (
        errors[1] > 1.2 * errors[0],
        f"relative error {errors[0]:.5f} without, {errors[1]:.5f} with Stream-K (tolerance passes: {near(got, want)})",
    )


# ---- integer scales ----


def shared_int_scale():
    """One factor for the scales of all experts: what becomes of an expert with small ones?"""
    config = layer(
        "int8",
        "uint4",
        256,
        1024,
        num_experts=2,
        weight_scale_group_size=128,
        weight_scale_group_size_n=1,
    )
    if not config.use_int_weight_scale:
        return None, "no integer scales here"
    torch.manual_seed(6)
    codes = torch.randint(0, 16, (2, 256, 1024), device="cuda")
    scale = torch.rand((2, 256, 8), device="cuda") * 0.5 + 0.5
    scale[1] /= 4096
    scale = scale.bfloat16()
    weights = transformed(config, codes, scale)
    a = activations("int8", 32, 1024)
    got = gemm(
        config,
        weights,
        a,
        tiles(config),
        {"gemm_type": "grouped_contiguous"},
        expert_layout=offsets([16, 16]),
    )
    w = value("uint4", codes) * scale.double().repeat_interleave(128, -1)
    want = torch.cat([a[:16].double() @ w[0].T, a[16:].double() @ w[1].T])
    error = [
        ((got.double() - want)[s].norm() / want[s].norm()).item()
        for s in (slice(16), slice(16, 32))
    ]
    zero = int((got[16:] == 0).sum())
    return (
        error[1] > 0.02,
        f"relative error {error[0]:.4f} and, scales 4096 times smaller, {error[1]:.4f} ({zero} of {got[16:].numel()} outputs are 0; tolerance passes: {near(got, want)})",
    )


def int_sums_wrap():
    """int32 sums of int16 scale x int32 product: constant rows, then activations of one sign."""
    said, seen = [], False
    for b, k in (("uint4", 4096), ("uint4", 8192), ("uint7", 1024)):
        config = layer(
            "int8",
            b,
            256,
            k,
            weight_scale_group_size=128,
            weight_scale_group_size_n=1,
            use_packed_k_layout=False,
        )
        if not config.use_int_weight_scale:
            return None, "no integer scales here"
        torch.manual_seed(8)
        half = 2 ** (config.b_dtype.num_bits - 1)
        plain = torch.randn((256, k), device="cuda") * half / 6 + half / 3
        weights_of = {
            "constant": torch.zeros((256, k), dtype=torch.int64, device="cuda"),
            "one-sided": (plain.round() + half).clamp(0, 2 * half - 1).long(),
        }
        rows_of = {
            "constant": torch.full((8, k), 127.0, device="cuda"),
            "one-sided": (torch.rand((8, k), device="cuda") * 127).round(),
        }
        for name, codes in weights_of.items():
            scale = torch.full((256, k // 128), 1 / 64, device="cuda").bfloat16()
            a = rows_of[name].to(torch.int8)
            got = gemm(config, transformed(config, codes, scale), a, tiles(config))
            want = (a.double() @ value(b, codes).T / 64).float().bfloat16()
            off = int((~torch.isclose(got.float(), want.float(), rtol=0.05, atol=0.1)).sum())
            seen = seen or off > 0
            said.append(
                f"{b} k={k} {name}: {off} of {got.numel()} far off (first {got[0, 0].item():.6g}, right {want[0, 0].item():.6g})"
            )
    return seen, "; ".join(said)


# ---- codes that tests leave out ----


def nan_code_weights():
    """e4m3 code 0x7F as a weight: 480 by upstream's own decoder."""
    said, values = [], []
    own = ops.dequant_weight(torch.tensor([[0x7F]], dtype=torch.int32, device="cuda"), 4, 3, True)
    for a in ("bfloat16", "float16", "float8e4m3"):
        config = layer(a, "float8e4m3", 256, 1024)
        codes = torch.full((256, 1024), 0x7F, device="cuda")
        weights = transformed(
            config, codes, torch.ones((256, 1), device="cuda").to(config.param_dtype)
        )
        x = torch.zeros((16, 1024), device="cuda")
        x[:, 0] = 1
        values.append(gemm(config, weights, x.to(TORCH[a]), tiles(config))[0, 0].item())
        said.append(f"{a}: {values[-1]}")
    return any(
        v != own.item() for v in values
    ), f"upstream's decoder: {own.item()}; kernels: {', '.join(said)}"


def extreme_e8m0_codes():
    """Codes 0, 1, 254, 255 of e8m0 group scales under bf16 activations: 2^-127 to 2^127, NaN."""
    config = layer(
        "bfloat16", "float4e2m1", 256, 1024, bs_dtype="float8e8m0", weight_scale_group_size=32
    )
    codes = torch.full((256, 1024), 2, device="cuda")  # 1.0
    scale = torch.full((256, 32), 127, dtype=torch.uint8, device="cuda")
    for row, code in enumerate((0, 1, 254, 255)):
        scale[row] = code
    weights = transformed(config, codes, scale.view(torch.float8_e8m0fnu))
    x = torch.zeros((16, 1024), device="cuda", dtype=torch.bfloat16)
    x[:, 0] = 1
    got = gemm(config, weights, x, tiles(config))[0, :4].float().tolist()
    right = [2.0**-127, 2.0**-126, 2.0**127]
    seen = got[:3] != right or got[3] == got[3]
    return seen, f"codes 0, 1, 254, 255 read {got}; right are {right}, NaN"


def zero_scales():
    bad, total = 0, 0
    for a in ("bfloat16", "float8e4m3", "int8"):
        for group in (128, 0):
            more = {"weight_scale_group_size_n": 1} if a == "int8" and group else {}
            config = layer(a, "uint4", 256, 1024, weight_scale_group_size=group, **more)
            torch.manual_seed(2)
            codes = torch.randint(0, 16, (256, 1024), device="cuda")
            scale = torch.ones((256, 1024 // group if group else 1), device="cuda")
            scale[::2] = 0
            scale[1, 1:] = 0
            x = activations(a, 33, 1024, 20)
            got = gemm(config, transformed(config, codes, scale.bfloat16()), x, tiles(config))
            w = value("uint4", codes) * scale.double().repeat_interleave(1024 // scale.size(1), 1)
            bad += wrong(got, (x.double() @ w.T).float().bfloat16())
            total += got.numel()
    return bad > 0, f"{bad} of {total} outputs are wrong where scales are 0"


# ---- fused e8m0 ----


def requantized(codes, delta):
    """The rule of process_mxfp4: value x 2^-delta, nearest e2m1, ties away from zero, no -0."""
    grid = value("float4e2m1", torch.arange(8, device="cuda"))
    size = value("float4e2m1", codes & 7) * pow2(-delta)
    near_ = (size.unsqueeze(-1) - grid).abs()
    best = near_.min(-1, keepdim=True).values
    pick = torch.where(near_ == best, torch.arange(8, device="cuda"), -1).amax(-1)
    return torch.where(codes >= 8, -grid[pick], grid[pick])


def read_weights(a, mma, codes, scale):
    n, k = codes.shape
    config = layer(a, "float4e2m1", n, k, mma, bs_dtype="float8e8m0", weight_scale_group_size=32)
    weights = transformed(config, codes, scale.to(torch.uint8).view(torch.float8_e8m0fnu))
    one = torch.eye(k, device="cuda").to(TORCH[a])
    return gemm(config, weights, one, tiles(config, mma)).double().T


def fused_spread():
    """Weights read back one k at a time; scales alternate 127 and 127 - spread."""
    said, seen = [], False
    torch.manual_seed(1)
    codes = torch.randint(0, 16, (256, 512), device="cuda")
    for a, limit in FUSED_RANGE.items():
        for mma in ("mma", "wgmma"):
            counts = []
            for spread in (limit, limit + 1, limit + 2, limit + 4):
                scale = torch.full((256, 16), 127, device="cuda")
                scale[:, 1::2] -= spread
                lost = (127 - limit - scale).clamp(min=0).repeat_interleave(32, 1)
                factor = pow2(scale - 127).repeat_interleave(32, 1)
                rule = requantized(codes, lost) * factor * pow2(lost)
                got = read_weights(a, mma, codes, scale)
                off, real = int((got != rule).sum()), value("float4e2m1", codes) * factor
                counts.append(f"+{spread - limit}: {off}")
                seen = seen or off > 0
                if off:
                    counts[-1] += (
                        f" (worst {(got - rule).abs().max().item():.4g}, tolerance passes: {near(got, real)})"
                    )
            said.append(f"{a} {mma} beyond range {limit} by {', '.join(counts)}")
    return seen, f"weights of {codes.numel()} that differ from the rule: " + "; ".join(said)


def fused_far_spread():
    """Groups of zeros of scale code 0, beside groups 127 and 128 binades beyond the range: are they 0?"""
    said, seen = [], False
    for a, limit in FUSED_RANGE.items():
        for spread in (limit + 127, limit + 128):
            scale = torch.zeros((256, 16), dtype=torch.int64, device="cuda")
            scale[:, ::2] = spread
            codes = torch.where(scale > 0, 2, 0).repeat_interleave(32, 1)  # 1.0 and 0
            got = read_weights(a, "wgmma", codes, scale)[codes == 0]
            bad = int((got != 0).sum())
            said.append(f"{a} code {spread}: {bad} of {got.numel()}, first {got[0].item():g}")
            seen = seen or bad > 0
    return seen, f"zeros that are read as something else beside scales of {'; '.join(said)}"


def fused_padding():
    """Padded rows have scale 1.0, which takes part in the range of the real ones."""
    said, seen = [], False
    torch.manual_seed(1)
    for a in FUSED_RANGE:
        codes = torch.randint(0, 16, (72, 256), device="cuda")
        scale = torch.randint(100, 104, (72, 8), device="cuda")
        config = layer(
            a,
            "float4e2m1",
            128,
            256,
            bs_dtype="float8e8m0",
            weight_scale_group_size=32,
            pad_shape_n=56,
        )
        weights = transformed(config, codes, scale.to(torch.uint8).view(torch.float8_e8m0fnu))
        x = activations(a, 32, 256)
        # a large input scale, so that the right outputs are of ordinary size
        got = gemm(
            config,
            weights,
            x,
            tiles(config),
            input_scale=torch.full((32, 1), 2.0**26, device="cuda"),
        )
        w = value("float4e2m1", codes) * pow2(scale - 127).repeat_interleave(32, 1)
        want = x.double() @ w.T * 2.0**26
        error = ((got.double() - want).norm() / want.norm()).item()
        seen = seen or not error < 0.01
        said.append(
            f"{a}: relative error {error:.3f}, {int((got == 0).sum())} of {got.numel()} outputs 0 (tolerance passes: {near(got, want)})"
        )
    return seen, "n 72 padded to 128, scale codes 100 to 103: " + "; ".join(said)


def fused_factor():
    """The common power of two is computed as 2 ** x on the device: is it one?"""
    bad, worst = 0, 0.0
    config = layer(
        "float8e4m3", "float4e2m1", 64, 64, bs_dtype="float8e8m0", weight_scale_group_size=32
    )
    for code in range(2, 255):
        scale = torch.full((64, 2), code, dtype=torch.uint8, device="cuda")
        words = torch.zeros((64, 8), dtype=torch.int32, device="cuda")
        factor = process_fused_e8m0_scale(config, words, scale)[2]
        right = 2.0 ** (code - 128)
        off = abs(factor.flatten()[0].item() / right - 1)
        bad, worst = bad + (off != 0), max(worst, off)
    return bad > 0, f"{bad} of 253 factors are no power of two, by up to {worst:.2e}"


# ---- sums and checkpoints ----


def tiny_groups():
    """Groups so small that their e4m3 scale rounds to 0, with zeros between: what they decode to."""
    x = torch.zeros((4, 256), device="cuda").half()
    x[:, ::2] = 0.25
    if hasattr(ops, "process_input"):
        made, scale, _ = ops.process_input(
            x,
            quant_mode="dynamic_group",
            quant_dtype="float8e4m3",
            quant_group_size=128,
            group_scale_dtype="float8e4m3",
        )
    else:
        made, scale = ops.quant_input(x, "float8e4m3", group_size=128, scale_dtype="float8e4m3")
    # 0.1.19 packs four groups a word, the last one with bytes that belong to none
    scale = scale.view(torch.float8_e4m3fn)[:, : x.size(1) // 128]
    real = made.float() * scale.float().repeat_interleave(128, 1)
    nan, small = int(real.isnan().sum()), int((real[:, ::2] == 0).sum())
    text = f"of {x.numel()} inputs, half 0 and half 0.25, {nan} decode to NaN and {small} of 0.25 to 0"
    return nan + small > 0, text + f" (scale {scale[0, 0].item():g})"


def sum_of_expert_minus_one():
    if not hasattr(ops, "moe_fused_mul_sum"):
        return None, "this version has no moe_fused_mul_sum"
    x = torch.ones((4, 2, 256), device="cuda", dtype=torch.bfloat16)
    weights = torch.ones((4, 2), device="cuda")
    ids = torch.tensor([[0, -1]] * 4, dtype=torch.int32, device="cuda")
    made = []
    for before in (0, -1):
        room = torch.tensor([before, 0, 1, 2, 3], dtype=torch.int32, device="cuda")
        made.append(
            ops.moe_fused_mul_sum(x, weights, topk_ids=ids, expert_map=room[1:])[0, 0].item()
        )
    return made[0] != made[
        1
    ], f"an id of -1 reads the map before its start: {made[0]} or {made[1]}, as the memory there is"
