"""One run of lm-eval's own API client, measured as bench_client is: lm_eval_client.py URL N FILE TIMES

This is `--model local-completions --model_args num_concurrent=N` without the task: the same class,
given the same requests (EleutherAI/lm-evaluation-harness, lm_eval/models/api_models.py). Prints one
line; exit code 1 if an answer was lost or wrong.
"""

import json
import logging
import resource
import sys
import time

from lm_eval.api.instance import Instance
from lm_eval.models.openai_completions import LocalCompletionsAPI


def read(path):
    with open(path, encoding="utf-8") as f:
        for line in f:
            expected, body = line.rstrip("\n").split("\t", 1)
            yield int(expected), json.loads(body)


def cpu():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def instance(index, body):
    generation = {"until": body["stop"], "max_gen_toks": body["max_tokens"], "temperature": 0}
    return Instance("generate_until", {}, (body["prompt"], generation), index)


def main():
    url, limit, jobs = sys.argv[1], int(sys.argv[2]), list(read(sys.argv[3])) * int(sys.argv[4])
    logging.disable(logging.WARNING)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, limit + 64), hard), hard))
    model = LocalCompletionsAPI(model="stub", base_url=url, tokenizer_backend=None,
                                num_concurrent=limit, max_retries=1, timeout=600)
    requests = [instance(i, body) for i, (_, body) in enumerate(jobs)]
    started, before = time.monotonic(), cpu()
    answers = model.generate_until(requests)
    spent, wall, n = cpu() - before, time.monotonic() - started, len(jobs)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    wrong = sum(int(a.rsplit("####", 1)[1]) != e for a, (e, _) in zip(answers, jobs, strict=True))
    print(f"lm-eval {n / wall:.0f} requests/s, {spent / n * 1e6:.1f} CPU us/request, "
          f"peak {peak:.0f} MB, {wrong} wrong")
    return 1 if wrong else 0


sys.exit(main())
