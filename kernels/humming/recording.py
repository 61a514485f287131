"""recording.py - one call as a CUDA graph: `capture`, `replay` and `drop` of the worker protocol."""

import torch

from worker import INVALID, UNSUPPORTED, Refusal


def settle():
    """Waits for the device; a call that is being recorded has nothing to wait for."""
    if not torch.cuda.is_current_stream_capturing():
        torch.cuda.synchronize()


class Recording:
    def __init__(self):
        self.awaited, self.graph = False, None

    def calls(self):
        return {"capture": self.capture, "replay": self.replay, "drop": self.drop}

    def capture(self, payload):
        self.drop(payload)
        self.awaited = True

    def drop(self, payload):
        self.awaited, self.graph = False, None

    def replay(self, payload):
        if self.graph is None:
            raise Refusal(INVALID, "nothing is recorded")
        self.graph.replay()
        torch.cuda.synchronize()

    def recordable(self, call):
        """`call`, which is recorded where `capture` came before it."""

        def answer(**request):
            if not self.awaited:
                return call(**request)
            self.awaited = False
            return self.record(call, request)

        return answer

    def record(self, call, request):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            reply = call(**request)  # compiles, loads and refuses before anything is recorded
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=stream):
                call(**request)
        except Refusal:
            raise
        except Exception as error:
            torch.cuda.synchronize()  # raises where the device is lost
            text = " ".join(str(error).split())[:120]
            raise Refusal(UNSUPPORTED, f"the launch cannot be recorded as a graph: {text}") from error
        self.graph = graph
        return reply
