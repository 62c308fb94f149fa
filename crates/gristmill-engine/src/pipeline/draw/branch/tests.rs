//! Files that are there, come, leave and are damaged -> what a branch takes in, copies, forgets and counts, without threads.

use std::sync::Mutex;

use gristmill_runtime::runtime::journal::{Journal, Opening};

use super::*;
use crate::pipeline::loader::launch::tests::still::{Still, games, options};
use crate::pipeline::plan::ChainPlan;
use crate::preset::{Lc0Preset, lc0};

/// A loader of a folder whose window is begun.
fn begun(options: &Lc0Preset) -> Still {
    Still::new(&lc0(options).unwrap()).begun()
}

fn of(still: &Still, part: impl FnOnce(&mut Branch)) {
    part(&mut still.chain().lock().branches[0]);
}

fn plan_all(branch: &mut Branch, ahead: usize) {
    while branch.plan(ahead, None, &mut Vec::new()).unwrap() {}
    assert_eq!(branch.window.len(), ahead);
}

#[test]
fn arrivals_are_known_until_they_are_taken_in_at_the_first_draw_that_may_have_them() {
    let folder = tempfile::tempdir().unwrap();
    games(folder.path(), 1, 4, None);
    let still = begun(&options(&[folder.path()]));
    games(folder.path(), 50, 2, None);
    still.search();
    of(&still, |branch| {
        branch.waiting.push((9, Some(1)));
        assert_eq!(branch.not_taken(), [(9, Some(1)), (4, None), (5, None)]);
        branch.waiting.clear();
        branch.not_before = 2;
        for at in 0..4 {
            assert!(branch.admit(None).unwrap());
            let taken: Vec<_> = branch.admissions.iter().map(|taken| (taken.id, taken.at)).collect();
            assert_eq!(taken, if at < 2 { vec![] } else { vec![(4, 2), (5, 2)] });
            branch.drawer.as_mut().unwrap().draw().unwrap();
        }
        assert_eq!(branch.not_taken(), []);
    });
}

#[test]
fn an_empty_window_takes_in_what_comes_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let still = begun(&options(&[folder.path()]));
    games(folder.path(), 1, 1, None);
    still.search();
    of(&still, |branch| {
        branch.not_before = 7;
        assert!(branch.admit(None).unwrap());
        assert_eq!(branch.admissions.len(), 1);
    });
}

#[test]
fn what_an_earlier_run_took_in_and_cannot_be_opened_is_named_with_advice_only_where_it_has_left() {
    for left in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        games(folder.path(), 1, 4, None);
        let still = begun(&options(&[folder.path()]));
        let path = folder.path().join("games.tar");
        std::fs::write(&path, [7; 2048]).unwrap();
        still.search();
        if left {
            std::fs::remove_file(&path).unwrap();
            still.search();
        }
        of(&still, |branch| {
            branch.replay.push_back(Admission { at: 0, id: 4, old: None, chunks: 1 });
            // What is not there may have been moved: the search tells in a moment.
            let mut tries = (0..300).map(|_| (branch.admit(None), still.idle()).0);
            let e = tries.find_map(Result::err).unwrap().to_string();
            assert!(e.contains("games.tar") && e.contains("missing = \"skip\"") == left, "{e}");
        });
    }
}

#[test]
fn copies_of_the_draws_are_rare_and_go_once_no_state_needs_them() {
    let folder = tempfile::tempdir().unwrap();
    games(folder.path(), 1, 4, None);
    let still = begun(&options(&[folder.path()]));
    let at = |branch: &Branch| branch.snapshots.iter().map(Drawer::at).collect::<Vec<_>>();
    of(&still, |branch| {
        plan_all(branch, 1500);
        assert_eq!(at(branch), [0, SNAPSHOT_DRAWS]);
        branch.forget_before(SNAPSHOT_DRAWS - 1);
        assert_eq!(at(branch), [0, SNAPSHOT_DRAWS]);
        branch.forget_before(SNAPSHOT_DRAWS);
        assert_eq!(at(branch), [SNAPSHOT_DRAWS]);
    });
}

#[test]
fn a_chunk_whose_position_is_kept_is_not_handed_out() {
    let folder = tempfile::tempdir().unwrap();
    games(folder.path(), 1, 2, None);
    let still = begun(&Lc0Preset { position_cache: Some(20), ..options(&[folder.path()]) });
    of(&still, |branch| {
        plan_all(branch, 10);
        let cached = branch.window.iter().filter(|ticket| matches!(ticket.phase, Phase::Cached)).count() as u64;
        assert!(cached > 1, "two games are read for their next uses, too");
        assert_eq!(branch.handed(), (10 - cached, 10 - cached));
    });
}

#[test]
fn one_lane_counts_the_chunks_that_come_for_all() {
    let folder = tempfile::tempdir().unwrap();
    games(folder.path(), 1, 5, Some(5));
    games(folder.path(), 50, 1, None);
    let still = begun(&Lc0Preset { lanes: Some(4), ..options(&[folder.path()]) });
    let (tar, game) = (still.roster().open(0).unwrap(), still.roster().open(1).unwrap());
    let (tar, game) = if tar.len() == 5 { (tar, game) } else { (game, tar) };
    let counting = still.chain().plan.branches.iter().find(|plan| plan.counts_anchor).unwrap();
    let other = still.chain().plan.branches.iter().find(|plan| !plan.counts_anchor).unwrap();
    assert_eq!([None, Some(1)].map(|taken| arrived(counting, &tar, taken)), [Some(5); 2]);
    assert_eq!([None, Some(1)].map(|taken| arrived(other, &tar, taken)), [None, Some(1)]);
    let alone = BranchPlan { lane: None, ..counting.clone() };
    assert_eq!([None, Some(1)].map(|taken| arrived(&alone, &tar, taken)), [None, Some(1)]);
    let split = lc0(&Lc0Preset { split: vec![("a".into(), 1), ("b".into(), 1)], ..options(&[folder.path()]) }).unwrap();
    let sides = crate::pipeline::plan::plan(&split).unwrap().chains;
    let side = |side: &ChainPlan| BranchPlan { side: side.branches[0].side.clone(), ..counting.clone() };
    let mut found: Vec<_> = sides.iter().map(|of| arrived(&side(of), &game, None)).collect();
    found.sort();
    assert_eq!(found, [None, Some(1)], "one game is on one side");
}

#[test]
fn a_journal_is_ahead_of_the_draws_by_a_pass_within_bounds() {
    let (folder, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    games(folder.path(), 1, 4, None);
    let journal = Arc::new(Mutex::new(Journal::opened(&notes.path().join("journal"), Opening::New).unwrap()));
    let still = begun(&options(&[folder.path()]));
    of(&still, |branch| while branch.plan(150, Some(&journal), &mut Vec::new()).unwrap() {});
    let events = Journal::read_to::<Event>(&notes.path().join("journal")).unwrap().0;
    let reached = |event: &Event| if let Event::Reached { at, .. } = event { Some(*at) } else { None };
    let reached: Vec<_> = events.iter().filter_map(reached).collect();
    assert_eq!(reached, [1, 2, 3].map(|passes| passes * LEAST_REACH));
}
