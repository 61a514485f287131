"""candidate_tools.py - products with only one right answer, launched with upstream alone.

Activations, weights and scales are such that every partial sum is exact, so that any difference is
a fault whatever the order of sums is.
"""

import dataclasses
import json

import torch
from humming import ops
from humming.config import LayerConfig, TuningConfig
from humming.transform import transform_humming_tensors

LAYER = {f.name for f in dataclasses.fields(LayerConfig)}
TUNING = {f.name for f in dataclasses.fields(TuningConfig)}
TORCH = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float8e4m3": torch.float8_e4m3fn,
    "float8e5m2": torch.float8_e5m2,
    "int8": torch.int8,
}
E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6]


def layer(a, b, n, k, mma="wgmma", c=None, **more):
    if "mma_type" in LAYER:
        more["mma_type"] = mma
    c = c or (a if a.endswith("16") else "bfloat16")
    return LayerConfig(a_dtype=a, b_dtype=b, c_dtype=c, shape_n=n, shape_k=k, **more)


def tiles(config, mma="wgmma", m=64, **more):
    """An explicit tile: four warps along n, copies without TMA unless `more` says so."""
    k = 1024 // config.a_dtype.num_bits
    values = {
        "block_shape": [m, 128, k],
        "warp_shape": [m, 32, k],
        "num_stages": 3,
        "use_stream_k": False,
        "use_warp_spec": False,
        "use_tma": False,
    } | more
    if "mma_type" in TUNING:
        values["mma_type"] = mma
    lacks = [name for name in more if name not in TUNING and more[name] is not None]
    if lacks:
        raise NotImplementedError(f"this version has no {', '.join(lacks)}")
    return {name: value for name, value in values.items() if name in TUNING}


def pow2(x):
    """2^x of whole numbers, from bits: the device's 2.0 ** x is not always exact."""
    return ((x.long() + 1023) << 52).view(torch.float64)


def value(b, codes):
    """What weight codes mean."""
    if b.startswith("uint"):
        return codes.double() - 2 ** (int(b[4:]) - 1)
    if b == "float4e2m1":
        table = torch.tensor(E2M1 + [-x for x in E2M1], dtype=torch.float64, device="cuda")
        return table[codes.long()]
    return codes.to(torch.uint8).view(torch.float8_e4m3fn).double()


def transformed(config, codes, scale, **more):
    words = ops.pack_weight(codes.int().contiguous(), num_bits=config.b_dtype.num_bits)
    return transform_humming_tensors(config, {"weight": words, "weight_scale": scale, **more})


def gemm(config, weights, a, tuning=None, compute=None, locks=None, **more):
    if locks is None:
        locks = torch.zeros(4096, dtype=torch.int32, device="cuda")
    if a.dtype.itemsize == 1 and "input_scale" not in more:
        more["input_scale"] = torch.ones((a.size(0), 1), device="cuda")
    return ops.humming_gemm(
        layer_config=config.to_str(),
        compute_config=json.dumps({"gemm_type": "dense"} | (compute or {})),
        tuning_config=json.dumps(tuning) if tuning else None,
        inputs=a,
        locks=locks,
        **weights,
        **more,
    )


def activations(a, m, k, live=0, seed=5):
    """Whole numbers from -2 to 2; with `live` only so many of a row are not 0."""
    torch.manual_seed(seed)
    x = torch.randint(-2, 3, (m, k), device="cuda")
    if live:
        order = torch.rand((m, k), device="cuda").argsort(1)
        x = torch.where(order < live, x, 0)
    return x.float().to(TORCH[a])


@dataclasses.dataclass
class Problem:
    config: LayerConfig
    weights: dict
    a: torch.Tensor
    w: torch.Tensor  # values of the weights, scaled, (experts,) n, k
    bias: torch.Tensor | None

    def want(self, a=None, expert=None):
        w, bias = self.w, self.bias
        if expert is not None:
            w, bias = w[expert], None if bias is None else bias[expert]
        made = (self.a if a is None else a).double() @ w.T
        made = made if bias is None else made + bias.double()
        return made.float().to(self.config.param_dtype)


def problem(a, b, m, n, k, group=128, experts=0, live=0, bias=False, seed=1, mma="wgmma", **more):
    torch.manual_seed(seed)
    config = layer(
        a,
        b,
        n + more.get("pad_shape_n", 0),
        k + more.get("pad_shape_k", 0),
        mma,
        num_experts=experts,
        weight_scale_group_size=group,
        has_bias=bias,
        **more,
    )
    lead = (experts,) if experts else ()
    codes = torch.randint(0, 2**config.b_dtype.num_bits, (*lead, n, k), device="cuda")
    if b == "float8e4m3":
        codes = codes % 0x80 % 0x50 + 0x80 * (codes // 0x80)  # up to 16
    groups = k // group if group else 1
    scale = pow2(torch.randint(-1, 2, (*lead, n, groups), device="cuda"))
    extra = {}
    if bias:
        extra["bias"] = torch.randint(-8, 9, (*lead, n), device="cuda").to(config.param_dtype)
    made = transformed(config, codes, scale.to(config.param_dtype), **extra)
    w = value(b, codes) * scale.repeat_interleave(k // groups, -1)
    return Problem(config, made, activations(a, m, k, live), w, extra.get("bias"))


def wrong(got, want):
    """How many values differ; 0 and -0 do not."""
    return int((got.float() != want.float()).sum())


def near(got, want):
    """Would the tolerance of upstream's tests have passed it?"""
    return "yes" if torch.allclose(got.float(), want.float(), rtol=0.05, atol=0.1) else "no"


def routed(ids, experts, block):
    """The index tensors of an indexed product, each expert's rows padded to whole blocks."""
    flat, rows, owners = ids.reshape(-1), [], []
    for expert in range(experts):
        mine = (flat == expert).nonzero().view(-1)
        blocks = -(-len(mine) // block)
        pad = (0, blocks * block - len(mine))
        rows.append(torch.nn.functional.pad(mine, pad, value=flat.numel()))
        owners += [expert] * blocks
    rows = torch.cat(rows).int()
    return {
        "sorted_ids": rows,
        "expert_ids": torch.tensor(owners, dtype=torch.int32, device="cuda"),
        "num_tokens_padded": torch.tensor([len(rows)], dtype=torch.int32, device="cuda"),
    }


def offsets(counts, kind=torch.int32):
    ends = torch.tensor([0, *counts]).cumsum(0)
    return ends.to(device="cuda", dtype=kind)
