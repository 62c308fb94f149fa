//! Journals of a few events: of one rank and of several, of one run and of two, cut, written over and with other ids.

use std::fs;

use gristmill_stages::config::{ChunkSourceSplitterConfig, StageConfig};
use serde_json::json;

use super::*;

fn file(id: u64, name: &str) -> Recorded {
    Recorded { id, name: name.to_owned(), size: 5, mtime: Some(1), version: None, bytes: None }
}

fn initial(files: &[(u64, &str)]) -> Event {
    Event::Initial { loader: "load".into(), files: files.iter().map(|(id, name)| file(*id, name)).collect() }
}

fn admit(at: u64, id: u64, name: &str, old: Option<u64>) -> Event {
    let admission = Admission { at, id, old, chunks: 1 };
    Event::Admit { pool: "pool".into(), lane: None, loader: "load".into(), file: file(id, name), admission }
}

fn write(path: &Path, events: &[Event]) {
    Journal::opened(path, Opening::New).unwrap().append(events).unwrap();
}

fn read(path: &Path) -> Result<History> {
    History::read(path, Files::new())
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    (folder, path)
}

fn ranks(rank: u32, world: u32) -> Ranks {
    Ranks { rank, world, lanes: world }
}

fn earlier(path: &Path, rank: u32, world: u32) -> Result<Earlier> {
    Earlier::of(path, ranks(rank, world), &["load"])
}

/// A state of one output before batch 3 that rests on these journals.
fn state(journals: Vec<JournalMark>) -> LoaderState {
    let mut state: LoaderState = serde_json::from_value(json!({
        "gristmill_state": 4, "of": "stream", "config": {}, "seed": 7, "files": {},
        "outputs": {"train": {"batch": 3, "lanes": {}}},
    }))
    .unwrap();
    state.journals = journals;
    state
}

#[test]
fn the_journals_of_all_ranks_tell_of_one_run_under_common_ids() {
    let (_folder, path) = folder();
    let known = [(0, "a"), (1, "b")];
    let reached = |at| Event::Reached { pool: "pool".into(), lane: None, at };
    let events = [admit(9, 2, "c", None), reached(12), admit(5, 3, "d", Some(1))];
    write(&of_rank(&path, 0, 2), &[&[Event::Seed(7), initial(&known)], &events[..]].concat());
    // The other one found the same first, and gave the two that came later other ids.
    let events = [
        admit(9, 3, "c", None),
        reached(10),
        Event::Gone { pool: Some("pool".into()), lanes: vec![1], loader: "load".into(), files: vec![0] },
    ];
    write(&of_rank(&path, 1, 2), &[&[Event::Seed(7), initial(&known)], &events[..]].concat());
    let history = read(&path).unwrap();
    let files: Vec<(u64, &str)> = history.files["load"].iter().map(|file| (file.id, file.name.as_str())).collect();
    assert_eq!(files, [(0, "a"), (1, "b"), (2, "c"), (3, "d")]);
    let told: Vec<(u64, u64, Option<u64>)> =
        history.admissions[&("pool".into(), None)].iter().map(|told| (told.at, told.id, told.old)).collect();
    assert_eq!(told, [(5, 3, Some(1)), (9, 2, None)], "in the order of draws, and what both tell once");
    assert_eq!((history.seed, history.agreed, history.went_on), (Some(7), true, false));
    let gone = |lane| history.gone("load", &("pool".into(), lane)).collect::<Vec<u64>>();
    assert_eq!((&history.first["load"], gone(Some(1)), gone(Some(0))), (&BTreeSet::from([0, 1]), vec![0], vec![]));
    assert_eq!((history.reached[&("pool".into(), None)], history.next("load"), history.next("other")), (12, 4, 0));
    // What this run would write first to the journal of the second: `c` has another id.
    let again = history.untold(&of_rank(&path, 1, 2));
    let [Event::Known { loader, files }] = &again[..] else { panic!("{again:?}") };
    assert_eq!((loader.as_str(), files.iter().map(|file| file.id).collect::<Vec<_>>()), ("load", vec![2, 3]));
    assert!(history.untold(&of_rank(&path, 0, 2)).is_empty());
}

/// A process took a state when it had read ahead, and crashed before a batch: its journal does not say what it read.
#[test]
fn a_journal_is_told_what_a_state_alone_says_was_read() {
    const A: &str = "000000000000000a";
    const B: &str = "000000000000000b";
    let (_folder, path) = folder();
    let read = |id: u64, digest: &str| (id, digest.to_owned());
    let told = Event::Read { loader: "load".into(), files: vec![read(0, A)] };
    write(&path, &[Event::Seed(7), initial(&[(0, "a"), (1, "b"), (2, "c")]), told]);
    let of_state = |id, name, bytes: &str| Recorded { bytes: Some(bytes.to_owned()), ..file(id, name) };
    let files = vec![of_state(0, "a", A), of_state(1, "b", B), file(2, "c")];
    let untold = History::read(&path, [("load".to_owned(), files)].into()).unwrap().untold(&path);
    assert_eq!(untold, [Event::Read { loader: "load".into(), files: vec![read(1, B)] }]);
    Journal::opened(&path, Opening::Again).unwrap().append(&untold).unwrap();
    assert_eq!(read_bytes(&path), [A, B, ""]);
}

/// What the journal alone says was read of each file.
fn read_bytes(path: &Path) -> Vec<String> {
    let files = read(path).unwrap().files.remove("load").unwrap();
    files.into_iter().map(|file| file.bytes.unwrap_or_default()).collect()
}

#[test]
fn ranks_that_found_other_files_first_and_journals_of_two_runs_are_told_apart() {
    let (_folder, path) = folder();
    write(&of_rank(&path, 0, 2), &[Event::Seed(7), initial(&[(0, "a"), (1, "b")])]);
    write(&of_rank(&path, 1, 2), &[Event::Seed(7), initial(&[(0, "a")])]);
    assert!(!read(&path).unwrap().agreed);
    // Each starts again with its own; one of another number cannot.
    let own = earlier(&path, 1, 2).unwrap();
    let run = own.run.unwrap();
    assert_eq!((own.opening, run.agreed, run.files["load"].len()), (Opening::Again, true, 1));
    let e = earlier(&path, 0, 1).unwrap_err().to_string();
    assert!(e.contains("found different files first"), "{e}");
    write(&of_rank(&path, 2, 3), &[Event::Seed(8)]);
    let e = read(&path).unwrap_err().to_string();
    assert!(e.contains("of another run than those beside it"), "{e}");
}

#[test]
fn a_run_without_a_state_begins_its_journal_by_what_that_tells() {
    for (events, opening, begins_again) in [
        (None, Opening::New, false),
        (Some(vec![]), Opening::Fresh, false),
        (Some(vec![Event::Seed(7)]), Opening::Fresh, false),
        (Some(vec![Event::Seed(7), initial(&[])]), Opening::Again, true),
    ] {
        let (_folder, path) = folder();
        events.iter().for_each(|events| write(&path, events));
        let found = earlier(&path, 0, 1).unwrap();
        assert_eq!((found.opening, found.run.is_some()), (opening, begins_again), "{events:?}");
        if let Some(run) = found.run {
            assert!(run.files["load"].is_empty(), "a first scan that found nothing is one, too");
        }
    }
    // One that resumed from a state is resumed, although it has no first scan.
    let (_folder, path) = folder();
    let at = BTreeMap::from([("train".to_owned(), 3)]);
    let known = Event::Known { loader: "load".into(), files: vec![file(4, "a")] };
    write(&path, &[Event::From { seed: 7, at: at.clone() }, known]);
    let found = earlier(&path, 0, 1).unwrap();
    assert_eq!((found.opening, found.run.is_none()), (Opening::Again, true));
    let history = read(&path).unwrap();
    assert_eq!((history.seed, history.went_on, &history.begun[&path]), (Some(7), true, &at));
    // Files that get other ids in the midst of a journal are no sign of that.
    let (_folder, path) = folder();
    let known = Event::Known { loader: "load".into(), files: vec![file(4, "a")] };
    write(&path, &[Event::Seed(7), initial(&[(0, "a")]), known]);
    assert!(!read(&path).unwrap().went_on);
}

#[test]
fn what_is_no_journal_is_left_alone() {
    for (text, is_taken) in [
        ("", true),
        ("{\"se", true),
        ("{\"seed\":7}\n", true),
        ("{\"from\":{\"seed\":7,\"at\":{}}}\n", true),
        ("0123456789ab", true),
        ("0123456789abcdef {\"fr", true),
        ("0123456789abcdef", true),
        ("\0\0\0", true),
        ("\0\0\0 \"files\":[]}}\n0123456789abcdef {\"seed\":7}\n", true),
        ("\0\0\0\u{1}CD001", false),
        ("notes", false),
        ("{\"format\":1}\n", false),
        ("0123456789abcdef.{\"seed\":7}\n", false),
        ("0123456789abcdeg {\"seed\":7}\n", false),
        ("0123456789abcdef {\"format\":1}\n", false),
        ("0123456789abcde {\"seed\":7}\n", false),
    ] {
        let (_folder, path) = folder();
        fs::write(&path, text).unwrap();
        assert_eq!(is_journal(&path).unwrap(), is_taken, "{text:?}");
    }
    let (_folder, path) = folder();
    fs::write(&path, "notes").unwrap();
    assert!(earlier(&path, 0, 1).unwrap_err().to_string().contains("is no journal; take another name"));
    assert_eq!(fs::read(&path).unwrap(), b"notes");
    fs::write(&path, [0; 300]).unwrap();
    let lost = earlier(&path, 0, 1).unwrap();
    assert!(lost.run.is_none() && lost.opening == Opening::Fresh, "{lost:?}");
    fs::File::create(&path).unwrap().set_len(MOST_LOST + 1).unwrap();
    assert!(!is_journal(&path).unwrap(), "a file that is larger than first lines are is not read for minutes");
}

#[test]
fn names_of_ranks_are_told_from_others_beside_them() {
    let (folder, path) = folder();
    for name in
        ["journal", "journal.0-of-2", "journal.1-of-2", "journal.x-of-2", "journal.1-of-x", "journal.old", "other"]
    {
        fs::write(folder.path().join(name), "").unwrap();
    }
    let names: Vec<_> = family(&path).unwrap().iter().map(|path| path.file_name().unwrap().to_owned()).collect();
    assert_eq!(names, ["journal", "journal.0-of-2", "journal.1-of-2"]);
    let rank = |name: &str| rank_of(&path, &folder.path().join(name));
    let ranks = ["journal", "journal.1-of-2", "journal.5-of-16", "journal.old", "other"].map(rank);
    assert_eq!(ranks, [Some((0, 1)), Some((1, 2)), Some((5, 16)), None, None]);
}

#[test]
fn a_state_rests_on_journals_that_reach_as_far_as_then() {
    let (_folder, path) = folder();
    write(&path, &[Event::Seed(7), initial(&[(0, "a")])]);
    let history = read(&path).unwrap();
    let mark = |history: &History| JournalMark::new(0, 1, history.read[&path]);
    let then = state(vec![mark(&history)]);
    history.check_reached(&path, &then).unwrap();
    assert_eq!(history.marks(&path, 2), [mark(&history)]);
    assert_eq!(history.marks(&path, 1), [], "it is the journal of this run itself");
    Journal::opened(&path, Opening::Again).unwrap().append(&[admit(3, 1, "b", None)]).unwrap();
    let later = read(&path).unwrap();
    later.check_reached(&path, &then).unwrap();
    let latest_mark = mark(&later);
    let found = latest([latest_mark.clone(), mark(&history), JournalMark { rank: 1, ..mark(&history) }]);
    assert_eq!(found, [latest_mark.clone(), JournalMark { rank: 1, ..mark(&history) }]);
    let same = JournalMark { hash: "another".into(), ..latest_mark.clone() };
    let first = latest([latest_mark.clone(), same]);
    assert_eq!(first, std::slice::from_ref(&latest_mark), "of two that reach as far");
    let rested = state(vec![latest_mark]);
    let e = history.check_reached(&path, &rested).unwrap_err().to_string();
    assert!(e.contains("it was cut: it has 2 whole lines, and the state rests on 3 lines"), "{e}");
    // Another journal in its place: of another run, and of one that says something else.
    for (events, what) in [
        ([Event::Seed(8), initial(&[(0, "a")])], "it is not the journal that its run wrote"),
        ([Event::Seed(7), initial(&[(0, "b")])], "it says something else before byte"),
    ] {
        fs::remove_file(&path).unwrap();
        write(&path, &events);
        let e = read(&path).unwrap().check_reached(&path, &then).unwrap_err().to_string();
        assert!(e.contains(what) && e.contains("put a copy of it back"), "{e}");
    }
    // The journal of a run that went on from this very state, or from another one.
    for (batch, is_taken) in [(3, true), (4, false)] {
        fs::remove_file(&path).unwrap();
        write(&path, &[Event::From { seed: 7, at: BTreeMap::from([("train".to_owned(), batch)]) }]);
        assert_eq!(read(&path).unwrap().check_reached(&path, &then).is_ok(), is_taken, "batch {batch}");
    }
    fs::remove_file(&path).unwrap();
    read(&path).unwrap().check_reached(&path, &then).unwrap();
}

#[test]
fn damage_and_draws_that_no_run_reaches_are_told_with_the_file() {
    for at in [BOUND, BOUND + 1] {
        let (_folder, path) = folder();
        write(&path, &[Event::Seed(7), admit(at, 1, "a", None)]);
        let e = read(&path).unwrap_err().to_string();
        assert!(e.contains("journal: draw 1759218604441") && e.contains("is impossible"), "{e}");
    }
    let (_folder, path) = folder();
    write(&path, &[Event::Seed(7), admit(BOUND - 1, 1, "a", None), initial(&[])]);
    assert!(read(&path).is_ok());
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"pool\"", "\"pond\"", 1)).unwrap();
    let e = read(&path).unwrap_err().to_string();
    assert!(e.contains("put a copy of it back, or resume from a saved state"), "{e}");
}

#[test]
fn a_journal_of_games_that_went_to_other_sides_is_refused() {
    let splitter = |by| {
        let splitter = ChunkSourceSplitterConfig { by, ..ChunkSourceSplitterConfig::default() };
        let stage =
            StageConfig { name: "split".into(), chunk_source_splitter: Some(splitter), ..StageConfig::default() };
        DataLoaderConfig { stage: vec![stage], ..DataLoaderConfig::default() }
    };
    let (_folder, path) = folder();
    History::default().check_splits(&splitter(SplitBy::Name)).unwrap();
    write(&path, &[Event::Seed(7)]);
    let by_file = read(&path).unwrap();
    by_file.check_splits(&splitter(SplitBy::File)).unwrap();
    let e = by_file.check_splits(&splitter(SplitBy::Name)).unwrap_err().to_string();
    assert!(e.contains("whose `split` did not go by name") && e.contains(NAMED), "{e}");
    let (_folder, path) = folder();
    write(&path, &[Event::Seed(7), Event::Split { stage: "split".into(), by: SplitBy::Name }]);
    let by_name = read(&path).unwrap();
    by_name.check_splits(&splitter(SplitBy::Name)).unwrap();
    let e = by_name.check_splits(&splitter(SplitBy::File)).unwrap_err().to_string();
    assert!(e.contains("did not go by file") && !e.contains(NAMED), "{e}");
}
