"""What stands between the network and the app: limits, host names, headers, who may change labels."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from micol.server.limits import Limits
from micol.server.metrics import Metrics
from micol.server.problems import RequestError, answer

SECURITY_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-cache"),
)
WITH_BODY = ("POST", "PUT", "PATCH", "DELETE")


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Changes:
    """Who may change labels: whoever has the token; without one, anybody on this machine.

    Nobody changes those of a model of the hub: its copy here is replaced when the hub's changes.
    """

    token: str | None
    is_local: bool
    is_fetched: bool = False

    @property
    def kind(self) -> str:
        if self.is_fetched:
            return "off"
        if self.token is not None:
            return "token"
        return "open" if self.is_local else "off"

    @property
    def why_off(self) -> str:
        if self.is_fetched:
            return "labels of a model from the hub cannot be changed; copy it to a folder, and serve that"
        return (
            "labels cannot be changed over the network: the server was started without a token "
            "(see `micol serve --help`)"
        )

    def check(self, request: Request) -> None:
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
            raise RequestError(403, "labels cannot be changed from another site's page")
        if self.kind == "off":
            raise RequestError(403, self.why_off)
        if self.token is None:
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.token.encode()):
            raise RequestError(
                401,
                "changing labels needs the server's token in a header: Authorization: Bearer TOKEN",
                {"WWW-Authenticate": 'Bearer realm="micol"'},
            )


class Guard:
    """The outermost layer: reads bodies whole within their limits, and adds headers to every answer."""

    def __init__(self, app: ASGIApp, limits: Limits, metrics: Metrics, knows_host: Callable[[str], bool]):
        self.app, self.limits, self.metrics, self.knows_host = app, limits, metrics, knows_host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500

        async def with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                present = {name for name, _ in message["headers"]}
                extra = [header for header in SECURITY_HEADERS if header[0] not in present]
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        try:
            try:
                body = await self.admitted(scope, receive)
            except RequestError as problem:
                refusal = answer(problem.status, problem.detail, {**problem.headers, "Connection": "close"})
                await refusal(scope, receive, with_headers)
                return
            await self.app(scope, replay(body, receive), with_headers)
        finally:
            route = getattr(scope.get("route"), "path", "none")
            self.metrics.request(scope["method"], route, status, time.perf_counter() - started)

    async def admitted(self, scope: Scope, receive: Receive) -> bytes:
        """The request's body, if nothing speaks against the request."""
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        if not self.knows_host(host):
            raise RequestError(421, "this server does not go by that host name")
        if scope["method"] not in WITH_BODY:
            return b""
        declared = headers.get(b"content-length", b"0")
        if not declared.isdigit() or int(declared) > self.limits.body_bytes:
            raise self.too_large()
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await self.body(receive)
        except TimeoutError:
            raise RequestError(408, f"the body took longer than {self.limits.seconds:g} seconds") from None

    async def body(self, receive: Receive) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise RequestError(400, "the connection was closed before the body was whole")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self.limits.body_bytes:
                raise self.too_large()
            if not message.get("more_body", False):
                return b"".join(parts)

    def too_large(self) -> RequestError:
        return RequestError(
            413, f"the body is larger than the {self.limits.body_bytes:,} bytes that are taken"
        )


def replay(body: bytes, receive: Receive) -> Receive:
    """Gives the app the body that was read already, then whatever comes after it."""
    is_given = False

    async def again() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def host_check(bound_to: str) -> Callable[[str], bool]:
    """On this machine only its own names are answered to, so that no site can point its name here."""
    if not is_loopback(bound_to):
        return lambda host: True

    def is_own(host: str) -> bool:
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        return is_loopback(name)

    return is_own
