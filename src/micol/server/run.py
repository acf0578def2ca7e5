"""Binds, loads, serves, and ends in order."""

from __future__ import annotations

import gc
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn

from micol.errors import MicolError
from micol.files import reason
from micol.progress import say
from micol.server.app import create_app
from micol.server.corpus_view import CorpusView
from micol.server.service import Options, Service


def serve(folder: Path, options: Options, port: int, corpus: Callable[[], CorpusView] | None = None) -> None:
    """Serves until it is told to stop; what was accepted by then is answered."""
    # Bound first, so that a port in use is told at once; it answers only when the model is there.
    listener = bound(options.host, port)
    service = Service(folder, options, corpus() if corpus else None)
    app = create_app(service)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=int(options.limits.seconds) + 5,
        ws="none",
    )
    server = uvicorn.Server(config)

    def stop(number: int, frame: object) -> None:
        server.should_exit = True

    for wanted in (signal.SIGTERM, signal.SIGINT):
        # uvicorn acts on these itself once it runs, then raises them again: being told to stop is no failure.
        signal.signal(wanted, stop)
    # Said only now: whoever has read this may tell it to stop.
    say(f"micol: {service.name}, {len(service.state.labels):,} labels, at {address(listener)}")
    if service.changes.kind == "off":
        say(f"micol: {service.changes.why_off}")
    # What was loaded stays: the collector need not look through a million objects while requests wait.
    gc.collect()
    gc.freeze()
    server.run(sockets=[listener])


def bound(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
    except OSError as error:
        raise MicolError(
            f"{host}:{port} cannot be listened on ({reason(error)}); choose another --host or --port"
        ) from error
    return listener


def address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
