//! What runs find of an earlier one: nothing, a journal, a state, or both.

use std::collections::HashSet;
use std::io::Write;

use gristmill_runtime::runtime::journal::Journal;
use serde_json::json;

use super::*;
use crate::pipeline::draw::recorded::Recorded;
use crate::pipeline::loader::launch::tests::still::{Still, games, options};
use crate::pipeline::plan::plan;
use crate::preset::{Lc0Preset, Weighted, lc0};

fn file(id: u64, name: &str) -> Recorded {
    Recorded { id, name: name.to_owned(), size: 5, mtime: Some(1), version: None, bytes: None }
}

/// A config with this journal, and the loader stage that it has.
fn config(journal: Option<&Path>) -> (DataLoaderConfig, String) {
    let directories = vec![Weighted { directory: "a".into(), weight: 1.0 }];
    let config = lc0(&Lc0Preset { directories, ..Lc0Preset::default() }).unwrap();
    let config = DataLoaderConfig { journal: journal.map(Path::to_owned), ..config };
    let loader = plan(&config).unwrap().logs[0].stage.clone();
    (config, loader)
}

fn recall(config: &DataLoaderConfig, state: Option<LoaderState>) -> Result<Recall> {
    Recall::new(config, &plan(config).unwrap(), state.map(|state| (Arc::new(state), Missing::Refuse)))
}

/// A journal with two files of a first scan, of which one was gone, and one that came later.
fn journal(folder: &Path, loader: &str, seed: u64) -> PathBuf {
    let path = folder.join("journal");
    let admission = Admission { at: 9, id: 5, old: Some(0), chunks: 1 };
    let events = [
        Event::Seed(seed),
        Event::Initial { loader: loader.to_owned(), files: vec![file(0, "a"), file(1, "b")] },
        Event::Gone { pool: Some("pool".into()), lanes: vec![], loader: loader.to_owned(), files: vec![1] },
        Event::Admit { pool: "pool".into(), lane: None, loader: loader.to_owned(), file: file(5, "c"), admission },
    ];
    Journal::opened(&path, Opening::New).unwrap().append(&events).unwrap();
    path
}

/// A state of two outputs that knows two files.
fn state(loader: &str, journals: Vec<JournalMark>) -> LoaderState {
    let files: Vec<_> = [file(0, "a"), file(3, "b")].iter().map(|file| serde_json::to_value(file).unwrap()).collect();
    let reservoir = json!({"inputs": "", "sources": "", "rows": ""});
    let drawer = json!({"at": 9, "sources": "AA", "chunks": "AQ"});
    let branch = json!({"head": 9, "taken": 0, "drawn": 9, "admissions": [], "drawer": drawer});
    let lane = json!({"join": [0, [1.0]], "reservoir_draws": 0, "reservoir": reservoir, "branches": [branch]});
    let mut state: LoaderState = serde_json::from_value(json!({
        "gristmill_state": 4, "of": "stream", "config": {}, "seed": 7, "files": {loader: files},
        "outputs": {"train": {"batch": 3, "lanes": {"0": lane}}, "test": {"batch": 8, "lanes": {}}},
    }))
    .unwrap();
    state.journals = journals;
    state
}

#[test]
fn a_run_without_a_past_begins_at_the_beginning() {
    let (config, loader) = config(None);
    let recall = recall(&config, None).unwrap();
    assert!(!recall.goes_on() && !recall.waits_for_scan() && recall.files(&loader).is_none());
    assert_eq!((recall.seed, recall.how(), recall.opening), (None, "started", Opening::New));
    assert_eq!((recall.next_batches(), recall.first_batch("train")), (None, 0));
    assert_eq!((recall.marks(&config), recall.kept().with(&[])), (vec![], Some(vec![])));
}

#[test]
fn a_run_that_saved_no_state_is_done_again_as_its_journal_tells() {
    let folder = tempfile::tempdir().unwrap();
    let loader = config(None).1;
    let path = journal(folder.path(), &loader, 7);
    let (mut config, _) = config(Some(&path));
    for replay in [false, true] {
        config.replay = replay;
        let recall = recall(&config, None).unwrap();
        assert!(!recall.goes_on() && recall.waits_for_scan());
        let how = if replay {
            "started to replay a journal"
        } else {
            "started again from the beginning, as the journal tells"
        };
        assert_eq!((recall.seed, recall.how(), recall.opening), (Some(7), how, Opening::Again));
        let past = recall.files(&loader).unwrap();
        assert_eq!(past.files, [file(0, "a"), file(1, "b"), file(5, "c")]);
        assert_eq!((past.later, past.fixed, past.next), ([5].into(), replay, 6));
        assert!(recall.untold(&path).is_empty() && recall.next_batches().is_none());
    }
    config.seed = Some(8);
    config.replay = false;
    let e = recall(&config, None).unwrap_err().to_string();
    assert!(e.contains("a run with seed 7, not 8"), "{e}");
}

#[test]
fn a_run_that_resumes_knows_the_files_of_its_state_and_of_its_journal() {
    let folder = tempfile::tempdir().unwrap();
    let loader = config(None).1;
    let path = journal(folder.path(), &loader, 7);
    let (mut config, _) = config(Some(&path));
    let place = Journal::read_to::<Event>(&path).unwrap().1;
    let beside = JournalMark::new(1, 2, place);
    let recalled = recall(&config, Some(state(&loader, vec![JournalMark::new(0, 1, place), beside.clone()]))).unwrap();
    assert!(recalled.goes_on() && recalled.waits_for_scan());
    assert_eq!((recalled.seed, recalled.how()), (Some(7), "started where an earlier run stood"));
    let next = BTreeMap::from([("test".to_owned(), 8), ("train".into(), 3)]);
    assert_eq!(
        (recalled.next_batches(), recalled.first_batch("test"), recalled.first_batch("other")),
        (Some(next), 8, 0)
    );
    let past = recalled.files(&loader).unwrap();
    assert_eq!(past.files, [file(0, "a"), file(3, "b"), file(5, "c")], "under the ids of the state");
    assert_eq!((past.later, past.fixed, past.next), ([].into(), false, 6));
    let again = recalled.untold(&path);
    assert_eq!(again, [Event::Known { loader: loader.clone(), files: vec![file(3, "b")] }]);
    assert_eq!(recalled.marks(&config), [beside], "of ranks of another number");
    assert_eq!(recalled.kept().with(&[]), Some(vec![0]));

    config.replay = true;
    let e = recall(&config, Some(state(&loader, Vec::new()))).unwrap_err().to_string();
    assert!(e.contains("a replay begins at the beginning"), "{e}");
    config.replay = false;
    std::fs::remove_file(&path).unwrap();
    journal(folder.path(), &loader, 8);
    let e = recall(&config, Some(state(&loader, Vec::new()))).unwrap_err().to_string();
    assert!(e.contains("they are of different runs"), "{e}");
}

/// What a file is now, under an id.
fn recorded(still: &Still, name: &str, id: u64) -> Recorded {
    let file = still.roster().files().into_iter().find(|file| file.name == name).unwrap();
    Recorded { id, ..file }
}

fn write(path: &Path, events: &[Event]) {
    Journal::opened(path, Opening::New).unwrap().append(events).unwrap();
}

fn came(pool: &str, at: u64, file: Recorded) -> Event {
    let admission = Admission { at, id: file.id, old: None, chunks: 1 };
    Event::Admit { pool: pool.into(), lane: None, loader: "load".into(), file, admission }
}

#[test]
fn what_came_after_the_state_and_no_branch_took_in_is_taken_first_with_what_it_replaces() {
    let (folder, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    games(folder.path(), 1, 2, None);
    let options = options(&[folder.path()]);
    let state = Still::new(&lc0(&options).unwrap()).begun().state();
    let first = state.files["load"].clone();
    games(folder.path(), 50, 1, None);
    std::fs::copy(folder.path().join("training.50.gz"), folder.path().join("training.2.gz")).unwrap();
    std::fs::File::options()
        .append(true)
        .open(folder.path().join("training.2.gz"))
        .unwrap()
        .write_all(&[0; 9])
        .unwrap();
    let now = Still::new(&lc0(&options).unwrap());
    now.search();
    assert!(now.roster().ready());
    let path = notes.path().join("journal");
    let events = [
        Event::Seed(3),
        Event::Initial { loader: "load".into(), files: first },
        came("another", 1, recorded(&now, "training.50.gz", 2)),
        came("another", 2, file(3, "training.99.gz")),
        came("another", 3, recorded(&now, "training.2.gz", 4)),
    ];
    write(&path, &events);
    let config = lc0(&Lc0Preset { journal: Some(path), ..options }).unwrap();
    let again = Still::resumed(&config, state, Missing::Skip);
    again.search();
    assert!(again.roster().ready());
    let untaken = again.recall().untaken(again.roster(), &VecDeque::new(), &HashSet::new());
    assert_eq!(untaken, [(2, None), (4, Some(1))], "nor is what has left among them");
}

/// The state of a chain with the branches of its first lane changed.
fn changed(still: &Still, change: impl FnOnce(&mut Vec<serde_json::Value>)) -> LoaderState {
    let mut state = serde_json::to_value(still.state()).unwrap();
    change(state["outputs"][""]["lanes"]["0"]["branches"].as_array_mut().unwrap());
    serde_json::from_value(state).unwrap()
}

#[test]
fn what_is_opened_before_the_start_is_the_window_and_what_came_before_the_next_draw() {
    let folder = tempfile::tempdir().unwrap();
    games(folder.path(), 1, 4, None);
    let config = lc0(&Lc0Preset { pool: 2, ..options(&[folder.path()]) }).unwrap();
    let original = Still::new(&config).begun();
    let state = changed(&original, |branches| {
        branches[0]["head"] = 5.into();
        branches[0]["admissions"] = json!([{"at": 4, "id": 0, "chunks": 1}, {"at": 5, "id": 1, "chunks": 1}]);
    });
    let again = Still::resumed(&config, state, Missing::Refuse);
    again.search();
    assert!(again.roster().ready());
    let mut opened = Containers::default();
    assert!(again.recall().opens(again.chain(), again.outages(), &mut opened).unwrap());
    let ids: BTreeSet<u64> = opened.0.keys().copied().collect();
    assert_eq!(ids, [0, 2, 3].into());
}

#[test]
fn containers_of_all_inputs_and_lanes_are_kept_open_and_one_that_left_meanwhile_is_lost() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    games(one.path(), 1, 12, Some(1));
    games(two.path(), 50, 12, Some(1));
    let config = lc0(&Lc0Preset { lanes: Some(4), ..options(&[one.path(), two.path()]) }).unwrap();
    let original = Still::new(&config);
    original.search();
    original.batches(1);
    for left in [false, true] {
        let again = Still::resumed(&config, original.state(), Missing::Refuse);
        again.search();
        assert!(again.rosters().iter().all(|roster| roster.ready()));
        let tar = std::fs::read_dir(one.path()).unwrap().next().unwrap().unwrap();
        if left {
            std::fs::remove_file(tar.path()).unwrap();
        }
        let mut opened = Containers::default();
        let mut opens = || again.recall().opens(again.chain(), again.outages(), &mut opened).unwrap();
        assert!((0..300).any(|_| (opens(), again.idle()).0));
        let closed: Vec<u64> = opened.0.iter().filter(|(_, open)| open.is_none()).map(|(id, _)| *id).collect();
        assert_eq!((opened.0.len(), closed.len()), (24, usize::from(left)));
        let lacks = |id: &u64| again.roster().lacks(*id).map(|(_, why)| why);
        assert_eq!(closed.iter().find_map(lacks), left.then(|| "is gone".to_owned()));
    }
}

#[test]
fn a_journal_tells_each_input_what_came_after_its_own_draws_and_what_waits_goes_on_waiting() {
    let (one, two, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    games(one.path(), 1, 3, None);
    games(two.path(), 50, 3, None);
    let options = options(&[one.path(), two.path()]);
    let original = Still::new(&lc0(&options).unwrap());
    original.search();
    original.batches(1);
    let second = original.rosters()[1].files();
    let state = changed(&original, |branches| {
        (branches[0]["drawn"], branches[1]["drawn"]) = (1000.into(), 0.into());
        branches[0]["waiting"] = json!([[1, null]]);
    });
    let path = notes.path().join("journal");
    let of_second = match came("pool_2", 500, second[0].clone()) {
        Event::Admit { pool, lane, file, admission, .. } => {
            Event::Admit { pool, lane, loader: "load_2".into(), file, admission }
        }
        other => other,
    };
    write(&path, &[Event::Seed(3), came("pool", 500, recorded(&original, "training.2.gz", 1)), of_second]);
    let config = lc0(&Lc0Preset { journal: Some(path), ..options }).unwrap();
    let again = Still::resumed(&config, state, Missing::Refuse);
    again.search();
    assert!(again.rosters().iter().all(|roster| roster.ready()));
    again.recall().put_into(again.chain()).unwrap();
    let inner = again.chain().lock();
    let of = |branch: usize| inner.branches[branch].replay.iter().map(|told| told.at).collect::<Vec<_>>();
    assert_eq!((of(0), of(1)), (vec![], vec![500]), "the state has all that came before its draws");
    assert_eq!(inner.branches[0].waiting, [(1, None)]);
    assert_eq!([0, 1].map(|branch| inner.branches[branch].not_before), [501; 2]);
}

/// A run where it is to begin, once its searches have found what is there.
fn put(still: Still) -> Still {
    still.search();
    assert!(still.rosters().iter().all(|roster| roster.ready()));
    still.recall().put_into(still.chain()).unwrap();
    still
}

/// A state of before the first window. What had come since was taken for a part of the first scan, and other batches followed.
#[test]
fn a_window_that_was_not_begun_begins_with_the_files_of_the_first_scan() {
    let (folder, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    games(folder.path(), 1, 8, None);
    let options = options(&[folder.path()]);
    let first = Still::new(&lc0(&options).unwrap());
    first.search();
    let (mut state, files) = (first.state(), first.roster().files());
    games(folder.path(), 50, 3, None);
    let now = Still::new(&lc0(&options).unwrap());
    now.search();
    let path = notes.path().join("journal");
    let events = [
        Event::Seed(3),
        Event::Initial { loader: "load".into(), files },
        came("pool", 20, recorded(&now, "training.50.gz", 8)),
        Event::Reached { pool: "pool".into(), lane: None, at: 40 },
    ];
    write(&path, &events);
    let config = lc0(&Lc0Preset { journal: Some(path), ..options }).unwrap();
    let batches = put(Still::new(&config)).batches(8);
    for life in 1..=3 {
        let again = put(Still::resumed(&config, state, Missing::Refuse));
        state = again.state();
        assert!(again.batches(8) == batches, "life {life}");
    }
}
