//! `verify` on packs: sound ones pass in either form, and each field that is changed is found by the check that owns it.

use std::fs;
use std::path::Path;

use gristmill_engine::pack::shards;
use gristmill_format::g2048::RowForm;
use gristmill_jobs::pack::PackOptions;
use gristmill_jobs::verify::{Verification, VerifyOptions, verify};

use crate::drops::{fixture, game, options, packed, text};

fn found(path: &Path) -> Verification {
    found_by(path, 2)
}

fn found_by(path: &Path, workers: usize) -> Verification {
    let options = VerifyOptions { workers, ..VerifyOptions::new(vec![path.to_owned()]) };
    verify(&options, &mut |_, _| {}).unwrap()
}

/// The checks that found something.
fn failed(found: &Verification) -> Vec<&'static str> {
    found.checks.iter().filter(|(_, count)| **count > 0).map(|(name, _)| *name).collect()
}

/// The fixture's four real games as a pack.
fn packed_as(layout: RowForm, shard_rows: Option<u64>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    packed(&PackOptions { layout: Some(layout), shard_rows, ..options(&fixture(), folder.path()) });
    folder
}

fn sql(pack: &Path, statement: &str) {
    let db = rusqlite::Connection::open(pack.join("metadata.db")).unwrap();
    assert!(db.execute(statement, []).unwrap() > 0, "{statement}");
}

/// Changes the bytes of a field of a row of a pack.
fn change(pack: &Path, row: u64, field: &str, change: &dyn Fn(&mut [u8])) {
    let (mut row, mut shards) = (row, shards::list(pack).unwrap().into_iter());
    let shard = loop {
        let shard = shards.next().unwrap();
        match row.checked_sub(shard.rows) {
            Some(later) => row = later,
            None => break shard,
        }
    };
    let field = shard.layout.field(field).unwrap();
    let at = (shard.offset + row * shard.layout.size() as u64) as usize + field.offset;
    let mut bytes = fs::read(&shard.path).unwrap();
    change(&mut bytes[at..at + field.bytes()]);
    fs::write(&shard.path, bytes).unwrap();
}

#[test]
fn sound_packs_pass_in_either_form() {
    for (layout, shard_rows) in [(RowForm::Aligned, None), (RowForm::Packed, Some(100)), (RowForm::Aligned, Some(333))]
    {
        let pack = packed_as(layout, shard_rows);
        let found = found(pack.path());
        assert!(found.ok && found.faults.is_empty() && found.examples.is_empty(), "{found:?}");
        assert_eq!((found.checked, found.chunks, found.skipped), (1882, 4, 0));
        assert_eq!(found.files, shards::list(pack.path()).unwrap().len() as u64);
        assert_eq!(found.checks.len(), 17, "every check is reported, though it found nothing");
    }
    // Beside other files, and below the folder that is named.
    let (root, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    game(root.path(), "odd", &text(3));
    let pack = packed_as(RowForm::Aligned, None);
    fs::rename(pack.path(), out.path().join("pack")).unwrap();
    fs::write(out.path().join("pack/notes.txt"), "mine").unwrap();
    let found = found(out.path());
    assert_eq!((found.ok, found.checked, found.skipped), (true, 1882, 1));
}

#[test]
fn every_field_has_a_check_that_says_so() {
    type Change = fn(&mut [u8]);
    let cases: [(&str, &str, Change); 13] = [
        ("run_id", "run_id", |b| b[0] ^= 1),
        ("run_id", "run_id", |b| b[3] = 9),
        ("step_index", "step_index", |b| b[0] ^= 1),
        ("board", "continuity", |b| b.rotate_left(1)),
        ("board", "board_eval", |b| b.rotate_left(1)),
        ("board_eval", "board_eval", |b| b[1] ^= 1),
        ("tile_65536_mask", "mask", |b| b[0] ^= 1),
        ("move_dir", "move", |b| b[0] = 4),
        ("valuation_type", "valuation_type", |b| b[0] = 77),
        ("ev_legal", "ev_legal", |b| b[0] ^= 16),
        ("max_rank", "max_rank", |b| b[0] += 1),
        ("seed", "seed", |b| b[2] ^= 1),
        ("branch_evs", "evs", |b| b.fill(0xff)),
    ];
    let forms = [(RowForm::Aligned, None), (RowForm::Packed, Some(100))];
    for ((layout, shard_rows), row) in forms.into_iter().flat_map(|form| [700u64, 1000].map(|row| (form, row))) {
        let pack = packed_as(layout, shard_rows);
        let copies: Vec<_> = shards::list(pack.path()).unwrap().into_iter().map(|shard| shard.path).collect();
        let sound: Vec<Vec<u8>> = copies.iter().map(|path| fs::read(path).unwrap()).collect();
        for (field, check, how) in cases {
            change(pack.path(), row, field, &how);
            let found = found(pack.path());
            assert!(!found.ok && found.checks[check] > 0, "{field} {check}: {:?}", found.checks);
            let seen = (found.checks["hash"], found.checks["checksum"]);
            assert_eq!(seen, (1, 1), "{field}: the hash sees every change, and the checksum of its block");
            let fault = found.faults.iter().find(|fault| fault.rule == Some(check)).unwrap();
            let number = row % shard_rows.unwrap_or(u64::MAX);
            assert!([number, number + 1].contains(&fault.frame.unwrap()), "{fault:?}");
            assert!(fault.file.as_ref().unwrap().contains("steps") && fault.offset >= Some(384), "{fault:?}");
            // What is reported once, of stretches of rows, is not drawn.
            let drawn = found.examples.iter().any(|example| example.fault.rule == Some(check));
            assert!(drawn || check == "run_id", "{check}");
            copies.iter().zip(&sound).for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
        }
        // One wrong number, and nothing else is accused.
        change(pack.path(), row, "board_eval", &|b| b[2] ^= 1);
        assert_eq!(failed(&found(pack.path())), ["board_eval", "checksum", "hash"]);
        fs::remove_file(pack.path().join("manifest.json")).unwrap();
        assert_eq!(failed(&found(pack.path())), ["board_eval", "checksum"]);
    }
}

#[test]
fn rows_are_held_against_what_lies_beside_them() {
    type Damage = fn(&Path);
    let cases: [(Damage, &[&str]); 12] = [
        (|p| sql(p, "UPDATE runs SET steps = steps + 1 WHERE id = 2"), &["steps"]),
        (|p| sql(p, "UPDATE runs SET highest_tile = highest_tile * 4 WHERE id = 1"), &["highest_tile"]),
        (|p| sql(p, "UPDATE runs SET seed = seed + 1 WHERE id = 3"), &["seed"]),
        (|p| sql(p, "DELETE FROM runs WHERE id = 0"), &["run_id"]),
        (|p| sql(p, "UPDATE extras SET first_row = first_row + 1 WHERE run_id = 1"), &["first_row"]),
        (|p| sql(p, "UPDATE runs SET max_score = -1 WHERE id = 1"), &["out_of_range"]),
        (|p| fs::remove_file(p.join("metadata.db")).unwrap(), &["not_found"]),
        (|p| fs::write(p.join("metadata.db"), "no database").unwrap(), &["corrupt"]),
        (|p| fs::write(p.join("valuation_types.json"), "[]").unwrap(), &["valuation_type"]),
        (|p| fs::write(p.join("valuation_types.json"), "{").unwrap(), &["corrupt"]),
        (|p| fs::remove_file(p.join("steps-00001.npy")).unwrap(), &["manifest", "run_id", "steps"]),
        (|p| fs::write(p.join("manifest.json"), "{}").unwrap(), &["corrupt"]),
    ];
    for (i, (damage, expected)) in cases.into_iter().enumerate() {
        let pack = packed_as(RowForm::Aligned, Some(500));
        damage(pack.path());
        let found = found(pack.path());
        let failed = failed(&found);
        let all = expected.iter().filter(|name| **name != "run_id").all(|name| failed.contains(name));
        assert!(all && !failed.is_empty() && failed.len() <= 3, "case {i}: {failed:?}");
        assert!(found.checked > 1300, "the rows are checked all the same");
    }
    for (file, len, check) in [("steps-00001.npy", 20_000, "truncated"), ("steps-00001.npy", 24_400, "wrong_size")] {
        let pack = packed_as(RowForm::Aligned, Some(500));
        let open = fs::OpenOptions::new().write(true).open(pack.path().join(file)).unwrap();
        open.set_len(len).unwrap();
        let found = found(pack.path());
        assert_eq!((found.checks[check], found.ok), (1, false), "{:?}", found.checks);
    }
    let none = tempfile::tempdir().unwrap();
    fs::write(none.path().join("steps.npy"), "").unwrap();
    assert_eq!(failed(&found(none.path())), ["not_found", "truncated"]);
}

#[test]
fn what_is_found_does_not_depend_on_the_threads() {
    let pack = packed_as(RowForm::Packed, Some(100));
    (0..1882).step_by(7).for_each(|row| change(pack.path(), row, "max_rank", &|b| b[0] ^= 3));
    let [one, four] = [1, 4].map(|workers| serde_json::to_value(found_by(pack.path(), workers)).unwrap());
    assert_eq!(one, four);
    assert_eq!((one["fault_count"].as_u64(), one["faults"].as_array().unwrap().len()), (Some(269 + 19 + 19), 100));
}

#[test]
fn logs_are_held_against_their_sidecars() {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(fixture()).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    let sound = found(folder.path());
    assert!(sound.ok && sound.checked == 1882 && sound.chunks == 4, "{sound:?}");
    let sidecar = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let sidecar = sidecar.filter(|path| path.extension().is_some_and(|e| e == "json")).min().unwrap();
    let said = fs::read_to_string(&sidecar).unwrap();
    for (from, to, check) in
        [("\"num_moves\":", "\"num_moves\":1", "steps"), ("\"max_tile\":", "\"max_tile\":9", "highest_tile")]
    {
        let spaced = said.replace("\": ", "\":");
        assert!(spaced.contains(from));
        fs::write(&sidecar, spaced.replace(from, to)).unwrap();
        assert_eq!(failed(&found(folder.path())), [check]);
    }
    fs::write(&sidecar, "{").unwrap();
    let found = found(folder.path());
    assert_eq!(failed(&found), ["corrupt"]);
    assert!(found.faults[0].file.as_ref().unwrap().ends_with(".meta.json"));
}
