"""A callback receiver as one writes it by hand: Starlette, uvicorn, and a commit for each request."""

import json
import sqlite3
import sys
import threading

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

TOKEN = "token-of-the-bench"


def main() -> None:
    database = sqlite3.connect(sys.argv[1], isolation_level=None, check_same_thread=False)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE callbacks (id INTEGER PRIMARY KEY, path TEXT, task TEXT, state TEXT, body BLOB)")

    async def callback(request):
        if request.headers.get("a2a-notification-token") != TOKEN:
            return JSONResponse({}, status_code=401)
        body = await request.body()
        update = json.loads(body)["statusUpdate"]
        row = (request.path_params["path"], update["taskId"], update["status"]["state"], body)
        # Autocommit: one transaction and one flush, in the event loop, as most such receivers do it.
        database.execute("INSERT INTO callbacks (path, task, state, body) VALUES (?, ?, ?, ?)", row)
        return JSONResponse({})

    app = Starlette(routes=[Route("/a2a/callbacks/{path}", callback, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", access_log=False))

    def tell() -> None:
        while not server.started:
            threading.Event().wait(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        print(json.dumps({"inbox": f"http://127.0.0.1:{port}"}), flush=True)
        sys.stdin.read()
        server.should_exit = True

    threading.Thread(target=tell, daemon=True).start()
    server.run()


main()
