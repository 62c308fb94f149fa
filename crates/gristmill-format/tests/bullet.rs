//! Boards of bulletformat: golden bytes, round trips, tensors, and what is refused with its place.
#![allow(missing_docs, clippy::unwrap_used)]

use gristmill_format::bullet::board::{BYTES, Board, at, begins, check_all, layout};
use gristmill_format::bullet::source::{BoardFile, TOGETHER};
use gristmill_format::bullet::{BoardEncoder, KIND};
use gristmill_format::detect::{Format, detect};
use gristmill_format::encode::{Encoder, Provenance, Row};
use gristmill_format::nnue::NONE;
use gristmill_format::source::{Chunk, ChunkSource, Limits};
use gristmill_format::{Kind, layout::Layout};
use proptest::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

/// The first position of a game.
pub(crate) fn start() -> Board {
    let back = [3, 1, 2, 4, 5, 2, 1, 3];
    let mut men: Vec<(u8, u8)> = (0..8).map(|file| (file, back[usize::from(file)])).collect();
    men.extend((8..16).map(|square| (square, 0)));
    men.extend((48..56).map(|square| (square, 8)));
    men.extend((0..8).map(|file| (56 + file, 8 + back[usize::from(file)])));
    Board::of(&men, 25, 1).unwrap()
}

/// Any board that can be: two kings apart, and other men where they may stand.
fn any_board() -> impl Strategy<Value = Board> {
    let men = prop::collection::btree_map(0u8..64, (0u8..5, any::<bool>()), 0..20);
    (men, 0u8..64, 0u8..64, any::<i16>(), 0u8..3).prop_filter_map("no board", |(men, own, other, score, result)| {
        let mut all: Vec<(u8, u8)> =
            men.into_iter().map(|(at, (sort, side))| (at, sort + 8 * u8::from(side))).collect();
        all.retain(|(at, man)| *at != own && *at != other && (man & 7 != 0 || (8..56).contains(at)));
        all.extend([(own, 5), (other, 13)]);
        all.sort_unstable();
        Board::of(&all, score, result).ok()
    })
}

/// A board with some of its bytes changed.
fn with(edits: &[(usize, u8)]) -> [u8; BYTES] {
    let mut bytes = *start().bytes();
    edits.iter().for_each(|(at, byte)| bytes[*at] = *byte);
    bytes
}

#[test]
fn golden_bytes() {
    let board = start();
    let expected = [
        0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0x13, 0x42, 0x25, 0x31, 0, 0, 0, 0, 0x88, 0x88, 0x88, 0x88, 0x9b, 0xca,
        0xad, 0xb9, 25, 0, 1, 4, 4, 0, 0, 0,
    ];
    assert_eq!(board.bytes(), &expected);
    assert_eq!((board.men(), board.score(), board.result()), (32, 25, 1));
    assert_eq!((board.pieces().next(), board.pieces().last()), (Some((0, 3)), Some((63, 11))));
    assert_eq!((layout().size(), layout().field("opp_ksq").unwrap().offset), (BYTES, at::OPP_KSQ));
}

#[test]
fn the_page_has_every_field_and_tensor() {
    let page = include_str!("../../../docs/format/bulletformat.md");
    for field in layout().fields() {
        assert!(page.contains(&format!("| {} | `{}` |", field.offset, field.name)), "{}", field.name);
    }
    let names = ["stm", "nstm", "score", "result", "planes"].map(String::from);
    let all = BoardEncoder::new(&names).unwrap();
    assert!(all.outputs().iter().all(|spec| page.contains(&format!(
        "| `{}` | {}",
        spec.name,
        match spec.name.as_str() {
            "stm" | "nstm" => "i32[32]",
            "planes" => "f32[12, 8, 8]",
            _ => "f32",
        }
    ))));
}

#[test]
fn what_is_no_board_is_refused_with_its_byte() {
    let no_black_king = with(&[(22, 0xa9)]);
    let cases: [(&str, [u8; BYTES], u64); 10] = [
        ("men on the board", [0; BYTES], 0),
        ("sort 6", with(&[(9, 0x46)]), 9),
        ("sort 7", with(&[(16, 0x8f)]), 16),
        ("a second king", with(&[(9, 0x45)]), 10),
        ("without a king", no_black_king, 8),
        ("a pawn on a1", with(&[(8, 0x10)]), 8),
        ("own king", with(&[(27, 5)]), 27),
        ("other king", with(&[(28, 60)]), 28),
        ("a result of 3", with(&[(26, 3)]), 26),
        ("a man without a square", with(&[(7, 0x7f)]), 23),
    ];
    for (says, bytes, byte) in cases {
        let e = Board::new(&bytes).unwrap_err();
        assert!(e.kind() == Kind::OutOfRange && e.detail().contains(says), "{says}: {e}");
        assert_eq!(e.place().offset, Some(byte), "{says}: {e}");
        let file = [&start().bytes()[..], &bytes].concat();
        let e = check_all(&file, 8192).unwrap_err();
        assert_eq!((e.place().frame, e.place().offset), (Some(1), Some(8192 + 32 + byte)), "{e}");
        assert!(!begins(&file));
    }
    assert!(Board::of(&[(0, 5), (9, 13)], 0, 0).unwrap_err().detail().contains("side by side, on a1 and b2"));
    assert_eq!(Board::of(&[(7, 5), (8, 13)], 0, 0).unwrap().men(), 2);
    assert_eq!(Board::new(&[0; 31]).unwrap_err().kind(), Kind::WrongSize);
}

#[test]
fn a_file_is_cut_into_chunks_and_one_that_is_cut_is_refused() {
    let boards = TOGETHER * 2 + 3;
    let mut file = start().bytes().repeat(boards);
    let source = BoardFile::open("a.bf", &file[..]).unwrap();
    assert_eq!((source.len(), source.frames(2), source.frames(3), source.describe().kind), (3, Some(3), None, KIND));
    let (span, _) = source.locate(2).unwrap();
    file[TOGETHER * 2 * BYTES + BYTES + 26] = 9;
    let bytes = &file[span.offset as usize..];
    let mut out = Chunk::default();
    let e = source.decode(2, bytes, &Limits::default(), &mut out).unwrap_err();
    let place = e.place();
    assert_eq!((place.chunk, place.frame, place.offset), (Some(2), Some(1), Some(16384 + 32 + 26)), "{e}");
    let e = BoardFile::open("a.bf", &file[..file.len() - 1]).unwrap_err();
    let place = e.place();
    assert_eq!((e.kind(), place.frame, place.offset), (Kind::WrongSize, Some(514), Some(514 * 32)), "{e}");
}

#[test]
fn both_ends_of_a_file_tell_it_from_another_one() {
    let sample = |file: &[u8]| BoardFile::open("a.bf", file).unwrap().sample().unwrap();
    for boards in [0, 1, TOGETHER, TOGETHER + 1, 2 * TOGETHER, 2 * TOGETHER + 9] {
        let file: Vec<u8> = (0..boards * BYTES).map(|at| (at % 251) as u8).collect();
        let last = file.len().saturating_sub(TOGETHER * BYTES).max(file.len().min(TOGETHER * BYTES));
        let ends = [&file[..file.len().min(TOGETHER * BYTES)], &file[last..]].concat();
        assert_eq!(sample(&file), xxh3_64(&ends), "{boards} boards");
    }
}

#[test]
fn files_are_known_by_name_or_by_their_boards() {
    let head = start().bytes().repeat(48);
    assert_eq!(detect("a.BF", &[]).unwrap(), Some(Format::Bullet));
    assert_eq!(detect("a.data", &head).unwrap(), Some(Format::Bullet));
    assert_eq!(detect("a.data", &head[..31]).unwrap(), None);
    assert_eq!(detect("a.data", &[7; 1536]).unwrap(), None);
}

#[test]
fn records_of_something_else_and_other_tensors_are_refused() {
    let encoder = BoardEncoder::new(&[]).unwrap();
    assert!(encoder.fits(layout()).is_ok());
    let other = Layout::parse_descr("[('score', '<i2')]").unwrap();
    assert_eq!(encoder.fits(&other).unwrap_err().kind(), Kind::Unfit);
    let e = BoardEncoder::new(&["probs".to_owned()]).unwrap_err();
    assert!(e.detail().contains("stm, nstm, score, result, planes"), "{e}");
    assert_eq!(BoardEncoder::new(&["stm".to_owned(), "stm".to_owned()]).unwrap_err().kind(), Kind::Corrupt);
}

/// The tensors of a board, as they are in memory.
fn tensors(board: &Board) -> Vec<Vec<u8>> {
    let encoder = BoardEncoder::new(&["stm", "nstm", "score", "result", "planes"].map(String::from)).unwrap();
    let mut out: Vec<Vec<u8>> = encoder.outputs().iter().map(|spec| vec![0xee; spec.row_bytes()]).collect();
    let row = Row { record: board.bytes(), provenance: Provenance::default(), bits: Default::default(), sparse: None };
    encoder.encode(&[row], &mut out.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>()).unwrap();
    out
}

fn whole(bytes: &[u8]) -> Vec<i32> {
    bytes.as_chunks().0.iter().map(|cell| i32::from_le_bytes(*cell)).collect()
}

proptest! {
    #[test]
    fn boards_come_back(board in any_board()) {
        let men: Vec<(u8, u8)> = board.pieces().collect();
        prop_assert_eq!(Board::of(&men, board.score(), board.result()).unwrap(), board);
        prop_assert_eq!(Board::new(board.bytes()).unwrap(), board);
        prop_assert_eq!(&board.position(false)[..], &board.bytes()[..24]);
        let mut mirrored: Vec<(u8, u8)> = men.iter().map(|(at, man)| (at ^ 7, *man)).collect();
        mirrored.sort_unstable();
        let image = Board::of(&mirrored, 0, 0).unwrap();
        prop_assert_eq!(board.position(true), image.position(false));
        prop_assert_eq!(image.position(true), board.position(false));
    }

    #[test]
    fn the_other_side_sees_the_same_men(board in any_board()) {
        let made = tensors(&board);
        let mut turned: Vec<(u8, u8)> = board.pieces().map(|(at, man)| (at ^ 56, man ^ 8)).collect();
        turned.sort_unstable();
        let other = tensors(&Board::of(&turned, board.score(), board.result()).unwrap());
        let sorted = |bytes: &[u8]| { let mut all = whole(bytes); all.sort_unstable(); all };
        prop_assert_eq!(sorted(&made[0]), sorted(&other[1]));
        prop_assert_eq!(sorted(&made[1]), sorted(&other[0]));
        let there: Vec<i32> = whole(&made[0]).into_iter().filter(|feature| *feature != NONE).collect();
        prop_assert_eq!(there.len(), board.men() as usize);
        let planes: Vec<i32> = (0..768).filter(|i| made[4][4 * *i as usize..][..4] == 1f32.to_le_bytes()).collect();
        let mut there = there; there.sort_unstable();
        prop_assert_eq!(planes, there);
        prop_assert_eq!(&made[2][..], &f32::from(board.score()).to_le_bytes()[..]);
        prop_assert_eq!(&made[3][..], &(f32::from(board.result()) / 2.0).to_le_bytes()[..]);
    }

    #[test]
    fn any_bytes_are_read_or_refused_with_a_place(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        match check_all(&bytes, 0) {
            Ok(boards) => prop_assert_eq!(boards * BYTES, bytes.len()),
            Err(e) => prop_assert!(e.place().offset.is_some_and(|at| at < bytes.len() as u64) && e.place().frame.is_some()),
        }
    }
}
