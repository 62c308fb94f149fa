//! Which way policy indices of a transposed board are read and written: by what is legal, by the move played, by the
//! neighbours; and that no policy is ever written that does not sum to what it did.

use gristmill_format::Kind;
use gristmill_format::chess::record::{V6_BYTES, at};
use gristmill_format::chess::rescore::{Compat, PolicyBook, Quirk, Settings};
use gristmill_format::chess::transform::{PolicyMapping, Transform};
use gristmill_format::chess::{Board, InputFormat};
use proptest::prelude::*;
use std::sync::Arc;

use super::conversion::{GAMES, breaches};
use super::played::{START, chunk, edit, frame, narrow, records, rescore};

/// The game with policies in which no two moves have the same.
fn uneven(mut records: Vec<u8>) -> Vec<u8> {
    for i in 0..records.len() / V6_BYTES {
        edit(&mut records, i, |f| {
            let legal: Vec<usize> = (0..1858).filter(|k| f.as_frame().probability(*k) >= 0.0).collect();
            let sum = (legal.len() * (legal.len() + 1) / 2) as f32;
            legal.iter().enumerate().for_each(|(n, k)| _ = f.set_probability(*k, (n + 1) as f32 / sum));
        });
    }
    records
}

/// As data of before V6: no visits, no indices.
fn untold(mut records: Vec<u8>) -> Vec<u8> {
    for i in 0..records.len() / V6_BYTES {
        edit(&mut records, i, |f| _ = f.set_visits(0).set_played_idx(0).set_best_idx(0));
    }
    records
}

fn convert(records: &[u8], format: InputFormat, compat: Compat) -> Vec<u8> {
    let settings = Settings { input_format: Some(format), compat, ..narrow() };
    rescore(records, settings).unwrap().0.records().to_vec()
}

const AS_PLANES: Compat = Compat::NONE.with(Quirk::AsPlanes);

#[test]
fn policies_come_back_from_both_mappings_whatever_the_records_tell() {
    for (fen, moves) in GAMES {
        for game in [uneven(records(fen, moves)), untold(uneven(records(fen, moves)))] {
            for format in InputFormat::ALL {
                for compat in [Compat::NONE, AS_PLANES] {
                    let there = convert(&game, format, compat);
                    // What nothing in the game tells is read as it is written.
                    assert!(convert(&there, InputFormat::Classical, compat) == game, "{fen} by {format:?}, {compat:?}");
                }
            }
        }
    }
}

#[test]
fn what_is_legal_decides_where_the_move_played_does_not() {
    // All frames are transposed. White moves along the diagonal, whose squares both mappings turn alike, or nothing says
    // what was played, or there is no next frame.
    let game = uneven(records("8/8/8/8/1K6/8/7k/3R4 w - - 0 1", "d1d4 h2h1 d4e4 h1h2"));
    let last = uneven(records("8/8/8/8/1K6/8/7k/3R4 w - - 0 1", ""));
    for game in [&game, &untold(game.clone()), &last, &untold(last.clone())] {
        for compat in [Compat::NONE, AS_PLANES] {
            let there = convert(game, InputFormat::Canonical, compat);
            assert!(Transform::from_bits(frame(&chunk(&there), 0).invariance_info()).transposes());
            assert!(convert(&there, InputFormat::Classical, Compat::NONE) == *game, "{compat:?}");
        }
    }
}

/// Two kings and a rook that a king takes: from then on both kings' moves are mirror images where a king stands on the
/// diagonal, so that both mappings fit what the policy marks.
fn open() -> Vec<u8> {
    uneven(records("8/8/8/2r5/1K6/8/7k/8 w - - 0 1", "b4c5 h2g3 c5d5 g3f4"))
}

#[test]
fn where_both_mappings_fit_the_neighbours_decide() {
    for told in [open(), untold(open())] {
        let [turned, planes] = [Compat::NONE, AS_PLANES].map(|compat| convert(&told, InputFormat::Canonical, compat));
        let sets = |records: &[u8], i: usize| {
            let chunk = chunk(records);
            (0..1858).filter(|k| frame(&chunk, i).probability(*k) >= 0.0).collect::<Vec<_>>()
        };
        let is_open = |i| {
            sets(&turned, i) == sets(&planes, i)
                && told[i * V6_BYTES..][..V6_BYTES] != planes[i * V6_BYTES..][..V6_BYTES]
        };
        assert!((0..5).any(is_open), "no frame of the game leaves both open");
        for (there, compat) in
            [(&turned, Compat::NONE), (&turned, AS_PLANES), (&planes, Compat::NONE), (&planes, AS_PLANES)]
        {
            assert!(convert(there, InputFormat::Classical, compat) == told, "the first frame tells");
        }
    }
}

#[test]
fn the_default_is_what_todays_lc0_plays() {
    // As lc0 sees it: the index of the move that was decoded, under the transform with a half turn, is `played_idx`.
    let mut transposed = 0;
    for (fen, moves) in GAMES {
        let plain = chunk(&records(fen, moves));
        for format in InputFormat::ALL.into_iter().filter(|format| format.is_canonical()) {
            let there = chunk(&convert(plain.records(), format, Compat::NONE));
            for i in 0..there.frames {
                let f = frame(&there, i);
                let board = Board::from_frame(&frame(&plain, i)).unwrap();
                let seen = gristmill_format::chess::policy::entry(frame(&plain, i).played_idx()).unwrap();
                let transform = Transform::from_bits(f.invariance_info());
                let index = transform.index(seen, PolicyMapping::HalfTurn);
                assert_eq!(Some(f.played_idx()), index, "{}, {format:?}", board.fen());
                transposed += u32::from(transform.transposes());
            }
        }
    }
    assert!(transposed > 20);
}

#[test]
fn frames_without_visits_keep_the_index_that_says_nothing() {
    // The rook on a1 may go to b1: 0 is its index in format 1, and no move at all in old data. The king on c1 has the board
    // flipped.
    let game = untold(records("8/5k2/8/8/8/8/8/R1K5 w - - 0 1", "c1d2 f7f6 d2c2 f6f5"));
    for format in InputFormat::ALL {
        let there = chunk(&convert(&game, format, Compat::NONE));
        let indices = (0..5).map(|i| (frame(&there, i).played_idx(), frame(&there, i).best_idx()));
        assert_eq!(indices.collect::<Vec<_>>(), [(0, 0); 5], "{format:?}");
        assert!(convert(there.records(), InputFormat::Classical, Compat::NONE) == game);
    }
    // With visits it is a move like others.
    let told = records("8/5k2/8/8/8/8/8/R1K5 w - - 0 1", "a1b1 f7f6");
    let there = convert(&told, InputFormat::Canonical, Compat::NONE);
    assert_ne!(frame(&chunk(&there), 0).played_idx(), 0);
}

#[test]
fn a_policy_that_gives_something_to_no_move_is_refused_not_written() {
    let sound = convert(&uneven(records(GAMES[4].0, GAMES[4].1)), InputFormat::Canonical, Compat::NONE);
    for i in 0..8 {
        let free = (0..1858).find(|k| frame(&chunk(&sound), i).probability(*k) < 0.0).unwrap();
        let mut game = sound.clone();
        edit(&mut game, i, |f| _ = f.set_probability(free, 0.005));
        let settings = |format| Settings { input_format: format, ..narrow() };
        let kept = rescore(&game, settings(None)).unwrap().0;
        assert!(kept.records() == game, "nothing moves");
        for format in InputFormat::ALL {
            match rescore(&game, settings(Some(format))) {
                Err(e) => {
                    assert_eq!((e.kind(), e.place().frame), (Kind::Refused("policy_moves"), Some(i as u64)), "{e}");
                    assert_eq!(e.place().offset, Some((i * V6_BYTES + at::PROBABILITIES + 4 * free) as u64));
                }
                Ok((done, _)) => {
                    let same = frame(&done, i).probability_bytes() == frame(&chunk(&game), i).probability_bytes();
                    assert!(format.is_canonical() && same, "frame {i} to {format:?}");
                }
            }
        }
        // 0 for an illegal move, as old data has it, is nothing.
        edit(&mut game, i, |f| _ = f.set_probability(free, 0.0));
        let back = convert(&game, InputFormat::Classical, Compat::NONE);
        assert!(convert(&back, InputFormat::Canonical, Compat::NONE) == sound, "frame {i}");
    }
}

#[test]
fn boosts_and_other_games_policies_land_on_the_moves_that_they_mean() {
    let game = open();
    let mut other = game.clone();
    for i in 0..5 {
        edit(&mut other, i, |f| {
            let legal: Vec<usize> = (0..1858).filter(|k| f.as_frame().probability(*k) >= 0.0).collect();
            let least = legal[0];
            legal.iter().for_each(|k| _ = f.set_probability(*k, if *k == least { 1.0 } else { 0.0 }));
        });
    }
    let mut book = PolicyBook::default();
    book.add(&chunk(&convert(&other, InputFormat::CanonicalV2, AS_PLANES)), Compat::NONE).unwrap();
    let policies = Some(Arc::new(book));
    for compat in [Compat::NONE, AS_PLANES] {
        let there = convert(&untold(game.clone()), InputFormat::Canonical, compat);
        let settings = Settings { policies: policies.clone(), input_format: Some(InputFormat::Classical), ..narrow() };
        assert!(rescore(&there, settings).unwrap().0.records() == untold(other.clone()));
    }
}

#[test]
fn a_game_that_begins_with_a_pawn_to_be_taken_in_passing_keeps_it() {
    let whites = "e2e4 a7a6 e4e5 d7d5 e5d6 c7d6 g1f3 b8c6 f1c4 g8f6 e1h1 e7e6";
    let blacks = "a2a3 e7e5 a3a4 e5e4 d2d4 e4d3 c2d3 g8f6 b1c3 b8c6 g1f3 f8c5";
    for (moves, cut) in [(whites, 4), (blacks, 5)] {
        let whole = records(START, moves);
        let (game, known) = (&whole[cut * V6_BYTES..], chunk(&whole));
        for format in InputFormat::ALL {
            let there = convert(game, format, Compat::NONE);
            for plain in [InputFormat::Classical, InputFormat::Castling] {
                let back = chunk(&convert(&there, plain, Compat::NONE));
                assert_eq!(breaches(&back), [], "by way of {format:?} to {plain:?}");
                let files = [&chunk(game), &back].map(|game| Board::from_frame(&frame(game, 0)).unwrap().en_passant);
                assert_eq!(files, [Some(3); 2]);
                // The board before the first is stored wherever there is room, and no board that cannot be known.
                for i in 0..back.frames {
                    let (shown, was) = (frame(&back, i), frame(&known, i + cut));
                    let boards = (i + 2).min(8);
                    let planes =
                        |f: &gristmill_format::chess::Frame<'_>| (0..104).map(|p| f.plane(p)).collect::<Vec<_>>();
                    assert_eq!(planes(&shown)[..13 * boards], planes(&was)[..13 * boards], "frame {i}");
                    assert!(planes(&shown)[13 * boards..].iter().all(|plane| *plane == 0), "frame {i}");
                }
                let again = convert(back.records(), plain, Compat::NONE);
                assert!(again == back.records(), "converting twice is converting once");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn policies_of_random_endings_survive(seed in any::<u64>(), plies in 1usize..24, is_told in any::<bool>(), as_planes in any::<bool>()) {
        let (fen, moves) = ending(seed, plies);
        let game = uneven(records(&fen, &moves));
        let game = if is_told { game } else { untold(game) };
        let compat = if as_planes { AS_PLANES } else { Compat::NONE };
        for format in [InputFormat::Canonical, InputFormat::CanonicalV2] {
            let there = convert(&game, format, compat);
            for (a, b) in there.chunks_exact(V6_BYTES).zip(game.chunks_exact(V6_BYTES)) {
                let sum = |record: &[u8]| {
                    let chunk = chunk(record);
                    let mut of: Vec<u32> = frame(&chunk, 0).probabilities().filter(|p| *p > 0.0).map(f32::to_bits).collect();
                    of.sort_unstable();
                    of
                };
                prop_assert_eq!(sum(a), sum(b));
            }
            prop_assert!(convert(&there, InputFormat::Classical, compat) == game, "{} {}", fen, moves);
        }
    }
}

/// Kings and two white men somewhere, and random moves from there.
fn ending(seed: u64, plies: usize) -> (String, String) {
    use cozy_chess::{Color, Piece};
    let mut state = seed;
    let mut below = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    let start = loop {
        let mut builder = cozy_chess::BoardBuilder::empty();
        let men = [Piece::Queen, Piece::Rook, Piece::Bishop, Piece::Knight];
        let extra = [(men[below(4)], Color::White), (men[below(4)], Color::White)];
        let squares: Vec<usize> = (0..4).map(|_| below(64)).collect();
        for (man, square) in
            [(Piece::King, Color::White), (Piece::King, Color::Black)].into_iter().chain(extra).zip(squares)
        {
            builder.board[square] = Some(man);
        }
        let kings = builder.board.iter().filter(|man| man.is_some_and(|(piece, _)| piece == Piece::King)).count();
        if let (2, Ok(board)) = (kings, builder.build()) {
            let touch = cozy_chess::get_king_moves(board.king(Color::White)).has(board.king(Color::Black));
            if !touch && board.status() == cozy_chess::GameStatus::Ongoing {
                break board;
            }
        }
    };
    let (mut board, mut words) = (start.clone(), Vec::new());
    for _ in 0..plies {
        let mut moves: Vec<cozy_chess::Move> = Vec::new();
        board.generate_moves(|list| {
            moves.extend(list);
            false
        });
        // A position without moves is never searched: games are recorded up to the one before.
        moves.retain(|played| {
            let mut next = board.clone();
            next.play_unchecked(*played);
            next.generate_moves(|_| true)
        });
        if moves.is_empty() {
            break;
        }
        let played = moves[below(moves.len())];
        board.play_unchecked(played);
        words.push(played.to_string());
    }
    (start.to_string(), words.join(" "))
}
