//! What a process is to do below a folder -> the same, by the production jobs: first as a fresh process, then as one that finds what
//! another left. Both faces of a simulated process: the traced one and the one after the crash.

use std::fs;
use std::path::Path;

use gristmill_jobs::commit::commit;
use gristmill_jobs::merge::{MergeOptions, merge};
use gristmill_jobs::pack::{Existing, PackOptions, pack};
use gristmill_jobs::shares::{CommitOptions, Share};
use serde::{Deserialize, Serialize};

use super::games;
use super::process::{Deed, Ended};
use crate::boards;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verb {
    /// Games become a pack.
    Pack,
    /// A pack takes the place of another.
    Overwrite,
    /// Games are added to a pack.
    Append,
    /// Two packs become one; whether they are deleted.
    Merge(bool),
    /// A pack of this number of shares.
    Shares(u32),
}

/// A whole task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// What is done.
    pub verb: Verb,
    /// Whether the games are boards, which make a chunk pack, and not of 2048, which make a pack of rows.
    pub boards: bool,
    /// How many games.
    pub games: u32,
    /// Rows of a file.
    pub shard_rows: Option<u64>,
    /// Rows between two points to which a killed job can return.
    pub checkpoint_rows: u64,
    /// Worker threads.
    pub workers: usize,
}

/// The folder of the pack, below the root.
pub(super) const OUT: &str = "out";

fn said(e: impl std::fmt::Display) -> String {
    e.to_string()
}

/// Jobs in the lineage of the pack (pack.md).
fn jobs(root: &Path) -> Result<usize, String> {
    let manifest = fs::read(root.join(OUT).join("manifest.json")).map_err(said)?;
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).map_err(said)?;
    Ok(manifest["lineage"].as_array().map_or(0, Vec::len))
}

impl Task {
    /// Writes what is there before.
    pub(super) fn prepare(&self, root: &Path) -> Result<(), String> {
        let (few, all) = (self.games / 2 + 1, self.games + 2);
        match self.verb {
            Verb::Pack | Verb::Shares(_) => self.write(root, "in", 0..all),
            Verb::Overwrite if self.games % 2 == 1 => {
                // A smaller pack takes its place, so that some of its files have no use any more.
                self.write(root, "in", 0..all)?;
                self.packed(root, "in", OUT, Existing::Refuse)?;
                fs::remove_dir_all(root.join("in")).map_err(said)?;
                self.write(root, "in", 0..few)
            }
            Verb::Overwrite | Verb::Append => {
                self.write(root, "in", 0..few)?;
                self.packed(root, "in", OUT, Existing::Refuse)?;
                self.write(root, "in", few..all)
            }
            Verb::Merge(_) => {
                for (name, games) in [("one", 0..few), ("two", few..all)] {
                    self.write(root, &format!("in/{name}"), games)?;
                    self.packed(root, &format!("in/{name}"), name, Existing::Refuse)?;
                }
                Ok(())
            }
        }
    }

    fn write(&self, root: &Path, name: &str, of: std::ops::Range<u32>) -> Result<(), String> {
        let folder = root.join(name);
        if !self.boards {
            return games::write(&folder, of).map_err(said);
        }
        fs::create_dir_all(&folder).map_err(said)?;
        for game in of {
            let bytes = boards::file(u64::from(game), games::steps(game) as usize, None);
            fs::write(folder.join(format!("games{game:03}.bf")), bytes).map_err(said)?;
        }
        Ok(())
    }

    fn packed(&self, root: &Path, from: &str, to: &str, existing: Existing) -> Result<(), String> {
        let options = PackOptions { existing, ..self.options(root, from, to) };
        pack(&options, &mut |_| {}).map(drop).map_err(said)
    }

    fn options(&self, root: &Path, from: &str, to: &str) -> PackOptions {
        let new = PackOptions::new(root.join(from), root.join(to));
        // Of whole games a job resumes after each file.
        let checkpoint_rows = if self.boards { new.checkpoint_rows } else { self.checkpoint_rows };
        PackOptions { workers: self.workers, shard_rows: self.shard_rows, checkpoint_rows, ..new }
    }

    /// Does it. `again`: as the process after a crash, which resumes what it finds.
    ///
    /// Errors: what the job says.
    pub fn perform(&self, root: &Path, again: bool) -> Result<(), String> {
        let existing = |first| if again { Existing::Resume } else { first };
        match self.verb {
            Verb::Pack => self.packed(root, "in", OUT, existing(Existing::Refuse)),
            Verb::Overwrite => self.packed(root, "in", OUT, Existing::Overwrite),
            Verb::Append if !again => self.packed(root, "in", OUT, Existing::Append),
            // What was begun is resumed; where nothing was, it is begun. Another append would be another job of the lineage.
            Verb::Append => {
                self.packed(root, "in", OUT, Existing::Resume)?;
                match jobs(root)? {
                    0 | 1 => self.packed(root, "in", OUT, Existing::Append),
                    _ => Ok(()),
                }
            }
            Verb::Merge(delete_inputs) => {
                let options = MergeOptions {
                    // Files of whole games are taken as they are.
                    shard_rows: self.shard_rows.filter(|_| !self.boards),
                    workers: self.workers,
                    overwrite: again,
                    delete_inputs,
                    ..MergeOptions::new(vec![root.join("one"), root.join("two")], root.join(OUT))
                };
                merge(&options, &mut |_, _| {}).map(drop).map_err(said)
            }
            Verb::Shares(of) => {
                // Shares of a pack that is there were committed. Another commit removes what is left of them.
                let shares = if again && root.join(OUT).join("manifest.json").exists() { 0 } else { of };
                for number in 1..=shares {
                    let share = Some(Share::new(number, of).map_err(said)?);
                    let made = pack(&PackOptions { share, ..self.options(root, "in", OUT) }, &mut |_| {});
                    made.map_err(said)?;
                }
                let options = CommitOptions { output: root.join(OUT), ..CommitOptions::default() };
                commit(&options, &mut |_| {}).map(drop).map_err(said)
            }
        }
    }
}

impl Deed for Task {
    const NAME: &'static str = "pack";

    fn does(&self, root: &Path, again: bool) -> Result<(), Ended> {
        self.perform(root, again).map_err(Ended::Refused)
    }
}
