//! Scans, files that are away and a room that is full -> what a reader begins, waits for and reports, without threads.

use gristmill_runtime::runtime::journal::{Journal, Opening};
use gristmill_stages::config::IoErrors;

use crate::pipeline::draw::event::Event;
use crate::pipeline::loader::launch::tests::still::{Still, games, options};
use crate::pipeline::resume::vanished::{Lost, Missing};
use crate::preset::{Lc0Preset, lc0};

#[test]
fn a_scan_that_ends_without_a_result_ends_the_stream() {
    let folder = tempfile::tempdir().unwrap();
    let still = Still::blind(&lc0(&options(&[folder.path()])).unwrap());
    let e = still.next().unwrap_err();
    assert!(e.contains("the first scan did not complete"), "{e}");
    assert!(still.next().unwrap().is_none(), "and that is all");
}

#[test]
fn one_reader_takes_the_first_scan_in() {
    let folder = tempfile::tempdir().unwrap();
    games(folder.path(), 1, 3, None);
    let still = Still::new(&lc0(&options(&[folder.path()])).unwrap());
    still.search();
    still.chain().lock().branches[0].starting = true;
    still.turn();
    assert!(still.chain().lock().branches[0].drawer.is_none(), "another reader is at it");
}

#[test]
fn no_row_flows_before_every_input_has_its_first_scan() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    games(one.path(), 1, 3, None);
    games(two.path(), 50, 3, None);
    let mut both = options(&[one.path(), two.path()]);
    both.directories[0].weight = 1e9;
    let still = Still::new(&lc0(&both).unwrap());
    still.search();
    still.chain().lock().branches[1].starting = true;
    assert_eq!(still.next().unwrap_err(), "no batch", "another reader takes the second scan in");
    assert!(still.chain().lock().branches[0].drawer.is_some());
    still.chain().lock().branches[1].starting = false;
    assert!(still.next().unwrap().is_some());
}

#[test]
fn a_file_of_the_first_scan_that_left_before_any_draw_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    games(folder.path(), 1, 10, Some(5));
    let still = Still::new(&lc0(&options(&[folder.path()])).unwrap());
    still.search();
    let tar = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_file(tar).unwrap();
    still.search();
    still.next().unwrap().unwrap();
    assert_eq!(still.chain().lock().branches[0].drawer.as_ref().unwrap().live(), 5);
}

/// Batches until the window has this number of chunks.
fn fills(still: &Still, chunks: u64) {
    let live = || still.chain().lock().branches[0].drawer.as_ref().unwrap().live();
    for _ in 0..20 {
        still.next().unwrap().unwrap();
        if live() == chunks {
            return;
        }
    }
    panic!("{} chunks in place of {chunks}", live());
}

#[test]
fn what_a_first_admission_found_gone_is_another_file_wherever_it_is_found() {
    for (back, early) in [("a.tar", false), ("b/c.tar", false), ("b/c.tar", true)] {
        let (folder, aside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        games(folder.path(), 1, 10, Some(5));
        let tar = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let (first, away) = (folder.path().join("a.tar"), aside.path().join("away"));
        std::fs::rename(tar, &first).unwrap();
        std::fs::create_dir(folder.path().join("b")).unwrap();
        let still = Still::new(&lc0(&options(&[folder.path()])).unwrap());
        still.search();
        let files = still.roster().files();
        if early {
            still.made();
        }
        std::fs::rename(&first, &away).unwrap();
        // A network file system, or a queue that was full.
        for _ in 0..10 {
            still.unnoticed();
            still.turn();
        }
        fills(&still, 5);
        std::fs::rename(&away, folder.path().join(back)).unwrap();
        still.search();
        still.forget();
        still.search();
        fills(&still, 10);
        let again = Still::resumed(&still.config, still.state(), Missing::Refuse);
        again.search();
        assert!(again.roster().ready());
        again.chain().restore(&still.chain().state(), &Lost::default()).unwrap();
        assert!(still.batches(3) == again.batches(3));

        // A run that begins again, and ended before it had found it.
        let loader = still.roster().loader.clone();
        let gone = files.iter().find(|file| file.name == "a.tar").unwrap().id;
        let journal = aside.path().join("journal");
        let events = [
            Event::Seed(3),
            Event::Initial { loader: loader.clone(), files },
            Event::Gone { loader, files: vec![gone] },
        ];
        Journal::opened(&journal, Opening::New).unwrap().append(&events).unwrap();
        let options = Lc0Preset { journal: Some(journal), ..options(&[folder.path()]) };
        let again = Still::new(&lc0(&options).unwrap()).begun();
        assert_eq!(again.chain().lock().branches[0].drawer.as_ref().unwrap().live(), 5);
        fills(&again, 10);
    }
}

#[test]
fn a_stream_that_does_not_wait_ends_with_the_error_of_a_read() {
    let folder = tempfile::tempdir().unwrap();
    games(folder.path(), 1, 1, None);
    let config = lc0(&Lc0Preset { io_errors: IoErrors::Raise, ..options(&[folder.path()]) }).unwrap();
    let still = Still::new(&config).begun();
    let game = folder.path().join("training.1.gz");
    std::fs::remove_file(&game).unwrap();
    std::fs::create_dir(&game).unwrap();
    let e = still.next().unwrap_err();
    assert!(e.contains("training.1.gz"), "{e}");
    assert!(still.next().unwrap().is_none(), "once");
}

#[test]
fn the_chunk_of_the_next_row_is_read_where_there_is_no_room() {
    let folder = tempfile::tempdir().unwrap();
    games(folder.path(), 1, 4, None);
    let still = Still::new(&lc0(&options(&[folder.path()])).unwrap()).begun();
    let mut held = Vec::new();
    for size in [1 << 20, 1 << 10, 1] {
        let stored = || still.chain().lock().stored(size, |_| false);
        held.extend(std::iter::from_fn(stored));
    }
    assert!(still.next().unwrap().is_some(), "beside {} buffers", held.len());
}
