//! Games that cannot be trusted: refused with the rule, the frame and the byte.

use gristmill_format::chess::record::{V6_BYTES, at};
use gristmill_format::chess::rescore::Settings;
use gristmill_format::chess::{FrameMut, InputFormat};
use gristmill_format::source::Chunk;
use gristmill_format::{Error, Kind};
use proptest::prelude::*;

use super::conversion::breaches;
use super::played::{START, chunk, edit, narrow, records, rescore};

type Edit = fn(&mut FrameMut<'_>);

fn game() -> Vec<u8> {
    records(START, "e2e4 e7e5 g1f3 b8c6 f1c4 f8c5 e1h1")
}

fn refusal(records: &[u8]) -> Error {
    rescore(records, Settings::default()).unwrap_err()
}

#[test]
fn each_rule_names_frame_and_byte() {
    let cases: [(&str, usize, Edit); 19] = [
        ("values", at::BEST_Q, |f| _ = f.set_best_q(1.5)),
        ("values", at::ROOT_D, |f| _ = f.set_root_d(-0.1)),
        ("values", at::PLAYED_M, |f| _ = f.set_played_m(-1.0)),
        ("values", at::RESULT_Q, |f| _ = f.set_result_q(-1.1)),
        ("values", at::ORIG_Q, |f| _ = f.set_orig_q(2.0)),
        ("input_format", at::INPUT_FORMAT, |f| _ = f.set_input_format_value(2)),
        ("castling", at::CASTLING_US_OOO, |f| _ = f.set_castling_us_ooo(2)),
        ("side_to_move", at::SIDE_TO_MOVE_OR_ENPASSANT, |f| _ = f.set_side_to_move_or_enpassant(3)),
        ("rule50", at::RULE50_COUNT, |f| _ = f.set_rule50_count(101)),
        ("policy_values", at::PROBABILITIES + 4 * 7, |f| _ = f.set_probability(7, -0.5)),
        ("policy_values", at::PROBABILITIES + 4 * 9, |f| _ = f.set_probability(9, f32::INFINITY)),
        ("policy_sum", at::PROBABILITIES, |f| _ = f.set_probability(1, 0.5)),
        ("best_idx", at::BEST_IDX, |f| _ = f.set_best_idx(1858)),
        ("best_idx", at::BEST_IDX, |f| _ = f.set_best_idx(1857)),
        ("played_idx", at::PLAYED_IDX, |f| _ = f.set_played_idx(60_000)),
        ("moves", at::PLANES, |f| _ = f.set_plane(0, 0xff00)),
        ("side_to_move", at::SIDE_TO_MOVE_OR_ENPASSANT, |f| _ = f.set_side_to_move_or_enpassant(1)),
        ("values", at::PLIES_LEFT, |f| _ = f.set_plies_left(-3.0)),
        ("values", at::RESULT_D, |f| _ = f.set_result_d(-3.0)),
    ];
    for (case, (rule, offset, change)) in cases.into_iter().enumerate() {
        let mut bytes = game();
        edit(&mut bytes, 4, change);
        let e = refusal(&bytes);
        assert_eq!(e.kind(), Kind::Refused(rule), "case {case}: {e}");
        // A move is that of the frame before it.
        let at_frame = if e.place().frame == Some(3) { 3 } else { 4 };
        assert_eq!(e.place().frame, Some(at_frame), "case {case}: {e}");
        assert_eq!(e.place().offset, Some(at_frame * V6_BYTES as u64 + offset as u64), "case {case}: {e}");
    }
}

#[test]
fn a_move_that_is_not_the_one_told_is_refused_unless_nothing_was_told() {
    let mut bytes = game();
    let other = {
        let chunk = chunk(&bytes);
        let f = super::played::frame(&chunk, 2);
        (0u16..).zip(f.probabilities()).find(|(i, p)| *p > 0.0 && *i != f.played_idx()).unwrap().0
    };
    edit(&mut bytes, 2, |f| _ = f.set_played_idx(other));
    let e = refusal(&bytes);
    assert_eq!((e.kind(), e.place().frame), (Kind::Refused("played_idx"), Some(2)), "{e}");
    edit(&mut bytes, 2, |f| _ = f.set_visits(0));
    rescore(&bytes, Settings::default()).unwrap();
}

#[test]
fn a_played_move_without_probability_is_refused_unless_the_frame_is_history() {
    let mut bytes = game();
    edit(&mut bytes, 2, |f| {
        let (i, sum) = (f.as_frame().played_idx(), f.as_frame().probabilities().filter(|p| *p >= 0.0).count());
        f.set_visits(0).set_probability(i.into(), -1.0);
        let scale = sum as f32 / (sum - 1) as f32;
        let legal: Vec<_> = (0..1858).filter(|i| f.as_frame().probability(*i) >= 0.0).collect();
        for i in legal {
            let p = f.as_frame().probability(i);
            f.set_probability(i, p * scale);
        }
    });
    let e = refusal(&bytes);
    assert_eq!((e.kind(), e.place().frame), (Kind::Refused("policy_moves"), Some(2)), "{e}");
    edit(&mut bytes, 2, |f| _ = f.set_invariance_info(1 << 6));
    let (chunk, tally) = rescore(&bytes, Settings { drop_flagged: true, ..narrow() }).unwrap();
    assert_eq!((chunk.frames, tally.get("frames_dropped")), (7, Some(1)));
    let (chunk, _) = rescore(&bytes, narrow()).unwrap();
    assert_eq!(chunk.frames, 8);
}

#[test]
fn games_that_skip_a_ply_or_mix_two_are_refused() {
    let (a, b) = (game(), records(START, "d2d4 d7d5 c2c4 e7e6"));
    let size = V6_BYTES;
    let skipped = [&a[..2 * size], &a[3 * size..]].concat();
    let e = refusal(&skipped);
    assert_eq!((e.kind(), e.place().frame), (Kind::Refused("side_to_move"), Some(1)), "{e}");
    let mixed = [&a[..2 * size], &b[2 * size..]].concat();
    assert_eq!(refusal(&mixed).kind(), Kind::Refused("moves"));
}

#[test]
fn games_that_stop_in_the_middle_are_games() {
    let whole = game();
    for frames in 1..=8 {
        let (chunk, _) = rescore(&whole[..frames * V6_BYTES], Settings::default()).unwrap();
        assert_eq!(chunk.frames, frames);
    }
}

#[test]
fn impossible_first_positions_are_refused() {
    let kings = records("8/8/8/8/8/4k3/8/K7 w - - 0 1", "");
    rescore(&kings, Settings::default()).unwrap();
    let cases: [(&str, Edit); 5] = [
        // Black's king on e3, White's on f3: the one could take the other.
        ("position", |f| _ = f.set_plane(5, f.as_frame().plane(11) >> 1)),
        ("position", |f| _ = f.set_plane(5, 0)),
        ("position", |f| _ = f.set_plane(3, 8)),
        ("men", |f| _ = f.set_plane(11, f.as_frame().plane(5))),
        ("castling", |f| _ = f.set_castling_us_oo(1)),
    ];
    for (rule, change) in cases {
        let mut bytes = kings.clone();
        edit(&mut bytes, 0, change);
        let e = refusal(&bytes);
        assert_eq!(e.kind(), Kind::Refused(rule), "{e}");
        // The validator may call a missing king by a nearer name.
        let told = breaches(&chunk(&bytes));
        assert!(told.iter().any(|b| b.rule.name() == rule || b.rule.name() == "men"), "{rule}: {told:?}");
    }
}

#[test]
fn an_empty_game_and_foreign_records_are_refused() {
    let rescorer = gristmill_format::chess::rescore::Rescorer::new(Settings::default(), None).unwrap();
    let mut empty = chunk(&game());
    empty.frames = 0;
    assert_eq!(rescorer.run(&mut empty).unwrap_err().kind(), Kind::Empty);
    let mut foreign = Chunk { bytes: vec![0; 10], frames: 1, ..Chunk::default() };
    assert_eq!(rescorer.run(&mut foreign).unwrap_err().kind(), Kind::Unsupported);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_damage_makes_it_panic(damage in prop::collection::vec((0usize..8 * V6_BYTES, any::<u8>()), 1..6)) {
        let mut bytes = game();
        for (at, value) in damage {
            bytes[at] = value;
        }
        let mut chunk = Chunk { bytes, ..Chunk::default() };
        if gristmill_format::chess::game::parse(&mut chunk).is_ok() {
            let settings = Settings { input_format: Some(InputFormat::CanonicalV2), ..Settings::default() };
            let _ = gristmill_format::chess::rescore::Rescorer::new(settings, None).unwrap().run(&mut chunk);
        }
    }
}
