//! Quirks of the original, each off and on: what differs, and that it differs by this switch alone.

use std::sync::atomic::{AtomicI32, Ordering};

use gristmill_format::chess::record::V6_BYTES;
use gristmill_format::chess::rescore::{Compat, Deblunder, Quirk, Settings};
use gristmill_format::chess::{InputFormat, policy};

use super::played::{START, edit, frame, narrow, records, rescore, rescore_with};
use super::tables::{Oracle, white_wins};

fn canonical(records: &[u8], format: InputFormat) -> Vec<u8> {
    rescore(records, Settings { input_format: Some(format), ..narrow() }).unwrap().0.records().to_vec()
}

fn policy_index(from: u8, to: u8) -> f32 {
    policy::index(from, to, None).unwrap().into()
}

/// What a game shows of a quirk: a few numbers, or the name of the rule that refuses it.
fn shown(quirk: Quirk, compat: Compat) -> Result<Vec<f32>, &'static str> {
    let settings = Settings { compat, ..narrow() };
    match quirk {
        Quirk::Hectoplies => {
            // One ply later it is 54 or 53, and 48 plies to the next capture are too many or not.
            let game = records("8/8/2k5/8/8/4K3/8/4R3 w - - 53 90", "e3d4 c6d6");
            let mut game = canonical(&game, InputFormat::CanonicalHectoplies);
            for i in 0..3 {
                edit(&mut game, i, |f| _ = f.set_result_q(if i == 1 { -1.0 } else { 1.0 }).set_result_d(0.0));
            }
            let (done, _) = rescore_with(&game, settings, Some(Oracle::new(3, white_wins, |_| 48))).unwrap();
            Ok(vec![frame(&done, 1).result_q()])
        }
        Quirk::CanonicalWhite => {
            let game = records("8/5k2/8/8/8/8/8/K2R4 b - - 0 1", "f7f6 d1d8");
            let game = canonical(&game, InputFormat::Canonical);
            let (done, _) =
                rescore(&game, Settings { input_format: Some(InputFormat::Canonical), ..settings }).unwrap();
            Ok((0..3).map(|i| f32::from(frame(&done, i).invariance_info() >> 7)).collect())
        }
        Quirk::FirstEnPassant => {
            // The game begins after e2e4, which its first record shows; no black pawn is near.
            let game = records(START, "e2e4 e7e5 g1f3");
            let settings = Settings { input_format: Some(InputFormat::Canonical), ..settings };
            let (done, _) = rescore(&game[V6_BYTES..], settings).unwrap();
            Ok((0..3).map(|i| f32::from(frame(&done, i).side_to_move_or_enpassant())).collect())
        }
        Quirk::IndexPastEnd => {
            let mut game = records(START, "e2e4 e7e5");
            edit(&mut game, 1, |f| _ = f.set_visits(0).set_best_idx(1858));
            let (done, _) = rescore(&game, settings).map_err(|e| e.kind().name())?;
            Ok(vec![f32::from(frame(&done, 1).best_idx())])
        }
        Quirk::ZeroSum => {
            let game = records(START, "e2e4 e7e5");
            let (done, _) = rescore(&game, Settings { offset: -0.5, ..settings }).unwrap();
            Ok(frame(&done, 0).probabilities().filter(|p| *p != -1.0).take(2).collect())
        }
        Quirk::DeblunderStart => {
            let mut game = records("8/8/2k5/8/3p4/4K3/8/4R3 w - - 4 60", "e3d4 c6d6 e1e5");
            // A blunder of White in the first frame, which counts half; tables know the rest.
            edit(&mut game, 0, |f| _ = f.set_best_q(0.1).set_best_d(0.5).set_best_m(50.0));
            let settings = Settings { deblunder: Some(Deblunder { threshold: 0.1, width: 0.2 }), ..settings };
            let (done, _) = rescore_with(&game, settings, Some(Oracle::new(3, white_wins, |_| 10))).unwrap();
            Ok(vec![frame(&done, 0).result_q(), frame(&done, 0).plies_left()])
        }
        Quirk::AsPlanes => {
            // The king on b4 puts the board under flip and transpose.
            let game = records("8/8/8/8/1K6/8/7k/3R4 w - - 0 1", "d1d8");
            let (done, _) =
                rescore(&game, Settings { input_format: Some(InputFormat::Canonical), ..settings }).unwrap();
            let first = frame(&done, 0);
            Ok(vec![f32::from(first.invariance_info()), first.played_idx().into()])
        }
    }
}

#[test]
fn each_quirk_is_there_when_it_is_asked_for_and_only_then() {
    let all = Quirk::ALL.iter().copied().fold(Compat::NONE, Compat::with);
    for quirk in Quirk::ALL.iter().copied() {
        type Shown = Result<Vec<f32>, &'static str>;
        let (off, on): (Shown, Shown) = match quirk {
            Quirk::Hectoplies => (Ok(vec![0.0]), Ok(vec![-1.0])),
            Quirk::CanonicalWhite => (Ok(vec![1.0, 0.0, 1.0]), Ok(vec![0.0, 1.0, 0.0])),
            Quirk::FirstEnPassant => (Ok(vec![0.0; 3]), Ok(vec![16.0, 0.0, 0.0])),
            Quirk::IndexPastEnd => (Err("best_idx"), Ok(vec![1858.0])),
            Quirk::ZeroSum => (Ok(vec![0.05; 2]), Ok(vec![f32::NAN; 2])),
            // The last frame: lost for Black, 10 plies left; three plies before, White sees a win in 13.
            Quirk::DeblunderStart => (
                Ok(vec![0.5 * 1.0 + 0.5 * 0.1, 0.5 * 13.0 + 0.5 * 50.0]),
                Ok(vec![0.5 * -1.0 + 0.5 * 0.1, 0.5 * 10.0 + 0.5 * 50.0]),
            ),
            // Rd1-d8 becomes e8e1, or h4a4 as the planes do.
            Quirk::AsPlanes => (Ok(vec![5.0, policy_index(60, 4)]), Ok(vec![5.0, policy_index(31, 24)])),
        };
        // As text, where NaN equals NaN.
        let found = |compat| format!("{:?}", shown(quirk, compat));
        assert_eq!(found(Compat::NONE), format!("{off:?}"), "{quirk:?} off");
        assert_eq!(found(Compat::NONE.with(quirk)), format!("{on:?}"), "{quirk:?} on");
        let others = Quirk::ALL.iter().copied().filter(|other| *other != quirk).fold(Compat::NONE, Compat::with);
        assert_eq!(found(others), format!("{off:?}"), "{quirk:?} is no other's doing");
        assert_eq!(found(all), format!("{on:?}"), "{quirk:?} among all");
    }
}

#[test]
fn hectoplies_are_rounded_where_the_counter_is_53_or_59() {
    // The game begins `start` plies after the last capture. White wins by the tables, in as many plies as let the win
    // count one ply later only if the counter began one too low.
    static DTZ: AtomicI32 = AtomicI32::new(0);
    let rounded = (0..98u8).filter(|rule50| {
        let fen = format!("8/8/2k5/8/8/4K3/8/4R3 w - - {rule50} 90");
        let mut game = canonical(&records(&fen, "e3d4 c6d6"), InputFormat::CanonicalHectoplies);
        for i in 0..3 {
            let q = if i == 1 { -1.0 } else { 1.0 };
            edit(&mut game, i, |f| _ = f.set_result_q(q).set_result_d(0.0));
        }
        DTZ.store(101 - i32::from(*rule50), Ordering::Relaxed);
        let result = |compat| {
            let dtz = |_: &cozy_chess::Board| DTZ.load(Ordering::Relaxed);
            let settings = Settings { compat, ..narrow() };
            let (done, _) = rescore_with(&game, settings, Some(Oracle::new(3, white_wins, dtz))).unwrap();
            frame(&done, 1).result_q()
        };
        result(Compat::NONE) != result(Compat::NONE.with(Quirk::Hectoplies))
    });
    assert_eq!(rounded.collect::<Vec<_>>(), [53, 59]);
}

#[test]
fn an_index_past_the_end_is_weighed_by_what_lies_behind_the_policy() {
    let compat = Compat::NONE.with(Quirk::IndexPastEnd);
    let rule = |game: &[u8], compat| match rescore(game, Settings { compat, ..narrow() }) {
        Ok((done, _)) => Ok(frame(&done, done.frames - 1).played_idx()),
        Err(e) => Err(e.kind().name()),
    };
    // With visits: as the best move everywhere, as the move played in the last frame only.
    let mut best = records(START, "e2e4 e7e5");
    edit(&mut best, 1, |f| _ = f.set_best_idx(1858));
    assert_eq!((rule(&best, Compat::NONE), rule(&best, compat).is_ok()), (Err("best_idx"), true));
    for (i, off, on) in [(1, Err("played_idx"), Err("played_idx")), (2, Err("played_idx"), Ok(1858))] {
        let mut game = records(START, "e2e4 e7e5");
        edit(&mut game, i, |f| _ = f.set_played_idx(1858));
        assert_eq!((rule(&game, Compat::NONE), rule(&game, compat)), (off, on), "frame {i}");
    }
    // A pawn on a4 is the sign of what is read.
    let mut negative = records(START, "a2a4 e7e5");
    edit(&mut negative, 2, |f| _ = f.set_best_idx(1858));
    assert_eq!(rule(&negative, compat), Err("best_idx"));
    let past_all = u16::try_from(1859).unwrap();
    edit(&mut negative, 2, |f| _ = f.set_best_idx(past_all).set_visits(0));
    assert_eq!(rule(&negative, compat), Err("best_idx"));
}

#[test]
fn low_temperatures_leave_the_best_move() {
    let mut game = records(START, "e2e4 e7e5");
    let best = usize::from(frame(&super::played::chunk(&game), 0).played_idx());
    edit(&mut game, 0, |f| {
        let legal: Vec<usize> = (0..1858).filter(|i| f.as_frame().probability(*i) >= 0.0).collect();
        legal.iter().for_each(|i| _ = f.set_probability(*i, if *i == best { 0.43 } else { 0.03 }));
    });
    // 0.43 to the power of 1000 is no number of f32 any more.
    for temperature in [0.01, 0.001] {
        let (done, _) = rescore(&game, Settings { temperature, ..narrow() }).unwrap();
        assert_eq!(frame(&done, 0).probability(best), 1.0, "{temperature}");
    }
}
