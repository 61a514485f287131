"""candidate_cases.py - launches, rows and shapes: one function a candidate, named in candidates.py.

Each returns (seen, text): True if the fault shows, False if not, None if this version cannot have it.
"""

import time

import torch

from candidate_tools import (
    activations,
    gemm,
    layer,
    near,
    offsets,
    problem,
    routed,
    tiles,
    wrong,
)

SENTINEL = -123.0
STREAM_K = {"m": 16, "use_stream_k": True}


def refused(error):
    return f"refused: {' '.join(str(error).split())[:110]}"


# ---- locks and streams ----


def locks_reused():
    p = problem("bfloat16", "uint4", 17, 512, 4096, live=6)
    locks, bad = torch.zeros(4096, dtype=torch.int32, device="cuda"), 0
    for _ in range(100):
        bad += wrong(
            gemm(p.config, p.weights, p.a, tiles(p.config, **STREAM_K), locks=locks), p.want()
        )
    left = int(locks.count_nonzero())
    return (
        bad + left > 0,
        f"{bad} wrong outputs in 100 launches with the same locks, {left} locks not 0",
    )


def awaited(seconds):
    """Waits for the device without hanging: False if it is still busy."""
    done = torch.cuda.Event()
    done.record()
    end = time.time() + seconds
    while not done.query():
        if time.time() > end:
            return False
        time.sleep(0.01)
    return True


def poisoned(fill, count):
    p = problem("bfloat16", "uint4", 8, 2048, 4096, live=6)
    gemm(p.config, p.weights, p.a, tiles(p.config, **STREAM_K))
    torch.cuda.synchronize()
    locks = torch.full((count,), fill, dtype=torch.int32, device="cuda")
    got = gemm(p.config, p.weights, p.a, tiles(p.config, **STREAM_K), locks=locks)
    if not awaited(8):
        return True, "the launch did not come back in 8 s"
    bad = wrong(got, p.want())
    return (
        bad > 0,
        f"{bad} of {got.numel()} outputs are wrong, {int(locks.count_nonzero())} locks not 0",
    )


def locks_poisoned():
    return poisoned(7, 4096)


def locks_too_few():
    try:
        seen, text = poisoned(0, 1)
        return True, f"one lock is accepted; {text}"
    except Exception as error:
        return False, refused(error)


def two_streams(shared):
    p = problem("bfloat16", "uint4", 17, 512, 4096, live=6)
    how = tiles(p.config, **STREAM_K)
    gemm(p.config, p.weights, p.a, how)
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream() for _ in range(2)]
    locks = [torch.zeros(4096, dtype=torch.int32, device="cuda") for _ in streams]
    made = []
    torch.cuda.synchronize()
    for _ in range(40):
        for i, stream in enumerate(streams):
            with torch.cuda.stream(stream):
                made.append(gemm(p.config, p.weights, p.a, how, locks=locks[0 if shared else i]))
    for stream in streams:
        torch.cuda.current_stream().wait_stream(stream)
    if not awaited(8):
        return True, "80 launches on two streams did not come back in 8 s"
    bad = sum(wrong(got, p.want()) > 0 for got in made)
    return bad > 0, f"{bad} of 80 launches on two streams are wrong"


def streams_with_own_locks():
    return two_streams(False)


def streams_with_shared_locks():
    return two_streams(True)


def other_stream():
    """The launch must wait for what its own stream does before it."""
    p = problem("bfloat16", "uint4", 33, 256, 1024, live=6)
    gemm(p.config, p.weights, p.a, tiles(p.config))
    a = torch.zeros_like(p.a)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(100_000_000)
        a.copy_(p.a)
        got = gemm(p.config, p.weights, a, tiles(p.config))
    stream.synchronize()
    bad = wrong(got, p.want())
    return bad > 0, f"{bad} of {got.numel()} outputs were made before their inputs"


def graph_replay():
    """Other inputs and other expert offsets between replays of one CUDA graph."""
    bad, total = 0, 0
    for counts in (None, [9, 0, 20, 4]):
        experts = 4 if counts else 0
        p = problem("bfloat16", "uint4", 33, 256, 1024, live=6, experts=experts)
        a, more, compute = p.a.clone(), {}, None
        if counts:
            more["expert_layout"] = offsets(counts)
            compute = {"gemm_type": "grouped_contiguous"}
        out = torch.zeros((33, 256), dtype=p.config.param_dtype, device="cuda")
        locks = torch.zeros(4096, dtype=torch.int32, device="cuda")
        how = tiles(p.config)
        gemm(p.config, p.weights, a, how, compute, locks, outputs=out, **more)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            gemm(p.config, p.weights, a, how, compute, locks, outputs=out, **more)
        for seed, now in ((11, [0, 33, 0, 0]), (12, [5, 6, 7, 15])):
            a.copy_(activations("bfloat16", 33, 1024, 6, seed))
            if counts:
                more["expert_layout"].copy_(offsets(now))
            graph.replay()
            want = torch.cat(
                [p.want(part, e) for e, part in enumerate(a.split(now))] if counts else [p.want(a)]
            )
            bad, total = bad + wrong(out, want), total + out.numel()
    return bad > 0, f"{bad} of {total} outputs of replays are wrong"


# ---- rows and arguments ----


def no_rows():
    p = problem("bfloat16", "uint4", 33, 256, 1024)
    try:
        got = gemm(p.config, p.weights, p.a[:0], tiles(p.config))
        torch.cuda.synchronize()
        return False, f"M = 0 returns shape {tuple(got.shape)}"
    except Exception as error:
        return True, refused(error)


def strided_inputs():
    p = problem("bfloat16", "uint4", 33, 256, 1024)
    wide = torch.zeros((33, 2048), dtype=torch.bfloat16, device="cuda")
    wide[:, :1024], every = p.a, torch.zeros((66, 1024), dtype=torch.bfloat16, device="cuda")
    every[::2] = p.a
    bad = sum(
        wrong(gemm(p.config, p.weights, a, tiles(p.config)), p.want())
        for a in (wide[:, :1024], every[::2])
    )
    out = torch.full((33, 512), SENTINEL, dtype=torch.bfloat16, device="cuda")
    try:
        gemm(p.config, p.weights, p.a, tiles(p.config), outputs=out[:, :256])
        text = "strided outputs are accepted"
        bad += wrong(out[:, :256], p.want())
    except Exception as error:
        text = "strided outputs are " + refused(error)[:60]
    return bad > 0, f"{bad} outputs wrong with strided inputs; {text}"


def other_dtype():
    p = problem("bfloat16", "uint4", 33, 256, 1024)
    try:
        gemm(p.config, p.weights, p.a.half(), tiles(p.config))
        return True, "f16 inputs are accepted for a bf16 layer"
    except Exception as error:
        return False, refused(error)


def experts_problem(m=32, experts=4, top_k=1):
    p = problem("bfloat16", "uint4", m, 256, 1024, live=6, experts=experts)
    ids = torch.randint(0, experts, (m, top_k), device="cuda")
    return p, ids


def indexed_want(p, ids):
    flat = ids.reshape(-1)
    a = p.a.repeat_interleave(ids.size(1), 0)
    want = torch.zeros((len(flat), p.w.size(-2)), dtype=p.config.param_dtype, device="cuda")
    for e in range(p.w.size(0)):
        want[flat == e] = p.want(a[flat == e], e)
    return want


def indexed(p, more, top_k=1, m=16, out=None, **extra):
    return gemm(
        p.config,
        p.weights,
        p.a,
        extra.pop("tuning", tiles(p.config, m=m)),
        {"gemm_type": "indexed"},
        top_k=top_k,
        outputs=out,
        **more,
        **extra,
    )


def expert_minus_one():
    """The weights before expert 0 are there: does expert -1 read them?"""
    p, ids = experts_problem(16, 4)
    more = routed(torch.zeros((16, 1), dtype=torch.int64, device="cuda"), 3, 16)
    more["expert_ids"] -= 1
    tail = {name: t[1:] for name, t in p.weights.items()}
    config = layer("bfloat16", "uint4", 256, 1024, num_experts=3, weight_scale_group_size=128)
    out = torch.full((16, 256), SENTINEL, dtype=torch.bfloat16, device="cuda")
    try:
        gemm(config, tail, p.a, tiles(config, m=16), {"gemm_type": "indexed"}, outputs=out, **more)
        torch.cuda.synchronize()
    except Exception as error:
        return "CUDA error" in str(error), refused(error)
    kept = int((out == SENTINEL).sum())
    before = out.numel() - wrong(out, p.want(expert=0))
    return (
        kept < out.numel(),
        f"{before} of {out.numel()} outputs are products with the memory before expert 0, {kept} untouched",
    )


def layouts_of_both_widths():
    p, _ = experts_problem(33)
    counts, bad = [9, 0, 20, 4], 0
    want = torch.cat([p.want(part, e) for e, part in enumerate(p.a.split(counts))])
    for kind in (torch.int32, torch.int64):
        got = gemm(
            p.config,
            p.weights,
            p.a,
            tiles(p.config),
            {"gemm_type": "grouped_contiguous"},
            expert_layout=offsets(counts, kind),
        )
        bad += wrong(got, want)
    return bad > 0, f"{bad} of {2 * want.numel()} outputs are wrong with int32 and int64 offsets"


def last_offset():
    p, _ = experts_problem(48)
    counts = [9, 0, 20, 4]
    out = torch.full((48, 256), SENTINEL, dtype=torch.bfloat16, device="cuda")
    gemm(
        p.config,
        p.weights,
        p.a,
        tiles(p.config),
        {"gemm_type": "grouped_contiguous"},
        expert_layout=offsets(counts),
        outputs=out,
    )
    used = sum(counts)
    want = torch.cat([p.want(part, e) for e, part in enumerate(p.a[:used].split(counts))])
    beyond = int((out[used:] != SENTINEL).sum())
    return (
        beyond + wrong(out[:used], want) > 0,
        f"{beyond} of {out[used:].numel()} outputs beyond the last offset are written, {wrong(out[:used], want)} of the others are wrong",
    )


def no_padded_tokens():
    p, ids = experts_problem(32)
    more = routed(ids, 4, 16)
    more["num_tokens_padded"].zero_()
    out = torch.full((32, 256), SENTINEL, dtype=torch.bfloat16, device="cuda")
    indexed(p, more, out=out)
    torch.cuda.synchronize()
    written = int((out != SENTINEL).sum())
    return (
        written > 0,
        f"{written} of {out.numel()} outputs are written though num_tokens_padded is 0",
    )


def ids_beyond_padding():
    p, ids = experts_problem(32)
    more = routed(ids, 4, 16)
    more["sorted_ids"][more["sorted_ids"] == ids.numel()] = ids.numel() + 100_000
    got = indexed(p, more)
    bad = wrong(got, indexed_want(p, ids))
    return (
        bad > 0,
        f"{bad} of {got.numel()} outputs are wrong with padding ids far beyond M x top_k",
    )


def expert_twice():
    p, ids = experts_problem(32, 4, 2)
    ids[::3, 1] = ids[::3, 0]
    got, want = indexed(p, routed(ids, 4, 16), 2), indexed_want(p, ids)
    return (
        wrong(got, want) > 0,
        f"{wrong(got, want)} of {got.numel()} outputs are wrong where a token has one expert twice",
    )


def other_block_m():
    """A range table picks the kernel by valid_shape_m; sorted_ids were padded for the other one."""
    p, ids = experts_problem(64)
    table = [[0, 16, tiles(p.config, m=16)], [16, 1 << 30, tiles(p.config, m=64)]]
    want = indexed_want(p, ids)
    right = wrong(indexed(p, routed(ids, 4, 16), tuning=table, valid_shape_m=8), want)
    out = torch.full_like(want, SENTINEL)
    try:
        got = indexed(p, routed(ids, 4, 16), tuning=table, out=out)
        torch.cuda.synchronize()
    except Exception as error:
        return False, refused(error)
    bad = wrong(got, want)
    return (
        bad > 0,
        f"ids for blocks of 16 in a kernel of 64: accepted, {bad} of {got.numel()} outputs wrong (tolerance passes: {near(got, want)}); matching: {right} wrong",
    )


def shape_m_of_others():
    p = problem("bfloat16", "uint4", 100, 256, 1024)
    table = [[0, 16, tiles(p.config, m=16)], [16, 64, tiles(p.config, m=64)]]
    bad = wrong(gemm(p.config, p.weights, p.a, table, valid_shape_m=8), p.want())
    bad += wrong(gemm(p.config, p.weights, p.a, table, valid_shape_m=64), p.want())
    return bad > 0, f"{bad} of {2 * 100 * 256} outputs are wrong where valid_shape_m is not M"
