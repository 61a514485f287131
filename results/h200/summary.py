#!/usr/bin/env python3
"""summary.py - the tables of README.md, from record files.

usage: summary.py FILE...   (JSON lines as `humcheck kernels --out jsonl:FILE` writes them, also .gz)

A record's case names the axes that its entry varies; what the entry fixes is read from suites/.
The last record of a case and provider counts.
"""

import collections
import gzip
import json
import os
import re
import sys

SUITES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "suites")
VERDICTS = ["pass", "fail", "untrusted", "skip", "infra"]
DEFAULTS = {"gemm_type": "dense", "weight_scale_type": "channel", "use_f16_accum": "false"}
NAMES = {"float8e4m3": "e4m3", "float8e5m2": "e5m2", "float4e2m1": "e2m1"}
MODEL = "a_dtype", "mma_type", "K-warps"


def values(text):
    """`key: value` pairs of one line or of one flow mapping; lists are no single value."""
    pairs = re.findall(r"(\w+): *(\[[^\]]*\]|\"[^\"]*\"|[^,{}#]+)", text)
    return {key: value.strip() for key, value in pairs if not value.startswith("[")}


def entries(suite):
    """The single values of each entry of suites/SUITE.yaml."""
    fixed, shared, name = {}, dict(DEFAULTS), None
    try:
        with open(os.path.join(SUITES, suite + ".yaml"), encoding="utf-8") as file:
            lines = file.read().splitlines()
    except OSError:
        lines = []
    for line in lines:
        if line.startswith("defaults:"):
            shared |= values(line[len("defaults:") :])
        elif match := re.match(r" *- name: *(\S+)", line):
            name = match[1]
            fixed[name] = dict(shared)
        elif name and re.match(r" {4}\w+:", line):
            fixed[name] |= values(line)
    return collections.defaultdict(lambda: dict(shared), fixed)


class Suites(dict):
    def __missing__(self, suite):
        self[suite] = entries(suite)
        return self[suite]


def warps(kernel):
    shapes = re.match(r"block \d+x\d+x(\d+) warp \d+x\d+x(\d+)", kernel)
    return str(int(shapes[1]) // int(shapes[2])) if shapes else "?"


def axes_of(record, suites):
    _, entry, case = record["case"].split("/", 2)
    axes = dict(suites[record["suite"]][entry])
    axes |= dict(pair.split("=", 1) for pair in case.split(",") if "=" in pair)
    axes = {key: NAMES.get(value, value) for key, value in axes.items()}
    axes["family"], axes["check"] = record["family"], record["check"]
    launched = re.search(r" (mma|wgmma|umma)\b", record["kernel"])
    axes["mma_type"] = launched[1] if launched else axes.get("mma_type", "not recorded")
    axes["K-warps"] = warps(record["kernel"])
    return axes


def read(paths):
    suites, found = Suites(), {}
    for path in paths:
        opened = gzip.open if path.endswith(".gz") else open
        with opened(path, "rt", encoding="utf-8") as file:
            for line in file:
                record = json.loads(line)
                if "case" in record:
                    record["axes"] = axes_of(record, suites)
                    found[record["case"], record["provider"]] = record
    return list(found.values())


def print_table(title, heads, rows):
    if not rows:
        return
    print(f"## {title}\n\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for row in rows:
        print(f"| {' | '.join(str(x) for x in row)} |")
    print()


def counts(records, providers):
    """Cases, and for each provider its verdicts: 'pass 12, fail 1'."""
    out = [len({r["case"] for r in records})]
    for provider in providers:
        count = collections.Counter(r["verdict"] for r in records if r["provider"] == provider)
        out.append(", ".join(f"{v} {count[v]}" for v in VERDICTS if count[v]) or "-")
    return out


def by_axes(title, records, providers, names):
    groups = collections.defaultdict(list)
    for record in records:
        groups[tuple(record["axes"].get(name, "-") for name in names)].append(record)
    rows = [list(key) + counts(groups[key], providers) for key in sorted(groups)]
    print_table(title, list(names) + ["cases"] + providers, rows)


def outputs(title, records, providers, names):
    """Outputs compared, and how many of them were wrong."""
    groups = collections.defaultdict(lambda: collections.defaultdict(lambda: [0, 0]))
    for record in records:
        if record["compared"]:
            key = tuple(record["axes"].get(name, "-") for name in names)
            sums = groups[key][record["provider"]]
            sums[0] += record["compared"]
            sums[1] += record["wrong"]
    rows = []
    for key in sorted(groups):
        sums = [groups[key][provider] for provider in providers]
        rows.append(list(key) + [f"{s[0]:,}, {s[1]:,}" for s in sums])
    print_table(title, list(names) + providers, rows)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__.split("\n\n")[1])
    records = read(sys.argv[1:])
    providers = sorted({r["provider"] for r in records})
    gemm = [r for r in records if r["family"] == "gemm"]
    by_axes("Verdicts", records, providers, ("family", "check"))
    for axis in ("gemm_type", "a_dtype", "b_dtype", "weight_scale_type", "mma_type"):
        by_axes(f"Products by {axis}", gemm, providers, (axis,))
    exact = [r for r in gemm if r["check"] in ("exact", "readout")]
    outputs("Exact data: outputs compared, wrong", exact, providers, ("check", "a_dtype"))
    model = [r for r in gemm if r["check"] == "model"]
    outputs("Predicted bit for bit: outputs compared, wrong", model, providers, MODEL)
    outputs("The same, by gemm_type", model, providers, ("gemm_type", "a_dtype"))


if __name__ == "__main__":
    main()
