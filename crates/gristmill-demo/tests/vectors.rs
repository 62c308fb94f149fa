//! Shards that the pinned libraries wrote, against every value they are known to hold; and cut at every block.
//! Skips where the folder of vectors is absent.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests and benches may open files and take the time"
)]
#![allow(missing_docs, clippy::unwrap_used)]

use std::path::PathBuf;

use gristmill_bytes::Kind;
use gristmill_bytes::container::zstd;
use gristmill_bytes::layout::{DType, Field};
use gristmill_demo::shard::Shard;
use gristmill_demo::space::Space;
use gristmill_demo::trajectory::End;
use gristmill_demo::value::Extra;
use serde_json::Value;

const MAX: usize = 256 << 20;

const PONG: &str = "data/demos/pong.tar.zst";

#[allow(clippy::print_stderr, reason = "a skipped test must be seen")]
fn shared(path: &str) -> Option<Vec<u8>> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let path = std::env::var_os("GRISTMILL_SHARED").map_or_else(beside, PathBuf::from).join(path);
    let read = std::fs::read(&path);
    if read.is_err() {
        eprintln!("skipped: there is no {}; set GRISTMILL_SHARED", path.display());
    }
    read.ok()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest;
    hex(&sha2::Sha256::digest(bytes))
}

/// Compares a value of a frame with its description: arrays by type, shape and hash, numbers by value.
fn compare(field: &Field, bytes: &[u8], expected: &Value, place: &str) {
    let DType::Scalar(scalar, order) = field.dtype else { panic!("{place}: a record") };
    match expected["t"].as_str().unwrap() {
        "ndarray" => {
            assert_eq!(scalar.type_str(order), expected["dtype"].as_str().unwrap(), "{place}");
            assert_eq!(Value::from(field.shape.clone()), expected["shape"], "{place}");
            assert_eq!(sha256(bytes), expected["sha256"].as_str().unwrap(), "{place}");
        }
        kind => {
            let known = match &expected["value"] {
                Value::Bool(value) => f64::from(u8::from(*value)),
                other => other.as_f64().unwrap(),
            };
            assert_eq!(scalar.number(bytes), Some(known), "{place}: {kind}");
            if kind == "npscalar" {
                assert_eq!(scalar.type_str(order), expected["dtype"].as_str().unwrap(), "{place}");
            }
        }
    }
}

#[test]
fn every_value_of_the_example_shards() {
    for (name, lengths) in [("demos_np2_p4_pax", &[7, 1, 5][..]), ("random_np1_p3_gnu", &[300, 4])] {
        let Some(bytes) = shared(&format!("vectors/demos/{name}.tar.zst")) else { return };
        let expected = shared(&format!("vectors/demos/{name}.expected.json")).unwrap();
        let expected: Value = serde_json::from_slice(&expected).unwrap();
        let shard = Shard::read(&bytes, MAX).unwrap();
        let all = &shard.trajectories;
        let frames = expected["frames"].as_array().unwrap();
        assert_eq!(all.frames(), frames.len());
        let found: Vec<usize> = (0..all.ends().len()).map(|i| all.span(i).unwrap().len()).collect();
        assert_eq!(found, lengths);
        assert!(all.ends().iter().all(|(_, how)| *how == End::Terminated) && !shard.shuffled);
        let mut compared = 0;
        for (i, frame) in frames.iter().enumerate() {
            assert_eq!(all.extras()["__key__"][i], (i, Extra::Text(frame["key"].as_str().unwrap().to_owned())));
            for field in all.layout().unwrap().fields() {
                let place = format!("{name}, frame {i}, {}", field.name);
                compare(field, all.field(i, &field.name).unwrap(), &frame[&field.name], &place);
                compared += 1;
            }
            assert!(matches!(all.extras()["infos"][i], (at, Extra::Pickle(_)) if at == i));
        }
        assert_eq!(compared, frames.len() * 6);
        let meta = shard.meta.unwrap();
        assert!(meta.env_cfg.contains("task_name") && ["RGB", "GRAY"].contains(&meta.color_space.as_str()));
    }
}

#[test]
fn a_cut_at_any_block_is_an_error_with_its_place() {
    let Some(bytes) = shared("vectors/demos/demos_np2_p4_pax.tar.zst") else { return };
    let mut tar = Vec::new();
    zstd::decompress(&bytes, MAX, &mut tar).unwrap();
    let whole = Shard::read(&tar, MAX).unwrap();
    // What follows a first block of zeros, the end mark, may be missing: all frames are there.
    let end = tar.iter().rposition(|b| *b != 0).unwrap().next_multiple_of(512) + 512;
    for cut in (512..tar.len()).step_by(512) {
        match Shard::read(&tar[..cut], MAX) {
            Ok(shard) => {
                assert!(cut >= end, "cut at {cut} of {}", tar.len());
                assert_eq!(shard.trajectories.frames(), whole.trajectories.frames());
            }
            Err(e) => assert!(cut < end && e.place().offset.is_some(), "cut at {cut}: {e}"),
        }
        let packed = zstd::compress(1, &tar[..cut]).unwrap();
        assert_eq!(Shard::read(&packed, MAX).is_ok(), cut >= end);
    }
    for cut in (1..bytes.len()).step_by(97) {
        assert!(Shard::read(&bytes[..cut], MAX).is_err(), "cut at {cut}");
    }
    assert_eq!(Shard::read(&bytes, 10_000).unwrap_err().kind(), Kind::TooLarge);
}

#[test]
fn the_real_pong_shard() {
    let Some(bytes) = shared(PONG) else { return };
    let shard = Shard::read(&bytes, MAX).unwrap();
    let all = &shard.trajectories;
    assert_eq!((all.frames(), all.ends()), (998, &[(998, End::Truncated)][..]));
    let meta = shard.meta.unwrap();
    assert_eq!((meta.color_space.as_str(), meta.action_space), ("GRAY", Space::Discrete { n: 6, start: 0 }));
    let differs = |i: &usize| all.field(*i, "next_obs") != all.field(*i + 1, "obs");
    assert_eq!((0..997).filter(differs).collect::<Vec<_>>(), [498]);
}
