//! A run that ended before it saved a state begins again as its journal tells; what is no such journal is left alone.

use std::path::Path;
use std::time::Duration;

use gristmill_engine::config::DataLoaderConfig;
use gristmill_engine::preset::Lc0Preset;
use gristmill_engine::{DataLoader, Missing, Next};
use gristmill_generate::ChessOptions;

use super::games::{config, generate, hash, hashes, ids, loader, next, of_pool, options, preset, without_checksums};

/// Long enough for any batch on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn live(folder: &Path, journal: &Path) -> Lc0Preset {
    Lc0Preset { watch: Some(true), pool: 20, seed: None, journal: Some(journal.to_owned()), ..preset(folder) }
}

/// Adds games, and takes batches until the window has seen them all.
fn grow(loader: &DataLoader, folder: &Path, first: u64, games: u64) -> Vec<u64> {
    let total = of_pool(loader, "chunks_total") + games;
    generate(ChessOptions { first, ..options(folder, games) });
    let mut seen = Vec::new();
    while of_pool(loader, "chunks_total") < total {
        seen.push(hash(&next(loader, "").unwrap()));
    }
    seen.extend(hashes(loader, "", 10));
    seen
}

#[test]
fn a_run_that_saved_nothing_begins_again_and_goes_on() {
    let (folder, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let run = live(folder.path(), &notes.path().join("journal"));
    generate(options(folder.path(), 12));
    let mut seen = Vec::new();
    for life in 1..=4u64 {
        let again = loader(&Lc0Preset { threads: Some([1, 8, 2, 4][life as usize % 4]), ..run.clone() });
        again.start().unwrap();
        assert_eq!(hashes(&again, "", seen.len()), seen, "life {life}");
        let started = again.status(0).events.into_iter().find(|event| event.kind == "started").unwrap();
        assert_eq!(started.message.contains("as the journal tells"), life > 1, "{}", started.message);
        seen.extend(grow(&again, folder.path(), 100 * life, 3));
        again.stop();
        // Files that come while no loader runs are taken in later.
        generate(ChessOptions { first: 100 * life + 50, ..options(folder.path(), 1) });
    }
    let state = notes.path().join("state");
    let last = loader(&run);
    assert_eq!(hashes(&last, "", seen.len()), seen);
    last.save(&state).unwrap();
    let rest = hashes(&last, "", 40);
    assert_eq!(of_pool(&last, "chunks_total"), 28);
    last.stop();
    let restored = loader(&run);
    restored.load(&state, Missing::Refuse).unwrap();
    assert_eq!(hashes(&restored, "", 40), rest, "a state of a run that began again is as good");
    restored.stop();
    let replay = loader(&Lc0Preset { replay: true, ..run.clone() });
    assert_eq!(
        hashes(&replay, "", seen.len() + 40),
        [seen.clone(), rest].concat(),
        "and the journal tells of all lives"
    );
    let other = loader(&Lc0Preset { seed: Some(3), ..run.clone() }).start().unwrap_err().to_string();
    assert!(other.contains("`journal`") && other.contains("not 3"), "{other}");
    std::fs::remove_file(folder.path().join("training.12.gz")).unwrap();
    let gone = loader(&run).next("", None).unwrap_err().to_string();
    assert!(gone.contains("`training.12.gz`") && gone.contains("use another journal"), "{gone}");
}

#[test]
fn a_first_scan_that_found_nothing_is_told_of() {
    let (folder, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let run = live(folder.path(), &notes.path().join("journal"));
    let first = loader(&run);
    first.start().unwrap();
    let mut seen = grow(&first, folder.path(), 1, 3);
    seen.extend(grow(&first, folder.path(), 10, 5));
    first.stop();
    assert_eq!(hashes(&loader(&run), "", seen.len()), seen);
}

#[test]
fn ranks_begin_again_each_by_its_own_journal_or_by_all() {
    let (folder, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    generate(options(folder.path(), 30));
    let journal = notes.path().join("journal");
    let rank = |rank, world| {
        let options = Lc0Preset { seed: Some(4), reservoir: Some(40), ..live(folder.path(), &journal) };
        let (rank, world_size) = (Some(rank), Some(world));
        DataLoader::new(DataLoaderConfig { lanes: Some(2), rank, world_size, ..config(&options) }).unwrap()
    };
    let all = |world: u32, batches| (0..world).map(|r| hashes(&rank(r, world), "", batches)).collect::<Vec<_>>();
    let two = all(2, 12);
    assert_eq!(all(2, 12), two);
    let one = all(1, 12);
    assert_eq!(all(1, 12), one);
    assert_eq!(all(2, 12), two, "with the journals of both");
    // Ranks that found other files first resume alone.
    let path = notes.path().join("journal.1-of-2");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = without_checksums(&text);
    let without = text.replacen(r#"{"id":0,"name":"training.1.gz","#, r#"{"id":0,"name":"training.01.gz","#, 1);
    assert_ne!(without, text);
    std::fs::write(&path, without).unwrap();
    assert_eq!(hashes(&rank(0, 2), "", 12), two[0]);
    std::fs::remove_file(&journal).unwrap();
    let error = rank(0, 1).start().unwrap_err().to_string();
    assert!(error.contains("found different files first"), "{error}");
}

#[test]
fn draws_that_no_run_reaches_are_refused() {
    let (folder, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = notes.path().join("journal");
    let run = live(folder.path(), &path);
    let first = loader(&run);
    first.start().unwrap();
    grow(&first, folder.path(), 1, 3);
    first.stop();
    drop(first);
    let text = without_checksums(&std::fs::read_to_string(&path).unwrap());
    let numbers: Vec<usize> = text.match_indices("\"at\":").map(|(at, key)| at + key.len()).collect();
    assert!(numbers.len() > 1, "{text}");
    for at in numbers {
        let behind = text[at..].find(|c: char| !c.is_ascii_digit()).unwrap();
        std::fs::write(&path, format!("{}{}{}", &text[..at], u64::MAX, &text[at + behind..])).unwrap();
        let again = loader(&run);
        let refused = again.start().and_then(|()| again.next("", None)).unwrap_err().to_string();
        assert!(refused.contains("is impossible") && refused.contains("journal"), "{refused}");
    }
}

#[test]
fn a_journal_that_tells_nothing_is_begun_anew_and_what_is_none_is_left_alone() {
    let (folder, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    generate(options(folder.path(), 12));
    let path = notes.path().join("journal");
    let run = Lc0Preset { seed: Some(9), ..live(folder.path(), &path) };
    let state = notes.path().join("state");
    let saved = loader(&Lc0Preset { journal: None, ..run.clone() });
    next(&saved, "");
    saved.save(&state).unwrap();
    let game = folder.path().join("training.5.gz");
    let bytes = std::fs::read(&game).unwrap();
    std::fs::remove_file(&game).unwrap();
    let refused = loader(&run);
    refused.load(&state, Missing::Refuse).unwrap();
    assert!(refused.start().unwrap_err().to_string().contains("`training.5.gz`"));
    assert!(!path.exists(), "a start that is refused leaves no journal");
    std::fs::write(&game, bytes).unwrap();
    // Where the system promises memory that it does not have, a reservoir of 36 TB fails later.
    if std::fs::read_to_string("/proc/sys/vm/overcommit_memory").is_ok_and(|mode| mode.trim() != "1") {
        let large = loader(&Lc0Preset { reservoir: Some(u32::MAX as usize - (1 << 20)), ..run.clone() });
        assert!(large.start().unwrap_err().to_string().contains("no memory"));
        assert!(!path.exists(), "nor does one that has no memory");
    }
    let whole = {
        let first = loader(&run);
        let seen = hashes(&first, "", 5);
        (seen, std::fs::read_to_string(&path).unwrap())
    };
    let torn = whole.1.lines().next().unwrap();
    let first = whole.1.split("{\"reached").next().and_then(|first| first.get(..first.len() - 17)).unwrap();
    for text in [
        "",
        "{\"se",
        &torn[..9],
        &torn[..19],
        torn,
        &format!("{torn}\n"),
        &format!("{torn}\n{}{{\"initial\":{{\"loa", &torn[..17]),
    ] {
        std::fs::write(&path, text).unwrap();
        assert_eq!(hashes(&loader(&run), "", 5), whole.0, "{text:?}");
        assert!(std::fs::read_to_string(&path).unwrap().starts_with(first));
    }
    std::fs::write(&path, "a novel\n").unwrap();
    let error = loader(&run).start().unwrap_err().to_string();
    assert!(error.contains("is no journal"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a novel\n");
}

#[test]
fn files_that_were_gone_before_they_were_taken_in_are_not_looked_for() {
    let (folder, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let journal = notes.path().join("journal");
    let run = live(folder.path(), &journal);
    generate(options(folder.path(), 12));
    let first = loader(&run);
    next(&first, "");
    first.stop();
    std::fs::remove_file(folder.path().join("training.3.gz")).unwrap();
    let text = std::fs::read_to_string(&journal).unwrap();
    let refused = loader(&run);
    let error = (0..400).find_map(|_| refused.next("", Some(PATIENCE)).err()).unwrap().to_string();
    assert!(error.contains("`training.3.gz` (source 2) is gone"), "{error}");
    refused.stop();
    // As a run writes that found it gone.
    let text = without_checksums(&text);
    let mut lines: Vec<&str> = text.lines().collect();
    lines.insert(2, r#"{"gone":{"loader":"load","files":[2]}}"#);
    std::fs::write(&journal, lines.join("\n") + "\n").unwrap();
    let again = loader(&run);
    hashes(&again, "", 40);
    assert_eq!(of_pool(&again, "chunks_total"), 11);
}

/// The error that a loader ends with.
fn ends(loader: &DataLoader) -> String {
    (0..200)
        .find_map(|_| match loader.next("", Some(PATIENCE)) {
            Ok(Next::Batch(_)) => None,
            Ok(_) => panic!("neither a batch nor an error"),
            Err(error) => Some(error.to_string()),
        })
        .unwrap()
}

#[test]
fn what_came_after_the_state_and_has_left_is_named_and_left_out_by_choice() {
    let (folder, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let at = |name: &str| notes.path().join(name);
    let run = |name: &str| Lc0Preset { pool: 40, reservoir: Some(0), seed: Some(11), ..live(folder.path(), &at(name)) };
    generate(options(folder.path(), 12));
    let original = loader(&run("journal"));
    hashes(&original, "", 3);
    original.save(&at("state")).unwrap();
    generate(ChessOptions { first: 50, ..options(folder.path(), 3) });
    let mut rows = Vec::new();
    while of_pool(&original, "chunks_total") < 15 {
        rows.extend(ids(&next(&original, "").unwrap()));
    }
    (0..150).for_each(|_| rows.extend(ids(&next(&original, "").unwrap())));
    let lost = |source: u64| original.source_path(source).unwrap().as_str() == "training.51.gz";
    let expected: Vec<_> = rows.iter().copied().filter(|(source, ..)| !lost(*source)).collect();
    assert!(expected.len() < rows.len());
    original.stop();
    std::fs::remove_file(folder.path().join("training.51.gz")).unwrap();
    let again = |name: &str| {
        std::fs::copy(at("journal"), at(name)).unwrap();
        loader(&run(name))
    };
    let refused = again("refused");
    refused.load(&at("state"), Missing::Refuse).unwrap();
    let text = ends(&refused);
    assert!(text.contains("`training.51.gz`") && text.contains("missing = \"skip\""), "{text}");
    let text = ends(&again("without a state"));
    assert!(text.contains("`training.51.gz`") && text.contains("cannot start again without it"), "{text}");
    let skips = again("skips");
    skips.load(&at("state"), Missing::Skip).unwrap();
    let found: Vec<_> = (0..100).flat_map(|_| ids(&next(&skips, "").unwrap())).collect();
    assert_eq!(found, expected[..found.len()]);
}
