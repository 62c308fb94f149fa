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
}

impl Training {
    fn publishing(&self, root: &Path) -> Publishing {
        Publishing { root: root.to_owned(), steps: self.steps, every: self.every, patience: PATIENCE }
    }

    /// The world of a stream: its files come, and nothing fails.
    fn stream(&self) -> Scenario {
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
        s
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

    /// What the consumer of an undisturbed process gets; of rows the oracle knows it.
    fn undisturbed(&self) -> Result<Given, String> {
        let folder = folder().map_err(|e| e.to_string())?;
        let publishing = self.publishing(folder.path());
        publishing.prepare()?;
        match self.rows {
            true => rows::process(&self.of_rows(), &publishing, 0, true).map(|()| Given::default()),
            false => Ok(stream::process(&self.stream(), &publishing, None, true)?),
        }
    }
}

impl Deed for Training {
    const NAME: &'static str = "train";

    fn does(&self, root: &Path, again: bool) -> Result<(), Ended> {
        let publishing = Publishing { patience: REFUSED, ..self.publishing(root) };
        if again && is_lost(&publishing, "ended").map_err(Ended::Wrong)? {
            fs::remove_file(ledger(root)).map_err(|e| Ended::Wrong(e.to_string()))?;
        }
        if self.rows {
            return rows::process(&self.of_rows(), &publishing, u64::from(again), false).map_err(Ended::Refused);
        }
        let given = again.then(|| self.undisturbed()).transpose().map_err(Ended::Wrong)?;
        stream::process(&self.stream(), &publishing, given, false).map(drop).map_err(Ended::Refused)
    }
}

impl Keeps for Training {
    const PURPOSE: u64 = 0x7374_6174;

    type Known = Given;

    fn drawn(c: &mut Chooser) -> Self {
        let batches = c.within(2, 6);
        Training {
            seed: c.bits() >> 1,
            rows: c.once_in(2),
            batches,
            every: c.within(1, 3),
            steps: c.once_in(2),
            ledger: !c.once_in(4),
        }
    }

    fn prepare(&self, root: &Path) -> Result<Given, String> {
        self.publishing(root).prepare()?;
        self.undisturbed()
    }

    fn judge(&self, root: &Path, known: &Given, left: &Left<'_>) -> Result<(), String> {
        let publishing = self.publishing(root);
        let stands = publishing.stands()?;
        let marked = |what: &str| Publishing::marked(&left.made, what);
        let (given, saved) = (marked("given"), marked("saved"));
        if stands < saved {
            return Err(format!(
                "the state before batch {saved:?} was saved, and that before batch {stands:?} is there"
            ));
        }
        if stands > given {
            return Err(format!("the state is of batch {stands:?}, and the consumer got those before {given:?}"));
        }
        let process = || match self.rows {
            true => rows::process(&self.of_rows(), &publishing, 1, true),
            false => {
                let world = self.stream();
                if !left.is_of_one && !world.deeds.is_empty() {
                    // Files came between two crashes: what the second process gave, only that one knows.
                    return Ok(());
                }
                stream::process(&world, &publishing, Some(known.first(given.unwrap_or(0))), true).map(drop)
            }
        };
        if is_lost(&publishing, "state")? {
            return Err("the ledger says that a state was given out, and none is there".to_owned());
        }
        if is_lost(&publishing, "ended")? {
            match process() {
                Err(e) if e.contains("the ledger of a run that has ended") => {
                    fs::remove_file(ledger(root)).map_err(|e| e.to_string())?
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
        less.push(|s| s.batches = s.batches.div_ceil(2));
        less.push(|s| s.every = 1);
        less.found()
    }
}

fn ledger(root: &Path) -> PathBuf {
    root.join("run/ledger")
}

/// Whether there is no state, and the ledger has a record of this kind. A run that gave out no state begins again by itself; one that
/// ended does so once the user has taken its ledger away (ledger.md).
fn is_lost(publishing: &Publishing, kind: &str) -> Result<bool, String> {
    let bytes = match fs::read(ledger(&publishing.root)) {
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
