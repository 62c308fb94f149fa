//! Positions -> chains -> blocks: those that follow from each other become one chain.
//! What was read comes back; a position that cannot be written is refused, and nothing of it is.

use gristmill_bytes::error::Result;

use super::bits::{BitWriter, width};
use super::board::Board;
use super::chain::{follow, put_stem, unsigned};
use super::men::Move;
use super::record::{Position, Told};
use super::source::{HEADER, MAGIC};

/// Bytes of chains after which a block ends.
const BLOCK: usize = 1 << 20;

/// Positions on their way to a file.
#[derive(Debug, Default)]
pub struct Writer {
    /// The block so far, its header first.
    block: Vec<u8>,
    /// The stem of the chain so far.
    stem: Vec<u8>,
    bits: BitWriter,
    plies: u16,
    /// The position that would follow, and what would be known of it.
    expected: Option<(Board, Told)>,
    chains: u64,
}

impl Writer {
    /// Adds a position, and to `out` the blocks that are whole.
    pub fn add(&mut self, position: &Position, out: &mut Vec<u8>) {
        let (board, told) = (position.board(), position.told());
        let follows = self.expected.take().filter(|(after, known)| {
            let agreed = (known.ply, known.result, known.rule50) == (told.ply, told.result, told.rule50);
            after == board && agreed && told.played != Move::NONE && self.plies < u16::MAX
        });
        match follows {
            Some((_, known)) => {
                let (man, ways, way) = board.number(told.played);
                self.bits.put(man, width(board.movers()));
                self.bits.put(way, width(ways));
                self.score(unsigned(told.score.wrapping_sub(known.score)));
                self.plies += 1;
            }
            None => {
                self.end_chain(out);
                put_stem(board.men(), told, &mut self.stem);
            }
        }
        self.expected = after(board, told);
    }

    /// A number in blocks of four bits, the lowest first.
    fn score(&mut self, mut value: u16) {
        loop {
            let (low, rest) = (u32::from(value & 15), value >> 4);
            self.bits.put(u32::from(rest != 0) << 4 | low, 5);
            if rest == 0 {
                return;
            }
            value = rest;
        }
    }

    fn end_chain(&mut self, out: &mut Vec<u8>) {
        if self.stem.is_empty() {
            return;
        }
        if self.block.is_empty() {
            self.block.extend_from_slice(&MAGIC);
            self.block.extend_from_slice(&[0; HEADER - MAGIC.len()]);
        }
        self.block.append(&mut self.stem);
        self.block.extend_from_slice(&self.plies.to_be_bytes());
        self.block.extend_from_slice(self.bits.bytes());
        self.bits.clear();
        (self.plies, self.expected) = (0, None);
        self.chains += 1;
        if self.block.len() >= BLOCK {
            self.end_block(out);
        }
    }

    fn end_block(&mut self, out: &mut Vec<u8>) {
        let len = self.block.len().saturating_sub(HEADER) as u32;
        if let Some(size) = self.block.get_mut(MAGIC.len()..HEADER) {
            size.copy_from_slice(&len.to_le_bytes());
        }
        out.append(&mut self.block);
    }

    /// Ends chain and block, and says how many chains there are.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> u64 {
        self.end_chain(out);
        self.end_block(out);
        std::mem::take(&mut self.chains)
    }
}

/// The position after the move that was played, where there can be one.
fn after(board: &Board, told: &Told) -> Option<(Board, Told)> {
    if told.played == Move::NONE {
        return None;
    }
    let mut board = board.clone();
    let played: Result<_> = board.play(told.played).and_then(|last| follow(told, last));
    played.ok().map(|told| (board, told))
}
