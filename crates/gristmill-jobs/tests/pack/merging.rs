//! Packs of either form, of ours and of others, into one; what contradicts itself is refused, and nothing is lost.

use std::fs;
use std::path::{Path, PathBuf};

use gristmill_engine::pack::metadata::{Metadata, MetadataWriter, Run};
use gristmill_format::container::npy::{Header, Spelling};
use gristmill_format::g2048::RowForm;
use gristmill_format::layout::{DType, Layout, Scalar};
use gristmill_jobs::merge::{MergeOptions, Merged, merge};
use gristmill_jobs::pack::{Existing, PackOptions};

use crate::drops::*;

struct Packs {
    root: tempfile::TempDir,
}

impl Packs {
    /// `a`: 4 games, 46 bytes, shards of 9; `b`: 3 games, 48 bytes, other names.
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let packs = Packs { root };
        let form = Some(RowForm::Packed);
        packed(&PackOptions { layout: form, shard_rows: Some(9), ..options(drop_of(4).path(), &packs.at("a")) });
        let drop = tempfile::tempdir().unwrap();
        game(drop.path(), "x", &text(5).replace("search", "plan"));
        game(drop.path(), "y", &text(70).replace("search", "tuple10"));
        game(drop.path(), "z", "");
        packed(&options(drop.path(), &packs.at("b")));
        packs
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn options(&self, inputs: &[&str], output: &str) -> MergeOptions {
        let inputs = inputs.iter().map(|name| self.at(name)).collect();
        MergeOptions { workers: 2, ..MergeOptions::new(inputs, self.at(output)) }
    }

    fn merge(&self, inputs: &[&str], output: &str) -> Merged {
        merge(&self.options(inputs, output), &mut |_, _| {}).unwrap()
    }

    fn refused(&self, options: &MergeOptions) -> String {
        let e = merge(options, &mut |_, _| {}).unwrap_err().to_string();
        for pack in ["a", "b"] {
            assert!(self.at(pack).join("manifest.json").exists(), "{e}");
        }
        e
    }
}

fn session(pack: &Path, entries: &[(&str, &str)]) {
    let mut metadata = MetadataWriter::open(pack.join("metadata.db")).unwrap();
    entries.iter().for_each(|(key, value)| metadata.put_session(key, value).unwrap());
    metadata.finish().unwrap();
}

#[test]
fn rows_follow_each_other_and_runs_are_numbered_anew() {
    let packs = Packs::new();
    let (a, b) = (rows(&packs.at("a")), rows(&packs.at("b")));
    session(&packs.at("a"), &[("ts", "1"), ("model_id", "m")]);
    session(&packs.at("b"), &[("ts", "2"), ("model_id", "m"), ("host", "h")]);
    let done = packs.merge(&["a", "b", "a2"][..2], "ab");
    assert_eq!((done.packs, done.runs, done.rows, done.files), (2, 7, (a.len() + b.len()) as u64, 1));
    let all = rows(&packs.at("ab"));
    let expected: Vec<_> = a
        .iter()
        .copied()
        .chain(b.iter().map(|row| {
            // `plan` is the fourth name in both; tuple10 has its own id everywhere.
            gristmill_format::g2048::StepRow { run_id: row.run_id + 4, ..*row }
        }))
        .collect();
    assert_eq!(all, expected);
    let (_, runs, extras) = content(&packs.at("ab"));
    assert_eq!(runs.iter().map(|run| run.id).collect::<Vec<_>>(), (0..7).collect::<Vec<_>>());
    assert_eq!(extras.iter().map(|extra| extra.run_id).collect::<Vec<_>>(), (0..7).collect::<Vec<_>>());
    assert_eq!((extras[4].first_row, extras[5].first_row), (a.len() as u64, a.len() as u64 + 5));
    let found = Metadata::open(packs.at("ab").join("metadata.db")).unwrap().session().unwrap();
    let kept = [("host", "h"), ("model_id", "m"), ("ts", "1"), ("ts@2", "2")];
    assert_eq!(found, kept.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    let manifest = manifest(&packs.at("ab"));
    assert_eq!((manifest.sources.logs, manifest.sources.merged.len(), manifest.layout.as_str()), (7, 2, "aligned48"));
}

#[test]
fn many_packs_and_any_form_and_shard_give_the_same_rows() {
    let packs = Packs::new();
    packs.merge(&["b", "a"], "c");
    packs.merge(&["c", "a", "b"], "all");
    let expected = rows(&packs.at("all"));
    assert_eq!(expected.len(), 2 * (rows(&packs.at("a")).len() + rows(&packs.at("b")).len()));
    for (layout, shard_rows, workers) in [(RowForm::Packed, Some(13), 1), (RowForm::Aligned, Some(50), 5)] {
        let options = packs.options(&["c", "a", "b"], "again");
        let options = MergeOptions { layout, shard_rows, workers, overwrite: true, ..options };
        let done = merge(&options, &mut |_, _| {}).unwrap();
        assert_eq!(done.files, (expected.len() as u64).div_ceil(shard_rows.unwrap()));
        assert_eq!(rows(&packs.at("again")), expected);
        assert_eq!(files(&packs.at("again")).len() as u64, 2 * done.files + 4, "rows with checksums beside them");
    }
}

#[test]
fn names_are_unified_whatever_their_ids() {
    let packs = Packs::new();
    let names = |pack: &str, json: &str| put(&packs.at(pack), "valuation_types.json", json.as_bytes());
    names("a", r#"["tuple11","search"]"#);
    names("b", r#"{"search":0,"block":3,"tuple11":1,"line":2}"#);
    packs.merge(&["a", "b"], "ab");
    let written = fs::read_to_string(packs.at("ab").join("valuation_types.json")).unwrap();
    assert_eq!(written, "{\n  \"tuple11\": 0,\n  \"search\": 1,\n  \"line\": 2,\n  \"block\": 3\n}\n");
    let ids: Vec<u8> =
        rows(&packs.at("ab"))[rows(&packs.at("a")).len()..].iter().map(|row| row.valuation_type).collect();
    assert_eq!(ids, [vec![3; 5], vec![2; 70]].concat());
    names("b", r#"{"search":0,"tuple11":1}"#);
    let e = packs.refused(&packs.options(&["a", "b"], "x"));
    assert!(e.contains("steps.npy") && e.contains("row 0") && e.contains("valuation type 3"), "{e}");
    assert!(!packs.at("x").exists(), "nothing is left of a merge that failed");
}

/// A pack as other programs write it: both kinds of files, fields in another order, no names, no session, no manifest.
#[test]
fn packs_of_others_are_taken() {
    let packs = Packs::new();
    let theirs = packs.at("theirs");
    fs::create_dir(&theirs).unwrap();
    let b = rows(&packs.at("b"));
    let fields: &[(&str, Scalar, &[usize])] = &[
        ("branch_evs", Scalar::F32, &[4]),
        ("board", Scalar::U64, &[]),
        ("run_id", Scalar::U32, &[]),
        ("step_index", Scalar::U32, &[]),
        ("board_eval", Scalar::I32, &[]),
        ("seed", Scalar::U32, &[]),
        ("tile_65536_mask", Scalar::U16, &[]),
        ("move_dir", Scalar::U8, &[]),
        ("valuation_type", Scalar::U8, &[]),
        ("ev_legal", Scalar::U8, &[]),
        ("max_rank", Scalar::U8, &[]),
    ];
    let header = Header::write(&DType::Record(Layout::packed(fields).unwrap()), &[2], Spelling::Spaced).unwrap();
    let mut file = header;
    for (id, row) in [(30, &b[5]), (2, &b[6])] {
        row.branch_evs.iter().for_each(|ev| file.extend(ev.to_le_bytes()));
        file.extend(row.board.to_le_bytes());
        file.extend(u32::to_le_bytes(id));
        file.extend(row.step_index.to_le_bytes());
        file.extend(row.board_eval.to_le_bytes());
        file.extend(row.seed.to_le_bytes());
        file.extend(row.tile_65536_mask.to_le_bytes());
        file.extend([row.move_dir, row.valuation_type, row.ev_legal, row.max_rank]);
    }
    put(&theirs, "steps.npy", &file);
    let shard = Header::write(&DType::Record((**RowForm::Packed.layout()).clone()), &[1], Spelling::Spaced).unwrap();
    let last = gristmill_format::g2048::StepRow { run_id: 30, ..b[7] };
    put(&theirs, "steps-00000.npy", &[&shard[..], &last.to_packed()].concat());
    let mut metadata = MetadataWriter::open(theirs.join("metadata.db")).unwrap();
    for (id, steps) in [(2, 1), (7, 0), (30, 2)] {
        metadata.put_run(&Run { id, seed: Some(id), steps, max_score: 1, highest_tile: 2 }).unwrap();
    }
    metadata.finish().unwrap();
    packs.merge(&["theirs", "a"], "out");
    let all = rows(&packs.at("out"));
    let ids: Vec<u32> = all[..4].iter().map(|row| row.run_id).collect();
    assert_eq!(ids, [2, 0, 2, 3], "by ascending id: 2, 7, 30");
    assert_eq!((all[0].board, all[1].branch_evs, all[2].step_index), (b[5].board, b[6].branch_evs, b[7].step_index));
    let (_, runs, extras) = content(&packs.at("out"));
    assert_eq!((runs.len(), extras.len(), runs[2].seed), (7, 4, Some(30)));

    let mut metadata = MetadataWriter::open(theirs.join("metadata.db")).unwrap();
    metadata.put_run(&Run { id: 7, seed: Some(7), steps: 1, max_score: 1, highest_tile: 2 }).unwrap();
    metadata.finish().unwrap();
    let e = packs.refused(&packs.options(&["theirs", "a"], "x"));
    assert!(e.contains("run 7 has 1 steps, the files of rows have 0"), "{e}");
    put(&theirs, "steps-00000.npy", &[&shard[..], &b[7].to_packed()].concat());
    let e = packs.refused(&packs.options(&["theirs", "a"], "x"));
    assert!(e.contains("steps-00000.npy, byte 320") && e.contains("row 0: run 1 is not in the database"), "{e}");
    for (fields, words) in [
        (
            &[("run_id", Scalar::U64, &[][..]), ("step_idx", Scalar::U32, &[]), ("exps", Scalar::U8, &[16])][..],
            "self-play",
        ),
        (&[("board", Scalar::U64, &[]), ("ev_values", Scalar::F32, &[4])], "legacy"),
        (&[("run_id", Scalar::U32, &[])], "no step rows"),
    ] {
        let header = Header::write(&DType::Record(Layout::packed(fields).unwrap()), &[0], Spelling::Spaced).unwrap();
        put(&theirs, "steps.npy", &header);
        let e = packs.refused(&packs.options(&["theirs", "a"], "x"));
        assert!(e.contains(words), "{e}");
    }
}

#[test]
fn damage_is_found_by_its_hash() {
    let packs = Packs::new();
    let file = packs.at("a").join("steps-00001.npy");
    let mut bytes = fs::read(&file).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&file, bytes).unwrap();
    let e = packs.refused(&packs.options(&["b", "a"], "x"));
    assert!(e.contains("steps-00001.npy") && e.contains("hash"), "{e}");
}

#[test]
fn dangerous_overlaps_are_refused_and_inputs_survive() {
    let packs = Packs::new();
    let before = (files(&packs.at("a")), files(&packs.at("b")));
    for (inputs, output) in [(["a", "b"], "a"), (["a", "b"], "b/new"), (["a", "b"], "a/deep/er"), (["a", "a"], "x")] {
        let options = packs.options(&inputs, output);
        let e = packs.refused(&MergeOptions { overwrite: true, delete_inputs: true, ..options });
        assert!(e.contains("choose") || e.contains("same pack"), "{e}");
    }
    packs.refused(&packs.options(&["a"], "x"));
    packs.refused(&packs.options(&["a", "nowhere"], "x"));
    packs.merge(&["a", "b"], "there");
    let there = files(&packs.at("there"));
    assert!(packs.refused(&packs.options(&["a", "b"], "there")).contains("--overwrite"));
    let dry = MergeOptions { dry_run: true, ..packs.options(&["a", "b"], "dry") };
    assert!(merge(&dry, &mut |_, _| {}).unwrap().dry_run && !packs.at("dry").exists());
    assert_eq!(files(&packs.at("there")), there);
    assert_eq!((files(&packs.at("a")), files(&packs.at("b"))), before);
}

#[test]
fn inputs_are_deleted_when_asked_and_foreign_files_stay() {
    let packs = Packs::new();
    let expected = rows(&packs.at("a")).len() + rows(&packs.at("b")).len();
    put(&packs.at("b"), "notes/mine.txt", b"precious");
    let options = MergeOptions { delete_inputs: true, ..packs.options(&["a", "b"], "ab") };
    let done = merge(&options, &mut |_, _| {}).unwrap();
    assert_eq!((done.deleted.len(), done.left.len()), (2, 1));
    assert!(!packs.at("a").exists());
    assert_eq!(fs::read(packs.at("b/notes/mine.txt")).unwrap(), b"precious");
    assert_eq!(fs::read_dir(packs.at("b")).unwrap().count(), 1);
    assert_eq!(rows(&packs.at("ab")).len(), expected);
}

#[test]
fn a_manifest_that_counts_to_the_end_of_numbers_overflows_nothing() {
    let packs = Packs::new();
    let path = packs.at("a").join("manifest.json");
    let mut manifest: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    (manifest["sources"]["logs"], manifest["sources"]["stored_bytes"]) = (u64::MAX.into(), u64::MAX.into());
    fs::write(&path, manifest.to_string()).unwrap();
    assert_eq!(packs.merge(&["a", "b"], "out").runs, 7);
    let drop = drop_of(5);
    let append = PackOptions { existing: Existing::Append, ..options(drop.path(), &packs.at("a")) };
    assert_eq!(packed(&append).runs, 5);
}
