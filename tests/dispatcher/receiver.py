"""A plain receiver. `receiver.py PORT [CERT KEY]...` listens on each port of its arguments (PORT, or PORT:CERT:KEY
for TLS), behaves as the path says, and prints each request as one line of JSON."""
import json
import socket
import ssl
import struct
import sys
import threading
import time

printing = threading.Lock()


def tell(what):
    with printing:
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()


def read_request(stream):
    data = b""
    while b"\r\n\r\n" not in data:
        more = stream.recv(65536)
        if not more:
            return None
        data += more
    head, body = data.split(b"\r\n\r\n", 1)
    lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines[1:])}
    while len(body) < int(headers.get("content-length", "0")):
        more = stream.recv(65536)
        if not more:
            return None
        body += more
    return lines[0].split(" ")[1], headers, body.decode()


def answer(stream, status, extra=""):
    stream.sendall(f"HTTP/1.1 {status} x\r\n{extra}content-length: 0\r\nconnection: close\r\n\r\n".encode())


def behave(stream, raw, path):
    name = path.strip("/").split("/")[0]
    if name == "hang":
        time.sleep(60)
    elif name == "trickle":
        for octet in b"HTTP/1.1 200 OK\r\nx: " + b"y" * 60:
            stream.sendall(bytes([octet]))
            time.sleep(1)
    elif name == "reset":
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        raw.close()
    elif name == "huge":
        stream.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n")
        try:
            for _ in range(16384):
                stream.sendall(b"x" * 65536)
        except OSError:
            pass
    elif name == "redirect":
        answer(stream, 302, "location: http://127.0.0.1:443/inside\r\n")
    elif name == "later":
        answer(stream, 429, "retry-after: 3600\r\n")
    elif name == "slow":
        time.sleep(0.1)
        answer(stream, 200)
    elif name.isdigit():
        answer(stream, int(name))
    else:
        answer(stream, 200)


def serve_one(raw, port, context):
    stream = raw
    try:
        if context:
            stream = context.wrap_socket(raw, server_side=True)
        request = read_request(stream)
        if request is None:
            return
        path, headers, body = request
        tell({"port": port, "path": path, "headers": headers, "body": body})
        behave(stream, raw, path)
    except (OSError, ValueError):
        pass
    finally:
        try:
            stream.close()
        except OSError:
            pass


def listen(argument):
    port, *files = argument.split(":")
    context = None
    if files:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files[0], files[1])
    server = socket.create_server(("0.0.0.0", int(port)), backlog=256)
    tell({"listening": server.getsockname()[1]})
    while True:
        raw, _ = server.accept()
        threading.Thread(target=serve_one, args=(raw, server.getsockname()[1], context), daemon=True).start()


threads = [threading.Thread(target=listen, args=(argument,)) for argument in sys.argv[1:]]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
