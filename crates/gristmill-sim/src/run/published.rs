//! A run whose states lie on a disk, as `Engine::save` publishes them: its first process, and one that begins on what a crash left.
//! Marks say what the consumer had before the crash: a file for each batch that it got, and for each state that was saved.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use gristmill_engine::{Engine, Missing};

use super::{After, Found, Got, Run, bytes};
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
        File::create(self.root.join(format!("marks/{what}-{number}"))).map(drop).map_err(of_disk)
    }

    /// The numbers of one kind of mark among names.
    pub(crate) fn marked(names: &[PathBuf], what: &str) -> Option<u64> {
        let number =
            |name: &PathBuf| name.to_str()?.strip_prefix("marks/")?.strip_prefix(what)?.strip_prefix('-')?.parse().ok();
        names.iter().filter_map(number).max()
    }

    /// The batch that the state which is there resumes with; none where there is none.
    pub(crate) fn stands(&self) -> Found<Option<u64>> {
        let step = |name: String| name.strip_prefix("step-")?.strip_suffix(".rank-0-of-1.json")?.parse().ok();
        let path = self.root.join(self.state());
        if self.steps {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            return Ok(entries.filter_map(|entry| step(entry.file_name().into_string().ok()?)).max());
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

    /// The consumer got the batch before `next`, and saves a state now and then.
    pub(crate) fn save(&self, loader: &dyn Engine, next: u64) -> Found<()> {
        self.marks("given", next)?;
        if !next.is_multiple_of(self.every) {
            return Ok(());
        }
        loader.save(&self.root.join(self.state())).map_err(|e| format!("no state: {e}"))?;
        self.marks("saved", next)
    }
}

impl Given {
    /// The first batches.
    pub(crate) fn first(&self, many: u64) -> Self {
        Given(self.0.iter().take(many as usize).cloned().collect())
    }
}

/// One process. `before`: what a consumer got of the processes before this one, which comes as it came then; none for the first, whose
/// files come as the scenario says. `compared`: all that comes against the pages, too. What the consumer has then.
pub(crate) fn process(s: &Scenario, publishing: &Publishing, before: Option<Given>, compared: bool) -> Found<Given> {
    let mut run = Run::new(s, Some(publishing.folder()));
    run.publishes = Some(publishing);
    for file in &s.files {
        run.disk.write(&file.name, bytes(file), true);
    }
    let number = u64::from(before.is_some());
    if let Some(before) = before {
        (run.got, run.next_deed) = (before.0, s.deeds.len());
        for (_, deed) in &s.deeds {
            if let Deed::Arrive(file) = deed {
                run.disk.write(&file.name, bytes(file), true);
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
