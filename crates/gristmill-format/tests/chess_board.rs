//! Positions of the spec (A.2) as boards, en passant and castling in every kind of format, and drawings.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use gristmill_format::chess::transform::{PolicyMapping, Transform, flip, mirror};
use gristmill_format::chess::{Board, Frame, FrameMut, InputFormat, layout_v6};

const START: [u64; 12] = [
    0xff00,
    0x42,
    0x24,
    0x81,
    0x10,
    0x08,
    0x00ff_0000_0000_0000,
    0x4200_0000_0000_0000,
    0x2400_0000_0000_0000,
    0x8100_0000_0000_0000,
    0x1000_0000_0000_0000,
    0x0800_0000_0000_0000,
];

fn record(format: InputFormat, write: impl FnOnce(&mut FrameMut<'_>)) -> Vec<u8> {
    let mut bytes = vec![0; layout_v6().size()];
    write(&mut FrameMut::blank(&mut bytes, format).unwrap());
    bytes
}

fn board(bytes: &[u8]) -> Board {
    Board::from_frame(&Frame::new(bytes).unwrap()).unwrap()
}

fn rights(frame: &mut FrameMut<'_>) {
    frame.set_castling_us_oo(1).set_castling_us_ooo(1).set_castling_them_oo(1).set_castling_them_ooo(1);
}

fn put(frame: &mut FrameMut<'_>, first: usize, words: &[u64]) {
    for (i, word) in words.iter().enumerate() {
        frame.set_plane(first + i, *word);
    }
}

#[test]
fn the_start_position() {
    let start = board(&record(InputFormat::Classical, |f| {
        put(f, 0, &START);
        rights(f);
    }));
    assert_eq!(start.fen(), "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1");
    let legal = start.legal_indices().unwrap();
    assert_eq!(legal.len(), 20);
    assert!(legal.contains(&293) && legal.contains(&36) && start.uci(293).unwrap() == "d2d4");
    assert_eq!(
        start.draw_ascii(),
        "8 r n b q k b n r\n7 p p p p p p p p\n6 . . . . . . . .\n5 . . . . . . . .\n\
         4 . . . . . . . .\n3 . . . . . . . .\n2 P P P P P P P P\n1 R N B Q K B N R\n\
         \x20 a b c d e f g h\n  white to move\n"
    );
    assert!(start.draw().starts_with("8 ♜ ♞ ♝ ♛ ♚ ♝ ♞ ♜\n"));
}

#[test]
fn black_to_move_is_shown_as_white_sees_it() {
    let mut words = START;
    words[6] = 0x00f7_0008_0000_0000;
    let after = board(&record(InputFormat::Classical, |f| {
        put(f, 0, &words);
        put(f, 13, &START);
        rights(f);
        f.set_side_to_move_or_enpassant(1);
    }));
    assert_eq!(after.fen(), "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1");
    assert_eq!(after.uci(293).unwrap(), "d7d5");
    words[0] = 0x0800_f700;
    words[7] = 0x4000_0400_0000_0000;
    let later = board(&record(InputFormat::Classical, |f| {
        put(f, 0, &words);
        rights(f);
        f.set_side_to_move_or_enpassant(1).set_rule50_count(1);
    }));
    assert_eq!(later.fen(), "rnbqkbnr/pppp1ppp/8/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R b KQkq - 1 1");
}

fn stored(squares: &[u8]) -> u64 {
    flip(squares.iter().fold(0, |mask, s| mask | 1 << s))
}

/// White king e1, pawn e5; black king e8 and a pawn that came from d7 to d5, white to move.
fn passing(format: InputFormat, before: &[u8]) -> Vec<u8> {
    record(format, |f| {
        f.set_plane(0, stored(&[36])).set_plane(5, stored(&[4]));
        f.set_plane(6, stored(&[35])).set_plane(11, stored(&[60]));
        f.set_plane(13, stored(&[36])).set_plane(19, stored(before));
    })
}

#[test]
fn en_passant_is_read_from_the_history_in_classical_formats() {
    for format in [InputFormat::Classical, InputFormat::Castling] {
        assert_eq!(board(&passing(format, &[51])).fen(), "4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1");
        for elsewhere in [&[43][..], &[52], &[51, 35], &[]] {
            assert_eq!(board(&passing(format, elsewhere)).en_passant, None, "{elsewhere:?}");
        }
    }
    let with = board(&passing(InputFormat::Classical, &[51])).legal_indices().unwrap();
    let without = board(&passing(InputFormat::Classical, &[43])).legal_indices().unwrap();
    assert_eq!(with.len(), without.len() + 1);
}

#[test]
fn a_canonical_frame_is_turned_back() {
    // White: king c1, pawn d5; black: king c8, pawn c5 just moved; black's view is the same upside down.
    let plain = record(InputFormat::CanonicalV2, |f| {
        f.set_plane(0, stored(&[35])).set_plane(5, stored(&[2]));
        f.set_plane(6, stored(&[34])).set_plane(11, stored(&[58]));
        f.set_side_to_move_or_enpassant(1 << 2);
    });
    assert_eq!(board(&plain).fen(), "2k5/8/8/2pP4/8/8/8/2K5 w - c6 0 1");
    let flipped = record(InputFormat::CanonicalV2, |f| {
        f.set_plane(0, stored(&[36])).set_plane(5, stored(&[5]));
        f.set_plane(6, stored(&[37])).set_plane(11, stored(&[61]));
        f.set_side_to_move_or_enpassant((1u8 << 2).reverse_bits()).set_invariance_info(1);
    });
    assert_eq!(board(&flipped).fen(), board(&plain).fen());
    let names = |b: &Board| {
        let mut names: Vec<_> = b.legal_indices().unwrap().into_iter().map(|i| b.uci(i).unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&board(&flipped)), names(&board(&plain)));
    assert!(names(&board(&plain)).contains(&"d5c6".to_owned()));
    let mut black = flipped.clone();
    FrameMut::new(&mut black).unwrap().set_invariance_info(0x81);
    assert_eq!(board(&black).fen(), "2k5/8/8/8/2Pp4/8/8/2K5 b - c3 0 1");
}

#[test]
fn the_policy_mapping_is_the_one_that_the_policy_fits() {
    let king = 10u8;
    let rook = 30u8;
    let enemy = 61u8;
    for bits in 0..8u8 {
        let transform = Transform::from_bits(bits);
        for mapping in [PolicyMapping::AsPlanes, PolicyMapping::HalfTurn] {
            let place = |s: u8| flip(transform.apply(1 << s));
            let bytes = record(InputFormat::CanonicalHectoplies, |f| {
                f.set_plane(5, place(king)).set_plane(3, place(rook)).set_plane(11, place(enemy));
                f.set_invariance_info(bits);
            });
            let mut whole = board(&bytes);
            whole.mapping = mapping;
            let legal = whole.legal_indices().unwrap();
            let mut marked = bytes.clone();
            for i in &legal {
                FrameMut::new(&mut marked).unwrap().set_probability(usize::from(*i), 0.0);
            }
            let found = board(&marked);
            assert_eq!(found.fen(), "5k2/8/8/8/6R1/8/2K5/8 w - - 0 1");
            assert_eq!(found.legal_indices().unwrap(), legal, "transform {bits} {mapping:?}");
            assert!(legal.iter().any(|&i| found.uci(i).unwrap() == "g4g8"));
        }
    }
}

#[test]
fn chess960_rights_name_the_rook() {
    let bytes = record(InputFormat::Castling, |f| {
        f.set_plane(5, stored(&[5])).set_plane(3, stored(&[1, 6])).set_plane(11, stored(&[61]));
        f.set_plane(9, stored(&[57]));
        f.set_castling_us_oo(1 << 6).set_castling_us_ooo(1 << 1);
        f.set_castling_them_ooo(1 << 1);
    });
    let white = board(&bytes);
    assert_eq!(white.fen(), "1r3k2/8/8/8/8/8/8/1R3KR1 w GBb - 0 1");
    let castle: Vec<_> = white.legal_indices().unwrap().iter().map(|&i| white.uci(i).unwrap()).collect();
    assert!(castle.contains(&"f1g1".to_owned()) && castle.contains(&"f1b1".to_owned()), "{castle:?}");
    let mut several = bytes;
    FrameMut::new(&mut several).unwrap().set_castling_us_oo(3);
    let refusal = Board::from_frame(&Frame::new(&several).unwrap()).unwrap_err();
    assert_eq!((refusal.kind().name(), refusal.place().offset), ("out_of_range", Some(8273)));
}

#[test]
fn a_knight_promotion_says_so() {
    let bytes = record(InputFormat::Classical, |f| {
        f.set_plane(0, stored(&[48])).set_plane(5, stored(&[4])).set_plane(11, stored(&[39]));
    });
    let pawn = board(&bytes);
    let promotions: Vec<_> = [1401, 1792, 1793, 1794].map(|i| pawn.uci(i).unwrap()).into();
    assert_eq!(promotions, ["a7a8n", "a7a8q", "a7a8r", "a7a8b"]);
    assert!([1401, 1792, 1793, 1794].iter().all(|i| pawn.legal_indices().unwrap().contains(i)));
}

#[test]
fn what_is_no_position_is_refused_or_has_no_moves() {
    let twice = record(InputFormat::Classical, |f| {
        f.set_plane(0, 1).set_plane(7, 1);
    });
    assert_eq!(Board::from_frame(&Frame::new(&twice).unwrap()).unwrap_err().kind().name(), "out_of_range");
    let empty = board(&record(InputFormat::Classical, |_| {}));
    assert_eq!((empty.fen().as_str(), empty.legal_indices()), ("8/8/8/8/8/8/8/8 w - - 0 1", None));
    assert_eq!(mirror(mirror(0x1234)), 0x1234);
    assert_eq!(empty.uci(1858), None);
}
