//! The compact outputs of chess beside the full ones: the same policy and moves, listed or stored, whatever they hold.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use gristmill_format::chess::record::{POLICY, at};
use gristmill_format::chess::{ChessEncoder, FrameMut, InputFormat, Outputs, layout_v7};
use gristmill_format::encode::{Encoder, Provenance, Row, Sparse};
use proptest::prelude::*;

fn record() -> Vec<u8> {
    let mut bytes = vec![0; layout_v7().size()];
    FrameMut::blank(&mut bytes, InputFormat::Classical).unwrap();
    bytes
}

fn encode(row: Row<'_>, outputs: &[&str]) -> gristmill_format::Result<Vec<Vec<u8>>> {
    let encoder = ChessEncoder::new(&Outputs::parse(outputs).unwrap()).unwrap();
    let mut tensors: Vec<Vec<u8>> = encoder.outputs().iter().map(|spec| vec![0xEE; spec.row_bytes()]).collect();
    encoder.encode(&[row], &mut tensors.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())?;
    Ok(tensors)
}

fn stored(record: &[u8]) -> Row<'_> {
    Row { record, provenance: Provenance { source: 1, chunk: 3, frame: 9 }, bits: 0, sparse: None }
}

/// What a device makes of pairs: the value of the last one everywhere, then each move.
fn expanded(indices: &[u8], values: &[u8]) -> Vec<u8> {
    let values = values.as_chunks::<4>().0;
    let mut policy = vec![*values.last().unwrap(); POLICY];
    for (index, value) in indices.as_chunks::<2>().0.iter().zip(values) {
        if let Ok(index) = usize::try_from(i16::from_le_bytes(*index)) {
            policy[index] = *value;
        }
    }
    policy.concat()
}

/// A policy that is listed, and the same in a record.
fn both(fill: f32, moves: &[(u16, f32)]) -> (Vec<u16>, Vec<f32>, Vec<u8>) {
    let (indices, values): (Vec<u16>, Vec<f32>) = moves.iter().copied().unzip();
    let mut record = record();
    Sparse { indices: &indices, values: &values, fill }.write(&mut record[at::PROBABILITIES..at::PLANES]);
    (indices, values, record)
}

fn value() -> impl Strategy<Value = f32> {
    prop_oneof![
        0.0f32..1.0,
        Just(-1.0),
        Just(0.0),
        Just(-0.0),
        Just(f32::NAN),
        Just(f32::from_bits(0x7fc0_0001)),
        Just(f32::NEG_INFINITY)
    ]
}

proptest! {
    #[test]
    fn listed_and_stored_policies_give_the_same_pairs_and_bits(
        fill in prop_oneof![4 => Just(-1.0f32), 1 => value()],
        moves in prop::collection::btree_map(0..POLICY as u16, value(), 0..127),
        reversed in any::<bool>(),
    ) {
        let mut moves: Vec<(u16, f32)> = moves.into_iter().collect();
        if reversed {
            moves.reverse();
        }
        let (indices, values, record) = both(fill, &moves);
        let listed = Row { sparse: Some(Sparse { indices: &indices, values: &values, fill }), ..stored(&record) };
        let outputs = ["probs:sparse", "legal:bits", "probs", "legal"];
        let [a, b] = [listed, stored(&record)].map(|row| encode(row, &outputs).unwrap());
        prop_assert!(a == b);
        prop_assert!(expanded(&a[0], &a[1]) == a[3]);
        let bits: Vec<u8> = (0..POLICY).map(|i| a[2][i / 8] >> (i % 8) & 1).collect();
        prop_assert!(bits == a[4]);
        prop_assert_eq!(a[2][232] >> 2, 0, "nothing is after the last move");
        let order: Vec<i16> = a[0].as_chunks().0.iter().map(|index| i16::from_le_bytes(*index)).collect();
        let count = order.iter().position(|index| *index < 0).unwrap();
        prop_assert!(order[..count].is_sorted_by(|a, b| a < b) && order[count..].iter().all(|index| *index == -1));
    }
}

#[test]
fn a_policy_without_room_is_refused_with_its_place_and_advice() {
    let moves: Vec<(u16, f32)> = (0..64).map(|i| (i * 29, 1.0 / 64.0)).collect();
    let (indices, values, record) = both(-1.0, &moves);
    let listed = Row { sparse: Some(Sparse { indices: &indices, values: &values, fill: -1.0 }), ..stored(&record) };
    for row in [listed, stored(&record)] {
        assert!(encode(row, &["probs:sparse:65"]).is_ok());
        let refusal = encode(row, &["probs:sparse:64"]).unwrap_err();
        assert_eq!(refusal.kind().name(), "out_of_range");
        assert_eq!((refusal.place().chunk, refusal.place().frame), (Some(3), Some(9)));
        let expected = "a policy of 64 moves, where probs:sparse:64 has room for 63; take probs:sparse:65 or probs";
        assert!(refusal.detail().contains(expected), "{refusal}");
    }
    let mut record = self::record();
    for (i, entry) in record[at::PROBABILITIES..at::PLANES].as_chunks_mut::<4>().0.iter_mut().enumerate() {
        *entry = (i as f32).to_le_bytes();
    }
    let refusal = encode(stored(&record), &["probs:sparse:512"]).unwrap_err();
    assert!(refusal.detail().contains("of 185"), "no value is that of most: {refusal}");
}

/// The rows of `docs/format/compact.md`, byte by byte.
#[test]
fn rows_have_the_published_bytes() {
    let (_, _, mut record) = both(-1.0, &[(3, 0.25), (1857, 0.75)]);
    let mut frame = FrameMut::new(&mut record).unwrap();
    frame.set_plane(0, 0x0000_0000_0000_ff00).set_plane(103, 1 << 63);
    frame.set_castling_us_ooo(1).set_castling_them_oo(1).set_side_to_move_or_enpassant(1).set_rule50_count(37);
    let made = encode(stored(&record), &["planes:packed", "probs:sparse:4", "legal:bits"]).unwrap();
    let mut packed = vec![0; 844];
    (packed[1], packed[831], packed[832], packed[835], packed[836], packed[837]) = (0xff, 0x80, 1, 1, 1, 37);
    packed[840] = 1;
    assert_eq!(made[0], packed);
    assert_eq!(made[1], [3, 0, 0x41, 7, 0xff, 0xff, 0xff, 0xff]);
    let values: Vec<f32> = made[2].as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)).collect();
    assert_eq!(values, [0.25, 0.75, -1.0, -1.0]);
    let mut legal = vec![0; 233];
    (legal[0], legal[232]) = (8, 2);
    assert_eq!(made[3], legal);
}
