//! The plan of rows of which the cache keeps a part -> the blocks that the next batches need, for its keeper, and the steps that it takes.
//! The same for a loader and for the rehearsal that says beforehand what the loader fetches. Fetches nothing.

use std::ops::Range;

use gristmill_runtime::error::Result;
use gristmill_runtime::store::keeping::{Group, Keeper, Needed, Numbers, Step};
use gristmill_runtime::table::FrameTable;

use super::plan::Plan;
use super::rehearse::Read;

/// Batches whose blocks the keeper knows before it fetches the first of them.
const LOOKS: u64 = 64;

/// The next step of at most `at_once` batches from `first` on, of those below `end`; `read` says which rows stand for picks.
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

/// What each group of blocks needs of the pass that a batch is in.
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

/// Adds the blocks that rows of a table are read from.
fn add(table: &dyn FrameTable, numbers: &Numbers, rows: &[Range<u64>], needed: &mut Needed) -> Result<()> {
    table.needs(rows, &mut |file, ranges| {
        numbers.add(file, ranges, needed);
        Ok(())
    })?;
    Ok(())
}
