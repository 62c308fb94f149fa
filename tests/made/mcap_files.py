"""MCAP files that the packages of Foxglove write: JSON, CDR of ROS 2 and protobuf."""

import json
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from mcap.writer import CompressionType, Writer
from mcap_protobuf.writer import Writer as ProtobufWriter
from mcap_ros2.writer import Writer as RosWriter

#: One second, in the nanoseconds of MCAP.
SECOND = 1_000_000_000

_JOINTS = """std_msgs/Header header
string[] name
float64[] position
float64[] effort
bool on
================
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
================
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec"""


def write_json(path: Path, messages: list[tuple[str, float, Any]], **options: Any) -> Path:
    """A file of messages in JSON: topic, seconds, message."""
    with path.open("wb") as file:
        writer: Any = Writer(file, **options)
        writer.start()
        schema = writer.register_schema("any", "jsonschema", b'{"type": "object"}')
        channels: dict[str, int] = {}
        for topic, seconds, message in messages:
            if topic not in channels:
                channels[topic] = writer.register_channel(topic, "json", schema)
            time = round(seconds * SECOND)
            data = message if isinstance(message, bytes) else json.dumps(message).encode()
            writer.add_message(channels[topic], time, data, time)
        writer.finish()
    return path


def run(episode: int, steps: int) -> list[tuple[str, float, Any]]:
    """A run: actions at 10 Hz, states at 20 Hz from 0.1 s on, a camera's notes now and then."""
    found: list[tuple[str, float, Any]] = []
    for t in range(steps):
        found.append(("/action", t / 10, {"data": [episode + t / 2, -t], "gripper": {"open": t % 2 == 0}}))
        if t:
            found += [("/observation/state", t / 10 + k / 20, {"position": [t, k, 0.5], "name": "arm"}) for k in (0, 1)]
        if t % 3 == 2:
            found.append(("/camera", t / 10 - 0.01, {"number": t}))
    return found


def write_arm(path: Path) -> Path:
    """What the pages call `arm.mcap`."""
    messages: list[tuple[str, float, Any]] = []
    for t in range(12):
        messages.append(("/action", t / 10, {"data": [t, -t]}))
        messages.append(("/joints", t / 10 + 0.02, {"position": [t / 4, 1, 2]}))
    return write_json(path, messages)


def write_ros(path: Path, steps: int, compression: CompressionType = CompressionType.ZSTD) -> Path:
    """A file of ROS 2: joints at 10 Hz, and a topic that nobody decodes."""
    with path.open("wb") as file:
        writer: Any = RosWriter(file, compression=compression)
        schema = writer.register_msgdef("sensor_msgs/JointState", _JOINTS)
        for t in range(steps):
            message = {
                "header": {"stamp": {"sec": t // 10, "nanosec": t % 10 * SECOND // 10}, "frame_id": "base"},
                "name": ["a", "b"],
                "position": [t / 4, -t / 4],
                "effort": [],
                "on": t > 2,
            }
            writer.write_message("/joints", schema, message, t * SECOND // 10, t * SECOND // 10)
        writer.finish()
    return path


def write_pictures(path: Path, files: list[bytes]) -> Path:
    """Compressed pictures of ROS 2 at 2 Hz, and actions at 1 Hz."""
    with path.open("wb") as file:
        writer: Any = RosWriter(file)
        picture = writer.register_msgdef("sensor_msgs/CompressedImage", "string format\nuint8[] data")
        action = writer.register_msgdef("mine/Action", "float64 x")
        for t, one in enumerate(files):
            at = t * SECOND // 2
            writer.write_message("/camera", picture, {"format": "png", "data": list(one)}, at, at)
            if t % 2:
                writer.write_message("/action", action, {"x": t}, at, at)
        writer.finish()
    return path


def write_protobuf(path: Path, steps: int) -> Path:
    """A file of protobuf: a pose with a position of its own, and a kind that is an enum."""
    file = descriptor_pb2.FileDescriptorProto(name="pose.proto", package="mine", syntax="proto3")
    kind = descriptor_pb2.FieldDescriptorProto
    point = file.message_type.add(name="Point")
    for number, name in enumerate(("x", "y"), 1):
        point.field.add(name=name, number=number, type=kind.TYPE_DOUBLE, label=1)
    pose = file.message_type.add(name="Pose")
    pose.field.add(name="position", number=1, type=kind.TYPE_MESSAGE, type_name=".mine.Point", label=1)
    pose.field.add(name="covariance", number=2, type=kind.TYPE_FLOAT, label=3)
    pose.field.add(name="frame", number=3, type=kind.TYPE_STRING, label=1)
    pose.field.add(name="count", number=4, type=kind.TYPE_UINT32, label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName("mine.Pose"))
    with path.open("wb") as out, ProtobufWriter(out) as writer:
        for t in range(steps):
            message = made(position={"x": t, "y": 1}, covariance=[t, 2, 3], frame="base", count=t)
            writer.write_message("/pose", message, t * SECOND, t * SECOND)
    return path
