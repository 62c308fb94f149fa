//! A training that saves states, by a stream or by rows -> after every crash the state on the disk is a whole one, none older than the last
//! that was saved; the next process resumes from it, gives the batches of an undisturbed run, and the ledger proves each of them once.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::kept::{Keeps, Left};
use super::process::{Deed, Ended};
use crate::case::{PATIENCE, folder};
use crate::chooser::Chooser;
use crate::less::Less;
use crate::rows::{published as rows, scenario as of_rows};
use crate::run::published::{self as stream, Given, Publishing};
use crate::scenario::{Deed as Happens, Scenario};

/// Steps without a batch after which a process gives up that the disk may refuse everything.
const REFUSED: u64 = 600;

/// What a process does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Training {
    /// The number of the world.
    seed: u64,
    /// Whether it is of rows, and not of a stream.
    rows: bool,
    /// Batches that are taken at most.
    batches: u64,
    /// Batches from one state to the next.
    every: u64,
    /// Whether states are steps in a folder.
    steps: bool,
    /// Whether there is a ledger.
    ledger: bool,
    /// Ranks that share the stream.
    ranks: u32,
}

impl Training {
    fn publishing(&self, root: &Path) -> Publishing {
        let steps = self.steps || self.ranks > 1;
        let (root, ranks) = (root.to_owned(), (self.ranks, 0));
        Publishing { root, steps, every: self.every, patience: PATIENCE, ranks, turns: None }
    }

    /// The world of a stream for each rank: its files come, and nothing fails. Where several share it, all files are there.
    fn streams(&self) -> Vec<Scenario> {
        let mut s = Scenario::new(self.seed);
        s.files.iter_mut().for_each(|file| file.damage = None);
        s.deeds.retain_mut(|(_, deed)| match deed {
            Happens::Arrive(file) => {
                file.damage = None;
                true
            }
            _ => false,
        });
        s.crashes.clear();
        s.aim = None;
        (s.stop_at, s.limit, s.begins_again, s.torn, s.stale, s.ranks) = (None, None, false, 0, 0, (1, 0));
        (s.batches, s.ledger) = (self.batches, self.ledger);
        if self.ranks == 1 {
            return vec![s];
        }
        s.deeds.clear();
        (s.watch, s.pool, s.lanes) = (false, Some(s.pool.unwrap_or(4)), self.ranks);
        s.batch = s.batch.next_multiple_of(self.ranks as usize);
        (0..self.ranks).map(|rank| Scenario { ranks: (self.ranks, rank), ..s.clone() }).collect()
    }

    /// The world of rows: one process, and nothing fails.
    fn of_rows(&self) -> of_rows::Scenario {
        let mut s = of_rows::Scenario::new(self.seed);
        s.starts.truncate(1);
        for start in &mut s.starts {
            (start.ranks, start.ahead, start.broken, start.batches) = (1, 0, None, self.batches);
        }
        (s.seek, s.ledger) = (0, self.ledger);
        s
    }

    /// What each rank of an undisturbed process gets; of rows the oracle knows it.
    fn undisturbed(&self) -> Result<Vec<Given>, String> {
        let folder = folder().map_err(|e| e.to_string())?;
        let publishing = self.publishing(folder.path());
        publishing.prepare()?;
        match self.rows {
            true => rows::process(&self.of_rows(), &publishing, 0, true).map(|()| Vec::new()),
            false => {
                // A process that resumes from the last state takes one batch more, and so may the one after it.
                let longer = Training { batches: self.batches + 3, ..self.clone() };
                stream::ranks(&longer.streams(), &publishing, None, true)
            }
        }
    }
}

/// Whether files come while a process runs. A machine that crashes may lose when they did, but for what a state rests on: the next process
/// may then take them in before other draws.
fn arrive(worlds: &[Scenario]) -> bool {
    worlds.iter().any(|world| !world.deeds.is_empty())
}

impl Deed for Training {
    const NAME: &'static str = "train";

    fn does(&self, root: &Path, again: bool) -> Result<(), Ended> {
        let publishing = Publishing { patience: REFUSED, ..self.publishing(root) };
        if again && self.any_is_lost(&publishing, "ended").map_err(Ended::Wrong)? {
            self.without_ledgers(root).map_err(|e| Ended::Wrong(e.to_string()))?;
        }
        if self.rows {
            return rows::process(&self.of_rows(), &publishing, u64::from(again), false).map_err(Ended::Refused);
        }
        let worlds = self.streams();
        let mut given = again.then(|| self.undisturbed()).transpose().map_err(Ended::Wrong)?;
        if arrive(&worlds) {
            let stands = publishing.stands().map_err(Ended::Wrong)?.unwrap_or(0);
            given.iter_mut().flatten().for_each(|given| *given = given.first(stands));
        }
        stream::ranks(&worlds, &publishing, given.as_deref(), false).map(drop).map_err(Ended::Refused)
    }
}

impl Keeps for Training {
    const PURPOSE: u64 = 0x7374_6174;

    type Known = Vec<Given>;

    fn drawn(c: &mut Chooser) -> Self {
        let batches = c.within(2, 6);
        let drawn = Training {
            seed: c.bits() >> 1,
            rows: c.once_in(2),
            batches,
            every: c.within(1, 3),
            steps: c.once_in(2),
            ledger: !c.once_in(4),
            ranks: 1,
        };
        let shared = !drawn.rows && Chooser::new(drawn.seed).apart(0x7261_6e6b).once_in(2);
        Training { ranks: if shared { 2 } else { 1 }, ..drawn }
    }

    fn prepare(&self, root: &Path) -> Result<Vec<Given>, String> {
        self.publishing(root).prepare()?;
        self.undisturbed()
    }

    fn judge(&self, root: &Path, known: &Vec<Given>, left: &Left<'_>) -> Result<(), String> {
        let publishing = self.publishing(root);
        let stands = publishing.stands()?;
        // What every rank has.
        let marked = |what: &str| {
            (0..self.ranks).map(|rank| Publishing::marked(&left.made, what, rank)).min().unwrap_or_default()
        };
        let (given, saved) = (marked("given"), marked("saved"));
        if stands < saved {
            return Err(format!(
                "the state before batch {saved:?} was saved, and that before batch {stands:?} is there"
            ));
        }
        if stands > given.max(Some(0)) {
            return Err(format!("the state is of batch {stands:?}, and the consumer got those before {given:?}"));
        }
        let journal = publishing.folder().join("journal");
        if !self.rows && self.streams()[0].watch && given.is_some() && !journal.exists() {
            return Err("the consumer got a batch, and no journal is there".to_owned());
        }
        let process = || match self.rows {
            true => rows::process(&self.of_rows(), &publishing, 1, true),
            false => {
                let worlds = self.streams();
                if !left.is_of_one && arrive(&worlds) {
                    // Files came between two crashes: what the second process gave, only that one knows.
                    return Ok(());
                }
                let first = |(rank, known): (u32, &Given)| match left.lost && arrive(&worlds) {
                    true => known.first(stands.unwrap_or(0)),
                    false => known.first(Publishing::marked(&left.made, "given", rank).unwrap_or(0)),
                };
                let before: Vec<Given> = (0..).zip(known).map(first).collect();
                stream::ranks(&worlds, &publishing, Some(&before), true).map(drop)
            }
        };
        if (0..self.ranks)
            .try_fold(true, |all, rank| Ok::<_, String>(all && self.is_lost(&publishing, "state", rank)?))?
        {
            return Err("the ledger says that a state was given out, and none is there".to_owned());
        }
        if self.any_is_lost(&publishing, "ended")? {
            match process() {
                Err(e) if e.contains("the ledger of a run that has ended") => {
                    self.without_ledgers(root).map_err(|e| e.to_string())?
                }
                other => return Err(format!("the run has ended without a state, and a new one begins: {other:?}")),
            }
        }
        process()
    }

    fn less(&self) -> Vec<Self> {
        let mut less = Less::of(self);
        less.push(|s| s.ledger = false);
        less.push(|s| s.steps = false);
        less.push(|s| s.ranks = 1);
        less.push(|s| s.batches = s.batches.div_ceil(2));
        less.push(|s| s.every = 1);
        less.found()
    }
}

impl Training {
    fn ledger(&self, root: &Path, rank: u32) -> PathBuf {
        let run = root.join("run");
        if self.ranks == 1 { run.join("ledger") } else { run.join(format!("ledger.{rank}-of-{}", self.ranks)) }
    }

    /// The user takes the ledgers away.
    fn without_ledgers(&self, root: &Path) -> std::io::Result<()> {
        let gone = |rank| match fs::remove_file(self.ledger(root, rank)) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        };
        (0..self.ranks).try_for_each(gone)
    }

    fn any_is_lost(&self, publishing: &Publishing, kind: &str) -> Result<bool, String> {
        (0..self.ranks).try_fold(false, |any, rank| Ok(any || self.is_lost(publishing, kind, rank)?))
    }

    /// Whether there is no state, and the ledger of a rank has a record of this kind. A run that gave out no state begins again by itself;
    /// one that ended does so once the user has taken its ledger away (ledger.md).
    fn is_lost(&self, publishing: &Publishing, kind: &str, rank: u32) -> Result<bool, String> {
        let bytes = match fs::read(self.ledger(&publishing.root, rank)) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(false),
            bytes => bytes.map_err(|e| e.to_string())?,
        };
        let start = format!("{{\"{kind}\":");
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').filter_map(|line| line.strip_suffix(b"\n"));
        // Up to the first line that was not written.
        let mut whole = lines.by_ref().take_while(|line| !line.contains(&0));
        let says = whole.any(|line| line.get(17..).is_some_and(|json| json.starts_with(start.as_bytes())));
        Ok(says && publishing.stands()?.is_none())
    }
}
