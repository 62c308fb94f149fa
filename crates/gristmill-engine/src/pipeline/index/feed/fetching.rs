//! Batches of rows that are elsewhere -> the blocks that readers claim and fetch for the next batches. If the cache keeps a part of the
//! files, a reader first frees blocks, after workers have made the batches that need them. The plan alone decides what a step fetches and
//! frees; the consumer decides only when.

use std::ops::Range;
use std::sync::PoisonError;

use gristmill_runtime::error::Result;
use gristmill_runtime::runtime::scheduler::Lane;
use gristmill_runtime::store::keeping::{Keeper, Step};
use gristmill_runtime::store::{Claims, Pins};
use gristmill_runtime::table::{FrameTable, Pick};

use super::super::bounded::next_step;
use super::super::fetch::Fetched;
use super::{Feed, Inner};

/// The most rows of groups for each row of the batches in them, for a reader to go by the groups.
const MOST_ROWS: u64 = 32;

/// What some batches need of a table that is elsewhere.
pub(super) struct Awaited {
    claims: Vec<Claims>,
    /// Whether `claims` has blocks that these batches may not need, all of them claimed for earlier batches.
    more: bool,
}

impl From<Vec<Claims>> for Awaited {
    fn from(claims: Vec<Claims>) -> Self {
        Awaited { claims, more: false }
    }
}

/// The keeper of a feed, and its next step.
#[derive(Debug)]
pub(super) struct Keeping {
    keeper: Keeper,
    /// The next step, with its batches. `None` if it is not planned yet. An error if these batches could not be planned.
    next: Option<(Range<u64>, Result<Step>)>,
}

impl Keeping {
    /// Makes the keeper of the files of `table`. `None` if the cache keeps them whole.
    ///
    /// Errors: as [`Keeper::leased`].
    pub(super) fn of(table: &dyn FrameTable) -> Result<Option<Self>> {
        Ok(Keeper::leased(&table.files())?.map(|keeper| Keeping { keeper, next: None }))
    }
}

impl Feed {
    /// Fetches the next batches of a table that is elsewhere. A reader waits for blocks that other readers bring only if it has nothing to
    /// fetch. Returns `false` if there is nothing to do now.
    pub(super) fn fetch_some(&self) -> bool {
        let there = self.lock().all_there();
        if let Some((range, awaited)) = there {
            let brought = self.wait_for(&range, awaited);
            self.brought(range, brought);
        } else if let Some((range, claimed)) = self.claim_next() {
            // While this reader waits for its blocks, another one claims what comes next.
            self.shared.signal.notify_one(Lane::Read);
            self.bring(range, claimed);
        } else {
            let Some((range, awaited)) = self.lock().next_awaited() else { return false };
            let brought = self.wait_for(&range, awaited);
            self.lock().is_awaiting = false;
            self.brought(range, brought);
        }
        true
    }

    /// Wakes a reader if the next batches may be fetched. A worker that looks for a batch to begin does so, not the consumer: to wake a
    /// thread takes time.
    pub(super) fn fetch_further(&self, inner: &Inner) {
        let is_due = |fetched: &Fetched| self.keeps_part || fetched.is_due(inner.delivered, self.plan.batches());
        if inner.fetched.as_ref().is_some_and(is_due) {
            self.shared.signal.notify_one(Lane::Read);
        }
    }

    /// Waits for what other readers bring for the batches of `range`, and brings what they gave up.
    fn wait_for(&self, range: &Range<u64>, Awaited { mut claims, more }: Awaited) -> Result<Vec<Pins>> {
        if more && !Claims::wait(&mut claims) {
            // These batches may not need the block that could not be read.
            claims = self.claim(range)?;
        }
        Ok(Claims::bring(claims)?)
    }

    /// Claims what the next batches need, in the order of batches. `None` if there is nothing to fetch now.
    fn claim_next(&self) -> Option<(Range<u64>, Result<Awaited>)> {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keeping) = &mut *turn {
            return self.claim_some(keeping);
        }
        let mut inner = self.lock();
        let (delivered, end) = (inner.delivered, self.plan.batches());
        let range = inner.fetched.as_mut()?.begin(delivered, end)?;
        self.further(&inner);
        drop(inner);
        let claimed = match self.claimed_already(&range) {
            Some(claims) => Ok(Awaited { claims, more: true }),
            None => self.claim(&range).map(Awaited::from),
        };
        drop(turn);
        Some((range, claimed))
    }

    /// What other readers bring of all that the batches of `range` may read. `None` if something of that is left to claim. To find out which
    /// rows a batch reads takes a worker's time, and most batches read what earlier ones claimed.
    fn claimed_already(&self, range: &Range<u64>) -> Option<Vec<Claims>> {
        let files = self.assembly.table().files();
        if !files.is_empty() && files.iter().all(|file| file.has_all()) {
            return Some(Vec::new());
        }
        let Some(rows) = self.plan.groups_of(range.start, range.end - 1) else {
            return self.assembly.awaited(None).ok()?;
        };
        let of_groups: u64 = rows.iter().map(|rows| rows.end - rows.start).sum();
        let of_batches = (range.end - range.start).saturating_mul(self.plan.batch_rows() as u64);
        // Files of large groups may take as long as the rows of few batches.
        let is_quicker = of_batches.saturating_mul(MOST_ROWS) >= of_groups;
        is_quicker.then(|| self.assembly.awaited(Some(&rows)).ok()).flatten().flatten()
    }

    /// Claims what the batches of `range` read.
    fn claim(&self, range: &Range<u64>) -> Result<Vec<Claims>> {
        let (mut picks, mut scratch) = self.lock().spare.pop().unwrap_or_default();
        let mut all = Vec::new();
        let mut batches = range.clone().filter(|number| self.plan.beyond(*number) == *number);
        let found = batches.try_for_each(|number| {
            self.plan.picks(number, 0, self.plan.share(number).rows, &mut picks, false)?;
            all.append(&mut picks);
            Ok(())
        });
        let claimed = found.and_then(|()| self.assembly.claim(&all, &mut scratch));
        self.lock().spare.push((picks, scratch));
        claimed
    }

    /// Fetches what this reader claimed for the batches of `range`. If other readers still bring some of their blocks, they are awaited.
    fn bring(&self, range: Range<u64>, claimed: Result<Awaited>) {
        let brought = claimed.and_then(|mut awaited| Ok((Claims::bring_ours(&mut awaited.claims)?, awaited)));
        match brought {
            Ok((true, awaited)) => self.brought(range, Claims::bring(awaited.claims).map_err(Into::into)),
            Ok((false, awaited)) => _ = self.lock().awaited.insert(range.start, (range.end, awaited)),
            Err(e) => self.brought(range, Err(e)),
        }
    }

    /// The blocks of the batches of `range` are there. Notes the pins or the error.
    fn brought(&self, range: Range<u64>, brought: Result<Vec<Pins>>) {
        let mut inner = self.lock();
        let error = match brought {
            Ok(pins) if pins.is_empty() => None,
            Ok(pins) => {
                inner.pins.push_back((range.end, pins));
                None
            }
            Err(e) => Some(e),
        };
        if let Some(known) = &mut inner.fetched {
            known.end(range, error);
        }
        self.further(&inner);
        drop(inner);
        self.shared.signal.notify(Lane::Work);
        // After the first batch another reader begins.
        self.shared.signal.notify_one(Lane::Read);
    }

    /// Claims the blocks that the next batches need. `None` if no batch is left, if enough is fetched, or if a batch that is not made yet
    /// needs the blocks that the step frees.
    fn claim_some(&self, keeping: &mut Keeping) -> Option<(Range<u64>, Result<Awaited>)> {
        if keeping.next.is_none() {
            keeping.next = self.next_of(&mut keeping.keeper);
            if keeping.next.is_none() {
                keeping.keeper.end();
            }
        }
        let (range, step) = keeping.next.as_ref()?;
        let after = step.as_ref().map_or(0, |step| step.after);
        let mut inner = self.lock();
        let (delivered, made) = (inner.delivered, made(&inner));
        if after > made || !inner.fetched.as_mut()?.take(range, delivered) {
            return None;
        }
        self.further(&inner);
        drop(inner);
        let (range, step) = keeping.next.take()?;
        let files = self.assembly.table().files();
        Some((range, step.and_then(|step| Ok(keeping.keeper.claim(&step, &files)?.into()))))
    }

    fn next_of(&self, keeper: &mut Keeper) -> Option<(Range<u64>, Result<Step>)> {
        let mut inner = self.lock();
        let fetched = inner.fetched.as_ref()?;
        let (first, at_once, end) = (fetched.next(), fetched.at_once(), self.plan.batches());
        let (picks, mut scratch) = inner.spare.pop().unwrap_or_default();
        drop(inner);
        let mut read = |picks: &[Pick]| self.assembly.read_for(picks, &mut scratch);
        let step = next_step(keeper, (&self.plan, self.assembly.table()), &mut read, (first, at_once, end));
        self.lock().spare.push((picks, scratch));
        match step.transpose()? {
            Ok(step) => Some((step.batches.clone(), Ok(step))),
            Err(e) => Some((first..first + 1, Err(e))),
        }
    }

    /// Drops the pins of blocks whose batches were made.
    pub(super) fn let_go(&self, inner: &mut Inner) {
        if inner.pins.is_empty() {
            return;
        }
        let made = made(inner);
        inner.pins.retain(|(end, _)| *end > made);
        self.shared.signal.notify(Lane::Read);
    }

    /// Lets another loader decide which blocks the cache keeps.
    pub(super) fn end_keeping(&self) {
        if let Ok(mut turn) = self.turn.lock()
            && let Some(keeping) = &mut *turn
        {
            keeping.keeper.end();
        }
    }
}

impl Inner {
    /// Awaited batches whose blocks are all there.
    fn all_there(&mut self) -> Option<(Range<u64>, Awaited)> {
        let mut all = self.awaited.iter_mut();
        let first = all.find_map(|(first, (_, awaited))| Claims::are_there(&mut awaited.claims).then_some(*first))?;
        self.awaited.remove(&first).map(|(end, awaited)| (first..end, awaited))
    }

    /// The awaited batches that come soonest, if no other reader waits: one is enough.
    fn next_awaited(&mut self) -> Option<(Range<u64>, Awaited)> {
        let (first, (end, awaited)) = if self.is_awaiting { None } else { self.awaited.pop_first() }?;
        self.is_awaiting = true;
        Some((first..end, awaited))
    }
}

/// The first batch that was not made yet. All batches below it were made.
fn made(inner: &Inner) -> u64 {
    inner.open.front().map_or(inner.next, |open| open.number)
}
