//! A checked graph -> what to run: per loader alias one chain of numbers, and the logs of sources it draws from.
//! The only file, with `chain`, that knows in which order stages may stand.

pub mod acceptance;
pub(crate) mod budget;
pub(crate) mod encoder;
pub(in crate::pipeline) mod flow;
pub(in crate::pipeline) mod graph;
pub(crate) mod join;
pub(in crate::pipeline) mod lane;
pub(in crate::pipeline) mod ranks;
pub(in crate::pipeline) mod sight;
pub(in crate::pipeline) mod skip;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gristmill_format::encode::Encoder;
use gristmill_format::weigh::Weigher;
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::handoff::WhenFull;
use gristmill_stages::config::{
    ChunkSourceSplitterConfig, ChunkUnpackerConfig, DataLoaderConfig, ExtractOrder, FrameFormat, KeyOrder, LastBatch,
    Overflow, SplitBy, StageKind, TensorGeneratorConfig,
};
use gristmill_stages::stage::batch::WhenPartial;
use gristmill_stages::stage::complete::Complete;
use gristmill_stages::stage::lane::HashLane;
use gristmill_stages::stage::load::Solids;
use gristmill_stages::stage::pool::{Limit, Window};
use gristmill_stages::stage::split::{Fold, Side};
use gristmill_stages::stage::unpack::Unpack;
use gristmill_stages::stage::{ChunkPass, Pass};

use crate::pipeline::plan::acceptance::{AcceptPlan, acceptance, frame_weigher};
use crate::pipeline::plan::encoder::encoder;
use crate::pipeline::plan::graph::{Graph, Node, Port};
use crate::pipeline::plan::join::{JoinPlan, inputs, joined};
use crate::pipeline::plan::lane::{LanePlan, StepPlan};
use crate::pipeline::plan::ranks::Ranks;
use crate::pipeline::plan::skip::Skips;

/// A directory whose files become sources: one per loader stage.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LogPlan {
    pub(crate) stage: String,
    pub(crate) files: String,
    pub(crate) directory: PathBuf,
    pub(crate) watch: bool,
    /// Whether to wait where there is no game yet.
    pub(crate) waits: bool,
    pub(crate) rescan: Duration,
    /// The queue that has hints at what comes.
    pub(crate) events: Option<String>,
    pub(crate) frame_format: FrameFormat,
}

/// How a branch draws chunks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum DrawPlan {
    Pool { window: Window, limit: Option<Limit> },
    Extract { order: ExtractOrder, epochs: u32 },
}

/// One stage that judges or changes whole chunks.
#[derive(Debug, Clone)]
pub(crate) struct PassPlan {
    pub(crate) stage: String,
    /// Its kind, such as `chunk_validator`.
    pub(crate) kind: &'static str,
    pub(crate) pass: Arc<dyn ChunkPass>,
    /// Numbers that tell apart what it reads besides the games, such as tables.
    pub(crate) reads: [Option<u64>; 2],
    /// What of that it does without, because it may be missing and is.
    pub(crate) lacks: Vec<String>,
}

impl PassPlan {
    /// A pass that is no stage of the configuration.
    fn unnamed(pass: Arc<dyn ChunkPass>) -> Self {
        PassPlan { stage: String::new(), kind: "", pass, reads: [None; 2], lacks: Vec::new() }
    }

    /// Whether it is a stage of the configuration.
    pub(crate) fn is_stage(&self) -> bool {
        !self.stage.is_empty()
    }
}

/// From one log to selected rows.
#[derive(Debug, Clone)]
pub(crate) struct BranchPlan {
    /// Tells this branch from all others of the loader; from 1 on.
    pub(crate) number: u32,
    /// Index into the logs.
    pub(crate) log: usize,
    /// Its side of the split, and what that goes by.
    pub(crate) side: Option<(Side, SplitBy)>,
    /// The lane whose chunks it draws, where there are several.
    pub(crate) lane: Option<HashLane>,
    /// Whether it counts what comes after the pool's anchor: one of a rank's lanes does.
    pub(crate) counts_anchor: bool,
    /// Name of the pool or extractor.
    pub(crate) stage: String,
    pub(crate) draw: DrawPlan,
    pub(crate) key_order: KeyOrder,
    /// Which draws become tickets, where not every one does.
    pub(crate) accept: Option<AcceptPlan>,
    /// What each chunk goes through before its rows are selected, in this order.
    pub(crate) passes: Vec<PassPlan>,
    /// Name of the unpacker.
    pub(crate) unpacker: String,
    pub(crate) unpack: Unpack,
    /// Weighs frames for the unpacker, where not all weigh the same.
    pub(crate) frame_weigher: Option<Arc<dyn Weigher>>,
    /// Maximum number of chunks being decoded at once.
    pub(crate) ceiling: usize,
}

/// One loader output, from draws to batches.
#[derive(Debug, Clone)]
pub(crate) struct ChainPlan {
    pub(crate) alias: String,
    /// Lane by lane, each with all inputs of the join.
    pub(crate) branches: Vec<BranchPlan>,
    /// The lanes of this rank: one, unless the config has several.
    pub(crate) lanes: Vec<LanePlan>,
    pub(crate) ranks: Ranks,
    pub(crate) join: JoinPlan,
    /// What rows go through after it, in this order.
    pub(crate) steps: Vec<StepPlan>,
    /// Name of the tensor generator.
    pub(crate) stage: String,
    /// Rows of a batch that this rank gives.
    pub(crate) batch_size: usize,
    /// Batches that are left out.
    pub(crate) skips: Skips,
    pub(crate) encoder: Arc<dyn Encoder>,
    pub(crate) partial: WhenPartial,
    pub(crate) capacity: usize,
    pub(crate) when_full: WhenFull,
    /// Maximum number of encode tasks at once.
    pub(crate) ceiling: usize,
}

impl ChainPlan {
    /// Inputs of the join, in each lane.
    pub(crate) fn inputs(&self) -> usize {
        self.branches.len() / self.lanes.len().max(1)
    }

    /// Each step with each lane that it is in.
    fn steps_of_lanes(&self) -> impl Iterator<Item = (&StepPlan, &LanePlan)> {
        self.steps.iter().flat_map(|step| self.lanes.iter().map(move |lane| (step, lane)))
    }

    /// Slots of rows that steps hold, in all lanes of this rank.
    pub(crate) fn held(&self) -> usize {
        self.steps_of_lanes().fold(0, |held, (step, lane)| held.saturating_add(step.slots(lane)))
    }

    /// Bytes that steps take beside slots, in all lanes of this rank.
    pub(crate) fn step_bytes(&self) -> u64 {
        self.steps_of_lanes().fold(0, |bytes, (step, lane)| bytes.saturating_add(step.bytes(lane)))
    }

    /// Whether a step may drop rows.
    pub(crate) fn drops(&self) -> bool {
        self.steps.iter().any(|step| step.of.drops())
    }

    /// Whether a step reads which position a row is of.
    pub(crate) fn reads_positions(&self) -> bool {
        self.steps.iter().any(|step| step.of.reads_positions())
    }
}

/// All that a loader runs.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) logs: Vec<LogPlan>,
    pub(crate) chains: Vec<ChainPlan>,
    /// Bytes that solid files may take.
    pub(crate) solid: u64,
}

impl Plan {
    /// What the pass of this stage reads besides the games.
    pub(crate) fn reads(&self, stage: &str) -> [Option<u64>; 2] {
        let mut passes = self.chains.iter().flat_map(|chain| &chain.branches).flat_map(|branch| &branch.passes);
        passes.find(|pass| pass.stage == stage).map_or([None; 2], |pass| pass.reads)
    }

    /// Stage and words for all that its passes do without, because it may be missing and is.
    pub(crate) fn lacks(&self) -> BTreeSet<(&str, &str)> {
        let passes = self.chains.iter().flat_map(|chain| &chain.branches).flat_map(|branch| &branch.passes);
        passes.flat_map(|pass| pass.lacks.iter().map(|lack| (pass.stage.as_str(), lack.as_str()))).collect()
    }
}

/// Checks a config and lowers it.
pub(crate) fn plan(config: &DataLoaderConfig) -> Result<Plan> {
    let graph = Graph::new(config)?;
    let ranks = Ranks::of(config)?;
    let mut lower = Lower { graph: &graph, logs: Vec::new(), owners: Vec::new(), branches: 0 };
    let chain = |(alias, port): &(String, Port)| ranks.deal(lower.chain(alias, *port)?);
    let mut chains = graph.outputs.iter().map(chain).collect::<Result<Vec<_>>>()?;
    let aliases: Vec<String> = chains.iter().map(|chain| chain.alias.clone()).collect();
    chains.iter_mut().zip(Skips::of(&config.skip, &aliases)?).for_each(|(chain, skips)| chain.skips = skips);
    let solid = config.max_solid_bytes.map_or(0, |most| Solids::promised(most.0));
    Ok(Plan { logs: lower.logs, chains, solid })
}

struct Lower<'a> {
    graph: &'a Graph<'a>,
    logs: Vec<LogPlan>,
    /// The loader stage of each log.
    owners: Vec<usize>,
    /// Branches so far.
    branches: u32,
}

impl<'a> Lower<'a> {
    fn node(&self, port: Port) -> &'a Node<'a> {
        &self.graph.nodes[port.stage]
    }

    fn chain(&mut self, alias: &str, port: Port) -> Result<ChainPlan> {
        let generator = self.node(port);
        let StageKind::TensorGenerator(config) = generator.kind else {
            return Err(Error::stage(generator.name, "gives no batches"));
        };
        let mut reads = generator.inputs[0];
        let mut at = self.node(reads);
        let mut steps: Vec<StepPlan> = Vec::new();
        while let Some(step) = StepPlan::of(at)? {
            if steps.iter().any(|other| other.kind == step.kind) {
                return Err(Error::stage(at.name, format!("rows go through one `{}` at most", step.kind)));
            }
            steps.push(step);
            reads = at.inputs[0];
            at = self.node(reads);
        }
        steps.reverse();
        let (branches, join) = match at.kind {
            StageKind::JoinPositions(config) => joined(self, at, config)?,
            _ => (inputs(self, &[reads])?.0, JoinPlan::alone()),
        };
        let lanes = vec![LanePlan { lane: None }];
        let chain = tensors(alias, generator.name, config)?;
        let mut branches: Vec<BranchPlan> = branches;
        if let Some(complete) = Complete::new(&chain.encoder) {
            let pass: Arc<dyn ChunkPass> = Arc::new(complete);
            branches.iter_mut().for_each(|branch| branch.passes.push(PassPlan::unnamed(Arc::clone(&pass))));
        }
        Ok(ChainPlan { branches, join, lanes, steps, ..chain })
    }

    fn branch(&mut self, stage: usize) -> Result<BranchPlan> {
        let node = &self.graph.nodes[stage];
        let StageKind::ChunkUnpacker(unpacker) = node.kind else {
            let text = "frames come as unpacker -> join_positions -> steps such as shuffling_frame_sampler -> \
                        tensor_generator, all but the first and last optional; this stage stands elsewhere";
            return Err(Error::stage(node.name, text));
        };
        let unpack = unpack(node.name, unpacker)?;
        let frame_weigher = frame_weigher(node.name, unpacker)?;
        let mut accept = None;
        let mut drawer = self.node(node.inputs[0]);
        let mut passes = Vec::new();
        let mut threads = vec![unpacker.threads];
        while let Some((pass, most)) = pass(drawer)? {
            passes.push(pass);
            threads.push(most);
            drawer = self.node(drawer.inputs[0]);
        }
        passes.reverse();
        let (draw, key_order, ceiling) = match drawer.kind {
            StageKind::ShufflingChunkPool(pool) => {
                if pool.chunk_pool_size == 0 {
                    return Err(Error::field(drawer.name, "chunk_pool_size", "expected at least 1 chunk"));
                }
                accept = acceptance(drawer, pool, (stage, unpacker))?;
                let own = |error: Error| error.in_stage(drawer.name);
                let window = Window::new(pool.chunk_pool_size, pool.window_law.as_ref()).map_err(own)?;
                let limit = pool.rate_limit.as_ref().map(Limit::new).transpose().map_err(own)?;
                (DrawPlan::Pool { window, limit }, pool.key_order, pool.chunk_loading_threads)
            }
            StageKind::SimpleChunkExtractor(extract) => {
                if extract.epochs == 0 {
                    return Err(Error::field(drawer.name, "epochs", "expected at least 1 pass"));
                }
                (DrawPlan::Extract { order: extract.order, epochs: extract.epochs }, extract.key_order, None)
            }
            _ => return Err(Error::stage(drawer.name, "gives no chunks")),
        };
        if unpacker.prefetch_output.is_some() && accept.as_ref().is_none_or(|accept| accept.cache.is_none()) {
            let text = format!("stage `{}` has no `cachehit_output`: no cache keeps what is prefetched", drawer.name);
            return Err(Error::field(node.name, "prefetch_output", text));
        }
        threads.push(ceiling);
        let ceiling = threads.into_iter().flatten().min().unwrap_or(usize::MAX).max(1);
        let mut port = drawer.inputs[0];
        let mut side = None;
        let mut loader = self.node(port);
        if let StageKind::ChunkSourceSplitter(splitter) = loader.kind {
            side = Some((side_of(loader.name, splitter, port.output)?, splitter.by));
            port = loader.inputs[0];
            loader = self.node(port);
        }
        let log = self.log(port.stage, loader)?;
        self.branches += 1;
        Ok(BranchPlan {
            number: self.branches,
            log,
            side,
            lane: None,
            counts_anchor: true,
            stage: drawer.name.to_owned(),
            draw,
            key_order,
            accept,
            passes,
            unpacker: node.name.to_owned(),
            unpack,
            frame_weigher,
            ceiling,
        })
    }

    fn log(&mut self, stage: usize, node: &'a Node<'a>) -> Result<usize> {
        if let Some(known) = self.owners.iter().position(|owner| *owner == stage) {
            return Ok(known);
        }
        let StageKind::ChunkSourceLoader(loader) = node.kind else {
            return Err(Error::stage(node.name, "a splitter reads a chunk_source_loader, not another splitter"));
        };
        let files = self.node(node.inputs[0]);
        let StageKind::FilePathProvider(provider) = files.kind else {
            return Err(Error::stage(files.name, "gives no files"));
        };
        if provider.directory.as_os_str().is_empty() {
            return Err(Error::field(files.name, "directory", "expected the directory of the games"));
        }
        if !(provider.rescan_seconds.is_finite() && provider.rescan_seconds >= 0.05) {
            return Err(Error::field(files.name, "rescan_seconds", "expected at least 0.05 seconds"));
        }
        let watch = provider.watch.unwrap_or(true);
        if provider.events.is_some() && !watch {
            return Err(Error::field(
                files.name,
                "events",
                "a directory that is not watched takes no events; set watch",
            ));
        }
        let shares = |log: &&LogPlan| log.events.is_some() && log.events == provider.events;
        if let Some(other) = self.logs.iter().find(shares) {
            let detail =
                format!("stage `{}` reads this queue, and a message goes to one reader; name another", other.files);
            return Err(Error::field(files.name, "events", detail));
        }
        self.owners.push(stage);
        self.logs.push(LogPlan {
            stage: node.name.to_owned(),
            files: files.name.to_owned(),
            directory: provider.directory.clone(),
            watch,
            waits: provider.watch == Some(true),
            rescan: Duration::from_secs_f64(provider.rescan_seconds.min(1e9)),
            events: provider.events.clone(),
            frame_format: loader.frame_format,
        });
        Ok(self.logs.len() - 1)
    }
}

/// The pass of a stage that takes chunks and gives chunks, and the most threads it may have; `None` for other kinds.
fn pass(node: &Node<'_>) -> Result<Option<(PassPlan, Option<usize>)>> {
    let Some(stage) = node.kind.pass_stage() else { return Ok(None) };
    let Pass { pass, reads, lacks, threads } = stage.pass(node.name)?;
    Ok(Some((PassPlan { stage: node.name.to_owned(), kind: node.kind.name(), pass, reads, lacks }, threads)))
}

/// One output of a splitter.
fn side_of(stage: &str, config: &ChunkSourceSplitterConfig, output: usize) -> Result<Side> {
    if config.output.len() != config.weight.len() {
        let text = format!("{} weights for {} outputs", config.weight.len(), config.output.len());
        return Err(Error::field(stage, "weight", text));
    }
    let fold = match (config.folds, config.fold) {
        (None, None) => None,
        (Some(of), Some(number)) => Some(Fold { of, number }),
        (None, Some(_)) => return Err(Error::field(stage, "folds", "a fold is one of how many? Set it, too")),
        (Some(_), None) => return Err(Error::field(stage, "fold", "which of the folds? Set it, too, from 0")),
    };
    let at = if fold.is_none() || Side::new(&config.weight, output).is_none() { "weight" } else { "fold" };
    let sides = Side::all(&config.weight, fold).map_err(|text| Error::field(stage, at, text))?;
    sides.into_iter().nth(output).ok_or_else(|| Error::field(stage, "output", "there is no such output"))
}

fn unpack(stage: &str, config: &ChunkUnpackerConfig) -> Result<Unpack> {
    match (config.position_sampling_rate, config.position_count) {
        (Some(rate), None) if rate > 0.0 && rate <= 1.0 => Ok(Unpack::Rate(rate)),
        (Some(_), None) => Err(Error::field(stage, "position_sampling_rate", "expected 0 < rate <= 1")),
        (None, Some(count)) if count > 0 => Ok(Unpack::Count(count)),
        (None, Some(_)) => Err(Error::field(stage, "position_count", "expected at least 1")),
        (None, None) => {
            Err(Error::stage(stage, "set exactly one of position_sampling_rate and position_count; none is"))
        }
        (Some(_), Some(_)) => {
            Err(Error::stage(stage, "set exactly one of position_sampling_rate and position_count; both are"))
        }
    }
}

fn tensors(alias: &str, stage: &str, config: &TensorGeneratorConfig) -> Result<ChainPlan> {
    if config.batch_size == 0 || config.batch_size > 1 << 20 {
        return Err(Error::field(stage, "batch_size", "expected 1 to 1 048 576 rows"));
    }
    Ok(ChainPlan {
        alias: alias.to_owned(),
        branches: Vec::new(),
        lanes: Vec::new(),
        ranks: Ranks { lanes: 1, rank: 0, world: 1 },
        join: JoinPlan::alone(),
        steps: Vec::new(),
        stage: stage.to_owned(),
        batch_size: config.batch_size,
        skips: Skips::default(),
        encoder: encoder(stage, config)?,
        partial: match config.last_batch {
            LastBatch::Keep => WhenPartial::Keep,
            LastBatch::Drop => WhenPartial::Drop,
            LastBatch::Pad => WhenPartial::Pad,
        },
        capacity: config.output.queue_capacity,
        when_full: match config.output.overflow_behavior {
            Overflow::Block => WhenFull::Block,
            Overflow::DropNew => WhenFull::DropNew,
            Overflow::KeepNewest => WhenFull::KeepNewest,
        },
        ceiling: config.threads.unwrap_or(usize::MAX).max(1),
    })
}
