//! Games of chess: held against the rules, drawn as boards, counted by position.

use std::ops::ControlFlow;

use gristmill_engine::error::Result;
use gristmill_format::Result as FormatResult;
use gristmill_format::chess::check::{self, Rules};
use gristmill_format::chess::{Board, Frame, KIND, Version, game, pgn};
use gristmill_format::container::salvage;
use gristmill_format::layout::Layout;
use gristmill_format::source::Chunk;

use crate::work::drawn::chess;
use crate::work::{Counting, Decoded, Fault, FramePlace, FrameView, Opened, Verification, Words, Work};

pub(super) struct Chess;

impl Work for Chess {
    fn name(&self) -> &'static str {
        KIND
    }

    fn verify(&self, one: &Decoded<'_>, keep: usize, found: &mut Verification) {
        found.checked += one.chunk.frames as u64;
        let checked = check::check(one.chunk, Rules::DEFAULT, &mut |breach| {
            found.add(keep, one.broken(breach.rule.name(), (breach.frame, breach.offset), breach.reason));
            ControlFlow::Continue(())
        });
        if let Err(e) = checked {
            found.add(keep, Fault::new(&e.in_chunk(one.i).in_source(&one.file.path)));
        }
    }

    fn salvageable(&self, file: &Opened, stored: &[u8], chunk: &mut Chunk) -> Option<u64> {
        let got = salvage::salvage(stored, file.max_chunk_bytes(), &mut chunk.bytes);
        let Some(tag) = chunk.bytes.first_chunk::<4>() else { return Some(0) };
        let Some(version) = Version::from_number(u32::from_le_bytes(*tag)) else { return Some(0) };
        chunk.bytes.truncate(got - got % version.bytes());
        Some(match game::parse(chunk) {
            Ok(()) => chunk.frames as u64,
            Err(e) => e.place().frame.unwrap_or(0),
        })
    }

    fn view(&self, place: FramePlace, _: Option<&Layout>, record: &[u8]) -> FormatResult<FrameView> {
        Ok(FrameView::Chess(Box::new(chess::view(place, record)?)))
    }

    fn tell(&self, chunk: &Chunk, words: Words, out: &mut String) -> FormatResult<()> {
        match words {
            Words::Pgn => pgn::write(&pgn::told(chunk)?, out),
            Words::Fen => {
                for frame in 0..chunk.frames {
                    let board = Frame::new(chunk.record(frame)).and_then(|frame| Board::from_frame(&frame));
                    out.push_str(&board.map_err(|e| e.in_frame(frame))?.fen());
                    out.push('\n');
                }
            }
        }
        Ok(())
    }

    fn count(&self, file: &Opened, counting: &mut dyn Counting) -> Result<()> {
        counting.games(file)
    }
}
