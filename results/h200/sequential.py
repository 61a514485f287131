#!/usr/bin/env python3
"""What checking kernels one after another costs: sequential.py FOLDER [--processes N] [--seconds S].

FOLDER holds the package `humming`. Each process does what upstream's own tests do with the
parameters of its tests of formats, scales, zero points, epilogue and experts: random tensors,
upstream's quantizer, transform, compilation when the cache (HUMMING_CACHE_DIR) lacks the kernel,
one launch, upstream's dequantization, torch.matmul as reference, allclose with rtol .05 and atol
.1. N processes share the list by index modulo N; after S seconds no process starts another case.
"""

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import time

N, K, EXPERTS, TOP_K = 512, 1024, 8, 2
FLOATS = ["4e2m1", "4e1m2", "4e3m0", "5e2m2", "6e2m3", "6e3m2", "7e3m3", "8e4m3", "8e3m4"]


def fits(a, b, zero):
    """Which weights upstream's tests pair with activations."""
    if a == "int8":
        return b.startswith("uint") and int(b[4:]) < 8
    exponent, mantissa = {"float16": (5, 10), "bfloat16": (8, 7), "float8e4m3": (4, 3)}[a]
    if b.startswith("uint"):
        return int(b[4:]) <= mantissa + (1 if zero else 2)
    return int(b.split("e")[1].split("m")[0]) <= exponent and int(b.split("m")[1]) <= mantissa


def parameter_sets():
    acts = ["float16", "bfloat16", "float8e4m3", "int8"]
    ints = [f"uint{x}" for x in range(1, 9)]
    weights = ints + [f"float{x}" for x in FLOATS]
    plain = {"bs": None, "group": 0, "zero": None, "bias": False, "gemm": "dense"}
    sets = [plain | {"a": a, "b": b} for a in acts for b in weights if fits(a, b, False)]
    sets += [
        plain | {"a": a, "b": "uint4", "bs": bs, "group": group}
        for a, bs, group in itertools.product(
            acts, [None, "float8e4m3", "float8e5m2"], [32, 64, 128]
        )
        if a != "int8" or bs is None
    ]
    sets += [
        plain | {"a": a, "b": b, "group": 128, "zero": zero}
        for a, b, zero in itertools.product(acts, ints, ["int", "float"])
        if fits(a, b, True) and (zero == "int" or a.endswith("16"))
    ]
    sets += [
        plain | {"a": a, "b": "uint4", "bias": True, "group": g} for a in acts for g in (0, 128)
    ]
    sets = [one | {"m": m} for one in sets for m in (17, 257)]
    sets += [
        plain | {"a": a, "b": b, "group": group, "gemm": gemm, "m": m}
        for a, b, group, gemm, m in itertools.product(
            acts,
            ["uint4"],
            [0, 128],
            ["indexed", "grouped_contiguous", "grouped_masked"],
            [18, 512],
        )
    ]
    random.Random(1).shuffle(sets)  # a part of the list is like the whole
    return sets


class Process:
    def __init__(self, path):
        sys.path.insert(0, os.path.abspath(path))
        import torch
        from humming import ops
        from humming.config import LayerConfig
        from humming.schema import HummingWeightSchema
        from humming.transform import transform_humming_tensors
        from humming.tune import get_heuristics_config

        self.torch, self.ops, self.layer, self.schema = torch, ops, LayerConfig, HummingWeightSchema
        self.transform, self.heuristics = transform_humming_tensors, get_heuristics_config
        torch.zeros(1, device="cuda")

    def inputs(self, a, values):
        """(what the kernel takes, its scales, their values)"""
        if a.endswith("16"):
            return values, {}, values.float()
        if hasattr(self.ops, "process_input"):
            made, _, scale = self.ops.process_input(
                values, quant_mode="dynamic_token", quant_dtype=a, group_scale_dtype="float32"
            )
        else:
            made, scale = self.ops.quant_input(values, a)
        return made, {"input_scale": scale}, made.float() * scale.float().view(-1, 1)

    def routing(self, gemm, ids, block_m):
        """Index tensors, and for each output row (token, expert), -1 for rows without."""
        torch, flat = self.torch, ids.view(-1)
        order = flat.argsort(stable=True)
        counts = flat.bincount(minlength=EXPERTS)
        if gemm == "grouped_contiguous":
            layout = torch.nn.functional.pad(counts.cumsum(0), (1, 0)).int()
            return {"expert_layout": layout}, order // TOP_K, flat[order]
        if gemm == "grouped_masked":
            room = (flat.numel() + 3) // 4 * 4
            token = torch.full((EXPERTS, room), -1, dtype=torch.int64, device="cuda")
            for e in range(EXPERTS):
                mine = (flat == e).nonzero().view(-1)
                token[e, : len(mine)] = mine // TOP_K
            owner = torch.arange(EXPERTS, device="cuda").repeat_interleave(room)
            return {"expert_layout": counts.int()}, token.view(-1), owner
        rows, owners = [], []
        for e in range(EXPERTS):
            mine = (flat == e).nonzero().view(-1)
            blocks = -(-len(mine) // block_m)
            pad = (0, blocks * block_m - len(mine))
            rows.append(torch.nn.functional.pad(mine, pad, value=flat.numel()))
            owners += [e] * blocks
        rows = torch.cat(rows).int()
        more = {
            "sorted_ids": rows,
            "expert_ids": torch.tensor(owners, dtype=torch.int32, device="cuda"),
            "num_tokens_padded": torch.tensor([len(rows)], dtype=torch.int32, device="cuda"),
            "top_k": TOP_K,
        }
        return more, torch.arange(flat.numel(), device="cuda") // TOP_K, flat

    def case(self, p):
        torch = self.torch
        torch.manual_seed(2026)
        param = torch.float16 if p["a"] == "float16" else torch.bfloat16
        dense = p["gemm"] == "dense"
        lead = () if dense else (EXPERTS,)
        schema = self.schema(
            b_dtype=p["b"],
            bs_dtype=p["bs"],
            weight_scale_group_size=p["group"],
            has_zero_point=bool(p["zero"]),
            is_fp_zero_point=p["zero"] == "float",
        )
        weight = torch.randn((*lead, N, K), device="cuda").to(param) / K**0.25
        tensors = schema.quant_tensor(weight, schema, param)
        weight_ref = schema.dequant_tensors(tensors).float()
        bias_ref = 0.0
        if p["bias"]:
            tensors["bias"] = torch.randn((*lead, N), device="cuda").to(param)
            bias_ref = tensors["bias"].float()
        config = self.layer(
            a_dtype=p["a"],
            b_dtype=p["b"],
            c_dtype="float16" if param == torch.float16 else "bfloat16",
            bs_dtype=p["bs"],
            shape_n=N,
            shape_k=K,
            num_experts=0 if dense else EXPERTS,
            weight_scale_group_size=p["group"],
            has_zero_point=bool(p["zero"]),
            is_fp_zero_point=p["zero"] == "float",
            has_bias=p["bias"],
        )
        made = self.transform(config, tensors)
        tuning = self.heuristics(
            config, shape_m=p["m"] * (1 if dense else TOP_K), gemm_type=p["gemm"]
        )
        values = torch.randn((p["m"], K), device="cuda").to(param) / K**0.25
        more, token, owner = {}, None, None
        if not dense:
            ids = torch.rand((p["m"], EXPERTS), device="cuda").topk(TOP_K, 1).indices
            more, token, owner = self.routing(p["gemm"], ids, tuning["block_shape"][0])
            if p["gemm"] != "indexed":
                values = values[token.clamp(min=0)]
        given, scales, values_ref = self.inputs(p["a"], values)
        got = self.ops.humming_gemm(
            layer_config=config.to_str(),
            compute_config=json.dumps({"gemm_type": p["gemm"]}),
            tuning_config=json.dumps(tuning),
            inputs=given,
            locks=torch.zeros(2048, dtype=torch.int32, device="cuda"),
            **made,
            **scales,
            **more,
        )
        if dense:
            want, live = values_ref @ weight_ref.T + bias_ref, slice(None)
        else:
            rows = values_ref[token] if p["gemm"] == "indexed" else values_ref
            live = token >= 0
            want = torch.zeros((len(token), N), device="cuda")
            for e in range(EXPERTS):
                mine = (owner == e) & live
                want[mine] = rows[mine] @ weight_ref[e].T
        return torch.allclose(got.float()[live], want[live], rtol=0.05, atol=0.1)


def work(path, index, count, seconds):
    end = time.time() + seconds
    process, sets = Process(path), parameter_sets()
    said = {"ready": time.time(), "passed": 0, "failed": 0, "refused": 0, "first": ""}
    for p in sets[index::count]:
        if time.time() > end:
            break
        try:
            said["passed" if process.case(p) else "failed"] += 1
        except Exception as error:
            said["refused"] += 1
            said["first"] = said["first"] or f"{p}: {type(error).__name__}: {str(error)[:120]}"
    said["ended"] = time.time()
    print(json.dumps(said), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--index", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.index is not None:
        return work(given.folder, given.index, given.processes, given.seconds)
    began, command = time.time(), [sys.executable, __file__, given.folder]
    command += ["--processes", str(given.processes), "--seconds", str(given.seconds)]
    runs = [
        subprocess.Popen([*command, "--index", str(i)], stdout=subprocess.PIPE, text=True)
        for i in range(given.processes)
    ]
    said = [json.loads((run.communicate()[0].splitlines() or ["{}"])[-1]) for run in runs]
    wall, said = time.time() - began, [x for x in said if x]
    sums = {name: sum(x[name] for x in said) for name in ("passed", "failed", "refused")}
    cases = sums["passed"] + sums["failed"]
    ready = min((x["ready"] for x in said), default=began)
    steady = max((x["ended"] for x in said), default=began) - ready
    first = next((x["first"] for x in said if x["first"]), "")
    print(
        json.dumps(
            {
                "processes": given.processes,
                "cases": cases,
                "of": len(parameter_sets()),
                **sums,
                "seconds": round(wall, 1),
                "start_seconds": round(ready - began, 1),
                "cases_per_min": round(60 * cases / wall, 1),
                "without_start": round(60 * cases / max(steady, 1e-3), 1),
                "first_refused": first,
            }
        )
    )


if __name__ == "__main__":
    main()
