//! Passes that need no tables: what they change, what they leave to the bit, and what they do twice.

use std::sync::Arc;

use gristmill_format::chess::record::{V6_BYTES, V7_BYTES, at};
use gristmill_format::chess::rescore::{Compat, Deblunder, PolicyBook, Settings};
use gristmill_format::chess::{FrameMut, InputFormat};
use proptest::prelude::*;

use super::played::{START, chunk, edit, frame, narrow, records, rescore};

const MOVES: &str = "e2e4 e7e5 g1f3 b8c6 f1c4 f8c5 e1h1 g8f6";

/// Which byte ranges of V6 records differ.
fn differing(a: &[u8], b: &[u8], ranges: &[std::ops::Range<usize>]) -> Vec<bool> {
    let pairs = || a.chunks_exact(V6_BYTES).zip(b.chunks_exact(V6_BYTES));
    ranges.iter().map(|range| pairs().any(|(a, b)| a[range.clone()] != b[range.clone()])).collect()
}

#[test]
fn a_plain_run_changes_nothing_but_the_version() {
    let game = records(START, MOVES);
    let (kept, tally) = rescore(&game, narrow()).unwrap();
    assert_eq!(kept.records(), game);
    assert!(!tally.changed());
    let (wide, tally) = rescore(&game, Settings::default()).unwrap();
    assert!(tally.changed());
    for (new, old) in wide.records().chunks_exact(V7_BYTES).zip(game.chunks_exact(V6_BYTES)) {
        assert_eq!(new[4..at::Q_ST], old[4..at::Q_ST]);
        assert_eq!(new[at::RESERVED..], [0; 32]);
    }
    let (again, tally) = rescore(wide.records(), Settings::default()).unwrap();
    assert!(!tally.changed() && again.records() == wide.records(), "rescoring twice is rescoring once");
}

#[test]
fn a_widened_record_that_says_v6_is_filled_in_place() {
    let game = records(START, MOVES);
    let (wide, _) = rescore(&game, Settings::default()).unwrap();
    let mut widened = chunk(wide.records());
    for record in widened.bytes.chunks_exact_mut(V7_BYTES) {
        FrameMut::new(record).unwrap().set_version(6).set_q_st(0.0).set_short_term(0.0, 0, 0);
    }
    let rescorer = gristmill_format::chess::rescore::Rescorer::new(Settings::default(), None).unwrap();
    rescorer.run(&mut widened).unwrap();
    assert_eq!(widened.records(), wide.records());
}

#[test]
fn old_data_gets_plies_left() {
    let mut game = records(START, MOVES);
    for i in 0..9 {
        edit(&mut game, i, |f| _ = f.set_plies_left(if i == 4 { 17.5 } else { 0.0 }));
    }
    let (done, tally) = rescore(&game, narrow()).unwrap();
    let plies: Vec<f32> = (0..9).map(|i| frame(&done, i).plies_left()).collect();
    assert_eq!(plies, [9.0, 8.0, 7.0, 6.0, 17.5, 4.0, 3.0, 2.0, 1.0]);
    assert_eq!(tally.get("plies_left_filled"), Some(8));
    assert!(!rescore(done.records(), narrow()).unwrap().1.changed());
}

#[test]
fn policies_of_a_book_replace_those_reached_by_the_same_moves() {
    let (mut game, mut other) = (records(START, MOVES), records(START, "e2e4 e7e5 g1f3 g8f6 b1c3"));
    let put = |bytes: &mut [u8], i: usize, first: f32| {
        edit(bytes, i, |f| {
            let played = usize::from(f.as_frame().played_idx());
            let legal: Vec<usize> = (0..1858).filter(|k| f.as_frame().probability(*k) >= 0.0).collect();
            for k in &legal {
                f.set_probability(*k, if *k == played { first } else { (1.0 - first) / (legal.len() - 1) as f32 });
            }
        });
    };
    (0..6).for_each(|i| put(&mut other, i, 0.75));
    put(&mut game, 8, 0.6);
    let mut book = PolicyBook::default();
    book.add(&chunk(&other), Compat::NONE).unwrap();
    assert_eq!(book.len(), 6);
    for format in [None, Some(InputFormat::CanonicalV2)] {
        // The book's own format does not matter, nor that of the game.
        let source = match format {
            None => game.clone(),
            Some(_) => rescore(&game, Settings { input_format: format, ..narrow() }).unwrap().0.records().to_vec(),
        };
        let policies = Some(Arc::new(PolicyBook::default()));
        let (same, tally) = rescore(&source, Settings { policies, ..narrow() }).unwrap();
        assert!(!tally.changed() && same.records() == source);
        let mut book = PolicyBook::default();
        book.add(&chunk(&other), Compat::NONE).unwrap();
        let settings = Settings { policies: Some(Arc::new(book)), ..narrow() };
        let (done, tally) = rescore(&source, settings).unwrap();
        assert_eq!(tally.get("policies_substituted"), Some(4), "the start and three moves");
        for i in 0..9 {
            let f = frame(&done, i);
            // The fourth position is known, but another move was played from there.
            let p = f.probability(f.played_idx().into());
            assert_eq!(p == 0.75, i < 3, "frame {i}: {p}");
        }
        let unchanged = [4..8, at::PLANES..V6_BYTES];
        assert_eq!(differing(done.records(), &source, &unchanged), [false, false]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn reshaping_and_deblundering_leave_the_rest_to_the_bit(
        temperature in 0.5f32..3.0, offset in -0.02f32..0.0, threshold in 0.0f32..0.5, width in 0.0f32..0.3,
        q in prop::collection::vec((-1.0f32..1.0, -1.0f32..1.0), 9),
    ) {
        let mut game = records(START, MOVES);
        for (i, (best, played)) in q.iter().enumerate() {
            edit(&mut game, i, |f| _ = f.set_best_q(*best).set_played_q(*played).set_best_m(3.0));
        }
        let reshape = Settings { temperature, offset, ..narrow() };
        let (done, _) = rescore(&game, reshape).unwrap();
        prop_assert_eq!(differing(done.records(), &game, &[0..8, at::PLANES..V6_BYTES]), [false, false]);
        for i in 0..9 {
            let f = frame(&done, i);
            let sum: f32 = f.probabilities().filter(|p| *p >= 0.0).sum();
            prop_assert!((sum - 1.0).abs() < 1e-4);
        }
        let deblunder = Settings { deblunder: Some(Deblunder { threshold, width }), ..narrow() };
        let (done, tally) = rescore(&game, deblunder).unwrap();
        let ranges = [0..at::PLIES_LEFT, at::PLAYED_Q..V6_BYTES];
        prop_assert_eq!(differing(done.records(), &game, &ranges), [false, false]);
        prop_assert_eq!(tally.changed(), tally.get("blunders") > Some(0));
        for i in 0..9 {
            let f = frame(&done, i);
            prop_assert!(f.result_q().abs() <= 1.0 && (0.0..=1.0).contains(&f.result_d()));
        }
    }
}
