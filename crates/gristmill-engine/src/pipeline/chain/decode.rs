//! The work lane's first half: fetched bytes -> a block with its selected rows, oldest ticket first.
//! One fused task per chunk; what a bad chunk leaves is an empty block with the reason.

use std::sync::{Arc, MutexGuard};

use super::{Chain, Inner};
use crate::pipeline::branch::{Block, Phase};
use crate::runtime::scheduler::Lane;

impl Chain {
    pub(super) fn decode_one(&self, mut inner: MutexGuard<'_, Inner>) -> bool {
        let within = self.work_window();
        let ready = |phase: &Phase| matches!(phase, Phase::Read(..));
        let open = inner.branches.iter_mut().enumerate().filter_map(|(b, branch)| {
            let (head, free) = (branch.head, branch.decoding < branch.plan.ceiling);
            branch.first(within, ready).filter(|_| free).map(|(number, _)| (number - head, b))
        });
        let Some((_, b)) = open.min() else { return false };
        let mut chunk = inner.spare_chunks.pop().unwrap_or_default();
        let branch = &mut inner.branches[b];
        let (plan, key) = (Arc::clone(&branch.plan), branch.unpack_key);
        let Some((number, ticket)) = branch.first(within, ready) else { return false };
        let (id, draw) = (ticket.source, ticket.draw);
        let Phase::Read(source, bytes) = std::mem::replace(&mut ticket.phase, Phase::Busy) else { return false };
        branch.decoding += 1;
        drop(inner);
        let index = draw.at.chunk;
        let block = match self.prepare(b, &source, index, &bytes, &mut chunk) {
            Ok(conform) => {
                let mut rows = Vec::new();
                let own = key.of(source.key.as_bytes(), u64::from(index));
                plan.unpack.select(own, chunk.frames, draw.use_count, &mut rows);
                self.branch_totals[b].chunks.add(1);
                self.branch_totals[b].frames.add(rows.len() as u64);
                self.branch_totals[b].frames_decoded.add(chunk.frames as u64);
                Arc::new(Block { chunk, rows, source: id, index, conform: Some(conform), fault: None })
            }
            Err(fault) => self.bad(b, id, index, fault, chunk),
        };
        let mut inner = self.lock();
        inner.spare_bytes.push(bytes);
        let branch = &mut inner.branches[b];
        branch.decoding -= 1;
        if let Some(ticket) = branch.ticket(number) {
            ticket.phase = Phase::Done(block);
        }
        self.settle(&mut inner);
        drop(inner);
        self.shared.signal.notify(Lane::Work);
        true
    }
}
