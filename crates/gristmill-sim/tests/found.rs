//! Worlds that found faults of production code, each as small as it was made: the faults do not come back.

use gristmill_engine::config::LastBatch;
use gristmill_sim::run::run;
use gristmill_sim::scenario::{Deed, Given, Scenario};

fn file(name: &str, content: u64, boards: usize) -> Given {
    Given { name: name.to_owned(), content, boards, damage: None }
}

/// A folder that a loader watches. The number decides which thread runs when.
fn world(seed: u64, files: &[(&str, u64, usize)], deeds: &[(u64, Deed)]) -> Scenario {
    Scenario {
        seed,
        files: files.iter().map(|(name, content, boards)| file(name, *content, *boards)).collect(),
        second: Vec::new(),
        weights: [1.0, 1.0],
        deeds: deeds.to_vec(),
        aim: None,
        crashes: Vec::new(),
        early: None,
        stale: 0,
        begins_again: false,
        torn: 0,
        stop_at: None,
        pool: Some(5),
        law: None,
        limit: None,
        epochs: 1,
        rate: Some(0.5),
        count: None,
        reservoir: 0,
        batch: 8,
        lanes: 1,
        ranks: (1, 0),
        last: LastBatch::Pad,
        threads: (1, 1),
        queue: 5,
        batches: 1,
        keeps: 0,
        watch: true,
        ledger: false,
    }
}

fn went_well(worlds: &[Scenario]) {
    for world in worlds {
        assert_eq!(run(world).failure, None, "{world:?}");
    }
}

/// The next process finds it by a listing that is older than the change, and cannot open it: it counted as never taken in.
#[test]
fn a_run_that_begins_again_leaves_no_file_out_that_it_drew_from() {
    let two = [("b/c/games6-1.bf", 1, 1), ("b/c/games25-3.bf", 3, 1)];
    let renamed =
        Scenario { pool: Some(3), batch: 18, queue: 3, ..world(3677, &two, &[(4, Deed::Rename(1)), (6, Deed::Stale)]) };
    let replaced = world(2552, &[("games3-1.bf", 1, 6)], &[(22, Deed::Replace(0, 1000)), (23, Deed::Stale)]);
    let replaced = Scenario { pool: Some(9), rate: Some(0.3), batch: 20, threads: (3, 3), queue: 3, ..replaced };
    let again = |world| Scenario { crashes: vec![3], begins_again: true, batches: 4, last: LastBatch::Keep, ..world };
    went_well(&[again(renamed), again(replaced)]);
}

/// A resumed run ended with a bare `not_found` where a file left between its listing and its opening.
#[test]
fn a_resumed_run_names_the_file_that_left_after_its_listing() {
    let vanished = world(4731, &[("b/c/games3-1.bf", 1, 1)], &[(20, Deed::Break(0, false)), (121, Deed::Vanish(0))]);
    let law = Some([3.0, 0.4, 1.0]);
    let vanished = Scenario { crashes: vec![5], pool: Some(4), law, batch: 6, queue: 3, batches: 7, ..vanished };
    let four = [("games29-1.bf", 1, 1), ("a/games11-3.bf", 3, 1), ("b/c/games2-4.bf", 4, 1), ("games14-5.bf", 5, 1)];
    let renamed = world(6938, &four, &[(52, Deed::Stale), (71, Deed::Rename(3))]);
    let (rate, count) = (None, Some(5));
    let renamed = Scenario { crashes: vec![8], pool: Some(11), rate, count, batch: 18, batches: 9, ..renamed };
    went_well(&[vanished, renamed]);
}

/// The digests of a ledger knew a file by the name that it had at that moment.
#[test]
fn a_renamed_file_keeps_its_digest() {
    let world = world(1137, &[("a/games23-1.bf", 1, 1)], &[(27, Deed::Rename(0))]);
    went_well(&[Scenario {
        crashes: vec![1],
        rate: Some(1.0),
        batch: 24,
        queue: 3,
        batches: 2,
        ledger: true,
        ..world
    }]);
}

/// A notice that led to a folder that was away was dropped, and the file came with the next regular listing.
#[test]
fn a_file_that_came_while_its_folder_was_away_comes_in_soon() {
    let late = Deed::Arrive(file("late16-2003.bf", 2003, 267));
    let world = world(4214, &[("games11-1.bf", 1, 1)], &[(3, Deed::Away), (399, late)]);
    went_well(&[Scenario { pool: Some(7), batch: 16, last: LastBatch::Drop, ..world }]);
}

/// A file that was moved while its folder was away counted as deleted before a listing told its new name, and never came.
#[test]
fn a_file_that_was_moved_while_its_folder_was_away_is_not_deleted() {
    let deeds = [(0, Deed::Throttle(16)), (33, Deed::Away), (78, Deed::Rename(0))];
    let world = world(406998, &[("a/games10-1.bf", 1, 1)], &deeds);
    went_well(&[Scenario { pool: Some(11), rate: Some(0.3), threads: (3, 2), ..world }]);
}

/// A read that was refused was made again by the name of the file, which another of the same size and time had by then.
#[test]
fn a_read_is_made_again_of_the_same_file_only() {
    let four = [("games15-1.bf", 1, 1), ("games3-2.bf", 2, 1), ("games4-3.bf", 3, 1), ("games25-4.bf", 4, 2)];
    let world = world(423542, &four, &[(6, Deed::Swap(3, 3003)), (7, Deed::Throttle(3))]);
    went_well(&[Scenario { last: LastBatch::Drop, ..world }]);
}

/// A state had forgotten a file that was replaced, and the journal's line of it was taken for one of the file that took its name.
#[test]
fn a_file_that_a_state_forgot_is_not_the_one_that_took_its_name() {
    let three = [("games13-1.bf", 1, 6), ("games10-2.bf", 2, 3), ("b/c/games6-3.bf", 3, 1)];
    let late = Deed::Arrive(file("late12-2000.bf", 2000, 299));
    let world = world(10302, &three, &[(18, Deed::Stall(120)), (37, Deed::Replace(2, 1002)), (113, late)]);
    let (law, rate) = (Some([1.0, 0.4, 0.75]), Some(0.07));
    let world = Scenario { crashes: vec![0], pool: Some(7), law, rate, lanes: 2, batches: 4, ..world };
    went_well(&[Scenario { batch: 14, threads: (3, 2), queue: 3, ..world }]);
}

/// Files that came before the very draw of a state's copy had left the window again, and were taken in once more.
#[test]
fn what_left_the_window_before_the_copy_is_not_taken_in_again() {
    let grows = |step, name: &str, content, boards| (step, Deed::Grow(file(name, content, boards)));
    let two = [grows(54, "games11-8.bf", 8, 30), grows(393, "games25-7.bf", 7, 528)];
    let deeds = [&[(2, Deed::Throttle(20))], &two[..]].concat();
    let grown = world(302222, &[("games1-1.bf", 1, 1)], &deeds);
    let (rate, count) = (None, Some(3));
    let grown = Scenario { crashes: vec![1], stale: 1, pool: Some(3), rate, count, batches: 2, ..grown };
    let late = |step, name: &str, content, boards| (step, Deed::Arrive(file(name, content, boards)));
    let three = [late(379, "late2-2000.bf", 2000, 36), late(381, "late29-2001.bf", 2001, 283)];
    let three = [&three[..], &[late(409, "late29-2002.bf", 2002, 112)]].concat();
    let deeds = [&[(0, Deed::Break(1, false)), (379, Deed::Replace(0, 1000))], &three[..]].concat();
    let came = world(648117, &[("a/games5-1.bf", 1, 1), ("games7-2.bf", 2, 1)], &deeds);
    let came = Scenario { crashes: vec![5], stale: 5, pool: Some(4), rate: Some(0.07), batch: 2, ..came };
    went_well(&[grown, Scenario { queue: 3, batches: 7, ..came }]);
}

/// A batch came to want a chunk that was fetched already. No worker decoded it before it woke by itself.
#[test]
fn a_worker_decodes_what_a_batch_came_to_want() {
    let three = [("b/c/games20-1.bf", 1, 1), ("games23-2.bf", 2, 21), ("games7-4.bf", 4, 18)];
    let five = [&three[..], &[("b/c/games15-5.bf", 5, 21), ("games16-6.bf", 6, 24)]].concat();
    let world = Scenario { pool: None, epochs: 3, watch: false, ..world(18228, &five, &[]) };
    let world = Scenario { crashes: vec![0], rate: Some(0.3), reservoir: 53, batch: 6, batches: 8, ..world };
    went_well(&[Scenario { threads: (1, 2), queue: 2, ..world }]);
}

/// A container that was replaced by one of the same size and time was read as the one before.
#[test]
fn a_file_of_the_same_size_and_time_is_told_by_what_was_read() {
    let world = world(101197, &[("games22-1.bf", 1, 1)], &[(15, Deed::Swap(0, 3000)), (21, Deed::Away)]);
    let (law, rate) = (Some([1.0, 0.4, 0.75]), Some(0.07));
    let world = Scenario { crashes: vec![6], law, rate, batch: 18, batches: 8, last: LastBatch::Keep, ..world };
    went_well(&[Scenario { threads: (4, 1), queue: 1, ..world }]);
}

/// A read that was refused, and made again by the file's name, was counted nowhere.
#[test]
fn a_read_that_was_made_again_is_counted() {
    let world = world(100921, &[("games25-1.bf", 1, 1)], &[(21, Deed::Throttle(1))]);
    went_well(&[Scenario { pool: Some(4), rate: Some(0.3), batch: 2, threads: (3, 1), ..world }]);
}

/// Young files that could not be checked were left out of the first scan, and a state that needs them was refused.
#[test]
fn young_files_are_waited_for_while_their_folder_is_away() {
    let world = world(201432, &[("b/c/games12-1.bf", 1, 191)], &[(44, Deed::Behind), (47, Deed::Away)]);
    let law = Some([6.0, 1.0, 0.75]);
    let world = Scenario { crashes: vec![5, 2], pool: Some(7), law, batch: 14, batches: 7, ..world };
    went_well(&[Scenario { last: LastBatch::Drop, ..world }]);
}

/// A process crashed before its first batch, and a file was replaced. The journal then said of one of the two records of that file alone what
/// was read, and batches had rows of the other.
#[test]
fn a_journal_says_what_was_read_of_every_record_of_a_file() {
    let deeds = [(4, Deed::Stall(186)), (25, Deed::Replace(0, 1000)), (102, Deed::Crash)];
    let world = world(100_055_560_136_759, &[("games27-1.bf", 1, 1)], &deeds);
    went_well(&[Scenario { pool: Some(9), rate: None, count: Some(8), batch: 12, queue: 3, ..world }]);
}

/// The same, where both have one size and time.
#[test]
fn a_forgotten_file_of_the_same_time_is_not_the_one_that_took_its_name() {
    let four = [("games0-1.bf", 1, 1), ("b/c/games20-2.bf", 2, 15), ("a/games17-3.bf", 3, 1), ("games24-4.bf", 4, 12)];
    let (law, rate) = (Some([2.0, 0.4, 1.0]), Some(0.07));
    let world =
        Scenario { pool: Some(2), law, rate, ..world(248_489_631_944_183, &four, &[(16, Deed::Swap(2, 3002))]) };
    let world = Scenario { crashes: vec![7, 8], stale: 6, reservoir: 43, batch: 14, batches: 12, ..world };
    went_well(&[Scenario { last: LastBatch::Drop, threads: (2, 3), ..world }]);
}

/// No page said that a file of which the window held a part counts whole for a rate limit.
#[test]
fn a_rate_limit_counts_whole_files() {
    let four = [("games2-1.bf", 1, 1), ("a/games13-2.bf", 2, 1), ("games27-3.bf", 3, 1), ("b/c/games6-6.bf", 6, 282)];
    let (rate, count, limit) = (None, Some(6), Some([3.0, 4.0, 0.0, f64::INFINITY]));
    let world = Scenario { pool: Some(3), rate, count, limit, ..world(5212, &four, &[]) };
    went_well(&[Scenario { last: LastBatch::Drop, ..world }]);
}
