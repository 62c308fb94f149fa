//! Boards of bulletformat: checked as they are decoded, drawn, packed as they are, and counted by men, result and score.

use std::collections::BTreeMap;

use gristmill_engine::error::Result;
use gristmill_format::Result as FormatResult;
use gristmill_format::binpack::Position;
use gristmill_format::binpack::boards::{TAKEN, of_board};
use gristmill_format::binpack::write::Writer;
use gristmill_format::bullet::board::{BYTES, OTHER};
use gristmill_format::bullet::{Board, KIND};
use gristmill_format::layout::Layout;
use gristmill_format::source::Chunk;

use crate::work::drawn::DrawnView;
use crate::work::{Counting, Decoded, FramePlace, FrameView, Opened, Scribe, Signs, Words, Work, no_words};

/// The letters of the men, those of the side to move first.
const LETTERS: [&[u8; 6]; 2] = [b"PNBRQK", b"pnbrqk"];

/// Centipawns of a bar of scores.
const BAR: i64 = 100;

pub(super) struct Bullet;

impl Work for Bullet {
    fn name(&self) -> &'static str {
        KIND
    }

    /// Boards are no games: what repeats among them is no sign.
    fn signs(&self, one: &Decoded<'_>, signs: &mut Signs) -> FormatResult<()> {
        for frame in 0..one.chunk.frames {
            let board = Board::new(one.chunk.record(frame))?;
            signs.value("score", &board.score().to_le_bytes(), || board.score().to_string());
            signs.value("result", &[board.result()], || board.result().to_string());
        }
        Ok(())
    }

    fn salvageable(&self, _: &Opened, stored: &[u8], _: &mut Chunk) -> Option<u64> {
        let boards = stored.chunks_exact(BYTES);
        Some(boards.take_while(|record| Board::new(record).is_ok()).count() as u64)
    }

    fn view(&self, place: FramePlace, _: Option<&Layout>, record: &[u8]) -> FormatResult<FrameView> {
        let board = Board::new(record)?;
        let mut ranks = [*b". . . . . . . ."; 8];
        for (square, man) in board.pieces() {
            let letters = LETTERS[usize::from(man & OTHER != 0)];
            let letter = letters.get(usize::from(man & 7)).copied().unwrap_or(b'?');
            ranks[7 - usize::from(square / 8)][2 * usize::from(square % 8)] = letter;
        }
        let picture = ranks.iter().map(|rank| String::from_utf8_lossy(rank).into_owned()).collect();
        let result = ["loss", "draw", "win"].get(usize::from(board.result())).copied().unwrap_or_default();
        let facts = BTreeMap::from([
            ("seen by", "the side to move, in capitals".to_owned()),
            ("score", format!("{} centipawns", board.score())),
            ("result", result.to_owned()),
            ("men", board.men().to_string()),
        ]);
        Ok(FrameView::Drawn(Box::new(DrawnView { place, picture, facts })))
    }

    fn scribe(&self, words: Words) -> FormatResult<Box<dyn Scribe>> {
        match words {
            Words::Bulletformat => Ok(Box::new(Boards)),
            Words::Binpack => Ok(Box::new(Chains::default())),
            _ => Err(no_words(self.name(), words)),
        }
    }

    fn count(&self, file: &Opened, counting: &mut dyn Counting) -> Result<()> {
        counting.chunks(file, &mut |chunk, counts| {
            for frame in 0..chunk.frames {
                let board = Board::new(chunk.record(frame))?;
                counts.add("men on the board", board.men().into());
                counts.add("result for the side to move (0 loss, 1 draw, 2 win)", board.result().into());
                counts.add("score in centipawns, from", i64::from(board.score()).div_euclid(BAR) * BAR);
            }
            Ok(())
        })
    }
}

/// Boards as they are.
struct Boards;

impl Scribe for Boards {
    fn add(&mut self, chunk: &Chunk, out: &mut Vec<u8>) -> FormatResult<u64> {
        out.extend_from_slice(chunk.records());
        Ok(chunk.frames as u64)
    }
}

/// Boards as positions of a binpack, each a chain of its own, with what is taken for what they do not say.
#[derive(Default)]
struct Chains(Writer);

impl Scribe for Chains {
    fn add(&mut self, chunk: &Chunk, out: &mut Vec<u8>) -> FormatResult<u64> {
        let boards = chunk.records().as_chunks::<BYTES>().0.iter().enumerate();
        let position = |(i, board)| of_board(board).and_then(|one| Position::new(&one)).map_err(|e| e.in_frame(i));
        let positions: Vec<Position> = boards.map(position).collect::<FormatResult<_>>()?;
        positions.iter().for_each(|position| self.0.add(position, out));
        Ok(chunk.frames as u64)
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.0.finish(out);
    }

    fn made_up(&self) -> Option<&'static str> {
        Some(TAKEN)
    }
}
