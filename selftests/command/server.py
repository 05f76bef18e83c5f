# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Servers on real sockets, which answer as a script says: HTTP/1.1, and HTTP/2 without TLS."""

import socket
import struct
import threading
import time

REASONS = {200: "OK", 302: "Found", 404: "Not Found", 429: "Too Many Requests", 500: "Internal Server Error",
           503: "Service Unavailable"}


class Answer:
    """A status, headers as they are written, a body."""

    def __init__(self, status, *headers, body=b"body\n"):
        self.status, self.headers, self.body = status, headers, body


class Server:
    """Answers the n-th request with the n-th answer, and those that follow with the last.

    An answer may be RESET. came has the time at which each request was there, went that at which it
    was answered.
    """

    RESET = "reset"

    def __init__(self, *answers):
        self.answers, self.came, self.went = answers, [], []
        self.lock = threading.Lock()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """From now on connections are refused."""
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def accept(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with client:
            try:
                self.talk(client)
            except (ConnectionError, EOFError):
                pass

    def next_answer(self):
        with self.lock:
            self.came.append(time.monotonic())
            return self.answers[min(len(self.came), len(self.answers)) - 1]

    def answered(self):
        with self.lock:
            self.went.append(time.monotonic())

    def waits(self):
        """The seconds from each answer to the next request."""
        return [came - went for went, came in zip(self.went, self.came[1:])]

    def reset(self, client):
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.answered()

    def talk(self, client):
        head = b""
        while b"\r\n\r\n" not in head:
            data = client.recv(65536)
            if not data:
                return
            head += data
        answer = self.next_answer()
        if answer == self.RESET:
            self.reset(client)
            return
        lines = [f"HTTP/1.1 {answer.status} {REASONS[answer.status]}", *answer.headers,
                 f"Content-Length: {len(answer.body)}", "Connection: close", "", ""]
        # The time is taken first, so that no request can seem to come before its answer.
        self.answered()
        client.sendall("\r\n".join(lines).encode() + answer.body)


DATA, HEADERS, SETTINGS, GOAWAY = 0, 1, 4, 7
END_STREAM, END_HEADERS, ACK = 1, 4, 1


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name, value):
    """A header that is not indexed and not compressed; both are shorter than 127 bytes."""
    name, value = name.lower().encode(), value.encode()
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


class Server2(Server):
    """The same over HTTP/2, for clients that know: RFC 9113, 3.3."""

    @staticmethod
    def read(client, count):
        data = b""
        while len(data) < count:
            more = client.recv(count - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def talk(self, client):
        self.read(client, len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
        client.sendall(frame(SETTINGS, 0, 0))
        while True:
            length, kind, flags, stream = struct.unpack(">IBBI", b"\0" + self.read(client, 9))
            self.read(client, length)
            if kind == SETTINGS and not flags & ACK:
                client.sendall(frame(SETTINGS, ACK, 0))
            elif kind == HEADERS:
                self.answer(client, stream)

    def answer(self, client, stream):
        answer = self.next_answer()
        if answer == self.RESET:
            self.reset(client)
            raise EOFError
        block = literal(":status", str(answer.status))
        for header in answer.headers:
            name, _, value = header.partition(":")
            block += literal(name, value.strip())
        self.answered()
        client.sendall(frame(HEADERS, END_HEADERS, stream, block) + frame(DATA, END_STREAM, stream, answer.body))


def unused_port():
    """Nobody listens there."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]
