//! The rewrite job on generated games: order, containers, damage, resuming, stopping, refusals.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gristmill_engine::open::open;
use gristmill_format::chess::check::Rules;
use gristmill_format::chess::{FrameMut, Version};
use gristmill_format::source::Chunk;
use gristmill_format::{Kind, Result};

use super::*;
use gristmill_generate::{ChessGenerator, ChessOptions};

fn generate(folder: &Path, games: u64, first: u64, games_per_tar: Option<u64>) {
    let options = ChessOptions {
        folder: folder.to_owned(),
        games,
        first,
        seed: 7,
        plies_max: 12,
        version: Version::V6,
        games_per_tar,
    };
    let mut generator = ChessGenerator::new(options).unwrap();
    while generator.write_next().unwrap().is_some() {}
}

fn options(path: &Path, out: &Path, container: Container) -> RewriteOptions {
    let (path, out) = (path.to_owned(), out.to_owned());
    RewriteOptions { path, out, sides: Vec::new(), container, threads: Some(3), dry_run: false, share: None }
}

fn run(what: impl Rewrite + 'static, options: &RewriteOptions) -> gristmill_engine::Result<Rewritten> {
    rewrite(Arc::new(what), options, &AtomicBool::new(false), &mut |_| {})
}

/// Name and bytes of every visible file below a folder, in order.
fn tree(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            found.extend(tree(&entry.path()).into_iter().map(|(inner, bytes)| (format!("{name}/{inner}"), bytes)));
        } else if !name.starts_with('.') {
            found.push((name, fs::read(entry.path()).unwrap()));
        }
    }
    found.sort();
    found
}

/// Drops every third game, marks every frame of every other, keeps the rest.
struct Thirds;

impl Rewrite for Thirds {
    fn settings(&self) -> serde_json::Value {
        "thirds".into()
    }

    fn chunk(&self, _: &[u8], chunk: &mut Chunk, count: &mut dyn FnMut(&str, u64)) -> Result<Fate> {
        let first = chunk.bytes[gristmill_format::chess::record::at::VISITS];
        match first % 3 {
            0 => Err(gristmill_format::Error::new(Kind::Refused("third"), "dropped by the test")),
            1 => {
                let size = chunk.layout.as_ref().map_or(0, |layout| layout.size());
                for record in chunk.bytes.chunks_exact_mut(size) {
                    FrameMut::new(record)?.set_visits(1);
                    count("marked", 1);
                }
                Ok(Fate::Write)
            }
            _ => Ok(Fate::Keep),
        }
    }
}

#[test]
fn the_same_files_come_out_however_many_threads_work() {
    let folder = tempfile::tempdir().unwrap();
    let games = folder.path().join("games");
    generate(&games, 30, 1, None);
    generate(&games, 40, 31, Some(10));
    let mut trees = Vec::new();
    for threads in [1, 2, 8] {
        let out = folder.path().join(format!("out-{threads}"));
        let options = RewriteOptions { threads: Some(threads), ..options(&games, &out, Container::Same) };
        let done = run(Thirds, &options).unwrap().done;
        assert_eq!(done.chunks, 70);
        assert_eq!(done.kept + done.changed + done.dropped["third"], 70);
        assert!(done.kept > 0 && done.changed > 0 && done.dropped.len() == 1 && done.damaged.is_empty());
        assert_eq!(done.frames_out, 12 * (done.kept + done.changed));
        assert_eq!(done.counts["marked"], 12 * done.changed);
        trees.push(tree(&out));
        assert_eq!(done.files_out, trees[0].len() as u64);
        assert_eq!(done.bytes_out, trees[0].iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>());
    }
    assert!(trees.iter().all(|tree| *tree == trees[0]));
    let tar = trees[0].iter().find(|(name, _)| name.ends_with(".tar")).unwrap();
    assert!(tar.1.windows(7).any(|w| w == b"LICENSE"), "a tar keeps its licence");
    let kept: Vec<_> = tree(&games);
    assert!(trees[0].iter().any(|file| kept.contains(file)), "what is kept is kept byte for byte");
}

#[test]
fn a_stopped_run_is_gone_on_with_and_ends_like_a_whole_one() {
    let folder = tempfile::tempdir().unwrap();
    let games = folder.path().join("games");
    generate(&games, 20, 1, None);
    generate(&games, 20, 21, Some(5));
    let (whole, parts) = (folder.path().join("whole"), folder.path().join("parts"));
    let all = run(Thirds, &options(&games, &whole, Container::Same)).unwrap();
    let mut runs = 0;
    let report = loop {
        let stop = AtomicBool::new(false);
        let before = runs * 5;
        let report = rewrite(Arc::new(Thirds), &options(&games, &parts, Container::Same), &stop, &mut |report| {
            stop.store(report.files_done >= before + 5, Ordering::Relaxed);
        })
        .unwrap();
        runs += 1;
        // As after a crash: a torn line, and a file that was not finished.
        let ledger = parts.join(".gristmill-rewrite.jsonl");
        let text = fs::read(&ledger).unwrap();
        fs::write(&ledger, &text[..text.len() - 7]).unwrap();
        fs::write(parts.join(".training.1.gz.part"), b"half").unwrap();
        if !report.interrupted {
            break report;
        }
        assert!(runs < 20);
    };
    assert!(runs > 1);
    assert_eq!(report.done, all.done, "the sums are those of one run");
    assert_eq!(tree(&parts), tree(&whole));
    let again = run(Thirds, &options(&games, &parts, Container::Same)).unwrap();
    assert_eq!((again.done, again.resumed), (all.done, 23));
}

#[test]
fn a_source_that_changed_is_done_again() {
    let folder = tempfile::tempdir().unwrap();
    let (games, out) = (folder.path().join("games"), folder.path().join("out"));
    generate(&games, 6, 1, None);
    let first = run(Filter::new(Rules::DEFAULT), &options(&games, &out, Container::Same)).unwrap();
    assert_eq!((first.done.kept, tree(&out)), (6, tree(&games)));
    fs::copy(games.join("training.2.gz"), games.join("training.1.gz")).unwrap();
    fs::write(games.join("training.3.gz"), b"\x1f\x8b broken").unwrap();
    generate(&games, 1, 7, None);
    let second = run(Filter::new(Rules::DEFAULT), &options(&games, &out, Container::Same)).unwrap();
    assert_eq!((second.resumed, second.done.kept), (4, 6));
    assert_eq!(second.done.damaged.values().sum::<u64>(), 1);
    assert!(second.faults[0].contains("training.3.gz"), "{:?}", second.faults);
    let expected: Vec<_> = tree(&games).into_iter().filter(|(name, _)| name != "training.3.gz").collect();
    assert_eq!(tree(&out), expected, "what was written for it before is taken back");
}

#[test]
fn containers_change_and_games_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let [games, tars, loose] = ["games", "tars", "loose"].map(|name| folder.path().join(name));
    generate(&games.join("a"), 7, 1, None);
    generate(&games.join("b"), 4, 1, Some(2));
    let keep = || Filter::new(Rules::DEFAULT);
    run(keep(), &options(&games, &tars, Container::Tars(3))).unwrap();
    let names: Vec<String> = tree(&tars).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names[..3], ["a/games-000000.tar", "a/games-000001.tar", "a/games-000002.tar"]);
    assert_eq!(names.len(), 5);
    run(keep(), &options(&tars, &loose, Container::Loose)).unwrap();
    let back = tree(&loose);
    let originals = tree(&games.join("a"));
    assert_eq!(back.iter().filter(|(name, _)| name.starts_with("a/")).count(), 7);
    assert!(originals.iter().all(|(_, bytes)| back.iter().any(|(_, other)| other == bytes)));
    let source = open(tars.join("a/games-000001.tar")).unwrap();
    assert_eq!(source.member(0), Some("training.4.gz"));
}

#[test]
fn a_split_deals_every_chunk_as_the_loader_does() {
    let folder = tempfile::tempdir().unwrap();
    let [games, train, test] = ["games", "train", "test"].map(|name| folder.path().join(name));
    generate(&games, 40, 1, None);
    generate(&games, 40, 41, Some(40));
    let sides = ["train", "test"].map(str::to_owned).to_vec();
    let options = RewriteOptions { sides, ..options(&games, folder.path(), Container::Same) };
    let done = run(Split::new(vec![3, 1], By::Name, None).unwrap(), &options).unwrap().done;
    assert_eq!((done.chunks, done.kept, done.frames_in), (80, 80, 0));
    let side = gristmill_engine::stage::split::Side::new(&[3, 1], 1).unwrap();
    for (name, bytes) in tree(&games).into_iter().filter(|(name, _)| name.ends_with(".gz")) {
        let folder = if side.holds(&name, 0) { &test } else { &train };
        assert_eq!(fs::read(folder.join(&name)).unwrap(), bytes);
    }
    let tar = tree(&games).into_iter().find(|(name, _)| name.ends_with(".tar")).unwrap().0;
    let counted = |folder: &Path| open(folder.join(&tar)).unwrap().len();
    let named = |i: &u64| side.holds(&format!("training.{i}.gz"), 0);
    assert_eq!(counted(&test), (41..81).filter(named).count());
    assert_eq!(counted(&train) + counted(&test), 40);
}

#[test]
fn a_dry_run_tells_the_same_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (games, out) = (folder.path().join("games"), folder.path().join("out"));
    generate(&games, 10, 1, None);
    let wet = options(&games, &out, Container::Same);
    let dry = run(Thirds, &RewriteOptions { dry_run: true, ..wet.clone() }).unwrap().done;
    assert!(!out.exists());
    let done = run(Thirds, &wet).unwrap().done;
    assert_eq!(Done { files_out: done.files_out, bytes_out: done.bytes_out, ..dry }, done);
}

#[test]
fn folders_that_cannot_be_used_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (games, full) = (folder.path().join("games"), folder.path().join("full"));
    generate(&games, 2, 1, None);
    generate(&full, 1, 1, None);
    let refused = |out: &Path, sides: &[&str]| {
        let sides = sides.iter().map(|side| (*side).to_owned()).collect();
        match run(Thirds, &RewriteOptions { sides, ..options(&games, out, Container::Same) }) {
            Err(Error::Config { message, .. }) => message,
            other => format!("{other:?}"),
        }
    };
    assert!(refused(&games.join("out"), &[]).contains("would be read"));
    assert!(refused(&games, &[]).contains("would be read"));
    assert!(refused(&full, &[]).contains("choose a new or empty folder"));
    let out = folder.path().join("out");
    assert!(refused(&out, &["a", "a"]).contains("given twice"));
    run(Thirds, &options(&games, &out, Container::Same)).unwrap();
    let other = run(Filter::new(Rules::ALL), &options(&games, &out, Container::Same)).unwrap_err();
    assert!(other.to_string().contains("another command"), "{other}");
}

#[test]
fn one_file_is_a_source_too_and_a_stranger_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let games = folder.path().join("games");
    generate(&games, 2, 1, None);
    let out = folder.path().join("out");
    run(Thirds, &options(&games.join("training.2.gz"), &out, Container::Same)).unwrap();
    assert!(tree(&out).len() <= 1);
    fs::write(folder.path().join("notes.txt"), "nothing").unwrap();
    let out = folder.path().join("other");
    assert!(run(Thirds, &options(&folder.path().join("notes.txt"), &out, Container::Same)).is_err());
    assert!(run(Thirds, &options(&folder.path().join("gone"), &out, Container::Same)).is_err());
}

/// Breaks off at the first chunk.
struct Broken;

impl Rewrite for Broken {
    fn settings(&self) -> serde_json::Value {
        "broken".into()
    }

    fn chunk(&self, _: &[u8], _: &mut Chunk, _: &mut dyn FnMut(&str, u64)) -> Result<Fate> {
        panic!("on purpose")
    }
}

#[test]
fn a_panic_is_an_error_and_leaves_nothing_half_done() {
    let folder = tempfile::tempdir().unwrap();
    let (games, out) = (folder.path().join("games"), folder.path().join("out"));
    generate(&games, 5, 1, None);
    let e = run(Broken, &options(&games, &out, Container::Same)).unwrap_err();
    assert!(e.to_string().contains("on purpose"), "{e}");
    assert_eq!(fs::read_dir(&out).unwrap().count(), 1, "the ledger alone");
}

/// Refuses every third game or so.
#[derive(Debug)]
struct Fussy;

impl gristmill_engine::stage::ChunkPass for Fussy {
    fn run(&self, chunk: &mut Chunk, _: &mut dyn FnMut(usize, u64)) -> Result<gristmill_engine::stage::Passed> {
        match chunk.bytes[gristmill_format::chess::record::at::VISITS] % 3 {
            0 => Err(gristmill_format::Error::new(Kind::Refused("third"), "not today")),
            _ => Ok(gristmill_engine::stage::Passed::Unchanged),
        }
    }
}

#[test]
fn what_is_no_fault_of_a_game_ends_the_run_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let [games, out, other] = ["games", "out", "other"].map(|name| folder.path().join(name));
    generate(&games, 12, 1, Some(12));
    let passes = || Passes::new("fussy".into(), vec![Arc::new(Fussy)]);
    let done = run(passes(), &options(&games, &out, Container::Same)).unwrap().done;
    assert!(done.dropped["third"] > 0);
    match run(passes().ending_on(&["third"]), &options(&games, &other, Container::Same)) {
        Err(Error::Format(e)) => assert!(e.place().member.is_some() && e.detail().contains("not today"), "{e}"),
        ended => panic!("{ended:?}"),
    }
    assert_eq!(tree(&other), [], "nothing half done");
}

#[test]
fn plain_records_that_change_stay_plain() {
    let folder = tempfile::tempdir().unwrap();
    let (games, out) = (folder.path().join("games"), folder.path().join("out"));
    generate(&games, 1, 1, None);
    let mut chunk = Chunk::default();
    open(games.join("training.1.gz")).unwrap().chunk(0, &mut chunk).unwrap();
    let size = Version::V6.bytes() as u64;
    let mut tar = gristmill_format::container::tar::TarWriter::new(Vec::new());
    tar.append("plain", chunk.records()).unwrap();
    fs::remove_file(games.join("training.1.gz")).unwrap();
    fs::write(games.join("a.tar"), tar.finish().unwrap()).unwrap();
    let done = run(Recast::new(Some(Version::V7)), &options(&games, &out, Container::Same)).unwrap().done;
    assert_eq!((done.changed, done.bytes_in), (1, 12 * size));
    let wide = open(out.join("a.tar")).unwrap();
    assert_eq!((wide.len(), wide.member(0)), (1, Some("plain")));
    wide.chunk(0, &mut chunk).unwrap();
    assert_eq!(chunk.frames, 12);
}
