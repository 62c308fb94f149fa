//! What raw games become, byte for byte; shards, overwriting, dry runs; the same bytes for any number of workers.

use std::fs;
use std::path::Path;
use std::process::Command;

use gristmill_format::g2048::RowForm;
use gristmill_jobs::pack::{Existing, PackOptions, pack};
use sha2::{Digest, Sha256};

use crate::drops::*;

fn sha256(path: &Path) -> String {
    Sha256::digest(fs::read(path).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The published generator.
const GOLDEN: &str = "b5f4f19955e111e9991457a55cb843e08756141ce851fab79ac52b627afad640";

#[test]
fn packed_rows_are_those_of_the_reference() {
    let out = tempfile::tempdir().unwrap();
    for workers in [1, 2, 5] {
        let form = Some(RowForm::Packed);
        let target = out.path().join(workers.to_string());
        let done = packed(&PackOptions { layout: form, workers, ..options(&fixture(), &target) });
        assert_eq!((done.rows, done.runs, done.skipped.len()), (1882, 4, 0));
        assert_eq!(sha256(&target.join("steps.npy")), GOLDEN);
        let names = fs::read_to_string(target.join("valuation_types.json")).unwrap();
        assert_eq!(names, "{\n  \"search\": 0,\n  \"tuple11\": 1,\n  \"tuple10\": 2\n}\n");
    }
}

#[test]
fn an_independent_generator_gives_the_same() {
    let shared = std::env::var("GRISTMILL_SHARED").unwrap_or_else(|_| "../../../shared".to_owned());
    let generator = Path::new(&shared).join("vectors/macroxue/gen_macroxue.py");
    let drop = tempfile::tempdir().unwrap();
    let words = ["--games", "4", "--mode", "natural", "--quirks", "--jobs", "1", "--out"];
    let ran = Command::new("python3").arg(&generator).args(words).arg(drop.path()).output();
    if !generator.is_file() || !ran.is_ok_and(|ran| ran.status.success()) {
        println!("skipped: no generator at {}, or no python3", generator.display());
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let target = out.path().join("pack");
    packed(&PackOptions { layout: Some(RowForm::Packed), ..options(drop.path(), &target) });
    assert_eq!(sha256(&target.join("steps.npy")), GOLDEN);
}

#[test]
fn aligned_rows_hold_the_same() {
    let out = tempfile::tempdir().unwrap();
    let (narrow, wide) = (out.path().join("46"), out.path().join("48"));
    packed(&PackOptions { layout: Some(RowForm::Packed), ..options(&fixture(), &narrow) });
    packed(&options(&fixture(), &wide));
    assert_eq!(rows(&narrow), rows(&wide));
    assert_eq!(fs::metadata(wide.join("steps.npy")).unwrap().len(), 384 + 48 * 1882);
    assert_eq!((manifest(&wide).layout, manifest(&narrow).layout), ("aligned48".into(), "packed46".into()));
}

#[test]
fn workers_change_no_byte() {
    let drop = drop_of(40);
    // A game that is inflated piece by piece, others with names of their own, one that is bad in its middle.
    game(drop.path(), "game010long", &text(90_000));
    for (base, name) in [("game005", "line_plan"), ("game020", "block_plan"), ("game001", "third")] {
        game(drop.path(), base, &format!("{}\n{}\n", line(0, &[]), line(1, &[("search", name)])));
    }
    game(drop.path(), "game011bad", &(text(80_000) + "nonsense\n" + &text(10)));
    let out = tempfile::tempdir().unwrap();
    let run = |workers: usize| {
        let target = out.path().join(workers.to_string());
        let done = packed(&PackOptions { workers, shard_rows: Some(1000), ..options(drop.path(), &target) });
        assert_eq!((done.runs, done.skipped.len()), (41, 1));
        let bad = &done.skipped[0];
        assert_eq!(
            (bad.file.as_str(), bad.line, bad.column),
            ("game011bad.jsonl.gz", Some(80_001), Some(2)),
            "{bad:?}"
        );
        assert_eq!(bad.offset, Some(text(80_000).len() as u64 + 1));
        files(&target)
    };
    let one = run(1);
    for workers in [2, 7] {
        for (mine, theirs) in run(workers).iter().zip(&one) {
            assert!(mine == theirs, "{workers} workers: {} differs from {}", mine.0, theirs.0);
        }
    }
    let names = fs::read_to_string(out.path().join("2/valuation_types.json")).unwrap();
    assert!(names.contains("\"third\": 3,\n  \"line_plan\": 4,\n  \"block_plan\": 5\n"), "{names}");
}

#[test]
fn runs_are_numbered_in_order_and_their_rows_follow_each_other() {
    let root = tempfile::tempdir().unwrap();
    let order = ["B/g", "a/g", "a b/g", "a-b/g", "a.x/g", "g10", "g9", "ga"];
    for (i, base) in order.iter().enumerate() {
        game(root.path(), base, &text(i as u32 + 1));
    }
    let out = tempfile::tempdir().unwrap();
    let target = out.path().join("pack");
    packed(&options(root.path(), &target));
    let (_, runs, extras) = content(&target);
    let sources: Vec<&str> = extras.iter().map(|extra| extra.source.trim_end_matches(".jsonl.gz")).collect();
    assert_eq!(sources, order);
    assert_eq!(
        runs.iter().map(|run| (run.id, run.steps)).collect::<Vec<_>>(),
        (0..8).map(|i| (i, i + 1)).collect::<Vec<_>>()
    );
    assert_eq!(extras.iter().map(|extra| extra.first_row).collect::<Vec<_>>(), [0, 1, 3, 6, 10, 15, 21, 28]);
    assert_eq!((runs[0].seed, runs[0].max_score, runs[0].highest_tile), (Some(7), 100, 8));
    assert!(extras[0].sidecar.contains("\"depth\": 6"));
    let ids: Vec<u32> = rows(&target).iter().map(|row| row.run_id).collect();
    assert!(ids.is_sorted() && ids.len() == 36 && ids[35] == 7);
}

#[test]
fn shards_are_filled_exactly_and_old_files_go_with_the_pack_they_were_of() {
    let drop = drop_of(9);
    let out = tempfile::tempdir().unwrap();
    let whole = out.path().join("whole");
    let total = packed(&options(drop.path(), &whole)).rows;
    let target = out.path().join("shards");
    for (shard_rows, existing) in [(7, Existing::Refuse), (20, Existing::Overwrite), (1_000_000, Existing::Overwrite)] {
        let options = PackOptions { shard_rows: Some(shard_rows), existing, ..options(drop.path(), &target) };
        assert_eq!(packed(&options).files, total.div_ceil(shard_rows));
        let manifest = manifest(&target);
        assert!(manifest.files.iter().rev().skip(1).all(|file| file.rows == shard_rows));
        assert_eq!(rows(&target), rows(&whole));
        assert_eq!(files(&target).len() as u64, 2 * total.div_ceil(shard_rows) + 4, "{shard_rows}");
    }
    fs::write(target.join("notes.txt"), "mine").unwrap();
    packed(&PackOptions { existing: Existing::Overwrite, ..options(drop.path(), &target) });
    assert_eq!(
        files(&target).iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        [
            "manifest.json",
            "metadata.db",
            "notes.txt",
            "opening.index",
            "steps.npy",
            "steps.npy.xxh3",
            "valuation_types.json"
        ]
    );
    // No bound, as the reference has it.
    let none = PackOptions { shard_rows: Some(0), existing: Existing::Overwrite, ..options(drop.path(), &target) };
    assert_eq!((packed(&none).files, manifest(&target).shard_rows), (1, None));
}

#[test]
fn what_is_there_is_left_alone() {
    let drop = drop_of(3);
    for there in ["steps.npy", "steps-00003.npy", "metadata.db", "valuation_types.json", "manifest.json"] {
        let out = tempfile::tempdir().unwrap();
        put(out.path(), there, b"precious");
        for dry_run in [false, true] {
            let refused = pack(&PackOptions { dry_run, ..options(drop.path(), out.path()) }, &mut |_| {});
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains("--overwrite"), "{refused}");
            assert_eq!(files(out.path()), [(there.to_owned(), b"precious".to_vec())]);
        }
    }
}

#[test]
fn a_dry_run_writes_nothing() {
    let drop = drop_of(3);
    put(drop.path(), "half.meta.json", b"{}");
    let out = tempfile::tempdir().unwrap();
    let target = out.path().join("pack");
    let planned = packed(&PackOptions { dry_run: true, shard_rows: Some(4), ..options(drop.path(), &target) });
    assert_eq!((planned.games, planned.rows, planned.files, planned.dry_run), (3, 18, 5, true));
    assert_eq!(planned.skipped.len(), 1);
    assert!(!target.exists());
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let drop = drop_of(1);
    let out = tempfile::tempdir().unwrap();
    let good = options(drop.path(), &out.path().join("pack"));
    for bad in [
        PackOptions { workers: 0, ..good.clone() },
        PackOptions { checkpoint_rows: 0, ..good.clone() },
        PackOptions { existing: Existing::Append, ..good.clone() },
        PackOptions { input: drop.path().join("nowhere"), ..good.clone() },
        PackOptions { input: out.path().to_owned(), ..good.clone() },
    ] {
        assert!(pack(&bad, &mut |_| {}).is_err(), "{bad:?}");
        assert!(!good.output.exists(), "{bad:?}");
    }
}
