//! Positions of Stockfish's binpack: checked as they are decoded, drawn, told as FEN, packed as records, and counted by men, result,
//! score and ply.

use std::collections::BTreeMap;

use gristmill_engine::error::Result;
use gristmill_format::binpack::write::Writer;
use gristmill_format::binpack::{KIND, Position, chain};
use gristmill_format::layout::Layout;
use gristmill_format::source::Chunk;
use gristmill_format::{Error, Kind, Result as FormatResult};

use crate::work::drawn::DrawnView;
use crate::work::{Counting, FramePlace, FrameView, Opened, Scribe, Words, Work};

/// Units of a bar of scores.
const BAR: i64 = 100;

/// Plies of a bar of them.
const PLIES: i64 = 10;

pub(super) struct Binpack;

impl Work for Binpack {
    fn name(&self) -> &'static str {
        KIND
    }

    fn salvageable(&self, _: &Opened, stored: &[u8], _: &mut Chunk) -> Option<u64> {
        let mut whole = 0;
        match chain::play(stored, &mut |_, _| whole += 1) {
            Ok(played) => Some(played.frames as u64),
            Err(_) => Some(whole),
        }
    }

    fn view(&self, place: FramePlace, _: Option<&Layout>, record: &[u8]) -> FormatResult<FrameView> {
        let position = Position::new(record)?;
        let letters = position.letters();
        let line =
            |rank: &[u8]| rank.iter().map(|letter| char::from(*letter).to_string()).collect::<Vec<_>>().join(" ");
        let picture = letters.chunks(8).rev().map(line).collect();
        let told = position.told();
        let result = ["loss", "draw", "win"].get((told.result + 1) as usize).copied().unwrap_or_default();
        let score = if position.has_score() { told.score.to_string() } else { "none".to_owned() };
        let facts = BTreeMap::from([
            ("fen", position.fen()),
            ("move", told.played.to_string()),
            ("score", score),
            ("result for the side to move", result.to_owned()),
            ("ply", told.ply.to_string()),
        ]);
        Ok(FrameView::Drawn(Box::new(DrawnView { place, picture, facts })))
    }

    fn scribe(&self, words: Words) -> FormatResult<Box<dyn Scribe>> {
        match words {
            Words::Fen => Ok(Box::new(Lines)),
            Words::Bulletformat => Ok(Box::new(Boards)),
            Words::Binpack => Ok(Box::new(Chains::default())),
            Words::Pgn => {
                let detail = "chains of a binpack are parts of games, which no PGN tells; fen tells their positions";
                Err(Error::new(Kind::Unsupported, detail))
            }
        }
    }

    fn count(&self, file: &Opened, counting: &mut dyn Counting) -> Result<()> {
        counting.chunks(file, &mut |chunk, counts| {
            counts.add("positions of a chain", chunk.frames as i64);
            for frame in 0..chunk.frames {
                let position = Position::new(chunk.record(frame))?;
                let told = position.told();
                counts.add("men on the board", position.board().occ().count_ones().into());
                counts.add("result for the side to move (-1 loss, 0 draw, 1 win)", told.result.into());
                counts.add("ply, from", i64::from(told.ply).div_euclid(PLIES) * PLIES);
                if position.has_score() {
                    counts.add("score, from", i64::from(told.score).div_euclid(BAR) * BAR);
                }
            }
            Ok(())
        })
    }
}

/// The positions of a chunk.
fn positions(chunk: &Chunk) -> FormatResult<Vec<Position>> {
    (0..chunk.frames).map(|i| Position::new(chunk.record(i)).map_err(|e| e.in_frame(i))).collect()
}

/// A line of FEN for each position.
struct Lines;

impl Scribe for Lines {
    fn add(&mut self, chunk: &Chunk, out: &mut Vec<u8>) -> FormatResult<u64> {
        for position in positions(chunk)? {
            out.extend_from_slice(position.fen().as_bytes());
            out.push(b'\n');
        }
        Ok(chunk.frames as u64)
    }
}

/// A board of bulletformat for each position that has a score.
struct Boards;

impl Scribe for Boards {
    fn add(&mut self, chunk: &Chunk, out: &mut Vec<u8>) -> FormatResult<u64> {
        let (before, mut written) = (out.len(), 0);
        for frame in 0..chunk.frames {
            let position = Position::new(chunk.record(frame)).inspect_err(|_| out.truncate(before));
            let position = position.map_err(|e| e.in_frame(frame))?;
            if position.has_score() {
                out.extend_from_slice(&position.board_bytes());
                written += 1;
            }
        }
        Ok(written)
    }
}

/// Chains, in blocks.
#[derive(Default)]
struct Chains(Writer);

impl Scribe for Chains {
    fn add(&mut self, chunk: &Chunk, out: &mut Vec<u8>) -> FormatResult<u64> {
        positions(chunk)?.iter().for_each(|position| self.0.add(position, out));
        Ok(chunk.frames as u64)
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.0.finish(out);
    }
}
