//! One loader output while it runs: draws become reads, reads become blocks, blocks become batches.
//! Threads come in through [`Tasks::run`], take one task each and never wait; order comes from the tickets alone.

pub(in crate::pipeline) mod conform;
mod copy;
mod decode;
pub(in crate::pipeline) mod fold;
mod keys;
mod lack;
pub(in crate::pipeline) mod line;
mod look;
mod pass;
pub(in crate::pipeline) mod pieces;
mod read;
pub(in crate::pipeline) mod refill;
mod reread;
mod room;
mod settle;

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gristmill_format::encode::TensorSpec;
use gristmill_format::source::{Chunk, Limits};
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::counted::Counted;
use gristmill_runtime::runtime::events::Events;
use gristmill_runtime::runtime::handoff::{Handoff, Taken};
use gristmill_runtime::runtime::metrics::{Counter, Load};
use gristmill_runtime::runtime::scheduler::{Lane, Signal, Tasks, Time};
use gristmill_runtime::runtime::seed::Key;
use gristmill_runtime::runtime::sheet::SheetPool;
use gristmill_runtime::runtime::slots::Slots;
use gristmill_stages::stage::join::Join;

use self::refill::{For, Step};
use self::room::Room;
use crate::pipeline::chain::conform::Conforms;
use crate::pipeline::chain::fold::Fold;
use crate::pipeline::chain::line::LaneFold;
use crate::pipeline::draw::anchors::Anchors;
use crate::pipeline::draw::branch::{Block, Branch};
use crate::pipeline::draw::event::{Event, SharedJournal};
use crate::pipeline::draw::outage::Outages;
use crate::pipeline::draw::passes::Passes;
use crate::pipeline::draw::roster::Roster;
use crate::pipeline::draw::verdict::{Scope, Verdicts};
use crate::pipeline::ledger::{Book, Digests, FileHashes};
use crate::pipeline::loader::output::{Batch, Delivery};
use crate::pipeline::plan::lane::StepPlan;
use crate::pipeline::plan::ranks::key;
use crate::pipeline::plan::sight::Reads;
use crate::pipeline::plan::{BranchPlan, ChainPlan, PassPlan};
use crate::pipeline::watch::stall::{Crowd, Stall};

/// Tickets that are planned ahead of those being decoded, per branch.
const READ_AHEAD: usize = 32;

/// Tickets that readers are woken for at once: waking them for each would cost more than the read.
const READ_SPAN: usize = 8;

/// Chunks that each branch of a plan may have decoded, and tickets read ahead of those: all lanes together have the
/// windows of one, but each its next chunk.
pub(in crate::pipeline) fn windows(plan: &ChainPlan, workers: usize) -> [usize; 2] {
    [workers + 2, READ_AHEAD].map(|all| all.div_ceil(plan.lanes.len().max(1)))
}

/// A buffer larger than this is not kept for the next chunk.
const KEEP_BYTES: usize = 16 << 20;

/// Whether a buffer of this capacity is kept for the next chunk. One of a known bad chunk has no bytes: it would take the place of one that has.
fn is_spare(capacity: usize) -> bool {
    (1..=KEEP_BYTES).contains(&capacity)
}

/// What a chain shares with the rest of its loader.
#[derive(Debug, Clone)]
pub(in crate::pipeline) struct Shared {
    pub(in crate::pipeline) root: u64,
    pub(in crate::pipeline) workers: usize,
    pub(in crate::pipeline) limits: Limits,
    pub(in crate::pipeline) signal: Arc<Signal>,
    pub(in crate::pipeline) time: Time,
    pub(in crate::pipeline) crowd: Arc<Crowd>,
    pub(in crate::pipeline) stop: Arc<AtomicBool>,
    pub(in crate::pipeline) verdicts: Arc<Verdicts>,
    pub(in crate::pipeline) outages: Arc<Outages>,
    pub(in crate::pipeline) events: Arc<Events>,
    pub(in crate::pipeline) journal: Option<SharedJournal>,
    pub(in crate::pipeline) anchors: Arc<Anchors>,
    pub(in crate::pipeline) book: Option<Arc<Book>>,
    /// Bytes of records that may wait beside the slots of a reservoir into which they do not fold.
    pub(in crate::pipeline) beside: u64,
    /// Which chunks are read where the stream is only planned; no row is copied then.
    pub(in crate::pipeline) sight: Option<Reads>,
}

/// Totals of a chain since it started.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct Totals {
    pub(in crate::pipeline) filling: Load,
    pub(in crate::pipeline) encoding: Load,
    pub(in crate::pipeline) rows: Counter,
    pub(in crate::pipeline) batches: Counter,
}

/// Totals of one pass of a branch since the chain started.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct PassTotals {
    pub(in crate::pipeline) busy: Load,
    pub(in crate::pipeline) chunks: Counter,
    pub(in crate::pipeline) dropped: Counter,
    /// As [`ChunkPass::counts`](gristmill_stages::stage::ChunkPass::counts) names them.
    pub(in crate::pipeline) counts: Vec<Counter>,
}

/// Totals of one branch since the chain started.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct BranchTotals {
    pub(in crate::pipeline) reading: Load,
    pub(in crate::pipeline) decoding: Load,
    pub(in crate::pipeline) chunks: Counter,
    /// Chunks that were decoded for their weight.
    pub(in crate::pipeline) weighed: Counter,
    /// Bad chunks, each once.
    dropped: Mutex<HashSet<(u64, u32)>>,
    pub(in crate::pipeline) stored_bytes: Counter,
    pub(in crate::pipeline) frames_decoded: Counter,
    pub(in crate::pipeline) frames: Counter,
    pub(in crate::pipeline) passes: Vec<PassTotals>,
}

impl BranchTotals {
    fn new(plan: &BranchPlan) -> Self {
        let counts = |pass: &PassPlan| pass.pass.counts().iter().map(|_| Counter::default()).collect();
        let of = |pass: &PassPlan| PassTotals { counts: counts(pass), ..PassTotals::default() };
        BranchTotals { passes: plan.passes.iter().map(of).collect(), ..BranchTotals::default() }
    }
}

impl BranchTotals {
    /// Source and index of each chunk that was found bad.
    pub(in crate::pipeline) fn dropped(&self) -> MutexGuard<'_, HashSet<(u64, u32)>> {
        self.dropped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a chunk gives no rows, and for whom.
type Fault = (Scope, gristmill_format::Error);

pub(in crate::pipeline) struct Inner {
    pub(in crate::pipeline) branches: Vec<Branch>,
    pub(in crate::pipeline) fold: Fold,
    pub(in crate::pipeline) spare_chunks: Vec<Counted<Chunk>>,
    spare_bytes: Vec<Counted<Vec<u8>>>,
    room: Room,
    encoding: usize,
    outbox: Option<Delivery>,
    /// Batches that were handed out and count as delivered later, the oldest first.
    uncounted: VecDeque<u64>,
    /// What is in batches that are not delivered yet, where there is a ledger.
    digests: BTreeMap<u64, Digests>,
}

impl Inner {
    /// Whether the first scan of every input is in. No row flows before: a lane that has no chunk ends the stream, and how many
    /// batches came before that must not depend on which scan took longer.
    fn has_begun(&self) -> bool {
        self.branches.iter().all(|branch| branch.drawer.is_some())
    }

    /// Releases what no state will need.
    fn forget(&mut self) {
        for (branch, (head, _)) in self.branches.iter_mut().zip(&self.fold.delivered.branches) {
            branch.forget_before(*head);
        }
    }
}

/// One loader output.
pub(in crate::pipeline) struct Chain {
    pub(in crate::pipeline) plan: ChainPlan,
    pub(in crate::pipeline) shared: Shared,
    conforms: Conforms,
    /// Draws for encoders that augment, one per row of the stream.
    row_key: Key,
    /// The bytes of a record that say which position it is of, where a step reads positions.
    position: Vec<Range<usize>>,
    /// Draws of each branch's unpacker.
    unpack_keys: Vec<Key>,
    /// What stands for each file in the ledger.
    files: FileHashes,
    rosters: Vec<Arc<Roster>>,
    slots: Slots,
    sheets: Arc<SheetPool>,
    pub(in crate::pipeline) handoff: Handoff<Delivery>,
    /// Who waits for whom.
    pub(in crate::pipeline) stall: Stall,
    pub(in crate::pipeline) totals: Totals,
    pub(in crate::pipeline) branch_totals: Vec<BranchTotals>,
    pub(in crate::pipeline) inner: Mutex<Inner>,
    /// What the journal does not have so far, and a batch that could not be noted: it comes next.
    untold: Mutex<(Vec<Event>, Option<Batch>)>,
}

impl Chain {
    /// A chain that has not started. Errors: no memory for the reservoir.
    pub(in crate::pipeline) fn new(plan: ChainPlan, shared: Shared, rosters: &[Arc<Roster>]) -> Result<Self> {
        let slots = crate::pipeline::plan::budget::slots(&plan);
        let memory = |e: std::io::Error| Error::field(&plan.stage, "batch_size", format!("no memory: {e}"));
        let long = crate::pipeline::plan::budget::long(&plan);
        let records = Slots::new(slots, plan.encoder.input().size(), long, shared.beside).map_err(memory)?;
        let row_bytes = plan.encoder.outputs().iter().map(TensorSpec::row_bytes).collect();
        let sheets = SheetPool::new(plan.batch_size, row_bytes, plan.capacity + 1);
        let branches = plan.branches.iter().map(|branch| {
            let (roster, anchors) = (Arc::clone(&rosters[branch.log]), Arc::clone(&shared.anchors));
            Branch::new(Arc::new(branch.clone()), roster, (anchors, Arc::clone(&shared.outages)), shared.root)
        });
        let lanes = plan.lanes.iter().map(|lane| {
            let key = |name: &str| key(shared.root, name, lane.lane);
            let step = |step: &StepPlan| step.of.step(key(&step.stage), lane.share(step.shared.size));
            let join = Join::new(key(&plan.join.stage), plan.join.weights.clone(), plan.join.exhausted);
            LaneFold::new(join.changing(plan.join.later(lane.lane)), plan.steps.iter().map(step).collect())
        });
        let mut fold = Fold::new(
            lanes.collect(),
            plan.reads_positions(),
            plan.batch_size,
            u32::try_from(slots).unwrap_or(u32::MAX),
            plan.skips.clone(),
        );
        fold.passes = Passes::of(&plan);
        let room = Room::new(&plan, shared.workers, &shared.limits);
        let inner = Inner {
            branches: branches.collect(),
            fold,
            spare_chunks: Vec::new(),
            spare_bytes: Vec::new(),
            room,
            encoding: 0,
            outbox: None,
            uncounted: VecDeque::new(),
            digests: BTreeMap::new(),
        };
        Ok(Chain {
            conforms: Conforms::new(plan.encoder.clone()),
            position: if plan.reads_positions() { plan.encoder.position() } else { Vec::new() },
            row_key: Key::new(shared.root, &plan.stage),
            unpack_keys: plan.branches.iter().map(|branch| Key::new(shared.root, &branch.unpacker)).collect(),
            files: FileHashes::new(rosters),
            rosters: rosters.to_vec(),
            slots: records,
            sheets,
            handoff: Handoff::new(plan.capacity.max(2), plan.when_full),
            stall: Stall::new(shared.time.clone(), Arc::clone(&shared.crowd)),
            totals: Totals::default(),
            branch_totals: plan.branches.iter().map(BranchTotals::new).collect(),
            inner: Mutex::new(inner),
            untold: Mutex::default(),
            plan,
            shared,
        })
    }

    pub(in crate::pipeline) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tensors of a batch.
    pub(in crate::pipeline) fn tensors(&self) -> &[TensorSpec] {
        self.plan.encoder.outputs()
    }

    /// What stands for a file in the ledger.
    pub(in crate::pipeline) fn file_hash(&self, source: u64) -> u64 {
        self.files.of(source)
    }

    /// The next batch, error or end, waiting up to `wait`. It counts as delivered at once, or when [`Chain::count`] says so.
    pub(in crate::pipeline) fn next(&self, wait: Option<Duration>, at_once: bool) -> Taken<Delivery> {
        let kept = self.untold.lock().unwrap_or_else(PoisonError::into_inner).1.take();
        let taken = kept.map_or_else(|| self.take(wait), |batch| Taken::Item(Ok(batch)));
        if matches!(taken, Taken::Closed) {
            self.stall.over();
        }
        let Taken::Item(Ok(batch)) = taken else { return taken };
        if !at_once {
            self.lock().uncounted.push_back(batch.number);
            self.shared.signal.notify(Lane::Work);
        } else if let Err(error) = self.took(batch.number) {
            // It comes once it can be noted.
            self.untold.lock().unwrap_or_else(PoisonError::into_inner).1 = Some(batch);
            return Taken::Item(Err(error));
        }
        Taken::Item(Ok(batch))
    }

    /// Counts the oldest batch as delivered that was handed out and does not count yet; nothing where there is none.
    ///
    /// Errors: it cannot be noted in the ledger or the journal, and still does not count.
    pub(in crate::pipeline) fn count(&self) -> Result<()> {
        let Some(number) = self.lock().uncounted.front().copied() else { return Ok(()) };
        self.took(number)?;
        self.lock().uncounted.pop_front();
        Ok(())
    }

    /// The batch after the last one, where all that was handed out counts as delivered.
    pub(in crate::pipeline) fn end(&self) -> Option<u64> {
        let inner = self.lock();
        inner.uncounted.is_empty().then_some(inner.fold.delivered.batch)
    }

    /// Batch `number` is delivered.
    fn took(&self, number: u64) -> Result<()> {
        self.tell(number)?;
        let mut inner = self.lock();
        inner.fold.took(number);
        inner.forget();
        drop(inner);
        self.shared.signal.notify(Lane::Work);
        Ok(())
    }

    /// How many passes over the files ended with batches that were given since the start.
    pub(in crate::pipeline) fn passes_ended(&self) -> u64 {
        self.lock().fold.passes.as_ref().map_or(0, Passes::ended)
    }

    /// Notes a batch that is about to be given: no state may count one that the ledger has not.
    fn tell(&self, number: u64) -> Result<()> {
        self.tell_readings()?;
        let Some(book) = &self.shared.book else { return Ok(()) };
        let digests = self.lock().digests.get(&number).cloned().unwrap_or_default();
        book.delivered(&self.plan.alias, number, &digests)?;
        self.lock().digests.remove(&number);
        Ok(())
    }

    /// Writes to the journal, if there is one, which files were read for the first time: no row of a file comes before
    /// its event.
    fn tell_readings(&self) -> Result<()> {
        let Some(journal) = &self.shared.journal else { return Ok(()) };
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        untold.0.extend(self.rosters.iter().filter_map(|roster| roster.fresh_digests()));
        if untold.0.is_empty() {
            return Ok(());
        }
        let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
        journal.note(&untold.0).map_err(|e| Error::path(journal.path(), &e))?;
        untold.0.clear();
        Ok(())
    }

    /// Tickets that may be on their way, per branch.
    pub(in crate::pipeline) fn ahead(&self) -> usize {
        let [decoded, read] = windows(&self.plan, self.shared.workers);
        decoded + read
    }

    /// Chunks that may be decoded and not yet folded, per branch.
    fn work_window(&self) -> usize {
        windows(&self.plan, self.shared.workers)[0]
    }

    /// Tickets that readers are woken for at once, per branch.
    fn read_span(&self) -> usize {
        READ_SPAN.div_ceil(self.plan.lanes.len().max(1))
    }

    fn work_one(&self) -> bool {
        let Some(mut inner) = self.decode_again(self.lock(), For::Batches) else { return true };
        if inner.fold.refills.is_still() {
            return false;
        }
        self.settle(&mut inner);
        if let Some(fill) = inner.fold.fills.pop_front() {
            self.further(&inner);
            drop(inner);
            self.fill_one(fill);
            return true;
        }
        if inner.encoding < self.plan.ceiling
            && let Some(piece) = inner.fold.ready_piece()
        {
            inner.encoding += 1;
            self.further(&inner);
            drop(inner);
            self.encode_one(piece);
            return true;
        }
        // What no batch waits for comes after draws, but for one now and then: files may be deleted once their rows were read.
        let due = inner.fold.refills.has_turn(Step::Decode);
        let Some(inner) = (if due { self.decode_again(inner, For::Later) } else { Some(inner) }) else { return true };
        // A batch may have come to want a chunk just now that was fetched before.
        self.decode_one(inner)
            || [For::Batches, For::Later].into_iter().any(|of| self.decode_again(self.lock(), of).is_none())
    }
}

impl Tasks for Chain {
    fn run(&self, lane: Lane) -> bool {
        if self.shared.stop.load(Ordering::Relaxed) {
            return false;
        }
        self.stall.task(lane, || match lane {
            Lane::Read => self.read_one(),
            Lane::Work => self.work_one(),
        })
    }

    fn panicked(&self, what: &str) {
        let message = format!("a task broke off, which is a fault of gristmill: {what}");
        self.fail(&mut self.lock(), Error::Stage { stage: self.plan.stage.clone(), message });
    }
}

/// Keeps the buffer of a block that has no other holder, unless the block is a giant.
fn keep(spare: &mut Vec<Counted<Chunk>>, block: Arc<Block>) {
    let chunk = Arc::into_inner(block).map(|block| block.chunk);
    spare.extend(chunk.filter(|chunk| is_spare(chunk.bytes.capacity())));
}
