import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

NODE = Path(__file__).parents[2] / "node"
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror")

Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def compile_c(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """compile_c(source text or file, *flags, language="c99") -> program. Warnings are errors."""

    def compile_c(source: str | Path, *flags: str, language: str = "c99") -> Path:
        compiler = {"c": "cc", "g": "c++"}[language[0]]
        if shutil.which(compiler) is None:
            pytest.skip(f"no {compiler} here")
        folder = tmp_path_factory.mktemp("c")
        if isinstance(source, str):
            text, source = source, folder / "program.c"
            source.write_text(text)
        program = folder / "program"
        kind = ["-x", "c++", f"-std={language.replace('g', 'c')}"] if compiler == "c++" else [f"-std={language}"]
        done = subprocess.run([compiler, "-O2", *kind, *WARNINGS, *flags, "-pthread", f"-I{NODE}",
                               str(source), "-o", str(program)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return program

    return compile_c
