//! A config -> a loader that stands still: each round of a search and each task of its chain runs when a test says so.
//! Starts no thread, asks no clock and never waits; only unit tests have one.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gristmill_generate::{ChessGenerator, ChessOptions};
use gristmill_runtime::error::Result;
use gristmill_runtime::runtime::handoff::Taken;
use gristmill_runtime::runtime::scheduler::{Crew, Lane, Rounds, Signal, Tasks};
use gristmill_runtime::store::{Store, World, place};
use gristmill_stages::config::{DataLoaderConfig, JoinPositionsConfig, StageConfig};
use serde_json::json;

use crate::pipeline::chain::Chain;
use crate::pipeline::draw::anchors::Anchors;
use crate::pipeline::draw::outage::Outages;
use crate::pipeline::draw::roster::Roster;
use crate::pipeline::loader::launch::{Launch, own_journal};
use crate::pipeline::loader::output::Batch;
use crate::pipeline::plan::plan;
use crate::pipeline::plan::sight::Reads;
use crate::pipeline::resume::recall::Recall;
use crate::pipeline::resume::state::LoaderState;
use crate::pipeline::resume::vanished::Missing;
use crate::preset::{Lc0Preset, Weighted, lc0};

/// Rounds of a search within which all that came is found.
const ROUNDS: usize = 150;

/// Tasks within which a batch is made, or none will be.
const TASKS: usize = 3000;

/// The folders of this machine, without its threads and its clock.
#[derive(Default)]
struct Ground {
    rounds: Mutex<Vec<Option<Rounds>>>,
    now: Mutex<Duration>,
    /// Whether no search is begun.
    blind: bool,
    stores: Mutex<Vec<Arc<dyn Store>>>,
}

impl std::fmt::Debug for Ground {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ground").finish_non_exhaustive()
    }
}

impl Crew for Ground {
    fn staff(&self, _: Lane, _: usize, _: &Arc<[Arc<dyn Tasks>]>, _: Arc<Signal>) {}

    fn rounds(&self, _: &str, rounds: Rounds) {
        if !self.blind {
            self.rounds.lock().unwrap().push(Some(rounds));
        }
    }

    fn now(&self) -> Duration {
        *self.now.lock().unwrap()
    }
}

impl World for Ground {
    fn open(&self, place: &Path) -> Result<Arc<dyn Store>> {
        let store = place::open_noticed(place, None)?;
        self.stores.lock().unwrap().push(Arc::clone(&store));
        Ok(store)
    }
}

/// A loader that stands still.
pub(in crate::pipeline) struct Still {
    ground: Arc<Ground>,
    pub(in crate::pipeline) config: DataLoaderConfig,
    pub(in crate::pipeline) launch: Launch,
}

impl Still {
    /// Its searches are begun, and have found nothing so far.
    pub(in crate::pipeline) fn new(config: &DataLoaderConfig) -> Self {
        Self::of(config, None, (false, None)).unwrap()
    }

    /// One whose searches ended before they began.
    pub(in crate::pipeline) fn blind(config: &DataLoaderConfig) -> Self {
        Self::of(config, None, (true, None)).unwrap()
    }

    /// One that only looks.
    pub(in crate::pipeline) fn seeing(config: &DataLoaderConfig) -> Self {
        Self::of(config, None, (false, Some(Reads::Nothing))).unwrap()
    }

    /// One that resumes from a state.
    pub(in crate::pipeline) fn resumed(config: &DataLoaderConfig, state: LoaderState, missing: Missing) -> Self {
        Self::of(config, Some((Arc::new(state), missing)), (false, None)).unwrap()
    }

    fn of(
        config: &DataLoaderConfig,
        past: Option<(Arc<LoaderState>, Missing)>,
        (blind, sight): (bool, Option<Reads>),
    ) -> Result<Self> {
        let ground = Arc::new(Ground { blind, ..Ground::default() });
        let (plan, world) = (plan(config)?, Arc::clone(&ground) as Arc<dyn World>);
        let pools = plan.chains.iter().flat_map(|chain| &chain.branches).map(|branch| branch.stage.clone());
        let anchors = Arc::new(Anchors::new(pools));
        let journal = own_journal(config, sight)?;
        let recall = Recall::new(config, &plan, past)?;
        let root = recall.seed.or(config.seed).unwrap_or(1);
        let shared = (anchors, Default::default(), Some(&world));
        let launch = Launch::new(config, (&plan, sight), root, (recall, journal), shared)?;
        Ok(Still { ground, config: config.clone(), launch })
    }

    /// The chain of its only output.
    pub(in crate::pipeline) fn chain(&self) -> &Arc<Chain> {
        &self.launch.observer.chains[0]
    }

    pub(in crate::pipeline) fn roster(&self) -> &Arc<Roster> {
        &self.launch.observer.rosters[0]
    }

    pub(in crate::pipeline) fn chains(&self) -> &[Arc<Chain>] {
        &self.launch.observer.chains
    }

    pub(in crate::pipeline) fn rosters(&self) -> &[Arc<Roster>] {
        &self.launch.observer.rosters
    }

    pub(in crate::pipeline) fn outages(&self) -> &Outages {
        &self.launch.observer.outages
    }

    pub(in crate::pipeline) fn recall(&self) -> &Recall {
        &self.launch.recall
    }

    /// Lets its searches find all that is there by now.
    pub(in crate::pipeline) fn search(&self) {
        self.rounds(ROUNDS);
    }

    /// Lets its searches go through some rounds.
    pub(in crate::pipeline) fn rounds(&self, rounds: usize) {
        for _ in 0..rounds {
            let mut all = std::mem::take(&mut *self.ground.rounds.lock().unwrap());
            for rounds in &mut all {
                *rounds = rounds.take().and_then(|mut rounds| rounds().map(|_| rounds));
            }
            self.ground.rounds.lock().unwrap().extend(all);
        }
    }

    /// A round in which no notice tells its searches of anything, and the time until the next one.
    pub(in crate::pipeline) fn unnoticed(&self) {
        self.ground.stores.lock().unwrap().iter().for_each(|store| store.readings().looked());
        self.pass();
    }

    fn pass(&self) {
        *self.ground.now.lock().unwrap() += Duration::from_millis(20);
    }

    /// Forgets what nothing needs any more, as a loader does now and then.
    pub(in crate::pipeline) fn forget(&self) {
        self.launch.observer.forget();
    }

    /// Makes a state, as a loader does for its user.
    pub(in crate::pipeline) fn made(&self) {
        self.launch.observer.made(&mut self.state());
    }

    /// A round of its searches, and the time until the next one.
    pub(in crate::pipeline) fn idle(&self) {
        self.rounds(1);
        self.pass();
    }

    /// Lets a thread of each lane look for a task; whether there was one.
    pub(in crate::pipeline) fn turn(&self) -> bool {
        [Lane::Read, Lane::Work].into_iter().fold(false, |ran, lane| ran | self.chain().run(lane))
    }

    /// Its searches find all that is there, and its chain begins.
    pub(in crate::pipeline) fn begun(self) -> Self {
        self.search();
        assert!(self.chain().run(Lane::Read));
        self
    }

    /// The next batch, `None` at the end.
    ///
    /// Time passes and files are looked for where there is nothing to do. Errors: what the stream says; `no batch` where no task makes one.
    pub(in crate::pipeline) fn next(&self) -> std::result::Result<Option<Batch>, String> {
        for _ in 0..TASKS {
            match self.chain().next(Some(Duration::ZERO), true) {
                Taken::Item(batch) => return batch.map(Some).map_err(|e| e.to_string()),
                Taken::Closed => return Ok(None),
                Taken::Nothing if self.turn() => {}
                Taken::Nothing => self.idle(),
            }
        }
        Err("no batch".to_owned())
    }

    /// The bytes of the next batches.
    pub(in crate::pipeline) fn batches(&self, batches: usize) -> Vec<Vec<u8>> {
        let batch = |_| self.next().unwrap().unwrap();
        (0..batches).map(batch).map(|batch| batch.columns[0].bytes().to_vec()).collect()
    }

    /// The state after the last batch.
    pub(in crate::pipeline) fn state(&self) -> LoaderState {
        let files: serde_json::Map<_, _> =
            self.launch.observer.rosters.iter().map(|roster| (roster.loader.clone(), json!(roster.files()))).collect();
        serde_json::from_value(json!({
            "gristmill_state": 4, "of": "stream", "config": {}, "seed": self.launch.observer.root, "files": files,
            "outputs": {&self.chain().plan.alias: self.chain().state()},
        }))
        .unwrap()
    }
}

/// Games of some plies under the names `training.N.gz`, or in tars.
pub(in crate::pipeline) fn games(folder: &Path, first: u64, games: u64, per_tar: Option<u64>) {
    let options = ChessOptions {
        folder: folder.to_owned(),
        games,
        first,
        seed: 7,
        plies_max: 12,
        version: gristmill_format::chess::Version::V6,
        games_per_tar: per_tar,
    };
    let mut generator = ChessGenerator::new(options).unwrap();
    while generator.write_next().unwrap().is_some() {}
}

/// Where each row came from, of games in these folders.
pub(in crate::pipeline) fn options(folders: &[&Path]) -> Lc0Preset {
    let directory = |folder: &&Path| Weighted { directory: (*folder).to_owned(), weight: 1.0 };
    Lc0Preset {
        directories: folders.iter().map(directory).collect(),
        pool: 20,
        reservoir: Some(0),
        batch_size: 8,
        position_count: Some(1),
        watch: Some(true),
        seed: Some(3),
        threads: Some(2),
        tensors: vec!["ids".to_owned()],
        index: Some("off".into()),
        ..Lc0Preset::default()
    }
}

/// The usual graph, where one join has the frames of all folders and of their caches.
pub(in crate::pipeline) fn joined(options: &Lc0Preset) -> DataLoaderConfig {
    let mut config = lc0(options).unwrap();
    let caches = options.position_cache.is_some();
    let several = options.directories.len() > 1;
    let mut input = Vec::new();
    for number in ["", "_2"].iter().take(options.directories.len()) {
        input.push(format!("unpack{number}"));
        input.extend(caches.then(|| format!("pool{number}.hits")));
    }
    config.stage.retain(|stage| stage.join_positions.is_none());
    let tensors = config.stage.iter_mut().find(|stage| stage.tensor_generator.is_some()).unwrap();
    if several || caches {
        tensors.input = vec!["both".into()];
        let join_positions = Some(JoinPositionsConfig::default());
        config.stage.push(StageConfig { name: "both".into(), input, join_positions, ..StageConfig::default() });
    }
    config
}
