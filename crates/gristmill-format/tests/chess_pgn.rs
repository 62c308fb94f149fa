//! PGN through its public face: what is read, what is refused and where, and records that keep every rule.
#![allow(missing_docs, clippy::unwrap_used)]

use std::ops::ControlFlow;
use std::sync::Arc;

use cozy_chess::{Board, Color, Move};
use gristmill_format::chess::check::{Rules, check};
use gristmill_format::chess::pgn::records::{usual_format, write};
use gristmill_format::chess::pgn::source::PgnFile;
use gristmill_format::chess::pgn::{Eval, Game, Outcome, Splitter, read, san};
use gristmill_format::chess::rescore::Played;
use gristmill_format::chess::{Frame, InputFormat, layout_v6};
use gristmill_format::source::{Chunk, ChunkSource, Limits, read_span};
use gristmill_format::{Error, Kind, Result};
use proptest::prelude::*;

/// As Lichess writes games.
const LICHESS: &str = "[Event \"Rated Blitz game\"]
[Site \"https://lichess.org/abcdefgh\"]
[White \"a\\\"b\\\\c\"]
[Black \"J\u{f6}rg\"]
[Result \"0-1\"]
[WhiteElo \"1654\"]
[BlackElo \"?\"]
[ECO \"B01\"]
[Opening \"Scandinavian Defense\"]
[Termination \"Normal\"]

1. e4 { [%eval 0.25] [%clk 0:03:00] } 1... d5?! { [%eval 0.9] [%clk 0:02:59.5] } 2. exd5 $1 (2. e5 c5 (2... Bf5 {x}) 3. c3) 2... Qxd5
3. Nc3 Qa5 ; to the end of the line 1-0
% escaped 1-0
4. b4 {the pawn
[is free]} 4... Qxb4 5. Na4?? e5 6.Rb1 Qxa4 { [%eval #-12] } 0-1

";

fn games(text: &[u8]) -> Vec<Result<Game>> {
    spans(text).into_iter().map(|(start, end)| read(&text[start as usize..end as usize])).collect()
}

fn spans(text: &[u8]) -> Vec<(u64, u64)> {
    let (mut splitter, mut found) = (Splitter::default(), Vec::new());
    splitter.feed(text, &mut |start, end| found.push((start, end)));
    splitter.finish(&mut |start, end| found.push((start, end)));
    found
}

fn words(game: &Game) -> Vec<String> {
    let word = |ply: &gristmill_format::chess::pgn::Ply| {
        let mut word = String::new();
        san::write(&ply.board, ply.played, &mut word);
        word
    };
    game.plies.iter().map(word).collect()
}

fn moves(text: &str) -> Vec<String> {
    words(&read(text.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}")))
}

fn refused(text: &str) -> Error {
    read(text.as_bytes()).unwrap_err()
}

#[test]
fn a_game_of_lichess_is_read_with_all_that_it_says() {
    let game = read(LICHESS.trim_end().as_bytes()).unwrap();
    assert_eq!(words(&game).join(" "), "e4 d5 exd5 Qxd5 Nc3 Qa5 b4 Qxb4 Na4 e5 Rb1 Qxa4");
    assert_eq!((game.outcome, game.on_board), (Outcome::Won(Color::Black), false));
    assert_eq!((game.tag("White"), game.tag("Black")), (Some("a\"b\\c"), Some("J\u{f6}rg")));
    assert_eq!((game.tag("WhiteElo"), game.tag("None")), (Some("1654"), None));
    let evals: Vec<_> = game.plies.iter().map(|ply| ply.eval).collect();
    assert_eq!(evals[..3], [Some(Eval::Centipawns(25)), Some(Eval::Centipawns(90)), None]);
    assert_eq!(evals[11], Some(Eval::Mate(-12)));
    assert_eq!((game.plies[0].clock, game.plies[1].clock), (Some(180_000), Some(179_500)));
    let nags: Vec<_> = game.plies.iter().map(|ply| ply.nag).collect();
    assert_eq!((nags[1], nags[2], nags[8]), (Some(6), Some(1), Some(4)));
    assert_eq!(game.plies[5].comment, "to the end of the line 1-0");
    assert_eq!(game.plies[6].comment, "the pawn\n[is free]");
}

#[test]
fn files_are_split_into_their_games_however_they_are_written() {
    let unix = LICHESS.repeat(3);
    let crlf = unix.replace('\n', "\r\n");
    let marked = format!("\u{feff}{unix}");
    let no_tags = "1. e4 e5 1-0 1. d4 d5 1/2-1/2\n1. c4 *\n{between} ; 1-0\n  1. Nf3 0-1";
    let no_moves = "[Event \"a\"]\n\n[Event \"b\"]\n[Result \"*\"]\n\n*\n\n[Event \"c\"]\n\n1. e4 1-0";
    let unclosed =
        "[Event \"a\"]\n\n1. e4 {never closed\n\n[Event \"b\"]\n\n1. e4 (1. d4 1-0\n[Event \"c\"]\n\n1. e4 1-0 \n";
    let mut counts = Vec::new();
    for text in [&unix, &crlf, &marked, no_tags, no_moves, unclosed, "", "\n \n", "\u{feff}"] {
        let found = games(text.as_bytes());
        counts.push((found.len(), found.iter().filter(|game| game.is_ok()).count()));
    }
    assert_eq!(counts, [(3, 3), (3, 3), (3, 3), (4, 3), (3, 1), (3, 1), (0, 0), (0, 0), (0, 0)]);
}

#[test]
fn moves_are_read_in_every_spelling_that_is_met() {
    for text in [
        "1. e4 e5 2. Nf3 1-0",
        "1.e4 e5 2.Nf3 1-0",
        "e2e4 e7e5 g1f3 1-0",
        "1. e2-e4 e7-e5 2. Ng1-f3! 1-0",
        "1 Pe4 e5 2 Ngf3 1-0",
    ] {
        assert_eq!(moves(text), ["e4", "e5", "Nf3"], "{text}");
    }
    for castles in ["O-O", "0-0", "o-o", "e1g1", "e1h1", "O-O+!?"] {
        let fen = "[FEN \"4k3/8/8/8/8/8/8/4K2R w K - 0 1\"]\n";
        assert_eq!(moves(&format!("{fen}{castles} 1-0")), ["O-O"], "{castles}");
    }
    for promotes in ["a8=Q", "a8Q", "a8=q+", "a7a8q", "a8/Q"] {
        assert_eq!(moves(&format!("[FEN \"8/P6k/8/8/8/8/8/4K3 w - - 0 1\"]\n{promotes} 1-0")), ["a8=Q"], "{promotes}");
    }
    assert_eq!(moves("[FEN \"4k3/8/8/8/4p3/8/3P4/4K3 w - - 0 1\"]\n1. d4 exd3 e.p. 1/2-1/2"), ["d4", "exd3"]);
    assert_eq!(moves("[FEN \"4k3/8/8/R7/8/8/8/R3K3 w - - 0 1\"]\n1. R1a3 1-0"), ["R1a3"]);
    let queens = "[FEN \"6k1/8/8/8/Q6Q/8/8/Q3K3 w - - 0 1\"]\n1. Qa4d1 1-0";
    assert_eq!(read(queens.as_bytes()).unwrap().plies.len(), 1);
    assert_eq!(moves("1. f3 e5 2. g4 Qh4# 0-1").last().unwrap(), "Qh4#");
    let latin = b"[White \"J\xf6rg\"]\n\n1. e4 {\xff\xfe} 1-0";
    assert_eq!(read(latin).unwrap().tag("White"), Some("J\u{f6}rg"));
    assert_eq!(read(b"[White \"John \"Joe\" Doe\"]\n1. e4 1-0").unwrap().tag("White"), Some("John \"Joe\" Doe"));
}

#[test]
fn a_bad_game_is_refused_with_byte_and_move() {
    let fen = |fen: &str| format!("[FEN \"{fen}\"]\n\n1. e4 1-0");
    for (text, kind, byte, says) in [
        ("1. e4 e5 2. Nf6 1-0", Kind::Refused("moves"), 12, "move 2. `Nf6`"),
        ("1. e4 Ke7x 1-0", Kind::Refused("moves"), 6, "move 1... `Ke7x`"),
        ("1. Nd2 1-0", Kind::Refused("moves"), 3, "no legal move"),
        ("1. e4 -- 1-0", Kind::Refused("moves"), 6, "null move"),
        ("1. e4 Z0 1-0", Kind::Refused("moves"), 6, "null move"),
        ("1. hello 1-0", Kind::Refused("moves"), 3, "`hello`"),
        ("1. \u{2654}e4 1-0", Kind::Refused("moves"), 3, "\\xe2"),
        ("1. O-O 1-0", Kind::Refused("moves"), 3, "no legal move"),
        ("1. d4 e5 2. e5 1-0", Kind::Refused("moves"), 12, "no legal move"),
        ("[FEN \"4k3/8/8/R7/8/8/8/R3K3 w - - 0 1\"]\n1. Ra3 1-0", Kind::Refused("moves"), 43, "several"),
        ("[FEN \"8/P6k/8/8/8/8/8/4K3 w - - 0 1\"]\n1. a8 1-0", Kind::Refused("moves"), 41, "=Q"),
        ("1. e4 e5 *", Kind::Refused("result"), 9, "no result"),
        ("[Result \"1-0\"]\n1. e4 0-1", Kind::Refused("result"), 21, "tag Result"),
        ("1. f3 e5 2. g4 Qh4# 1-0", Kind::Refused("result"), 20, "last board"),
        ("1. e4 e5", Kind::Truncated, 8, "without a result"),
        ("[Event \"x\"]", Kind::Truncated, 11, "before its first move"),
        ("[Event \"x\"]\n\n1-0", Kind::Empty, 13, "no moves"),
        ("1. e4 {open", Kind::Corrupt, 6, "comment"),
        ("1. e4 (1. d4 1-0", Kind::Corrupt, 6, "variation"),
        ("1. e4 ) 1-0", Kind::Corrupt, 6, "`)`"),
        ("(1. d4) 1. e4 1-0", Kind::Corrupt, 0, "variation"),
        ("1. e4 $x 1-0", Kind::Corrupt, 6, "`$`"),
        ("1. e4 $999 1-0", Kind::Corrupt, 6, "255"),
        ("[Event x]\n1. e4 1-0", Kind::Corrupt, 0, "tag"),
        ("[ \"x\"]\n1. e4 1-0", Kind::Corrupt, 0, "tag"),
        ("1. e4 [Event \"x\"] 1-0", Kind::Corrupt, 6, "tag among moves"),
        ("1. e4 1-0 e5", Kind::Corrupt, 10, "follows the result"),
        ("[Variant \"Crazyhouse\"]\n1. e4 1-0", Kind::Unsupported, 26, "Crazyhouse"),
        (&fen("nonsense"), Kind::OutOfRange, 21, "nonsense"),
    ] {
        let e = refused(text);
        assert_eq!((e.kind(), e.place().offset), (kind, Some(byte)), "{text}: {e}");
        assert!(e.detail().contains(says), "{text}: {e}");
    }
    assert_eq!(refused("1. e4 e5 2. Nf6 1-0").place().frame, Some(2));
}

#[test]
fn what_would_take_memory_without_end_is_no_game() {
    let shuffle = "Nf3 Nf6 Ng1 Ng8 ".repeat(5001);
    for (text, says) in [
        (format!("{shuffle}1/2-1/2"), "moves"),
        ("[A \"\"]\n".repeat(1001), "tags"),
        (format!("e4 {}", "(".repeat(1001)), "variations"),
    ] {
        let e = refused(&text);
        assert!(e.kind() == Kind::TooLarge && e.detail().contains(says) && e.place().offset.is_some(), "{e}");
    }
    let text = format!("[FEN \"4k3/8/8/8/8/8/8/R3K3 w Q - 200 65535\"]\n{} 1-0", "Ra2 Ke7 Ra1 Ke8 ".repeat(9));
    keep_the_rules(&read(text.as_bytes()).unwrap());
}

/// The records of a game, as a chunk.
fn records(game: &Game, format: InputFormat) -> Chunk {
    let mut chunk = Chunk::default();
    write(game, format, &mut Played::default(), &mut chunk.bytes).unwrap();
    (chunk.frames, chunk.layout) = (game.plies.len(), Some(Arc::clone(layout_v6())));
    chunk
}

/// Holds records against every rule there is, in every input format that can tell them.
fn keep_the_rules(game: &Game) {
    for format in InputFormat::ALL {
        if format == InputFormat::Classical && usual_format(game) != format {
            continue;
        }
        let chunk = records(game, format);
        check(&chunk, Rules::ALL, &mut |breach| -> ControlFlow<()> {
            panic!("{format:?}, frame {}: {} {}", breach.frame, breach.rule, breach.reason)
        })
        .unwrap();
    }
}

#[test]
fn records_say_what_was_played_and_how_it_ended() {
    let game = read(LICHESS.trim_end().as_bytes()).unwrap();
    keep_the_rules(&game);
    let chunk = records(&game, usual_format(&game));
    for i in 0..chunk.frames {
        let frame = Frame::new(chunk.record(i)).unwrap();
        let played = usize::from(frame.played_idx());
        assert_eq!((frame.version(), frame.input_format_value(), frame.visits()), (6, 1, 0));
        assert_eq!((frame.probability(played), frame.best_idx()), (1.0, frame.played_idx()));
        assert_eq!(frame.probabilities().filter(|p| *p > 0.0).count(), 1);
        assert!(frame.probabilities().any(|p| p == 0.0) && frame.orig_q().is_nan());
        let q = if i % 2 == 0 { -1.0 } else { 1.0 };
        assert_eq!((frame.result_q(), frame.result_d(), frame.root_q(), frame.best_q()), (q, 0.0, q, q));
        assert_eq!(frame.plies_left(), (chunk.frames - i) as f32);
        assert_eq!(frame.invariance_info(), 1 << 5, "nobody was mated");
    }
    let mate = records(&read(b"1. f3 e5 2. g4 Qh4# 0-1").unwrap(), InputFormat::Classical);
    assert_eq!(Frame::new(mate.record(3)).unwrap().invariance_info(), 0);
}

#[test]
fn games_of_chess960_and_set_positions_are_recorded() {
    let inner = "[FEN \"1r2k1r1/pppppppp/8/8/8/8/PPPPPPPP/1R2K1R1 w KQkq - 3 9\"]\n\n9. O-O O-O-O 10. Rf1e1 1/2-1/2";
    let game = read(inner.as_bytes()).unwrap();
    assert_eq!((usual_format(&game), words(&game)[0].as_str()), (InputFormat::Castling, "O-O"));
    keep_the_rules(&game);
    let passing = "[FEN \"rnbqkbnr/ppp1pppp/8/8/3pP3/5N2/PPPP1PPP/RNBQKB1R b KQkq e3 0 3\"]\n\n3... dxe3 4. fxe3 1-0";
    keep_the_rules(&read(passing.as_bytes()).unwrap());
}

#[test]
fn every_cut_of_a_file_leaves_the_games_before_it_and_no_other() {
    let file = format!("{LICHESS}{}", LICHESS.replace("0-1", "1/2-1/2").replace('\n', "\r\n"));
    let whole: Vec<Vec<String>> = games(file.as_bytes()).iter().map(|game| words(game.as_ref().unwrap())).collect();
    for cut in 0..file.len() {
        let found = games(&file.as_bytes()[..cut]);
        assert!(found.len() <= 2);
        for (i, game) in found.iter().enumerate() {
            match game {
                Ok(game) => assert_eq!(words(game), whole[i], "cut at {cut}"),
                Err(e) => assert!(e.place().offset.is_some() && i + 1 == found.len(), "cut at {cut}: {e}"),
            }
        }
    }
}

#[test]
fn a_source_places_its_errors_in_the_file_and_keeps_its_bound() {
    let file = format!("{LICHESS}[Event \"bad\"]\n\n1. e4 Qh8 1-0\n\n{LICHESS}");
    let source = PgnFile::open("a.pgn", file.as_bytes()).unwrap();
    let (mut stored, mut chunk) = (Vec::new(), Chunk::default());
    let mut outcomes = Vec::new();
    for i in 0..source.len() {
        read_span(file.as_bytes(), source.locate(i).unwrap().0, 1 << 20, &mut stored).unwrap();
        let decoded = source.decode(i, &stored, &Limits::default(), &mut chunk);
        outcomes.push(decoded.map(|()| chunk.frames));
    }
    let e = outcomes[1].as_ref().unwrap_err();
    assert_eq!((outcomes[0].as_ref(), outcomes[2].as_ref()), (Ok(&12), Ok(&12)));
    assert_eq!((e.place().chunk, e.place().frame), (Some(1), Some(1)));
    assert_eq!(e.place().offset, file.find("Qh8").map(|at| at as u64));
    let small = Limits { max_chunk_bytes: 12 * 8356 - 1 };
    read_span(file.as_bytes(), source.locate(2).unwrap().0, 1 << 20, &mut stored).unwrap();
    assert_eq!(source.decode(2, &stored, &small, &mut chunk).unwrap_err().kind(), Kind::TooLarge);
}

/// A random game of at most `most` plies, as text.
fn random(seed: u64, most: usize, start: &Board) -> (String, Vec<Move>) {
    let (mut state, mut board) = (seed | 1, start.clone());
    let (mut text, mut played) = (String::new(), Vec::new());
    for _ in 0..most {
        let mut legal = Vec::new();
        board.generate_moves(|moves| {
            legal.extend(moves);
            false
        });
        if legal.is_empty() {
            break;
        }
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mv = legal[(state >> 33) as usize % legal.len()];
        san::write(&board, mv, &mut text);
        text.push(if state >> 60 == 0 { '\n' } else { ' ' });
        board.play_unchecked(mv);
        played.push(mv);
    }
    let over = !board.generate_moves(|_| true);
    let result = match (over, board.checkers().is_empty(), board.side_to_move()) {
        (true, false, Color::White) => "0-1",
        (true, false, Color::Black) => "1-0",
        _ => "1/2-1/2",
    };
    (text + result, played)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn random_games_come_back_and_keep_the_rules(seed: u64, plies in 1usize..120, number in 0u32..960) {
        let start = Board::chess960_startpos(number);
        let fen = format!("[Variant \"Chess960\"]\n[FEN \"{start:#}\"]\n\n");
        for (tags, start) in [(String::new(), Board::default()), (fen, start)] {
            let (text, played) = random(seed, plies, &start);
            let game = read(format!("{tags}{text}").as_bytes()).unwrap();
            prop_assert_eq!(game.plies.iter().map(|ply| ply.played).collect::<Vec<_>>(), played);
            if plies < 40 {
                keep_the_rules(&game);
            }
            let chunk = records(&game, usual_format(&game));
            let mut told = gristmill_format::chess::pgn::told(&chunk).unwrap();
            told.tags.clone_from(&game.tags);
            let mut text = String::new();
            gristmill_format::chess::pgn::write(&told, &mut text);
            let again = read(text.trim_end().as_bytes()).unwrap();
            prop_assert_eq!(words(&again), words(&game));
            prop_assert_eq!((again.outcome, &again.plies[0].board.to_string()), (game.outcome, &game.plies[0].board.to_string()));
            prop_assert!(records(&again, usual_format(&game)).records() == chunk.records());
        }
    }

    #[test]
    fn damage_is_refused_with_its_place_or_makes_another_game(
        hits in prop::collection::vec((0usize..2000, prop::sample::select(b"[](){}\"\\ \n;%$*10-/=+#NKRxae4\x00\xff".to_vec())), 1..12),
        cut in prop::option::of(0usize..2000),
    ) {
        let mut file = format!("{LICHESS}{}", LICHESS.replace("1. e4", "1. e4 (1. d4 (1. c4))")).into_bytes();
        let len = file.len();
        hits.into_iter().for_each(|(at, byte)| file[at % len] = byte);
        file.truncate(cut.unwrap_or(len));
        let source = PgnFile::open("a.pgn", &file[..]).unwrap();
        let (mut stored, mut chunk) = (Vec::new(), Chunk::default());
        for i in 0..source.len() {
            let (span, _) = source.locate(i).unwrap();
            read_span(&file[..], span, 1 << 20, &mut stored).unwrap();
            match source.decode(i, &stored, &Limits::default(), &mut chunk) {
                Ok(()) => keep_the_rules(&read(&stored).unwrap()),
                Err(e) => {
                    let at = e.place().offset.unwrap();
                    prop_assert!((span.offset..=span.offset + span.len).contains(&at), "{}", e);
                }
            }
        }
    }

    #[test]
    fn any_pieces_of_a_file_give_the_same_games(cuts in prop::collection::vec(0usize..1500, 0..20), noise in ".{0,40}") {
        let file = format!("{LICHESS}{noise}\n\n{LICHESS}{noise}");
        let bytes = file.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let (mut splitter, mut found) = (Splitter::default(), Vec::new());
        for piece in cuts.windows(2) {
            splitter.feed(&bytes[piece[0]..piece[1]], &mut |start, end| found.push((start, end)));
        }
        splitter.finish(&mut |start, end| found.push((start, end)));
        prop_assert_eq!(&found, &spans(bytes));
        prop_assert!(found.windows(2).all(|pair| pair[0].1 <= pair[1].0) && found.iter().all(|(start, end)| start < end));
        games(bytes).into_iter().filter_map(Result::err).for_each(|e| assert!(e.place().offset.is_some(), "{e}"));
    }
}
