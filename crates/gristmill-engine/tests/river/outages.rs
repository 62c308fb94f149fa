//! Files that cannot be read for a while: no game is lost for it, no batch changes, and a stream that waits says so or
//! ends.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gristmill_engine::config::{BadChunks, IoErrors};
use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::{DataLoader, Error, Next};
use gristmill_generate::ChessOptions;

use super::games::{config, generate, hashes, loader, next, options, preset};

const PATIENCE: Duration = Duration::from_secs(60);

/// Games in a folder that can go away, below one that cannot.
struct Games {
    folder: tempfile::TempDir,
    games: PathBuf,
    away: PathBuf,
}

impl Games {
    fn new(tars: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (games, away) = (folder.path().join("games"), folder.path().join("elsewhere"));
        std::fs::create_dir(&games).unwrap();
        let games_per_tar = tars.then_some(5);
        generate(ChessOptions { games_per_tar, ..options(&games, 10) });
        Games { folder, games, away }
    }

    fn preset(&self) -> Lc0Preset {
        Lc0Preset { reservoir: Some(0), pool: 100, queue_capacity: Some(1), ..preset(&self.games) }
    }

    fn path(&self, game: u64) -> PathBuf {
        self.games.join(format!("training.{game}.gz"))
    }

    fn leave(&self) {
        std::fs::rename(&self.games, &self.away).unwrap();
    }

    fn return_(&self) {
        std::fs::rename(&self.away, &self.games).unwrap();
    }

    /// What a run gives from which nothing is ever taken away.
    fn undisturbed(&self, batches: usize) -> Vec<u64> {
        hashes(&loader(&self.preset()), "", batches)
    }
}

/// Makes beside a file what is put in its place.
type Hinder = fn(&Path, &Path);

/// Two files change places, and at no moment is there none: a game that is away for a moment would be a deleted one.
fn exchange(one: &Path, other: &Path) {
    rustix::fs::renameat_with(rustix::fs::CWD, one, rustix::fs::CWD, other, rustix::fs::RenameFlags::EXCHANGE).unwrap();
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

/// Takes batches until the loader waits for files; their hashes.
fn until_it_waits(loader: &DataLoader) -> Vec<u64> {
    let mut taken = Vec::new();
    until("it never waits", || {
        if let Next::Batch(batch) = loader.next("", Some(Duration::ZERO)).unwrap() {
            taken.push(super::games::hash(&batch));
        }
        loader.metrics().io_errors.waiting > 0
    });
    taken
}

fn kinds(loader: &DataLoader) -> Vec<String> {
    loader.metrics().io_errors.by_kind.into_keys().collect()
}

#[test]
fn a_folder_that_is_away_costs_no_game_and_changes_no_batch() {
    let games = Games::new(false);
    let expected = games.undisturbed(60);
    for threads in [1, 8] {
        let loader = loader(&Lc0Preset { threads: Some(threads), ..games.preset() });
        let mut taken = hashes(&loader, "", 1);
        for _ in 0..3 {
            games.leave();
            taken.extend(until_it_waits(&loader));
            games.return_();
            taken.extend(hashes(&loader, "", 5));
        }
        taken.extend(hashes(&loader, "", 60 - taken.len().min(60)));
        assert_eq!(taken[..60], expected, "{threads} threads");
        until("nothing waits any more", || loader.metrics().io_errors.waiting == 0);
        let metrics = loader.metrics();
        assert_eq!(metrics.bad_chunks.chunks, 0, "{:?}", metrics.bad_chunks);
        assert_eq!(kinds(&loader), ["away"]);
        let events = loader.status(0).events;
        let of = |kind: &str| events.iter().filter(|event| event.kind == kind).count();
        assert!(of("unreadable") > 0 && of("unreadable") == of("readable"), "{events:?}");
        assert!(metrics.prometheus().contains("gristmill_io_errors_total{kind=\"away\"}"));
    }
}

#[test]
fn what_is_in_the_way_of_a_file_is_no_verdict_on_its_bytes() {
    let hindrances: [(&str, Hinder); 3] = [
        ("a folder in its place", |beside, _| std::fs::create_dir(beside).unwrap()),
        ("a link that leads nowhere", |beside, _| std::os::unix::fs::symlink("nowhere/at all", beside).unwrap()),
        ("a link that leads to itself", |beside, path| std::os::unix::fs::symlink(path, beside).unwrap()),
    ];
    for (what, hinder) in hindrances {
        let games = Games::new(false);
        let expected = games.undisturbed(40);
        let loader = loader(&Lc0Preset { bad_chunks: BadChunks::Raise, ..games.preset() });
        let mut taken = hashes(&loader, "", 1);
        let (path, beside) = (games.path(5), games.folder.path().join("beside"));
        hinder(&beside, &path);
        exchange(&path, &beside);
        taken.extend(until_it_waits(&loader));
        assert!(loader.status(0).io_errors.latest[0].contains("training.5.gz"), "{what}");
        exchange(&path, &beside);
        taken.extend(hashes(&loader, "", 40 - taken.len()));
        assert_eq!(taken, expected, "{what}");
        assert_eq!(loader.metrics().bad_chunks.chunks, 0, "{what}");
    }
}

#[test]
fn a_deleted_game_leaves_the_window_and_a_deleted_folder_does_once_it_is_there_without_it() {
    let games = Games::new(false);
    let loader = loader(&games.preset());
    next(&loader, "");
    games.leave();
    until_it_waits(&loader);
    std::fs::remove_file(games.away.join("training.5.gz")).unwrap();
    games.return_();
    until("it counts the deleted game", || {
        next(&loader, "");
        loader.metrics().bad_chunks.by_kind.get("not_found") == Some(&1)
    });
    assert_eq!(loader.metrics().bad_chunks.chunks, 1);
}

#[test]
fn a_stream_that_is_not_to_wait_ends_with_the_error_and_goes_on_from_its_state() {
    let games = Games::new(false);
    let expected = games.undisturbed(40);
    let raise = Lc0Preset { io_errors: IoErrors::Raise, ..games.preset() };
    let first = loader(&raise);
    let mut taken = hashes(&first, "", 1);
    games.leave();
    let error = loop {
        match first.next("", Some(PATIENCE)) {
            Ok(Next::Batch(batch)) => taken.push(super::games::hash(&batch)),
            Ok(other) => panic!("{other:?}"),
            Err(error) => break error,
        }
    };
    let Error::Format(error) = error else { panic!("{error}") };
    assert!(error.kind().is_of_reading() && error.to_string().contains("its folder"), "{error}");
    assert!(matches!(first.next("", Some(PATIENCE)), Ok(Next::End)));
    assert_eq!(first.metrics().bad_chunks.chunks, 0);
    let state = first.state().unwrap();
    games.return_();
    let again = loader(&games.preset());
    again.restore(&state).unwrap();
    taken.extend(hashes(&again, "", 40 - taken.len()));
    assert_eq!(taken, expected, "a state does not say whether its run waits");
}

#[test]
fn a_state_saved_while_it_waits_and_its_journal_go_on_as_if_nothing_had_been() {
    for tars in [false, true] {
        let games = Games::new(tars);
        let expected = games.undisturbed(50);
        let notes = tempfile::tempdir().unwrap();
        let journal = Some(notes.path().join("journal"));
        let first = loader(&Lc0Preset { journal: journal.clone(), ..games.preset() });
        let mut taken = hashes(&first, "", 3);
        games.leave();
        if !tars {
            taken.extend(until_it_waits(&first));
        }
        let state = first.state().unwrap();
        assert!(first.stop().is_empty(), "a stop ends a wait");
        games.return_();
        let again = loader(&Lc0Preset { journal: journal.clone(), ..games.preset() });
        again.restore(&state).unwrap();
        taken.extend(hashes(&again, "", 50 - taken.len()));
        assert_eq!(taken, expected, "tars: {tars}");
        again.stop();
        let replayed = loader(&Lc0Preset { journal, replay: true, ..games.preset() });
        assert_eq!(hashes(&replayed, "", 50), expected, "tars: {tars}");
    }
}

#[test]
fn one_output_that_waits_stops_no_other() {
    let (games, other) = (Games::new(false), Games::new(false));
    let mut both = config(&games.preset());
    both.output = both.output.iter().map(|output| format!("gone:{output}")).collect();
    let mut here = config(&other.preset());
    for stage in &mut here.stage {
        stage.name = format!("other-{}", stage.name);
        stage.input.iter_mut().for_each(|input| *input = format!("other-{input}"));
    }
    both.stage.append(&mut here.stage);
    both.output.extend(here.output.iter().map(|output| format!("here:other-{output}")));
    let loader = DataLoader::new(both).unwrap();
    next(&loader, "gone");
    games.leave();
    until("it waits", || {
        let _ = loader.next("gone", Some(Duration::ZERO)).unwrap();
        loader.metrics().io_errors.waiting >= 10
    });
    assert_eq!(hashes(&loader, "here", 100).len(), 100);
    games.return_();
    assert_eq!(hashes(&loader, "gone", 20).len(), 20);
}
