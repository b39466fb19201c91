"""Other people's programs that read what the host exports."""

import os
import shutil
import subprocess

import pytest

__all__ = ["read_by", "there"]


def there(package: str, program: str) -> str:
    """Where a program of a Debian package is. It is installed if that can be done; the test is skipped if not."""
    if shutil.which(program) is None and os.getuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", package], check=False,
                       timeout=300, capture_output=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"no {program}: apt-get install {package}")
    return found


def read_by(package: str, program: str, *arguments: object, **environment: str) -> str:
    """What a program of a Debian package prints; see :func:`there`."""
    done = subprocess.run([there(package, program), *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          check=False, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout + done.stderr
