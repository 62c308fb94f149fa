//! Tickets of a stream that is only planned: answered from the known facts of their chunks, without a byte of them.
//! Where the selection of rows depends on bytes, they are read and decoded as ever; only the copies are left out.

use std::sync::Arc;

use gristmill_runtime::error::Error;
use gristmill_stages::stage::load::Source;

use super::Chain;
use super::decode::Use;
use crate::pipeline::draw::branch::{Block, Phase};
use crate::pipeline::draw::roster::Roster;
use crate::pipeline::plan::sight::Reads;

/// Files that are named at most where frames were never counted.
const MOST_NAMES: usize = 8;

impl Chain {
    /// The block of a ticket whose chunk need not be read; `None` where it must be.
    ///
    /// Errors: `Stage` for a chunk whose frames were never counted, where none is to be read.
    pub(super) fn look(&self, of: Use, taken: bool, source: &Source, roster: &Roster) -> Result<Option<Phase>, Error> {
        let plan = &self.plan.branches[of.branch];
        let Some(reads) = self.shared.sight.filter(|reads| *reads != Reads::All) else { return Ok(None) };
        if !taken || !plan.passes.is_empty() || plan.frame_weigher.is_some() || !self.position.is_empty() {
            return Ok(None);
        }
        let index = of.draw.at.chunk;
        let Some(frames) = source.frames(index as usize) else {
            return if reads == Reads::Uncounted { Ok(None) } else { Err(self.uncounted(of, roster)) };
        };
        let rows = self.rows(of, source, frames as usize, None);
        let given = rows.len() - (of.keep as usize).min(rows.len());
        Ok(Some(Phase::Done(Arc::new(Block { rows, given, source: of.id, index, ..Block::default() }))))
    }

    /// Names the chunks of the window whose frames were never counted, in the order of draws.
    fn uncounted(&self, of: Use, roster: &Roster) -> Error {
        let inner = self.lock();
        let branch = &inner.branches[of.branch];
        let unread =
            branch.window.iter().filter(|ticket| matches!(ticket.phase, Phase::Planned | Phase::Reading | Phase::Busy));
        let ids: Vec<(u64, u32)> = unread.map(|ticket| (ticket.source, ticket.draw.at.chunk)).collect();
        drop(inner);
        let mut names = Vec::new();
        for (id, chunk) in ids {
            let uncounted = roster.open(id).ok().filter(|source| source.frames(chunk as usize).is_none());
            names.extend(uncounted.map(|source| source.path()).filter(|name| !names.contains(name)));
        }
        let more = if names.len() > MOST_NAMES { ", ..." } else { "" };
        names.truncate(MOST_NAMES);
        let message = format!(
            "the frames of these games were never counted, and decide which rows come: {}{more}; survey them first \
             (`--survey` reads what is needed, and the side index keeps it)",
            names.join(", ")
        );
        Error::Stage { stage: self.plan.branches[of.branch].stage.clone(), message }
    }

    /// Takes slots for rows whose bytes are never read.
    pub(in crate::pipeline) fn fill_blindly(&self, rows: &[(u32, u32)]) {
        self.slots.fill_blindly(rows.iter().map(|(_, slot)| *slot));
    }
}
