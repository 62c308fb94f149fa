//! Reports of shares: what `verify` and `stats` find in the parts of some inputs, joined, is what one process finds, to the byte.

use std::fs;
use std::path::{Path, PathBuf};

use gristmill_format::chess::Version;
use gristmill_jobs::generate::{G2048Generator, G2048Options};
use gristmill_jobs::shares::Share;
use gristmill_jobs::stats::{self, Stats, StatsOptions};
use gristmill_jobs::verify::{self, Verification, VerifyOptions};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::fixture::{games, input, packed};

/// Loose games, a tar, a damaged game and a text; a pack of several files, one of them with a damaged game; a pack of one file;
/// games of 2048, loose and as a pack of rows.
fn corpus(root: &Path) -> Vec<PathBuf> {
    let loose = input();
    let place = root.join("loose");
    fs::rename(loose.path(), &place).unwrap();
    fs::write(place.join("bad.gz"), [0x1f, 0x8b, 8, 0]).unwrap();
    fs::write(place.join("notes.txt"), "no game").unwrap();
    let more = root.join("more");
    games(&more, 100, 9, Version::V6, None);
    packed(&more, &root.join("packs/several"), |_| {}).unwrap();
    packed(&more, &root.join("one"), |options| options.shard_rows = None).unwrap();
    let file = root.join("packs/several/games-00001.chunks");
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 3;
    bytes[middle..middle + 40].fill(0x55);
    fs::write(&file, bytes).unwrap();
    let logs = root.join("logs");
    let options = G2048Options {
        folder: logs.clone(),
        games: 5,
        first: 1,
        seed: 5,
        depth: 0,
        moves_max: 40,
        level: 1,
        threads: 1,
    };
    G2048Generator::new(options).unwrap().run(&mut |_| {}).unwrap();
    packed(&logs, &root.join("packs/rows"), |options| options.shard_rows = Some(50)).unwrap();
    let rows = root.join("packs/rows");
    let steps = fs::read_dir(&rows).unwrap().map(|entry| entry.unwrap().path());
    let steps = steps.filter(|path| path.extension().is_some_and(|end| end == "npy")).min().unwrap();
    let mut bytes = fs::read(&steps).unwrap();
    let last = bytes.len() - 48;
    bytes[last..last + 24].fill(0xee);
    fs::write(&steps, bytes).unwrap();
    ["loose", "packs", "one", "logs", "packs/several"].map(|name| root.join(name)).to_vec()
}

/// A part as another process reads it.
fn sent<T: Serialize + DeserializeOwned>(part: &T) -> T {
    serde_json::from_slice(&serde_json::to_vec(part).unwrap()).unwrap()
}

fn counted(paths: &[PathBuf], of: u32) -> Stats {
    let options = StatsOptions { workers: 2, ..StatsOptions::default() };
    let mut all = stats::Part::default();
    for number in 1..=of {
        let share = Share::new(number, of).unwrap();
        all.join(sent(&stats::share(paths, share, &options, &mut |_| {}).unwrap()));
    }
    all.stats()
}

fn verified(options: &VerifyOptions, of: u32) -> Verification {
    let mut all = verify::Part::default();
    for number in 1..=of {
        let share = Share::new(number, of).unwrap();
        all.join(options.max_faults, sent(&verify::Part::of(options, share, &mut |_, _| {}).unwrap()));
    }
    all.found(options.max_faults)
}

fn json(what: &impl Serialize) -> String {
    serde_json::to_string_pretty(what).unwrap()
}

#[test]
fn parts_of_statistics_are_those_of_one_process() {
    let root = tempfile::tempdir().unwrap();
    let paths = corpus(root.path());
    let whole = stats::stats(&paths, &StatsOptions::default(), &mut |_| {}).unwrap();
    assert!(whole.bad_chunks > 0 && whole.skipped > 0, "{whole:?}");
    assert!(whole.g2048.as_ref().is_some_and(|found| found.games == 10) && whole.start.positions > 10, "{whole:?}");
    for of in [1, 2, 7, 60] {
        assert_eq!(json(&counted(&paths, of)), json(&whole), "{of} shares");
        let one = [root.path().join("one")];
        let of_one = stats::stats(&one, &StatsOptions::default(), &mut |_| {}).unwrap();
        assert_eq!(json(&counted(&one, of)), json(&of_one), "{of} shares of one file");
    }
}

#[test]
fn one_file_of_a_pack_is_cut_by_its_games() {
    let root = tempfile::tempdir().unwrap();
    let one = [corpus(root.path())[2].clone()];
    let games = |number| {
        let share = Share::new(number, 3).unwrap();
        stats::share(&one, share, &StatsOptions::default(), &mut |_| {}).unwrap().stats().chunks
    };
    let each = [1, 2, 3].map(games);
    // The database takes as many bytes as the games of so small a pack.
    assert!(each[0] > 0 && each[1] > 0 && each.iter().sum::<u64>() == 9, "{each:?}");
}

#[test]
fn parts_of_a_verification_are_those_of_one_process() {
    let root = tempfile::tempdir().unwrap();
    let paths = corpus(root.path());
    for max_faults in [0, 2, 100] {
        let options = VerifyOptions { workers: 2, max_faults, ..VerifyOptions::new(paths.clone()) };
        let whole = verify::verify(&options, &mut |_, _| {}).unwrap();
        assert!(whole.fault_count > 5 && whole.checks.values().filter(|count| **count > 0).count() > 3, "{whole:?}");
        assert_eq!(whole.faults.len(), max_faults.min(whole.fault_count as usize));
        for of in [1, 2, 7, 60] {
            let found = verified(&options, of);
            assert_eq!(json(&found), json(&whole), "{of} shares, {max_faults} faults");
            let drawn =
                |found: &Verification| found.examples.iter().map(|one| one.row.drawing.clone()).collect::<Vec<_>>();
            assert_eq!(drawn(&found), drawn(&whole));
        }
    }
}

#[test]
fn a_path_without_data_is_a_fault_of_all_shares_together() {
    let root = tempfile::tempdir().unwrap();
    let (texts, there) = (root.path().join("texts"), root.path().join("games"));
    fs::create_dir(&texts).unwrap();
    (0..5).for_each(|i| fs::write(texts.join(format!("{i}.txt")), "no game").unwrap());
    games(&there, 1, 4, Version::V6, None);
    let options = VerifyOptions::new(vec![texts, there]);
    let whole = verify::verify(&options, &mut |_, _| {}).unwrap();
    assert!(whole.fault_count == 1 && whole.faults[0].detail.contains("nothing to verify"), "{whole:?}");
    for of in [1, 3, 20] {
        assert_eq!(json(&verified(&options, of)), json(&whole), "{of} shares");
    }
}

#[test]
fn inputs_that_cannot_be_listed_make_no_shares() {
    let root = tempfile::tempdir().unwrap();
    let share = Share::new(1, 2).unwrap();
    fs::create_dir(root.path().join("empty")).unwrap();
    for name in ["empty", "gone"] {
        let paths = vec![root.path().join(name)];
        let refused = stats::share(&paths, share, &StatsOptions::default(), &mut |_| {}).unwrap_err().to_string();
        assert!(refused.contains(name) && refused.contains("share"), "{refused}");
        let refused = verify::Part::of(&VerifyOptions::new(paths), share, &mut |_, _| {}).unwrap_err().to_string();
        assert!(refused.contains(name), "{refused}");
    }
}
