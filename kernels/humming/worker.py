#!/usr/bin/env python3
"""worker.py - upstream Humming behind the worker protocol (docs/worker-protocol.md).

usage: worker.py PATH; PATH holds the package `humming` (a source checkout or an unpacked wheel).
Frames come and go on descriptor 3. Adapts to the package's version by looking for names and
fields, never by comparing version numbers.
"""

import bisect
import json
import os
import socket
import struct
import sys

HEAD = struct.Struct("<IIQ")  # bytes of JSON, code, bytes of payload
OK, UNSUPPORTED, INVALID, DEVICE_LOST, NO_MEMORY = range(5)

path = os.path.abspath(sys.argv[1]) if len(sys.argv) == 2 else sys.exit("usage: worker.py PATH")
sys.path.insert(0, path)
sys.path.insert(1, os.path.dirname(os.path.abspath(__file__)))


class Refusal(Exception):
    def __init__(self, code, sentence):
        super().__init__(sentence)
        self.code = code


# ---- memory: slabs of the device, addressed by pointers into them ----


class Memory:
    def __init__(self, torch):
        self.torch = torch
        self.starts, self.slabs = [], {}

    def alloc(self, bytes_):
        slab = self.torch.empty(max(bytes_, 1) + 256, dtype=self.torch.uint8, device="cuda")
        start = (slab.data_ptr() + 255) // 256 * 256
        bisect.insort(self.starts, start)
        self.slabs[start] = (slab, start - slab.data_ptr(), max(bytes_, 1))
        return start

    def release(self, start):
        if start not in self.slabs:
            raise Refusal(INVALID, "released memory that was not allocated")
        self.starts.remove(start)
        del self.slabs[start]

    def bytes(self, start, count):
        at = bisect.bisect_right(self.starts, start) - 1
        if at < 0 or start + count > self.starts[at] + self.slabs[self.starts[at]][2]:
            raise Refusal(INVALID, "a tensor lies outside all memory that was allocated")
        slab, skip, _ = self.slabs[self.starts[at]]
        begin = skip + start - self.starts[at]
        return slab[begin : begin + count]


# ---- formats: base*10^7 + signed*10^6 + bits*10^4 + exponent*100 + mantissa ----


def name_of(dtype):
    """Upstream's name of a format of the contract."""
    if not dtype:
        return None
    bits, signed = dtype // 10000 % 100, dtype // 1000000 % 10
    exponent, mantissa = dtype // 100 % 100, dtype % 100
    if dtype // 10000000 == 1:
        return f"{'' if signed else 'u'}int{bits}"
    plain = {(16, 5, 10): "float16", (16, 8, 7): "bfloat16", (32, 8, 23): "float32"}
    return plain.get((bits, exponent, mantissa), f"float{bits}e{exponent}m{mantissa}")


def torch_dtype(torch, dtype):
    bits = dtype // 10000 % 100
    table = {
        "float32": torch.float32,
        "float16": torch.float16,
        "bfloat16": torch.bfloat16,
        "float8e4m3": torch.float8_e4m3fn,
        "float8e5m2": torch.float8_e5m2,
        "float8e8m0": torch.float8_e8m0fnu,
        "int8": torch.int8,
        "int32": torch.int32,
        "int64": torch.int64,
    }
    return table.get(name_of(dtype), torch.uint8 if bits <= 8 else None)


def view(memory, t):
    """[data, dtype, bytes, shape...] as a tensor of the device; None if absent."""
    if not t or (t[2] and not t[0]):
        return None
    kind = torch_dtype(memory.torch, t[1])
    if kind is None:
        raise Refusal(UNSUPPORTED, f"torch has no format {name_of(t[1])}")
    if not t[2]:
        return memory.torch.empty(t[3:], dtype=kind, device="cuda")
    return memory.bytes(t[0], t[2]).view(kind).view(t[3:])


def serve(channel, calls):
    def exactly(count):
        data = bytearray()
        while len(data) < count:
            part = channel.recv(min(count - len(data), 1 << 20))
            if not part:
                sys.exit(0)
            data += part
        return bytes(data)

    while True:
        text, _, extra = HEAD.unpack(exactly(HEAD.size))
        request = json.loads(exactly(text))
        payload = exactly(extra)
        code, reply, out = OK, {}, b""
        try:
            name = request.pop("op")
            if name not in calls:
                raise Refusal(UNSUPPORTED, f"the worker has no operation {name}")
            reply = calls[name](payload=payload, **request) or {}
            out = reply.pop("payload", b"")
        except Refusal as refusal:
            code, reply = refusal.code, {"reason": str(refusal)}
        except MemoryError:
            code, reply = NO_MEMORY, {"reason": "the worker is out of memory"}
        except Exception as error:  # upstream refuses with assertions and errors of every kind
            code, reply = judge(error)
        head = json.dumps(reply).encode()
        channel.sendall(HEAD.pack(len(head), code, len(out)) + head)
        channel.sendall(out)


def judge(error):
    """A refusal names the place in upstream's source, since assertions rarely have a text, and what a compiler said."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    frame = error.__traceback__
    place = said = ""
    while frame:
        file = frame.tb_frame.f_code.co_filename
        if f"{os.sep}humming{os.sep}" in file and file.startswith(path):
            place = f" ({os.path.relpath(file, path)}:{frame.tb_lineno})"
            said = said or compiler_said(frame.tb_frame.f_locals.get("stderr"))
        frame = frame.tb_next
    if "CUDA error" in text or "illegal memory" in text or "cudaError" in text:
        return DEVICE_LOST, {"reason": f"the device is lost: {text[:160]}{place}"}
    if "out of memory" in text:
        return NO_MEMORY, {"reason": f"out of device memory{place}"}
    code = INVALID if "check_tensor" in text else UNSUPPORTED  # the launcher's own checks
    if len(text) > 180:  # both ends of a long message say most
        text = text[:100] + " ... " + text[-75:]
    return code, {"reason": f"upstream refuses: {said or text}{place}"}


def compiler_said(stderr):
    """The first error of a compiler's output, with the file's name alone; "" without one."""
    for line in stderr.splitlines() if isinstance(stderr, str) else []:
        if "error" in line:
            return "the compiler says " + os.path.basename(" ".join(line.split()).replace(": error", " error"))[:200]
    return ""


def main():
    channel = socket.socket(fileno=3)
    channel.setblocking(True)
    os.dup2(2, 1)  # whatever the package prints goes to the log
    from upstream import Upstream

    serve(channel, Upstream(path).calls())


if __name__ == "__main__":
    sys.modules["worker"] = sys.modules["__main__"]
    main()
