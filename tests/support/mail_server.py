"""A mail server that takes every message, in the words of SMTP that a client needs."""

from __future__ import annotations

import socketserver


class MailServer(socketserver.ThreadingTCPServer):
    """Keeps the messages it was given, as text; while `refuses` is true it takes none."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.messages: list[str] = []
        self.refuses = False

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, MailServer)
        self._say("220 ready")
        while line := self.rfile.readline().decode().strip():
            word = line.split()[0].upper()
            if word == "QUIT":
                self._say("221 bye")
                return
            if word == "DATA" and not self.server.refuses:
                self._say("354 go on")
                self.server.messages.append(self._message())
                self._say("250 taken")
            else:
                self._say("451 later" if self.server.refuses and word == "MAIL" else "250 fine")

    def _message(self) -> str:
        lines = []
        while (line := self.rfile.readline().decode().rstrip("\r\n")) != ".":
            lines.append(line)
        return "\n".join(lines)

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())
