"""shim.py - what kernels/humming/worker.py says of refusals and absent tensors, without a GPU. Prints "N passed, M failed"."""

import os
import sys
import types

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../kernels/humming"))
sys.argv[1:] = ["/nowhere"]
import worker  # noqa: E402

passed = failed = 0


def same(got, want):
    global passed, failed
    passed, failed = passed + (got == want), failed + (got != want)
    if got != want:
        print(f"{got!r} is not {want!r}")


# ---- what a compiler says: its first error, the file by its name ----

for text, want in (
    ("a warning\n/x/y/z.cuh(94): error: static assertion failed\nb error", "the compiler says z.cuh(94) error: static assertion failed"),
    ("ptxas application ptx input, line 7; error   : Unknown modifier", "the compiler says ptxas application ptx input, line 7; error : Unknown modifier"),
    ("all is well\n", ""),
    ("", ""),
    (None, ""),
    (3, ""),
):
    same(worker.compiler_said(text), want)


def refusal(file):
    """What is made of an exception in a function of that file, beside what a compiler printed."""
    found = {}
    exec(compile("def build(stderr):\n    raise RuntimeError('NVRTC failed')", file, "exec"), found)
    try:
        found["build"]("/x/k.cuh(1): error: no such thing")
    except RuntimeError as error:
        return worker.judge(error)


worker.path = "/package"
same(refusal("/package/humming/jit/compiler.py"), (worker.UNSUPPORTED, {
    "reason": "upstream refuses: the compiler says k.cuh(1) error: no such thing (humming/jit/compiler.py:2)"}))
same(refusal("/elsewhere/compiler.py"), (worker.UNSUPPORTED, {"reason": "upstream refuses: RuntimeError: NVRTC failed"}))

# ---- tensors: absent, without bytes, and with ----


class Memory:
    torch = types.SimpleNamespace(empty=lambda shape, dtype, device: ("empty", tuple(shape)))

    @staticmethod
    def bytes(data, count):
        raise AssertionError("memory was read")


worker.torch_dtype = lambda torch, kind: "kind"
same(worker.view(Memory, None), None)
same(worker.view(Memory, []), None)
same(worker.view(Memory, [0, 1, 64, 4, 16]), None)
same(worker.view(Memory, [0, 1, 0, 0, 16]), ("empty", (0, 16)))
same(worker.view(Memory, [4096, 1, 0, 0, 16]), ("empty", (0, 16)))

print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)
