"""candidate_shapes.py - shapes, tiles, copies and far offsets: as in candidate_cases.py."""

import time

import torch
from humming import ops
from humming.transform import transform_humming_tensors

from candidate_cases import SENTINEL, awaited, refused
from candidate_tools import (
    activations,
    gemm,
    layer,
    offsets,
    pow2,
    problem,
    tiles,
    transformed,
    value,
    wrong,
)


def ragged_shapes():
    """N that is no multiple of 64 and padded k, with and without bulk copies; guarded outputs."""
    bad, beyond, tried, said = 0, 0, 0, ""
    for a, b in (("bfloat16", "uint4"), ("float8e4m3", "uint4")):
        for n, k, tma in ((72, 1024, True), (200, 1024, True), (72, 960, True), (72, 1024, False)):
            group = 64 if k == 960 else 128
            p = problem(
                a, b, 33, n, k, group=group, pad_shape_n=-n % 128, pad_shape_k=-k % 128, live=20
            )
            room = torch.full((35, n), SENTINEL, dtype=torch.bfloat16, device="cuda")
            try:
                gemm(p.config, p.weights, p.a, tiles(p.config, use_tma=tma), outputs=room[1:34])
                torch.cuda.synchronize()
            except Exception as error:
                said = f"; n={n} k={k} tma={tma} " + refused(error)
                continue
            tried += 1
            bad += wrong(room[1:34], p.want())
            beyond += int((room[[0, 34]] != SENTINEL).sum())
    return bad + beyond > 0, f"{tried} shapes: {bad} outputs wrong, {beyond} written outside{said}"


PIPELINES = [
    {"num_stages": 2},
    {"num_stages": 5},
    {"use_cp_async": False},
    {"use_mbarrier": True},
    {"use_tma": True},
    {"use_tma": True, "use_warp_spec": True, "num_stages": 4},
    {"use_warp_spec": True, "num_stages": 4},
    {"use_tma": True, "use_tma_c": False},
    {"use_tma": True, "use_tma_b": False},
    {"num_write_splits": 2},
    {"use_tma": True, "use_warp_spec": True, "multi_cast_size_a": 2, "num_stages": 4},
    {"use_tma": True, "use_warp_spec": True, "multi_cast_size_b": 2, "num_stages": 4},
]


def pipelines(a):
    p = problem(a, "uint4", 130, 512, 1024)
    bad, tried, refusals, said, end = 0, 0, [], "", time.time() + 40
    for more in PIPELINES:
        if time.time() > end:
            said += "; the rest is left for want of time"
            break
        try:
            how = tiles(p.config, **more)
            made = [gemm(p.config, p.weights, p.a, how) for _ in range(5)]
        except Exception as error:
            refusals.append(f"{more}: {refused(error)[:60]}")
            continue
        if not awaited(8):
            return True, f"{more}: did not come back in 8 s"
        tried += 1
        count = sum(wrong(got, p.want()) for got in made)
        bad, said = bad + count, said + (f"; {more}: {count}" if count else "")
    text = f"{tried} of {len(PIPELINES)} pipelines, 5 launches each: {bad} outputs wrong{said}"
    return bad > 0, text + "".join(f"; not: {x}" for x in refusals)


def pipelines_16_bits():
    return pipelines("bfloat16")


def pipelines_8_bits():
    return pipelines("float8e4m3")


def grouped_copies():
    """Bulk copies of outputs need a new map for each expert."""
    bad, tried, counts = 0, 0, [9, 0, 70, 1, 64, 33]
    p = problem("bfloat16", "uint4", sum(counts), 512, 1024, experts=6)
    want = torch.cat([p.want(part, e) for e, part in enumerate(p.a.split(counts))])
    for more in ({"use_tma": True}, {"use_tma": True, "use_warp_spec": True, "num_stages": 4}):
        for _ in range(10):
            got = gemm(
                p.config,
                p.weights,
                p.a,
                tiles(p.config, **more),
                {"gemm_type": "grouped_contiguous"},
                expert_layout=offsets(counts),
            )
            bad, tried = bad + wrong(got, want), tried + got.numel()
    return bad > 0, f"{bad} of {tried} outputs of grouped products with bulk copies are wrong"


def sampled_fp4():
    """FP8 x FP4, e8m0 scales and a tensor scale, no bulk copies, M=1, N=K=1024."""
    bad, tried, said = 0, 0, ""
    config = layer(
        "float8e4m3", "float4e2m1", 1024, 1024, bs_dtype="float8e8m0", weight_scale_group_size=32
    )
    torch.manual_seed(9)
    codes = torch.randint(0, 16, (1024, 1024), device="cuda")
    scale = torch.randint(124, 130, (1024, 32), device="cuda").to(torch.uint8)
    weights = transformed(config, codes, scale.view(torch.float8_e8m0fnu))
    a = activations("float8e4m3", 1, 1024, 6)
    w = value("float4e2m1", codes) * pow2(scale.long() - 127).repeat_interleave(32, 1)
    want = (a.double() @ w.T).float().bfloat16()
    for stages in (3, 4, 6):
        for cp_async in (None, False):
            try:
                more = {} if cp_async is None else {"use_cp_async": cp_async}
                how = tiles(config, m=8, num_stages=stages, **more)
                made = [gemm(config, weights, a, how) for _ in range(20)]
                torch.cuda.synchronize()
            except Exception as error:
                said = "; " + refused(error)
                continue
            tried, bad = tried + 20, bad + sum(wrong(got, want) > 0 for got in made)
    return bad > 0 if tried else None, f"{bad} of {tried} launches are wrong{said}"


def narrow_packed_k():
    config = layer("float8e4m3", "uint4", 512, 1024, weight_scale_group_size=128)
    if not getattr(config, "use_packed_k_layout", False):
        return None, "this layer has no packed-K layout"
    p = problem("float8e4m3", "uint4", 17, 512, 1024)
    how = tiles(p.config) | {"block_shape": [64, 64, 128], "warp_shape": [64, 16, 128]}
    try:
        got = gemm(p.config, p.weights, p.a, how)
        return wrong(got, p.want()) > 0, f"warp_n 16 runs, {wrong(got, p.want())} outputs wrong"
    except AssertionError as error:
        return False, refused(error)
    except Exception as error:
        return True, f"accepted by the checks, then: {' '.join(str(error).split())[-110:]}"


def far_offsets():
    """Outputs and inputs of more than 2^31 elements."""
    bad, said = 0, []
    for m, n, k in ((70_000, 32_768, 64), (70_000, 128, 32_768)):
        p = problem("bfloat16", "uint4", 16, n, k, group=64, live=6)
        a = torch.zeros((m, k), dtype=torch.bfloat16, device="cuda")
        a[-16:] = p.a
        got = gemm(p.config, p.weights, a, tiles(p.config))
        count = wrong(got[-16:], p.want()) + int(got[: m - 16].count_nonzero())
        bad, said = bad + count, [*said, f"{max(m * n, m * k):.2e} elements: {count} wrong"]
        del got, a
    return bad > 0, "; ".join(said)


def last_expert(experts, bits, n, k):
    """A layer whose last expert alone has weights that are not 0: what they become, and products."""
    config = layer("float16", f"uint{bits}", n, k, num_experts=experts)
    alone = layer("float16", f"uint{bits}", n, k)
    torch.manual_seed(3)
    codes = torch.randint(0, 2**bits, (n, k), dtype=torch.int32, device="cuda")
    words = torch.zeros((experts, n, k * bits // 32), dtype=torch.int32, device="cuda")
    words[-1] = ops.pack_weight(codes, num_bits=bits)
    scale = torch.ones((experts, n, 1), dtype=torch.float16, device="cuda")
    one = transform_humming_tensors(alone, {"weight": words[-1].clone(), "weight_scale": scale[-1]})
    weights = transform_humming_tensors(config, {"weight": words, "weight_scale": scale})
    differ = int((weights["weight"][-1] != one["weight"]).sum())
    a = activations("float16", 16, k, 6)
    more = {"expert_layout": offsets([0] * (experts - 1) + [16])}
    got = gemm(config, weights, a, tiles(config), {"gemm_type": "grouped_contiguous"}, **more)
    rows = torch.nonzero(a.float().abs().sum(0)).view(-1)
    want = (a[:, rows].double() @ (codes[:, rows].double() - 2 ** (bits - 1)).T).half()
    bad = wrong(got, want)
    text = (
        f"{words.numel():.3e} words: {differ} of {one['weight'].numel()} of the last expert differ"
    )
    return (
        differ + bad > 0,
        f"{text} from transforming it alone, {bad} of {got.numel()} outputs wrong",
    )


def far_weights():
    """Weights of more than 2^32 words."""
    few = last_expert(3, 4, 16_384, 32_768)
    many = last_expert(65, 4, 16_384, 32_768)
    torch.cuda.empty_cache()  # 50 GB, which others may want
    return many[0], f"{many[1]}; 3 experts: {few[1]}"


def expert_stride():
    """One expert's weights of 2^32 bits: the distance to the next, computed in 32 bits, is 0."""
    return last_expert(2, 8, 16_384, 32_768)
