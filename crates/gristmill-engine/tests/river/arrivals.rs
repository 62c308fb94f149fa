//! Games that come while the river runs: taken in, written to the journal, and replayed from it.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::{DataLoader, Missing, Next};
use gristmill_generate::ChessOptions;

use super::games::{changed, generate, hash, hashes, ids, loader, next, of_pool, options, preset, single, with_cache};

fn live(folder: &Path) -> Lc0Preset {
    Lc0Preset { watch: Some(true), pool: 20, ..preset(folder) }
}

fn pool_total(loader: &DataLoader) -> u64 {
    let metrics = loader.metrics();
    metrics.of_kind("shuffling_chunk_pool").next().and_then(|pool| pool.gauge("chunks_total")).map_or(0, |g| g.value)
}

pub(super) fn wait_for(what: &str, loader: &DataLoader, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}: {:#?}", loader.metrics());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_new_game_is_drawn_and_the_oldest_leaves() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 20));
    let loader = loader(&Lc0Preset { reservoir: Some(0), ..live(folder.path()) });
    next(&loader, "");
    generate(ChessOptions { first: 500, ..options(folder.path(), 5) });
    wait_for("five more chunks", &loader, || pool_total(&loader) == 25);
    let mut drawn = BTreeSet::new();
    // What was drawn before they came is still on its way.
    (0..60).for_each(|_| drop(next(&loader, "")));
    (0..120).for_each(|_| drawn.extend(ids(&next(&loader, "").unwrap()).into_iter().map(|id| id.0)));
    assert_eq!(drawn, (5..25).collect::<BTreeSet<u64>>());
}

#[test]
fn an_empty_directory_waits_for_its_first_game() {
    let folder = tempfile::tempdir().unwrap();
    let loader = loader(&live(folder.path()));
    let waited = loader.next("", Some(Duration::from_millis(100))).unwrap();
    assert!(matches!(waited, Next::Pending), "{waited:?}");
    generate(options(folder.path(), 6));
    assert!(next(&loader, "").is_some());
}

#[test]
fn a_run_with_arrivals_replays_from_its_journal() {
    let folder = tempfile::tempdir().unwrap();
    let notes = tempfile::tempdir().unwrap();
    let journal = Some(notes.path().join("run.journal"));
    generate(options(folder.path(), 12));
    let run = Lc0Preset { journal: journal.clone(), seed: None, ..live(folder.path()) };
    let original = loader(&run);
    let mut seen = hashes(&original, "", 10);
    for round in 0..4u64 {
        generate(ChessOptions { first: 100 + round * 10, ..options(folder.path(), 3) });
        wait_for("arrivals", &original, || pool_total(&original) == 12 + 3 * (round + 1));
        seen.extend(hashes(&original, "", 15));
    }
    original.stop();
    for threads in [1, 8] {
        let replay = Lc0Preset { replay: true, threads: Some(threads), ..run.clone() };
        assert_eq!(hashes(&loader(&replay), "", seen.len()), seen, "{threads} threads");
    }
}

#[test]
fn a_rewritten_game_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 6));
    let loader = loader(&Lc0Preset { reservoir: Some(0), ..live(folder.path()) });
    next(&loader, "");
    let path = folder.path().join("training.3.gz");
    let longer = tempfile::tempdir().unwrap();
    generate(ChessOptions { first: 3, plies_max: 60, seed: 99, ..options(longer.path(), 1) });
    std::fs::copy(longer.path().join("training.3.gz"), &path).unwrap();
    wait_for("the new version", &loader, || pool_total(&loader) == 7);
    (0..60).for_each(|_| drop(next(&loader, "")));
    let drawn: BTreeSet<u64> = (0..60).flat_map(|_| ids(&next(&loader, "").unwrap())).map(|id| id.0).collect();
    assert_eq!(drawn, BTreeSet::from([0, 1, 3, 4, 5, 6]), "source 2 was superseded by source 6");
}

#[test]
fn a_state_taken_amid_arrivals_goes_on_to_the_bit() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 12));
    let original = loader(&live(folder.path()));
    hashes(&original, "", 8);
    generate(ChessOptions { first: 100, ..options(folder.path(), 4) });
    wait_for("arrivals", &original, || pool_total(&original) == 16);
    let state = original.state().unwrap();
    let expected: Vec<u64> = (0..30).map(|_| hash(&next(&original, "").unwrap())).collect();
    let restored = loader(&live(folder.path()));
    restored.restore(&state).unwrap();
    assert_eq!(hashes(&restored, "", 30), expected);
}

/// A copy of a folder as it is now.
fn copy(folder: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    copy
}

/// A cache and Hanse sampling while games come and the window moves over what the cache holds: a state taken after any
/// batch resumes to the bit, with what had come by then.
#[test]
fn a_cache_amid_arrivals_goes_on_after_every_batch() {
    let (folder, batches) = (tempfile::tempdir().unwrap(), 9);
    generate(options(folder.path(), 12));
    for reservoir in [0, 40] {
        let loader = |folder: &Path, threads| {
            let shown = live(folder);
            let pool = Lc0Preset { watch: shown.watch, pool: 12, tensors: shown.tensors, ..single(folder) };
            let options = Lc0Preset { reservoir: Some(reservoir), threads: Some(threads), ..pool };
            let hanse = changed(&options, |pool, _| pool.hanse_sampling_threshold = Some(1));
            DataLoader::new(with_cache(hanse, 90, 6)).unwrap()
        };
        let folder = copy(folder.path());
        let original = loader(folder.path(), 2);
        hashes(&original, "", 6);
        for round in 1..=4 {
            generate(ChessOptions { first: 100 * round, ..options(folder.path(), 3) });
            wait_for("arrivals", &original, || pool_total(&original) == 12 + 3 * round);
            // What comes later is not in this copy: the batches up to here were planned without it.
            let known = copy(folder.path());
            let (mut states, mut expected) = (Vec::new(), Vec::new());
            for _ in 0..batches {
                states.push(original.state().unwrap());
                expected.push(hash(&next(&original, "").unwrap()));
            }
            for (after, state) in states.iter().enumerate() {
                let restored = loader(known.path(), [1, 8][after % 2]);
                restored.restore(state).unwrap();
                let rest = hashes(&restored, "", batches - after);
                assert_eq!(rest, expected[after..], "round {round}, reservoir {reservoir}, after batch {after}");
            }
        }
        let [hits, kept, held] =
            ["cache_hits", "newly_cached", "cached_positions"].map(|name| of_pool(&original, name));
        assert!(hits > 50 && kept > hits + held, "the window left behind some of what was kept: {hits} {kept} {held}");
    }
}

#[test]
fn a_pool_of_bad_games_says_so_and_goes_on_once_they_are_mended() {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 1));
    let path = folder.path().join("training.1.gz");
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let loader = loader(&Lc0Preset { reservoir: Some(0), ..live(folder.path()) });
    let error = loader.next("", None).unwrap_err().to_string();
    assert!(error.contains("all 1 chunks are bad"), "{error}");
    std::fs::write(&path, &whole).unwrap();
    let start = Instant::now();
    while !matches!(loader.next("", None), Ok(Next::Batch(_))) {
        assert!(start.elapsed() < Duration::from_secs(60), "{:#?}", loader.metrics());
    }
}

/// Games that came while a run was away wait until it is past the draws that it had made. A state that is taken meanwhile has
/// them, although no scan calls them new again.
#[test]
fn arrivals_that_wait_are_not_forgotten_by_a_second_restore() {
    let (folder, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [first, second, journal] = ["first", "second", "journal"].map(|name| notes.path().join(name));
    generate(options(folder.path(), 40));
    let run = Lc0Preset { pool: 40, journal: Some(journal.clone()), ..live(folder.path()) };
    let before = loader(&run);
    hashes(&before, "", 2);
    before.save(&first).unwrap();
    hashes(&before, "", 150);
    before.stop();
    generate(ChessOptions { first: 100, ..options(folder.path(), 30) });
    let again = loader(&run);
    again.load(&first, Missing::Refuse).unwrap();
    next(&again, "");
    again.save(&second).unwrap();
    assert!(std::fs::read_to_string(&second).unwrap().contains("\"waiting\":"), "they wait");
    let told = std::fs::read(&journal).unwrap();
    let expected = hashes(&again, "", 250);
    assert_eq!(pool_total(&again), 70, "they came in their time");
    again.stop();
    std::fs::write(&journal, told).unwrap();
    let restored = loader(&run);
    restored.load(&second, Missing::Refuse).unwrap();
    assert_eq!(hashes(&restored, "", 250), expected);
    assert_eq!(pool_total(&restored), 70);
}
