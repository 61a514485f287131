#!/usr/bin/env python3
"""Tries candidate faults with upstream alone: candidates.py FOLDER [NAME...] [--jobs N].

FOLDER holds the package `humming`. Needs PyTorch and a GPU of compute capability 9.0. Candidates
run in child processes with a limit of seconds, since some hang or leave the device in error. Each
prints one line: name, verdict, what was seen, seconds. CONFIRMED means that the fault shows. The names are those of ../h200/candidates.md.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time

CASES, SHAPES = "candidate_cases", "candidate_shapes"
NUMBERS, PROCESSES = "candidate_numbers", "candidate_processes"
CHECKPOINTS = "candidate_checkpoints"

# Name (the function's, with dashes) and module. One row is one process: its candidates are tried one
# after another, and those behind one that ended the process are tried again alone.
BATCHES = [
    (SHAPES, "far-weights expert-stride far-offsets"),
    (NUMBERS, "fused-spread fused-far-spread fused-factor"),
    (SHAPES, "pipelines-16-bits"),
    (SHAPES, "pipelines-8-bits"),
    (SHAPES, "ragged-shapes"),
    (NUMBERS, "bias-under-f16 zero-scales"),
    (NUMBERS, "int-sums-wrap shared-int-scale"),
    (PROCESSES, "compile-at-once"),
    (PROCESSES, "heuristics-in-processes declared-mutation"),
    (SHAPES, "sampled-fp4 grouped-copies narrow-packed-k"),
    (NUMBERS, "bias-under-stream-k precision-under-stream-k fused-padding"),
    (NUMBERS, "nan-code-weights extreme-e8m0-codes tiny-groups"),
    (CHECKPOINTS, "gptq-zero-points fp8-block-scales modelopt-shape awq-order nvfp4-global-scale"),
    (NUMBERS, "sum-of-expert-minus-one"),
    (CASES, "layouts-of-both-widths last-offset ids-beyond-padding expert-twice no-padded-tokens"),
    (CASES, "shape-m-of-others other-block-m no-rows other-dtype expert-minus-one"),
    (CASES, "locks-reused streams-with-own-locks other-stream strided-inputs graph-replay"),
]
# These may keep the device busy: alone, last.
ALONE = [
    (CASES, "streams-with-shared-locks"),
    (CASES, "locks-too-few"),
    (CASES, "locks-poisoned"),
]
VERDICTS = {True: "CONFIRMED", False: "REFUTED", None: "NOT APPLICABLE"}
FIRST_SECONDS, MORE_SECONDS = 60, 15  # of a process, and of each candidate after its first


def child(path, module, names):
    sys.path[:0] = [os.path.abspath(path), os.path.dirname(os.path.abspath(__file__))]
    for name in names:
        began = time.time()
        try:
            seen, text = getattr(__import__(module), name.replace("-", "_"))()
            line = f"{VERDICTS[seen]} {text}"
        except Exception as error:
            line = f"COULD NOT RUN {type(error).__name__}: {' '.join(str(error).split())[-240:]}"
        print(f"{name}: {line} [{time.time() - began:.1f} s]", flush=True)
        if "CUDA error" in line or "did not come back" in line:
            break  # whatever comes next would fail, too
    os._exit(0)  # what still runs on the device ends with the process


def start(path, module, names):
    out = tempfile.TemporaryFile("w+")
    command = [sys.executable, os.path.abspath(__file__), "--of", path, module, *names]
    run = subprocess.Popen(
        command, stdout=out, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    return module, names, run, out, time.time()


def ended(module, names, run, out, began):
    """None while it runs; else the candidates that have no line yet, the first of them blamed."""
    limit = FIRST_SECONDS + MORE_SECONDS * (len(names) - 1)
    late = time.time() - began > limit
    if run.poll() is None and not late:
        return None
    if run.poll() is None:
        os.killpg(run.pid, signal.SIGKILL)  # with the processes that it started
    run.wait()
    out.seek(0)
    text = out.read()
    done = 0
    for line in text.splitlines():
        if done < len(names) and line.startswith(names[done] + ": "):
            print(line, flush=True)
            done += 1
    left = list(names[done:])
    if left and (late or run.returncode or not done):
        why = (
            "HUNG"
            if late
            else f"DIED with status {run.returncode}: {' '.join(text.split())[-160:]}"
        )
        print(f"{left.pop(0)}: {why} [{time.time() - began:.1f} s]", flush=True)
    return left


def all_of(path, rows, jobs):
    waiting, running = list(rows), []
    while waiting or running:
        while waiting and len(running) < jobs:
            running.append(start(path, *waiting.pop(0)))
        time.sleep(0.05)
        for item in list(running):
            left = ended(*item)
            if left is not None:
                running.remove(item)
                waiting += [(item[0], [name]) for name in left]


def main(arguments):
    jobs = 14
    if "--jobs" in arguments:
        at = arguments.index("--jobs")
        jobs = int(arguments[at + 1])
        del arguments[at : at + 2]
    if not arguments:
        sys.exit(__doc__)
    path, names = arguments[0], arguments[1:]
    every = [name for _, text in BATCHES + ALONE for name in text.split()]
    if set(names) - set(every):
        sys.exit(f"no candidate is called {', '.join(sorted(set(names) - set(every)))}")
    for rows, count in ((BATCHES, jobs), (ALONE, 1)):
        picked = [(m, [n for n in text.split() if not names or n in names]) for m, text in rows]
        all_of(path, [row for row in picked if row[1]], count)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--of"]:
        child(sys.argv[2], sys.argv[3], sys.argv[4:])
    main(sys.argv[1:])
