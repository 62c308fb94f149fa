//! Games as they come out of a container: versions recognized, old ones upgraded, bad ones refused with their place.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use gristmill_format::chess::game::parse;
use gristmill_format::chess::record::{V3_BYTES, V4_BYTES, V5_BYTES, V6_BYTES, V7_BYTES, at};
use gristmill_format::chess::{Frame, FrameMut, InputFormat, layout_v6, layout_v7};
use gristmill_format::source::Chunk;
use gristmill_format::{Error, Kind};
use proptest::prelude::*;

fn chunk(bytes: Vec<u8>) -> Chunk {
    Chunk { bytes, ..Chunk::default() }
}

fn record(size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    FrameMut::blank(&mut bytes, InputFormat::Classical).unwrap();
    bytes
}

fn refusal(bytes: Vec<u8>) -> Error {
    parse(&mut chunk(bytes)).unwrap_err()
}

fn place(error: &Error) -> (Kind, Option<u64>, Option<u64>) {
    (error.kind(), error.place().frame, error.place().offset)
}

#[test]
fn v6_and_v7_stay_as_they_are() {
    for (size, layout) in [(V6_BYTES, layout_v6()), (V7_BYTES, layout_v7())] {
        let bytes = record(size).repeat(3);
        let mut game = chunk(bytes.clone());
        parse(&mut game).unwrap();
        assert_eq!((game.frames, game.records()), (3, &bytes[..]));
        assert_eq!(game.layout.unwrap().as_ref(), layout.as_ref());
    }
}

/// An old record: tag, format if it has one, distinct probabilities, planes and bytes, and its values.
fn old(version: u32, format: Option<u32>, flags: u8, result: u8, values: &[f32]) -> Vec<u8> {
    let mut bytes = version.to_le_bytes().to_vec();
    bytes.extend(format.iter().flat_map(|f| f.to_le_bytes()));
    bytes.extend((0..1858u16).flat_map(|i| f32::from(i).to_le_bytes()));
    bytes.extend((0..104u64).flat_map(|i| (i << 32 | 7).to_le_bytes()));
    bytes.extend([1, 0, 1, 0, 1, 42, flags, result]);
    bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    bytes
}

#[test]
fn old_versions_become_v6() {
    let values = [0.5, -0.25, 0.125, 0.375, 40.0, 39.0, 61.0];
    for (version, format, size, count) in [(3, None, V3_BYTES, 0), (4, None, V4_BYTES, 4), (5, Some(2), V5_BYTES, 7)] {
        for (result, q, d) in [(0, 0.0, 1.0), (1, 1.0, 0.0), (255, -1.0, 0.0)] {
            let bytes = old(version, format, 0x48, result, &values[..count]);
            assert_eq!(bytes.len(), size);
            let mut game = chunk(bytes.repeat(2));
            parse(&mut game).unwrap();
            assert_eq!((game.frames, game.layout.as_deref()), (2, Some(layout_v6().as_ref())));
            assert_eq!((game.bytes.len(), game.record(0)), (2 * V6_BYTES, game.record(1)));
            let f = Frame::new(game.record(1)).unwrap();
            assert_eq!((f.version(), f.input_format_value()), (6, format.unwrap_or(1)));
            assert!(f.probabilities().enumerate().all(|(i, p)| p == i as f32));
            assert!((0..104).all(|i| f.plane(i) == (i as u64) << 32 | 7));
            assert_eq!(f.bytes()[at::CASTLING_US_OOO..at::INVARIANCE_INFO], [1, 0, 1, 0, 1, 42]);
            assert_eq!((f.invariance_info(), f.dummy()), (if version == 5 { 0x48 } else { 0 }, 0));
            let mut expected = [0.0; 7];
            expected[..count].copy_from_slice(&values[..count]);
            let found = [f.root_q(), f.best_q(), f.root_d(), f.best_d(), f.root_m(), f.best_m(), f.plies_left()];
            assert_eq!(found, expected);
            assert_eq!((f.result_q(), f.result_d()), (q, d));
            assert_eq!((f.played_q(), f.played_d(), f.played_m()), (0.0, 0.0, 0.0));
            assert!([f.orig_q(), f.orig_d(), f.orig_m()].iter().all(|v| v.to_bits() == 0x7fc0_0000));
            assert_eq!((f.visits(), f.played_idx(), f.best_idx(), f.policy_kld(), f.q_st()), (0, 0, 0, 0.0, 0.0));
        }
    }
}

#[test]
fn an_upgrade_uses_the_buffer_of_the_chunk() {
    let bytes = old(5, Some(1), 0, 1, &[0.0; 7]).repeat(4);
    let mut game = chunk(Vec::with_capacity(4 * V6_BYTES));
    for _ in 0..3 {
        let before = game.bytes.as_ptr();
        game.bytes.clear();
        game.bytes.extend_from_slice(&bytes);
        parse(&mut game).unwrap();
        assert_eq!(game.bytes.as_ptr(), before);
    }
}

#[test]
fn sizes_and_versions_that_do_not_fit_are_refused() {
    assert_eq!(place(&refusal(vec![])), (Kind::Empty, None, None));
    assert_eq!(place(&refusal(vec![6, 0, 0])), (Kind::WrongSize, Some(0), Some(0)));
    let long = [record(V6_BYTES), record(V6_BYTES), vec![1]].concat();
    assert_eq!(place(&refusal(long)), (Kind::WrongSize, Some(2), Some(2 * V6_BYTES as u64)));
    for tag in [0u32, 1, 2, 8, 70, 170, 0x0600_0000] {
        let mut bytes = record(V6_BYTES);
        bytes[..4].copy_from_slice(&tag.to_le_bytes());
        assert_eq!(place(&refusal(bytes)), (Kind::UnknownVersion, Some(0), Some(0)), "{tag}");
    }
    // A tag of 6 on records of V7 size and the other way round.
    let mut wide = record(V7_BYTES);
    wide[0] = 6;
    let error = refusal(wide);
    assert!(error.kind() == Kind::WrongSize && error.detail().contains("8396"), "{error}");
    let mut narrow = record(V6_BYTES);
    narrow[0] = 7;
    assert!(refusal(narrow).detail().contains("8356"));
    let mut mixed = record(V6_BYTES).repeat(3);
    mixed[2 * V6_BYTES] = 7;
    assert_eq!(place(&refusal(mixed)), (Kind::UnknownVersion, Some(2), Some(2 * V6_BYTES as u64)));
}

#[test]
fn input_formats_and_result_bytes_out_of_range_are_refused() {
    for format in [0u32, 6, 131, 134, u32::MAX] {
        let mut bytes = record(V6_BYTES).repeat(2);
        bytes[V6_BYTES + 4..V6_BYTES + 8].copy_from_slice(&format.to_le_bytes());
        assert_eq!(place(&refusal(bytes)), (Kind::OutOfRange, Some(1), Some(V6_BYTES as u64 + 4)));
    }
    for result in 2..=254 {
        for (version, format, values, at) in [(3, None, 0, 8275), (4, None, 4, 8275), (5, Some(1), 7, 8279)] {
            let error = refusal(old(version, format, 0, result, &vec![0.0; values]));
            assert_eq!(place(&error), (Kind::OutOfRange, Some(0), Some(at)), "version {version} result {result}");
        }
    }
}

#[test]
fn values_that_would_poison_training_are_refused_by_name() {
    let fields = layout_v7().fields().iter().filter(|f| f.shape.is_empty() && f.bytes() == 4 && f.offset > 8);
    let mut refused = Vec::new();
    for field in fields.filter(|f| f.name != "visits") {
        for (version, size) in [(6, V6_BYTES), (7, V7_BYTES)] {
            for wild in [f32::NAN, f32::INFINITY, f32::from_bits(0xff80_0001)] {
                let mut bytes = record(size).repeat(2);
                let Some(slot) = bytes[size..].get_mut(field.offset..field.offset + 4) else { continue };
                slot.copy_from_slice(&wild.to_le_bytes());
                let Err(error) = parse(&mut chunk(bytes)) else { continue };
                assert_eq!(place(&error), (Kind::OutOfRange, Some(1), Some((size + field.offset) as u64)));
                assert!(error.detail().starts_with(&format!("{} is", field.name)), "{error}");
                refused.push((version, field.name.as_str()));
            }
        }
    }
    refused.dedup();
    let checked = "root_q best_q root_d best_d root_m best_m plies_left result_q result_d played_q played_d played_m";
    let mut expected: Vec<_> = checked.split(' ').flat_map(|name| [(6, name), (7, name)]).collect();
    expected.extend([(7, "q_st"), (7, "d_st")]);
    assert_eq!(refused, expected);
    let old_nan = old(4, None, 0, 0, &[0.0, 0.0, f32::NAN, 0.0]);
    assert_eq!(place(&refusal(old_nan)), (Kind::OutOfRange, Some(0), Some(8284)));
}

#[test]
fn illegal_marks_may_be_nan() {
    let mut bytes = record(V6_BYTES);
    FrameMut::new(&mut bytes).unwrap().set_probability(0, f32::NAN);
    parse(&mut chunk(bytes)).unwrap();
}

proptest! {
    #[test]
    fn no_bytes_panic(version in 0u8..10, len in 0usize..30_000, seed in any::<u64>(), fill in any::<bool>()) {
        let mut state = seed | 1;
        let mut bytes: Vec<u8> = (0..len)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                if fill { (state >> 56) as u8 } else { 0 }
            })
            .collect();
        if let Some(first) = bytes.first_chunk_mut::<4>() {
            *first = u32::from(version).to_le_bytes();
        }
        let mut game = chunk(bytes);
        if parse(&mut game).is_ok() {
            prop_assert!(game.frames > 0 && game.records().len() == game.bytes.len());
        }
    }
}
