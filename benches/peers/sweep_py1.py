#!/usr/bin/env python3
"""Reads tasks with the client of PyPI a2a-sdk 1.x, so many at a time.

  sweep_py1.py URL AT_ONCE

Says {"ready": true}; then for each line of standard input, a JSON array of task ids, reads every one
and says {"ms": how long it took, "read": how many were answered}. The card is read before.
"""
import asyncio
import json
import sys
import time

import httpx

from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import GetTaskRequest


async def main():
    url, at_once = sys.argv[1], int(sys.argv[2])
    async with httpx.AsyncClient(timeout=60) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        client = ClientFactory(ClientConfig(httpx_client=http)).create(card)
        print(json.dumps({'ready': True}), flush=True)
        for line in sys.stdin:
            places = asyncio.Semaphore(at_once)

            async def read(task_id):
                async with places:
                    task = await client.get_task(GetTaskRequest(id=task_id, history_length=100))
                return task.id == task_id

            began = time.perf_counter()
            done = await asyncio.gather(*(read(task_id) for task_id in json.loads(line)), return_exceptions=True)
            took = time.perf_counter() - began
            print(json.dumps({'ms': took * 1e3, 'read': sum(one is True for one in done)}), flush=True)


asyncio.run(main())
