//! Stockfish's binpacks: files of another writer, round trips, rare moves, tensors, and what is refused with its place.
#![allow(missing_docs, clippy::unwrap_used)]

use gristmill_format::binpack::Board;
use gristmill_format::binpack::boards::of_board;
use gristmill_format::binpack::chain::{HEAD, put_stem, signed, stem, unsigned};
use gristmill_format::binpack::record::{BYTES, DERIVED, NO_SCORE, Told, WORTH, check_all, layout, push};
use gristmill_format::binpack::source::{Binpack, HEADER, MAX_BLOCK};
use gristmill_format::binpack::write::Writer;
use gristmill_format::binpack::{KIND, Men, Move, Position, PositionEncoder};
use gristmill_format::encode::{Encoder, Provenance, Row};
use gristmill_format::source::{Chunk, ChunkSource, Limits, read_span};
use gristmill_format::{Kind, Result, bullet};
use proptest::prelude::*;

/// Written by sfbinpack 0.6.5: 12 random games of `bench/stockfish`, with castling, en passant, promotions and gaps.
const GOLDEN: &[u8] = include_bytes!("../../../fuzz/corpus/binpack/golden");
/// Chains and positions in it, and the sum of its records as sfbinpack reads them.
const GOLDEN_COUNTS: (usize, usize) = (189, 1597);
const GOLDEN_HASH: u64 = 0xeaa8_40f8_5174_573f;

fn decode(source: &Binpack, i: usize, file: &[u8]) -> Result<Vec<u8>> {
    let (mut stored, mut out) = (Vec::new(), Chunk::default());
    read_span(file, source.locate(i).unwrap().0, u64::MAX, &mut stored)?;
    source.decode(i, &stored, &Limits::default(), &mut out)?;
    Ok(out.records().to_vec())
}

/// The records of each chain of a file that is whole.
fn chains(file: &[u8]) -> Vec<Vec<u8>> {
    let source = Binpack::open("a.binpack", file).unwrap();
    assert_eq!(source.faults(), []);
    (0..source.len()).map(|i| decode(&source, i, file).unwrap()).collect()
}

fn written(records: &[u8]) -> Vec<u8> {
    let (mut writer, mut file) = (Writer::default(), Vec::new());
    records.as_chunks::<BYTES>().0.iter().for_each(|one| writer.add(&Position::new(one).unwrap(), &mut file));
    writer.finish(&mut file);
    file
}

/// A small file and the positions in its chains.
pub(crate) fn file() -> (Vec<u8>, Vec<Vec<u8>>) {
    let few = chains(GOLDEN).into_iter().filter(|chain| (2..9).contains(&(chain.len() / BYTES))).take(3);
    let few: Vec<Vec<u8>> = few.collect();
    let file = written(&few.concat());
    assert_eq!(chains(&file), few);
    (file, few)
}

/// Men by the letters of a board, rank 8 first: `E` and `e` are pawns that can be taken in passing, `C` and `c` rooks that may castle.
fn men(ranks: &str, black: bool) -> Men {
    let ranks: Vec<&str> = ranks.split('/').collect();
    let (mut men, mut count) = (Men::default(), 0);
    for square in 0..64usize {
        let letter = ranks[7 - square / 8].as_bytes()[square % 8];
        let nibble = match letter {
            b'.' => continue,
            b'E' | b'e' => 12,
            b'C' => 13,
            b'c' => 14,
            b'k' if black => 15,
            _ => {
                let sort = b"pnbrqk".iter().position(|own| *own == letter.to_ascii_lowercase()).unwrap();
                2 * sort as u8 + u8::from(letter.is_ascii_lowercase())
            }
        };
        men.occ |= 1 << square;
        men.pcs |= u128::from(nibble) << (4 * count);
        count += 1;
    }
    men
}

fn square(name: &str) -> u16 {
    let name = name.as_bytes();
    u16::from((name[1] - b'1') * 8 + name[0] - b'a')
}

fn played(kind: u16, from: &str, to: &str) -> Move {
    Move(kind << 14 | square(from) << 8 | square(to) << 2)
}

fn told(played: Move) -> Told {
    Told { played, score: 5, ply: 20, result: 1, rule50: 3 }
}

fn record(men: &Men, told: &Told) -> Vec<u8> {
    let mut record = Vec::new();
    push(&mut record, men, told, 0);
    record
}

/// Plays moves on a board, one after another.
fn after(ranks: &str, black: bool, moves: &[Move]) -> (Board, Vec<u8>) {
    let (mut board, mut all) = (Board::new(men(ranks, black)).unwrap(), Vec::new());
    let mut known = told(Move::NONE);
    for one in moves {
        board.check_move(*one).unwrap();
        known.played = *one;
        push(&mut all, board.men(), &known, 0);
        let last = board.play(*one).unwrap();
        known.rule50 = if last { 0 } else { known.rule50 + 1 };
        (known.ply, known.result) = (known.ply + 1, -known.result);
    }
    (board, all)
}

#[test]
fn files_of_another_writer_are_read_and_written_to_the_byte() {
    let all = chains(GOLDEN);
    let positions: usize = all.iter().map(|chain| chain.len() / BYTES).sum();
    assert_eq!((all.len(), positions), GOLDEN_COUNTS);
    let mut plain = all.concat();
    plain.chunks_exact_mut(BYTES).for_each(|record| record[BYTES - 1] = 0);
    assert_eq!(xxhash_rust::xxh3::xxh3_64(&plain), GOLDEN_HASH);
    assert!(written(&all.concat()) == GOLDEN);
    let positions: Vec<Position> =
        all.concat().as_chunks::<BYTES>().0.iter().map(|one| Position::new(one).unwrap()).collect();
    let count = |which: fn(&Position) -> bool| positions.iter().filter(|one| which(one)).count();
    assert!(count(|one| one.told().played.is_castling()) > 1 && count(|one| one.told().played.is_passing()) > 0);
    assert!(count(|one| one.told().played.promotion().is_some()) > 1 && count(|one| !one.has_score()) > 1);
    assert!(count(|one| one.board().passing().is_some()) > 1 && count(|one| one.repeated() > 0) > 0);
}

#[test]
fn the_page_has_every_field_name_and_tensor() {
    let page = include_str!("../../../docs/format/binpack.md");
    for field in layout().fields() {
        assert!(page.contains(&format!("| {} | `{}` |", field.offset, field.name)), "{}", field.name);
    }
    let names = ["stm", "nstm", "score", "result", "planes", "board"].map(String::from);
    for spec in PositionEncoder::new(&names).unwrap().outputs() {
        let shape: Vec<String> = spec.row_shape.iter().map(ToString::to_string).collect();
        let shape = if shape.is_empty() { String::new() } else { format!("[{}]", shape.join(", ")) };
        let dtype = format!("{:?}", spec.dtype).to_lowercase();
        assert!(page.contains(&format!("| `{}` | {dtype}{shape} |", spec.name)), "{}", spec.name);
    }
    let said = [format!("{MAX_BLOCK} bytes"), format!("{NO_SCORE}"), WORTH.map(|one| one.to_string()).join(", ")];
    assert!(DERIVED.iter().all(|name| page.contains(&format!("| `{name}` |"))));
    assert!(said.iter().all(|words| page.contains(words)), "{said:?}");
}

#[test]
fn signed_numbers_near_zero_stay_near_zero() {
    for (value, number) in [(0, 0), (-1, 1), (1, 2), (-2, 3), (i16::MAX, 0xfffe), (i16::MIN, 0xffff), (32002, 64004)] {
        assert_eq!((unsigned(value), signed(number)), (number, value));
    }
    assert!((0..=u16::MAX).all(|number| unsigned(signed(number)) == number));
}

#[test]
fn rooks_castle_from_anywhere_and_rights_are_lost() {
    let ranks = ".c..k.c./......../......../......../......../......../......../.C..K.C.";
    let (board, records) = after(ranks, false, &[played(2, "e1", "g1"), played(2, "e8", "b8"), played(0, "g1", "h1")]);
    let expected = men("..kr..r./......../......../......../......../......../......../.R...R.K", true);
    assert_eq!(*board.men(), expected);
    let file = written(&records);
    assert_eq!(chains(&file).len(), 1);
    let plain = |records: &[u8]| records.to_vec();
    assert_eq!(chains(&file)[0], plain(&records));
    // A rook that moves or is taken loses its right, the other keeps its own.
    let (board, _) = after(ranks, false, &[played(0, "g1", "g8")]);
    assert_eq!(*board.men(), men(".c..k.R./......../......../......../......../......../......../.C..K...", true));
    let e = Board::new(men(ranks, false)).unwrap().check_move(played(2, "e1", "h1")).unwrap_err();
    assert!(e.detail().contains("e1h1"), "{e}");
    let crowded = ranks.replace(".C..K.C.", ".C.BK.C.");
    let e = Board::new(men(&crowded, false)).unwrap().check_move(played(2, "e1", "b1")).unwrap_err();
    assert!(e.detail().contains("over other men"), "{e}");
}

#[test]
fn a_double_step_is_marked_where_the_pawn_may_be_taken() {
    let step = [played(0, "e2", "e4")];
    let (board, _) = after("....k.../......../......../......../...p..../......../....P.../....K...", false, &step);
    assert_eq!(*board.men(), men("....k.../......../......../......../...pE.../......../......../....K...", true));
    // The king of the pawn that would take stands on a rank or file that it would open.
    for ranks in [
        "......../......../......../......../k..p...R/......../....P.../....K...",
        "...k..../......../......../......../...p..../......../....P.../K..R....",
        "....k.../......../......../......../......../......../....P.../....K...",
    ] {
        assert_eq!(after(ranks, false, &step).0.passing(), None, "{ranks}");
    }
    let take = [step[0], played(3, "d4", "e3")];
    let (board, records) =
        after("....k.../......../......../......../...p..../......../....P.../....K...", false, &take);
    assert_eq!(*board.men(), men("....k.../......../......../......../......../....p.../......../....K...", false));
    assert_eq!(chains(&written(&records))[0], records);
}

#[test]
fn what_cannot_be_is_refused_with_its_byte() {
    let good = "....k.../......../......../...pP.../......../......../......../C...K..C";
    let board = |ranks: &str, black| Board::new(men(ranks, black)).unwrap_err();
    for (says, ranks) in [
        ("1 men", "......../......../......../......../......../......../......../....K..."),
        ("White has 0 kings", "....k.../......../......../......../......../......../......../R......."),
        ("side by side, on e1 and e2", "......../......../......../......../......../......../....k.../....K..."),
        ("a pawn on a8", "P...k.../......../......../......../......../......../......../....K..."),
        ("may castle", "....k.../......../......../......../......../......../C......./....K..."),
        ("may castle", "....k.../......../......../......../......../......../......../CC..K..."),
        ("double step just now", "....k.../......../......../...e..../......../......../......../....K..."),
    ] {
        let e = board(ranks, says.contains("double"));
        assert!(e.kind() == Kind::OutOfRange && e.detail().contains(says) && e.place().offset.is_some(), "{says}: {e}");
    }
    let mut more = men(good, false);
    more.pcs |= 1 << 100;
    assert!(Board::new(more).unwrap_err().detail().contains("a man without a square"));
    let men = men(good, false);
    for (says, byte, wrong) in [
        ("a1b2", 24, told(played(0, "a1", "b2"))),
        ("d5d4", 24, told(played(0, "d5", "d4"))),
        ("e5d6", 24, told(played(3, "e5", "d6"))),
        ("e5e6", 24, told(played(1, "e5", "e6"))),
        ("ply 20000", 28, Told { ply: 20000, ..told(Move::NONE) }),
        ("a result of 2", 30, Told { result: 2, ..told(Move::NONE) }),
    ] {
        let e = Position::new(&record(&men, &wrong)).unwrap_err();
        assert!(e.detail().contains(says) && e.place().offset == Some(byte), "{says}: {e}");
    }
    let mut bytes = Vec::new();
    put_stem(&men, &told(Move::NONE), &mut bytes);
    let bad = |edits: &[(usize, u8)]| {
        let mut bytes: [u8; 32] = bytes[..].try_into().unwrap();
        edits.iter().for_each(|(at, byte)| bytes[*at] = *byte);
        stem(&bytes).unwrap_err()
    };
    assert!(bad(&[(28, 0xc0)]).detail().contains("a result of -2"));
    assert!(bad(&[(30, 1)]).detail().contains("at most 255"));
    assert_eq!(check_all(&record(&men, &told(Move::NONE))[..20]).unwrap_err().kind(), Kind::WrongSize);
}

#[test]
fn a_broken_chain_is_refused_with_its_place_and_others_are_read() {
    let (file, all) = file();
    let source = Binpack::open("a.binpack", &file[..]).unwrap();
    let second = source.locate(1).unwrap().0;
    let mut damaged = [&file[..], &file[..]].concat();
    // A knight that no side has room for: the stem of the second chain of the first block.
    damaged[second.offset as usize + 8] ^= 0xf0;
    let found = Binpack::open("a.binpack", &damaged[..]).unwrap();
    assert_eq!((found.len(), found.frames(0), found.frames(1)), (2 + all.len(), source.frames(0), None));
    assert_eq!(decode(&found, 0, &damaged).unwrap(), all[0]);
    let e = decode(&found, 1, &damaged).unwrap_err();
    assert_eq!(
        (e.place().chunk, e.place().frame, e.place().offset),
        (Some(1), Some(0), Some(second.offset + 8)),
        "{e}"
    );
    assert!(e.detail().contains("up to the end of its block are not read"), "{e}");
    assert_eq!((2..found.len()).map(|i| decode(&found, i, &damaged).unwrap()).collect::<Vec<_>>(), all);
}

#[test]
fn hostile_sizes_and_cut_headers_are_said() {
    let header = |size: u32| [&b"BINP"[..], &size.to_le_bytes()].concat();
    let open = |file: &[u8]| Binpack::open("a.binpack", file);
    for (file, kind, says) in [
        (header(MAX_BLOCK + 1), Kind::TooLarge, "at most 104857600"),
        (header(u32::MAX), Kind::TooLarge, "4294967295"),
        (b"BINX\0\0\0\0".to_vec(), Kind::Corrupt, "BINP"),
        (b"BINP\0".to_vec(), Kind::Truncated, "5 bytes"),
        (b"BI".to_vec(), Kind::Truncated, "2 bytes"),
    ] {
        let e = open(&file).unwrap_err();
        assert!(e.kind() == kind && e.detail().contains(says) && e.place().offset == Some(0), "{e}");
        let (whole, all) = self::file();
        let behind = [&whole[..], &file].concat();
        let source = open(&behind).unwrap();
        assert_eq!((source.len(), source.faults().len()), (all.len(), 1));
        assert_eq!(source.faults()[0].place().offset, Some(whole.len() as u64));
        assert!(source.faults()[0].detail().contains("are not read"), "{:?}", source.faults());
    }
    assert!(open(&header(0)).unwrap().is_empty() && open(b"").unwrap().is_empty());
    // More plies than the block has bits for, within a bound that is smaller still.
    let mut chain = self::file().0[HEADER..HEADER + HEAD].to_vec();
    chain[HEAD - 2..].fill(0xff);
    let file = [header(HEAD as u32), chain.clone()].concat();
    let source = open(&file).unwrap();
    let e = source.decode(0, &chain, &Limits { max_chunk_bytes: 33 * 1000 }, &mut Chunk::default()).unwrap_err();
    assert!(e.kind() == Kind::TooLarge && e.place().offset == Some(8 + 32), "{e}");
    let e = decode(&source, 0, &file).unwrap_err();
    assert!(e.kind() == Kind::Truncated && e.place().frame == Some(1), "{e}");
}

#[test]
fn every_cut_is_said_and_loses_nothing_before_it() {
    let (file, all) = file();
    let source = Binpack::open("a.binpack", &file[..]).unwrap();
    let ends: Vec<usize> =
        (0..all.len()).map(|i| source.locate(i).unwrap().0).map(|s| (s.offset + s.len) as usize).collect();
    for cut in 1..file.len() {
        let Ok(found) = Binpack::open("a.binpack", &file[..cut]) else {
            assert!(cut < HEADER);
            continue;
        };
        let read: Vec<_> = (0..found.len()).map(|i| decode(&found, i, &file[..cut])).collect();
        let whole = ends.iter().take_while(|end| **end <= cut).count();
        assert!(read[..whole].iter().zip(&all).all(|(a, b)| a.as_ref() == Ok(b)), "cut at {cut}");
        let said = found.faults().len() + read.iter().filter(|one| one.is_err()).count();
        assert_eq!(said, 1, "cut at {cut}");
    }
}

#[test]
fn positions_that_stand_again_are_counted() {
    let ranks = "....k.../......../......../......../......../......../......../R...K...";
    let around = [("a1", "b1"), ("e8", "d8"), ("b1", "a1"), ("d8", "e8")].map(|(from, to)| played(0, from, to));
    let moves: Vec<Move> = around.into_iter().cycle().take(13).collect();
    let (_, records) = after(ranks, false, &moves);
    let read = chains(&written(&records));
    let repeated: Vec<u8> = read[0].as_chunks::<BYTES>().0.iter().map(|record| record[BYTES - 1]).collect();
    assert_eq!(repeated, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3]);
}

#[test]
fn rules_have_what_filters_ask() {
    let (board, told_of) =
        ("....k.../......../......../...p..../....P.../......../......../R...K...", |played| told(played));
    let of = |ranks: &str, black: bool, told: Told| Position::new(&record(&men(ranks, black), &told)).unwrap();
    let one = of(board, false, told_of(played(0, "e4", "d5")));
    let values: Vec<i64> = (0..DERIVED.len()).map(|i| one.derived(i).unwrap()).collect();
    // men, in_check, capture, promotion, castling, simple_eval, no_score, black_to_move
    assert_eq!(values, [5, 0, 1, 0, 0, 1276, 0, 0]);
    let check = "....k.../......../......../......../......../......../......../....R..K";
    let other = of(check, true, Told { score: NO_SCORE, ..told(played(0, "e8", "d8")) });
    let values: Vec<i64> = (0..DERIVED.len()).map(|i| other.derived(i).unwrap()).collect();
    assert_eq!(values, [3, 1, 0, 0, 0, -1276, 1, 1]);
    assert_eq!(other.derived(DERIVED.len()).unwrap_err().kind(), Kind::Missing);
}

#[test]
fn features_are_those_of_the_same_board_of_bulletformat() {
    let names = ["stm", "nstm", "score", "result", "planes", "halfkav2_hm_stm", "halfkav2_hm_nstm", "men_bucket"];
    let names = names.map(String::from);
    let views = ["halfkp_white", "halfkp_black", "halfkp_stm", "halfkp_nstm", "white_to_move"].map(String::from);
    let coloured = PositionEncoder::new(&views).unwrap();
    let (ours, theirs) = (PositionEncoder::new(&names).unwrap(), bullet::BoardEncoder::new(&names).unwrap());
    let made = |encoder: &dyn Encoder, record: &[u8]| {
        let mut out: Vec<Vec<u8>> = encoder.outputs().iter().map(|spec| vec![0xee; spec.row_bytes()]).collect();
        let row = Row { record, provenance: Provenance::default(), bits: Default::default(), sparse: None };
        encoder.encode(&[row], &mut out.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>()).unwrap();
        out
    };
    let boards = PositionEncoder::new(&["board".to_owned()]).unwrap();
    let alone = |record: &[u8]| made(&boards, record);
    for record in chains(GOLDEN).concat().as_chunks::<BYTES>().0 {
        let position = Position::new(record).unwrap();
        let men: Vec<(u8, u8)> =
            position.board().seen().map(|(at, sort, own)| (at, sort as u8 + if own { 0 } else { 8 })).collect();
        let told = position.told();
        let board = bullet::Board::of(&men, told.score, (told.result + 1) as u8).unwrap();
        assert_eq!(position.board_bytes(), *board.bytes());
        assert_eq!(alone(record), [board.bytes().to_vec()]);
        if position.has_score() {
            let back = Position::new(&of_board(board.bytes()).unwrap()).unwrap();
            assert!(back.board_bytes() == *board.bytes() && !back.board().black() && back.told().played == Move::NONE);
        } else {
            assert!(of_board(board.bytes()).unwrap_err().detail().contains("32002"));
        }
        assert_eq!(made(&ours, record), made(&theirs, board.bytes()));
        let [white, black, stm, nstm, white_to_move] = made(&coloured, record).try_into().unwrap();
        let moves = f32::from(!position.board().black());
        assert_eq!(white_to_move, moves.to_le_bytes());
        assert_eq!([white, black], if position.board().black() { [nstm, stm] } else { [stm, nstm] });
    }
    assert!(ours.fits(layout()).is_ok() && ours.fits(bullet::layout()).unwrap_err().kind() == Kind::Unfit);
    assert!(PositionEncoder::new(&["probs".to_owned()]).unwrap_err().detail().contains("stm, nstm, score"));
    assert_eq!(Binpack::open("a.binpack", GOLDEN).unwrap().describe().kind, KIND);
}

#[test]
fn a_position_is_told_in_a_line() {
    let line = |ranks: &str, black: bool| Position::new(&record(&men(ranks, black), &told(Move::NONE))).unwrap().fen();
    assert_eq!(
        line("c...k..c/p......./......../......../...pE.../......../......../.C..KC..", true),
        "r3k2r/p7/8/8/3pP3/8/8/1R2KR2 b FBkq e3 3 11"
    );
    assert_eq!(
        line("....k.../......../......../......../......../......../......../R...K...", false),
        "4k3/8/8/8/8/8/8/R3K3 w - - 3 11"
    );
    assert_eq!(played(0, "e2", "e4").to_string() + &Move(0x4000 | 52 << 8 | 60 << 2 | 3).to_string(), "e2e4e7e8q");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn damaged_bytes_are_read_or_refused_with_a_place(flips in prop::collection::vec((8usize..2000, any::<u8>()), 1..4)) {
        let mut file = GOLDEN[..GOLDEN.len().min(2000)].to_vec();
        flips.iter().for_each(|(at, byte)| if let Some(old) = file.get_mut(*at) { *old ^= byte });
        let source = Binpack::open("a.binpack", &file[..]).unwrap();
        for i in 0..source.len() {
            match decode(&source, i, &file) {
                Ok(records) => prop_assert_eq!(check_all(&records).unwrap() * BYTES, records.len()),
                Err(e) => prop_assert!(e.place().chunk == Some(i as u64) && e.place().offset.is_some(), "{}", e),
            }
        }
    }
}
