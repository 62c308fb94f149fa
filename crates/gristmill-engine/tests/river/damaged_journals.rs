//! Journals that were damaged, cut, swapped or are in use: refused by name, and only a torn tail is cut back.

use std::path::{Path, PathBuf};
use std::time::Duration;

use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::{DataLoader, Error};
use gristmill_generate::ChessOptions;

use super::damage::every_damage;
use super::games::{generate, hash, hashes, loader, next, of_pool, options, preset, without_checksums};

const HOLES: [usize; 5] = [1, 2, 17, 60, 300];

/// A run that watches its games, with a file that came, and a state after it.
struct Run {
    folder: tempfile::TempDir,
    /// Batches before the state, and after it.
    seen: Vec<u64>,
    rest: Vec<u64>,
    state: String,
    /// What the journal said when the state was taken, and at the end.
    told: [Vec<u8>; 2],
}

impl Run {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut run =
            Run { folder, seen: Vec::new(), rest: Vec::new(), state: String::new(), told: Default::default() };
        generate(options(&run.at("games"), 3));
        let original = loader(&run.options(&run.journal()));
        run.seen = arrive(&original, &run.at("games"), 50);
        run.state = original.state().unwrap();
        run.told[0] = std::fs::read(run.journal()).unwrap();
        run.rest = arrive(&original, &run.at("games"), 60);
        run.rest.extend(hashes(&original, "", 5));
        run.told[1] = std::fs::read(run.journal()).unwrap();
        run
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn journal(&self) -> PathBuf {
        self.at("journal")
    }

    fn options(&self, journal: &Path) -> Lc0Preset {
        let tensors = vec!["ids".to_owned()];
        let journal = Some(journal.to_owned());
        let live = Lc0Preset { watch: Some(true), pool: 4, reservoir: Some(4), tensors, ..preset(&self.at("games")) };
        Lc0Preset { seed: Some(3), index: Some("off".into()), journal, ..live }
    }

    fn begun(&self, state: bool) -> Result<DataLoader, Error> {
        let again = loader(&self.options(&self.journal()));
        if state {
            again.restore(&self.state)?;
        }
        again.start().map(|()| again)
    }

    fn write(&self, bytes: &[u8]) {
        std::fs::write(self.journal(), bytes).unwrap();
    }
}

/// Adds a game, and takes batches until it was taken in.
fn arrive(loader: &DataLoader, games: &Path, first: u64) -> Vec<u64> {
    loader.start().unwrap();
    let mut seen = hashes(loader, "", 1);
    let total = of_pool(loader, "chunks_total");
    generate(ChessOptions { first, ..options(games, 1) });
    while of_pool(loader, "chunks_total") == total {
        seen.push(hash(&next(loader, "").unwrap()));
    }
    seen
}

fn is_refused(what: &str, begun: Result<DataLoader, Error>) {
    let error = begun.map(|_| ()).map_err(|e| e.to_string());
    let said = error.as_ref().err().is_some_and(|e| e.contains("/journal: ") && e.contains("put a copy of it back"));
    assert!(said, "{what}: {error:?}");
}

#[test]
fn no_damaged_journal_is_taken_with_a_state_or_without() {
    let run = Run::new();
    let told = &run.told[1];
    let mut tried = 0;
    every_damage(told, &HOLES, &mut |what, bytes| {
        run.write(bytes);
        match (tried % 5, run.begun(tried % 2 == 0)) {
            (_, Err(Error::Config { message, .. })) => assert!(message.contains("is no journal"), "{what}: {message}"),
            (_, begun) => is_refused(what, begun),
        }
        tried += 1;
    });
    assert!(tried > 5000, "{tried}");
    run.write(told);
    assert_eq!(hashes(&run.begun(true).unwrap(), "", run.rest.len()), run.rest);
}

#[test]
fn a_torn_tail_is_cut_back_and_a_cut_is_refused_by_the_state() {
    let run = Run::new();
    let told = &run.told[1];
    let marks: serde_json::Value = serde_json::from_str(&run.state).unwrap();
    let reached = marks["journals"][0]["bytes"].as_u64().unwrap() as usize;
    assert!(run.told[0].len() >= reached);
    let lines: Vec<usize> = (0..told.len()).filter(|at| told[*at] == b'\n').map(|at| at + 1).collect();
    for cut in 0..reached {
        run.write(&told[..cut]);
        is_refused(&format!("cut at {cut} of {reached}"), run.begun(true));
    }
    // Behind what the state rests on, and without a state, a cut looks like what a crash leaves.
    let first_scan = lines[1];
    for cut in (first_scan..told.len()).step_by(7).chain(lines.iter().copied()) {
        run.write(&told[..cut]);
        if cut >= reached {
            let again = run.begun(true).unwrap();
            assert_eq!(hashes(&again, "", 3), run.rest[..3], "cut at {cut}");
        } else if cut >= first_scan {
            run.begun(false).unwrap();
        }
        let whole = lines.iter().copied().filter(|line| *line <= cut).max().unwrap_or(0);
        assert!(std::fs::read(run.journal()).unwrap().starts_with(&told[..whole]), "cut at {cut}");
    }
    run.write(told);
    let mut all = run.seen.clone();
    all.extend(&run.rest);
    assert_eq!(hashes(&run.begun(false).unwrap(), "", all.len()), all);
}

#[test]
fn a_journal_of_before_is_taken_as_it_is_and_protected_from_there_on() {
    let run = Run::new();
    let older = without_checksums(std::str::from_utf8(&run.told[1]).unwrap()).into_bytes();
    run.write(&older);
    let again = run.begun(false).unwrap();
    let seen = hashes(&again, "", run.seen.len() + run.rest.len());
    assert_eq!(seen, [&run.seen[..], &run.rest[..]].concat());
    hashes(&again, "", 600);
    again.stop();
    let text = std::fs::read(run.journal()).unwrap();
    assert!(text.starts_with(&older) && text.len() > older.len() && text[older.len()] != b'{');
    let changed = String::from_utf8(text).unwrap().replacen("training.1.gz", "training.7.gz", 1);
    run.write(changed.as_bytes());
    is_refused("an old line that was changed", run.begun(false));
}

#[test]
fn a_state_goes_on_with_a_new_journal_and_again_with_that_one_alone() {
    let run = Run::new();
    let other = run.at("other");
    std::fs::create_dir(&other).unwrap();
    let options = run.options(&other.join("journal"));
    let resumed = || {
        let again = loader(&options);
        again.restore(&run.state)?;
        again.start().map(|()| again)
    };
    let first = resumed().unwrap();
    let seen = hashes(&first, "", 5);
    let later = first.state().unwrap();
    let rest = hashes(&first, "", 5);
    drop(first);
    assert_eq!(hashes(&resumed().unwrap(), "", 5), seen, "once more from the same state");
    std::fs::copy(other.join("journal"), run.journal()).unwrap();
    assert_eq!(hashes(&run.begun(true).unwrap(), "", 5), seen, "wherever it lies");
    run.write(&run.told[1]);
    let again = loader(&run.options(&run.journal()));
    again.restore(&later).unwrap();
    let error = again.start().map(|()| again).map_err(|e| e.to_string());
    assert!(error.as_ref().err().is_some_and(|e| e.contains("not the journal that its run wrote")), "{error:?}");
    let again = loader(&options);
    again.restore(&later).unwrap();
    assert_eq!(hashes(&again, "", 5), rest);
}

#[test]
fn a_journal_has_one_writer_at_a_time() {
    let run = Run::new();
    let first = run.begun(true).unwrap();
    for state in [true, false] {
        let error = run.begun(state).map(|_| ()).unwrap_err();
        let Error::Path { kind, message, path } = &error else { panic!("{error}") };
        assert_eq!((*kind, path), (std::io::ErrorKind::ResourceBusy, &run.journal()), "{error}");
        assert!(message.contains("another loader") && message.contains("stop that one first"), "{message}");
    }
    let replay = loader(&Lc0Preset { replay: true, ..run.options(&run.journal()) });
    assert_eq!(hashes(&replay, "", 2), run.seen[..2], "who only reads it may");
    let seen = hashes(&first, "", 3);
    assert!(first.stop().is_empty());
    let again = run.begun(true).unwrap();
    assert_eq!(hashes(&again, "", 3), seen, "a loader that was stopped has let go of it");
    assert!(matches!(first.next("", Some(Duration::from_secs(9))), Err(Error::Stopped)));
    first.state().unwrap();
}
