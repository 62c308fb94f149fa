//! What processes say they delivered <-> what the plan gives at those numbers, record by record and epoch by epoch.
//! The digest of a whole epoch is held against the selected rows themselves, not against their order.

use std::collections::BTreeSet;

use gristmill_engine::error::Result;
use gristmill_engine::pipeline::Lookup;
use gristmill_engine::pipeline::ledger::{Account, Delivered, Digest, Digests};
use serde::Serialize;

use super::{Progress, RowsPlan};

/// A record whose frames are not those of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WrongRecord {
    /// The ledger.
    pub ledger: String,
    /// The first batch.
    pub first: u64,
    /// The one after the last.
    pub end: u64,
}

/// What the training that survived was given of an epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EpochDigest {
    /// The epoch.
    pub epoch: u64,
    /// Rows that it has.
    pub rows: u64,
    /// Rows that were delivered.
    pub delivered: u64,
    /// Rows that were left out on purpose.
    pub skipped: u64,
    /// Whether all rows came, each once, by the digest.
    pub whole: bool,
    /// Whether as many came as there are, and not the same.
    pub differs: bool,
}

/// Compares all records of an output, and the epochs that survived.
pub(super) fn compare(
    (account, output): (&Account, &str),
    plan: &RowsPlan,
    whole: &Lookup,
    skipped: &[(u64, u64)],
    progress: Progress<'_>,
) -> Result<(Vec<WrongRecord>, Vec<EpochDigest>)> {
    let (mut wrong, mut given) = (Vec::new(), Digests::default());
    let records = account.processes.iter().flat_map(|process| &process.delivered).filter(|d| d.output == output);
    let (all, mut done) = (records.map(|record| record.end - record.first).sum(), 0);
    for (p, process) in account.processes.iter().enumerate() {
        let lookup = plan.lookup(process, true)?;
        let cut = account.cut(p, output).unwrap_or(u64::MAX);
        for Delivered { first, end, digests, .. } in process.delivered.iter().filter(|d| d.output == output) {
            let mut expected = Digests::default();
            lookup.digest(*first..*end, &mut expected)?;
            if !expected.iter().eq(digests) {
                let ledger = account.files[process.file].display().to_string();
                wrong.push(WrongRecord { ledger, first: *first, end: *end });
            }
            done += end - first;
            progress(done, all);
            if *end <= cut {
                given.merge(digests);
            } else if *first < cut {
                lookup.digest(*first..cut, &mut given)?;
            }
        }
    }
    let mut left_out = Digests::default();
    for (first, end) in skipped {
        whole.digest(*first..(*end).min(whole.batches().unwrap_or(*end)), &mut left_out)?;
    }
    let epochs: BTreeSet<u64> = given.iter().filter_map(|digest| digest.epoch).collect();
    Ok((wrong, epochs.into_iter().map(|epoch| of_epoch(plan, epoch, &given, &left_out)).collect()))
}

fn of_epoch(plan: &RowsPlan, epoch: u64, given: &Digests, left_out: &Digests) -> EpochDigest {
    let nothing = Digest { epoch: Some(epoch), ..Digest::default() };
    let [mut all, left_out] = [given, left_out].map(|digests| digests.epoch(epoch).copied().unwrap_or(nothing));
    let delivered = all.frames;
    all.merge(&left_out);
    let whole = all.frames == plan.rows && {
        let mut rows = Digests::default();
        let of_epoch = plan.lookup.epoch().into_iter().flat_map(|rows| rows.iter());
        rows.rows(epoch, of_epoch.flat_map(|(start, end)| start..end));
        rows.epoch(epoch) == Some(&all)
    };
    // Draws by weight repeat rows: that they are those of the plan is all that can be said.
    let differs = !whole && all.frames >= plan.rows && plan.lookup.epoch().is_some();
    EpochDigest { epoch, rows: plan.rows, delivered, skipped: left_out.frames, whole, differs }
}
