//! A run whose states lie on a disk, as `Engine::save` publishes them: its first process, and one that begins on what a crash left.
//! Marks say what the consumer had before the crash: a file for each batch that it got, and for each state that was saved.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_engine::{Engine, Missing};

use super::turns::{Turns, by_turns};
use super::{After, Found, Got, Run};
use crate::scenario::{Deed, Scenario};

/// Where states are published, and how often.
#[derive(Debug, Clone)]
pub(crate) struct Publishing {
    /// The folder with everything.
    pub(crate) root: PathBuf,
    /// Whether states are steps in a folder.
    pub(crate) steps: bool,
    /// Batches from one state to the next.
    pub(crate) every: u64,
    /// Steps within which a batch comes. A loader that the disk refuses something waits until that is over.
    pub(crate) patience: u64,
    /// Ranks that share the stream, and which of them this is.
    pub(crate) ranks: (u32, u32),
    /// Whose turn it is, where there are several.
    pub(crate) turns: Option<Arc<Turns>>,
}

/// What a consumer got.
#[derive(Clone, Default)]
pub struct Given(Vec<Got>);

fn of_disk(e: std::io::Error) -> String {
    format!("the disk of the simulation: {e}")
}

impl Publishing {
    /// The folder with journal and ledger.
    pub(crate) fn folder(&self) -> PathBuf {
        self.root.join("run")
    }

    /// Where states are, below the root.
    pub(crate) fn state(&self) -> &'static Path {
        Path::new(if self.steps { "states" } else { "state.json" })
    }

    /// Makes the folders.
    pub(crate) fn prepare(&self) -> Found<()> {
        [self.folder(), self.root.join("marks")].iter().try_for_each(fs::create_dir).map_err(of_disk)?;
        if self.steps { fs::create_dir(self.root.join(self.state())).map_err(of_disk) } else { Ok(()) }
    }

    /// Marks that something was done.
    fn marks(&self, what: &str, number: u64) -> Found<()> {
        let name = format!("marks/{what}.{}-{number}", self.ranks.1);
        File::create(self.root.join(name)).map(drop).map_err(of_disk)
    }

    /// The last number of one kind of mark that a rank made, among names.
    pub(crate) fn marked(names: &[PathBuf], what: &str, rank: u32) -> Option<u64> {
        let start = format!("marks/{what}.{rank}-");
        names.iter().filter_map(|name| name.to_str()?.strip_prefix(&start)?.parse().ok()).max()
    }

    /// The batch that the state which is there resumes with, of all ranks; none where there is none.
    pub(crate) fn stands(&self) -> Found<Option<u64>> {
        let path = self.root.join(self.state());
        if self.steps {
            let mut ranks = BTreeMap::<u64, u32>::new();
            for entry in fs::read_dir(path).into_iter().flatten().flatten() {
                let name = entry.file_name().into_string().unwrap_or_default();
                let parts = name.strip_prefix("step-").and_then(|name| name.split_once(".rank-"));
                let Some((step, part)) = parts else { continue };
                if part.strip_suffix(&format!("-of-{}.json", self.ranks.0)).is_some() {
                    *ranks.entry(step.parse().map_err(|e| format!("a step is called {name}: {e}"))?).or_default() += 1;
                }
            }
            return Ok(ranks.into_iter().rev().find(|(_, ranks)| *ranks == self.ranks.0).map(|(step, _)| step));
        }
        let bytes = match fs::read(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            bytes => bytes.map_err(of_disk)?,
        };
        let json: serde_json::Value = serde_json::from_slice(&bytes).map_err(|e| format!("the state is torn: {e}"))?;
        // Of rows a state has its batch, of a stream it has that of each output.
        let of_output = || json["outputs"].as_object()?.values().next()?["batch"].as_u64();
        Ok(json["batch"].as_u64().or_else(of_output))
    }

    /// Takes a state over, where one is there.
    pub(crate) fn load(&self, loader: &dyn Engine) -> Found<u64> {
        let Some(stands) = self.stands()? else { return Ok(0) };
        let loaded = loader.load(&self.root.join(self.state()), Missing::Refuse);
        loaded.map(|()| stands).map_err(|e| format!("its own state is refused: {e}"))
    }

    /// The consumer saves a state before the first batch of its process, which is batch `next`.
    pub(crate) fn begins(&self, loader: &dyn Engine, next: u64) -> Found<()> {
        loader.save(&self.root.join(self.state())).map_err(|e| format!("no state: {e}"))?;
        self.marks("saved", next)
    }

    /// The consumer got the batch before `next`, and saves a state now and then.
    pub(crate) fn save(&self, loader: &dyn Engine, next: u64) -> Found<()> {
        self.marks("given", next)?;
        if next.is_multiple_of(self.every) {
            loader.save(&self.root.join(self.state())).map_err(|e| format!("no state: {e}"))?;
            self.marks("saved", next)?;
        }
        self.turns.as_ref().map_or(Ok(()), |turns| turns.pass(self.ranks.1))
    }
}

impl Given {
    /// The first batches.
    pub(crate) fn first(&self, many: u64) -> Self {
        Given(self.0.iter().take(many as usize).cloned().collect())
    }
}

/// One process of all ranks, each with its world, which take their batches by turns. `before` and what comes: of each rank.
pub(crate) fn ranks(
    worlds: &[Scenario],
    publishing: &Publishing,
    before: Option<&[Given]>,
    compared: bool,
) -> Found<Vec<Given>> {
    let before = |rank: usize| before.and_then(|before| before.get(rank).cloned());
    if let [world] = worlds {
        return process(world, publishing, before(0), compared).map(|given| vec![given]);
    }
    let ranks = worlds.len() as u32;
    by_turns(ranks, |rank, turns| {
        let own = Publishing { ranks: (ranks, rank), turns: Some(Arc::clone(turns)), ..publishing.clone() };
        process(&worlds[rank as usize], &own, before(rank as usize), compared)
    })
}

/// One process of one rank. `before`: what a consumer got of the processes before this one, which comes as it came then; none for the first, whose
/// files come as the scenario says. `compared`: all that comes against the pages, too. What the consumer has then.
pub(crate) fn process(s: &Scenario, publishing: &Publishing, before: Option<Given>, compared: bool) -> Found<Given> {
    let mut run = Run::new(s, Some(publishing.folder()));
    run.publishes = Some(publishing);
    for file in &s.files {
        run.disk.write(&file.name, file.bytes(), true);
    }
    let number = u64::from(before.is_some());
    if let Some(before) = before {
        (run.got, run.next_deed) = (before.0, s.deeds.len());
        for (_, deed) in &s.deeds {
            if let Deed::Arrive(file) = deed {
                run.disk.write(&file.name, file.bytes(), true);
            }
        }
    }
    match run.process(number, None)? {
        After::Nothing if compared => run.compare()?,
        After::Nothing => {}
        After::Another(_) => return Err("a process crashed that was not to".to_owned()),
    }
    Ok(Given(run.got))
}
