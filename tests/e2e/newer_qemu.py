"""QEMU of Debian's backports, which has the client of vfio-user; older ones do not.

It and all its libraries are downloaded and unpacked into ``.build/newer``, and it runs by its own dynamic loader.
Nothing is installed, and this machine's package lists are not changed.
"""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from linux_guest import GuestError, Steps, call

__all__ = ["apt_options", "emulator"]

_BUILD = Path(__file__).parents[2] / ".build" / "newer"
_RELEASE = "trixie"
_PACKAGE = "qemu-system-x86"
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
            raise GuestError(f"there is no QEMU with {_DEVICE}: {error}; it comes from Debian's {_RELEASE}-backports, "
                             "through apt") from None
        (root / "complete").touch()
    libraries, share = root / "usr" / "lib" / "x86_64-linux-gnu", root / "usr" / "share"
    command = ["env", f"QEMU_MODULE_DIR={libraries / 'qemu'}", str(libraries / "ld-linux-x86-64.so.2"),
               "--library-path", f"{libraries}:{libraries / 'pulseaudio'}",
               str(root / "usr" / "bin" / "qemu-system-x86_64")]
    for folder in (share / "qemu", share / "seabios", root / "usr" / "lib" / "ipxe" / "qemu"):
        command += ["-L", str(folder)]
    # The help of all devices loads all modules: what is not unpacked here, from an installed QEMU of another version.
    if f"{_DEVICE} options" not in call(*command, "-device", f"{_DEVICE},help"):
        raise GuestError(f"QEMU of {_RELEASE}-backports has no {_DEVICE} any more")
    return command


def apt_options(folder: Path, suites: Sequence[str]) -> list[str]:
    """Options by which apt knows the packages of these suites, of which the last one counts most, and no others; its
    lists are kept in ``folder``."""
    apt = folder / "apt"
    for part in (apt / "lists" / "partial", apt / "cache" / "archives" / "partial"):
        part.mkdir(parents=True)
    (apt / "status").touch()
    archive = _archive()
    (apt / "sources.list").write_text("".join(f"deb [signed-by={_KEYS}] {archive} {suite} main\n" for suite in suites))
    return ["-oAcquire::Retries=3", f"-oDir::State::lists={apt / 'lists'}", f"-oDir::State::status={apt / 'status'}",
            f"-oDir::Cache={apt / 'cache'}", f"-oDir::Etc::sourcelist={apt / 'sources.list'}",
            "-oDir::Etc::sourceparts=-", "-oAcquire::Languages=none", f"-t={suites[-1]}"]


def _archive() -> str:
    """Address of Debian's archive, as this machine's apt knows it. Raises GuestError if apt knows none."""
    known = call("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages").split()
    archives = [address for address in known if address.rstrip("/").endswith("/debian")]
    if not archives:
        raise GuestError("this machine's apt has no source whose address ends with /debian")
    return archives[0]


def _download(say: Steps, root: Path) -> None:
    """Fetches and unpacks the program with everything it needs, down to its C library."""
    options = apt_options(_BUILD, (_RELEASE, f"{_RELEASE}-backports"))
    (debs := _BUILD / "debs").mkdir()
    say(f"apt-get update for {_RELEASE}-backports")
    call("apt-get", *options, "-oAPT::Update::Error-Mode=any", "update")
    simulated = call("apt-get", *options, "install", "--simulate", "--no-install-recommends", _PACKAGE)
    names = re.findall(r"^Inst (\S+)", simulated, re.MULTILINE)
    say(f"downloading {len(names)} packages")
    call("apt-get", *options, "download", *names, cwd=debs)
    for deb in sorted(debs.iterdir()):
        call("dpkg", "-x", str(deb), str(root))
    shutil.rmtree(debs)
