//! Games of chess: held against the rules, drawn as boards, counted by position.

use std::ops::ControlFlow;

use cozy_chess::GameStatus;
use cozy_chess::util::parse_uci_move;
use gristmill_engine::error::Result;
use gristmill_format::Result as FormatResult;
use gristmill_format::chess::check::{self, Rules};
use gristmill_format::chess::identity::{Identity, identity};
use gristmill_format::chess::{Board, Frame, KIND, Version, game, pgn};
use gristmill_format::container::salvage;
use gristmill_format::layout::Layout;
use gristmill_format::source::Chunk;

use crate::work::drawn::chess;
use crate::work::{
    Counting, Decoded, Fault, FramePlace, FrameView, Opened, Scribe, Signs, Verification, Words, Work, no_words,
};

pub(super) struct Chess;

/// The result is that of the board after the last move, where that ends the game.
const OUTCOME: &str = "outcome";

/// What the last move of a game makes of it, for the side that plays it, in words as well; none where the game may go on.
fn told_by_board(frame: &Frame<'_>) -> Option<(f32, &'static str)> {
    let board = Board::from_frame(frame).ok()?;
    let (mut after, played) = (board.to_cozy()?, board.uci(frame.played_idx())?);
    let played = parse_uci_move(&after, &played).ok()?;
    after.try_play(played).ok()?;
    match after.status() {
        GameStatus::Won => Some((1.0, "mates")),
        GameStatus::Drawn if after.halfmove_clock() < 100 => Some((0.0, "leaves no legal move")),
        _ => None,
    }
}

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

    fn signs(&self, one: &Decoded<'_>, signs: &mut Signs) -> FormatResult<()> {
        let size = one.chunk.layout.as_ref().map_or(0, |layout| layout.size());
        let Identity { key, black_first } = identity(one.chunk.records(), size)?;
        signs.games.push(one.met(key, black_first.into()));
        for i in 0..one.chunk.frames {
            let frame = Frame::new(one.chunk.record(i))?;
            let mut policy = frame.probabilities().filter(|p| *p >= 0.0);
            if let (Some(first), Some(second)) = (policy.next(), policy.next()) {
                let flat = first == second && policy.all(|p| p == first);
                signs.always("policy", flat, "flat (each legal move alike)");
            }
            for (name, value) in [("best_q", frame.best_q()), ("root_q", frame.root_q())] {
                signs.value(name, &value.to_le_bytes(), || value.to_string());
            }
        }
        let Some(last) = one.chunk.frames.checked_sub(1) else { return Ok(()) };
        let frame = Frame::new(one.chunk.record(last))?;
        signs.result(match frame.result_q() {
            q if q > 0.0 => "won by the side that moved last",
            q if q < 0.0 => "lost by the side that moved last",
            _ => "drawn",
        });
        if let Some((expected, how)) = told_by_board(&frame)
            && (frame.result_q() - expected).abs() > 0.01
        {
            let q = frame.result_q();
            let reason = format!("result_q is {q}, but the last move {how}; expected {expected}");
            signs.add(one.broken(OUTCOME, (last, 0), reason));
        }
        Ok(())
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

    fn scribe(&self, words: Words) -> FormatResult<Box<dyn Scribe>> {
        match words {
            Words::Pgn | Words::Fen => Ok(Box::new(Text { words, text: String::new() })),
            _ => Err(no_words(self.name(), words)),
        }
    }

    fn count(&self, file: &Opened, counting: &mut dyn Counting) -> Result<()> {
        counting.games(file)
    }
}

/// Games as text.
struct Text {
    words: Words,
    text: String,
}

impl Scribe for Text {
    fn add(&mut self, chunk: &Chunk, out: &mut Vec<u8>) -> FormatResult<u64> {
        self.text.clear();
        if self.words == Words::Pgn {
            pgn::write(&pgn::told(chunk)?, &mut self.text);
        } else {
            for frame in 0..chunk.frames {
                let board = Frame::new(chunk.record(frame)).and_then(|frame| Board::from_frame(&frame));
                self.text.push_str(&board.map_err(|e| e.in_frame(frame))?.fen());
                self.text.push('\n');
            }
        }
        out.extend_from_slice(self.text.as_bytes());
        Ok(chunk.frames as u64)
    }
}
