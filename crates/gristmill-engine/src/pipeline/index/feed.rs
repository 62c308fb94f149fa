//! The tasks of an index loader: pieces of batches are gathered and encoded by any worker, batches leave in order.
//! What is in a batch is the plan's; nothing here depends on who is quicker.

mod count;
mod fetching;
mod pieces;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gristmill_format::encode::{Encoder, Provenance, Row, TensorSpec};
use gristmill_format::layout::Conform;
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::handoff::{Handoff, Taken, WhenFull};
use gristmill_runtime::runtime::metrics::{Counter, Load};
use gristmill_runtime::runtime::scheduler::{Lane, Signal, Tasks, Time};
use gristmill_runtime::runtime::sheet::{Sheet, SheetPool};
use gristmill_runtime::store::Pins;
use gristmill_runtime::store::bucket::Traffic;
use gristmill_runtime::table::{FrameTable, Pick};

use super::assembly::{Assembly, Copier, Scratch};
use super::fetch::{Fetched, at_once};
use super::plan::{Ahead, Plan, Share};
use crate::pipeline::ledger::{Book, Digests};
use crate::pipeline::loader::output::{Batch, Delivery};
use crate::pipeline::watch::stall::Stall;

/// Totals since the start.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) gathering: Load,
    pub(super) encoding: Load,
    pub(super) rows: Counter,
    pub(super) batches: Counter,
    /// What was asked of the stores that the table is in.
    pub(super) traffic: Traffic,
}

/// What the feed shares with its loader.
pub(super) struct Shared {
    pub(super) signal: Arc<Signal>,
    pub(super) time: Time,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) workers: usize,
    pub(super) capacity: usize,
    pub(super) book: Option<Book>,
}

/// A batch or an error, its number, and what the ledger notes of it.
pub(super) type Made = (u64, Delivery, Digests);

/// Everything that workers need.
pub(super) struct Feed {
    plan: Plan,
    assembly: Arc<Assembly>,
    /// Rows of one task.
    piece: usize,
    sheets: Arc<SheetPool>,
    pub(super) handoff: Handoff<Made>,
    /// Batches that may be begun and not taken yet.
    most: usize,
    shared: Shared,
    /// Who waits for whom.
    pub(super) stall: Stall,
    pub(super) totals: Totals,
    inner: Mutex<Inner>,
    /// Whether the cache keeps a part of the files.
    keeps_part: bool,
    /// Readers lock this to claim blocks one after the other, in the order of batches. `None` if the cache keeps the files whole.
    turn: Mutex<Option<fetching::Keeping>>,
    /// A batch that could not be noted: it comes next.
    untold: Mutex<Option<Made>>,
    /// Batches that were handed out and count as delivered later, the oldest first, with what is in them.
    uncounted: Mutex<VecDeque<(u64, Digests)>>,
}

#[derive(Default)]
pub(super) struct Inner {
    /// Number of the next batch to begin.
    pub(super) next: u64,
    /// Number of the next batch for the consumer.
    delivered: u64,
    pub(super) open: VecDeque<Open>,
    spare: Vec<(Vec<Pick>, Scratch)>,
    /// The epoch and group of blocks that was last requested ahead.
    asked: Option<(u64, u64)>,
    wanted: Option<Vec<(u64, u64)>>,
    failed: bool,
    /// What of a table that is elsewhere was fetched; none of one that is not.
    pub(super) fetched: Option<Fetched>,
    /// Batches whose blocks other readers bring: by the first, the batch after the last one, and their claims.
    awaited: BTreeMap<u64, (u64, fetching::Awaited)>,
    /// Whether a reader waits for the blocks of others.
    is_awaiting: bool,
    /// Pins of blocks, each with the batch after the last one that needs them. They are dropped when the batches below that were made.
    pins: VecDeque<(u64, Vec<Pins>)>,
}

/// A batch that was begun.
pub(super) struct Open {
    number: u64,
    share: Share,
    sheet: Arc<Sheet>,
    started: usize,
    done: usize,
    error: Option<Error>,
    /// Of what is done, where there is a ledger.
    digests: Digests,
}

/// A part of a batch.
struct Piece {
    number: u64,
    from: usize,
    to: usize,
    rows: usize,
    sheet: Arc<Sheet>,
}

impl Feed {
    /// A feed that begins with batch `first`.
    ///
    /// Errors: `Format` if the cache keeps a part of the files and another loader decides which part; those of reading the cache.
    pub(super) fn new(plan: Plan, assembly: Arc<Assembly>, shared: Shared, first: u64) -> Result<Self> {
        let keeping = fetching::Keeping::of(assembly.table())?;
        let row_bytes: Vec<usize> = assembly.outputs().iter().map(TensorSpec::row_bytes).collect();
        let copies = copier(&plan, &assembly).is_some();
        let piece = pieces::rows(&plan, &assembly, copies, row_bytes.iter().sum());
        let pieces = plan.batch_rows().div_ceil(piece);
        let most = shared.capacity.max(2) + shared.workers.div_ceil(pieces.max(1)).max(1);
        let fetched = (!assembly.table().is_near()).then(|| {
            let fetched = Fetched::from(first).past_groups(plan.group_batches().unwrap_or(0));
            match keeping {
                Some(_) => fetched,
                None => fetched.by(at_once(assembly.table(), plan.batch_rows() * assembly.steps())),
            }
        });
        let inner = Inner { next: plan.beyond(first), delivered: first, fetched, ..Inner::default() };
        let totals = Totals { traffic: Traffic::of(assembly.table().counts()), ..Totals::default() };
        Ok(Feed {
            sheets: SheetPool::new(plan.batch_rows(), row_bytes, most + 1),
            handoff: Handoff::new(most, WhenFull::Block),
            inner: Mutex::new(inner),
            keeps_part: keeping.is_some(),
            turn: Mutex::new(keeping),
            untold: Mutex::default(),
            uncounted: Mutex::default(),
            plan,
            assembly,
            piece,
            most,
            stall: Stall::new(shared.time.clone(), Arc::default()),
            shared,
            totals,
        })
    }

    fn untold(&self) -> MutexGuard<'_, Option<Made>> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of the next batch for the consumer.
    pub(super) fn delivered(&self) -> u64 {
        self.lock().delivered
    }

    /// The ledger, where there is one.
    pub(super) fn book(&self) -> Option<&Book> {
        self.shared.book.as_ref()
    }

    /// The number after the last batch.
    pub(super) fn batches(&self) -> Option<u64> {
        self.plan.batches()
    }

    /// Threads that gather and encode.
    pub(super) fn workers(&self) -> usize {
        self.shared.workers
    }

    /// How many rows are selected, of how many.
    pub(super) fn rows(&self) -> (u64, u64) {
        (self.plan.selected(), self.assembly.table().len())
    }

    /// Whether the last batch was handed out, or nothing more will come.
    pub(super) fn ended(&self) -> bool {
        self.handoff.is_closed()
    }

    /// Batches waiting, and how many may wait.
    pub(super) fn queue(&self) -> (gristmill_runtime::runtime::handoff::Counts, usize) {
        (self.handoff.counts(), self.handoff.capacity())
    }

    /// Nanoseconds that the consumer waited for batches.
    pub(super) fn waited_ns(&self) -> u64 {
        self.handoff.waited_ns()
    }

    /// The next batch, error or end, waiting up to `wait`. It counts as delivered at once, or when [`Feed::count`] says so.
    pub(super) fn next(&self, wait: Option<Duration>, at_once: bool) -> Taken<Delivery> {
        let kept = self.untold().take();
        match kept.map_or_else(|| self.take(wait), Taken::Item) {
            Taken::Item((number, delivery, digests)) if !at_once => {
                if delivery.is_ok() {
                    self.uncounted().push_back((number, digests));
                }
                self.taken();
                Taken::Item(delivery)
            }
            Taken::Item((number, delivery, digests)) => {
                // No state may count a batch that the ledger has not: it comes once that could be written.
                if let (Some(book), Ok(_)) = (&self.shared.book, &delivery)
                    && let Err(error) = book.delivered("", number, &digests)
                {
                    *self.untold() = Some((number, delivery, digests));
                    return Taken::Item(Err(error));
                }
                self.took(number);
                Taken::Item(delivery)
            }
            Taken::Nothing => Taken::Nothing,
            Taken::Closed => Taken::Closed,
        }
    }

    /// Ends the stream, and wakes those that wait.
    pub(super) fn close(&self) {
        self.handoff.close();
        self.stall.over();
        self.end_keeping();
    }

    /// Hands out whole batches in order, and ends the stream after the last.
    fn settle(&self, inner: &mut Inner) {
        while let Some(open) = inner.open.pop_front_if(|open| open.done == open.share.shown) {
            let Open { number, share, sheet, error, digests, .. } = open;
            let delivery = match (error, Arc::into_inner(sheet)) {
                (Some(error), _) => Err(error),
                (None, Some(sheet)) => {
                    let shared = self.sheets.share(sheet);
                    Ok(Batch::new(number, share.rows, share.shown, shared, self.assembly.outputs()))
                }
                // Tasks let go of the sheet before they say that they are done.
                (None, None) => Err(stage_error("a batch is held by a task that has ended")),
            };
            self.totals.batches.add(1);
            self.totals.rows.add(share.rows as u64);
            // There is room: no more are begun than fit. Only a closed queue refuses.
            let _ = self.handoff.offer((number, delivery, digests));
            self.let_go(inner);
        }
        if inner.open.is_empty() && self.plan.batches().is_some_and(|batches| inner.next >= batches) {
            self.handoff.close();
        }
        self.further(inner);
    }

    /// Begins the next batch if there is one and room for it.
    fn begin(&self, inner: &mut Inner) -> bool {
        self.fetch_further(inner);
        let ended = self.plan.batches().is_some_and(|batches| inner.next >= batches);
        if inner.failed || ended || inner.open.len() + self.handoff.counts().waiting >= self.most {
            return false;
        }
        if inner.fetched.as_ref().is_some_and(|fetched| !fetched.has(inner.next)) {
            return false;
        }
        let sheet = match self.sheets.take() {
            Ok(sheet) => Arc::new(sheet),
            Err(e) => {
                let text =
                    format!("no memory for one more batch: {e}; smaller batches, or a lower queue_capacity, take less");
                self.fail(inner, Error::config("batch_size", text));
                return false;
            }
        };
        let (number, share) = (inner.next, self.plan.share(inner.next));
        inner.next = self.plan.beyond(number + 1);
        let digests = Digests::default();
        let error = inner.fetched.as_ref().and_then(|fetched| fetched.error(number));
        let begun = if error.is_some() { share.shown } else { 0 };
        inner.open.push_back(Open { number, share, sheet, started: begun, done: begun, error, digests });
        if share.shown > self.piece {
            self.shared.signal.notify(Lane::Work);
        }
        if let Some(Ahead { epoch, group, rows }) = self.plan.ahead(number)
            && inner.asked != Some((epoch, group))
        {
            inner.asked = Some((epoch, group));
            inner.wanted = Some(rows);
            self.shared.signal.notify(Lane::Read);
        }
        true
    }

    fn fail(&self, inner: &mut Inner, error: Error) {
        inner.failed = true;
        let _ = self.handoff.offer((inner.delivered, Err(error), Digests::default()));
        self.handoff.close();
    }

    fn piece(&self, inner: &mut Inner) -> Option<Piece> {
        loop {
            if let Some(open) = inner.open.iter_mut().find(|open| open.started < open.share.shown) {
                let from = open.started;
                let to = open.share.shown.min(from + self.piece);
                open.started = to;
                let (number, rows) = (open.number, open.share.rows);
                return Some(Piece { number, from, to, rows, sheet: Arc::clone(&open.sheet) });
            }
            if !self.begin(inner) {
                return None;
            }
            self.settle(inner);
        }
    }

    fn work_one(&self) -> bool {
        let mut inner = self.lock();
        let Some(piece) = self.piece(&mut inner) else {
            self.settle(&mut inner);
            return false;
        };
        let mut scratch = inner.spare.pop().unwrap_or_default();
        self.further(&inner);
        drop(inner);
        let Piece { number, from, to, rows, sheet } = piece;
        let made = self.make(number, from, to, rows, &sheet, &mut scratch);
        drop(sheet);
        let mut digests = Digests::default();
        if self.shared.book.is_some() {
            self.plan.digest(number, from, &scratch.0, &mut digests);
        }
        let mut inner = self.lock();
        inner.spare.push(scratch);
        if let Some(open) = inner.open.iter_mut().find(|open| open.number == number) {
            open.done += to - from;
            open.digests.merge(digests.iter());
            if let Err(error) = made {
                open.error.get_or_insert(error);
            }
        }
        self.settle(&mut inner);
        true
    }

    fn make(
        &self,
        number: u64,
        from: usize,
        to: usize,
        real: usize,
        sheet: &Sheet,
        (picks, scratch): &mut (Vec<Pick>, Scratch),
    ) -> Result<()> {
        let real = real.clamp(from, to);
        let copier = copier(&self.plan, &self.assembly);
        let gathered = self.totals.gathering.during(|| {
            if copier.is_some() {
                self.numbers(number, from, real, picks, &mut scratch.rows);
                return Ok(());
            }
            self.plan.picks(number, from, real, picks, self.assembly.draws())?;
            self.assembly.gather(picks, scratch)
        });
        self.totals.encoding.during(|| {
            sheet.write(from, to - from, |columns| {
                let specs = self.assembly.outputs();
                for (column, spec) in columns.iter_mut().zip(specs) {
                    column[(real - from) * spec.row_bytes()..].fill(0);
                }
                let part = |(column, spec): (_, &TensorSpec)| -> &mut [u8] {
                    let column: &mut &mut [u8] = column;
                    &mut column[..(real - from) * spec.row_bytes()]
                };
                let mut columns: Vec<&mut [u8]> = columns.iter_mut().zip(specs).map(part).collect();
                gathered.and_then(|()| match copier {
                    Some(copier) => copier.copy(&scratch.rows, &mut columns),
                    None => self.assembly.encode(scratch, &mut columns),
                })
            })
        })
    }
}

/// Returns what copies the rows of a plan, if they come in one order and no encoder has to make them.
fn copier<'a>(plan: &Plan, assembly: &'a Assembly) -> Option<Copier<'a>> {
    assembly.copier().filter(|_| plan.is_one_order())
}

/// The conversion of a table's records into an encoder's, where they differ.
///
/// Errors: `Unfit`.
pub(super) fn conform(table: &dyn FrameTable, encoder: &dyn Encoder) -> Result<Option<Conform>> {
    encoder.fits(table.layout()).map_err(|e| Error::Unfit(e.detail().to_owned()))?;
    if table.layout() == encoder.input() {
        return Ok(None);
    }
    let conform = Conform::new(table.layout(), encoder.input());
    Ok(Some(conform.map_err(|e| Error::Unfit(e.detail().to_owned()))?))
}

/// Rows of a table as records of an encoder, of `size` bytes.
pub(super) fn records(
    table: &dyn FrameTable,
    conform: Option<&Conform>,
    size: usize,
    rows: &[u64],
    stored: &mut Vec<u8>,
    records: &mut Vec<u8>,
) -> Result<()> {
    records.resize(rows.len() * size, 0);
    match conform {
        None => table.gather(rows, records)?,
        Some(conform) => {
            stored.resize(rows.len() * table.layout().size(), 0);
            table.gather(rows, stored)?;
            conform.records(stored, records)?;
        }
    }
    Ok(())
}

/// Encodes rows of a table; an error names the file and the row.
pub(super) fn encode(
    encoder: &dyn Encoder,
    table: &dyn FrameTable,
    picks: &[Pick],
    records: &[u8],
    columns: &mut [&mut [u8]],
) -> Result<()> {
    let row = |(pick, record): (&Pick, _)| Row {
        record,
        provenance: Provenance { source: pick.row, ..Provenance::default() },
        bits: pick.bits,
        sparse: None,
    };
    let rows: Vec<Row<'_>> = picks.iter().zip(records.chunks_exact(encoder.input().size())).map(row).collect();
    let Err(error) = encoder.encode(&rows, columns) else { return Ok(()) };
    // Which row it was, the encoder does not say: they are tried one by one.
    let alone = rows.iter().find_map(|row| {
        let mut out: Vec<Vec<u8>> = encoder.outputs().iter().map(|spec| vec![0; spec.row_bytes()]).collect();
        let mut out: Vec<&mut [u8]> = out.iter_mut().map(Vec::as_mut_slice).collect();
        Some((row.provenance.source, encoder.encode(std::slice::from_ref(row), &mut out).err()?))
    });
    let Some((row, error)) = alone else { return Err(error.into()) };
    let (file, row) = table.locate(row);
    let placed = gristmill_format::Error::new(error.kind(), error.detail());
    Err(placed.in_source(file).in_frame(usize::try_from(row).unwrap_or(usize::MAX)).into())
}

fn stage_error(message: &str) -> Error {
    Error::Stage { stage: "index".into(), message: message.into() }
}

impl Tasks for Feed {
    fn run(&self, lane: Lane) -> bool {
        if self.shared.stop.load(Ordering::Relaxed) {
            return false;
        }
        self.stall.task(lane, || match lane {
            Lane::Work => self.work_one(),
            Lane::Read => {
                let Some(wanted) = self.lock().wanted.take() else { return self.fetch_some() };
                wanted.iter().for_each(|(start, end)| self.assembly.table().want(*start, *end));
                true
            }
        })
    }

    fn panicked(&self, what: &str) {
        let message = format!("a task broke off, which is a fault of gristmill: {what}");
        self.fail(&mut self.lock(), stage_error(&message));
    }
}
