//! New runs, runs that resume, and files that are away -> what a launch writes first, records and reports.

pub(in crate::pipeline) mod still;

use gristmill_runtime::runtime::journal::Journal;
use gristmill_stages::config::SplitBy;

use self::still::{Still, games, options};
use super::*;
use crate::pipeline::resume::vanished::Missing;
use crate::preset::{Lc0Preset, lc0};

/// What a run writes to its journal before its first draw.
fn first_events(mut still: Still) -> Vec<Event> {
    still.search();
    assert!(still.launch.scanned().unwrap());
    let path = still.config.journal.clone().unwrap();
    drop(still.launch.finish(&still.config).unwrap());
    Journal::read_to::<Event>(&path).unwrap().0
}

#[test]
fn a_journal_begins_with_seed_splits_and_the_files_of_the_first_scan() {
    let (folder, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    games(folder.path(), 1, 2, None);
    for by in [SplitBy::File, SplitBy::Name] {
        let journal = Some(notes.path().join(format!("{by:?}")));
        let split = vec![("a".to_owned(), 1), ("b".to_owned(), 1)];
        let run = Lc0Preset { split, split_by: by, journal, ..options(&[folder.path()]) };
        let mut events = first_events(Still::new(&lc0(&run).unwrap())).into_iter();
        assert_eq!(events.next(), Some(Event::Seed(3)));
        if by == SplitBy::Name {
            assert_eq!(events.next(), Some(Event::Split { stage: "split".into(), by }));
        }
        let Some(Event::Initial { files, .. }) = events.next() else { panic!("no first scan") };
        assert_eq!(files.iter().map(|file| file.id).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(events.next(), None, "all files are of the first scan");
    }
}

#[test]
fn a_run_that_resumes_with_a_new_journal_writes_the_files_that_it_knows_even_if_there_are_none() {
    for files in [0, 2] {
        let (folder, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        games(folder.path(), 1, files, None);
        let run = Lc0Preset { journal: Some(notes.path().join("journal")), ..options(&[folder.path()]) };
        let original = Still::new(&lc0(&Lc0Preset { journal: None, ..run.clone() }).unwrap()).begun();
        let events = first_events(Still::resumed(&lc0(&run).unwrap(), original.state(), Missing::Refuse));
        let [Event::From { seed: 3, .. }, Event::Known { files: known, .. }] = &events[..] else {
            panic!("{events:?}")
        };
        assert_eq!(known.len() as u64, files);
    }
}

#[test]
fn a_ledger_names_the_batches_that_are_left_out_and_nothing_where_there_are_none() {
    let folder = tempfile::tempdir().unwrap();
    for (skip, recorded) in [(vec![], None), (vec!["2..4".parse().unwrap()], Some(1))] {
        let config = DataLoaderConfig { skip, ..lc0(&options(&[folder.path()])).unwrap() };
        let still = Still::new(&config);
        let plan = crate::pipeline::plan::plan(&config).unwrap();
        let begin = begin(&config, &plan, 3, still.recall()).unwrap();
        assert_eq!(begin.skip.values().next().map(Vec::len), recorded);
    }
}

#[test]
fn what_cannot_be_read_is_counted_before_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let still = Still::new(&lc0(&options(&[folder.path()])).unwrap());
    assert_eq!(still.launch.io_errors().waiting, 0);
    let away = gristmill_format::Error::new(Kind::Away, "its folder is away");
    still.launch.observer.outages.failed(7, &away).unwrap();
    assert_eq!(still.launch.io_errors().waiting, 1);
}

#[test]
fn only_a_watch_that_was_asked_for_waits_for_the_first_game() {
    let folder = tempfile::tempdir().unwrap();
    for (watch, waits) in [(None, false), (Some(true), true), (Some(false), false)] {
        let still = Still::new(&lc0(&Lc0Preset { watch, ..options(&[folder.path()]) }).unwrap());
        assert_eq!(still.roster().log().waits(), waits);
    }
}
