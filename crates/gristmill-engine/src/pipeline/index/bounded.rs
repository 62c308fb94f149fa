//! The plan of rows, if the cache keeps a part of them -> the next step of a keeper. Gives the keeper the blocks that the next batches need.
//! A loader and its rehearsal use the same code, so that the rehearsal says what the loader will fetch. Fetches nothing.

use std::ops::Range;

use gristmill_runtime::error::Result;
use gristmill_runtime::store::keeping::{Group, Keeper, Needed, Numbers, Step};
use gristmill_runtime::table::FrameTable;

use super::plan::Plan;
use super::rehearse::Read;

/// The most batches, from the next one on, whose blocks the keeper knows.
const LOOKS: u64 = 64;

/// The next step: at most `at_once` batches, from batch `first` on and below `end`. `None` if no batch is left. `read` returns the rows of
/// the table that picks are read from.
///
/// Errors: those of the plan and of the table.
pub(super) fn next_step(
    keeper: &mut Keeper,
    (plan, table): (&Plan, &dyn FrameTable),
    read: &mut Read<'_>,
    (first, at_once, end): (u64, u64, Option<u64>),
) -> Result<Option<Step>> {
    let (numbers, mut picks) = (keeper.numbers(), Vec::new());
    let mut number = keeper.seen().unwrap_or(first);
    while number < (first + LOOKS).min(end.unwrap_or(u64::MAX)) && (number < first + at_once || !keeper.sees_enough()) {
        let mut needed = Needed::default();
        if plan.beyond(number) == number {
            plan.picks(number, 0, plan.share(number).rows, &mut picks, false)?;
            add(table, &numbers, &read(&picks)?, &mut needed)?;
        }
        keeper.look(number, needed);
        number += 1;
    }
    let mut of_pass = |batch| Ok((plan.epoch_end(batch), groups(plan, table, &numbers, batch)?));
    keeper.step(at_once, &mut of_pass)
}

/// The groups of the pass that `batch` is in, each with the blocks that it needs. Empty if the order has no groups.
fn groups(plan: &Plan, table: &dyn FrameTable, numbers: &Numbers, batch: u64) -> Result<Vec<Group>> {
    let mut found = Vec::new();
    for group in plan.groups(batch) {
        let rows: Vec<Range<u64>> = group.rows.into_iter().map(|(start, end)| start..end).collect();
        let mut needed = Needed::default();
        add(table, numbers, &rows, &mut needed)?;
        found.push((group.batches, needed));
    }
    Ok(found)
}

/// Adds the blocks that the table reads `rows` from to `needed`.
fn add(table: &dyn FrameTable, numbers: &Numbers, rows: &[Range<u64>], needed: &mut Needed) -> Result<()> {
    table.needs(rows, &mut |file, ranges| {
        numbers.add(file, ranges, needed);
        Ok(())
    })?;
    Ok(())
}
