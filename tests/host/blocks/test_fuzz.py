"""The C decoders against mutated input, under the address and undefined-behaviour sanitizers.

With clang it is libFuzzer, which looks for new paths; with any other compiler a plain loop with a seed.
"""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from hypermon.hdl.layout import BlockType
from hypermon.host.blocks.item_modes import ItemModes

from tests.host.compact_write import encode, encode_items
from tests.host.fake_board import block, frame
from tests.host.items import made_up_items, made_up_modes

FUZZ = Path(__file__).parents[2] / "fuzz"
SOURCES = Path(__file__).parents[3] / "host" / "blocks"
OPTIONS = ["-std=c99", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-fno-sanitize-recover=all"]
#: The compilers, and what makes a program of a harness; the longest input.
CLANG, PLAIN = "-fsanitize=fuzzer,address,undefined", "-fsanitize=address,undefined"
LONGEST = 4096


def compilers():
    """Those that are there: (name, options)."""
    found = []
    if clang := next(filter(None, map(shutil.which, ("clang", "clang-19", "clang-16", "clang-14"))), None):
        found.append((clang, [CLANG]))
    if cc := next(filter(None, map(shutil.which, ("gcc", "cc", "clang"))), None):
        found.append((cc, [PLAIN, str(FUZZ / "main.c")]))
    return found


def build(name, path, source=None, plain=False):
    """A program of the harness, and whether it is libFuzzer's, unless a plain one is wanted; skips where no compiler
    has the sanitizers."""
    said = ["no C compiler is here"]
    for compiler, options in compilers():
        if plain and CLANG in options:
            continue
        sources = ["-I", str(SOURCES), f'-DSOURCE="{source or SOURCES / name}"']
        made = subprocess.run([compiler, *OPTIONS, *sources, str(FUZZ / name), *options, "-o", str(path)],
                              capture_output=True, text=True)
        if made.returncode == 0:
            return CLANG in options
        # Without their run-time libraries it is the linker that fails; what is wrong with the C is no reason to skip.
        assert "cannot find" in made.stderr, made.stderr
        said.append(f"{compiler} has no sanitizers: {made.stderr.strip().splitlines()[0]}")
    pytest.skip("; ".join(said[1:] or said))


def seeds_of_blocks(rng):
    """How, then blocks; see blocks.c."""
    for nodes in (4, 16, 20, 32):
        unit = (16, 24)[nodes > 16]
        blocks = b""
        for k in range(rng.randint(2, 9)):
            payload = b"".join(frame(nodes, k, {0: 1}) for _ in range(rng.randint(0, 4)))
            blocks += block(BlockType.FRAMES, payload, nodes=nodes, sequence=k, time=k)
        for how in range(8):
            yield (bytes([(16, 24).index(unit), how, rng.randrange(256), rng.randrange(256)])
                   + bytes(rng.choices((0, 8), k=4)) + blocks)


def seeds_of_payloads(rng):
    """Nodes, flags, number of payloads, time, lengths, payloads; see compact.c."""
    for nodes in (1, 4, 16, 20, 32):
        for bits in (4, 8):
            modes = made_up_modes(rng, nodes)
            single = [item._replace(late=False) for item in made_up_items(rng, 20, nodes, ItemModes(), late=0, window=9,
                                                                          bits=bits)]
            payloads = [encode([(item.window, item.node, item.nibbles[0]) for item in single], nodes, bits)]
            yield head(nodes, bits, 0, payloads * 2)
            long = made_up_items(rng, 12, nodes, modes, window=1 << 21, bits=bits)
            payload = encode_items(long, modes, nodes, bits)
            yield head(nodes, bits, 1, [payload] * 2)
            for cut in range(1, 9):     # ends within an item, at the end of what may be read
                yield head(nodes, bits, 1, [payload[:-cut]])
            events = ItemModes(events=(1 << nodes) - 1)     # the same where all nodes are in event mode
            long = made_up_items(rng, 12, nodes, events, window=1 << 21, bits=bits)
            payload = encode_items(long, events, nodes, bits)
            for cut in range(0, 48, 2):
                yield head(nodes, bits, 1, [payload[:len(payload) - cut]])


def head(nodes, bits, items, payloads):
    flags = items | (2 if bits == 8 else 0)
    lengths = b"".join(len(payload).to_bytes(2, "little") for payload in payloads[:-1])
    return (bytes([nodes - 1, flags, len(payloads) - 1]) + (1 << 21).to_bytes(8, "little") + lengths
            + b"".join(payloads))


def seeds_of_items(rng):
    """Rows; see items.c."""
    for steps in ((8, 16), (0, 8), (8, 240), range(256)):
        yield b"\xc7" + b"".join(
            bytes([rng.choice(steps), rng.randrange(256), rng.randrange(256), rng.randrange(4)]) for _ in range(150))


SEEDS = {"blocks.c": seeds_of_blocks, "compact.c": seeds_of_payloads, "items.c": seeds_of_items}


def run(program, is_libfuzzer, corpus, name, count, seed):
    """The finished process after so many inputs."""
    corpus.mkdir()
    for number, made in enumerate(SEEDS[name](random.Random(seed))):
        assert len(made) <= LONGEST
        (corpus / f"{number:03}").write_bytes(made)
    arguments = ([f"-runs={count}", f"-seed={seed}", f"-max_len={LONGEST}", "-verbosity=1", "-print_final_stats=1",
                  f"-artifact_prefix={corpus}-", str(corpus)]
                 if is_libfuzzer else [str(count), str(seed), *map(str, sorted(corpus.iterdir()))])
    environment = os.environ | {"ASAN_OPTIONS": "detect_leaks=0"}
    return subprocess.run([program, *arguments], capture_output=True, text=True, env=environment)


def trial(tmp_path, name, count, seed, plain=False):
    program = tmp_path / "program"
    is_libfuzzer = build(name, program, plain=plain)
    done = run(program, is_libfuzzer, tmp_path / "corpus", name, count, seed)
    print(f"{name}: {count} inputs, seed {seed}, {'libFuzzer' if is_libfuzzer else 'a plain loop'}")
    assert done.returncode == 0, done.stderr[-4000:]
    assert f"Done {count} runs" in done.stdout + done.stderr


@pytest.mark.parametrize("name", SEEDS)
def test_mutated_input(tmp_path, name):
    trial(tmp_path, name, 20_000, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", SEEDS)
@pytest.mark.parametrize("seed", [2, 3])
def test_much_mutated_input(tmp_path, name, seed):
    """Two million a decoder."""
    trial(tmp_path, name, 1_000_000, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", SEEDS)
def test_much_mutated_input_without_libfuzzer(tmp_path, name):
    trial(tmp_path, name, 2_000_000, 4, plain=True)


@pytest.mark.parametrize(("name", "file", "check", "without"), [
    ("blocks.c", "blocks.c", "length > room - used", "length > room + 4096"),
    ("compact.c", "compact_fast.h", "- 17;\n    unsigned", "- 7;\n    unsigned"),
    ("items.c", "items.c", "more->node, other) < first", "more->node, other) <= first")])
def test_a_check_that_is_missing_is_found(tmp_path, name, file, check, without):
    assert found_without(tmp_path, name, file, check, without, 20_000)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "file", "check", "without"), [
    ("blocks.c", "blocks.c", "size > end - at", "size > end - at + 64"),
    ("blocks.c", "blocks.c", "count < most && ", "most >= 0 && "),
    ("compact.c", "compact_reader.h", "AMPLE = 40", "AMPLE = 8"),
    ("compact.c", "compact_fast.h", "ROOMY = 112", "ROOMY = 20"),
    ("compact.c", "compact_fast.h", " || at + further > r->end", ""),
    ("compact.c", "compact.c", "vector >> r->nodes", "vector >> 32"),
    ("compact.c", "compact_reader.h", "if (r->end - r->at < further)", "if (r->end - r->at < further - 4)"),
    ("compact.c", "compact.c", "if (r->end - r->at < count * unit)", "if (r->end - r->at < count)"),
    ("items.c", "items.c", "if (begin > ample) {", "if (begin > ample + 8) {"),
    ("items.c", "items.c", "if (length > KEY)\n            return -1;", "")])
def test_any_check_that_is_missing_is_found(tmp_path, name, file, check, without):
    assert found_without(tmp_path, name, file, check, without, 1_000_000)


def found_without(tmp_path, name, file, check, without, count):
    """Whether the harness stops at a decoder that lacks a check."""
    text = (SOURCES / file).read_text()
    assert text.count(check) == 1
    # All of them, because a header is looked for beside the file that includes it.
    for path in SOURCES.glob("*.[ch]"):
        shutil.copy(path, tmp_path)
    (tmp_path / file).write_text(text.replace(check, without))
    is_libfuzzer = build(name, tmp_path / "program", tmp_path / name)
    return run(tmp_path / "program", is_libfuzzer, tmp_path / "corpus", name, count, 1).returncode != 0
