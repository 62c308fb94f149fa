//! Scans, files that are away and a room that is full -> what a reader begins, waits for and reports, without threads.

use gristmill_runtime::runtime::journal::{Journal, Opening};
use gristmill_stages::config::{DataLoaderConfig, IoErrors};

use crate::pipeline::chain::Inner;
use crate::pipeline::draw::branch::Branch;
use crate::pipeline::draw::event::Event;
use crate::pipeline::loader::launch::tests::still::{Still, games, options};
use crate::pipeline::resume::journals::of_rank;
use crate::pipeline::resume::vanished::Missing;
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

fn live(still: &Still) -> u64 {
    still.chain().lock().branches[0].drawer.as_ref().unwrap().live()
}

/// Batches until the window has this number of chunks.
fn fills(still: &Still, chunks: u64) {
    for _ in 0..20 {
        still.next().unwrap().unwrap();
        if live(still) == chunks {
            return;
        }
    }
    panic!("{} chunks in place of {chunks}", live(still));
}

/// Puts a run where its state or its journal says, once its searches have found all that is there.
fn put(still: Still) -> Still {
    still.search();
    assert!(still.roster().ready());
    still.recall().put_into(still.chain()).unwrap();
    still
}

#[test]
fn what_a_first_admission_found_gone_is_taken_in_wherever_it_is_found() {
    let cases = [("a.tar", false), ("b/c.tar", false), ("b/c.tar", true)];
    for ((back, made), (rank, world)) in cases.into_iter().flat_map(|case| [(case, (0, 1)), (case, (1, 2))]) {
        let (folder, aside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        games(folder.path(), 1, 10, Some(5));
        let tar = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let (first, away) = (folder.path().join("a.tar"), aside.path().join("away"));
        std::fs::rename(tar, &first).unwrap();
        std::fs::create_dir(folder.path().join("b")).unwrap();
        let ranks = DataLoaderConfig {
            lanes: Some(world),
            rank: Some(rank),
            world_size: Some(world),
            ..lc0(&options(&[folder.path()])).unwrap()
        };
        let journal = of_rank(&aside.path().join("journal"), rank.into(), world.into());
        let whole = Still::new(&ranks).begun();
        let all = live(&whole);
        let still = Still::new(&DataLoaderConfig { journal: Some(aside.path().join("journal")), ..ranks.clone() });
        still.search();
        let files = still.roster().files();
        if made {
            still.made();
        }
        std::fs::rename(&first, &away).unwrap();
        // A network file system, or a queue that was full.
        for _ in 0..10 {
            still.unnoticed();
            still.turn();
        }
        still.next().unwrap().unwrap();
        let others = live(&still);
        assert!(others > 0 && others < all);
        let alone = still.state();
        // One of several ranks forgets nothing. A state of before the first scan does not say what it needs.
        if !made {
            still.search();
            still.forget();
            assert_eq!(still.roster().knows(still.chain().lock().branches[0].gone[0].0), world > 1);
        }
        std::fs::rename(&away, folder.path().join(back)).unwrap();
        still.search();
        fills(&still, all);
        let again = put(Still::resumed(&whole.config, still.state(), Missing::Refuse));
        assert!(still.batches(3) == again.batches(3));
        // Without a journal only the state says that it was to come.
        fills(&put(Still::resumed(&whole.config, alone, Missing::Refuse)), all);
        let told = Journal::read_to::<Event>(&journal).unwrap().0;
        let initial = Event::Initial { loader: still.roster().loader.clone(), files };
        let whole = of_rank(&aside.path().join("whole"), rank.into(), world.into());
        Journal::opened(&whole, Opening::New).unwrap().append(&[vec![Event::Seed(3), initial], told].concat()).unwrap();
        let journal = Some(aside.path().join("whole"));
        let begins = put(Still::new(&DataLoaderConfig { journal, ..ranks })).begun();
        assert_eq!(live(&begins), others, "as the journal tells");
        fills(&begins, all);
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

#[test]
fn large_buffers_go_from_chunk_to_chunk() {
    const SIZE: usize = 7 << 20;
    let folder = tempfile::tempdir().unwrap();
    games(folder.path(), 1, 4, None);
    let still = Still::new(&lc0(&options(&[folder.path()])).unwrap()).begun();
    let inner = &mut *still.chain().lock();
    let read = inner.stored(SIZE, |_| true).unwrap();
    let chunk = |inner: &mut Inner| {
        let mut chunk = inner.chunk();
        chunk.bytes = Vec::with_capacity(SIZE);
        chunk.takes(SIZE);
        chunk
    };
    let (used, unused) = (chunk(inner), chunk(inner));
    let memory = unused.bytes.as_ptr();
    inner.spare_chunks.push(unused);
    assert!(inner.has_room_to_decode(SIZE, true), "it is the turn of this chunk");
    assert_eq!(inner.spare_chunks.len(), 1, "the reserve holds both");
    assert!(inner.stored(SIZE, |_| false).is_none(), "it would take the reserve");
    let bytes = inner.stored(SIZE, |_| true).unwrap();
    assert!(bytes.as_ptr() == memory, "it waited for a turn");
    inner.spare_bytes.push(bytes);
    let small = inner.stored(SIZE / 8, |_| false).unwrap();
    assert!(small.capacity() == 0 && inner.spare_bytes.is_empty(), "it was in the way");
    let unused = chunk(inner);
    inner.spare_chunks.push(unused);
    assert!(
        !inner.has_room_to_decode(SIZE, false) && inner.spare_chunks.is_empty(),
        "what is not its turn needs all room"
    );
    drop((read, used, small));
}

#[test]
fn a_file_that_one_rank_found_gone_is_in_the_windows_of_the_others() {
    let (folder, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    games(folder.path(), 1, 10, Some(5));
    let config = DataLoaderConfig { lanes: Some(2), ..lc0(&options(&[folder.path()])).unwrap() };
    let lanes = |still: &Still| {
        let inner = still.chain().lock();
        let live = |branch: &Branch| branch.drawer.as_ref().unwrap().live();
        inner.branches.iter().map(live).collect::<Vec<u64>>()
    };
    let whole = Still::new(&config).begun();
    let (all, files, loader) = (lanes(&whole), whole.roster().files(), whole.roster().loader.clone());
    let pool = whole.chain().lock().branches[0].plan.stage.clone();
    let initial = [Event::Seed(3), Event::Initial { loader: loader.clone(), files: files.clone() }];
    let gone = Event::Gone { pool: Some(pool), lanes: vec![1], loader, files: vec![files[0].id] };
    let path = notes.path().join("journal");
    for (rank, events) in [initial.to_vec(), [&initial[..], &[gone]].concat()].into_iter().enumerate() {
        Journal::opened(&of_rank(&path, rank as u64, 2), Opening::New).unwrap().append(&events).unwrap();
    }
    let again = put(Still::new(&DataLoaderConfig { journal: Some(path), ..config })).begun();
    assert!(lanes(&again)[0] == all[0] && lanes(&again)[1] < all[1]);
    (0..4).for_each(|_| drop(again.next().unwrap().unwrap()));
    assert_eq!(lanes(&again), all);
}
