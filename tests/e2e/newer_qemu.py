"""QEMU of Debian's backports, which has the client of vfio-user; older ones do not.

It and all its libraries are downloaded and unpacked into ``.build/newer``, and it runs by its own dynamic loader.
Nothing is installed, and this machine's package lists are not changed.
"""

import re
import shutil
from pathlib import Path

from linux_guest import GuestError, Steps, call

__all__ = ["emulator"]

_BUILD = Path(__file__).parents[2] / ".build" / "newer"
_RELEASE = "trixie"
_PACKAGE = "qemu-system-x86"
_MIRROR = "http://deb.debian.org/debian"
_KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_DEVICE = "vfio-user-pci"


def emulator(say: Steps) -> list[str]:
    """The command of a QEMU with vfio-user, and where its files are; downloaded once.

    Raises
    ------
    GuestError
        if it cannot be had.
    """
    root = _BUILD / "root"
    if not (root / "complete").exists():
        shutil.rmtree(_BUILD, ignore_errors=True)
        try:
            _download(say, root)
        except (GuestError, OSError) as error:
            raise GuestError(f"there is no QEMU with {_DEVICE}: {error}; it comes from {_RELEASE}-backports at "
                             f"{_MIRROR}, through apt") from None
        (root / "complete").touch()
    libraries, share = root / "usr" / "lib" / "x86_64-linux-gnu", root / "usr" / "share"
    command = ["env", f"QEMU_MODULE_DIR={libraries / 'qemu'}", str(libraries / "ld-linux-x86-64.so.2"),
               "--library-path", f"{libraries}:{libraries / 'pulseaudio'}",
               str(root / "usr" / "bin" / "qemu-system-x86_64")]
    for folder in (share / "qemu", share / "seabios", root / "usr" / "lib" / "ipxe" / "qemu"):
        command += ["-L", str(folder)]
    if _DEVICE not in call(*command, "-device", "help"):
        raise GuestError(f"QEMU of {_RELEASE}-backports has no {_DEVICE} any more")
    return command


def _download(say: Steps, root: Path) -> None:
    """Fetches and unpacks the program with everything it needs, down to its C library."""
    apt, debs = _BUILD / "apt", _BUILD / "debs"
    for folder in (apt / "lists" / "partial", apt / "cache" / "archives" / "partial", debs):
        folder.mkdir(parents=True)
    (apt / "status").touch()
    (apt / "sources.list").write_text("".join(
        f"deb [signed-by={_KEYS}] {_MIRROR} {suite} main\n" for suite in (_RELEASE, f"{_RELEASE}-backports")))
    options = [f"-oDir::State::lists={apt / 'lists'}", f"-oDir::State::status={apt / 'status'}",
               f"-oDir::Cache={apt / 'cache'}", f"-oDir::Etc::sourcelist={apt / 'sources.list'}",
               "-oDir::Etc::sourceparts=-", "-oAcquire::Languages=none", f"-t={_RELEASE}-backports"]
    say(f"apt-get update for {_RELEASE}-backports")
    call("apt-get", *options, "-oAPT::Update::Error-Mode=any", "update")
    simulated = call("apt-get", *options, "install", "--simulate", "--no-install-recommends", _PACKAGE)
    names = re.findall(r"^Inst (\S+)", simulated, re.MULTILINE)
    say(f"downloading {len(names)} packages")
    call("apt-get", *options, "download", *names, cwd=debs)
    for deb in sorted(debs.iterdir()):
        call("dpkg", "-x", str(deb), str(root))
    shutil.rmtree(debs)
