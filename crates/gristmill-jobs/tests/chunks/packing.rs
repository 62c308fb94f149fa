//! Folders of games in, packs out: every record back to the bit, whatever interrupts it and however many threads there are.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;

use gristmill_engine::Error;
use gristmill_engine::chunks::manifest::Manifest;
use gristmill_engine::chunks::metadata::{Game, Games};
use gristmill_engine::sql::SqlValue;
use gristmill_jobs::pack::{Existing, OnError, PackOptions, pack};
use gristmill_jobs::verify::{VerifyOptions, verify};

use crate::fixture::{input, packed, records};

/// The visible files of a pack; of the database what it says.
fn visible(pack: &Path) -> (Vec<(String, Vec<u8>)>, Vec<Game>) {
    let mut files: Vec<_> = fs::read_dir(pack)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files.retain(|(name, _)| name != "metadata.db");
    let mut games = Vec::new();
    let database = Games::open(&pack.join("metadata.db")).unwrap();
    database
        .each(&mut |game| {
            games.push(game);
            Ok(())
        })
        .unwrap();
    (files, games)
}

#[test]
fn every_record_comes_back_and_no_byte_depends_on_the_workers() {
    let (input, out) = (input(), tempfile::tempdir().unwrap());
    let one = out.path().join("one");
    let report = packed(input.path(), &one, |options| options.workers = 1).unwrap();
    let originals = records(input.path(), &[".gz", ".tar"]);
    assert_eq!((report.games, report.runs, originals.len()), (11, 11, 11));
    assert!(report.files > 1 && report.skipped.is_empty(), "{report:?}");
    assert!(records(&one, &[".chunks"]) == originals);
    let four = out.path().join("four");
    packed(input.path(), &four, |options| options.workers = 4).unwrap();
    let (files, games) = visible(&one);
    assert!((files, games.clone()) == visible(&four));
    let manifest = Manifest::read(&one).unwrap();
    assert_eq!((manifest.games, manifest.files.len() as u64), (11, report.files));
    assert_eq!(manifest.frames, games.iter().map(|game| game.frames).sum::<u64>());
    assert!(games.iter().any(|game| game.source.contains(".tar/")));
    assert!(games.iter().any(|game| game.facts[0] == SqlValue::Integer(7)), "the first column of its codec: version");
    let checked = verify(&VerifyOptions::new(vec![one.clone()]), &mut |_, _| {}).unwrap();
    assert!(checked.ok && checked.checked == manifest.frames && checked.chunks == 11, "{checked:?}");
    // A file of another pack in its place, and nothing damaged in itself.
    let last = one.join(&manifest.files.last().unwrap().name);
    fs::copy(one.join(&manifest.files[0].name), last).unwrap();
    let swapped = verify(&VerifyOptions::new(vec![one]), &mut |_, _| {}).unwrap();
    let told = |name: &str| swapped.faults.iter().any(|fault| fault.file.as_ref().is_some_and(|f| f.ends_with(name)));
    assert!(told("manifest.json") && told("metadata.db"), "{swapped:?}");
}

#[test]
fn what_was_stopped_goes_on_and_makes_the_same_pack() {
    let (input, out) = (input(), tempfile::tempdir().unwrap());
    let (whole, cut) = (out.path().join("whole"), out.path().join("cut"));
    packed(input.path(), &whole, |_| {}).unwrap();
    let mut options = PackOptions::new(input.path(), &cut);
    (options.shard_rows, options.workers) = (Some(60), 1);
    let stop = options.stop.clone();
    let stopped = pack(&options, &mut |_| stop.store(true, Ordering::Relaxed));
    // All games are one piece of work: the stop is seen after it.
    assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
    assert!(!cut.join("manifest.json").exists() && cut.join(".pack.part/games-00000.chunks").is_file());
    // The state of a job killed before the last file was closed.
    fs::write(cut.join(".pack.part/games-00077.chunks"), "half").unwrap();
    let again = packed(input.path(), &cut, |_| {}).unwrap_err().to_string();
    assert!(again.contains("--resume"), "{again}");
    let resumed = packed(input.path(), &cut, |options| options.existing = Existing::Resume).unwrap();
    assert!(resumed.resumed > 0, "{resumed:?}");
    assert!(visible(&whole) == visible(&cut));
    let complete = packed(input.path(), &cut, |options| options.existing = Existing::Resume).unwrap();
    assert_eq!((complete.runs, complete.resumed), (11, 11));
}

#[test]
fn what_is_appended_follows_in_files_of_its_own() {
    let (input, out) = (input(), tempfile::tempdir().unwrap());
    let pack = out.path().join("pack");
    let first = packed(input.path(), &pack, |_| {}).unwrap();
    let before = visible(&pack).0;
    crate::fixture::games(input.path(), 7, 2, gristmill_format::chess::Version::V6, None);
    let refused = packed(input.path(), &pack, |_| {}).unwrap_err().to_string();
    assert!(refused.contains("--append"), "{refused}");
    let more = packed(input.path(), &pack, |options| options.existing = Existing::Append).unwrap();
    assert_eq!((more.known, more.runs), (11, 13));
    let (after, games) = visible(&pack);
    assert!(before.iter().filter(|(name, _)| name.ends_with(".chunks")).all(|file| after.contains(file)));
    assert_eq!(games[11].first_frame, first.rows);
    assert_eq!(games[11].file, first.files);
    let nothing = packed(input.path(), &pack, |options| options.existing = Existing::Append).unwrap();
    assert_eq!((nothing.known, nothing.runs), (13, 13));
    assert!(visible(&pack).0 == after);
}

#[test]
fn bad_games_are_left_out_listed_or_the_end() {
    let (input, out) = (input(), tempfile::tempdir().unwrap());
    fs::write(input.path().join("training.9.gz"), b"\x1f\x8bnonsense").unwrap();
    let pack = out.path().join("pack");
    let plan = packed(input.path(), &pack, |options| options.dry_run = true).unwrap();
    assert_eq!((plan.dry_run, plan.games, pack.exists()), (true, 12, false));
    let raised = packed(input.path(), &pack, |options| options.on_error = OnError::Raise).unwrap_err();
    assert!(raised.to_string().contains("training.9.gz"), "{raised}");
    let report = packed(input.path(), &pack, |options| {
        (options.on_error, options.existing) = (OnError::Quarantine, Existing::Overwrite);
    });
    let report = report.unwrap();
    assert_eq!((report.runs, report.skipped.len()), (11, 1));
    assert_eq!(report.skipped[0].file, "training.9.gz");
    assert_eq!(fs::read_to_string(pack.join("quarantine.jsonl")).unwrap().lines().count(), 1);
    let layout = packed(input.path(), &pack, |options| options.layout = Some(Default::default())).unwrap_err();
    assert!(layout.to_string().contains("2048"), "{layout}");
    let empty = tempfile::tempdir().unwrap();
    let none = packed(empty.path(), &pack, |_| {}).unwrap_err();
    assert!(none.to_string().contains("no games here"), "{none}");
}

#[test]
fn a_manifest_that_counts_to_the_end_of_numbers_overflows_nothing() {
    let (input, out) = (input(), tempfile::tempdir().unwrap());
    let (pack, path) = (out.path().join("pack"), out.path().join("pack/manifest.json"));
    packed(input.path(), &pack, |_| {}).unwrap();
    crate::fixture::games(input.path(), 7, 2, gristmill_format::chess::Version::V6, None);
    let sound: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let append = |name: &str| {
        let mut manifest = sound.clone();
        manifest[name] = u64::MAX.into();
        fs::write(&path, manifest.to_string()).unwrap();
        packed(input.path(), &pack, |options| options.existing = Existing::Append)
    };
    for name in ["games", "frames"] {
        let refused = append(name).unwrap_err().to_string();
        assert!(refused.contains("manifest.json") && refused.contains(name), "{refused}");
    }
    assert_eq!(append("stored_bytes").unwrap().runs, 13);
}
