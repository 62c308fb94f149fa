//! One number -> what a run is: files, configuration, faults with the step at which each comes, crashes. Runs nothing.

pub mod aim;

use std::path::{Path, PathBuf};

use gristmill_engine::config::{
    DataLoaderConfig, EncoderConfig, LastBatch, MemorySize, RateLimitConfig, WindowLawConfig,
};
use gristmill_engine::preset::{Lc0Preset, Weighted, lc0};

use crate::boards::{self, Damage};
use crate::chooser::Chooser;
use crate::less::Less;
use aim::Aim;

/// A file that is there, or comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// Name below the directory.
    pub name: String,
    /// What tells its boards from those of other files.
    pub content: u64,
    /// How many boards.
    pub boards: usize,
    /// What is wrong with it.
    pub damage: Option<Damage>,
}

impl Given {
    /// Its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        boards::file(self.content, self.boards, self.damage)
    }
}

/// What happens to the disk or by the consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// A file cannot be read: a fault of the disk, or permission.
    Break(usize, bool),
    /// All that was wrong is over.
    Mend,
    /// The folder goes away.
    Away,
    /// Reads give less than they could.
    Short,
    /// The next listing is the one before.
    Stale,
    /// The next listing has files twice.
    Repeated,
    /// Notices are lost.
    Lose,
    /// Notices come twice.
    Double,
    /// A file comes.
    Arrive(Given),
    /// The first part of a file comes, and the rest later, by the same name.
    Grow(Given),
    /// A file is replaced by one with as many other bytes.
    Replace(usize, u64),
    /// As before, and the other has the same time.
    Swap(usize, u64),
    /// This number of opens and reads are refused for the moment.
    Throttle(u32),
    /// The clock goes back before the times of all files.
    Behind,
    /// A file vanishes.
    Vanish(usize),
    /// A file gets another name.
    Rename(usize),
    /// The consumer takes nothing for this number of steps.
    Stall(u64),
    /// The process ends without a word, and another resumes from the last state.
    Crash,
    /// The loader is stopped.
    Stop,
    /// What happens to the second directory, and to its files.
    Second(Box<Deed>),
}

/// A whole run.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The number that it is made of.
    pub seed: u64,
    /// Files of the first scan.
    pub files: Vec<Given>,
    /// Files of a second directory. Without any there is none.
    pub second: Vec<Given>,
    /// Weights of both directories.
    pub weights: [f64; 2],
    /// What happens, at which step.
    pub deeds: Vec<(u64, Deed)>,
    /// What happens once a state comes.
    pub aim: Option<Aim>,
    /// Batches after which the process ends without a word and another resumes from its state.
    pub crashes: Vec<u64>,
    /// A state that each process takes before its first batch.
    pub early: Option<Early>,
    /// Number of batches by which a state is older than the crash.
    pub stale: u64,
    /// Whether the states are lost with a crash: the next process begins again, by the journal where there is one.
    pub begins_again: bool,
    /// Bytes of a line that was being written to the journal and to the ledger at a crash: this number of its first.
    pub torn: usize,
    /// The step after which the loader is stopped, whatever it does.
    pub stop_at: Option<u64>,
    /// Chunks of the window; without it whole passes.
    pub pool: Option<u64>,
    /// `least`, `slope` and `power` of a window that grows up to that.
    pub law: Option<[f64; 3]>,
    /// The rate limit, by which draws and files wait for each other: `samples_per_insert`, `min_size_to_sample`, `min_diff`, `max_diff`.
    pub limit: Option<[f64; 4]>,
    /// How many passes.
    pub epochs: u32,
    /// Share of the frames of each use; one of it and `count`.
    pub rate: Option<f32>,
    /// How many frames of each use.
    pub count: Option<u32>,
    /// Rows of the reservoir.
    pub reservoir: usize,
    /// Rows of a batch.
    pub batch: usize,
    /// Number of lanes.
    pub lanes: u32,
    /// How many ranks share them, and which of them runs in this world.
    pub ranks: (u32, u32),
    /// What becomes of the last batch.
    pub last: LastBatch,
    /// Threads of each lane of the scheduler: workers, readers.
    pub threads: (usize, usize),
    /// Batches that may wait.
    pub queue: usize,
    /// Batches that are taken at most.
    pub batches: u64,
    /// Batches that the consumer keeps while it takes the next ones.
    pub keeps: usize,
    /// Whether files that come later are taken.
    pub watch: bool,
    /// Whether there is a ledger.
    pub ledger: bool,
}

/// Bytes of a decoded chunk at most: eight times those of 256 boards.
const MOST_BYTES: u64 = 64 << 10;

/// The place of the second directory.
pub const SECOND: &str = "/second";

/// The steps in which deeds are done.
pub const EVENTFUL: u64 = 400;

/// When a process takes a state before its first batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Early {
    /// The step of the process from which on it takes it.
    pub step: u64,
    /// Whether the process keeps it in place of the state that it resumed from.
    pub replaces: bool,
}

/// Draws the rate limit of a pool. Returns `None` in most worlds.
fn limit(c: &mut Chooser, lanes: u32) -> Option<[f64; 4]> {
    let each = c.once_in(5).then(|| c.of(&[0.5, 1.0, 3.0, 8.0]))?;
    let min = c.of(&[0.0, 0.0, -7.0, -60.0]);
    let least = min + f64::from(lanes) * (1.0 + each);
    let max = if c.once_in(2) { f64::INFINITY } else { least + c.below(20) as f64 };
    Some([each, c.within(1, 12) as f64, min, max])
}

impl Scenario {
    /// The run of a number.
    pub fn new(seed: u64) -> Self {
        let mut chooser = Chooser::new(seed);
        let c = &mut chooser;
        let pool = c.once_in(2).then(|| c.within(2, 12));
        let watch = pool.is_some() && c.once_in(3);
        let mut content = 0;
        let mut given = |c: &mut Chooser, first: bool| {
            content += 1;
            let folder = c.of(&["", "", "a/", "b/c/"]);
            let boards = if c.once_in(8) { 250 + c.below(300) as usize } else { 1 + c.below(30) as usize };
            let damage = match c.below(12) {
                0 if !first => Some(Damage::Board(c.below(boards as u64) as usize)),
                1 if !first => Some(Damage::Cut),
                _ => None,
            };
            Given { name: format!("{folder}games{}-{content}.bf", c.below(30)), content, boards, damage }
        };
        let files: Vec<Given> = (0..c.within(1, 6)).map(|i| given(c, i == 0)).collect();
        let any = files.len() as u64;
        let mut deeds = Vec::new();
        for _ in 0..c.below(6) {
            let within = c.of(&[25, 60, 150, EVENTFUL]);
            let at = c.below(within);
            let file = c.below(any) as usize;
            let deed = match c.below(if watch { 16 } else { 9 }) {
                0 => Deed::Break(file, true),
                1 => Deed::Break(file, false),
                2 => Deed::Away,
                3 => Deed::Short,
                4 => Deed::Stall(c.below(200)),
                5..=8 => Deed::Mend,
                9 => Deed::Lose,
                10 => Deed::Double,
                11 => Deed::Stale,
                12 => Deed::Repeated,
                13 => Deed::Grow(given(c, false)),
                _ => Deed::Arrive(given(c, false)),
            };
            deeds.push((at, deed));
        }
        deeds.sort_by_key(|(at, _)| *at);
        let batches = c.within(2, 12);
        let counted = c.once_in(3);
        let lanes = if pool.is_some() && c.once_in(4) { 2 } else { 1 };
        let made = Scenario {
            seed,
            deeds,
            aim: None,
            second: Vec::new(),
            weights: [1.0, 1.0],
            crashes: (0..c.below(3)).map(|_| c.below(batches)).collect(),
            early: None,
            stale: u64::from(c.once_in(3)),
            begins_again: false,
            torn: 0,
            stop_at: c.once_in(10).then(|| c.below(EVENTFUL)),
            pool,
            law: None,
            limit: None,
            epochs: c.within(1, 3) as u32,
            rate: (!counted).then(|| c.of(&[1.0, 0.5, 0.3, 0.07])),
            count: counted.then(|| c.within(1, 9) as u32),
            reservoir: if c.once_in(3) { 0 } else { c.within(2, 60) as usize },
            batch: 2 * c.within(1, 12) as usize,
            lanes,
            ranks: (1, 0),
            last: c.of(&[LastBatch::Keep, LastBatch::Drop, LastBatch::Pad]),
            threads: (c.within(1, 4) as usize, c.within(1, 3) as usize),
            queue: c.within(1, 5) as usize,
            batches,
            keeps: 0,
            watch,
            ledger: c.once_in(40),
            files,
        };
        // A ledger refuses to begin again where a state was given out.
        let begins_again = !made.ledger && c.once_in(4);
        let torn = c.below(60) as usize;
        let law =
            pool.filter(|_| c.once_in(3)).map(|most| [c.within(1, most) as f64, c.of(&[1.0, 0.4]), c.of(&[1.0, 0.75])]);
        let ranks = if lanes > 1 && c.once_in(2) { (lanes, c.below(lanes.into()) as u32) } else { (1, 0) };
        let mut made = Scenario { begins_again, torn, law, ranks, ..made };
        made.third_lane(&mut Chooser::new(seed).apart(0x6c61_6e65));
        made.limit = pool.and_then(|_| limit(&mut Chooser::new(seed).apart(0x6c69_6d69), made.lanes));
        if c.once_in(40) {
            // A state then holds a copy of the window in the midst of a pass.
            (made.batches, made.batch) = (c.within(60, 120), 24);
            made.crashes = (0..c.within(1, 3)).map(|_| c.below(made.batches)).collect();
            made.rate = made.rate.map(|_| 0.07);
            made.count = made.count.map(|_| 1);
        }
        made.crowd(&mut Chooser::new(seed).apart(0x6372_6f77));
        made.lose_names(&mut Chooser::new(seed).apart(0x6e61_6d65));
        made.hold_up(&mut Chooser::new(seed).apart(0x686f_6c64));
        let c = &mut Chooser::new(seed).apart(0x6b65_6570);
        made.keeps = if c.once_in(4) { c.within(1, 6) as usize } else { 0 };
        let c = &mut Chooser::new(seed).apart(0x6561_726c);
        if c.once_in(3) {
            // Some resume from that state, whatever they gave since.
            let step = c.of(&[0, 0, 10, 40]);
            made.stale = if c.once_in(2) { u64::MAX } else { made.stale };
            made.early = Some(Early { step, replaces: c.once_in(2) });
        }
        if let Some(pair) = aim::of(seed) {
            made.aim_at(pair, &mut Chooser::new(seed).apart(0x6169_6d73));
        }
        made.join(&mut Chooser::new(seed).apart(0x6a6f_696e));
        made
    }

    /// Gives some of the worlds of two lanes a third one, so that the shares of the lanes have a remainder of two.
    fn third_lane(&mut self, c: &mut Chooser) {
        if self.lanes != 2 || self.pool < Some(3) || self.reservoir == 2 || !c.once_in(3) {
            return;
        }
        self.lanes = 3;
        if self.ranks.0 > 1 {
            self.ranks = (3, c.below(3) as u32);
            self.batch = self.batch.next_multiple_of(3);
        }
    }

    /// Joins a second directory in some of the worlds.
    fn join(&mut self, c: &mut Chooser) {
        if !c.once_in(4) {
            return;
        }
        for i in 0..c.within(1, 3) * u64::from(self.lanes) {
            let boards = if c.once_in(6) { 250 + c.below(300) as usize } else { 1 + c.below(30) as usize };
            let damage = (i > 0 && c.once_in(8)).then_some(Damage::Cut);
            let name = format!("other{}-{i}.bf", c.below(30));
            self.second.push(Given { name, content: 6000 + i, boards, damage });
        }
        self.weights = [c.of(&[1.0, 0.5, 3.0]), c.of(&[1.0, 0.1, 2.0])];
        let any = self.second.len() as u64;
        if c.once_in(2) {
            let broken = Deed::Break(c.below(any) as usize, c.once_in(2));
            self.deeds.push((c.below(EVENTFUL), Deed::Second(Box::new(broken))));
        }
        for i in 0..if self.watch { c.below(4) } else { 0 } {
            let file = c.below(any) as usize;
            let late = Given {
                name: format!("other{}-late{i}.bf", c.below(30)),
                content: 7000 + i,
                boards: c.within(1, 300) as usize,
                damage: None,
            };
            let deed = match c.below(10) {
                0 => Deed::Lose,
                1 => Deed::Stale,
                2 => Deed::Vanish(file),
                3 => Deed::Rename(file),
                4 => Deed::Replace(file, 8000 + i),
                5 => Deed::Swap(file, 8000 + i),
                6 => Deed::Grow(late),
                _ => Deed::Arrive(late),
            };
            let within = c.of(&[25, 150, EVENTFUL]);
            self.deeds.push((c.below(within), Deed::Second(Box::new(deed))));
        }
        self.deeds.sort_by_key(|(at, _)| *at);
    }

    /// Changes some of the worlds that watch. In some it replaces a file. In some it adds several files at once, and makes the state
    /// older than the crash by several batches.
    fn crowd(&mut self, c: &mut Chooser) {
        if !self.watch {
            return;
        }
        if c.once_in(6) {
            let (file, at) = (c.below(self.files.len() as u64), c.below(EVENTFUL));
            self.deeds.push((at, Deed::Replace(file as usize, 1000 + file)));
        }
        if c.once_in(4) {
            self.stale = c.within(2, 6);
            let (first, many) = (c.below(EVENTFUL), c.within(2, 6));
            for i in 0..many {
                let (content, boards) = (2000 + i, c.within(1, 300) as usize);
                let name = format!("late{}-{content}.bf", c.below(30));
                self.deeds.push((first + c.below(40), Deed::Arrive(Given { name, content, boards, damage: None })));
            }
        }
        self.deeds.sort_by_key(|(at, _)| *at);
    }

    /// Changes some of the worlds that watch: files vanish, get other names, or are replaced by others of the same time.
    fn lose_names(&mut self, c: &mut Chooser) {
        if !self.watch || !c.once_in(3) {
            return;
        }
        for _ in 0..c.within(1, 2) {
            let (file, within) = (c.below(self.files.len() as u64), c.of(&[25, 150, EVENTFUL]));
            let deed = match c.below(5) {
                0 | 1 => Deed::Vanish(file as usize),
                2 | 3 => Deed::Rename(file as usize),
                _ => Deed::Swap(file as usize, 3000 + file),
            };
            self.deeds.push((c.below(within), deed));
        }
        self.deeds.sort_by_key(|(at, _)| *at);
    }

    /// Changes some of the worlds: files are refused for a while, and the clock goes back.
    fn hold_up(&mut self, c: &mut Chooser) {
        let within = c.of(&[10, 60, EVENTFUL]);
        if c.once_in(8) {
            self.deeds.push((c.below(within), Deed::Throttle(c.within(1, 20) as u32)));
        }
        if c.once_in(8) {
            self.deeds.push((c.below(within), Deed::Behind));
        }
        self.deeds.sort_by_key(|(at, _)| *at);
    }

    /// Rows of a batch that this rank gives.
    pub fn share(&self) -> usize {
        self.batch / self.ranks.0 as usize
    }

    /// The name of a file that each rank writes.
    pub fn of_rank(&self, name: &str) -> String {
        let (ranks, rank) = self.ranks;
        if ranks == 1 { name.to_owned() } else { format!("{name}.{rank}-of-{ranks}") }
    }

    /// The configuration, with the files that it writes in `folder`.
    ///
    /// Errors: what the preset says.
    pub fn config(&self, folder: Option<&Path>) -> gristmill_engine::Result<DataLoaderConfig> {
        let beside = |name: &str, wanted: bool| folder.filter(|_| wanted).map(|folder| folder.join(name));
        let [first, second] = self.weights;
        let mut directories = vec![Weighted { directory: PathBuf::from("/sim"), weight: first }];
        if !self.second.is_empty() {
            directories.push(Weighted { directory: PathBuf::from(SECOND), weight: second });
        }
        let mut config = lc0(&Lc0Preset {
            directories,
            pool: self.pool.unwrap_or(1),
            window_law: self.law.map(|[least, slope, power]| WindowLawConfig { least: least as u64, slope, power }),
            rate_limit: self.limit.map(|[samples_per_insert, size, min_diff, max]| RateLimitConfig {
                samples_per_insert,
                min_size_to_sample: size as u64,
                min_diff,
                max_diff: Some(max).filter(|max| max.is_finite()),
            }),
            reservoir: Some(self.reservoir),
            batch_size: self.batch,
            sampling_rate: self.rate,
            position_count: self.count,
            epochs: self.pool.is_none().then_some(self.epochs),
            watch: Some(self.watch),
            encoder: EncoderConfig::Of("bullet".into()),
            tensors: Vec::new(),
            last_batch: self.last,
            queue_capacity: Some(self.queue),
            lanes: (self.lanes > 1).then_some(self.lanes),
            rank: (self.ranks.0 > 1).then_some(self.ranks.1),
            world_size: (self.ranks.0 > 1).then_some(self.ranks.0),
            seed: Some(self.seed),
            threads: Some(self.threads.0),
            journal: beside("journal", self.watch),
            index: Some("off".into()),
            ..Lc0Preset::default()
        })?;
        config.io_threads = Some(self.threads.1);
        // So that the promise of memory is a small one.
        config.max_chunk_bytes = Some(MemorySize(MOST_BYTES));
        config.ledger = beside("ledger", self.ledger);
        Ok(config)
    }
}

impl Scenario {
    /// Every run that is one thing smaller.
    pub fn smaller(&self) -> Vec<Self> {
        let mut less = Less::of(self);
        less.push(|s| s.deeds.clear());
        less.push(|s| s.second.clear());
        less.push(|s| s.aim = None);
        less.push(|s| s.crashes.clear());
        less.push(|s| s.stop_at = None);
        less.push(|s| s.stale = 0);
        less.push(|s| s.early = None);
        less.push(|s| s.ledger = false);
        less.push(|s| s.begins_again = false);
        less.push(|s| s.limit = None);
        less.push(|s| s.torn = 0);
        less.push(|s| s.keeps = 0);
        (0..self.deeds.len()).for_each(|i| less.push(|s| _ = s.deeds.remove(i)));
        (0..self.crashes.len()).for_each(|i| less.push(|s| _ = s.crashes.remove(i)));
        (1..self.files.len()).for_each(|i| less.push(|s| _ = s.files.remove(i)));
        (0..self.files.len()).for_each(|i| less.push(|s| s.files[i].boards = s.files[i].boards.div_ceil(2)));
        (0..self.files.len()).for_each(|i| less.push(|s| s.files[i].damage = None));
        (1..self.second.len()).for_each(|i| less.push(|s| _ = s.second.remove(i)));
        (0..self.second.len()).for_each(|i| less.push(|s| s.second[i].boards = s.second[i].boards.div_ceil(2)));
        less.push(|s| s.batches = s.batches.div_ceil(2));
        less.push(|s| s.reservoir /= 2);
        less.push(|s| s.epochs = 1);
        less.push(|s| s.ranks = (1, 0));
        less.push(|s| (s.lanes, s.ranks) = (1, (1, 0)));
        less.push(|s| s.threads = (1, 1));
        less.found()
    }
}
