//! Features of NNUE: golden rows, the page, views that agree, what is refused, and the same rows of records and of boards.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use gristmill_format::Kind;
use gristmill_format::bullet::{self, BoardEncoder};
use gristmill_format::chess::record::at;
use gristmill_format::chess::transform::{Transform, flip};
use gristmill_format::chess::{ChessEncoder, FrameMut, InputFormat, Outputs, layout_v7};
use gristmill_format::encode::{Encoder, Provenance, Row};
use gristmill_format::nnue::{Board, FeatureSet, MEN, NONE, Side, Tensor};
use proptest::prelude::*;

type Men = [u64; 12];

/// The first position of a game, of either side to move.
const START: Men =
    [0xff00, 0x42, 0x24, 0x81, 0x08, 0x10, 0xff << 48, 0x42 << 56, 0x24 << 56, 0x81 << 56, 0x08 << 56, 0x10 << 56];

/// A row of a tensor.
fn row(name: &str, board: &Board) -> Vec<i32> {
    let tensor = Tensor::named(name).unwrap();
    let mut bytes = vec![0xee; tensor.spec().row_bytes()];
    tensor.write(board, &mut bytes);
    whole(&bytes)
}

fn whole(bytes: &[u8]) -> Vec<i32> {
    bytes.as_chunks().0.iter().map(|cell| i32::from_le_bytes(*cell)).collect()
}

/// What the page says of a man on a square, man by man: the view of the side to move, or of the other.
fn by_hand(set: FeatureSet, men: &Men, side: Side, black: bool) -> Vec<i32> {
    let mut own = *men;
    if side == Side::Waiting {
        own = std::array::from_fn(|i| men[(i + 6) % 12].swap_bytes());
    }
    let is_black = black == (side == Side::ToMove);
    let king = own[5].trailing_zeros() as i32;
    let square = |square: i32| match set {
        // Seen from below, and for Black half a circle of White's squares, which are upside down.
        FeatureSet::HalfKp if is_black => 63 - (square ^ 56),
        FeatureSet::HalfKp => square,
        FeatureSet::HalfKaV2Hm if king % 8 < 4 => square ^ 7,
        FeatureSet::HalfKaV2Hm => square,
    };
    let mut row = Vec::new();
    for (i, mask) in own.iter().enumerate() {
        let (sort, other) = ((i % 6) as i32, (i / 6) as i32);
        for at in (0..64).filter(|at| mask >> at & 1 == 1) {
            match set {
                FeatureSet::HalfKp if sort == 5 => {}
                FeatureSet::HalfKp => row.push(1 + square(at) + 64 * (2 * sort + other) + 641 * square(king)),
                FeatureSet::HalfKaV2Hm => {
                    let seen = square(king);
                    let bucket = 31 - (4 * (seen / 8) + seen % 8 - 4);
                    row.push(square(at) + 64 * (2 * sort + other).min(10) + 704 * bucket);
                }
            }
        }
    }
    row.sort_unstable();
    row.resize(MEN, NONE);
    row
}

/// Any men with a king of each side, one to a square.
fn any_men() -> impl Strategy<Value = Men> {
    let men = prop::collection::btree_map(0u8..64, 0usize..10, 0..30);
    (men, 0u8..64, 1u8..64).prop_map(|(men, own, apart)| {
        let other = (own + apart) % 64;
        let mut masks = [0; 12];
        (masks[5], masks[11]) = (1 << own, 1 << other);
        for (at, sort) in men.into_iter().filter(|(at, _)| *at != own && *at != other) {
            masks[sort % 5 + 6 * (sort / 5)] |= 1 << at;
        }
        masks
    })
}

/// A record that has these men.
fn record(men: &Men, black: bool, format: InputFormat, transform: Transform) -> Vec<u8> {
    let mut bytes = vec![0; layout_v7().size()];
    let mut frame = FrameMut::blank(&mut bytes, format).unwrap();
    for (plane, mask) in men.iter().enumerate() {
        frame.set_plane(plane, flip(transform.apply(*mask)));
    }
    match format.is_canonical() {
        true => frame.set_invariance_info(transform.bits() | u8::from(black) << 7),
        false => frame.set_side_to_move_or_enpassant(black.into()),
    };
    bytes
}

fn encode(encoder: &dyn Encoder, record: &[u8]) -> gristmill_format::Result<Vec<Vec<u8>>> {
    let mut out: Vec<Vec<u8>> = encoder.outputs().iter().map(|spec| vec![0xee; spec.row_bytes()]).collect();
    let provenance = Provenance { source: 1, chunk: 3, frame: 9 };
    let rows = [Row { record, provenance, bits: Default::default(), sparse: None }];
    encoder.encode(&rows, &mut out.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())?;
    Ok(out)
}

fn chess() -> ChessEncoder {
    ChessEncoder::new(&Outputs::parse(&Tensor::ALL.map(|(name, _)| name)).unwrap()).unwrap()
}

/// The names of tensors that boards without colours have.
fn without_colours() -> Vec<String> {
    Tensor::ALL.iter().filter(|(_, t)| !t.needs_colours()).map(|(name, _)| (*name).to_owned()).collect()
}

#[test]
fn the_page_has_every_tensor_and_the_sizes_of_both_sets() {
    let page = include_str!("../../../docs/format/nnue-features.md");
    for (name, tensor) in Tensor::ALL {
        let spec = tensor.spec();
        let shape = spec.row_shape.iter().map(|n| format!("[{n}]")).collect::<String>();
        let line = page.lines().find(|line| line.starts_with(&format!("| `{name}` |"))).unwrap();
        assert!(line.starts_with(&format!("| `{name}` | {:?}{shape} |", spec.dtype).to_lowercase()), "{line}");
        assert!(line.ends_with(if tensor.needs_colours() { "| no |" } else { "| yes |" }), "{line}");
    }
    assert_eq!((FeatureSet::HalfKp.inputs(), FeatureSet::HalfKaV2Hm.inputs()), (41_024, 22_528));
    assert!(page.contains("41 024 features") && page.contains("22 528 features"));
}

#[test]
fn golden_rows_of_two_kings_and_a_pawn() {
    // White: king a1, pawn c2. Black: king e8. Both by hand from the page.
    let mut men = [0; 12];
    (men[0], men[5], men[11]) = (1 << 10, 1, 1 << 60);
    let board = Board::new(men, Some(false)).unwrap();
    let (first, then) = (|name: &str| row(name, &board)[0], |name: &str| row(name, &board)[1..].to_vec());
    assert_eq!((first("halfkp_white"), then("halfkp_white")), (1 + 10, vec![NONE; 31]));
    assert_eq!((first("halfkp_black"), then("halfkp_black")), (1 + 53 + 64 + 641 * 3, vec![NONE; 31]));
    // a1 becomes h1, bucket 28; c2 becomes f2; e8 becomes d8.
    assert_eq!(row("halfkav2_hm_white", &board)[..4], [19712 + 13, 19712 + 640 + 7, 19712 + 640 + 59, NONE]);
    // Upside down e8 is e1, bucket 31; a1 is a8; c2 is c7.
    assert_eq!(row("halfkav2_hm_black", &board)[..4], [21824 + 64 + 50, 21824 + 640 + 4, 21824 + 640 + 56, NONE]);
    assert_eq!((row("men_bucket", &board), row("white_to_move", &board)), (vec![0], vec![1f32.to_bits() as i32]));
    let full = Board::new(START, Some(true)).unwrap();
    assert_eq!((row("men_bucket", &full), row("white_to_move", &full)), (vec![7], vec![0]));
    assert_eq!(row("halfkp_stm", &full)[29..].iter().filter(|feature| **feature == NONE).count(), 2);
}

#[test]
fn men_that_no_row_can_have_are_refused() {
    let mut crowded = START;
    crowded[1] |= 1 << 30;
    let with = |i: usize, mask: u64| {
        let mut men = START;
        men[i] = mask;
        men
    };
    for (says, men) in [
        ("0 kings of the side to move", with(5, 0)),
        ("2 kings of the side to move", with(5, 0x10 | 1 << 30)),
        ("0 kings of the other side", with(11, 0)),
        ("32 men on 31 squares", with(4, 0x10)),
        ("33 men on the board", crowded),
    ] {
        let e = Board::new(men, None).unwrap_err();
        assert!(e.kind() == Kind::OutOfRange && e.detail().contains(says), "{says}: {e}");
        let e = encode(&chess(), &record(&men, false, InputFormat::Classical, Transform::NONE)).unwrap_err();
        let place = e.place();
        assert_eq!((place.chunk, place.frame, place.offset), (Some(3), Some(9), Some(at::PLANES as u64)), "{e}");
    }
    let mut unknown = record(&START, false, InputFormat::Classical, Transform::NONE);
    unknown[at::INPUT_FORMAT] = 9;
    assert!(encode(&chess(), &unknown).unwrap_err().detail().contains("input_format 9"));
    let e = BoardEncoder::new(&["halfkp_white".to_owned()]).unwrap_err();
    assert!(e.kind() == Kind::Missing && e.detail().contains("who is White"), "{e}");
    let e = BoardEncoder::new(&["halfkp".to_owned()]).unwrap_err();
    assert!(e.detail().contains("halfkav2_hm_stm") && !e.detail().contains("halfkp_white"), "{e}");
    assert!(Outputs::parse(&["halfkp"]).unwrap_err().detail().contains("halfkp_white"));
}

proptest! {
    #[test]
    fn rows_are_those_that_are_made_by_hand(men in any_men(), black: bool) {
        let board = Board::new(men, Some(black)).unwrap();
        for (set, name) in [(FeatureSet::HalfKp, "halfkp"), (FeatureSet::HalfKaV2Hm, "halfkav2_hm")] {
            let (stm, nstm) = (by_hand(set, &men, Side::ToMove, black), by_hand(set, &men, Side::Waiting, black));
            prop_assert!(stm.iter().all(|feature| (NONE..set.inputs() as i32).contains(feature)));
            prop_assert_eq!(&row(&format!("{name}_stm"), &board), &stm);
            prop_assert_eq!(&row(&format!("{name}_nstm"), &board), &nstm);
            let (white, black) = if black { (nstm, stm) } else { (stm, nstm) };
            prop_assert_eq!(row(&format!("{name}_white"), &board), white);
            prop_assert_eq!(row(&format!("{name}_black"), &board), black);
        }
    }

    #[test]
    fn mirrored_and_turned_positions_have_the_rows_of_the_page(men in any_men(), black: bool) {
        let board = Board::new(men, Some(black)).unwrap();
        let mirrored = Board::new(men.map(flip), Some(black)).unwrap();
        let swapped = Board::new(men, Some(!black)).unwrap();
        let passed = Board::new(std::array::from_fn(|i| men[(i + 6) % 12].swap_bytes()), Some(!black)).unwrap();
        for side in ["stm", "nstm"] {
            let name = format!("halfkav2_hm_{side}");
            prop_assert_eq!(row(&name, &board), row(&name, &mirrored));
            prop_assert_eq!(row(&name, &board), row(&name, &swapped));
        }
        for set in ["halfkp", "halfkav2_hm"] {
            prop_assert_eq!(row(&format!("{set}_stm"), &board), row(&format!("{set}_nstm"), &passed));
            prop_assert_eq!(row(&format!("{set}_nstm"), &board), row(&format!("{set}_stm"), &passed));
            for colour in ["white", "black"] {
                let name = format!("{set}_{colour}");
                prop_assert_eq!(row(&name, &board), row(&name, &passed));
            }
        }
    }

    #[test]
    fn records_of_every_format_have_the_rows_of_their_men(men in any_men(), black: bool, bits in 0u8..8) {
        let board = Board::new(men, Some(black)).unwrap();
        for format in InputFormat::ALL {
            let transform = if format.is_canonical() { Transform::from_bits(bits) } else { Transform::NONE };
            let made = encode(&chess(), &record(&men, black, format, transform)).unwrap();
            for ((name, _), bytes) in Tensor::ALL.iter().zip(made) {
                prop_assert_eq!(whole(&bytes), row(name, &board), "{}", name);
            }
        }
    }

    #[test]
    fn records_and_boards_of_bulletformat_have_the_same_rows(men in any_men()) {
        let mut list: Vec<(u8, u8)> = Vec::new();
        for (mask, man) in men.iter().zip((0u8..6).chain(8..14)) {
            list.extend((0u8..64).filter(|at| mask >> at & 1 == 1).map(|at| (at, man)));
        }
        list.sort_unstable();
        let names = without_colours();
        if let Ok(board) = bullet::Board::of(&list, 0, 1) {
            let chess = ChessEncoder::new(&Outputs::parse(&names).unwrap()).unwrap();
            let record = record(&men, false, InputFormat::Classical, Transform::NONE);
            let boards = BoardEncoder::new(&names).unwrap();
            prop_assert_eq!(encode(&chess, &record).unwrap(), encode(&boards, board.bytes()).unwrap());
        }
    }

    #[test]
    fn any_masks_are_taken_or_refused(men: [u64; 12]) {
        let sparse = men.map(|mask| mask & mask >> 7 & mask >> 13 & mask >> 29);
        for men in [men, sparse] {
            if let Ok(board) = Board::new(men, None) {
                prop_assert!((2..=32).contains(&board.count()));
            }
        }
    }
}
