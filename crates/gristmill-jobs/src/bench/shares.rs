//! What the stages of a run did, and what this machine can do -> each stage as a share of its limit. Arithmetic alone: measures
//! nothing.

use gristmill_engine::pipeline::{Metrics, StageMetrics};
use serde::Serialize;

use super::machine::Machine;
use super::sample::Inflation;

/// A stage that is this many times faster than reads from memory has its files mapped: it copies bytes and makes no read.
const MAPPED: f64 = 1.25;

/// What a stage takes for each position, and the least that it could take on this machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stage {
    /// Its name in the configuration; `handoff` for what no stage counts.
    pub stage: String,
    /// What it does: `read`, `decode`, `pass`, `reservoir`, `gather`, `encode` or `handoff`.
    pub work: &'static str,
    /// Microseconds for each position that passes the stage: processor time, or the clock's where the limit is `storage`.
    pub us: f64,
    /// Bytes that the stage moves for each position.
    pub bytes: f64,
    /// What limits it: `storage`, `memory` (reading what memory keeps of files), `inflate`, `copy`, `fill`, `gather`, or
    /// `gather and fill`. None where nothing that is measured does.
    pub limit: Option<&'static str>,
    /// Microseconds that the limit alone takes for each position.
    pub floor_us: Option<f64>,
    /// `floor_us` over `us`: 1 is as fast as this machine does it.
    pub share: Option<f64>,
    /// All of this in a sentence.
    pub says: String,
}

/// Sizes of what passes through a loader.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Shape {
    /// Bytes of a record, as stages hand it on.
    pub(super) record: f64,
    /// Bytes of the tensors of a position.
    pub(super) tensors: f64,
    /// Bytes of a stored row of a table.
    pub(super) row: f64,
    /// Whether tensors are made straight from stored rows.
    pub(super) straight: bool,
    /// Whether files are inflated as a whole when they are opened, and not chunk by chunk where they are decoded.
    pub(super) whole: bool,
}

/// What was measured of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured<'a> {
    /// At the first batch.
    pub(super) first: &'a Metrics,
    /// At the last.
    pub(super) last: &'a Metrics,
    /// Processor time of the whole process between the first and the last batch, in microseconds a position.
    pub(super) cpu_us: Option<f64>,
    /// Microseconds of the clock between two positions, from the first batch to the last.
    pub(super) clock_us: Option<f64>,
    /// Bytes that came from a disk since the start.
    pub(super) from_disk: u64,
}

/// A limit, and the microseconds that it takes for each position.
type Floor = Option<(&'static str, f64)>;

/// The stages of a run that handle positions, in flow order, each with its limit; then what no stage counts.
pub(super) fn stages(run: &Measured<'_>, machine: &Machine, shape: &Shape) -> Vec<Stage> {
    let all = &run.last.stages;
    // Frames that the unpackers of the current output handed on so far.
    let (mut entered, mut found) = (0, Vec::new());
    for (at, stage) in all.iter().enumerate() {
        let Some(work) = work(stage) else { continue };
        let unpacked = all[at..].iter().find(|stage| stage.kind == "chunk_unpacker");
        let frames = match work {
            "read" | "decode" | "pass" => unpacked.map_or(0, |unpacker| count(unpacker, "frames")),
            "reservoir" => entered,
            _ => count(stage, "rows"),
        };
        entered = match work {
            "decode" => entered + frames,
            "encode" => 0,
            _ => entered,
        };
        if frames == 0 {
            continue;
        }
        let each = |total: u64| total as f64 / frames as f64;
        let decoded = unpacked.map_or(1.0, |unpacker| each(count(unpacker, "frames_decoded")));
        // A thread that waits for a disk takes no processor time: the clock says how long a read takes.
        let clock = run.clock_us.filter(|_| work == "read" && 2 * run.from_disk >= count(stage, "stored_bytes"));
        let us = clock.unwrap_or(each(busy(stage)) / 1e3);
        let bytes = match work {
            "read" => each(count(stage, "stored_bytes")),
            "decode" => decoded * inflated(machine, shape).map_or(shape.record, |inflation| inflation.bytes_per_frame),
            "pass" => decoded * shape.record,
            "reservoir" => shape.record,
            "gather" => shape.row,
            _ => shape.tensors,
        };
        let mut floor = floor(work, bytes, clock.is_some(), machine, shape);
        if work == "read" && floor.is_some_and(|(limit, floor)| limit == "memory" && floor > MAPPED * us) {
            floor = Some(("copy", bytes * 1e6 / machine.copy.bytes_per_second));
        }
        found.push(of(&stage.name, work, us, bytes, floor));
    }
    found.extend(rest(run));
    found
}

/// The kind of work of a stage; none of a stage that counts no busy time.
fn work(stage: &StageMetrics) -> Option<&'static str> {
    stage.count("busy_ns")?;
    Some(match stage.kind {
        "shuffling_chunk_pool" | "simple_chunk_extractor" => "read",
        "chunk_unpacker" => "decode",
        "tensor_generator" => "encode",
        "gather" => "gather",
        _ if stage.count("chunks").is_some() => "pass",
        _ => "reservoir",
    })
}

fn count(stage: &StageMetrics, name: &str) -> u64 {
    stage.count(name).map_or(0, |count| count.total)
}

fn busy(stage: &StageMetrics) -> u64 {
    count(stage, "busy_ns")
}

/// How fast the decoder inflates; none where it does not.
fn inflated(machine: &Machine, shape: &Shape) -> Option<Inflation> {
    machine.inflate.filter(|_| !shape.whole)
}

/// The limit of a kind of work, and the microseconds that it takes for this number of bytes.
fn floor(work: &str, bytes: f64, from_disk: bool, machine: &Machine, shape: &Shape) -> Floor {
    let at = |rate: f64| bytes * 1e6 / rate;
    let copied = ("copy", at(machine.copy.bytes_per_second));
    let gathered = machine.gather.map(|gather| 1e6 / gather.rows_per_second);
    let found = match work {
        "read" => {
            let storage = machine.storage.as_ref()?;
            match from_disk && storage.cold {
                true => ("storage", at(storage.bytes_per_second)),
                false => ("memory", bytes * storage.cached_cpu_us_per_byte),
            }
        }
        "decode" => inflated(machine, shape).map_or(copied, |inflation| ("inflate", at(inflation.bytes_per_second))),
        "gather" if shape.straight => return None,
        "gather" => ("gather", gathered?),
        "encode" => {
            let filled = at(machine.fill.bytes_per_second);
            match gathered.filter(|_| shape.straight) {
                Some(gathered) => ("gather and fill", gathered + filled),
                None => ("fill", filled),
            }
        }
        _ => copied,
    };
    Some(found).filter(|(_, us)| *us > 0.0 && us.is_finite())
}

fn of(stage: &str, work: &'static str, us: f64, bytes: f64, floor: Floor) -> Stage {
    let share = floor.map(|(_, floor)| floor / us).filter(|share| share.is_finite());
    let size = told(bytes);
    let does = match work {
        "read" => format!("fetches {size} a position"),
        "decode" => format!("makes {size} a position"),
        "pass" => format!("goes through {size} a position"),
        "reservoir" => format!("copies {size} a position"),
        "gather" => format!("brings {size} a position"),
        _ => format!("writes {size} a position"),
    };
    let alone = |limit| match limit {
        "storage" => "reading them from the disk",
        "memory" => "reading them from memory",
        "inflate" => "inflating them alone",
        "fill" => "a fill of these bytes",
        "gather" => "copying such a row alone",
        "gather and fill" => "copying the stored row and a fill of these bytes",
        _ => "a copy of these bytes",
    };
    let says = match (floor, share) {
        (Some((limit, floor)), Some(share)) => format!(
            "{work} {does}; {} takes {} us here, it takes {} us: {:.0} % of its limit",
            alone(limit),
            micros(floor),
            micros(us),
            share * 100.0
        ),
        _ if work == "gather" => format!("{work} takes {} us: rows are read while they are encoded", micros(us)),
        _ => format!("{work} {does}; it takes {} us, and nothing measured here limits it", micros(us)),
    };
    let (limit, floor_us) = floor.unzip();
    Stage { stage: stage.to_owned(), work, us, bytes, limit, floor_us, share, says }
}

/// Processor time of the process, between the first and the last batch, that no stage counts.
fn rest(run: &Measured<'_>) -> Option<Stage> {
    let all = run.cpu_us?;
    let before = |name: &str| run.first.stages.iter().find(|stage| stage.name == name);
    let grown = |stage: &StageMetrics, name: &str| {
        count(stage, name).saturating_sub(before(&stage.name).map_or(0, |stage| count(stage, name)))
    };
    let given = run.last.stages.iter().filter(|stage| work(stage) == Some("encode"));
    let rows: u64 = given.map(|stage| grown(stage, "rows")).sum();
    let counted = run.last.stages.iter().filter(|stage| work(stage).is_some());
    let counted: f64 = counted.map(|stage| grown(stage, "busy_ns") as f64).sum();
    let us = (all - counted / 1e3 / rows.max(1) as f64).max(0.0);
    let says = format!(
        "handoff and the rest take {} us: choosing rows, handing batches over, and who takes them; bytes are not moved",
        micros(us)
    );
    let (limit, floor_us, share) = (None, None, None);
    Some(Stage { stage: "handoff".into(), work: "handoff", us, bytes: 0.0, limit, floor_us, share, says })
}

/// Microseconds with three digits.
fn micros(us: f64) -> String {
    match us {
        us if us >= 100.0 => format!("{us:.0}"),
        us if us >= 10.0 => format!("{us:.1}"),
        us if us >= 0.1 => format!("{us:.2}"),
        us => format!("{us:.4}"),
    }
}

/// Bytes with three digits.
fn told(bytes: f64) -> String {
    match bytes {
        bytes if bytes >= 1e6 => format!("{:.1} MB", bytes / 1e6),
        bytes if bytes >= 1e4 => format!("{:.1} kB", bytes / 1e3),
        bytes => format!("{bytes:.0} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use gristmill_engine::pipeline::Tally;

    use super::*;
    use crate::bench::machine::{Bandwidth, Gathering};
    use crate::bench::storage::Storage;

    fn stage(name: &str, kind: &'static str, counts: &[(&'static str, u64)]) -> StageMetrics {
        StageMetrics {
            name: name.into(),
            kind,
            threads: 1,
            gauges: Vec::new(),
            counts: counts.iter().map(|(name, total)| Tally { name, total: *total, per_second: 0.0 }).collect(),
            queue: None,
            latest: None,
            oldest_needed: None,
            faults: Vec::new(),
        }
    }

    /// 10 GB/s copied, 20 filled; 1 GB/s inflated; 100 MB/s from the disk, 1 GB/s of processor time from memory.
    fn machine() -> Machine {
        let at = |bytes_per_second| Bandwidth { bytes_per_second, buffer_bytes: 1 };
        Machine {
            cores: 2,
            cores_had: 2.0,
            copy: at(10e9),
            copy_all: at(15e9),
            fill: at(20e9),
            gather: Some(Gathering { rows_per_second: 5e6, row_bytes: 48, table_bytes: 4800 }),
            inflate: Some(Inflation { form: "gzip", bytes_per_second: 1e9, bytes_per_frame: 8000.0 }),
            storage: Some(Storage {
                files: 1,
                reads: 1,
                bytes: 1,
                cold: true,
                remark: None,
                bytes_per_second: 1e8,
                reads_per_second: 1.0,
                cached_bytes_per_second: 1e9,
                cached_reads_per_second: 1.0,
                cached_cpu_us_per_byte: 1e-3,
            }),
        }
    }

    /// A stream that used every second position: 1000 of them came out, and 900 after the first batch.
    fn stream(times: u64) -> Metrics {
        let n = |n: u64| n * times / 10;
        let stages = vec![
            stage("load", "chunk_source_loader", &[("sources", 3)]),
            stage("pool", "shuffling_chunk_pool", &[("busy_ns", n(2_000_000)), ("stored_bytes", n(500_000))]),
            stage("check", "validator", &[("busy_ns", n(1_000_000)), ("chunks", n(50))]),
            stage(
                "unpack",
                "chunk_unpacker",
                &[("busy_ns", n(40_000_000)), ("frames", n(1000)), ("frames_decoded", n(2000))],
            ),
            stage("sample", "shuffling_frame_sampler", &[("busy_ns", n(2_000_000))]),
            stage("tensors", "tensor_generator", &[("busy_ns", n(4_000_000)), ("rows", n(1000))]),
        ];
        Metrics { stages, ..Metrics::default() }
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9 * b.abs().max(1.0)
    }

    #[test]
    fn each_stage_of_a_stream_is_held_against_its_limit() {
        let (first, last) = (stream(1), stream(10));
        let shape = Shape { record: 8000.0, tensors: 36_000.0, ..Shape::default() };
        let run = Measured { first: &first, last: &last, cpu_us: Some(60.0), clock_us: Some(10.0), from_disk: 0 };
        let found = stages(&run, &machine(), &shape);
        let expected = [
            ("pool", "read", 2.0, 500.0, Some("memory"), Some(0.5)),
            ("check", "pass", 1.0, 16_000.0, Some("copy"), Some(1.6)),
            ("unpack", "decode", 40.0, 16_000.0, Some("inflate"), Some(16.0)),
            ("sample", "reservoir", 2.0, 8000.0, Some("copy"), Some(0.8)),
            ("tensors", "encode", 4.0, 36_000.0, Some("fill"), Some(1.8)),
            ("handoff", "handoff", 11.0, 0.0, None, None),
        ];
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (stage, (name, work, us, bytes, limit, floor)) in found.iter().zip(expected) {
            assert_eq!((&*stage.stage, stage.work, stage.limit), (name, work, limit), "{stage:?}");
            assert!(near(stage.us, us) && near(stage.bytes, bytes), "{stage:?}");
            assert_eq!(stage.floor_us.is_some(), floor.is_some(), "{stage:?}");
            assert!(stage.floor_us.zip(floor).is_none_or(|(found, floor)| near(found, floor)), "{stage:?}");
            assert!(stage.share.zip(floor).is_none_or(|(share, floor)| near(share, floor / us)), "{stage:?}");
        }
        let says = "encode writes 36.0 kB a position; a fill of these bytes takes 1.80 us here, it takes 4.00 us: \
                    45 % of its limit";
        assert_eq!(found[4].says, says);
    }

    #[test]
    fn a_disk_is_a_matter_of_the_clock() {
        let (first, last) = (stream(1), stream(10));
        let shape = Shape { record: 8000.0, tensors: 36_000.0, ..Shape::default() };
        let run = Measured { first: &first, last: &last, cpu_us: Some(60.0), clock_us: Some(10.0), from_disk: 400_000 };
        let found = stages(&run, &machine(), &shape);
        assert!(near(found[0].us, 10.0) && near(found[0].floor_us.unwrap(), 5.0), "{:?}", found[0]);
        assert_eq!(found[0].limit, Some("storage"));
        assert!(near(found[2].us, 40.0), "what is computed is not: {:?}", found[2]);
        let warm = stages(&Measured { from_disk: 100_000, ..run }, &machine(), &shape);
        assert_eq!((warm[0].us, warm[0].limit), (2.0, Some("memory")));
    }

    #[test]
    fn files_that_are_inflated_as_a_whole_or_mapped_are_copied() {
        let (first, last) = (stream(1), stream(10));
        let shape = Shape { record: 8000.0, tensors: 36_000.0, whole: true, ..Shape::default() };
        let run = Measured { first: &first, last: &last, cpu_us: None, clock_us: None, from_disk: 0 };
        let mut slow = machine();
        slow.storage.as_mut().unwrap().cached_cpu_us_per_byte = 6e-3;
        let found = stages(&run, &slow, &shape);
        assert_eq!((found[0].limit, found[2].limit), (Some("copy"), Some("copy")), "{found:#?}");
        assert!(near(found[0].floor_us.unwrap(), 0.05) && near(found[2].floor_us.unwrap(), 1.6), "{found:#?}");
    }

    #[test]
    fn rows_are_gathered_and_encoded_or_both_at_once() {
        let feed = |times: u64| Metrics {
            stages: vec![
                stage("gather", "gather", &[("rows", 100 * times), ("busy_ns", 40_000 * times)]),
                stage("tensors", "tensor_generator", &[("rows", 100 * times), ("busy_ns", 10_000 * times)]),
            ],
            ..Metrics::default()
        };
        let (first, last) = (feed(1), feed(9));
        let run = Measured { first: &first, last: &last, cpu_us: Some(0.75), clock_us: None, from_disk: 0 };
        let shape = Shape { row: 48.0, tensors: 400.0, ..Shape::default() };
        let found = stages(&run, &machine(), &shape);
        let names: Vec<&str> = found.iter().map(|stage| stage.work).collect();
        assert_eq!(names, ["gather", "encode", "handoff"]);
        assert!(near(found[0].share.unwrap(), 0.5) && near(found[1].share.unwrap(), 0.2), "{found:#?}");
        assert!(near(found[2].us, 0.25), "{found:#?}");
        let straight = stages(&run, &machine(), &Shape { straight: true, ..shape });
        assert_eq!((straight[0].share, straight[1].limit), (None, Some("gather and fill")));
        assert!(near(straight[1].floor_us.unwrap(), 0.22), "{straight:#?}");
    }

    #[test]
    fn what_has_not_run_is_left_out_and_what_was_not_measured_has_no_limit() {
        let none = Metrics::default();
        let run = Measured { first: &none, last: &none, cpu_us: None, clock_us: None, from_disk: 0 };
        assert_eq!(stages(&run, &machine(), &Shape::default()), []);
        let last = stream(10);
        let run = Measured { last: &last, ..run };
        let bare = Machine { storage: None, inflate: None, gather: None, ..machine() };
        let found = stages(&run, &bare, &Shape { record: 8000.0, ..Shape::default() });
        let limits: Vec<_> = found.iter().map(|stage| (stage.work, stage.limit)).collect();
        let expected = [("read", None), ("pass", Some("copy")), ("decode", Some("copy")), ("reservoir", Some("copy"))];
        assert_eq!(limits[..4], expected, "{found:#?}");
        assert_eq!(limits[4], ("encode", None), "no bytes are written: {found:#?}");
        assert!(found[0].says.ends_with("nothing measured here limits it"), "{}", found[0].says);
    }
}
