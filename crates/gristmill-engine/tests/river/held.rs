//! Files that a state needs and that have left the disk, or were written over, are read from the spill folder.

use std::path::Path;

use gristmill_engine::config::MemorySize;
use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::{DataLoader, Missing};
use gristmill_generate::ChessOptions;

use super::arrivals::wait_for;
use super::games::{config, generate, hash, hashes, ids, loader, next, of_pool, options, preset};

fn live(folder: &Path, spill: Option<&Path>) -> Lc0Preset {
    Lc0Preset { watch: Some(true), pool: 22, spill: spill.map(Path::to_owned), ..preset(folder) }
}

fn empty(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap).filter(|e| e.file_type().unwrap().is_file()) {
        std::fs::remove_file(entry.path()).unwrap();
    }
}

/// Names and bytes of a folder's files.
fn files(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn a_state_goes_on_although_every_file_has_left_the_disk() {
    let (folder, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (spill, state) = (notes.path().join("spill"), notes.path().join("state"));
    generate(options(folder.path(), 12));
    generate(ChessOptions { first: 101, games_per_tar: Some(10), ..options(folder.path(), 20) });
    let plain = hashes(&loader(&live(folder.path(), None)), "", 60);
    let original = loader(&live(folder.path(), Some(&spill)));
    assert_eq!(hashes(&original, "", 6), plain[..6], "where bytes are held changes nothing");
    original.save(&state).unwrap();
    empty(folder.path());
    assert_eq!(hashes(&original, "", 54), plain[6..], "the run itself continues, too");
    let held = |loader: &DataLoader| {
        let metrics = loader.metrics();
        let row = metrics.stages.iter().find(|stage| stage.name == "load").unwrap();
        row.gauge("files_held").unwrap().value
    };
    assert_eq!(held(&original), 13, "the window has 12 games and the newer tar");
    original.stop();
    for (missing, threads) in [(Missing::Spill, 1), (Missing::Refuse, 8), (Missing::Skip, 2)] {
        let restored = loader(&Lc0Preset { threads: Some(threads), ..live(folder.path(), Some(&spill)) });
        restored.load(&state, missing).unwrap();
        assert_eq!(hashes(&restored, "", 54), plain[6..], "{missing:?}");
        assert!(restored.vanished().is_empty());
    }
    let bare = loader(&live(folder.path(), None));
    bare.load(&state, Missing::Refuse).unwrap();
    assert!(bare.start().unwrap_err().to_string().contains("is gone"));
    let error = loader(&live(folder.path(), None)).load(&state, Missing::Spill).unwrap_err().to_string();
    assert!(error.contains("`spill`"), "{error}");
}

#[test]
fn files_outside_the_window_are_held_until_a_restored_reservoir_has_their_rows() {
    let (folder, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    generate(options(folder.path(), 12));
    let of_twelve = |spill| Lc0Preset { pool: 12, reservoir: Some(300), ..live(folder.path(), spill) };
    let original = loader(&of_twelve(None));
    hashes(&original, "", 3);
    generate(ChessOptions { first: 101, ..options(folder.path(), 12) });
    wait_for("the newer games", &original, || of_pool(&original, "chunks_total") == 24);
    hashes(&original, "", 1);
    let state = original.state().unwrap();
    let rest = hashes(&original, "", 30);
    let spill = notes.path().join("spill");
    let restored = loader(&of_twelve(Some(&spill)));
    restored.restore(&state).unwrap();
    let first = hashes(&restored, "", 1);
    let held = files(&spill.join("rank-0-of-1"));
    assert!(held > 12, "{held} files; the window has 12");
    empty(folder.path());
    assert_eq!([first, hashes(&restored, "", 29)].concat(), rest);
}

#[test]
fn files_are_let_go_once_no_saved_state_needs_them_and_a_full_folder_is_told() {
    let (folder, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (spill, state) = (notes.path().join("spill"), notes.path().join("state"));
    generate(options(folder.path(), 30));
    let one =
        Lc0Preset { sampling_rate: None, position_count: Some(1), reservoir: Some(20), ..live(folder.path(), None) };
    let run = Lc0Preset { spill: Some(spill.clone()), pool: 8, ..one };
    let original = loader(&run);
    hashes(&original, "", 3);
    original.save(&state).unwrap();
    let own = spill.join("rank-0-of-1");
    assert_eq!(files(&own), 8);
    generate(ChessOptions { first: 100, ..options(folder.path(), 8) });
    while of_pool(&original, "chunks_total") < 16 {
        next(&original, "");
    }
    hashes(&original, "", 300);
    assert_eq!(files(&own), 16, "the state on disk needs the old ones");
    original.save(&state).unwrap();
    assert_eq!(files(&own), 16, "so did the one before");
    original.save(&state).unwrap();
    assert!((8..12).contains(&files(&own)), "{}", files(&own));
    let rest = hashes(&original, "", 20);
    original.stop();
    empty(folder.path());
    let restored = loader(&run);
    restored.load(&state, Missing::Spill).unwrap();
    assert_eq!(hashes(&restored, "", 20), rest);

    let small = tempfile::tempdir().unwrap();
    generate(options(small.path(), 6));
    let limit = std::fs::metadata(small.path().join("training.1.gz")).unwrap().len() + 1;
    let (directories, spill) = (preset(small.path()).directories, Some(notes.path().join("full")));
    let full = loader(&Lc0Preset { spill_limit: Some(MemorySize(limit)), spill, directories, ..run.clone() });
    next(&full, "");
    while !full.status(0).events.iter().any(|event| event.kind == "spill_full") {
        next(&full, "");
    }
    let error = DataLoader::new(config(&Lc0Preset { spill: None, spill_limit: Some(MemorySize(1)), ..run }));
    assert!(error.unwrap_err().to_string().contains("`spill_limit`"));
}

#[test]
fn what_a_journal_tells_of_is_held_by_every_rank_from_its_start() {
    let (folder, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [spill, journal, state] = ["spill", "journal", "state"].map(|name| notes.path().join(name));
    generate(options(folder.path(), 30));
    let run = |rank, world| Lc0Preset {
        lanes: Some(4),
        rank: Some(rank),
        world_size: Some(world),
        journal: Some(journal.clone()),
        ..live(folder.path(), Some(&spill))
    };
    let alone = loader(&run(0, 1));
    next(&alone, "");
    let early = alone.state().unwrap();
    hashes(&alone, "", 100);
    generate(ChessOptions { first: 1001, ..options(folder.path(), 8) });
    let new = |loader: &DataLoader, source| loader.source_path(source).unwrap().starts_with("training.100");
    while !ids(&next(&alone, "").unwrap()).iter().any(|(source, ..)| new(&alone, *source)) {}
    alone.stop();
    (1001..1009).for_each(|game| std::fs::remove_file(folder.path().join(format!("training.{game}.gz"))).unwrap());
    let two = [0, 1].map(|rank| loader(&run(rank, 2)));
    for loader in &two {
        loader.restore_with(&early, Missing::Spill).unwrap();
        loader.start().unwrap();
    }
    // One rank lets go of what the run before held, while the other is far from the draws that need it.
    (0..2).for_each(|_| two[0].save(&state).unwrap());
    assert!(!spill.join("rank-0-of-1").exists());
    two.iter().for_each(|loader| _ = hashes(loader, "", 130));
}

/// A game that is written over while its window runs; without a spill folder, and with one.
#[test]
fn a_game_that_was_written_over_is_needed_only_where_its_rows_are() {
    let longer = tempfile::tempdir().unwrap();
    generate(ChessOptions { first: 3, plies_max: 60, seed: 99, ..options(longer.path(), 1) });
    for held in [false, true] {
        let (folder, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        generate(options(folder.path(), 6));
        let spill = held.then(|| notes.path().join("spill"));
        let reservoir = Some(if held { 60 } else { 0 });
        let journal = Some(notes.path().join("journal"));
        let run = Lc0Preset { reservoir, journal, ..live(folder.path(), spill.as_deref()) };
        let original = loader(&run);
        next(&original, "");
        let before = original.state().unwrap();
        let renamed = folder.path().join(".new");
        std::fs::copy(longer.path().join("training.3.gz"), &renamed).unwrap();
        std::fs::rename(&renamed, folder.path().join("training.3.gz")).unwrap();
        let mut seen = Vec::new();
        while of_pool(&original, "chunks_total") < 7 {
            seen.push(hash(&next(&original, "").unwrap()));
        }
        seen.extend(hashes(&original, "", 40));
        let (taken, state) = (seen.len(), original.state().unwrap());
        seen.extend(hashes(&original, "", 30));
        original.stop();
        let restored = loader(&run);
        restored.restore(&state).unwrap();
        assert_eq!(hashes(&restored, "", 30), seen[taken..], "held: {held}");
        restored.stop();
        let restored = loader(&run);
        restored.restore(&before).unwrap();
        match held {
            true => assert_eq!(hashes(&restored, "", seen.len()), seen),
            false => assert!(restored.start().unwrap_err().to_string().contains("`training.3.gz`")),
        }
    }
}
