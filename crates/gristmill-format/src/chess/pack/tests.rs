//! Round trips to the bit: played games, records of anything, transforms; positions alone equal those of the whole.

use cozy_chess::{Board as Rules, Color, Piece};
use gristmill_bytes::encode::{Encoder, Provenance, Row};
use gristmill_bytes::error::Kind;
use proptest::prelude::*;

use super::*;
use crate::chess::frame::{Frame, FrameMut};
use crate::chess::record::{InputFormat, Version, at};
use crate::chess::transform::{PolicyMapping, Transform, mirror};
use crate::chess::{Board, ChessEncoder, Output, Outputs};

const MOST: usize = 8 << 20;

/// SplitMix64.
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n as u64) as usize
    }

    fn unit(&mut self) -> f32 {
        self.below(1 << 24) as f32 / (1 << 24) as f32
    }
}

/// The masks of a board as the side to move sees it, in square order.
fn masks(rules: &Rules) -> [u64; 12] {
    let us = rules.side_to_move();
    std::array::from_fn(|i| {
        let color = if i < 6 { us } else { !us };
        let mask = rules.colored_pieces(color, Piece::ALL[i % 6]).0;
        if us == Color::White { mask } else { mirror(mask) }
    })
}

/// A game of random legal moves as self-play records it.
pub(super) fn game(seed: u64, version: Version, format: InputFormat, start: &str, plies: usize) -> Vec<u8> {
    let mut numbers = Numbers(seed);
    let mut rules: Rules = start.parse().unwrap();
    let mut past: Vec<[u64; 12]> = Vec::new();
    let (mut out, mut record) = (Vec::new(), vec![0; version.bytes()]);
    for ply in 0..plies {
        let mut moves = Vec::new();
        rules.generate_moves(|some| {
            moves.extend(some);
            false
        });
        if moves.is_empty() {
            break;
        }
        let black = rules.side_to_move() == Color::Black;
        let now = masks(&rules);
        let rights = [rules.side_to_move(), !rules.side_to_move()].map(|color| *rules.castle_rights(color));
        let may_castle = rights.iter().any(|r| r.short.is_some() || r.long.is_some());
        let transform = if format.is_canonical() { Transform::of_position(&now, may_castle) } else { Transform::NONE };
        let mut frame = FrameMut::blank(&mut record, format).unwrap();
        past.insert(0, now);
        for (h, men) in past.iter().take(8).enumerate() {
            for i in 0..12 {
                let mask = if h % 2 == 0 { men[i] } else { mirror(men[(i + 6) % 12]) };
                frame.set_plane(13 * h + i, crate::chess::transform::flip(transform.apply(mask)));
            }
        }
        let bit = |file: Option<cozy_chess::File>| match (format.has_castling_masks(), file) {
            (_, None) => 0,
            (true, Some(file)) => 1 << file as u8,
            (false, Some(_)) => 1,
        };
        frame.set_castling_us_ooo(bit(rights[0].long)).set_castling_us_oo(bit(rights[0].short));
        frame.set_castling_them_ooo(bit(rights[1].long)).set_castling_them_oo(bit(rights[1].short));
        frame.set_rule50_count(rules.halfmove_clock());
        match format.is_canonical() {
            true => frame.set_invariance_info(transform.bits() | u8::from(black) << 7),
            false => frame.set_side_to_move_or_enpassant(u8::from(black)),
        };
        let mapping = if seed.is_multiple_of(2) { PolicyMapping::AsPlanes } else { PolicyMapping::HalfTurn };
        let board = Board::under(&frame.as_frame(), mapping).unwrap();
        let counts: Vec<u32> = moves.iter().map(|_| numbers.below(60) as u32 * numbers.below(4) as u32).collect();
        let all = counts.iter().sum::<u32>().max(1);
        for (m, n) in moves.iter().zip(&counts) {
            frame.set_probability(usize::from(board.index_of(*m).unwrap()), *n as f32 / all as f32);
        }
        let played = moves[numbers.below(moves.len())];
        let q = numbers.unit() * 2.0 - 1.0;
        frame.set_visits(all + 1).set_played_idx(board.index_of(played).unwrap());
        frame.set_best_q(q).set_played_q(q).set_root_q(numbers.unit()).set_policy_kld(numbers.unit());
        frame.set_plies_left(200.5 - ply as f32).set_result_q(if black { -1.0 } else { 1.0 });
        out.extend_from_slice(&record);
        rules.play_unchecked(played);
    }
    out
}

pub(super) const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
pub(super) const ENDGAME: &str = "8/5k2/8/8/3Q4/8/2K5/8 w - - 0 1";

/// Packs, and holds what comes back against what went in, whole and one position after another.
fn packed(version: Version, records: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut packer = Packer::default();
    packer.pack(version, records, &mut bytes).unwrap();
    let mut again = Vec::new();
    packer.pack(version, records, &mut again).unwrap();
    assert!(bytes == again, "what was packed before shows");
    let game = PackedGame::new(&bytes).unwrap();
    let (mut position, mut back) = (Position::default(), Vec::new());
    game.records(MOST, &mut position, &mut back).unwrap();
    assert_eq!(game.frames() * version.bytes(), records.len());
    assert!(back == records, "first difference at byte {:?}", back.iter().zip(records).position(|(a, b)| a != b));
    for k in (0..game.frames()).rev() {
        game.position(k, Wanted::Whole, &mut position).unwrap();
        let record = &records[k * version.bytes()..][..version.bytes()];
        assert_eq!(position.frame().plane_bytes(), Frame::new(record).unwrap().plane_bytes());
        assert_eq!(position.record()[at::CASTLING_US_OOO..version.bytes()], record[at::CASTLING_US_OOO..]);
        let dense = position.dense;
        position.fill_in();
        assert_eq!(position.record()[..version.bytes()], *record, "frame {k}, dense {dense}");
        game.position(k, Wanted::WithoutPolicy, &mut position).unwrap();
        // All but the policy, the number of visits and the best move, which follow from the policy.
        for same in [at::VERSION..at::PROBABILITIES, at::PLANES..at::VISITS, at::PLAYED_IDX..at::BEST_IDX] {
            assert_eq!(position.record()[same.clone()], record[same], "frame {k}");
        }
        assert_eq!(position.record()[at::POLICY_KLD..version.bytes()], record[at::POLICY_KLD..], "frame {k}");
        let none = position.policy().is_none_or(|policy| policy.indices.is_empty() && policy.values.is_empty());
        assert!(none, "frame {k}");
    }
    let mut judged = Vec::new();
    game.judged(Position::default, &mut judged).unwrap();
    let fields = [at::BEST_Q, at::ORIG_Q, at::POLICY_KLD];
    let frames = records.chunks_exact(version.bytes());
    let alone: Vec<u8> = frames.flat_map(|record| fields.map(|at| &record[at..at + 4]).concat()).collect();
    assert!(judged == alone, "what weighs a frame is that of its record");
    bytes
}

#[test]
fn played_games_come_back_and_take_few_bytes() {
    for (version, most) in [(Version::V6, 85), (Version::V7, 95)] {
        for seed in 0..4 {
            let records = game(seed, version, InputFormat::Classical, START, 150);
            let bytes = packed(version, &records);
            let each = bytes.len() * version.bytes() / records.len();
            assert!(each < most, "{each} bytes a frame");
        }
    }
}

#[test]
fn every_input_format_comes_back_with_its_transforms() {
    for format in InputFormat::ALL {
        for seed in 0..4 {
            packed(Version::V6, &game(seed, Version::V6, format, START, 60));
            let records = game(seed, Version::V6, format, ENDGAME, 60);
            let each = packed(Version::V6, &records).len() * Version::V6.bytes() / records.len();
            assert!(each < 95, "{format:?}: {each} bytes a frame");
        }
    }
}

/// The same game with the next moves that V7 has.
fn with_next_moves(mut records: Vec<u8>) -> Vec<u8> {
    let size = Version::V7.bytes();
    let played: Vec<u16> = records.chunks_exact(size).map(|record| Frame::new(record).unwrap().played_idx()).collect();
    for (k, record) in records.chunks_exact_mut(size).enumerate() {
        let next = |after: usize| played.get(k + after).copied().unwrap_or(u16::MAX);
        FrameMut::new(record).unwrap().set_short_term(0.5, next(1), next(2));
    }
    records
}

/// Heads of the bodies of a packed game.
fn heads(bytes: &[u8]) -> Vec<u32> {
    let game = PackedGame::new(bytes).unwrap();
    let head = |k| u32::from_le_bytes(*game.parts.body(k).unwrap().0.first_chunk().unwrap());
    (0..game.frames()).map(head).collect()
}

#[test]
fn moves_under_a_transform_take_no_byte_whichever_way_they_are_indexed() {
    use super::decode::bit::{NEXT, PLAYED, REPLY};
    for version in [Version::V6, Version::V7] {
        for (seed, flags) in [(0, 0), (1, 4)] {
            let records = game(seed, version, InputFormat::Canonical, ENDGAME, 60);
            let records = if version == Version::V7 { with_next_moves(records) } else { records };
            let bytes = packed(version, &records);
            assert_eq!((bytes[0], bytes[3] & 4), (2, flags), "form, and how indices are turned");
            assert!(heads(&bytes).iter().all(|head| head & (PLAYED | REPLY | NEXT) == 0));
            // Form 1, which predicts no transform, is still read.
            let mut first = Vec::new();
            Packer::default().pack_by(version, &records, |_, _, _| None, &mut first).unwrap();
            assert!(first[0] == 1 && first.len() > bytes.len() + records.len() / version.bytes());
            let mut back = Vec::new();
            PackedGame::new(&first).unwrap().records(MOST, &mut Position::default(), &mut back).unwrap();
            assert!(back == records);
        }
        // Where nothing is transformed the form is the first, byte for byte.
        for format in [InputFormat::Classical, InputFormat::Castling] {
            assert_eq!(packed(version, &game(3, version, format, ENDGAME, 30))[0], 1);
        }
    }
}

#[test]
fn a_game_that_begins_with_a_history_needs_no_board_for_it() {
    let records = game(9, Version::V6, InputFormat::Classical, START, 40);
    for cut in [1, 3, 12] {
        let rest = &records[cut * Version::V6.bytes()..];
        assert!(packed(Version::V6, rest).len() < records.len() / 90);
    }
}

#[test]
fn tensors_of_a_position_are_those_of_its_record() {
    let names =
        "planes probs values winner best_q plies_left legal ids played_idx best_idx opp_played_idx next_played_idx";
    let outputs = Outputs::parse(&names.split(' ').map(String::from).collect::<Vec<_>>()).unwrap();
    let encoder = ChessEncoder::new(&outputs).unwrap();
    let rows = |row: Row<'_>| {
        let mut out: Vec<Vec<u8>> = encoder.outputs().iter().map(|spec| vec![0xaa; spec.row_bytes()]).collect();
        encoder.encode(&[row], &mut out.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>()).unwrap();
        out
    };
    for version in [Version::V6, Version::V7] {
        let mut records = game(3, version, InputFormat::CanonicalV2, START, 30);
        // The seven frames that see this board in their history see it as it was: they are corrected, and then whole.
        records[7 * version.bytes() + at::PLANES + 9] ^= 4;
        let mut bytes = Vec::new();
        Packer::default().pack(version, &records, &mut bytes).unwrap();
        let packed = PackedGame::new(&bytes).unwrap();
        let mut position = Position::default();
        for (k, record) in records.chunks_exact(version.bytes()).enumerate() {
            packed.position(k, Wanted::Whole, &mut position).unwrap();
            assert_eq!(position.policy().is_none(), (8..15).contains(&k));
            let mut wide = record.to_vec();
            wide.resize(Version::V7.bytes(), 0);
            let provenance = Provenance { source: 1, chunk: 2, frame: k as u32 };
            let whole = rows(Row { record: &wide, provenance, bits: Default::default(), sparse: None });
            assert_eq!(
                rows(Row {
                    record: position.record(),
                    provenance,
                    bits: Default::default(),
                    sparse: position.policy()
                }),
                whole
            );
        }
    }
}

#[test]
fn outputs_that_need_no_policy_are_the_same_without_it() {
    let rows = |encoder: &ChessEncoder, position: &Position, k: usize| {
        let provenance = Provenance { source: 1, chunk: 2, frame: k as u32 };
        let (record, sparse) = (position.record(), position.policy());
        let mut out: Vec<Vec<u8>> = encoder.outputs().iter().map(|spec| vec![0xaa; spec.row_bytes()]).collect();
        let mut columns: Vec<&mut [u8]> = out.iter_mut().map(Vec::as_mut_slice).collect();
        encoder.encode(&[Row { record, provenance, bits: Default::default(), sparse }], &mut columns).unwrap();
        out
    };
    let mut needed = Vec::new();
    for name in Output::names() {
        let encoder = ChessEncoder::new(&Outputs::parse(&[name]).unwrap()).unwrap();
        if encoder.reads_sparse() {
            needed.push(name);
            continue;
        }
        for (version, format) in [(Version::V6, InputFormat::Classical), (Version::V7, InputFormat::CanonicalV2)] {
            let mut records = game(3, version, format, START, 30);
            // A frame that is corrected.
            records[7 * version.bytes() + at::PLANES + 1] ^= 4;
            let mut bytes = Vec::new();
            Packer::default().pack(version, &records, &mut bytes).unwrap();
            let packed = PackedGame::new(&bytes).unwrap();
            let (mut whole, mut without) = (Position::default(), Position::default());
            for k in 0..packed.frames() {
                packed.position(k, Wanted::Whole, &mut whole).unwrap();
                packed.position(k, Wanted::WithoutPolicy, &mut without).unwrap();
                assert!(rows(&encoder, &whole, k) == rows(&encoder, &without, k), "{name}, frame {k}");
            }
        }
    }
    assert_eq!(needed, ["probs", "probs:sparse", "legal", "legal:bits", "best_idx"]);
    let both = Outputs::parse(&["planes:bits", "legal"]).unwrap();
    assert!(ChessEncoder::new(&both).unwrap().reads_sparse(), "one output is enough");
}

#[test]
fn what_no_game_is_is_refused() {
    let records = game(1, Version::V6, InputFormat::Classical, START, 5);
    let size = Version::V6.bytes();
    let pack = |records: &[u8]| Packer::default().pack(Version::V6, records, &mut Vec::new()).unwrap_err();
    assert_eq!(pack(&[]).kind(), Kind::Empty);
    assert_eq!(pack(&records[..size + 1]).kind(), Kind::WrongSize);
    let mut wild = records.clone();
    wild[2 * size + at::BEST_Q..][..4].copy_from_slice(&f32::NAN.to_le_bytes());
    let error = pack(&wild);
    assert_eq!((error.kind(), error.place().frame), (Kind::OutOfRange, Some(2)));
    let mut bytes = Vec::new();
    Packer::default().pack(Version::V6, &records, &mut bytes).unwrap();
    let packed = PackedGame::new(&bytes).unwrap();
    let mut position = Position::default();
    assert_eq!(packed.position(5, Wanted::Whole, &mut position).unwrap_err().kind(), Kind::Missing);
    assert_eq!(packed.records(5 * size - 1, &mut position, &mut Vec::new()).unwrap_err().kind(), Kind::TooLarge);
}

/// Bytes that a record may have anywhere but in the checked fields.
fn free(offset: usize, version: Version) -> bool {
    let values = at::ROOT_Q..at::ORIG_Q;
    let short = version == Version::V7 && (at::Q_ST..at::OPP_PLAYED_IDX).contains(&offset);
    offset >= at::PROBABILITIES && !values.contains(&offset) && !short
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn games_with_any_bytes_changed_come_back(
        seed in any::<u64>(),
        is_wide in any::<bool>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..60),
        frames in 1usize..24,
    ) {
        let version = if is_wide { Version::V7 } else { Version::V6 };
        let mut records = game(seed, version, InputFormat::ALL[(seed % 7) as usize], START, frames);
        for (place, byte) in edits {
            let place = place.index(records.len());
            if free(place % version.bytes(), version) {
                records[place] = byte;
            }
        }
        packed(version, &records);
    }

    #[test]
    fn records_of_noise_come_back(seed in any::<u64>(), frames in 1usize..5) {
        let mut numbers = Numbers(seed);
        let mut records = vec![0; frames * Version::V7.bytes()];
        for record in records.chunks_exact_mut(Version::V7.bytes()) {
            for (i, byte) in record.iter_mut().enumerate() {
                if free(i, Version::V7) {
                    *byte = numbers.below(256) as u8;
                }
            }
            record[0] = 7;
            record[4] = 1;
        }
        packed(Version::V7, &records);
    }

    #[test]
    fn damaged_bytes_are_an_error_or_another_game(
        seed in 0u64..3,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let records = game(seed, Version::V6, InputFormat::Classical, START, 12);
        let mut bytes = Vec::new();
        Packer::default().pack(Version::V6, &records, &mut bytes).unwrap();
        edits.iter().for_each(|(at, byte)| { let at = at.index(bytes.len()); bytes[at] = *byte });
        for damaged in [&bytes[..], &bytes[..cut.index(bytes.len())]] {
            let Ok(game) = PackedGame::new(damaged) else { continue };
            let mut position = Position::default();
            for k in 0..game.frames().min(64) {
                let _ = game.position(k, Wanted::WithoutPolicy, &mut position);
                let _ = game.position(k, Wanted::Whole, &mut position);
            }
            let mut back = Vec::new();
            if let Err(error) = game.records(MOST, &mut position, &mut back) {
                prop_assert!(error.place().frame.is_some() || error.kind() == Kind::TooLarge, "{}", error);
            }
        }
    }
}
