# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Two-way ports of a QEMU that runs: lines of text, and the machine protocol."""

import json
import socket

# Of wall time. QEMU answers at once, unless it is not well.
PATIENCE = 60


class Port:
    """A character device of QEMU's on a socket whose other end we hold. What comes in is kept as lines."""

    def __init__(self, name):
        self.name = name
        self.socket, self.theirs = socket.socketpair()
        self.rest, self.lines = b"", []

    def fds(self):
        return [self.theirs.fileno()]

    def chardev(self):
        return ["-chardev", f"socket,id={self.name},fd={self.theirs.fileno()}"]

    def started(self):
        """QEMU has its end now. Without ours of it, its death is an end of file here."""
        self.theirs.close()

    def take(self, seconds=0.0):
        """Reads all there is, or waits for some. False at the end of the file."""
        self.socket.settimeout(seconds)
        try:
            while data := self.socket.recv(65536):
                *lines, self.rest = (self.rest + data).split(b"\n")
                self.lines += [line.decode(errors="replace").rstrip("\r") for line in lines]
                self.socket.settimeout(0.0)
        except (BlockingIOError, TimeoutError):
            return True
        except ConnectionResetError:
            pass
        return False

    def put(self, text):
        self.socket.settimeout(PATIENCE)
        self.socket.sendall(text.encode())

    def close(self):
        self.theirs.close()
        self.socket.close()


class Qmp(Port):
    """The machine protocol: commands, and events as they come."""

    def __init__(self):
        super().__init__("qmp")
        self.events = []

    def options(self):
        return self.chardev() + ["-mon", "chardev=qmp,mode=control"]

    def started(self):
        super().started()
        self.command("qmp_capabilities")

    def sort(self):
        """Moves events out of the lines and returns the first answer, or None."""
        while self.lines:
            message = json.loads(self.lines.pop(0))
            if "event" in message:
                self.events.append(message["event"])
            elif "QMP" not in message:
                return message
        return None

    def command(self, name, **arguments):
        self.put(json.dumps({"execute": name, "arguments": arguments}) + "\n")
        answer = None
        while answer is None:
            if not self.take(PATIENCE):
                raise ConnectionError(f"QEMU ended during {name}")
            answer = self.sort()
        if "error" in answer:
            raise ConnectionError(f"{name}: {answer['error'].get('desc')}")
        return answer["return"]

    def monitor(self, line):
        """A command of the monitor for people, which can do what the protocol cannot."""
        return self.command("human-monitor-command", **{"command-line": line})

    def event(self, name):
        """Whether an event of that name has come since it was last asked for."""
        self.take()
        self.sort()
        if name not in self.events:
            return False
        self.events.remove(name)
        return True
