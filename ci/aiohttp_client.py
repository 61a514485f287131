"""One run of an aiohttp client, measured as bench_client is: aiohttp_client.py URL N FILE
TIMES [semaphore]

What it does is what clients in Python do for GSM8K: vLLM's (tests/evals/gsm8k/gsm8k_eval.py) creates
one task a question, and a session whose connector has at most N connections; others hold their tasks
back with a semaphore of N. Prints one line; exit code 1 if an answer was lost or wrong.
"""

import asyncio
import resource
import sys
import time

import aiohttp


def read(path):
    with open(path, encoding="utf-8") as f:
        for line in f:
            expected, body = line.rstrip("\n").split("\t", 1)
            yield int(expected), body.encode()


def cpu():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


async def ask(session, url, expected, body):
    headers = {"Content-Type": "application/json"}
    async with session.post(url, data=body, headers=headers) as reply:
        reply.raise_for_status()
        doc = await reply.json()
    return int(doc["choices"][0]["text"].rsplit("####", 1)[1]) == expected


async def run(url, limit, jobs, with_semaphore):
    gate = asyncio.Semaphore(limit if with_semaphore else len(jobs))

    async def held(session, job):
        async with gate:
            return await ask(session, url, *job)

    connector = aiohttp.TCPConnector(limit=limit)
    timeout = aiohttp.ClientTimeout(total=600)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        each = held if with_semaphore else lambda s, job: ask(s, url, *job)
        return await asyncio.gather(*(each(session, job) for job in jobs))


def main():
    url, limit, jobs = sys.argv[1], int(sys.argv[2]), list(read(sys.argv[3])) * int(sys.argv[4])
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, limit + 64), hard), hard))
    started, before = time.monotonic(), cpu()
    right = asyncio.run(run(url, limit, jobs, "semaphore" in sys.argv[5:]))
    spent, wall, n = cpu() - before, time.monotonic() - started, len(jobs)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    wrong = n - sum(right)
    name = "semaphore" if "semaphore" in sys.argv[5:] else "aiohttp"
    print(f"{name} {n / wall:.0f} requests/s, {spent / n * 1e6:.1f} CPU us/request, "
          f"peak {peak:.0f} MB, {wrong} wrong")
    return 1 if wrong else 0


sys.exit(main())
