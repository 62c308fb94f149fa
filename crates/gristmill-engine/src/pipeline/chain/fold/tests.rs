//! Rows of made-up blocks through lanes -> batches, copies and slots, without a chain.

use gristmill_runtime::runtime::seed::Key;
use gristmill_runtime::runtime::sheet::SheetPool;
use gristmill_stages::config::Skip;
use gristmill_stages::stage::RowStep;
use gristmill_stages::stage::join::{Exhausted, Join};
use gristmill_stages::stage::sample::{Reservoir, Sampler};

use super::*;
use crate::pipeline::chain::refill::{For, Unread};

/// A lane with a reservoir, or without any step.
fn lane(reservoir: usize) -> LaneFold {
    let key = Key::new(1, "fold");
    let sampler = || Box::new(Sampler::new(Reservoir::new(key, reservoir), false)) as Box<dyn RowStep>;
    let steps = (reservoir > 0).then(sampler).into_iter().collect();
    LaneFold::new(Join::new(key, vec![1.0], Exhausted::Stop), steps)
}

fn fold(lane: LaneFold, batch_size: usize, slots: u32, gaps: &[&str]) -> Fold {
    let gaps: Vec<Skip> = gaps.iter().map(|gap| gap.parse().unwrap()).collect();
    let skips = Skips::of(&gaps, &[String::new()]).unwrap().remove(0);
    Fold::new(vec![lane], false, batch_size, slots, skips)
}

fn block(rows: usize) -> Arc<Block> {
    Arc::new(Block { rows: vec![0; rows], ..Block::default() })
}

fn sheet(rows: usize) -> Sheet {
    SheetPool::new(rows, vec![4], 1).take().unwrap()
}

/// Copies what is to be copied, and frees the slots of rows that go nowhere.
fn copy(fold: &mut Fold) {
    fold.flush();
    fold.fills.drain(..).map(|fill| fill.number).collect::<Vec<_>>().into_iter().for_each(|n| fold.filled(n));
    while let Some(slot) = fold.discarded() {
        fold.free.push(slot);
    }
}

#[test]
fn a_batch_is_encoded_in_pieces_once_its_rows_are_copied() {
    let mut fold = fold(lane(0), 100, 300, &[]);
    assert_eq!((fold.is_open(), fold.undelivered()), (false, 0));
    fold.open(sheet(100));
    assert_eq!((fold.is_open(), fold.undelivered(), fold.most(0, 1000)), (true, 1, 100));
    let block = block(150);
    fold.rows((0, 0), &block, 0..30, Vec::new);
    assert_eq!([1000, 20].map(|left| fold.most(0, left)), [70, 20]);
    fold.rows((0, 0), &block, 30..100, Vec::new);
    assert!(!fold.is_open());
    fold.open(sheet(100));
    assert_eq!(fold.undelivered(), 2);
    let rest = fold.free.split_off(7);
    assert_eq!(fold.most(0, 50), 7, "no more than there are slots for");
    fold.free.extend(rest);
    fold.flush();
    assert_eq!(fold.fills.iter().map(|fill| fill.rows.len()).collect::<Vec<_>>(), [100], "one copy of one block");
    assert!(fold.ready_piece().is_none(), "nothing is copied so far");
    fold.filled(0);
    let pieces: Vec<_> =
        std::iter::from_fn(|| fold.ready_piece()).map(|piece| (piece.first, piece.rows.len())).collect();
    assert_eq!(pieces, [(0, PIECE_ROWS), (PIECE_ROWS, 100 - PIECE_ROWS)]);
}

#[test]
fn the_slot_of_a_row_that_goes_nowhere_is_free_once_it_was_filled() {
    let mut fold = fold(lane(0), 4, 8, &["0..1"]);
    fold.rows((0, 0), &block(3), 0..3, Vec::new);
    assert_eq!(fold.discarded(), None, "its copy is not a task so far");
    fold.flush();
    assert_eq!(fold.discarded(), None, "its copy is not done");
    fold.filled(0);
    assert_eq!(std::iter::from_fn(|| fold.discarded()).count(), 3);
}

#[test]
fn a_short_gap_leaves_the_mark_with_the_consumer() {
    let mut fold = fold(lane(2), 2, 16, &["1..5"]);
    let give = |fold: &mut Fold, rows: usize| {
        fold.rows((0, 0), &block(rows), 0..rows, Vec::new);
        copy(fold);
    };
    fold.open(sheet(2));
    give(&mut fold, 2);
    give(&mut fold, 2);
    fold.took(0);
    assert_eq!(fold.delivered.batch, 1);
    (0..3).for_each(|_| give(&mut fold, 2));
    assert_eq!((fold.delivered.batch, fold.marks.len()), (1, 3), "batches that are left out are not in its hands");
}

#[test]
fn what_is_noted_of_a_long_gap_is_bounded() {
    let mut fold = fold(lane(8), 1024, 4096, &["1..3000"]);
    let block = block(1024);
    fold.batcher = Batcher::new(1024, 1);
    for _ in 0..2500 {
        let mut taken = 0;
        while taken < 1024 {
            let n = fold.most(0, 1024 - taken);
            fold.rows((0, 0), &block, taken..taken + n, Vec::new);
            taken += n;
        }
        copy(&mut fold);
        assert!(fold.noted < MOST_CHANGES + 4096);
    }
    assert!(fold.outgoing.is_empty() && fold.delivered.batch > 1 && fold.skips.has(fold.delivered.batch));
}

#[test]
fn a_row_that_is_read_again_has_its_position() {
    let mut fold = Fold::new(vec![lane(0)], true, 4, 4, Skips::default());
    fold.keyed([(3, 70), (1, 50)].into_iter());
    assert_eq!(fold.run.keys, [0, 50, 0, 70]);
}

#[test]
fn a_batch_that_completes_the_rows_of_a_pass_knows_of_its_end() {
    for (left, ends) in [(0, 1), (1, 0)] {
        let mut fold = fold(lane(0), 4, 8, &[]);
        fold.passes = Some(Passes::default());
        fold.open(sheet(4));
        fold.rows((0, 0), &block(4), 0..4, Vec::new);
        fold.drawn(1, 2, left);
        fold.took(0);
        assert_eq!((fold.delivered.batch, fold.delivered.passes), (1, ends), "{left} rows are left");
    }
}

/// A fold whose only batch waits for a row of a restored reservoir, and the slot of that row.
fn waiting() -> (Fold, u32) {
    let mut fold = fold(lane(0), 1, 4, &[]);
    let slot = fold.free.pop().unwrap();
    let mut unread = Unread::default();
    unread.row((0, 7, 0, 2), slot);
    fold.refills = Refills::new(unread.by_chunk(), false);
    fold.open(sheet(1));
    fold.give(0, Row { slot, branch: 0, from: Provenance { source: 7, chunk: 0, frame: 2 } }, Vec::new);
    (fold, slot)
}

#[test]
fn a_batch_that_waits_for_a_row_names_its_chunk_and_ends_with_its_error() {
    let (mut fold, slot) = waiting();
    assert_eq!((fold.urgent_refill(), fold.break_off().is_none()), (Some(0), true));
    assert_eq!(fold.refills.next_to_fetch(For::Batches, Some(0), |_| false), Some(0));
    fold.refills.failed(0, Error::State("it is damaged".into()), &[(2, slot)]);
    assert_eq!(fold.urgent_refill(), None);
    assert!(fold.break_off().is_some_and(|e| e.to_string().contains("it is damaged")));
    assert!(matches!(fold.ready(), Some(Outgoing::Fault(_))) && matches!(fold.ready(), Some(Outgoing::End)));
}
