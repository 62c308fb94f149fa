//! Policies of other games for the frames that the same moves led to.
//! Changes probabilities only.

use std::collections::BTreeMap;

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::source::Chunk;
use xxhash_rust::xxh3::Xxh3;

use super::game::{FLAGGED, Game, Ply, refused};
use super::replay::{Replay, entry_of};
use super::settings::Compat;
use super::tally::{Count, Tally};
use crate::chess::check::Rule;
use crate::chess::frame::Frame;
use crate::chess::policy;
use crate::chess::record::{POLICY, at};

/// The policies of some games, by first position and the moves from there.
#[derive(Debug, Default)]
pub struct PolicyBook {
    /// Indices as the side to move sees its own board, and bits of the probabilities; illegal moves are left out.
    policies: BTreeMap<u64, Vec<(u16, u32)>>,
}

impl PolicyBook {
    /// Adds the game in `chunk`; where its moves are known, its policies replace the earlier ones.
    ///
    /// Errors: `Unsupported` for other records than V6 and V7, `Refused` for a game that is not sound.
    pub fn add(&mut self, chunk: &Chunk, compat: Compat) -> Result<()> {
        let size = super::record_size(chunk)?;
        let records = chunk.records();
        if records.is_empty() {
            return Err(Error::new(Kind::Empty, "the game has no frames"));
        }
        let mut replay = Replay::default();
        replay.read(records, size, compat)?;
        for (record, (key, ply)) in records.chunks_exact(size).zip(paths(&replay.plies)) {
            let frame = Frame::new(record)?;
            if frame.invariance_info() & FLAGGED == 0 {
                self.policies.insert(key, plain(frame, ply));
            }
        }
        Ok(())
    }

    /// How many positions it has policies of.
    pub fn len(&self) -> usize {
        self.policies.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.policies.is_empty()
    }

    /// A number that tells books apart.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Xxh3::new();
        for (key, policy) in &self.policies {
            hash.update(&key.to_le_bytes());
            for (index, bits) in policy {
                hash.update(&index.to_le_bytes());
                hash.update(&bits.to_le_bytes());
            }
        }
        hash.digest()
    }
}

/// Each position with the key of the moves that led there.
fn paths(plies: &[Ply]) -> impl Iterator<Item = (u64, &Ply)> {
    let start = plies.first().map_or(0, |ply| ply.board.hash() ^ u64::from(ply.board.halfmove_clock()));
    plies.iter().scan(start, |next, ply| {
        let key = *next;
        let step = ply.played.map(|m| entry_of(&ply.board, m));
        let step = step.and_then(|entry| policy::index(entry.from, entry.to, entry.promotion));
        let mut hash = Xxh3::with_seed(key);
        hash.update(&step.unwrap_or(POLICY as u16).to_le_bytes());
        *next = hash.digest();
        Some((key, ply))
    })
}

/// The policy of a frame, its transform undone.
fn plain(frame: Frame<'_>, ply: &Ply) -> Vec<(u16, u32)> {
    let legal = (0u16..).zip(frame.probabilities()).filter(|(_, p)| *p >= 0.0);
    let shown = legal.map(|(index, p)| {
        let entry = policy::entry(index).expect("an index of the policy");
        let square = |s| ply.transform.undo_square(s, ply.mapping);
        let index = policy::index(square(entry.from), square(entry.to), entry.promotion).unwrap_or(index);
        (index, p.to_bits())
    });
    shown.collect()
}

/// Replaces the policies of the frames that `book` knows.
///
/// Errors: `Refused` where the transform of a frame has no place for a move that the policy gives more than 0.
pub(super) fn run(game: &mut Game<'_>, book: &PolicyBook, tally: &mut Tally) -> Result<()> {
    let plies = game.plies;
    for (i, (key, ply)) in paths(plies).enumerate() {
        if game.frame(i).invariance_info() & FLAGGED != 0 {
            continue;
        }
        let Some(policy) = book.policies.get(&key) else { continue };
        let before = game.frame(i).probability_bytes().to_vec();
        let mut frame = game.frame_mut(i);
        (0..POLICY).for_each(|index| {
            frame.set_probability(index, -1.0);
        });
        for (index, bits) in policy {
            let p = f32::from_bits(*bits);
            match policy::entry(*index).and_then(|entry| ply.transform.index(entry, ply.mapping)) {
                Some(here) => _ = frame.set_probability(here.into(), p),
                None if p > 0.0 => {
                    let transform = ply.transform.bits();
                    let text =
                        format!("transform {transform:#05b} has no index for a move of the policy that replaces this");
                    return Err(refused(Rule::Transform, i, game.size, at::INVARIANCE_INFO, text));
                }
                None => {}
            }
        }
        tally.add(Count::Policies, u64::from(game.frame(i).probability_bytes() != before));
    }
    Ok(())
}
