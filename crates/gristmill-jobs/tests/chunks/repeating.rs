//! Shares of a search for games that are the same: the commit writes the report and the mark of one process, of packs whose database has
//! the keys and of others; what was changed meanwhile is found.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_engine::pack_table::PackTable;
use gristmill_engine::selection;
use gristmill_engine::store::Residence;
use gristmill_format::chess::Version;
use gristmill_generate::{G2048Generator, G2048Options};
use gristmill_jobs::commit::{Made, commit};
use gristmill_jobs::dedup::{self, Duplicates, dedup};
use gristmill_jobs::mark::MarkOptions;
use gristmill_jobs::reports::Sharing;
use gristmill_jobs::shares::{CommitOptions, Share, shares};

use crate::fixture::{games, packed};

/// Nine games of chess and copies of three of them, in several files.
fn chess(root: &Path) -> PathBuf {
    let (loose, folder) = (root.join("games"), root.join("pack"));
    games(&loose, 1, 9, Version::V6, None);
    for (number, copy) in [(2, "z1.gz"), (5, "z2.gz"), (2, "z3.gz")] {
        fs::copy(loose.join(format!("training.{number}.gz")), loose.join(copy)).unwrap();
    }
    packed(&loose, &folder, |_| {}).unwrap();
    folder
}

/// Runs of 2048, one of them twice, as a pack of rows: no database has their keys.
fn rows(root: &Path) -> PathBuf {
    let (logs, folder) = (root.join("logs"), root.join("rows"));
    let options = G2048Options {
        folder: logs.clone(),
        games: 6,
        first: 1,
        seed: 5,
        depth: 0,
        moves_max: 30,
        level: 1,
        threads: 1,
    };
    G2048Generator::new(options).unwrap().run(&mut |_| {}).unwrap();
    packed(&logs, &folder, |options| options.shard_rows = Some(50)).unwrap();
    folder
}

fn open(folder: &Path) -> Arc<dyn PackTable> {
    selection::open(folder, Residence::Mapped).unwrap()
}

fn sharing(output: &Path, number: u32, of: u32) -> Sharing {
    Sharing { output: output.to_owned(), share: Share::new(number, of).unwrap(), dry_run: false }
}

fn share(pack: &Path, mark: &str, sharing: &Sharing) -> gristmill_engine::Result<dedup::PartFound> {
    let options = MarkOptions { workers: 2, ..MarkOptions::new(mark) };
    dedup::share(&open(pack), &options, sharing, &mut |_, _| {})
}

fn committed(options: &CommitOptions) -> gristmill_engine::Result<Duplicates> {
    match commit(options, &mut |_| {})?.made {
        Made::Duplicates(found) => Ok(*found),
        other => panic!("{other:?}"),
    }
}

fn line(found: &Duplicates) -> String {
    serde_json::to_string(found).unwrap() + "\n"
}

#[test]
fn shares_find_the_games_of_one_process_and_mark_them() {
    let root = tempfile::tempdir().unwrap();
    let (chess, rows) = (chess(root.path()), rows(root.path()));
    let bare = root.path().join("bare");
    fs::rename(&chess, &bare).unwrap();
    packed(&root.path().join("games"), &chess, |_| {}).unwrap();
    let database = rusqlite::Connection::open(bare.join("metadata.db")).unwrap();
    database.execute_batch("ALTER TABLE games DROP COLUMN key_xxh3; PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    drop(database);
    for folder in [chess, bare, rows] {
        let whole = dedup(&open(&folder), &MarkOptions::new(""), &mut |_, _| {}).unwrap();
        let marked = dedup(&open(&folder), &MarkOptions::new("again"), &mut |_, _| {}).unwrap();
        let mark = folder.join("marks/again.mark");
        let bytes = fs::read(&mark).unwrap();
        for of in [1, 2, 5, 40] {
            fs::remove_file(&mark).unwrap();
            for (name, expected) in [("", &whole), ("again", &marked)] {
                let output = root.path().join("report.json");
                let made: Vec<_> =
                    (1..=of).rev().map(|number| share(&folder, name, &sharing(&output, number, of)).unwrap()).collect();
                assert_eq!(made.iter().map(|part| part.games).sum::<u64>(), open(&folder).game_ids().len() as u64);
                assert!(!mark.exists() && !output.exists());
                let options = CommitOptions { output: output.clone(), ..CommitOptions::default() };
                assert_eq!(line(&committed(&options).unwrap()), line(expected), "{of} shares");
                assert_eq!(fs::read_to_string(&output).unwrap(), line(expected), "{of} shares");
                assert!(committed(&options).unwrap_err().to_string().contains("committed already"));
                let late = share(&folder, name, &sharing(&output, 1, of)).unwrap_err().to_string();
                assert!(late.contains("there is a file already: its shares were committed"), "{late}");
                fs::remove_file(&output).unwrap();
            }
            assert!(fs::read(&mark).unwrap() == bytes, "{of} shares");
            let there = share(&folder, "again", &sharing(&root.path().join("other.json"), 1, of)).unwrap_err();
            assert!(there.to_string().contains("there is a mark `again` already"), "{there}");
        }
    }
    let mut left: Vec<_> = fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["bare", "games", "logs", "pack", "rows"], "a commit leaves nothing over");
}

#[test]
fn shares_of_a_pack_or_keys_that_changed_are_found_before_anything_is_written() {
    let root = tempfile::tempdir().unwrap();
    let (folder, output) = (chess(root.path()), root.path().join("report.json"));
    let options = CommitOptions { output: output.clone(), ..CommitOptions::default() };
    let refused = |says: &str| {
        let refusal = committed(&options).unwrap_err().to_string();
        assert!(refusal.contains(says), "{says}: {refusal}");
        assert!(!folder.join("marks/again.mark").exists());
    };
    let dry = Sharing { dry_run: true, ..sharing(&output, 1, 2) };
    assert_eq!(share(&folder, "again", &dry).unwrap().games, 0);
    assert!(!root.path().join("report.json.shares").exists());
    let first = share(&folder, "again", &sharing(&output, 1, 2)).unwrap();
    assert!(!first.share.there && share(&folder, "again", &sharing(&output, 1, 2)).unwrap().share.there);
    refused("1 of 2 shares are done; 2/2 is missing");
    let other = share(&folder, "", &sharing(&output, 2, 2)).unwrap_err().to_string();
    assert!(other.contains("mark: \"again\" there, null now"), "{other}");
    let within = share(&folder, "", &sharing(&folder.join("report"), 1, 2)).unwrap_err().to_string();
    assert!(within.contains("lies within"), "{within}");
    let replacing = MarkOptions { replace: true, ..MarkOptions::new("again") };
    let replacing = dedup::share(&open(&folder), &replacing, &sharing(&output, 2, 2), &mut |_, _| {}).unwrap_err();
    assert!(replacing.to_string().contains("a share replaces no mark"), "{replacing}");
    assert!(share(&folder, "a/b", &sharing(&output, 2, 2)).is_err());
    share(&folder, "again", &sharing(&output, 2, 2)).unwrap();
    assert_eq!(shares(&output).unwrap().done, 2);
    let keys = Path::new(&first.folder).join("keys");
    let sound = fs::read(&keys).unwrap();
    for bad in [&sound[..sound.len() - 1], &sound[..sound.len() - 41], &[&sound[1..], &[0]].concat(), &[]] {
        fs::write(&keys, bad).unwrap();
        refused("these keys are not as their share wrote them");
    }
    fs::write(&keys, &sound).unwrap();
    fs::write(&output, "mine").unwrap();
    refused("there is a file already: overwrite replaces it");
    fs::remove_file(&output).unwrap();
    let (away, loose) = (root.path().join("away"), root.path().join("games"));
    fs::rename(&folder, &away).unwrap();
    fs::remove_file(loose.join("z3.gz")).unwrap();
    packed(&loose, &folder, |_| {}).unwrap();
    refused("it changed since");
    fs::remove_dir_all(&folder).unwrap();
    fs::rename(&away, &folder).unwrap();
    dedup(&open(&folder), &MarkOptions::new("again"), &mut |_, _| {}).unwrap();
    // As where a commit was killed before it wrote the report: the mark is there and the same.
    committed(&options).unwrap();
    assert!(output.exists());
}
