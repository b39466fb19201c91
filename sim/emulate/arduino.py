"""The node library as a zip that the Arduino IDE installs: `python -m hypermon.sim.emulate.arduino`."""

import argparse
import zipfile
from importlib.metadata import distribution
from pathlib import Path

__all__ = ["NAME", "main", "write_library"]

NODE = Path(__file__).parents[2] / "node"
#: Of a checkout, whose metadata may lack it.
LICENSE = Path(__file__).parents[2] / "LICENSE"
#: The library's name, which is that of its folder and of its header.
NAME = "HypermonNode"


def _contents() -> dict[str, str]:
    """The library's files: path within its folder, and text."""
    arduino = NODE / "arduino"
    headers = sorted((NODE / "hypermon").glob("*.h"))
    properties = (arduino / "library.properties").read_text(encoding="utf-8")
    package = distribution("hypermon")
    files = {"library.properties": properties.replace("@VERSION@", package.version),
             "LICENSE": package.read_text("licenses/LICENSE") or LICENSE.read_text(encoding="utf-8")}
    for name, source in {
            "keywords.txt": arduino / "keywords.txt",
            f"src/{NAME}.h": arduino / f"{NAME}.h",
            "src/hypermon.h": NODE / "hypermon.h",
            "src/HypermonFreeRTOS.h": arduino / "HypermonFreeRTOS.h",
            **{f"src/hypermon/{header.name}": header for header in headers},
            **{f"examples/{sketch.stem}/{sketch.name}": sketch for sketch in sorted(arduino.glob("*.ino"))},
            "extras/freertos.toml": NODE / "freertos.toml"}.items():
        files[name] = source.read_text(encoding="utf-8")
    return files


def write_library(out: Path) -> None:
    """Writes the library to ``out``, which is complete or is not there. Its folder is made.

    Raises
    ------
    OSError
        if the file cannot be written.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(out.name + ".part")
    try:
        with zipfile.ZipFile(part, "w") as archive:
            for name, text in _contents().items():
                entry = zipfile.ZipInfo(f"{NAME}/{name}")  # of 1980: the same sources make the same bytes
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, text, zipfile.ZIP_DEFLATED)
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)


def main(arguments: list[str] | None = None) -> None:
    """Writes the library where the command line says."""
    parser = argparse.ArgumentParser(prog="python -m hypermon.sim.emulate.arduino", description=__doc__)
    parser.add_argument("-o", dest="out", type=Path, default=Path(f"{NAME}.zip"), metavar="FILE",
                        help="the zip (default: %(default)s)")
    out = parser.parse_args(arguments).out
    try:
        write_library(out)
    except OSError as error:
        parser.exit(1, f"{out}: {error.strerror}\n")
    print(f"{out}: in the Arduino IDE, Sketch > Include Library > Add .ZIP Library")


if __name__ == "__main__":
    main()
