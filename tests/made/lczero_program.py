"""A trainer's program as it stands, but for the import of its loader. Nothing else of gristmill is used.

    python lczero_program.py <folder of compiled messages> <config.textproto>

Prints what it saw as JSON.
"""

import json
import math
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, sys.argv[1])

import data_loader_config_pb2 as config_pb2
import stage_control_pb2 as control_pb2
import training_metrics_pb2 as metrics_pb2
from google.protobuf import text_format

from gristmill.compat.lczero import DataLoader


def control(loader, **fields):
    """The only pool's answer to a request."""
    request = control_pb2.StageControlRequest()
    request.chunk_pool_request.SetInParent()
    for name, value in fields.items():
        setattr(request.chunk_pool_request, name, value)
    [(stage, response)] = loader.send_control_message(request)
    assert isinstance(response, control_pb2.StageControlResponse)
    return stage, response.chunk_pool_response.chunk_anchor, response.chunk_pool_response.chunks_since_anchor


def totals(loader):
    serialized, seconds = loader.get_aggregate_ending_now(math.inf, True)
    return metrics_pb2.DataLoaderMetricsProto.FromString(serialized), seconds


config = text_format.Parse(Path(sys.argv[2]).read_text(), config_pb2.DataLoaderConfig())
outputs = list(config.output)
tail = config_pb2.DataLoaderConfig(stage=config.stage[-2:])
loader = DataLoader(config)
loader.stop()

# The same graph with two stages added to it, which the bytes of a message can do, too.
del config.stage[-2:], config.output[:]
loader = DataLoader(config.SerializeToString())
loader.add_stages(tail)
seen = {"no_outputs": ""}
try:
    loader.get_next()
except RuntimeError as error:
    seen["no_outputs"] = str(error)
loader.stop()

config.stage.extend(tail.stage)
config.output.extend(outputs)
loader = DataLoader(config)
seen["set"] = control(loader, set_chunk_anchor="training.3.gz")
loader.start()
batches = [loader.get_next() for _ in range(8)]
seen["shapes"] = [list(tensor.shape) for tensor in batches[0]]
seen["formats"] = [memoryview(tensor).format for tensor in batches[0]]
seen["writable"] = all(tensor.flags.writeable for tensor in batches[0])
seen["finite_planes"] = bool(np.isfinite(batches[-1][0]).all())
seen["test_batch"] = [list(tensor.shape) for tensor in loader.get_next("test")]
while loader.maybe_get_next("test") is None:
    time.sleep(0.005)
seen["query"] = control(loader)
seen["reset"] = control(loader, reset_chunk_anchor=True)
seen["after_reset"] = control(loader)
try:
    loader.get_next("validation")
except RuntimeError as error:
    seen["unknown_alias"] = str(error)
try:
    loader.start()
except RuntimeError as error:
    seen["second_start"] = str(error)
try:
    loader.add_stages(tail)
except RuntimeError as error:
    seen["late_stages"] = str(error)
while not metrics_pb2.DataLoaderMetricsProto.FromString(loader.get_bucket_metrics(-2, False)[0]).stage_metrics:
    time.sleep(0.02)
running, _ = totals(loader)
loader.stop()
loader.stop()
stopped, seconds = totals(loader)
seen["stages"] = [stage.name for stage in stopped.stage_metrics]
of = {stage.name: stage for stage in stopped.stage_metrics}
before = {stage.name: stage for stage in running.stage_metrics}
seen["batches_got"] = of["tensors"].queue_metrics[0].get_count
seen["not_lost"] = of["tensors"].queue_metrics[0].put_count >= before["tensors"].queue_metrics[0].put_count > 0
seen["seconds"] = seconds
seen["anchor"] = of["pool"].anchor
seen["window"] = [[g.name, g.value, g.capacity] for g in of["pool"].gauge_metrics if g.name == "chunks_current"]
seen["pool_loads"] = [load.name for load in of["pool"].load_metrics]
seen["skipped"] = [count.count for count in of["load"].count_metrics if count.name == "skipped_files"]
seen["age_is_a_number"] = loader.get_bucket_metrics(0, True)[1] >= 0
try:
    loader.get_next()
except RuntimeError as error:
    seen["after_stop"] = str(error)
seen["maybe_after_stop"] = loader.maybe_get_next()
print(json.dumps(seen))
