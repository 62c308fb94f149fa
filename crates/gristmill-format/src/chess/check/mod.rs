//! The records of one game -> what is wrong with them: the rule, the frame, the byte, and what was expected.
//! Judges only; never changes a record, and no bytes make it panic.

mod field;
mod history;
mod outcome;
pub(super) mod policy;
mod rule;
pub(super) mod view;
mod walk;

use std::ops::ControlFlow;

pub use rule::{NAMES, REFUSED_BY, Rule, Rules};

use self::walk::Walk;
use super::frame::Frame;
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::source::Chunk;

/// One thing that is wrong with a game.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breach {
    /// The rule that is broken.
    pub rule: Rule,
    /// The frame, counted from 0.
    pub frame: usize,
    /// First byte within the record of the field that the rule is about.
    pub offset: usize,
    /// What was expected and what was found.
    pub reason: String,
}

/// Gives what breaks one of `rules` in the game in `chunk` to `tell`, frame by frame, until `tell` breaks off.
///
/// Errors: `Unsupported` for records that are not chess V6 or V7.
pub fn check(chunk: &Chunk, rules: Rules, tell: &mut dyn FnMut(Breach) -> ControlFlow<()>) -> Result<()> {
    let size = chunk.layout.as_ref().map_or(0, |layout| layout.size());
    if size == 0 {
        return Err(Error::new(Kind::Unsupported, "records without a layout cannot be judged"));
    }
    let frames = chunk.records().chunks_exact(size).map(Frame::new).collect::<Result<Vec<_>>>()?;
    game(&frames, rules, tell);
    Ok(())
}

/// The same for frames of any origin.
pub fn game(frames: &[Frame<'_>], rules: Rules, tell: &mut dyn FnMut(Breach) -> ControlFlow<()>) {
    let mut tell = Tell { rules, frame: 0, stopped: false, to: tell };
    let mut walk = Walk::default();
    for (i, frame) in frames.iter().enumerate() {
        tell.frame = i;
        field::judge(*frame, &mut tell);
        walk.step(*frame, &mut tell);
        outcome::judge(frames, i, &mut tell);
        if tell.stopped {
            return;
        }
    }
}

/// Passes breaches of the selected rules to the listener, until it breaks off.
struct Tell<'a> {
    rules: Rules,
    frame: usize,
    stopped: bool,
    to: &'a mut dyn FnMut(Breach) -> ControlFlow<()>,
}

impl Tell<'_> {
    fn breach(&mut self, rule: Rule, offset: usize, reason: impl FnOnce() -> String) {
        if !self.stopped && self.rules.has(rule) {
            let breach = Breach { rule, frame: self.frame, offset, reason: reason() };
            self.stopped = (self.to)(breach).is_break();
        }
    }

    /// A breach of the frame before, which only this one shows.
    fn breach_before(&mut self, rule: Rule, offset: usize, reason: impl FnOnce() -> String) {
        self.frame -= 1;
        self.breach(rule, offset, reason);
        self.frame += 1;
    }
}
