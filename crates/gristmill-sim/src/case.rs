//! What every simulated run has, whatever it is of: what it came to, how long it may take, and files that a crash leaves.

use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};

use crate::coverage::Coverage;

/// Steps within which a batch comes once nothing is wrong any more.
pub(crate) const PATIENCE: u64 = 20_000;

/// What a run came to.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// What went wrong.
    pub failure: Option<String>,
    /// Which faults met which states.
    pub coverage: Coverage,
    /// Steps that were made.
    pub steps: u64,
    /// Batches that were compared.
    pub batches: u64,
    /// Disks that a crash or a refusal left.
    pub disks: u64,
    /// Bytes of batches that the consumer noted, so as to compare them.
    pub noted: u64,
    /// Tasks that were found only because a thread woke by itself while the consumer waited.
    pub unsignalled: u64,
}

impl Outcome {
    /// A run that could not begin.
    pub(crate) fn failed(failure: String) -> Self {
        Outcome { failure: Some(failure), ..Outcome::default() }
    }
}

/// A run that one number makes.
pub trait Case: Clone + PartialEq + Debug {
    /// Whether it is a world of rows: what these meet is counted apart.
    const OF_ROWS: bool = false;

    /// Runs it.
    fn run(&self) -> Outcome;

    /// Bytes of memory that a run may take, and gives back when it is over. `None` if nobody measures it.
    fn promise(&self) -> Option<u64> {
        None
    }

    /// Every run that is one thing smaller.
    fn smaller(&self) -> Vec<Self>;
}

/// A folder for what a process writes, in memory where there is one.
pub(crate) fn folder() -> io::Result<tempfile::TempDir> {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }
}

/// The files in a folder, as they are.
pub(crate) fn written(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((entry.path(), std::fs::read(entry.path()).ok()?))).collect()
}

/// Restores files as they were at a crash. The process had written the first `torn` bytes of another line.
pub(crate) fn revert(files: Vec<(PathBuf, Vec<u8>)>, torn: usize) -> io::Result<()> {
    for (path, mut bytes) in files {
        let last = bytes.split_inclusive(|byte| *byte == b'\n').next_back().unwrap_or_default();
        let torn = last[..torn.min(last.len().saturating_sub(1))].to_vec();
        bytes.extend(torn);
        std::fs::write(&path, bytes)?;
    }
    Ok(())
}
