"""Access control for servers: loopback only, or clients that present the token."""

import errno
import ipaddress
import os
import socket

from hypermon.host.errors import HypermonError

__all__ = ["cannot_listen", "is_loopback", "refuse_open_access"]

#: A shorter token can be guessed.
_TOKEN_LEAST = 12


def refuse_open_access(host: str, token: str | None, port: int) -> None:
    """Raises HypermonError if a board would be reachable beyond loopback without a token, or with a weak one."""
    if token is not None and len(token) < _TOKEN_LEAST:
        raise HypermonError(f"--token needs at least {_TOKEN_LEAST} characters; for instance: "
                            "--token \"$(openssl rand -hex 16)\"")
    if token is None and not is_loopback(host):
        raise HypermonError(f"--host {host}: anyone who can connect can record with the board. Add --token "
                            f"\"$(openssl rand -hex 16)\", or omit --host and use "
                            f"ssh -L {port}:localhost:{port}")


def cannot_listen(host: str, port: int, error: OSError | ValueError) -> HypermonError:
    """States why a server cannot listen there, and which option helps."""
    if not isinstance(error, OSError):  # not a valid host name
        return HypermonError(f"--host {host}: it is not an address")
    if error.errno == errno.EADDRINUSE:
        return HypermonError(f"--port {port}: it is in use by another program on {host}; end that, or choose another "
                             "port (0: any free one)")
    if error.errno == errno.EADDRNOTAVAIL:
        return HypermonError(f"--host {host}: it is not an address of this computer")
    known = error.errno in errno.errorcode and not isinstance(error, socket.gaierror)
    return HypermonError(f"--host {host} --port {port}: {os.strerror(error.errno or 0) if known else error.strerror}")


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
