"""Events of a bucket, as moto's S3 and SQS send them, let a stream find new games long before it lists again."""

import gzip
import json
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generated_games import game, write_games
from moto_server import KEYS, moto, use_keys
from web_servers import served

import gristmill as gm
from gristmill import stores

boto3 = pytest.importorskip("boto3", reason="skipped: needs moto[server]")
pytest.importorskip("moto.server", reason="skipped: needs moto[server]")

#: A test that waits for the next listing would not end.
NEVER = 3600.0


@dataclass
class Drops:
    """A bucket with six games under `games/`, and a queue that hears of it."""

    bucket: str
    queue: str
    queue_url: str
    s3: Any
    sqs: Any

    def put(self, key: str, number: int, bucket: str | None = None) -> None:
        self.s3.put_object(Bucket=bucket or self.bucket, Key=key, Body=gzip.compress(game(number, 20).tobytes(), 1))

    def send(self, message: Any) -> None:
        body = message if isinstance(message, str) else json.dumps(message)
        self.sqs.send_message(QueueUrl=self.queue_url, MessageBody=body)

    def left(self) -> int:
        """Messages of the queue, hidden ones too."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.sqs.get_queue_attributes(QueueUrl=self.queue_url, AttributeNames=names)["Attributes"]
        return sum(int(found[name]) for name in names)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with moto(tmp_path_factory.mktemp("server")) as address:
        yield address


@pytest.fixture
def drops(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Drops:
    use_keys(monkeypatch)
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    s3, sqs = (boto3.client(name, endpoint_url=address, **KEYS) for name in ("s3", "sqs"))
    name = f"drops-{uuid.uuid4().hex[:12]}"
    s3.create_bucket(Bucket=name)
    # As the environment says, whatever other tests said of all buckets.
    stores.reach(f"s3://{name}")
    for path in sorted(write_games(tmp_path / "games", 6).iterdir()):
        s3.upload_file(str(path), name, f"games/{path.name}")
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    return Drops(name, name, url, s3, sqs)


def notify(drops: Drops) -> None:
    """Lets S3 send its events to the queue, and a test event at once."""
    arn = f"arn:aws:sqs:us-east-1:123456789012:{drops.queue}"
    events = [{"QueueArn": arn, "Events": ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]}]
    drops.s3.put_bucket_notification_configuration(
        Bucket=drops.bucket, NotificationConfiguration={"QueueConfigurations": events}
    )


def config(drops: Drops, *, rescan: float = NEVER, **more: Any) -> gm.DataLoaderConfig:
    options = {"pool": 100, "batch_size": 16, "reservoir": 0, "seed": 5, "index": "off", "tensors": ["ids"], **more}
    made = gm.presets.lc0(f"s3://{drops.bucket}/games", events=f"sqs://{drops.queue}", **options)
    files = made.stage[0].file_path_provider
    assert files is not None
    files.rescan_seconds = rescan
    return made


def counts(loader: gm.DataLoader) -> dict[str, int]:
    stage = {stage["kind"]: stage for stage in loader.metrics()["stages"]}["chunk_source_loader"]
    return {count["name"]: count["total"] for count in stage["counts"]}


def faults(loader: gm.DataLoader) -> list[str]:
    stage = {stage["kind"]: stage for stage in loader.metrics()["stages"]}["chunk_source_loader"]
    return list(stage.get("faults", []))


def until(what: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.05)


def found(loader: gm.DataLoader, files: int) -> None:
    """Waits for a number of files."""
    until(lambda: counts(loader)["sources"] >= files)


def record(bucket: str, key: str, name: str = "ObjectCreated:Put") -> dict[str, Any]:
    return {"eventSource": "aws:s3", "eventName": name, "s3": {"bucket": {"name": bucket}, "object": {"key": key}}}


def test_a_game_is_found_when_its_event_comes_and_not_at_the_next_listing(drops: Drops) -> None:
    notify(drops)
    with gm.DataLoader(config(drops)) as loader:
        loader.get_next()
        found(loader, 6)
        drops.put("games/deep/a b+c%41 \u00e9.gz", 70)
        drops.put("games/training.71.gz", 71)
        found(loader, 8)
        drops.put("games/training.72.gz", 72)
        found(loader, 9)
        until(lambda: drops.left() == 0)
        seen = counts(loader)
        assert (seen["events_received"], seen["events_ignored"], seen["events_unreadable"]) == (4, 1, 0)
        assert faults(loader) == []
        names: set[str | None] = set()
        until(lambda: "deep/a b+c%41 \u00e9.gz" in names or _drawn(loader, names))
    assert {name.removesuffix(".gz") for name in names if name} >= {"deep/a b+c%41 \u00e9"}


def _drawn(loader: gm.DataLoader, names: set[str | None]) -> bool:
    names |= {loader.source_path(source) for source, _, _ in loader.get_next()["ids"].tolist()}
    return False


def test_repeated_foreign_and_wrapped_messages(drops: Drops) -> None:
    with gm.DataLoader(config(drops)) as loader:
        loader.get_next()
        found(loader, 6)
        for number in range(80, 84):
            drops.put(f"games/training.{number}.gz", number)
        drops.put("elsewhere/training.90.gz", 90)
        plain = {"Records": [record(drops.bucket, "games%2Ftraining.80.gz")]}
        for _ in range(3):
            drops.send(plain)
        drops.send(
            {"Type": "Notification", "Message": json.dumps({"Records": [record(drops.bucket, "games/training.81.gz")]})}
        )
        detail = {"bucket": {"name": drops.bucket}, "object": {"key": "games/training.82.gz"}}
        drops.send({"version": "0", "detail-type": "Object Created", "source": "aws.s3", "detail": detail})
        drops.send(
            {"Records": [record("another", "games/training.83.gz"), record(drops.bucket, "elsewhere/training.90.gz")]}
        )
        drops.send({"Records": [record(drops.bucket, "games/.writer.json"), record(drops.bucket, "games/folder/")]})
        drops.send({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": drops.bucket})
        drops.send({"Records": [record(drops.bucket, "games/training.2.gz", "ObjectRemoved:Delete")]})
        drops.send({"Records": [record(drops.bucket, "games/none.gz")]})
        found(loader, 9)
        until(lambda: drops.left() == 0)
        drops.send("no JSON")
        drops.send({"Records": [record(drops.bucket, "games/50%.gz"), record(drops.bucket, "games/training.83.gz")]})
        found(loader, 10)
        until(lambda: counts(loader)["events_unreadable"] == 2)
        seen = counts(loader)
        assert (seen["sources"], seen["events_received"], seen["events_ignored"]) == (10, 13, 5)
        assert drops.left() == 2, "what cannot be read stays"
        said = "\n".join(faults(loader))
        assert "it is no JSON" in said
        assert '"no JSON"' in said
        assert '`Records[0]`: the key "games/50%.gz" has a % without two hexadecimal digits' in said
        loader.get_next()


def test_a_queue_that_is_removed_is_reported_and_listing_goes_on(drops: Drops) -> None:
    with gm.DataLoader(config(drops, rescan=1.0)) as loader:
        loader.get_next()
        found(loader, 6)
        drops.sqs.delete_queue(QueueUrl=drops.queue_url)
        until(lambda: any("QueueDoesNotExist" in fault for fault in faults(loader)))
        drops.put("games/training.60.gz", 60)
        found(loader, 7)
        loader.get_next()
        assert len([fault for fault in faults(loader) if "no queue has this name there" in fault]) == 1
        assert all("found by listing only" in fault for fault in faults(loader))


def test_a_run_that_begins_again_obeys_its_journal(drops: Drops, tmp_path: Path) -> None:
    notify(drops)
    journal = tmp_path / "journal"
    with gm.DataLoader(config(drops, journal=journal)) as loader:
        rows = [np.array(loader.get_next()["ids"]) for _ in range(4)]
        drops.put("games/training.33.gz", 33)
        while '"admit"' not in journal.read_text():
            rows.append(np.array(loader.get_next()["ids"]))
        rows += [np.array(loader.get_next()["ids"]) for _ in range(40)]
        state = loader.state_dict()
        after = [np.array(loader.get_next()["ids"]) for _ in range(10)]
    kept = journal.read_bytes()
    drops.put("games/training.34.gz", 34)
    resumed = gm.DataLoader(config(drops, journal=journal))
    resumed.load_state_dict(state)
    with resumed:
        for batch in after:
            np.testing.assert_array_equal(batch, resumed.get_next()["ids"])
        found(resumed, 8)
    journal.write_bytes(kept)
    drops.sqs.delete_queue(QueueUrl=drops.queue_url)
    with gm.DataLoader(config(drops, journal=journal, replay=True)) as again:
        for batch in rows:
            np.testing.assert_array_equal(batch, again.get_next()["ids"])


def test_queues_that_cannot_be_read_are_refused_at_the_start(drops: Drops, tmp_path: Path) -> None:
    def refused(events: str, directory: Any = None, **more: Any) -> str:
        options = {"pool": 9, "batch_size": 16, "reservoir": 0, "index": "off", **more}
        place = directory or f"s3://{drops.bucket}/games"
        with pytest.raises(gm.ConfigError) as error:
            gm.DataLoader(gm.presets.lc0(place, events=events, **options)).start()
        return str(error.value)

    said = refused("sqs://none-of-this-name")
    assert "stage `files`, field `events`" in said
    assert "sqs://none-of-this-name in us-east-1, at http://127.0.0.1:" in said
    assert "QueueDoesNotExist" in said
    assert "name the one that the bucket sends its events to" in said
    assert f"sqs://{drops.queue}" in refused(drops.queue_url)
    assert "not named by its ARN" in refused("arn:aws:sqs:us-east-1:1:games")
    assert "no account" in refused("sqs://123456789012/games")
    assert "expected sqs://NAME" in refused("games")
    assert "buckets of s3:// only" in refused(f"sqs://{drops.queue}", tmp_path / "games")
    assert "not watched" in refused(f"sqs://{drops.queue}", watch=False)
    two = [f"s3://{drops.bucket}/games", f"s3://{drops.bucket}/games/deep"]
    assert "reads this queue" in refused(f"sqs://{drops.queue}", two)


def test_a_queue_is_reached_as_its_bucket_unless_it_has_its_own_way(
    drops: Drops, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    stores.reach(f"s3://{drops.bucket}", endpoint=address)
    notify(drops)
    with gm.DataLoader(config(drops)) as loader:
        loader.get_next()
        drops.put("games/training.70.gz", 70)
        found(loader, 7)
    stores.reach(f"sqs://{drops.queue}", endpoint="http://127.0.0.1:9", settings={"region": "eu-north-1"})
    with gm.DataLoader(config(drops, rescan=1.0)) as loader:
        loader.get_next()
        until(lambda: bool(faults(loader)))
        assert f"sqs://{drops.queue} in eu-north-1, at http://127.0.0.1:9: " in faults(loader)[0]
        drops.put("games/training.71.gz", 71)
        found(loader, 8)


def test_a_service_that_fails_in_passing_is_asked_again_without_a_word(drops: Drops) -> None:
    asked: list[int] = []

    def answer(_method: str, _path: str, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        if headers["x-amz-target"].endswith("GetQueueUrl"):
            return 200, {}, b'{"QueueUrl": "http://127.0.0.1/1/q"}'
        asked.append(len(asked) + 1)
        return (200, {}, b"{}") if asked[-1] == 3 else (500, {}, b"")

    with served(answer) as service:
        stores.reach(f"sqs://{drops.queue}", endpoint=service)
        with gm.DataLoader(config(drops)) as loader:
            loader.get_next()
            until(lambda: len(asked) >= 4)
            assert faults(loader) == []
            until(lambda: bool(faults(loader)))
            assert len(asked) >= 6
            assert "status 500; new files are found by listing only" in faults(loader)[0]
            assert loader.stop() == []


def test_a_long_poll_does_not_hold_up_the_end(drops: Drops) -> None:
    loader = gm.DataLoader(config(drops))
    loader.get_next()
    found(loader, 6)
    assert loader.stop() == []
