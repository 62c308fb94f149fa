//! What runs find of an earlier one: nothing, a journal, a state, or both.

use gristmill_runtime::runtime::journal::Journal;
use serde_json::json;

use super::*;
use crate::pipeline::draw::recorded::Recorded;
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
        Event::Gone { loader: loader.to_owned(), files: vec![1] },
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
        assert_eq!((past.later, past.gone, past.fixed, past.next), ([5].into(), [1].into(), replay, 6));
        assert!(recall.renumbered(&path).is_empty() && recall.next_batches().is_none());
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
    assert_eq!((past.later, past.gone, past.fixed, past.next), ([].into(), [].into(), false, 6));
    let again = recalled.renumbered(&path);
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
