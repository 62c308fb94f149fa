//! Passes that probe a tablebase: one of our own that answers as the test says, and counts the probes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cozy_chess::Board;
use gristmill_format::Kind;
use gristmill_format::chess::record::V6_BYTES;
use gristmill_format::chess::rescore::{Deblunder, Settings, Tablebase};
use gristmill_format::chess::syzygy::{Coverage, Material, TableKind, Unprobed, Wdl};
use gristmill_format::source::Chunk;

use super::played::{START, edit, frame, narrow, records, rescore_with};

/// Answers for positions of up to `most` men.
#[derive(Debug)]
pub struct Oracle {
    coverage: Coverage,
    wdl: fn(&Board) -> Result<Wdl, Unprobed>,
    dtz: fn(&Board) -> i32,
    asked: AtomicUsize,
}

impl Oracle {
    pub fn new(most_men: usize, wdl: fn(&Board) -> Result<Wdl, Unprobed>, dtz: fn(&Board) -> i32) -> Arc<Self> {
        let coverage = Coverage { most_men, ..Coverage::default() };
        Arc::new(Oracle { coverage, wdl, dtz, asked: AtomicUsize::new(0) })
    }
}

impl Tablebase for Oracle {
    fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    fn wdl(&self, board: &Board) -> Result<Wdl, Unprobed> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        (self.wdl)(board)
    }

    fn dtz(&self, board: &Board) -> Result<i32, Unprobed> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Ok((self.dtz)(board))
    }
}

pub fn white_wins(board: &Board) -> Result<Wdl, Unprobed> {
    Ok(if board.side_to_move() == cozy_chess::Color::White { Wdl::Win } else { Wdl::Loss })
}

fn results(chunk: &Chunk) -> Vec<(f32, f32)> {
    (0..chunk.frames).map(|i| (frame(chunk, i).result_q(), frame(chunk, i).result_d())).collect()
}

fn plies(chunk: &Chunk) -> Vec<f32> {
    (0..chunk.frames).map(|i| frame(chunk, i).plies_left()).collect()
}

#[test]
fn a_capture_into_the_tables_rewrites_all_that_came_before() {
    let game = records("8/8/2k5/8/3p4/4K3/8/4R3 w - - 4 60", "e3d4 c6d6 e1e5");
    let tables = Oracle::new(3, white_wins, |_| 10);
    let (done, tally) = rescore_with(&game, narrow(), Some(tables)).unwrap();
    assert_eq!(results(&done), [(1.0, 0.0), (-1.0, 0.0), (1.0, 0.0), (-1.0, 0.0)]);
    // The last two stand between captures: 1 and 2 plies after, and 10 to go.
    assert_eq!(tally.get("results_by_tablebase"), Some(4));
    assert_eq!(tally.get("plies_left_by_tablebase"), Some(4));
    assert_eq!(plies(&done), [11.0, 10.0, 10.0, 10.0]);
}

#[test]
fn a_draw_by_table_is_a_draw_for_both() {
    let game = {
        let mut game = records("8/8/2k5/8/3p4/4K3/8/4R3 w - - 4 60", "e3d4 c6d6 e1e5");
        for i in 0..4 {
            edit(&mut game, i, |f| _ = f.set_result_q(if i % 2 == 0 { 1.0 } else { -1.0 }).set_result_d(0.0));
        }
        game
    };
    for wdl in [|_: &Board| Ok(Wdl::Draw), |_: &Board| Ok(Wdl::CursedWin), |_: &Board| Ok(Wdl::BlessedLoss)] {
        let (done, _) = rescore_with(&game, narrow(), Some(Oracle::new(3, wdl, |_| 120))).unwrap();
        assert_eq!(results(&done), [(0.0, 1.0); 4]);
        assert!((0..4).all(|i| frame(&done, i).result_q().to_bits() == 0), "0 without a sign");
    }
}

/// A frame whose fifty-move counter is `rule50`, three plies into a game whose result was `result` for White.
fn between(rule50: u8, result: f32, dtz: fn(&Board) -> i32) -> (f32, f32) {
    let fen = format!("8/8/2k5/8/8/4K3/8/4R3 w - - {} 60", rule50 - 3);
    let mut game = records(&fen, "e3d4 c6d6 e1e5");
    for i in 0..4 {
        let q = if i % 2 == 0 { result } else { -result };
        edit(&mut game, i, |f| _ = f.set_result_q(q).set_result_d(if q == 0.0 { 1.0 } else { 0.0 }));
    }
    let (done, _) = rescore_with(&game, narrow(), Some(Oracle::new(3, white_wins, dtz))).unwrap();
    results(&done)[3]
}

#[test]
fn between_captures_the_fifty_move_rule_decides() {
    // The tables say that White wins; Black is to move in the tested frame.
    assert_eq!(between(3, 1.0, |_| -10), (-1.0, 0.0), "as it was");
    assert_eq!(between(3, 0.0, |_| -10), (-1.0, 0.0), "drawn, but won in time");
    assert_eq!(between(3, -1.0, |_| -10), (-1.0, 0.0), "lost, but won in time");
    assert_eq!(between(50, 0.0, |_| -10), (0.0, 1.0), "the game does not go back to the last capture");
    assert_eq!(between(50, -1.0, |_| -10), (0.0, 1.0), "and neither side gets the win");
    assert_eq!(between(95, 1.0, |_| -10), (0.0, 1.0), "won, but not in time any more");
    assert_eq!(between(91, 1.0, |_| -10), (-1.0, 0.0), "just in time, or by a rounded count");
    assert_eq!(between(3, 0.0, |_| -96), (0.0, 1.0), "drawn, and maybe not won in time");
}

#[test]
fn the_first_position_is_judged_by_no_tablebase_and_may_be_a_blunder() {
    // Three men from the start. White saw a win, and gave the rook away; the tables do not look at the position before.
    let mut game = records("8/8/2k5/8/8/4K3/8/4R3 w - - 3 60", "e3d4 c6d6");
    edit(&mut game, 0, |f| _ = f.set_best_q(0.9).set_played_q(0.1).set_best_d(0.05).set_best_m(20.0));
    edit(&mut game, 1, |f| _ = f.set_best_q(0.9).set_played_q(0.1));
    let settings = |frames: &[u8]| {
        let deblunder = Some(Deblunder { threshold: 0.1, width: 0.06 });
        let tables = Oracle::new(3, |_| Ok(Wdl::Draw), |_| 0);
        rescore_with(frames, Settings { deblunder, ..narrow() }, Some(tables)).unwrap()
    };
    for frames in [3, 1] {
        let (done, tally) = settings(&game[..frames * V6_BYTES]);
        assert_eq!((tally.get("blunders"), tally.get("frames_deblundered")), (Some(1), Some(1)), "{frames} frames");
        assert_eq!((results(&done)[0], plies(&done)[0]), ((0.9, 0.05), 20.0));
        assert!(results(&done)[1..].iter().all(|result| *result == (0.0, 1.0)), "what moves led to is judged");
    }
}

#[test]
fn a_repetition_speaks_against_progress() {
    let mut game = records("8/8/2k5/8/3p4/4K3/8/4R3 w - - 4 60", "e3d4 c6d6 e1e5 d6c6 e5e1 c6d6 e1e5 d6c6 e5e1");
    for i in 0..10 {
        edit(&mut game, i, |f| _ = f.set_result_q(0.0).set_result_d(1.0));
    }
    // The capture is not known to the tables, what follows is: results change until positions repeat.
    let wdl = |b: &Board| {
        if b.halfmove_clock() == 0 { Err(Unprobed::Missing(Material::BARE, TableKind::Wdl)) } else { white_wins(b) }
    };
    let settings = Settings { allow_missing_tables: true, ..narrow() };
    let (done, tally) = rescore_with(&game, settings, Some(Oracle::new(3, wdl, |_| 10))).unwrap();
    let drawn: Vec<bool> = results(&done).iter().map(|(q, _)| *q == 0.0).collect();
    assert_eq!(drawn, [true, true, false, false, false, true, true, true, true, true]);
    assert!(tally.get("missing_tables") > Some(0));
}

#[test]
fn nothing_is_asked_where_tables_cannot_know() {
    let castling = records("4k3/8/8/8/8/8/8/4K2R w K - 0 1", "h1h2 e8e7");
    let tables = Oracle::new(3, white_wins, |_| 1);
    let (_, _) = rescore_with(&castling, narrow(), Some(Arc::clone(&tables) as Arc<dyn Tablebase>)).unwrap();
    assert!(tables.asked.load(Ordering::Relaxed) > 0, "once the right is gone");
    let opening = records(START, "e2e4 e7e5");
    let tables = Oracle::new(7, white_wins, |_| 1);
    rescore_with(&opening, narrow(), Some(Arc::clone(&tables) as Arc<dyn Tablebase>)).unwrap();
    assert_eq!(tables.asked.load(Ordering::Relaxed), 0);
    let rights = records("r3k3/8/8/8/8/8/8/4K3 w q - 0 1", "e1e2 a8a2 e2e3");
    let tables = Oracle::new(3, white_wins, |_| 1);
    let (_, _) = rescore_with(&rights, narrow(), Some(Arc::clone(&tables) as Arc<dyn Tablebase>)).unwrap();
    assert_eq!(tables.asked.load(Ordering::Relaxed), 8, "two positions without rights, for result and plies left");
}

#[test]
fn bare_kings_and_no_tables_are_harmless() {
    let kings = records("8/8/2k5/8/8/4K3/8/8 w - - 4 60", "e3d4 c6d6");
    rescore_with(&kings, narrow(), None).unwrap();
    let (done, _) = rescore_with(&kings, narrow(), Some(Oracle::new(2, |_| Ok(Wdl::Draw), |_| 0))).unwrap();
    assert_eq!(results(&done), [(0.0, 1.0); 3]);
    // Three men, decisive, and no tables at all: the original ends there by a null pointer.
    let game = records("8/8/2k5/8/8/4K3/8/4R3 w - - 0 60", "e3d4 c6d6");
    let (done, tally) = rescore_with(&game, narrow(), None).unwrap();
    assert_eq!((results(&done), tally.get("probes")), (vec![(0.0, 1.0); 3], Some(0)));
}

#[test]
fn missing_and_damaged_tables_refuse_the_game_unless_allowed() {
    let game = records("8/8/2k5/8/8/4K3/8/4R3 w - - 0 60", "e3d4 c6d6");
    let missing = |_: &Board| Err(Unprobed::Missing(Material::parse("KRvK").unwrap(), TableKind::Wdl));
    let damaged = |_: &Board| Err(Unprobed::Corrupt(gristmill_format::Error::new(Kind::Corrupt, "a value")));
    for (wdl, rule, count) in [
        (missing as fn(&Board) -> Result<Wdl, Unprobed>, "missing_table", "missing_tables"),
        (damaged, "corrupt_table", "corrupt_tables"),
    ] {
        let e = rescore_with(&game, narrow(), Some(Oracle::new(3, wdl, |_| 0))).unwrap_err();
        assert_eq!((e.kind(), e.place().frame), (Kind::Refused(rule), Some(1)), "{e}");
        let settings = Settings { allow_missing_tables: true, ..narrow() };
        let (done, tally) = rescore_with(&game, settings, Some(Oracle::new(3, wdl, |_| 0))).unwrap();
        assert_eq!((done.records(), tally.get(count)), (&game[..], Some(2)));
        let named: Vec<_> = tally.missing().collect();
        let expected = [("missing:KRvK.rtbw".to_owned(), 2)];
        assert_eq!(named, if count == "missing_tables" { &expected[..] } else { &[] });
    }
}

#[test]
fn the_fastest_wins_get_the_boost() {
    let game = records("8/8/8/8/8/2k5/7R/K7 w - - 0 1", "");
    // White wins whatever it does, fastest by Rh3+: as the defender counts, 4 plies after it and 8 after all else.
    let dtz = |b: &Board| if b.checkers().is_empty() { -8 } else { -4 };
    let tables = Oracle::new(3, white_wins, dtz);
    let settings = Settings { boost: 0.5, ..narrow() };
    let (done, tally) = rescore_with(&game, settings, Some(tables)).unwrap();
    let f = frame(&done, 0);
    let legal: Vec<f32> = f.probabilities().filter(|p| *p >= 0.0).collect();
    let (highest, rest) = (legal.iter().copied().fold(0.0, f32::max), 1.0 / legal.len() as f32 / 1.5);
    let boosted = legal.iter().filter(|p| **p == highest).count();
    assert!(boosted < 3 && (highest - (rest + 0.5 / boosted as f32 / 1.5)).abs() < 1e-6, "{boosted}: {highest}");
    assert_eq!(tally.get("policies_boosted"), Some(1));
    let lost = Oracle::new(3, |b| white_wins(b).map(|wdl| -wdl), |_| 8);
    let (done, _) = rescore_with(&game, Settings { boost: 0.5, ..narrow() }, Some(lost)).unwrap();
    let legal: Vec<f32> = frame(&done, 0).probabilities().filter(|p| *p >= 0.0).collect();
    assert!(legal.iter().all(|p| (p - 1.0 / legal.len() as f32).abs() < 1e-6), "a lost position boosts nothing");
}
