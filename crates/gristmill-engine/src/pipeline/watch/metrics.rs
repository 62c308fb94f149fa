//! Chains and logs -> one row per stage: load, queue, gauges and counts, since the start and in the last second.
//! Reads numbers that the river keeps anyway; never slows it and never changes it.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gristmill_runtime::error::Result;
use gristmill_runtime::runtime::events::Events;
use gristmill_runtime::runtime::metrics::{Load, Rates};
use gristmill_runtime::store::Spill;
use gristmill_stages::stage::pool::Accept;
use serde::Serialize;

use crate::pipeline::chain::Chain;
use crate::pipeline::draw::outage::{IoErrorCounts, Outages};
use crate::pipeline::draw::roster::Roster;
use crate::pipeline::draw::verdict::{BadChunkCounts, Verdicts};
use crate::pipeline::ledger::Book;
use crate::pipeline::plan::DrawPlan;
use crate::pipeline::plan::acceptance::AcceptPlan;
use crate::pipeline::plan::flow::FlowStage;
use crate::pipeline::plan::ranks::Ranks;
use crate::pipeline::resume::needed::{Kept, OldestNeeded, oldest};
use crate::pipeline::resume::state::LoaderState;
use crate::pipeline::resume::vanished::Vanished;
use crate::pipeline::watch::certified::Certified;
use crate::pipeline::watch::history::History;
use crate::pipeline::watch::lane_metrics::{of_steps, together};
use crate::pipeline::watch::notices::Notices;
use crate::pipeline::watch::stall::Totals;
use crate::pipeline::watch::waits::{OutputWaits, Waits};

/// A value that goes up and down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gauge {
    /// Name, such as `chunks_current`.
    pub name: &'static str,
    /// Value now.
    pub value: u64,
    /// The most that it can be, where there is a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
}

/// A count since the start.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tally {
    /// Name, such as `rows`. `busy_ns` is the time that threads spent in the stage, in nanoseconds; a count called as
    /// what the stage gives (`sources`, `chunks`, `frames`, `batches`) is how many it gave.
    pub name: &'static str,
    /// Since the start.
    pub total: u64,
    /// Per second, over the last second.
    pub per_second: f64,
}

/// The queue after a stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QueueMetrics {
    /// Items offered.
    pub put: u64,
    /// Items taken.
    pub got: u64,
    /// Items dropped.
    pub dropped: u64,
    /// Items waiting now.
    pub waiting: u64,
    /// Items that may wait.
    pub capacity: u64,
    /// Nanoseconds that the consumer waited here for items; of queues that consumers take from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumer_wait_ns: Option<u64>,
}

/// One stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StageMetrics {
    /// The stage's name in the config.
    pub name: String,
    /// Its kind, such as `shuffling_chunk_pool`.
    pub kind: &'static str,
    /// Threads that may be busy in it at once.
    pub threads: u64,
    /// Values now.
    pub gauges: Vec<Gauge>,
    /// Counts; their order is fixed.
    pub counts: Vec<Tally>,
    /// Its output queue, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueMetrics>,
    /// A text: the key of the newest source of a loader stage, the anchor of a pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest: Option<String>,
    /// Of a loader stage: the oldest file that a state may still need.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_needed: Option<String>,
    /// What went wrong and was survived, newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
}

/// Everything a loader can tell about its running.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Metrics {
    /// Seconds since the start.
    pub uptime_seconds: f64,
    /// The root seed.
    pub seed: Option<u64>,
    /// Which of the ranks that share each batch this is, of `world_size`.
    pub rank: u64,
    /// See `rank`.
    pub world_size: u64,
    /// The stages in flow order.
    pub stages: Vec<StageMetrics>,
    /// Bad chunks.
    pub bad_chunks: BadChunkCounts,
    /// Files that could not be read.
    pub io_errors: IoErrorCounts,
    /// Who waits for whom: of several outputs, the one that is waited for the longest.
    #[serde(flatten)]
    pub waits: Waits,
    /// The same of each output.
    pub outputs: Vec<OutputWaits>,
}

impl Metrics {
    /// The stages of a kind.
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a StageMetrics> {
        self.stages.iter().filter(move |stage| stage.kind == kind)
    }
}

impl StageMetrics {
    /// A gauge by name.
    pub fn gauge(&self, name: &str) -> Option<&Gauge> {
        self.gauges.iter().find(|gauge| gauge.name == name)
    }

    /// How many threads may be busy at once with what a count of nanoseconds is of: as many as the stage has with its
    /// main work, one with anything else.
    pub(in crate::pipeline) fn threads_in(&self, count: &str) -> u64 {
        if count == "busy_ns" { self.threads.max(1) } else { 1 }
    }

    /// A count by name.
    pub fn count(&self, name: &str) -> Option<&Tally> {
        self.counts.iter().find(|count| count.name == name)
    }
}

/// Sees a running loader: clones share the samples that rates come from.
#[derive(Clone)]
pub(in crate::pipeline) struct Observer {
    pub(in crate::pipeline) root: u64,
    pub(in crate::pipeline) chains: Vec<Arc<Chain>>,
    pub(in crate::pipeline) rosters: Vec<Arc<Roster>>,
    pub(in crate::pipeline) verdicts: Arc<Verdicts>,
    pub(in crate::pipeline) outages: Arc<Outages>,
    /// Files needed by the last saved states.
    pub(in crate::pipeline) kept: Kept,
    /// Held while a state is made: nothing that it says is forgotten meanwhile.
    pub(in crate::pipeline) whole: Arc<Mutex<()>>,
    pub(in crate::pipeline) spill: Option<Arc<Spill>>,
    /// Files that a restored run does without.
    pub(in crate::pipeline) vanished: Arc<Mutex<Vec<Vanished>>>,
    /// What was reported so far.
    pub(in crate::pipeline) notices: Arc<Mutex<Notices>>,
    pub(in crate::pipeline) rates: Arc<Mutex<Rates>>,
    pub(in crate::pipeline) history: Arc<Mutex<History>>,
    pub(in crate::pipeline) events: Arc<Events>,
    pub(in crate::pipeline) flow: Arc<[FlowStage]>,
    pub(in crate::pipeline) book: Option<Arc<Book>>,
    pub(in crate::pipeline) certified: Certified,
    pub(in crate::pipeline) stop: Arc<AtomicBool>,
    pub(in crate::pipeline) ranks: Ranks,
    /// Threads that only read.
    pub(in crate::pipeline) readers: usize,
}

impl Observer {
    fn rates(&self) -> MutexGuard<'_, Rates> {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells what is new since the last look.
    pub(in crate::pipeline) fn notice(&self) {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).look(self);
    }

    /// Remembers the totals of this moment.
    pub(in crate::pipeline) fn sample(&self) {
        // One look at a time: growth is counted from one to the next.
        let mut history = self.history();
        let stages = self.collect();
        let mut rates = self.rates();
        rates.sample(self.totals(&stages));
        let now = rates.uptime();
        drop(rates);
        let mut weights = Vec::new();
        for chain in &self.chains {
            let pools = chain.plan.branches.iter().map(|plan| plan.stage.as_str());
            weights
                .extend(pools.zip(chain.lock().branches.iter_mut().map(|branch| std::mem::take(&mut branch.weights))));
        }
        history.record(now, &stages, &weights);
    }

    /// Remembers the totals of the end.
    pub(in crate::pipeline) fn close(&self) {
        self.sample();
        let now = self.rates().uptime();
        self.history().close(now);
    }

    /// What happened in each period.
    pub(in crate::pipeline) fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time since the start.
    pub(in crate::pipeline) fn uptime(&self) -> Duration {
        self.rates().uptime()
    }

    /// One row per stage, without rates.
    fn collect(&self) -> Vec<StageMetrics> {
        let mut stages: Vec<StageMetrics> = self.rosters.iter().map(|roster| sources(roster)).collect();
        self.chains.iter().for_each(|chain| of_chain(chain, self.readers, &mut stages));
        stages
    }

    /// A state is on disk: what no state needs any more is let go.
    ///
    /// Errors: `Path` for the spill folder.
    pub(in crate::pipeline) fn saved(&self, state: &LoaderState) -> Result<()> {
        self.kept.add(state);
        let (Some(spill), Some(ids)) = (&self.spill, self.kept.with(&self.chains)) else { return Ok(()) };
        spill.release(&|token| {
            let mut rosters = self.rosters.iter().filter(|roster| roster.log().owns(token.id));
            ids.binary_search(&token.id).is_ok() && rosters.any(|roster| roster.token(token.id) == Some(token))
        })
    }

    /// The oldest file of each loader stage that is still needed.
    pub(in crate::pipeline) fn oldest_needed(&self) -> BTreeMap<String, OldestNeeded> {
        let ids = self.kept.with(&self.chains);
        ids.map(|ids| oldest(&self.chains, &self.rosters, &ids)).unwrap_or_default()
    }

    /// Everything, rates included.
    pub(in crate::pipeline) fn metrics(&self) -> Metrics {
        let mut stages = self.collect();
        if let Some(ids) = self.kept.with(&self.chains) {
            let mut oldest = oldest(&self.chains, &self.rosters, &ids);
            for roster in &self.rosters {
                let needed = ids.iter().filter(|id| roster.log().owns(**id)).count() as u64;
                let held = self.spill.as_ref().map(|spill| spill.held(|id| roster.log().owns(id)));
                for stage in stages.iter_mut().filter(|stage| stage.name == roster.loader) {
                    stage.gauges.push(gauge("files_needed", needed, None));
                    if let Some([files, bytes]) = held {
                        stage.gauges.push(gauge("files_held", files, None));
                        stage.gauges.push(gauge("bytes_held", bytes, None));
                    }
                    stage.oldest_needed = oldest.remove(&roster.loader).map(|oldest| oldest.name);
                }
            }
        }
        let rates = self.rates();
        let mut per_second = rates.per_second(&self.totals(&stages)).into_iter();
        for count in stages.iter_mut().flat_map(|stage| &mut stage.counts) {
            count.per_second = per_second.next().unwrap_or_default();
        }
        let outputs = self.waits(per_second.as_slice());
        let (uptime_seconds, seed) = (rates.uptime().as_secs_f64(), Some(self.root));
        let (rank, world_size) = (self.ranks.rank.into(), self.ranks.world.into());
        let (bad_chunks, io_errors) = (self.verdicts.counts(), self.outages.counts());
        let waits = Waits::of_all(outputs.iter().map(|output| &output.waits));
        Metrics { uptime_seconds, seed, rank, world_size, stages, bad_chunks, io_errors, waits, outputs }
    }
}

impl Observer {
    /// All totals, in order: those of the stages, then what was waited for at each output.
    fn totals(&self, stages: &[StageMetrics]) -> Vec<u64> {
        let mut totals = totals(stages);
        self.chains.iter().for_each(|chain| totals.extend(chain.waited()));
        totals
    }

    /// Who waits for whom at each output, with the growth of its totals per second.
    fn waits(&self, per_second: &[f64]) -> Vec<OutputWaits> {
        let rates = per_second.chunks(Totals::default().len()).chain(std::iter::repeat(&[][..]));
        let of = |(chain, rates): (&Arc<Chain>, &[f64])| OutputWaits {
            alias: chain.plan.alias.clone(),
            stage: chain.plan.stage.clone(),
            waits: Waits::of(&chain.waited(), rates),
        };
        self.chains.iter().zip(rates).map(of).collect()
    }
}

fn totals(stages: &[StageMetrics]) -> Vec<u64> {
    stages.iter().flat_map(|stage| &stage.counts).map(|count| count.total).collect()
}

pub(in crate::pipeline) fn gauge(name: &'static str, value: u64, capacity: Option<u64>) -> Gauge {
    Gauge { name, value, capacity }
}

pub(in crate::pipeline) fn tally(name: &'static str, total: u64) -> Tally {
    Tally { name, total, per_second: 0.0 }
}

pub(in crate::pipeline) fn busy(load: &Load) -> Tally {
    tally("busy_ns", load.nanos())
}

pub(in crate::pipeline) fn row(name: &str, kind: &'static str, gauges: Vec<Gauge>, counts: Vec<Tally>) -> StageMetrics {
    StageMetrics {
        name: name.to_owned(),
        kind,
        threads: 0,
        gauges,
        counts,
        queue: None,
        latest: None,
        oldest_needed: None,
        faults: Vec::new(),
    }
}

fn sources(roster: &Roster) -> StageMetrics {
    let log = roster.log();
    let found = log.faults();
    let files = log.initial().map_or(0, |files| files.len() as u64) + roster.arrived_so_far();
    let mut counts = vec![
        tally("sources", files),
        tally("skipped_files", found.skipped_files),
        tally("duplicate_files", found.duplicate_files),
        tally("faults", found.faults.total()),
    ];
    let elsewhere = log.events().into_iter().chain(log.traffic().counts());
    counts.extend(elsewhere.map(|(name, total)| tally(name, total)));
    StageMetrics {
        latest: (!found.last_chunk_key.is_empty()).then_some(found.last_chunk_key),
        faults: found.faults.messages().map(str::to_owned).collect(),
        ..row(&roster.loader, "chunk_source_loader", vec![gauge("files", files, None)], counts)
    }
}

/// What a pool that takes only some of its draws, or caches positions, did.
fn of_acceptance(accept: &Accept, plan: &AcceptPlan, weighed: u64, row: &mut StageMetrics) {
    let counts = accept.counts();
    if plan.chance.needs_weight() {
        let decided = counts.taken + counts.rejected;
        row.gauges.push(gauge("hanse_accepted_permille", 1000 * counts.taken / decided.max(1), Some(1000)));
        row.counts.push(tally("hanse_cache_hits", decided.saturating_sub(weighed)));
        row.counts.push(tally("hanse_cache_misses", weighed));
        row.counts.push(tally("hanse_rejected", counts.rejected));
    }
    if let Some(cache) = plan.cache {
        row.gauges.push(gauge("cached_positions", accept.cached(), Some(cache.size)));
        row.counts.push(tally("cache_hits", counts.cache_hits));
        row.counts.push(tally("cache_misses", counts.cache_misses));
        row.counts.push(tally("mismatched_use_counts", counts.mismatched_use_counts));
        row.counts.push(tally("newly_cached", counts.newly_cached));
        row.counts.push(tally("dropped_cache_positions", counts.dropped_cache_positions));
        row.counts.push(tally("chunk_source_not_found", counts.chunk_source_not_found));
    }
}

fn of_chain(chain: &Chain, readers: usize, stages: &mut Vec<StageMetrics>) {
    let workers = chain.shared.workers;
    let within = |ceiling: usize| workers.min(ceiling) as u64;
    let mut inner = chain.lock();
    let before = stages.len();
    for (branch, totals) in inner.branches.iter_mut().zip(&chain.branch_totals) {
        let size = if let DrawPlan::Pool { window, .. } = branch.plan.draw { window.most() } else { 0 };
        let [sources, chunks, capacity, total, passes] = branch
            .drawer
            .as_ref()
            .map_or([0, 0, size, 0, 0], |drawer| drawer.gauges(&totals.dropped(), &mut branch.census));
        let pool = !branch.drawer.as_ref().is_some_and(|drawer| drawer.ends());
        let draws = branch.drawer.as_ref().map_or(0, |drawer| drawer.at());
        let (handed, waiting) = branch.handed();
        let pool_row = row(
            &branch.plan.stage,
            if pool { "shuffling_chunk_pool" } else { "simple_chunk_extractor" },
            vec![
                gauge("chunk_sources", sources, None),
                gauge("chunks_current", chunks, Some(capacity)),
                gauge("chunks_total", total, None),
                gauge("draws_total", draws, None),
                gauge("reuse_permille", 1000 * draws / total.max(1), None),
            ],
            vec![
                busy(&totals.reading),
                tally("chunks", branch.drawn),
                tally("sources", branch.drawer.as_ref().map_or(0, |drawer| drawer.joined())),
                tally("reshuffles", passes),
                tally("stored_bytes", totals.stored_bytes.get()),
                tally("dropped", totals.dropped().len() as u64),
            ],
        );
        let mut pool_row = StageMetrics {
            threads: readers as u64,
            queue: Some(QueueMetrics {
                put: handed,
                got: handed - waiting.min(handed),
                dropped: 0,
                waiting,
                capacity: chain.ahead() as u64,
                consumer_wait_ns: None,
            }),
            ..pool_row
        };
        if pool {
            pool_row.counts.insert(0, tally("source_ingestion_ns", branch.ingesting.nanos()));
        }
        if branch.accept.as_ref().is_some_and(Accept::caches) {
            pool_row.counts.push(tally("caching_ns", branch.caching.nanos()));
        }
        if let Some(anchor) = chain.shared.anchors.of(&branch.plan.stage) {
            pool_row.gauges.push(gauge("chunks_since_anchor", anchor.since, None));
            pool_row.latest = (!anchor.key.is_empty()).then(|| anchor.key.clone());
        }
        if let (Some(accept), Some(plan)) = (&branch.accept, &branch.plan.accept) {
            of_acceptance(accept, plan, totals.weighed.get(), &mut pool_row);
        }
        stages.push(pool_row);
        for (plan, of) in branch.plan.passes.iter().zip(&totals.passes).filter(|(plan, _)| plan.is_stage()) {
            let mut counts = vec![busy(&of.busy), tally("chunks", of.chunks.get()), tally("dropped", of.dropped.get())];
            counts.extend(plan.pass.counts().iter().zip(&of.counts).map(|(name, n)| tally(name, n.get())));
            let pass = row(&plan.stage, plan.kind, Vec::new(), counts);
            stages.push(StageMetrics { threads: within(branch.plan.ceiling), ..pass });
        }
        stages.push(StageMetrics {
            threads: within(branch.plan.ceiling),
            ..row(
                &branch.plan.unpacker,
                "chunk_unpacker",
                vec![gauge("chunks_decoding", branch.decoding as u64, None)],
                vec![
                    busy(&totals.decoding),
                    tally("chunks", totals.chunks.get()),
                    tally("frames_decoded", totals.frames_decoded.get()),
                    tally("frames", totals.frames.get()),
                ],
            )
        });
    }
    if chain.plan.lanes.len() > 1 {
        let of_lanes = stages.split_off(before);
        stages.extend(together(of_lanes, chain.plan.lanes.len()));
    }
    of_steps(chain, &inner.fold.lanes, stages);
    let unread = Some(inner.fold.refills.unread()).filter(|unread| *unread > 0);
    drop(inner);
    let counts = chain.handoff.counts();
    let totals = &chain.totals;
    let (batches, rows) = (tally("batches", totals.batches.get()), tally("rows", totals.rows.get()));
    stages.push(StageMetrics {
        threads: within(chain.plan.ceiling),
        queue: Some(QueueMetrics {
            put: counts.put,
            got: counts.got,
            dropped: counts.dropped,
            waiting: counts.waiting as u64,
            capacity: chain.handoff.capacity() as u64,
            consumer_wait_ns: Some(chain.handoff.waited_ns()),
        }),
        ..row(
            &chain.plan.stage,
            "tensor_generator",
            unread.map(|unread| gauge("restored_chunks_unread", unread, None)).into_iter().collect(),
            vec![busy(&totals.encoding), batches, rows],
        )
    });
}
