"""Access control for servers: loopback only, or clients that present the token."""

import ipaddress

from hypermon.host.errors import HypermonError

__all__ = ["is_loopback", "refuse_open_access"]

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


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
