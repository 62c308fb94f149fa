//! Groups of files of demonstrations by shares -> the folder that one process writes. A share has the shards of its groups; a commit
//! gives them their names in the output, all of them together.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::store::publish::{Found, Staging, adopt};
use gristmill_format::{Error as FormatError, Kind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::groups::{Grouped, Groups, STAGING, Sum, check_new, folders, run};
use super::split::SplitUp;
use super::{Converted, Progress};
use crate::shares::{self, Attempt, Job, Joining, Outcome, Said, Share, Shared, Unit, Whole, is_same};

/// Names of the jobs in plans.
pub(crate) const CONVERT: &str = "convert --files-per-shard";
pub(crate) const SPLIT: &str = "split --files-per-shard";

/// The option of plans that has the names and weights of the sides.
pub(super) const INTO: &str = "into";

/// The folder of a share that has its shards.
const FILES: &str = "files";

/// The record of a share.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    inputs: u64,
    bytes: u64,
    sum: Sum,
}

impl Said for Record {
    fn taken(&self) -> (u64, u64) {
        (self.inputs, self.bytes)
    }
}

/// Makes a share of the groups, unless it is done.
///
/// Errors: as [`shares::make`], and those of the job.
pub(super) fn make(
    job: &dyn Grouped,
    groups: &Groups,
    share: Share,
    progress: &mut Progress<'_>,
) -> Result<(Sum, Option<Shared>)> {
    let Outcome { shared, said, .. } = shares::make(Part { job, groups, progress }, share, job.extent().dry_run)?;
    Ok((said.map(|said| said.sum).unwrap_or_default(), Some(shared)))
}

/// The job that makes one share.
struct Part<'a, 'p> {
    job: &'a dyn Grouped,
    groups: &'a Groups,
    progress: &'a mut Progress<'p>,
}

impl Job for Part<'_, '_> {
    type Said = Record;

    fn name(&self) -> &'static str {
        self.job.job()
    }

    fn input(&self) -> &Path {
        &self.job.extent().input
    }

    fn output(&self) -> &Path {
        &self.job.extent().output
    }

    fn options(&self) -> Result<BTreeMap<String, Value>> {
        self.job.options()
    }

    fn units(&self) -> &[Unit] {
        &self.groups.units
    }

    fn check_output(&self) -> Result<()> {
        shares::check_free(self.output())?;
        check_new(self.output(), &self.job.sides())
    }

    fn take(self, units: Range<usize>, of: &Shared, attempt: &mut Attempt) -> Result<Record> {
        let folder = attempt.folder().join(FILES);
        folders(&folder, &[String::new()])?;
        let Part { job, groups, progress } = self;
        let sum = run(job, groups, units, Some(&folder), &mut |phase| {
            attempt.renew();
            progress(phase);
        })?;
        Ok(Record { inputs: of.inputs, bytes: of.bytes, sum })
    }
}

/// Whether a job wrote shards of groups to `output`.
///
/// Errors: `Path`.
pub(crate) fn is_there(output: &Path) -> Result<bool> {
    let begins = |folder: &Path| folder.join("demos-000000.tar.zst").exists();
    let within = std::fs::read_dir(output).into_iter().flatten().flatten();
    Ok(begins(output) || within.into_iter().any(|entry| begins(&entry.path())))
}

/// Writes the output of all shares of a conversion.
///
/// Errors: as [`Whole::parts`]; `Path` where the output has other files (`AlreadyExists`), or where another process writes it
/// (`ResourceBusy`); `Format` for shares whose records differ, or whose files are damaged; `Stopped`.
pub(crate) fn commit_converted(whole: &Whole, progress: &mut dyn FnMut(Joining)) -> Result<Converted> {
    let sum = committed(whole, progress)?;
    Ok(Converted { dry_run: whole.options.dry_run, ..Converted::of(&sum, whole.output()) })
}

/// Writes the output of all shares of a split.
///
/// Errors: as [`commit_converted`].
pub(crate) fn commit_split(whole: &Whole, progress: &mut dyn FnMut(Joining)) -> Result<SplitUp> {
    let sum = committed(whole, progress)?;
    Ok(SplitUp { dry_run: whole.options.dry_run, ..SplitUp::of(&sum, whole.output()) })
}

fn committed(whole: &Whole, progress: &mut dyn FnMut(Joining)) -> Result<Sum> {
    if whole.options.overwrite {
        return Err(Error::config("overwrite", "is for packs; shards of groups go to a new folder"));
    }
    let (output, sides) = (whole.output(), sides(whole));
    let (mut sum, mut files) = (Sum::default(), Vec::new());
    for (folder, said) in whole.parts::<Record>()? {
        if let Some((name, _)) = said.sum.files.iter().find(|(name, _)| !is_shard(name, &sides)) {
            let text =
                format!("its record has a file `{}`, which is no shard; make the share again", name.escape_debug());
            return Err(FormatError::new(Kind::Corrupt, text).in_source(folder.display().to_string()).into());
        }
        files.extend(said.sum.files.iter().map(|(name, bytes)| (folder.join(FILES).join(name), name.clone(), *bytes)));
        sum.add(said.sum).map_err(|e| e.in_source(folder.display().to_string()))?;
    }
    if whole.options.dry_run {
        return Ok(sum);
    }
    let (mut staging, left) = Staging::open(output, STAGING, &whole.plan.job)?;
    if left == Found::Unfinished {
        staging.clear(&whole.plan.job)?;
    }
    // A killed commit published them already.
    if files
        .iter()
        .map(|(from, name, _)| is_one(from, &output.join(name)))
        .collect::<Result<Vec<_>>>()?
        .contains(&false)
    {
        check_new(output, &sides)?;
        folders(&staging.path(""), &sides)?;
        let all = whole.plan.inputs;
        for (number, (from, name, bytes)) in files.iter().enumerate() {
            if whole.options.stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            let there = adopt(from, &staging.path(name))?;
            if there != *bytes {
                let text = format!(
                    "has {there} bytes, its share wrote {bytes}; remove the folder of the share and make it again"
                );
                return Err(FormatError::new(Kind::Corrupt, text).in_source(from.display().to_string()).into());
            }
            progress(Joining { done: all * number as u64 / files.len() as u64, all });
        }
        staging.publish(&[])?;
        progress(Joining { done: all, all });
    }
    Ok(sum)
}

/// The sides of a split; the output itself of a conversion.
fn sides(whole: &Whole) -> Vec<String> {
    let into = whole.plan.options.get(INTO).and_then(Value::as_array);
    let names = |into: &Vec<Value>| into.iter().filter_map(|side| Some(side.get(0)?.as_str()?.to_owned())).collect();
    into.map_or_else(|| vec![String::new()], names)
}

/// Whether a name is that of a shard on one of the sides: what a record says leads nowhere else.
fn is_shard(name: &str, sides: &[String]) -> bool {
    let (side, file) = name.split_once('/').unwrap_or(("", name));
    sides.iter().any(|own| own == side) && file.starts_with("demos-") && !file.contains('/')
}

/// Whether the file `to` is there, with the bytes of `from`.
fn is_one(from: &Path, to: &PathBuf) -> Result<bool> {
    let Ok(there) = File::open(to) else { return Ok(false) };
    let refused = |e: std::io::Error| Error::path(from, &e);
    is_same(&mut BufReader::new(File::open(from).map_err(refused)?), &mut BufReader::new(there)).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_records_are_shards_of_a_side() {
        let sides = ["train".to_owned(), "test".to_owned()];
        assert!(is_shard("train/demos-000000.tar.zst", &sides));
        for name in [
            "demos-000000.tar.zst",
            "../demos-000000",
            "train/../demos-0",
            "train/demos-/../x",
            "train/x",
            "other/demos-0",
        ] {
            assert!(!is_shard(name, &sides), "{name}");
        }
        assert!(is_shard("demos-000000.tar.zst", &[String::new()]));
        assert!(!is_shard("/demos-000000.tar.zst", &["..".to_owned()]));
    }
}
