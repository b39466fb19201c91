"""The sources of FreeRTOS-Kernel, as a crate carries them."""

import json
import subprocess
from pathlib import Path

from tests.patience import patience
from tests.programs import MissingError, working

HERE = Path(__file__).parents[1] / "freertos"


def kernel(folder: Path) -> Path:
    """The kernel's sources, downloaded by cargo through a package that is written to ``folder``.

    Raises
    ------
    MissingError
        without cargo or its registry.
    """
    working("cargo")
    for name in ("Cargo.toml", "none.rs"):
        (folder / name).write_text((HERE / name).read_text() if (HERE / name).exists() else "")
    done = subprocess.run(["cargo", "metadata", "--format-version", "1", "-q"], cwd=folder, capture_output=True,
                          text=True, timeout=patience(300))
    if done.returncode:
        raise MissingError(f"FreeRTOS-Kernel cannot be downloaded: {done.stderr.strip().splitlines()[-1]}")
    [package] = [one for one in json.loads(done.stdout)["packages"] if one["name"] == "freertos-next"]
    return Path(package["manifest_path"]).parent / "FreeRTOS-Kernel"
