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
    Row { record, provenance: Provenance { source: 1, chunk: 3, frame: 9 }, bits: Default::default(), sparse: None }
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

/// What a device makes of a row of `planes:position`: a row of `planes:packed`.
fn planes_of(row: &[u8]) -> Vec<u8> {
    let room = (row.len() - 43) * 2 / 3;
    let nibble = |bytes: &[u8], i: usize| bytes[i / 2] >> if i.is_multiple_of(2) { 4 } else { 0 } & 15;
    let mut cells: [u8; 64] = std::array::from_fn(|square| nibble(row, square));
    let (mut packed, mut next) = (vec![0; 844], 0);
    for board in 0..8 {
        let mut begins = row[34] >> board & 1 != 0;
        while next < room
            && row[43 + next] < 128
            && begins == (row[43 + next] >= 64)
            && (begins || row[34] >> board & 1 != 0)
        {
            cells[usize::from(row[43 + next] & 63)] = nibble(&row[43 + room..], next);
            (next, begins) = (next + 1, false);
        }
        assert!(!begins, "board {board} has its first square");
        for (square, man) in cells.iter().enumerate().filter(|(_, man)| row[33] >> board & 1 != 0 && **man != 0) {
            packed[8 * (13 * board + usize::from(*man) - 1) + square / 8] |= 128 >> (square % 8);
        }
        packed[8 * (13 * board + 12)..][..8].fill(if row[32] >> board & 1 != 0 { 255 } else { 0 });
    }
    assert!(row[43 + next..43 + room].iter().all(|square| *square == 255), "nothing is left over");
    packed[832..839].copy_from_slice(&row[35..42]);
    packed[840] = row[42];
    packed
}

/// A record of these boards, a man (1 to 12) or nothing (0) on each square, and the squares that differ.
fn of_boards(boards: &[[u8; 64]], repeated: u8) -> (Vec<u8>, usize) {
    let (mut record, mut differ) = (record(), 0);
    let mut frame = FrameMut::new(&mut record).unwrap();
    let mut last = boards[0];
    for (board, cells) in boards.iter().enumerate() {
        for man in 1..=12 {
            let squares = (0..64).filter(|square| cells[*square] == man);
            frame
                .set_plane(13 * board + usize::from(man) - 1, squares.fold(0, |word, square| word | 1 << (square ^ 7)));
        }
        frame.set_plane(13 * board + 12, if repeated >> board & 1 != 0 { u64::MAX } else { 0 });
        if cells.iter().any(|man| *man != 0) {
            differ += last.iter().zip(cells).filter(|(a, b)| a != b).count();
            last = *cells;
        }
    }
    frame.set_castling_us_oo(4).set_rule50_count(99).set_invariance_info(0x87).set_side_to_move_or_enpassant(1);
    (record, differ)
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

proptest! {
    #[test]
    fn positions_hold_any_boards_that_have_one_man_on_a_square(
        first in prop::collection::vec(0u8..=12, 64),
        changes in prop::collection::vec((0usize..64, 0u8..=12, 1usize..8), 0..60),
        empty in any::<u8>(),
        repeated in any::<u8>(),
    ) {
        let mut boards = [<[u8; 64]>::try_from(first).unwrap(); 8];
        for (square, man, from) in changes {
            boards[from..].iter_mut().for_each(|cells| cells[square] = man);
        }
        (1..8).filter(|board| empty >> board & 1 != 0).for_each(|board| boards[board] = [0; 64]);
        let (record, differ) = of_boards(&boards, repeated);
        let room = differ.max(1);
        let name = format!("planes:position:{room}");
        let made = encode(stored(&record), &[&*name, "planes:packed"]).unwrap();
        prop_assert_eq!(made[0].len(), 43 + room + room.div_ceil(2));
        prop_assert_eq!(planes_of(&made[0]), made[1].clone());
        let wide = encode(stored(&record), &["planes:position:448"]).unwrap();
        prop_assert_eq!(planes_of(&wide[0]), made[1].clone());
        if differ > 1 {
            let refusal = encode(stored(&record), &[&*format!("planes:position:{}", differ - 1)]).unwrap_err();
            let expected = format!("differ on {differ} squares in all");
            prop_assert!(refusal.detail().contains(&expected) && refusal.detail().contains(&name), "{}", refusal);
        }
    }
}

#[test]
fn planes_that_are_no_position_are_refused_with_their_place() {
    let refused = |plane: usize, word: u64| {
        let (mut record, _) = of_boards(&[[3; 64]], 0);
        FrameMut::new(&mut record).unwrap().set_plane(plane, word);
        let refusal = encode(stored(&record), &["planes:position"]).unwrap_err();
        assert_eq!((refusal.kind().name(), refusal.place().frame), ("out_of_range", Some(9)));
        assert_eq!(refusal.place().offset, Some((at::PLANES + 8 * plane) as u64));
        refusal.detail().to_owned()
    };
    assert!(refused(7, 0x80).contains("two men on square 0 of board 0"));
    assert!(refused(38, 2).contains("the repetition plane 0x2 of board 2"));
    let (mut record, _) = of_boards(&[[3; 64]], 0);
    FrameMut::new(&mut record).unwrap().set_input_format_value(6);
    assert_eq!(encode(stored(&record), &["planes:position"]).unwrap_err().kind().name(), "out_of_range");
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

    let mut boards = [[0; 64]; 3];
    (boards[0][0], boards[0][28], boards[0][63]) = (4, 1, 12);
    (boards[2][0], boards[2][12], boards[2][63]) = (4, 1, 12);
    let (record, _) = of_boards(&boards, 4);
    let position = &encode(stored(&record), &["planes:position"]).unwrap()[0];
    let mut expected = [0; 75];
    (expected[0], expected[14], expected[31]) = (0x40, 0x10, 0x0c);
    (expected[32], expected[33], expected[34]) = (0b100, 0b101, 0b100);
    expected[35..43].copy_from_slice(&[0, 4, 0, 0, 1, 99, 0x87, 1]);
    expected[43..64].fill(255);
    (expected[43], expected[44], expected[64]) = (64 | 12, 28, 0x10);
    assert_eq!(position[..], expected);
}
