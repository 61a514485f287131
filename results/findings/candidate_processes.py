"""candidate_processes.py - what shows between processes, or without a launch: as in candidate_cases.py."""

import hashlib
import json
import os
import subprocess
import sys

import torch
from humming.tune import get_heuristics_config

from candidate_tools import gemm, layer, problem, tiles, wrong

HEURISTICS = """
import sys
sys.path[:0] = [{path!r}, {here!r}]
from candidate_processes import heuristics_digest
print(heuristics_digest())
"""
COMPILE = """
import sys
sys.path[:0] = [{path!r}, {here!r}]
from candidate_processes import one_product
print(one_product())
"""


def elsewhere(text, count, **environment):
    """The same Python text in several processes at once: what each printed last."""
    text = text.format(path=sys.path[0], here=os.path.dirname(os.path.abspath(__file__)))
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", text],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"PYTHONHASHSEED": str(i)} | environment,
        )
        for i in range(count)
    ]
    return [(run.communicate()[0].strip().splitlines() or ["nothing"])[-1] for run in runs]


def heuristics_digest():
    said = []
    for a in ("bfloat16", "float8e4m3", "int8"):
        for experts, kind in (
            (0, "dense"),
            (64, "indexed"),
            (64, "grouped_contiguous"),
            (64, "grouped_masked"),
        ):
            config = layer(a, "uint4", 2048, 4096, num_experts=experts, weight_scale_group_size=128)
            for m in (1, 5, 17, 100, 1000):
                said.append(get_heuristics_config(config, shape_m=m, gemm_type=kind))
    text = json.dumps(said, sort_keys=True, default=str)
    return f"{len(said)} {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def heuristics_in_processes():
    said = elsewhere(HEURISTICS, 3)
    return len(set(said)) > 1, f"{len(set(said))} different answers of 3 processes: {said[0][:60]}"


def one_product():
    p = problem("bfloat16", "uint4", 17, 256, 1024)
    return f"{wrong(gemm(p.config, p.weights, p.a, tiles(p.config)), p.want())} wrong"


def compile_at_once():
    folder = f"{os.environ.get('HUMMING_CACHE_DIR', '/tmp')}/race-{os.getpid()}"
    said = elsewhere(COMPILE, 6, HUMMING_CACHE_DIR=folder)
    odd = [line for line in said if line != "0 wrong"]
    return bool(
        odd
    ), f"6 processes with one empty cache: {6 - len(odd)} right{'; ' + odd[0][:80] if odd else ''}"


def declared_mutation():
    from humming.ops.utils import init_humming_launcher

    init_humming_launcher()
    schemas = {
        name: str(getattr(torch.ops.humming.launch_kernel, name)._schema)
        for name in torch.ops.humming.launch_kernel.overloads()
    }
    declared = [name for name, text in schemas.items() if "!" in text]
    return not declared, f"overloads {sorted(schemas)}, declared to write: {declared}"
