"""A Debian kernel with iommufd, which Debian's own kernels leave out (CONFIG_IOMMUFD is not set).

The kernel of Debian's backports, and its VFIO built once more from Debian's source with iommufd: only modules, and none
of them is changed. Everything is downloaded and unpacked into ``.build/iommufd``; nothing is installed.
"""

import re
import shutil
from pathlib import Path

from linux_guest import GuestError, Steps, call
from newer_qemu import apt_options

__all__ = ["kernel"]

_BUILD = Path(__file__).parents[2] / ".build" / "iommufd"
_RELEASE, _SERIES = "bookworm", "6.12"
#: Directories of the source that are built, in the tarball's linux-source-6.12.
_PARTS = ("drivers/iommu/iommufd", "drivers/iommu/iommu-priv.h", "drivers/vfio", "lib/interval_tree.c")
#: Settings that Debian's kernel does not have, for the compiler; and for make, with parts that are not needed.
_DEFINES = ("IOMMUFD_MODULE", "IOMMUFD_DRIVER", "VFIO_DEVICE_CDEV", "INTERVAL_TREE_SPAN_ITER")
_SETTINGS = ("CONFIG_IOMMUFD=m", "CONFIG_VFIO_DEVICE_CDEV=y", *(f"CONFIG_{name}=" for name in (
    "DEBUG_INFO_BTF_MODULES", "MLX5_VFIO_PCI", "PDS_VFIO_PCI", "VIRTIO_VFIO_PCI", "QAT_VFIO_PCI",
    "NVGRACE_GPU_VFIO_PCI", "VFIO_MDEV", "VFIO_CDX", "VFIO_PLATFORM_BASE")))


def kernel(say: Steps) -> tuple[Path, list[Path]]:
    """A directory with the kernel and its modules, and the modules with iommufd; made once.

    Raises
    ------
    GuestError
        if it cannot be had or built.
    """
    if not (_BUILD / "complete").exists():
        shutil.rmtree(_BUILD, ignore_errors=True)
        try:
            _build(say, _download(say))
        except (GuestError, OSError) as error:
            raise GuestError(f"there is no kernel with iommufd: {error}; it is built from linux-source-{_SERIES} of "
                             f"Debian's {_RELEASE}-backports, by make and gcc-12") from None
        (_BUILD / "complete").touch()
    return _BUILD / "root", sorted((_BUILD / "modules").rglob("*.ko"))


def _download(say: Steps) -> str:
    """Fetches and unpacks kernel, headers and source. The kernel's release."""
    options = apt_options(_BUILD, (f"{_RELEASE}-backports",))
    say(f"apt-get update for {_RELEASE}-backports")
    call("apt-get", *options, "-oAPT::Update::Error-Mode=any", "update")
    found = re.findall(rf"^linux-headers-({re.escape(_SERIES)}\.\S+-amd64) ", call(
        "apt-cache", *options, "search", "--names-only", f"^linux-headers-{_SERIES}.*-amd64$"), re.MULTILINE)
    releases = [release for release in found if not re.search("cloud|rt", release)]
    if not releases:
        raise GuestError(f"apt-cache knows no linux-headers-{_SERIES}")
    release = releases[-1]
    version = release.removesuffix("-amd64")
    say(f"downloading Linux {release} and its source")
    (_BUILD / "debs").mkdir()
    call("apt-get", *options, "download", f"linux-image-{release}", f"linux-headers-{release}",
         f"linux-headers-{version}-common", f"linux-kbuild-{version}", f"linux-source-{_SERIES}", cwd=_BUILD / "debs")
    for deb in sorted((_BUILD / "debs").iterdir()):
        call("dpkg", "-x", str(deb), str(_BUILD / ("source" if "source" in deb.name else "root")))
    shutil.rmtree(_BUILD / "debs")
    return release


def _build(say: Steps, release: str) -> None:
    say("building its modules with iommufd")
    tree, modules, headers = _BUILD / "tree", _BUILD / "modules", _BUILD / "root" / "usr" / "src"
    tree.mkdir()
    name = f"linux-source-{_SERIES}"
    call("tar", "-xf", str(_BUILD / "source" / "usr" / "src" / f"{name}.tar.xz"), "-C", str(tree),
         "--strip-components=1", *(f"{name}/{part}" for part in _PARTS))
    shutil.rmtree(_BUILD / "source")
    shutil.copytree(tree / "drivers", modules, ignore=shutil.ignore_patterns("Kconfig"))
    # The list of directories; and into iommufd, what is otherwise built into the kernel with it.
    (modules / "Kbuild").write_text("obj-m += iommu/iommufd/ vfio/\n")
    makefile, iommufd = modules / "iommu" / "iommufd" / "Makefile", modules / "iommu" / "iommufd"
    rules = [line for line in makefile.read_text().splitlines() if "IOMMUFD_DRIVER" not in line]
    makefile.write_text("\n".join([*rules, "iommufd-y += iova_bitmap.o span_iter.o", ""]))
    tree_source = (tree / "lib" / "interval_tree.c").read_text()
    spans = tree_source[tree_source.index("#ifdef CONFIG_INTERVAL_TREE_SPAN_ITER"):]
    (iommufd / "span_iter.c").write_text("#include <linux/interval_tree.h>\n" + re.sub(r"EXPORT_SYMBOL\S*;", "", spans))
    place = headers / f"linux-headers-{release}"
    (place / "Makefile").write_text((place / "Makefile").read_text().replace("/usr/src/", f"{headers}/"))
    call("make", "-C", str(place), f"M={modules}", "-j2", *_SETTINGS,
         f"KCFLAGS={' '.join(f'-DCONFIG_{name}=1' for name in _DEFINES)}", "modules")
