//! Options of the common case -> a whole graph: chess games of some directories into shuffled batches.
//! The only place that knows the usual graph; Python and the command line both call it.

use std::path::PathBuf;

use gristmill_runtime::error::{Error, Result};
use gristmill_stages::config::{
    BadChunks, ChunkSourceLoaderConfig, ChunkSourceSplitterConfig, ChunkUnpackerConfig, DataLoaderConfig,
    EncoderConfig, FilePathProviderConfig, HanseForm, IoErrors, JoinPositionsConfig, LastBatch, MemorySize,
    QueueConfig, RateLimitConfig, ShufflingChunkPoolConfig, ShufflingFrameSamplerConfig, SimpleChunkExtractorConfig,
    SplitBy, StageConfig, TensorGeneratorConfig, WindowLawConfig, parse,
};
use serde::{Deserialize, Serialize};

/// A directory of games and its share of the positions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weighted {
    /// The directory.
    pub directory: PathBuf,
    /// Its weight; any positive number.
    pub weight: f64,
}

/// The options of [`lc0`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Lc0Preset {
    /// Directories with their weights; at least one.
    pub directories: Vec<Weighted>,
    /// Chunks in each directory's pool.
    pub pool: u64,
    /// How each pool grows up to that; absent: it does not.
    pub window_law: Option<WindowLawConfig>,
    /// How many draws each pool makes for each game that comes; absent: any number.
    pub rate_limit: Option<RateLimitConfig>,
    /// Frames in the reservoir; 0 for none. Absent: as many as `memory` allows, else 32 768.
    pub reservoir: Option<usize>,
    /// Rows per batch.
    pub batch_size: usize,
    /// Switches Hanse sampling on where it is above 0.
    pub hanse_sampling_threshold: Option<u64>,
    /// Exponent of a game's chance; absent: 1.
    pub hanse_sampling_gamma: Option<f64>,
    /// What a game's chance is made of; absent: by weight.
    pub hanse_sampling_form: Option<HanseForm>,
    /// Positions that the cache of each pool holds; needs a `position_count` of 1.
    pub position_cache: Option<u64>,
    /// Share of a game's positions taken at each use.
    pub sampling_rate: Option<f32>,
    /// Number of positions taken at each use, instead of a rate.
    pub position_count: Option<u32>,
    /// Whole passes over the files there are, in order, then the end; absent: an endless stream.
    pub epochs: Option<u32>,
    /// Whether files that appear later are taken too; absent: yes unless `epochs` is set.
    pub watch: Option<bool>,
    /// Queue that the bucket of the one directory sends its events to.
    pub events: Option<String>,
    /// Named shares of the games, such as `[["train", 9], ["test", 1]]`: one loader output each.
    pub split: Vec<(String, u64)>,
    /// What decides the share of a game.
    pub split_by: SplitBy,
    /// Folds of what the first two shares have together, which are called train and val where `split` is empty.
    pub folds: Option<u64>,
    /// The fold that is the second of them; all others are the first.
    pub fold: Option<u64>,
    /// What makes tensors of frames.
    pub encoder: EncoderConfig,
    /// The tensors of a batch.
    pub tensors: Vec<String>,
    /// What becomes of the last partial batch.
    pub last_batch: LastBatch,
    /// Batches that may wait for the consumer; absent: 4, or 2 where `memory` is scarce. Never changes a batch.
    pub queue_capacity: Option<usize>,
    /// Lanes that the games are dealt to; absent: 1.
    pub lanes: Option<u32>,
    /// Which rank this is; absent: 0.
    pub rank: Option<u32>,
    /// Ranks that share each batch; absent: 1.
    pub world_size: Option<u32>,
    /// Root seed.
    pub seed: Option<u64>,
    /// Worker threads.
    pub threads: Option<usize>,
    /// Memory bound.
    pub memory: Option<MemorySize>,
    /// Maximum number of bytes of a file that is read whole.
    pub max_solid_bytes: Option<MemorySize>,
    /// What happens when a chunk is bad.
    pub bad_chunks: BadChunks,
    /// What happens when a file cannot be read.
    pub io_errors: IoErrors,
    /// Report of quarantined chunks.
    pub quarantine: Option<PathBuf>,
    /// Log of arrivals.
    pub journal: Option<PathBuf>,
    /// Take the arrivals from the journal.
    pub replay: bool,
    /// Folder where files are held that a state may need.
    pub spill: Option<PathBuf>,
    /// Maximum number of bytes that are held there.
    pub spill_limit: Option<MemorySize>,
    /// Folder of the side index.
    pub index: Option<PathBuf>,
}

impl Default for Lc0Preset {
    fn default() -> Self {
        let tensors = TensorGeneratorConfig::default();
        Lc0Preset {
            directories: Vec::new(),
            pool: ShufflingChunkPoolConfig::default().chunk_pool_size,
            window_law: None,
            rate_limit: None,
            reservoir: None,
            batch_size: tensors.batch_size,
            hanse_sampling_threshold: None,
            hanse_sampling_gamma: None,
            hanse_sampling_form: None,
            position_cache: None,
            sampling_rate: None,
            position_count: None,
            epochs: None,
            watch: None,
            events: None,
            split: Vec::new(),
            split_by: SplitBy::default(),
            folds: None,
            fold: None,
            encoder: tensors.encoder,
            tensors: tensors.tensors,
            last_batch: tensors.last_batch,
            queue_capacity: None,
            lanes: None,
            rank: None,
            world_size: None,
            seed: None,
            threads: None,
            memory: None,
            max_solid_bytes: None,
            bad_chunks: BadChunks::default(),
            io_errors: IoErrors::default(),
            quarantine: None,
            journal: None,
            replay: false,
            spill: None,
            spill_limit: None,
            index: None,
        }
    }
}

impl Lc0Preset {
    /// Reads the options from JSON; unknown ones are refused with the nearest known one.
    pub fn from_json(text: &str) -> Result<Self> {
        parse::options(text)
    }
}

/// Reservoir of a loader that is given no size at all: 277 MB of frames.
const DEFAULT_RESERVOIR: usize = 32_768;

/// Builds the usual graph for games of Leela Chess Zero.
///
/// Errors: `Config` naming the option that does not fit.
pub fn lc0(options: &Lc0Preset) -> Result<DataLoaderConfig> {
    if options.directories.is_empty() {
        return Err(Error::config("directories", "expected at least one directory of games"));
    }
    check_pool(options)?;
    if options.memory.is_some() && (options.reservoir.is_none() || options.queue_capacity.is_none()) {
        return within(options);
    }
    if options.split.is_empty() && (options.folds.is_some() || options.fold.is_some()) {
        let split = vec![("train".to_owned(), 1), ("val".to_owned(), 0)];
        return lc0(&Lc0Preset { split, ..options.clone() });
    }
    let mut stages = Vec::new();
    let sides: Vec<&str> =
        if options.split.is_empty() { vec![""] } else { options.split.iter().map(|(name, _)| name.as_str()).collect() };
    for (i, directory) in options.directories.iter().enumerate() {
        sources(options, i, &directory.directory, &mut stages);
        for side in &sides {
            frames(options, i, side, &mut stages);
        }
    }
    let mut output = Vec::new();
    for side in &sides {
        let tensors = tensors(options, side, &mut stages)?;
        output.push(if side.is_empty() { tensors } else { format!("{side}:{tensors}") });
    }
    Ok(DataLoaderConfig {
        stage: stages,
        output,
        lanes: options.lanes,
        rank: options.rank,
        world_size: options.world_size,
        seed: options.seed,
        threads: options.threads,
        memory: options.memory,
        max_solid_bytes: options.max_solid_bytes,
        bad_chunks: options.bad_chunks,
        io_errors: options.io_errors,
        quarantine: options.quarantine.clone(),
        journal: options.journal.clone(),
        replay: options.replay,
        spill: options.spill.clone(),
        spill_limit: options.spill_limit,
        index: options.index.clone(),
        ..DataLoaderConfig::default()
    })
}

/// Positions of a game that the cache keeps at most.
const PREFETCH: u32 = 8;

/// Refuses options of the pool where there is none, and those that would do nothing.
fn check_pool(options: &Lc0Preset) -> Result<()> {
    let hanse = [
        ("hanse_sampling_gamma", options.hanse_sampling_gamma.is_some()),
        ("hanse_sampling_form", options.hanse_sampling_form.is_some()),
    ];
    let threshold = options.hanse_sampling_threshold.is_some_and(|threshold| threshold > 0);
    if let Some((name, _)) = hanse.iter().find(|(_, given)| *given && !threshold) {
        return Err(Error::config(name, "it does nothing without `hanse_sampling_threshold` above 0"));
    }
    let cache = options.position_cache.is_some();
    let given = [
        ("hanse_sampling_threshold", options.hanse_sampling_threshold.is_some()),
        ("position_cache", cache),
        ("window_law", options.window_law.is_some()),
        ("rate_limit", options.rate_limit.is_some()),
    ];
    if let Some((name, _)) = given.iter().find(|(_, given)| *given && options.epochs.is_some()) {
        return Err(Error::config(
            name,
            "it goes with an endless stream; with `epochs` each game comes once in each pass",
        ));
    }
    if cache && options.position_count != Some(1) {
        return Err(Error::config(
            "position_cache",
            "it needs a `position_count` of 1: one position of each drawn game",
        ));
    }
    Ok(())
}

/// Fills in what `memory` leaves open: the queue, then the reservoir of an endless stream.
fn within(options: &Lc0Preset) -> Result<DataLoaderConfig> {
    let with = |queue: usize| {
        let queue_capacity = options.queue_capacity.or(Some(queue));
        if options.reservoir.is_some() || options.epochs.is_some() {
            let reservoir = options.reservoir.or(Some(0));
            let config = lc0(&Lc0Preset { queue_capacity, reservoir, ..options.clone() })?;
            return crate::pipeline::plan::budget::reservoir_within(&config).map(|_| (config, usize::MAX));
        }
        let bare = lc0(&Lc0Preset { queue_capacity, reservoir: Some(0), ..options.clone() })?;
        let frames = crate::pipeline::plan::budget::reservoir_within(&bare)?;
        Ok((lc0(&Lc0Preset { queue_capacity, reservoir: Some(frames), ..options.clone() })?, frames))
    };
    match with(QueueConfig::default().queue_capacity) {
        Ok((config, frames)) if frames >= DEFAULT_RESERVOIR => Ok(config),
        _ => with(2).map(|(config, _)| config),
    }
}

/// The name of a stage: the part, the directory's number beyond the first, the side of a split.
fn named(part: &str, directory: usize, side: &str) -> String {
    let number = if directory == 0 { String::new() } else { format!("_{}", directory + 1) };
    let side = if side.is_empty() { String::new() } else { format!("_{side}") };
    format!("{part}{number}{side}")
}

fn stage(name: String, input: &[String]) -> StageConfig {
    StageConfig { name, input: input.to_vec(), ..StageConfig::default() }
}

fn sources(options: &Lc0Preset, i: usize, directory: &std::path::Path, stages: &mut Vec<StageConfig>) {
    let files = named("files", i, "");
    let load = named("load", i, "");
    stages.push(StageConfig {
        file_path_provider: Some(FilePathProviderConfig {
            directory: directory.to_owned(),
            watch: options.watch.or(options.epochs.map(|_| false)),
            events: options.events.clone(),
            ..FilePathProviderConfig::default()
        }),
        ..stage(files.clone(), &[])
    });
    stages.push(StageConfig {
        chunk_source_loader: Some(ChunkSourceLoaderConfig::default()),
        ..stage(load.clone(), &[files])
    });
    if !options.split.is_empty() {
        let queue = |(name, _): &(String, u64)| QueueConfig { name: name.clone(), ..QueueConfig::default() };
        stages.push(StageConfig {
            chunk_source_splitter: Some(ChunkSourceSplitterConfig {
                output: options.split.iter().map(queue).collect(),
                weight: options.split.iter().map(|(_, weight)| *weight).collect(),
                by: options.split_by,
                folds: options.folds,
                fold: options.fold,
            }),
            ..stage(named("split", i, ""), &[load])
        });
    }
}

fn frames(options: &Lc0Preset, i: usize, side: &str, stages: &mut Vec<StageConfig>) {
    let input = if side.is_empty() { named("load", i, "") } else { format!("{}.{side}", named("split", i, "")) };
    let chunks = named(if options.epochs.is_some() { "extract" } else { "pool" }, i, side);
    let unpack = named("unpack", i, side);
    let named_queue = |name: &str| QueueConfig { name: name.to_owned(), ..QueueConfig::default() };
    let mut chosen = stage(chunks.clone(), &[input]);
    if options.position_cache.is_some() {
        chosen.input.push(format!("{unpack}.ahead"));
    }
    match options.epochs {
        Some(epochs) => {
            chosen.simple_chunk_extractor =
                Some(SimpleChunkExtractorConfig { epochs, ..SimpleChunkExtractorConfig::default() });
        }
        None => {
            let usual = ShufflingChunkPoolConfig::default();
            chosen.shuffling_chunk_pool = Some(ShufflingChunkPoolConfig {
                chunk_pool_size: options.pool,
                window_law: options.window_law,
                rate_limit: options.rate_limit,
                hanse_sampling_threshold: options.hanse_sampling_threshold,
                hanse_sampling_gamma: options.hanse_sampling_gamma.unwrap_or(usual.hanse_sampling_gamma),
                hanse_sampling_form: options.hanse_sampling_form.unwrap_or(usual.hanse_sampling_form),
                position_cache_size: options.position_cache,
                cachehit_output: options.position_cache.map(|_| named_queue("hits")),
                ..usual
            });
        }
    }
    stages.push(chosen);
    let rate = options.sampling_rate.or(options.position_count.is_none().then_some(1.0));
    stages.push(StageConfig {
        chunk_unpacker: Some(ChunkUnpackerConfig {
            position_sampling_rate: rate,
            position_count: options.position_count,
            prefetch_count: options.position_cache.map(|_| PREFETCH),
            prefetch_output: options.position_cache.map(|_| named_queue("ahead")),
            ..ChunkUnpackerConfig::default()
        }),
        ..stage(unpack.clone(), std::slice::from_ref(&chunks))
    });
    if options.position_cache.is_some() {
        stages.push(StageConfig {
            join_positions: Some(JoinPositionsConfig::default()),
            ..stage(named("both", i, side), &[unpack, format!("{chunks}.hits")])
        });
    }
}

fn tensors(options: &Lc0Preset, side: &str, stages: &mut Vec<StageConfig>) -> Result<String> {
    let positions = if options.position_cache.is_some() { "both" } else { "unpack" };
    let mut last = named(positions, 0, side);
    if options.directories.len() > 1 {
        let inputs: Vec<String> = (0..options.directories.len()).map(|i| named(positions, i, side)).collect();
        last = named("join", 0, side);
        stages.push(StageConfig {
            join_positions: Some(JoinPositionsConfig {
                weight: options.directories.iter().map(|d| d.weight).collect(),
                ..JoinPositionsConfig::default()
            }),
            ..stage(last.clone(), &inputs)
        });
    }
    let tensors = TensorGeneratorConfig {
        batch_size: options.batch_size,
        encoder: options.encoder.clone(),
        tensors: options.tensors.clone(),
        last_batch: options.last_batch,
        output: QueueConfig {
            queue_capacity: options.queue_capacity.unwrap_or(QueueConfig::default().queue_capacity),
            ..QueueConfig::default()
        },
        ..TensorGeneratorConfig::default()
    };
    let reservoir = options.reservoir.unwrap_or(if options.epochs.is_some() { 0 } else { DEFAULT_RESERVOIR });
    if reservoir > 0 {
        let sampler = ShufflingFrameSamplerConfig {
            reservoir_size_per_thread: reservoir,
            ..ShufflingFrameSamplerConfig::default()
        };
        let name = named("sample", 0, side);
        stages.push(StageConfig { shuffling_frame_sampler: Some(sampler), ..stage(name.clone(), &[last]) });
        last = name;
    }
    let name = named("tensors", 0, side);
    stages.push(StageConfig { tensor_generator: Some(tensors), ..stage(name.clone(), &[last]) });
    Ok(name)
}
