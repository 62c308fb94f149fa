//! Shares of jobs that write games again: the commit writes the folder and report of one process; bad calls are refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gristmill_engine::Error;
use gristmill_engine::config::ChunkRescorerConfig;
use gristmill_engine::stage::split::Fold;
use gristmill_format::chess::Version;
use gristmill_format::chess::check::Rules;
use gristmill_generate::{ChessGenerator, ChessOptions};
use gristmill_jobs::commit::{Made, commit};
use gristmill_jobs::rewrite::{
    By, Container, Filter, Recast, Rewrite, RewriteOptions, Rewritten, Split, rescored, rewrite,
};
use gristmill_jobs::shares::{CommitOptions, Share, State, shares};

use crate::sharing::all;

fn generate(folder: &Path, games: u64, first: u64, games_per_tar: Option<u64>) {
    let options = ChessOptions {
        folder: folder.to_owned(),
        games,
        first,
        seed: 7,
        plies_max: 8,
        version: Version::V6,
        games_per_tar,
    };
    let mut generator = ChessGenerator::new(options).unwrap();
    while generator.write_next().unwrap().is_some() {}
}

/// Loose games, games in tars, a damaged game, and a file that is no game.
fn games() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    generate(&root.path().join("a"), 7, 1, None);
    generate(&root.path().join("b"), 9, 22, Some(3));
    generate(root.path(), 3, 40, None);
    fs::write(root.path().join("a/bad.gz"), [0x1f, 0x8b, 8, 0]).unwrap();
    fs::write(root.path().join("notes.txt"), "no game").unwrap();
    root
}

fn filter() -> Arc<dyn Rewrite> {
    Arc::new(Filter::new(Rules::default()))
}

fn recast(version: Option<Version>) -> Arc<dyn Rewrite> {
    Arc::new(Recast::new(version))
}

fn rescorer(dist_temp: f32) -> Arc<dyn Rewrite> {
    let config = ChunkRescorerConfig { dist_temp, ..ChunkRescorerConfig::default() };
    Arc::new(rescored(&config, false).unwrap().0)
}

fn options(path: &Path, out: &Path, container: Container) -> RewriteOptions {
    let (path, out) = (path.to_owned(), out.to_owned());
    RewriteOptions { path, out, sides: Vec::new(), container, threads: Some(2), dry_run: false, share: None }
}

fn run(what: &Arc<dyn Rewrite>, options: &RewriteOptions) -> gristmill_engine::Result<Rewritten> {
    rewrite(Arc::clone(what), options, &AtomicBool::new(false), &mut |_| {})
}

fn share(what: &Arc<dyn Rewrite>, options: &RewriteOptions, n: u32, of: u32) -> gristmill_engine::Result<Rewritten> {
    run(what, &RewriteOptions { share: Some(Share::new(n, of)?), ..options.clone() })
}

fn committed(output: &Path) -> gristmill_engine::Result<Rewritten> {
    let options = CommitOptions { output: output.to_owned(), ..CommitOptions::default() };
    match commit(&options, &mut |_| {})?.made {
        Made::Games(done) => Ok(*done),
        other => panic!("{other:?}"),
    }
}

fn report(done: &Rewritten) -> serde_json::Value {
    serde_json::to_value(done).unwrap()
}

/// Writes in one go and by shares in another order, and compares every byte and the reports.
fn same(what: &Arc<dyn Rewrite>, container: Container, sides: &[&str]) -> Rewritten {
    let (games, root) = (games(), tempfile::tempdir().unwrap());
    let (out, kept) = (root.path().join("out"), root.path().join("kept"));
    let sides = sides.iter().map(|side| (*side).to_owned()).collect();
    let options = RewriteOptions { sides, ..options(games.path(), &out, container) };
    let expected = run(what, &options).unwrap();
    // The ledger has the name of its folder: both get the same.
    fs::rename(&out, &kept).unwrap();
    for count in [1, 2, 5, 40] {
        for number in (1..=count).map(|i| (i * 7) % count + 1) {
            let made = share(what, &options, number, count).unwrap();
            assert!(!made.share.as_ref().unwrap().there, "{made:?}");
            assert!(share(what, &options, number, count).unwrap().share.unwrap().there);
        }
        let stand = shares(&out).unwrap();
        assert_eq!((stand.done, stand.missing, stand.failed, stand.running), (count, 0, 0, 0));
        let done = committed(&out).unwrap();
        assert_eq!(report(&done), report(&expected));
        let (ours, theirs) = (all(&out), all(&kept));
        for (one, other) in ours.iter().zip(&theirs) {
            assert!(one == other, "{} of {count} shares is not {}", one.0.display(), other.0.display());
        }
        assert_eq!(ours.len(), theirs.len());
        let again = run(what, &options).unwrap();
        assert_eq!((again.resumed, &again.done), (again.files, &expected.done), "one process finds all of it done");
        fs::remove_dir_all(&out).unwrap();
    }
    let left: Vec<_> = fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["kept"], "a commit leaves nothing over");
    expected
}

#[test]
fn shares_of_a_filter_write_the_folder_of_one_process() {
    let done = same(&filter(), Container::Same, &[]);
    assert_eq!((done.files, done.skipped, done.done.kept), (14, 1, 19), "{done:?}");
    assert_eq!(done.done.damaged.values().sum::<u64>(), 1);
}

#[test]
fn shares_of_a_rescorer_write_the_folder_of_one_process() {
    let done = same(&rescorer(1.5), Container::Same, &[]);
    assert!(done.done.changed == 19 && done.done.files_out == 13, "{done:?}");
}

#[test]
fn shares_of_a_conversion_write_the_folder_of_one_process() {
    let done = same(&recast(Some(Version::V7)), Container::Same, &[]);
    assert!(done.done.changed == 19 && done.done.counts["frames_to_v7"] == 19 * 8, "{done:?}");
    let loose = same(&recast(None), Container::Loose, &[]);
    assert!(loose.done.kept == 20 && loose.done.files_out > 20, "with the licences of tars: {loose:?}");
    let tars = same(&recast(None), Container::Tars(4), &[]);
    assert_eq!((tars.files, tars.done.files_out), (14, 6), "{tars:?}");
}

fn split(weights: &[u64], by: By, fold: Option<Fold>) -> Arc<dyn Rewrite> {
    Arc::new(Split::new(weights.to_vec(), by, fold).unwrap())
}

#[test]
fn shares_of_a_split_write_the_folders_of_one_process() {
    let by_name = same(&split(&[3, 1], By::Name, None), Container::Same, &["train", "test"]);
    assert_eq!((by_name.done.kept, by_name.done.files_out > 14), (20, true), "tars are on both sides: {by_name:?}");
    let by_content = same(&split(&[1, 1, 1], By::Content, None), Container::Same, &["a", "b", "c"]);
    assert_eq!((by_content.done.kept, by_content.done.damaged.len()), (19, 1), "{by_content:?}");
    let fold = Some(Fold { of: 3, number: 1 });
    same(&split(&[9, 0, 1], By::File, fold), Container::Same, &["train", "val", "test"]);
    // A side without a game is an empty folder, as by one process.
    same(&split(&[1, 0], By::Name, None), Container::Same, &["all", "none"]);
    let loose = same(&split(&[1, 1], By::Name, None), Container::Loose, &["a", "b"]);
    assert!(loose.done.files_out > 20, "with the licences of tars: {loose:?}");
}

#[test]
fn shares_of_a_split_go_by_its_sides_and_what_is_there_is_refused() {
    let (games, root) = (games(), tempfile::tempdir().unwrap());
    let out = root.path().join("out");
    let sides = |names: [&str; 2]| RewriteOptions {
        sides: names.map(str::to_owned).to_vec(),
        ..options(games.path(), &out, Container::Same)
    };
    let train = sides(["train", "test"]);
    share(&split(&[3, 1], By::Name, None), &train, 2, 2).unwrap();
    for (what, options, says) in [
        (split(&[3, 2], By::Name, None), &train, "split: [3,1] there, [3,2] now"),
        (split(&[3, 1], By::File, None), &train, "by: \"name\" there, \"file\" now"),
        (split(&[3, 1], By::Name, Some(Fold { of: 2, number: 0 })), &train, "fold: null there, [0,2] now"),
        (split(&[3, 1], By::Name, None), &sides(["train", "val"]), "into: [\"train\",\"test\"] there"),
        (filter(), &options(games.path(), &out, Container::Same), "the job: split there, filter now"),
        (split(&[3, 1], By::Name, None), &sides(["a/b", "c"]), "is no name of a folder"),
        (split(&[3, 1], By::Name, None), &sides(["a", "a"]), "given twice"),
    ] {
        for dry_run in [true, false] {
            let refusal = share(&what, &RewriteOptions { dry_run, ..options.clone() }, 1, 2).unwrap_err().to_string();
            assert!(refusal.contains(says), "{says}: {refusal}");
        }
    }
    let early = committed(&out).unwrap_err().to_string();
    assert!(early.contains("1/2 is missing") && early.contains("`gristmill split` with --share"), "{early}");
    fs::create_dir_all(out.join("test")).unwrap();
    fs::write(out.join("test/mine"), "").unwrap();
    let full = share(&split(&[3, 1], By::Name, None), &train, 1, 2).unwrap_err().to_string();
    assert!(full.contains("holds \"mine\" already"), "{full}");
    fs::remove_dir_all(&out).unwrap();
    fs::write(&out, "").unwrap();
    let file = share(&split(&[3, 1], By::Name, None), &train, 1, 2).unwrap_err().to_string();
    assert!(file.contains("expected a folder"), "{file}");
    fs::remove_file(&out).unwrap();
    share(&split(&[3, 1], By::Name, None), &train, 1, 2).unwrap();
    assert_eq!(committed(&out).unwrap().folders, [out.join("train"), out.join("test")]);
    assert!(committed(&out).unwrap_err().to_string().contains("committed already"));
    let late = share(&split(&[3, 1], By::Name, None), &train, 1, 2).unwrap_err().to_string();
    assert!(late.contains("its shares were committed"), "{late}");
}

#[test]
fn shares_go_by_one_plan_and_their_commit_says_what_is_missing() {
    let (games, root) = (games(), tempfile::tempdir().unwrap());
    let out = root.path().join("out");
    let options = options(games.path(), &out, Container::Same);
    share(&rescorer(1.5), &options, 2, 3).unwrap();
    let bytes = all(root.path());
    let refused = |what: &Arc<dyn Rewrite>, options: &RewriteOptions, of: u32, says: &str| {
        for dry_run in [true, false] {
            match share(what, &RewriteOptions { dry_run, ..options.clone() }, 1, of) {
                Err(Error::Config { field, message, .. }) if field.as_deref() == Some("share") => {
                    assert!(message.contains(says), "{says}: {message}");
                }
                other => panic!("{says}: {other:?}"),
            }
        }
    };
    refused(&rescorer(1.5), &options, 4, "the number of shares: 3 there, 4 now");
    refused(&rescorer(1.25), &options, 3, "dist_temp: 1.5 there, 1.25 now");
    refused(&filter(), &options, 3, "the job: rescore there, filter now");
    let loose = RewriteOptions { container: Container::Loose, ..options.clone() };
    refused(&recast(None), &loose, 3, "container: \"same\" there, \"loose\" now");
    generate(&games.path().join("late"), 1, 90, None);
    refused(&rescorer(1.5), &options, 3, "inputs: 14 of ");
    fs::remove_dir_all(games.path().join("late")).unwrap();
    assert!(all(root.path()) == bytes, "what was refused left nothing");
    let missing = committed(&out).unwrap_err().to_string();
    assert!(missing.contains("1 of 3 shares are done; 1/3 is missing; 3/3 is missing"), "{missing}");
    assert!(missing.contains("`gristmill rescore` with --share"), "{missing}");
    for number in [1, 3] {
        share(&rescorer(1.5), &options, number, 3).unwrap();
    }
    let over = CommitOptions { output: out.clone(), overwrite: true, ..CommitOptions::default() };
    assert!(commit(&over, &mut |_| {}).unwrap_err().to_string().contains("games go to a new folder"));
    fs::create_dir(&out).unwrap();
    fs::write(out.join("mine"), "").unwrap();
    let full = committed(&out).unwrap_err().to_string();
    assert!(full.contains("holds \"mine\" already"), "{full}");
    fs::remove_file(out.join("mine")).unwrap();
    committed(&out).unwrap();
    let twice = committed(&out).unwrap_err().to_string();
    assert!(twice.contains("committed already"), "{twice}");
    let late = share(&rescorer(1.5), &options, 1, 3).unwrap_err().to_string();
    assert!(late.contains("its shares were committed"), "{late}");
}

#[test]
fn an_output_that_can_have_no_shares_is_refused() {
    let (games, root) = (games(), tempfile::tempdir().unwrap());
    let out = root.path().join("out");
    let refused = |out: PathBuf, says: &str| {
        let refusal = share(&filter(), &options(games.path(), &out, Container::Same), 1, 2).unwrap_err();
        assert!(matches!(&refusal, Error::Config { .. }) && refusal.to_string().contains(says), "{says}: {refusal}");
    };
    refused("http://127.0.0.1:1/june".into(), "is read only");
    refused(games.path().join("a/out"), "lies within");
    run(&filter(), &options(games.path(), &out, Container::Same)).unwrap();
    refused(out, "a run wrote here already");
}

#[test]
fn a_stopped_share_leaves_nothing_and_a_failed_one_says_why() {
    let (games, root) = (games(), tempfile::tempdir().unwrap());
    let out = root.path().join("out");
    let options = options(games.path(), &out, Container::Same);
    let stop = AtomicBool::new(false);
    let stopped = RewriteOptions { share: Some(Share::new(1, 1).unwrap()), ..options.clone() };
    let ended = rewrite(filter(), &stopped, &stop, &mut |_| stop.store(true, Ordering::Relaxed));
    assert!(matches!(ended, Err(Error::Stopped)), "{ended:?}");
    let stand = shares(&out).unwrap();
    assert_eq!((stand.missing, stand.failed), (1, 0));
    assert_eq!(all(root.path()).len(), 1, "the plan alone is left");
    // What loses values ends the job.
    fs::remove_dir_all(root.path().join("out.shares")).unwrap();
    let seven = root.path().join("seven");
    run(&rescorer(1.5), &RewriteOptions { out: seven.clone(), ..options.clone() }).unwrap();
    let mut recast = Recast::new(Some(Version::V6));
    recast.theta = 0.5;
    let (narrow, options): (Arc<dyn Rewrite>, _) = (Arc::new(recast), RewriteOptions { path: seven, ..options });
    let failed = share(&narrow, &options, 1, 2).unwrap_err();
    let stand = shares(&out).unwrap();
    assert!(matches!(failed, Error::Format(_)) && stand.shares[0].state == State::Failed, "{failed}: {stand:?}");
    assert!(stand.shares[0].why.as_ref().unwrap().contains("lossy"), "{stand:?}");
}

#[test]
fn a_share_that_was_changed_is_found_before_it_is_published() {
    let (games, root) = (games(), tempfile::tempdir().unwrap());
    let out = root.path().join("out");
    let options = options(games.path(), &out, Container::Same);
    let made = [1, 2].map(|number| share(&filter(), &options, number, 2).unwrap());
    let files = made[1].folders[0].join("files");
    let (name, bytes) =
        all(&files).into_iter().find(|(name, _)| name.extension().is_some_and(|end| end == "gz")).unwrap();
    fs::remove_file(files.join(&name)).unwrap();
    let refusal = committed(&out).unwrap_err().to_string();
    assert!(refusal.contains("has 0 files of 0 bytes") && refusal.contains("make it again"), "{refusal}");
    assert!(made[0].folders[0].join("files").exists(), "the shares are all there");
    fs::write(files.join(&name), bytes).unwrap();
    committed(&out).unwrap();
    let ledger = out.join(".gristmill-rewrite.jsonl");
    assert!(ledger.exists() && !root.path().join("out.shares").exists());
}
