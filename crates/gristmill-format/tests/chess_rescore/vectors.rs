//! Worked games, with the numbers that rescoring gives them.

use gristmill_format::chess::rescore::{Deblunder, Settings};

use super::played::{START, edit, frame, narrow, records, rescore};

fn close(a: f32, b: f32) -> bool {
    (a - b).abs() < 1e-6
}

#[test]
fn v6_becomes_v7() {
    let mut game = records(START, "e2e4 e7e5");
    // The indices of the vector, 11, 22 and 33, are no moves here: the moves played stand for them.
    for (i, (q, d)) in [(0.1, 0.5), (-0.2, 0.4), (0.3, 0.3)].into_iter().enumerate() {
        edit(&mut game, i, |f| {
            f.set_root_q(q).set_root_d(d);
        });
    }
    let (chunk, tally) = rescore(&game, Settings::default()).unwrap();
    assert_eq!(tally.get("frames_to_v7"), Some(3));
    let played: Vec<u16> = (0..3).map(|i| frame(&chunk, i).played_idx()).collect();
    for (i, (q, d, next, next_but_one)) in [
        (0.252_777_79, 0.347_222_21, played[1], played[2]),
        (-0.283_333_33, 0.316_666_66, played[2], u16::MAX),
        (0.3, 0.3, u16::MAX, u16::MAX),
    ]
    .into_iter()
    .enumerate()
    {
        let f = frame(&chunk, i);
        assert!(close(f.q_st(), q) && close(f.d_st(), d), "{i}: {} {}", f.q_st(), f.d_st());
        assert_eq!((f.version(), f.opp_played_idx(), f.next_played_idx()), (7, next, next_but_one));
    }
}

#[test]
fn a_blunder_moves_the_target_of_what_came_before() {
    let mut game = records(START, "e2e4 e7e5 g1f3");
    let best_q = [0.2, -0.2, 0.25, -0.3];
    let played_q = [0.2, -0.30, 0.25, -0.3];
    let best_d = [0.5, 0.5, 0.4, 0.3];
    for i in 0..4 {
        edit(&mut game, i, |f| {
            f.set_best_q(best_q[i]).set_played_q(played_q[i]).set_best_d(best_d[i]).set_best_m(40.0 - i as f32);
            // The last frame's result is a win; all see the same one.
            f.set_result_q(if i % 2 == 1 { 1.0 } else { -1.0 }).set_result_d(0.0).set_plies_left(44.0 - i as f32);
        });
    }
    let deblunder = Some(Deblunder { threshold: 0.10, width: 0.06 });
    let (chunk, tally) = rescore(&game, Settings { deblunder, ..narrow() }).unwrap();
    for (i, (q, d, plies)) in
        [(-0.4, 0.25, 42.0), (0.4, 0.25, 41.0), (-1.0, 0.0, 42.0), (1.0, 0.0, 41.0)].into_iter().enumerate()
    {
        let f = frame(&chunk, i);
        assert!(close(f.result_q(), q) && close(f.result_d(), d), "{i}: {} {}", f.result_q(), f.result_d());
        assert!(close(f.plies_left(), plies), "{i}: {}", f.plies_left());
    }
    assert_eq!((tally.get("blunders"), tally.get("frames_deblundered")), (Some(1), Some(2)));
}

#[test]
fn a_policy_is_flattened_and_pruned() {
    // A king in the corner with three moves, and a blocked pawn's fourth one made by hand.
    let mut game = records("8/8/8/8/8/4k3/P7/K7 w - - 0 1", "");
    let legal: Vec<usize> = {
        let chunk = super::played::chunk(&game);
        let f = frame(&chunk, 0);
        (0..1858).filter(|i| f.probability(*i) >= 0.0).collect()
    };
    assert_eq!(legal.len(), 4);
    let played = u16::try_from(legal[0]).unwrap();
    edit(&mut game, 0, |f| {
        for (i, p) in legal.iter().zip([0.5, 0.3, 0.2, 0.0]) {
            f.set_probability(*i, p);
        }
        f.set_played_idx(played).set_best_idx(played);
    });
    let (chunk, tally) = rescore(&game, Settings { temperature: 1.25, offset: -0.05, ..narrow() }).unwrap();
    let f = frame(&chunk, 0);
    for (i, p) in legal.iter().zip([0.490_171_4, 0.306_288, 0.203_540_6, 0.0]) {
        assert!(close(f.probability(*i), p), "{} instead of {p}", f.probability(*i));
    }
    assert_eq!((0..1858).filter(|i| f.probability(*i) == -1.0).count(), 1854);
    assert_eq!(tally.get("policies_reshaped"), Some(1));
}
