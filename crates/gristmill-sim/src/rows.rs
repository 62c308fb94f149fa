//! A scenario over rows of a pack -> whether the production loader did in it what the pages say, for each rank of each start.
//! Drives the loader by its public calls alone; every batch is compared to the byte with the oracle's.

mod ledger;
pub(crate) mod published;
pub mod scenario;
mod table;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gristmill_engine::table::{IndexInput, Recipe};
use gristmill_engine::{Batch, Error, IndexLoader, Next};
use gristmill_format::bullet::KIND;

use crate::boards::board;
use crate::case::{Case, Outcome, PATIENCE, folder, revert, written};
use crate::chooser::Chooser;
use crate::coverage::{Fault, State};
use crate::disk::{Disk, Meanwhile};
use crate::oracle::{self, Board, rows::Rows};
use crate::world::World;
use scenario::{Ends, Scenario, Start};
use table::Boards;

type Found<T> = Result<T, String>;

struct Run<'a> {
    scenario: &'a Scenario,
    oracle: Rows,
    folder: Option<PathBuf>,
    disk: Arc<Disk>,
    step: u64,
    compared: u64,
}

/// What one rank of a start came to.
struct Came {
    /// Its states: the one that it began with, and one after each batch that counts.
    states: Vec<String>,
    /// Number of the next batch after these.
    next: u64,
}

impl Case for Scenario {
    const OF_ROWS: bool = true;

    fn run(&self) -> Outcome {
        run(self)
    }

    /// All of it comes back. A loader of rows promises no more.
    fn promise(&self) -> Option<u64> {
        Some(u64::MAX)
    }

    fn smaller(&self) -> Vec<Self> {
        Scenario::smaller(self)
    }
}

/// Runs a scenario.
pub fn run(scenario: &Scenario) -> Outcome {
    let folder = match scenario.ledger.then(folder).transpose() {
        Ok(folder) => folder,
        Err(e) => return Outcome::failed(format!("no folder for the ledger: {e}")),
    };
    let mut run = Run::new(scenario, folder.as_ref().map(|folder| folder.path().to_owned()));
    let failure = run.whole().err();
    let (coverage, steps, batches) = (run.disk.coverage(), run.step, run.compared);
    Outcome { failure, coverage, steps, batches, ..Outcome::default() }
}

impl Came {
    /// The same, with the batch that the last state says comes next, where a batch came.
    fn ended(mut self) -> Found<Self> {
        if let [_, .., last] = &*self.states {
            self.next = batch_of(last)?;
        }
        Ok(self)
    }
}

impl<'a> Run<'a> {
    fn new(scenario: &'a Scenario, folder: Option<PathBuf>) -> Self {
        Run { scenario, oracle: scenario.oracle(), folder, disk: Arc::default(), step: 0, compared: 0 }
    }

    fn whole(&mut self) -> Found<()> {
        let mut state: Option<String> = None;
        let mut stands = self.scenario.seek;
        for (number, start) in self.scenario.starts.iter().enumerate() {
            self.disk.reached(if number == 0 { State::Filling } else { State::Resumed });
            let came: Vec<Came> = (0..start.ranks)
                .map(|rank| self.rank(number as u64, rank, state.as_deref(), stands))
                .collect::<Found<_>>()?;
            // A batch is over when all ranks gave their part of it.
            let common = came.iter().map(|came| came.states.len()).min().unwrap_or(1);
            if (0..common).any(|i| came.iter().any(|other| other.states[i] != came[0].states[i])) {
                return Err("the state of one rank is not that of another".to_owned());
            }
            let last = number + 1 == self.scenario.starts.len();
            let lost = if last { 0 } else { start.lost as usize };
            let from = (common - 1).saturating_sub(lost);
            let text = came[0].states[from].clone();
            stands = batch_of(&text)?;
            if last && came.iter().all(|came| came.states.len() == common) && came[0].next != stands {
                return Err(format!("the last state says batch {stands}, and batch {} follows", came[0].next));
            }
            state = Some(text);
        }
        match &self.folder {
            Some(folder) => ledger::check(folder, self.scenario, &self.oracle, stands),
            None => Ok(()),
        }
    }

    /// One rank of a start, from a state or from where the run begins.
    fn rank(&mut self, number: u64, rank: u64, state: Option<&str>, stands: u64) -> Found<Came> {
        let s = self.scenario;
        let start = &s.starts[number as usize];
        let chooser = Chooser::new(s.seed).apart(1 + number * 64 + rank);
        let (world, table, loader) = self.loader(start, rank, &chooser)?;
        match state {
            Some(state) => loader.restore(state).map_err(|e| format!("its own state is refused: {e}"))?,
            None if s.seek > 0 => loader.seek(s.seek).map_err(|e| format!("batch {} is not reached: {e}", s.seek))?,
            None => {}
        }
        let came = self.drive(&loader, (&world, chooser.apart(7)), (start, rank, stands), &table);
        let copies = self.folder.as_ref().map(|folder| written(folder)).unwrap_or_default();
        self.disk.met(if start.ends == Ends::Crash { Fault::Crashed } else { Fault::Stopped });
        self.note(&loader, &table);
        if start.ends == Ends::Crash {
            // Threads end where they stand, and write nothing more.
            world.clear();
        }
        let hung = loader.stop();
        world.clear();
        if !hung.is_empty() {
            return Err(format!("threads hang where there are none: {hung:?}"));
        }
        if !matches!(loader.next("", Some(Duration::ZERO)), Err(Error::Stopped)) {
            return Err("a loader that was stopped says something else".to_owned());
        }
        if start.ends == Ends::Crash {
            revert(copies, 0).map_err(|e| e.to_string())?;
        }
        came
    }

    /// The loader of one rank of a start, in a world of its own, on a table of its own.
    fn loader(&self, start: &Start, rank: u64, chooser: &Chooser) -> Found<(Arc<World>, Arc<Boards>, IndexLoader)> {
        let s = self.scenario;
        let world = World::new(chooser.clone(), Arc::clone(&self.disk), None);
        let own: Arc<dyn Meanwhile> = Arc::clone(&world) as _;
        let table = Boards::new(s.rows, s.far, start.broken, Arc::downgrade(&own));
        let mut rows = gristmill_engine::runtime::intervals::Intervals::default();
        s.selected.iter().for_each(|(first, end)| rows.push(*first, *end));
        let input = IndexInput {
            table: Arc::clone(&table) as _,
            rows: Arc::new(rows),
            identity: s.rows,
            valuations: Vec::new(),
            recipe: Recipe::all(s.rows),
        };
        let mut config = s.config(start, rank);
        config.ledger = self.folder.as_ref().map(|folder| folder.join("ledger"));
        let loader = IndexLoader::new(input, config).map_err(|e| format!("the configuration is refused: {e}"))?;
        let loader = loader.within(Arc::clone(&world) as _);
        Ok((world, table, loader))
    }

    fn drive(
        &mut self,
        loader: &IndexLoader,
        (world, mut chooser): (&World, Chooser),
        (start, rank, stands): (&Start, u64, u64),
        table: &Boards,
    ) -> Found<Came> {
        let state = || loader.state().map_err(|e| format!("no state: {e}"));
        let mut came = Came { states: vec![state()?], next: stands };
        let (mut next, mut since, mut waiting) = (stands, 0, 0);
        let mut stall = chooser.below(start.stall.max(1));
        while (came.states.len() as u64) <= start.batches {
            (self.step, since) = (self.step + 1, since + 1);
            self.note(loader, table);
            if since > PATIENCE {
                return Err(format!("no batch in {PATIENCE} steps"));
            }
            if let Some(row) = table.unfetched() {
                return Err(format!("row {row} was read before it was fetched"));
            }
            if stall > 0 || chooser.below(4) > 0 && !world.sleeps() {
                if stall > 0 {
                    stall -= 1;
                    world.hungers(false);
                }
                world.step();
                if stall == 1 {
                    self.disk.met(Fault::Stalled);
                }
                continue;
            }
            match loader.take("", Some(Duration::ZERO), start.ahead == 0) {
                Err(error) => {
                    self.failed(&error, (start, rank, self.beyond(next)), table)?;
                    return came.ended();
                }
                Ok(Next::Pending) => {
                    world.hungers(true);
                    world.step();
                }
                Ok(Next::End) => {
                    let (next, batches) = (self.beyond(next), self.oracle.batches());
                    if next < batches {
                        return Err(format!("it ended before batch {next} of {batches}"));
                    }
                    for _ in 0..waiting {
                        loader.count().map_err(|e| format!("a batch does not count: {e}"))?;
                        came.states.push(state()?);
                    }
                    return came.ended();
                }
                Ok(Next::Batch(batch)) => {
                    world.hungers(false);
                    if stands == self.scenario.seek {
                        self.disk.reached(State::Running);
                    }
                    self.compare(&batch, (self.beyond(next), rank, start.ranks))?;
                    (next, since) = (batch.number + 1, 0);
                    stall = chooser.below(start.stall.max(1));
                    waiting += 1;
                    if start.ahead > 0 && came.states.last() != Some(&state()?) {
                        return Err("a batch counts before it is used".to_owned());
                    }
                    if waiting > start.ahead {
                        if start.ahead > 0 {
                            loader.count().map_err(|e| format!("a batch does not count: {e}"))?;
                        }
                        waiting -= 1;
                        came.states.push(state()?);
                    }
                }
            }
        }
        let unsignalled = world.unsignalled();
        world.hungers(false);
        (0..start.idle).for_each(|_| {
            self.note(loader, table);
            world.step();
        });
        match unsignalled {
            0 => came.ended(),
            _ => Err("a thread found a task only by waking by itself, while the consumer waited".to_owned()),
        }
    }

    /// Notes what waits for the consumer, for the faults that were met since the last call.
    fn note(&self, loader: &IndexLoader, table: &Boards) {
        (0..table.newly_met()).for_each(|_| self.disk.met(Fault::Broken));
        self.disk.note(|| State::of_stages(&loader.metrics()));
    }

    /// The first batch from `number` on that is not left out.
    fn beyond(&self, mut number: u64) -> u64 {
        while self.scenario.skips(number) {
            number += 1;
        }
        number
    }

    fn compare(&mut self, batch: &Batch, (number, rank, ranks): (u64, u64, u64)) -> Found<()> {
        if batch.number != number || number >= self.oracle.batches() {
            return Err(format!("batch {} came where the pages have batch {number}", batch.number));
        }
        let (rows, shown) = self.oracle.of(number, rank, ranks);
        let boards: Vec<Board> = rows.iter().map(|(row, _)| board(0, *row as usize)).collect();
        let columns: Vec<&[u8]> = batch.columns.iter().map(|column| column.bytes()).collect();
        if batch.rows != rows.len() || columns != oracle::columns(&boards, shown).each_ref().map(Vec::as_slice) {
            let detail = format!("{} rows of {}", batch.rows, rows.len());
            return Err(format!("batch {number} of rank {rank} of {ranks} is not what the pages say: {detail}"));
        }
        self.compared += 1;
        Ok(())
    }

    /// An error came in place of batch `number`: only where a row of it, or of those that are fetched with it, cannot be read.
    fn failed(&self, error: &Error, (start, rank, number): (&Start, u64, u64), table: &Boards) -> Found<()> {
        let near = if self.scenario.far { 8 } else { 0 };
        let batches = number.saturating_sub(near)..=(number + near).min(self.oracle.batches().saturating_sub(1));
        let touched = |row: u64| {
            batches.clone().any(|number| self.oracle.of(number, rank, start.ranks).0.iter().any(|(own, _)| *own == row))
        };
        if table.met() > 0 && start.broken.is_some_and(touched) {
            return Ok(());
        }
        Err(format!("it ended with an error: {error}"))
    }
}

/// The batch that a state says comes next.
fn batch_of(state: &str) -> Found<u64> {
    let json: serde_json::Value = serde_json::from_str(state).map_err(|e| format!("a state is no JSON: {e}"))?;
    json["batch"].as_u64().ok_or_else(|| format!("a state of {KIND} rows without a batch"))
}
