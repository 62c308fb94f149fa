//! Replays the corpus of the `ledger` fuzz target on stable Rust through the same body, and every cut of it.
//! `cargo test -p gristmill-engine --test parts ledger_corpus -- --ignored` writes the seeds again.
#![allow(unreachable_pub)]

use std::path::PathBuf;

use gristmill_engine::runtime::sealed::SealedLines;
use serde_json::{Value, json};

#[path = "../../../fuzz/src/ledger.rs"]
mod bodies;

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/ledger")
}

#[test]
fn every_file_of_the_corpus_keeps_the_promises() {
    let mut files: Vec<_> = std::fs::read_dir(corpus()).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 4, "the corpus is missing");
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        for cut in (0..=bytes.len()).rev() {
            let outcome = std::panic::catch_unwind(|| bodies::ledger(&bytes[..cut]));
            assert!(outcome.is_ok(), "{} breaks a promise at {cut}", file.display());
        }
    }
}

#[test]
#[ignore = "writes the seeds into the corpus"]
fn write_seeds() {
    let begin = |order: u64, by: &str, from: u64| {
        let plan = json!({"stream": {"config": {"lanes": 4}, "seed": u64::MAX}});
        let begin = json!({"version": 1, "order": order, "rank": 0, "world_size": 1, "by": by, "from": {"": from},
                           "skip": {"": [[3, 9]]}, "plan": plan});
        json!({"begin": begin})
    };
    let delivered = |first: u64, end: u64| {
        let digest = json!({"epoch": 1, "frames": 2, "sum": format!("{:032x}", u128::MAX), "xor": "0"});
        json!({"delivered": {"output": "", "first": first, "end": end, "digests": [digest]}})
    };
    let ended = json!({"ended": {"output": "", "batch": 20}});
    let seeds: [(&str, Vec<Value>); 4] = [
        ("run", vec![begin(1, "start", 0), delivered(0, 9), begin(2, "state", 5), delivered(5, 20), ended]),
        ("seek", vec![begin(1, "start", 0), delivered(0, 9), begin(2, "seek", u64::MAX), delivered(3, u64::MAX)]),
        ("headless", vec![delivered(0, 9)]),
        ("backwards", vec![begin(u64::MAX, "start", 0), delivered(9, 0)]),
    ];
    for (name, values) in seeds {
        let path = corpus().join(name);
        let _ = std::fs::remove_file(&path);
        let mut lines = SealedLines::create(&path).unwrap();
        values.iter().for_each(|value| lines.append(value).unwrap());
    }
}
