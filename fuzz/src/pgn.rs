//! Body for files of PGN: games lie apart and in order, moves come back in words, records keep the rules, errors have a place.

use std::ops::ControlFlow;

use gristmill_format::chess::check::{Rules, check};
use gristmill_format::chess::pgn::source::PgnFile;
use gristmill_format::chess::pgn::{read, san};
use gristmill_format::source::{Chunk, ChunkSource, Limits, read_span};

const LIMITS: Limits = Limits { max_chunk_bytes: 1 << 21 };

/// A file is what its games are, one by one.
pub fn pgn(data: &[u8]) {
    let source = PgnFile::open("fuzz.pgn", data).expect("bytes in memory can be read");
    let (mut stored, mut chunk, mut end) = (Vec::new(), Chunk::default(), 0);
    for i in 0..source.len() {
        let (span, _) = source.locate(i).expect("a game that there is");
        assert!(span.offset >= end && span.len > 0, "games lie apart");
        end = span.offset + span.len;
        read_span(data, span, 1 << 20, &mut stored).expect("within the file");
        match source.decode(i, &stored, &LIMITS, &mut chunk) {
            Ok(()) => sound(&stored, &chunk),
            Err(e) => {
                let at = e.place().offset.expect("a byte");
                assert!((span.offset..=end).contains(&at) && e.place().chunk == Some(i as u64), "{e}");
                assert!(chunk.frames == 0);
            }
        }
    }
    assert!(end <= data.len() as u64);
}

/// A game that was taken is one by all rules, and its moves are found again by their words.
fn sound(stored: &[u8], chunk: &Chunk) {
    let game = read(stored).expect("a game that was decoded");
    assert!(game.plies.len() == chunk.frames);
    for ply in &game.plies {
        let mut word = String::new();
        san::write(&ply.board, ply.played, &mut word);
        assert!(san::read(&ply.board, word.as_bytes()) == Ok(ply.played), "{word}");
    }
    let judged = check(chunk, Rules::DEFAULT, &mut |breach| -> ControlFlow<()> {
        panic!("frame {}: {}: {}", breach.frame, breach.rule, breach.reason)
    });
    judged.expect("records that can be judged");
}
