//! Shares of a job and their commit: the bytes of one process for each kind, and what is refused.

use std::fs;
use std::path::{Path, PathBuf};

use gristmill_engine::Error;
use gristmill_generate::{G2048Generator, G2048Options};
use gristmill_jobs::commit::{Made, commit};
use gristmill_jobs::pack::{Existing, OnError, PackOptions, Packed, pack};
use gristmill_jobs::shares::{CommitOptions, Share, State, shares};

use crate::fixture::input;

/// Everything below a folder: paths and bytes.
pub(crate) fn all(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut paths, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            paths.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            found.push((path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

fn share(options: &PackOptions, number: u32, of: u32) -> gristmill_engine::Result<Packed> {
    pack(&PackOptions { share: Some(Share::new(number, of)?), ..options.clone() }, &mut |_| {})
}

fn committed(output: &Path) -> gristmill_engine::Result<Packed> {
    let options = CommitOptions { output: output.to_owned(), ..CommitOptions::default() };
    match commit(&options, &mut |_| {})?.made {
        Made::Pack(packed) => Ok(*packed),
        other => panic!("{other:?}"),
    }
}

/// Packs in one go and by shares in another order, and compares every byte.
fn same(input: &Path, change: impl Fn(&mut PackOptions)) -> Packed {
    let out = tempfile::tempdir().unwrap();
    let of = |name: &str| {
        let mut options = PackOptions::new(input, out.path().join(name));
        change(&mut options);
        options
    };
    let (whole, expected) = (of("whole"), pack(&of("whole"), &mut |_| {}).unwrap());
    for count in [1, 2, 5, 40] {
        let options = of(&format!("of{count}"));
        for number in (1..=count).map(|i| (i * 7) % count + 1) {
            let made = share(&options, number, count).unwrap();
            assert!(!made.share.unwrap().there);
            assert_eq!(made.layout, expected.layout);
        }
        let look = CommitOptions { output: options.output.clone(), dry_run: true, ..CommitOptions::default() };
        let Made::Pack(looked) = commit(&look, &mut |_| {}).unwrap().made else { panic!("of packs") };
        assert_eq!((looked.layout, looked.rows, looked.dry_run), (expected.layout, expected.rows, true));
        let done = shares(&options.output).unwrap();
        assert_eq!((done.done, done.missing, done.failed, done.running), (count, 0, 0, 0));
        let done = committed(&options.output).unwrap();
        assert_eq!((done.games, done.runs, done.rows), (expected.games, expected.runs, expected.rows));
        assert_eq!((done.layout, done.files), (expected.layout, expected.files));
        assert!(done.skipped == expected.skipped && done.remarks == expected.remarks, "{done:?}\n{expected:?}");
        let (ours, theirs) = (all(&options.output), all(&whole.output));
        for (one, other) in ours.iter().zip(&theirs) {
            assert!(one == other, "{} of {count} shares is not {}", one.0.display(), other.0.display());
        }
        assert_eq!(ours.len(), theirs.len());
    }
    let names: Vec<_> = fs::read_dir(out.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 5, "a commit leaves nothing over: {names:?}");
    expected
}

/// A few games of 2048, and what is no game.
fn logs() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("deep");
    let options = G2048Options { folder, games: 9, first: 1, seed: 5, depth: 0, moves_max: 40, level: 1, threads: 1 };
    G2048Generator::new(options).unwrap().run(&mut |_| {}).unwrap();
    fs::write(root.path().join("mute.jsonl.gz"), "").unwrap();
    fs::write(root.path().join("bad.meta.json"), "{}").unwrap();
    fs::write(root.path().join("bad.jsonl.gz"), "nothing").unwrap();
    root
}

#[test]
fn shares_of_chess_are_the_pack_of_one_process() {
    let games = input();
    let bad = games.path().join("bad.gz");
    fs::write(&bad, [0x1f, 0x8b, 8, 0]).unwrap();
    let done = same(games.path(), |options| options.shard_rows = Some(60));
    assert!(done.runs == 11 && done.files > 1 && !done.skipped.is_empty());
    same(games.path(), |options| options.on_error = OnError::Quarantine);
}

#[test]
fn shares_of_2048_are_the_pack_of_one_process() {
    let games = logs();
    let done = same(games.path(), |options| options.shard_rows = Some(50));
    assert!(done.runs == 9 && done.files > 1 && done.skipped.len() == 2, "{done:?}");
    same(games.path(), |options| options.layout = Some(gristmill_format::g2048::RowForm::Packed));
}

#[test]
fn a_share_is_made_once_and_only_by_its_plan() {
    let (games, out) = (input(), tempfile::tempdir().unwrap());
    let options = PackOptions::new(games.path(), out.path().join("pack"));
    let first = share(&options, 2, 3).unwrap();
    let bytes = all(out.path());
    let again = share(&options, 2, 3).unwrap();
    assert!(!first.share.unwrap().there && again.share.clone().unwrap().there && again.runs == first.runs);
    assert!(all(out.path()) == bytes, "what is done is not done again");
    let refused = |options: &PackOptions, of: u32, says: &str| match share(options, 1, of) {
        Err(Error::Config { field, message, .. }) if field.as_deref() == Some("share") => {
            assert!(message.contains(says), "{message}");
        }
        other => panic!("{says}: {other:?}"),
    };
    refused(&options, 4, "the number of shares: 3 there, 4 now");
    refused(&PackOptions { shard_rows: Some(60), ..options.clone() }, 3, "shard_rows: null there, 60 now");
    refused(&PackOptions { on_error: OnError::Raise, ..options.clone() }, 3, "on_error");
    let more = games.path().join("zzz.gz");
    fs::copy(all_below(games.path()), &more).unwrap();
    refused(&options, 3, "inputs: ");
    fs::remove_file(more).unwrap();
    assert!(all(out.path()) == bytes, "what was refused left nothing");
    let missing = committed(&options.output).unwrap_err();
    assert!(matches!(&missing, Error::Config { field, .. } if field.as_deref() == Some("output")), "{missing}");
    let missing = missing.to_string();
    assert!(missing.contains("1 of 3 shares are done; 1/3 is missing; 3/3 is missing"), "{missing}");
    let there = PackOptions { existing: Existing::Overwrite, ..options.clone() };
    assert!(matches!(share(&there, 1, 3), Err(Error::Config { field, .. }) if field.as_deref() == Some("share")));
    for number in [1, 3] {
        share(&options, number, 3).unwrap();
    }
    committed(&options.output).unwrap();
    let twice = committed(&options.output).unwrap_err().to_string();
    assert!(twice.contains("committed already"), "{twice}");
    let late = share(&options, 1, 3).unwrap_err().to_string();
    assert!(late.contains("there is a pack already"), "{late}");
}

#[test]
fn an_output_that_cannot_be_written_has_no_shares() {
    let games = input();
    let output = Path::new("http://127.0.0.1:1/june");
    let refusals = [
        share(&PackOptions::new(games.path(), output), 1, 2).unwrap_err(),
        share(&PackOptions { dry_run: true, ..PackOptions::new(games.path(), output) }, 1, 2).unwrap_err(),
        shares(output).unwrap_err(),
        committed(output).unwrap_err(),
    ];
    for refusal in refusals {
        assert!(matches!(&refusal, Error::Config { field, .. } if field.as_deref() == Some("output")), "{refusal}");
        assert!(refusal.to_string().contains("is read only"), "{refusal}");
    }
}

/// Some game of a folder.
fn all_below(folder: &Path) -> PathBuf {
    let games = all(folder).into_iter().filter(|(path, _)| path.extension().is_some_and(|end| end == "gz"));
    folder.join(games.map(|(path, _)| path).next().unwrap())
}

#[test]
fn a_share_that_fails_says_why_and_succeeds_again() {
    let (games, out) = (input(), tempfile::tempdir().unwrap());
    let bad = games.path().join("aaa.gz");
    fs::write(&bad, [0x1f, 0x8b, 8, 0]).unwrap();
    let mut options = PackOptions::new(games.path(), out.path().join("pack"));
    options.on_error = OnError::Raise;
    share(&options, 1, 2).unwrap_err();
    let stand = shares(&options.output).unwrap();
    assert_eq!((stand.failed, stand.missing), (1, 1));
    assert!(
        stand.shares[0].state == State::Failed && stand.shares[0].why.as_ref().unwrap().contains("aaa.gz"),
        "{stand:?}"
    );
    let nobody = shares(&out.path().join("other")).unwrap_err().to_string();
    assert!(nobody.contains("there are no shares"), "{nobody}");
}

#[test]
fn two_at_one_share_both_end_well() {
    let (games, out) = (input(), tempfile::tempdir().unwrap());
    let options = PackOptions::new(games.path(), out.path().join("pack"));
    let made: Vec<Packed> = std::thread::scope(|threads| {
        let start = || threads.spawn(|| share(&options, 1, 1).unwrap());
        let four = [start(), start(), start(), start()];
        four.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(made.iter().all(|one| one.runs == 11), "{made:?}");
    assert_eq!(committed(&options.output).unwrap().runs, 11);
    let names: Vec<_> = fs::read_dir(out.path()).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn a_commit_whose_shares_another_one_removes_says_that_they_were_committed() {
    let (games, out) = (input(), tempfile::tempdir().unwrap());
    let options = PackOptions::new(games.path(), out.path().join("out"));
    (1..=5).for_each(|number| drop(share(&options, number, 5).unwrap()));
    let (beside, away) = (out.path().join("out.shares"), out.path().join("away"));
    let looks = CommitOptions { output: options.output.clone(), ..CommitOptions::default() };
    let mut is_first = true;
    let mut removed = |_| {
        if std::mem::take(&mut is_first) {
            fs::rename(&beside, &away).unwrap();
        }
    };
    let e = commit(&looks, &mut removed).unwrap_err().to_string();
    assert!(e.contains("committed already"), "{e}");
}
