"""An unmodified Linux in QEMU, in which programs of this machine run.

Debian's QEMU, kernel and BusyBox are downloaded and unpacked into ``.build/guest``; nothing is installed. The
guest sees this machine's root file system, read-only, so what is installed or built here runs there as it is,
with the guest's kernel beneath it, whatever modules and devices that is to have.
"""

import lzma
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

__all__ = ["BUILD", "LIBRARIES", "MEGABYTES", "GuestError", "Steps", "call", "run_in_guest", "unpack"]

BUILD = Path(__file__).parents[2] / ".build" / "guest"
#: Libraries of the packages, for programs that this machine has not installed all of.
LIBRARIES = BUILD / "root" / "usr" / "lib" / "x86_64-linux-gnu"
#: All whose files are looked for beside the program, installed or not; an installed library is found where it is.
_PACKAGES = ("qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios", "ipxe-qemu", "busybox-static",
             "libusb-1.0-0")
_KERNEL = "linux-image-amd64"
_MODULES = ("virtio_pci", "9pnet_virtio", "9p")
#: The guest's memory.
MEGABYTES = 1024
#: Seconds until a guest is given up.
_LIMIT_S = 1800

#: The guest's first program. The host's root is at /host, and what comes back goes to /host/mnt.
_INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
for module in $(cat /modules/order); do insmod /modules/$module || echo "guest: no $module"; done
options=trans=virtio,version=9p2000.L,msize=262144
mount -t 9p -o $options,ro,cache=loose root /host && mount -t 9p -o $options out /host/mnt || echo "guest: no files"
mount -t proc proc /host/proc; mount -t sysfs sys /host/sys; mount --bind /dev /host/dev
chroot /host /bin/sh /mnt/script
echo "guest: exit $?"
poweroff -f
"""


class GuestError(Exception):
    """What went wrong, for a person."""


class Steps:
    """Says what is being done, and when."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def __call__(self, what: str) -> None:
        print(f"[{time.monotonic() - self._start:6.1f} s] {what}", flush=True)


def call(*command: str, cwd: Path | None = None) -> str:
    """What a command prints.

    Raises
    ------
    GuestError
        with its last line, if it fails.
    """
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise GuestError(f"{' '.join(command[:3])}: {lines[-1] if lines else done.returncode}")
    return done.stdout


# ---------------------------------------------------------------------------------------- packages

def unpack(say: Steps, more: Callable[[str], Sequence[str]] = lambda release: ()) -> Path:
    """The directory with everything that Debian brings; filled once.

    Parameters
    ----------
    more : names of other packages, without what they need, for the kernel's release (6.1.0-56-amd64 and the like).
    """
    root = _unpack(say)
    names = more(release(root))
    missing = [name for name in names if not (root / f"complete-{name}").exists()]
    if missing:
        _download(say, missing, root)
        for name in missing:
            (root / f"complete-{name}").touch()
    return root


def release(root: Path) -> str:
    """The kernel's."""
    return next((root / "boot").glob("vmlinuz-*")).name.removeprefix("vmlinuz-")


def _unpack(say: Steps) -> Path:
    root = BUILD / "root"
    if (root / "complete").exists():
        return root
    shutil.rmtree(BUILD, ignore_errors=True)
    if not any(Path("/var/lib/apt/lists").glob("*Packages*")):
        say("apt-get update")
        call("apt-get", "-oAcquire::Retries=3", "update")
    simulated = call("apt-get", "install", "--simulate", "--no-install-recommends", *_PACKAGES)
    kernel = re.search(r"Depends: (linux-image-\S+)", call("apt-cache", "depends", _KERNEL))
    if not kernel:
        raise GuestError(f"apt-cache knows no {_KERNEL}")
    wanted = [*re.findall(r"^Inst (\S+)", simulated, re.MULTILINE), kernel[1]]
    # apt leaves out what is installed, but the emulator looks for its modules and firmware in the unpacked tree.
    _download(say, list(dict.fromkeys([*wanted, *_PACKAGES])), root)
    (root / "complete").touch()
    return root


def _download(say: Steps, packages: Sequence[str], root: Path) -> None:
    debs = BUILD / "debs"
    shutil.rmtree(debs, ignore_errors=True)
    debs.mkdir(parents=True)
    say(f"downloading {len(packages)} packages")
    call("apt-get", "-oAcquire::Retries=3", "download", *packages, cwd=debs)
    for deb in sorted(debs.iterdir()):
        call("dpkg", "-x", str(deb), str(root))
    shutil.rmtree(debs)


# ------------------------------------------------------------------------------------ the guest's files

def _modules(root: Path, names: Sequence[str], built: Sequence[Path]) -> list[Path]:
    """The files of kernel modules, each behind those it needs."""
    files = {path.name.partition(".")[0].replace("-", "_"): path
             for path in (*(root / "lib" / "modules").rglob("*.ko*"), *built)}
    order: list[Path] = []

    def add(name: str) -> None:
        path = files.get(name.replace("-", "_"))
        if path is None or path in order:
            return  # one that is built in is no file
        needs = re.search(rb"\0depends=([^\0]*)\0", _module(path))
        for need in needs[1].decode().split(",") if needs else ():
            add(need)
        order.append(path)

    for name in names:
        add(name)
    return order


def _module(path: Path) -> bytes:
    return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()


def _cpio(entries: dict[str, tuple[int, bytes]]) -> Iterator[bytes]:
    """An archive as the kernel unpacks it (Documentation/driver-api/early-userspace/buffer-format)."""
    for number, (name, (mode, data)) in enumerate([*entries.items(), ("TRAILER!!!", (0, b""))], 1):
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        head = b"070701" + b"".join(b"%08x" % value for value in fields) + name.encode() + b"\0"
        yield head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)


def _initrd(root: Path, files: Sequence[Path], target: Path) -> Path:
    """Writes the guest's first file system."""
    directory, program, plain = 0o040755, 0o100755, 0o100644
    entries = dict.fromkeys(("bin", "dev", "host", "modules", "proc", "sys"), (directory, b""))
    entries["bin/busybox"] = (program, (root / "bin" / "busybox").read_bytes())
    entries["init"] = (program, _INIT.encode())
    entries["modules/order"] = (plain, "\n".join(path.name for path in files).encode())
    for path in files:
        entries[f"modules/{path.name}"] = (plain, _module(path))
    target.write_bytes(b"".join(_cpio(entries)))
    return target


# ----------------------------------------------------------------------------------------- the guest

def _emulator(root: Path) -> list[str]:
    """Debian's QEMU of this machine's release."""
    environment = {"LD_LIBRARY_PATH": f"{LIBRARIES}:{root / 'lib' / 'x86_64-linux-gnu'}",
                   "QEMU_MODULE_DIR": str(LIBRARIES / "qemu")}
    share = root / "usr" / "share"
    files = [argument for folder in (share / "qemu", share / "seabios", root / "usr" / "lib" / "ipxe" / "qemu")
             for argument in ("-L", str(folder))]
    return ["env", *(f"{name}={value}" for name, value in environment.items()),
            str(root / "usr" / "bin" / "qemu-system-x86_64"), *files]


def _machine(root: Path, kernel: Path, out: Path, first: Path, devices: Sequence[str], emulator: Sequence[str],
             kernel_options: str) -> list[str]:
    """The command that runs the guest."""
    shares = []
    for name, path, mode in (("root", Path("/"), ",readonly=on,multidevs=remap"), ("out", out, "")):
        shares += ["-fsdev", f"local,id={name},path={path},security_model=none{mode}",
                   "-device", f"virtio-9p-pci,fsdev={name},mount_tag={name}"]
    return [*(emulator or _emulator(root)), "-M", "q35,accel=tcg", "-cpu", "max",
            "-m", str(MEGABYTES), "-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio",
            "-no-reboot", "-kernel", str(kernel), "-initrd", str(first),
            "-append", f"console=ttyS0 quiet panic=-1 mitigations=off {kernel_options}", *shares, *devices]


def run_in_guest(script: str, out: Path, say: Steps, *, modules: Sequence[str] = (),
                 built: Sequence[Path] = (), devices: Sequence[str] = (), emulator: Sequence[str] = (),
                 kernel_options: str = "tsc=reliable", kernel: Path | None = None) -> list[str]:
    """Boots a guest and runs a shell script there, as root; what it prints, line by line.

    Parameters
    ----------
    script : for /bin/sh. Everything of this machine is where it is here, and cannot be written.
    out : a directory of this machine that the guest has at /mnt, and can write to.
    say : is told every line as it comes.
    modules : of the kernel, loaded with those they need.
    built : files of modules that are not Debian's.
    devices : options of QEMU for what else the machine has.
    emulator : another QEMU, and where its files are.
    kernel_options : for the kernel's command line.
    kernel : a directory with another kernel and its modules.

    Raises
    ------
    GuestError
        if the guest does not boot, or the script's exit status is not 0.
    """
    root = _unpack(say)
    (out / "script").write_text(script)
    first = _initrd(root, _modules(kernel or root, (*_MODULES, *modules), built), out / "initrd")
    say("the guest boots")
    said: list[str] = []
    image = next(((kernel or root) / "boot").glob("vmlinuz-*"))
    machine = _machine(root, image, out, first, devices, emulator, kernel_options)
    with subprocess.Popen(machine, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace") as guest:
        timer = threading.Timer(_LIMIT_S, guest.kill)
        timer.start()
        try:
            for line in guest.stdout or ():
                # The firmware's cursor movements are no text.
                if line := re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|[\r\n]", "", line).strip():
                    said.append(line)
                    say(f"  {line}")
        finally:
            guest.kill()
            timer.cancel()
    if "guest: exit 0" not in said:
        raise GuestError("the script has not ended well in the guest; see above")
    return said
