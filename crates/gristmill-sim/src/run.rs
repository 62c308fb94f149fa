//! A scenario -> whether the production chain did in it what the pages say, and which faults met which states.
//! Drives the loader by its public calls alone; every batch is compared to the byte with the oracle's.

mod arrivals;
mod deeds;
mod journal;
mod ledger;
pub(crate) mod published;
pub(crate) mod turns;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gristmill_engine::pipeline::{StageMetrics, promise};
use gristmill_engine::{Batch, DataLoader, Error, Missing, Next};

use crate::case::{Case, Outcome, PATIENCE, folder, revert, written};
use crate::chooser::Chooser;
use crate::coverage::{Coverage, Fault, State};
use crate::disk::Disk;
use crate::memory;
use crate::oracle::{self, Board};
use crate::scenario::{EVENTFUL, Given, SECOND, Scenario};
use crate::world::World;
use published::Publishing;

/// Steps without a batch after which the run checks whether the limit makes draws wait for files.
const LIMITED: u64 = 2_000;

/// Bytes of a promise that are for the program itself, its threads and an interpreter.
const PROGRAM: u64 = 64 << 20;

/// Steps within which all that runs in rounds ends after a stop.
const STOPPED: u64 = 2_000;

/// A batch as bytes: number, rows, columns.
#[derive(Clone)]
pub(crate) struct Got {
    number: u64,
    rows: usize,
    columns: Vec<Vec<u8>>,
}

impl Got {
    fn of(batch: &Batch) -> Self {
        let columns = batch.columns.iter().map(|column| column.bytes().to_vec()).collect();
        Got { number: batch.number, rows: batch.rows, columns }
    }
}

struct Run<'a> {
    scenario: &'a Scenario,
    folder: Option<PathBuf>,
    disk: Arc<Disk>,
    /// That of the second directory.
    second: Arc<Disk>,
    step: u64,
    /// The step from which nothing is wrong any more.
    calm: u64,
    next_deed: usize,
    /// Steps with the state that the world aims at, and whether what it aims was done.
    passed: u64,
    aimed: bool,
    /// How the process ends now, if it does.
    ending: Option<Fault>,
    stalled: u64,
    /// Polls for notices in each directory before all troubles ended.
    mended: Option<[u64; 2]>,
    /// Files of which only a part is there, each with the number of its directory.
    growing: Vec<(usize, Given)>,
    /// What came, by number: a batch that comes again must be the same.
    got: Vec<Got>,
    ended: Option<u64>,
    /// Why no batch follows, where the oracle must find none either.
    refusal: Option<String>,
    crashes: Vec<u64>,
    /// Whether a process crashed.
    crashed: bool,
    compared: u64,
    /// Batches that survive: those before the state that the last process resumed from, and what it gave.
    stands: u64,
    unsignalled: u64,
    /// Where the processes publish their states, if they do.
    publishes: Option<&'a Publishing>,
}

type Found<T> = Result<T, String>;

/// What follows a process.
enum After {
    Nothing,
    /// Another, from this state or from the beginning.
    Another(Option<String>),
}

impl Case for Scenario {
    fn run(&self) -> Outcome {
        run(self)
    }

    fn promise(&self) -> Option<u64> {
        promise(&self.config(None).ok()?).ok()?.checked_sub(PROGRAM)
    }

    fn smaller(&self) -> Vec<Self> {
        Scenario::smaller(self)
    }
}

/// Runs a scenario.
pub fn run(scenario: &Scenario) -> Outcome {
    let needs = scenario.watch || scenario.ledger;
    let folder = needs.then(folder).transpose();
    let folder = match folder {
        Ok(folder) => folder,
        Err(e) => return Outcome::failed(format!("no folder for the journal: {e}")),
    };
    let mut run = Run::new(scenario, folder.as_ref().map(|folder| folder.path().to_owned()));
    for file in &scenario.files {
        run.disk.write(&file.name, file.bytes(), true);
    }
    let failure = run.whole().err();
    Outcome {
        failure,
        coverage: run.met(),
        steps: run.step,
        batches: run.compared,
        unsignalled: run.unsignalled,
        noted: run.got.iter().flat_map(|got| &got.columns).map(|column| column.len() as u64).sum(),
        ..Outcome::default()
    }
}

impl<'a> Run<'a> {
    fn new(scenario: &'a Scenario, folder: Option<PathBuf>) -> Self {
        let mut crashes = scenario.crashes.clone();
        crashes.sort_unstable();
        crashes.reverse();
        let second = Disk::default();
        scenario.second.iter().for_each(|file| second.write(&file.name, file.bytes(), true));
        Run {
            scenario,
            folder,
            disk: Arc::default(),
            second: Arc::new(second),
            step: 0,
            calm: EVENTFUL,
            next_deed: 0,
            passed: 0,
            aimed: false,
            ending: None,
            stalled: 0,
            mended: None,
            growing: Vec::new(),
            got: Vec::new(),
            ended: None,
            refusal: None,
            crashes,
            crashed: false,
            compared: 0,
            stands: 0,
            unsignalled: 0,
            publishes: None,
        }
    }

    /// One process after the other, until all batches were taken; then all of them against the oracle.
    fn whole(&mut self) -> Found<()> {
        let mut state = None;
        for process in 0.. {
            if process > 0 {
                self.disk = Arc::new(self.disk.again());
                self.second = Arc::new(self.second.again());
                self.reached(State::Resumed);
            }
            match self.process(process, state)? {
                After::Nothing => break,
                After::Another(from) => state = from,
            }
        }
        self.compare()
    }

    /// One process; whether it crashed, and what the next one resumes from.
    fn process(&mut self, process: u64, state: Option<String>) -> Found<After> {
        let chooser = Chooser::new(self.scenario.seed).apart(process + 1);
        let world = World::new(chooser.clone(), Arc::clone(&self.disk), Some((SECOND, Arc::clone(&self.second))));
        let config = self.scenario.config(self.folder.as_deref());
        let loader = config.and_then(|config| DataLoader::within(config, Arc::clone(&world) as _));
        let loader = loader.map_err(|e| format!("the configuration is refused: {e}"))?;
        let before = self.met();
        let done = self.drive(&loader, &world, chooser.apart(7), state);
        let said = if matches!(done, Ok(After::Nothing)) { said(&loader, &before, &self.met()) } else { Ok(()) };
        let crashed = matches!(done, Ok(After::Another(_)));
        if crashed {
            // Threads end where they stand, and nobody says goodbye.
            world.clear();
        }
        let stopped = self.stop(&loader, &world, crashed);
        world.clear();
        let done = done?;
        stopped?;
        said?;
        Ok(done)
    }

    fn drive(
        &mut self,
        loader: &DataLoader,
        world: &World,
        mut chooser: Chooser,
        state: Option<String>,
    ) -> Found<After> {
        let resumed = state.is_some();
        if let Some(state) = &state {
            loader.restore_with(state, Missing::Refuse).map_err(|e| format!("its own state is refused: {e}"))?;
        }
        if let Some(publishes) = self.publishes {
            self.stands = publishes.load(loader)?;
        }
        // The newest states, each with the number of the batch that it resumes at. The last state is the newest.
        let mut states: Vec<(u64, String)> = state.into_iter().map(|state| (self.stands, state)).collect();
        // Batches that the consumer keeps for a while, and what they were when they came.
        let mut kept: VecDeque<(Batch, Got)> = VecDeque::new();
        let mut since = 0_u64;
        let mut early = self.scenario.early.map(|early| (self.step + early.step, early.replaces));
        loop {
            self.step += 1;
            since += 1;
            self.deeds(loader);
            // A loader that has begun has metrics.
            if let Some((_, replaces)) =
                early.take_if(|(at, _)| self.step >= *at && !loader.metrics().stages.is_empty())
            {
                states.truncate(if replaces { 0 } else { states.len() });
                match self.publishes {
                    Some(publishes) => publishes.begins(loader, self.stands)?,
                    None => states.push((self.stands, state_before(loader, self.stands)?)),
                }
            }
            if self.scenario.stop_at.is_some_and(|at| self.step >= at) {
                self.ending = Some(Fault::Stopped);
            }
            if let Some(ending) = self.ending.take() {
                return Ok(self.ends(ending, states, loader));
            }
            if let Some(broke) = world.broke() {
                return Err(broke);
            }
            if since.is_multiple_of(LIMITED) && self.step > self.calm + LIMITED && self.waits_for_files()? {
                return Ok(After::Nothing);
            }
            // Once nothing is wrong any more, every task that can run does run.
            let patience = self.publishes.map_or(PATIENCE, |publishes| publishes.patience);
            if since > patience && self.step > self.calm + patience {
                return Err(format!("no batch in {patience} steps: {:?}", loader.io_errors()));
            }
            // Where all threads sleep, whether the consumer waits is known only if it asks.
            if self.stalled > 0 || chooser.below(4) > 0 && !world.sleeps() {
                if self.stalled > 0 {
                    self.stalled -= 1;
                    world.hungers(false);
                }
                world.step();
                continue;
            }
            let next = match loader.next("", Some(Duration::ZERO)) {
                Ok(next) => next,
                Err(error) => match self.refused(&error)? {
                    Some(after) => return Ok(after),
                    None => continue,
                },
            };
            match next {
                Next::Pending => {
                    world.hungers(true);
                    world.step();
                }
                Next::End => {
                    self.ended = Some(self.got.len() as u64);
                    return Ok(After::Nothing);
                }
                Next::Batch(batch) => {
                    world.hungers(false);
                    (since, early) = (0, None);
                    if !resumed {
                        self.reached(State::Running);
                    }
                    let number = batch.number;
                    let got = Got::of(&batch);
                    self.take(got.clone())?;
                    kept.push_back((batch, got));
                    if kept.len() > self.scenario.keeps
                        && let Some((batch, got)) = kept.pop_front()
                        && Got::of(&batch).columns != got.columns
                    {
                        return Err(format!("batch {} changed while the consumer kept it", batch.number));
                    }
                    self.stands = number + 1;
                    match self.publishes {
                        Some(publishes) => publishes.save(loader, number + 1)?,
                        None => states.push((number + 1, state_before(loader, number + 1)?)),
                    }
                    if self.crashes.last() == Some(&number) {
                        self.crashes.pop();
                        return Ok(self.ends(Fault::Crashed, states, loader));
                    }
                    states.drain(..states.len().saturating_sub((self.scenario.stale as usize).saturating_add(1)));
                    if number + 1 >= self.scenario.batches {
                        if !self.all_came()? {
                            self.searches(world);
                            continue;
                        }
                        self.unsignalled = self.count_unsignalled(world);
                        self.lists_what_was_lost(world)?;
                        return match self.unsignalled {
                            0 => Ok(After::Nothing),
                            _ => {
                                Err("a thread found a task only by waking by itself, while the consumer waited".into())
                            }
                        };
                    }
                }
            }
        }
    }

    /// The process ends: it is stopped, or crashes and another one resumes from one of its states.
    fn ends(&mut self, how: Fault, mut states: Vec<(u64, String)>, loader: &DataLoader) -> After {
        self.disk.met(how);
        self.note(loader);
        if how == Fault::Stopped {
            return After::Nothing;
        }
        self.crashed = true;
        states.truncate(states.len().saturating_sub(self.scenario.stale as usize).max(1));
        let state = states.pop().filter(|_| !self.scenario.begins_again);
        self.stands = state.as_ref().map_or(0, |(next, _)| *next);
        After::Another(state.map(|(_, state)| state))
    }

    /// Takes a batch: the next, or again one that came before a crash.
    fn take(&mut self, got: Got) -> Found<()> {
        let place = got.number as usize;
        match self.got.get(place) {
            Some(before) if before.rows != got.rows || before.columns != got.columns => {
                Err(format!("batch {place} came again after a crash, and differs"))
            }
            Some(_) => Ok(()),
            None if place == self.got.len() => {
                self.got.push(got);
                Ok(())
            }
            None => Err(format!("batch {place} came after {} batches", self.got.len())),
        }
    }

    /// Tasks that nobody was woken for while the consumer waited. Files that are tried again later are the exception.
    fn count_unsignalled(&self, world: &World) -> u64 {
        let met = self.met();
        let rests = [
            Fault::Broken,
            Fault::Forbidden,
            Fault::Away,
            Fault::Throttled,
            Fault::Replaced,
            Fault::Renamed,
            Fault::Vanished,
            Fault::Grew,
        ];
        if rests.iter().any(|fault| met.of(*fault) > 0) { 0 } else { world.unsignalled() }
    }

    /// The loader ended with an error: only where the pages say so.
    fn refused(&mut self, error: &Error) -> Found<Option<After>> {
        let text = error.to_string();
        // Files that its state needs are not what they were: it says so, and what it gave before is compared.
        let met = self.met();
        let changed = [Fault::Grew, Fault::Stale, Fault::Replaced, Fault::Vanished, Fault::Renamed];
        if text.contains("saved state does not fit") && changed.iter().any(|fault| met.of(*fault) > 0) {
            return Ok(Some(After::Nothing));
        }
        // All chunks were bad, and others have come since: the stream continues.
        if text.contains("chunks are bad") && self.has_next()? {
            return Ok(None);
        }
        if ["bad", "lane", "no game", "no chunk", "rate_limit"].iter().any(|word| text.contains(word)) {
            self.refusal = Some(text);
            return Ok(Some(After::Nothing));
        }
        Err(format!("it ended with an error: {text}"))
    }

    /// Stops the loader: what ran ends within a bounded number of steps. After a crash nothing runs.
    fn stop(&mut self, loader: &DataLoader, world: &World, crashed: bool) -> Found<()> {
        let copies = self.folder.as_ref().filter(|_| crashed).map(|folder| written(folder));
        let hung = loader.stop();
        if !hung.is_empty() {
            return Err(format!("threads hang where there are none: {hung:?}"));
        }
        // What the end of this process wrote, a crashed one did not.
        revert(copies.unwrap_or_default(), self.scenario.torn).map_err(|e| e.to_string())?;
        for _ in 0..STOPPED {
            if world.is_quiet() {
                return Ok(());
            }
            world.step();
        }
        Err(format!("something still runs {STOPPED} steps after the stop"))
    }

    /// What decides the stream, as the oracle takes it.
    fn stream(&self) -> oracle::Stream {
        let s = self.scenario;
        oracle::Stream {
            seed: s.seed,
            pool: s.pool,
            law: s.law,
            limit: s.limit,
            epochs: s.epochs.into(),
            rate: s.rate,
            count: s.count.map(u64::from),
            reservoir: s.reservoir as u64,
            lanes: s.lanes.into(),
            ranks: (s.ranks.0.into(), s.ranks.1.into()),
            batch: s.share(),
            weights: s.weights,
        }
    }

    /// All that came against all that must.
    fn compare(&mut self) -> Found<()> {
        let s = self.scenario;
        let stream = self.stream();
        let directories = self.directories()?;
        let beyond = self.ended.is_some() || self.refusal.is_some();
        let most = (self.got.len() + usize::from(beyond)) * s.share();
        let (rows, files) = memory::aside(|| stream.rows(&directories, most));
        let board = |row: &oracle::Row| -> Board {
            files[row.0][row.1].chunks[row.2].as_ref().map(|boards| boards[row.3]).unwrap_or([0; 32])
        };
        let drops = s.last == gristmill_engine::config::LastBatch::Drop;
        let whole = if drops { rows.len() / s.share() } else { rows.len().div_ceil(s.share()) };
        if self.ended.is_some_and(|ended| ended != whole as u64) {
            return Err(format!("it ended after {:?} batches of {whole}", self.ended));
        }
        if let Some(refusal) = self.refusal.as_ref().filter(|_| rows.len() == most) {
            return Err(format!("it ended with an error where the pages have another batch: {refusal}"));
        }
        for got in &self.got {
            let expected: Vec<Board> =
                rows.iter().skip(got.number as usize * s.share()).take(s.share()).map(board).collect();
            let pads = s.last == gristmill_engine::config::LastBatch::Pad;
            let shown = if pads { s.share() } else { expected.len() };
            let columns = oracle::columns(&expected, shown);
            if got.rows != expected.len() || got.columns != columns {
                let detail = format!("{} rows of {}", got.rows, expected.len());
                return Err(format!("batch {} is not what the pages say: {detail}", got.number));
            }
            self.compared += 1;
        }
        match self.folder.as_ref().filter(|_| s.ledger) {
            Some(folder) => ledger::check(&folder.join(s.of_rank("ledger")), s, (&rows, &files), self.stands),
            None => Ok(()),
        }
    }
}

/// The state of a loader, which says that this batch comes next.
fn state_before(loader: &DataLoader, batch: u64) -> Found<String> {
    let state = loader.state().map_err(|e| format!("no state: {e}"))?;
    let json: serde_json::Value = serde_json::from_str(&state).map_err(|e| format!("a state is no JSON: {e}"))?;
    let chains = json["outputs"].as_object().ok_or("a state without outputs")?;
    match chains.values().find(|chain| chain["batch"] != batch) {
        Some(chain) => Err(format!("a state after batch {} says that batch {} comes next", batch - 1, chain["batch"])),
        None => Ok(state),
    }
}

/// No fault is silent: what could not be read is counted, by its kind or among the faults of the folder.
fn said(loader: &DataLoader, before: &Coverage, after: &Coverage) -> Found<()> {
    let metrics = loader.metrics();
    let of_folder = |stage: &StageMetrics| stage.count("faults").is_some_and(|faults| faults.total > 0);
    // Of a loader that was stopped before it ran there are no metrics.
    if metrics.stages.is_empty() || metrics.stages.iter().any(of_folder) {
        return Ok(());
    }
    // One error may hide another of the same file: any is enough.
    let of_reading = [Fault::Broken, Fault::Forbidden, Fault::Away, Fault::Throttled];
    let met = of_reading.into_iter().find(|fault| after.of(*fault) > before.of(*fault));
    if let Some(fault) = met.filter(|_| metrics.io_errors.by_kind.is_empty()) {
        return Err(format!("files could not be read ({fault:?}), and nothing says so"));
    }
    Ok(())
}
