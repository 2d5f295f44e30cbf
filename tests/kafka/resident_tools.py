"""Runs Kafka's own tools in one resident JVM, because a play calls a dozen and each would start its own JVM.

A tool's script sends its class and arguments to a server on loopback. The server runs the class's `main` and returns
what it printed and its exit code. As in Kafka's own tests, `Exit.exit` ends the tool but not the JVM. The first exit
code counts.
"""

from __future__ import annotations

import socketserver
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

from cluster import TOOLS, Cluster
from py4j.java_gateway import CallbackServerParameters, JavaGateway
from py4j.protocol import Py4JError

# These start a server or write its disks, so they keep their own process.
OWN_PROCESS = {"kafka-server-start", "kafka-storage"}
JAVA_OPTIONS = [
    "-Xmx256m",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
]

# `json` and `socket` would take half of its CPU.
CLIENT = """\
#!{python} -IS
import _socket, sys
server = _socket.socket(_socket.AF_INET)
server.connect(("127.0.0.1", {port}))
server.sendall("\\0".join(["{java_class}", *sys.argv[1:]]).encode())
server.shutdown(_socket.SHUT_WR)
code, out, err = b"".join(iter(lambda: server.recv(65536), b"")).decode().split("\\0")
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(int(code))
"""


class _ExitedError(Exception):
    """Ends the tool that called `Exit.exit`."""


@dataclass
class _ExitProcedure:
    """Replaces Kafka's `Exit.exit`: it keeps the exit code, and ends the tool with an exception."""

    code: int | None = None

    def execute(self, status_code: int, message: str | None) -> None:
        """Implements the method of Kafka's interface."""
        if self.code is None:
            self.code = status_code
        raise _ExitedError(message)

    class Java:
        """Tells py4j the Java interface."""

        implements = ("org.apache.kafka.common.utils.Exit$Procedure",)


@dataclass(frozen=True)
class _Tools:
    """A JVM with Kafka's classes. Calls run one after the other, because all print to the same two streams."""

    gateway: JavaGateway
    out: Any
    err: Any
    exit: _ExitProcedure = field(default_factory=_ExitProcedure)

    @staticmethod
    def started(libs: Path) -> _Tools:
        """Starts the JVM. The streams and the exit procedure are set before any of Kafka's classes is loaded."""
        gateway = JavaGateway.launch_gateway(classpath=f"{libs}/*", javaopts=JAVA_OPTIONS, die_on_exit=True)
        gateway.start_callback_server(CallbackServerParameters(port=0, daemonize=True, daemonize_connections=True))
        server = gateway.java_gateway_server
        address = server.getCallbackClient().getAddress()
        server.resetCallbackClient(address, gateway.get_callback_server().get_listening_port())
        java = gateway.jvm.java
        tools = _Tools(gateway, java.io.ByteArrayOutputStream(), java.io.ByteArrayOutputStream())
        java.lang.System.setOut(java.io.PrintStream(tools.out, True))
        java.lang.System.setErr(java.io.PrintStream(tools.err, True))
        gateway.jvm.org.apache.kafka.common.utils.Exit.setExitProcedure(tools.exit)
        return tools

    def run(self, java_class: str, *arguments: str) -> tuple[int, str, str]:
        """Run a tool. Return its exit code, stdout and stderr."""
        self.out.reset()
        self.err.reset()
        self.exit.code = None
        given = self.gateway.new_array(self.gateway.jvm.java.lang.String, len(arguments))
        for number, argument in enumerate(arguments):
            given[number] = argument
        tool = self.gateway.jvm
        for name in java_class.split("."):
            tool = getattr(tool, name)
        uncaught = ""
        try:
            tool.main(given)
        except Py4JError as error:
            uncaught = "" if self.exit.code is not None else f"{error}\n"
        code = 1 if uncaught else self.exit.code or 0
        return code, self.out.toString(), self.err.toString() + uncaught


@contextmanager
def resident(cluster: Cluster) -> Iterator[None]:
    """Makes the scripts of a cluster's tools call one JVM. The JVM ends with the context."""
    tools = _Tools.started(cluster.bin_dir.parent / "libs")

    class Call(socketserver.StreamRequestHandler):
        """One call of a tool."""

        def handle(self) -> None:
            """Read the class and the arguments, and answer with the tool's result. A NUL is between each two."""
            ended = tools.run(*self.rfile.read().decode().split("\0"))
            self.wfile.write("\0".join(map(str, ended)).encode())

    with socketserver.TCPServer(("127.0.0.1", 0), Call) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        for name in TOOLS.keys() - OWN_PROCESS:
            script = CLIENT.format(python=sys.executable, port=server.server_address[1], java_class=TOOLS[name])
            (cluster.bin_dir / f"{name}.sh").write_text(script)
        try:
            yield
        finally:
            server.shutdown()
            tools.gateway.shutdown()
