//! Files of demonstrations, some after another -> a shard for each such group, on each side of a split. A group needs no other one, so
//! that shares take groups. Refuses a trajectory that could run on into the next group: none is cut.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use gristmill_engine::demos::{ShardFiles, ShardOptions};
use gristmill_engine::error::{Error, Result};
use gristmill_engine::store::files::len;
use gristmill_engine::store::publish::{Found, Staging};
use gristmill_format::demo::budget::MAX_BYTES;
use gristmill_format::demo::shard::ShardMeta;
use gristmill_format::demo::trajectory::End;
use gristmill_format::{Error as FormatError, Kind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::gather::{Gathered, Steps};
use super::split::SideCount;
use super::{Phase, Progress, shards};
use crate::shares::{Share, Shared, Unit};

/// The hidden folder of a job whose shards are not all there yet.
pub(super) const STAGING: &str = "groups";

/// Files of demonstrations, in their order, by groups.
pub(super) struct Groups {
    files: Vec<PathBuf>,
    size: usize,
    /// A unit for each group. It has the name of its first file.
    pub(super) units: Vec<Unit>,
}

impl Groups {
    /// Groups of `size` files; the last can have fewer.
    ///
    /// Errors: `Config` for a size of 0; `Path` for a file that is gone.
    pub(super) fn of(input: &Path, files: Vec<PathBuf>, size: u64) -> Result<Self> {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size == 0 {
            return Err(Error::config("files_per_shard", "expected at least 1 file"));
        }
        let mut units = Vec::new();
        for group in files.chunks(size) {
            let name = group[0].strip_prefix(input).ok().filter(|name| !name.as_os_str().is_empty());
            let name = name.unwrap_or(group[0].file_name().map_or(&group[0], Path::new)).to_string_lossy().into_owned();
            let mut unit = Unit { name, bytes: 0, inputs: group.len() as u64 };
            for file in group {
                let gone = || FormatError::new(Kind::Missing, "it is gone").in_source(file.display().to_string());
                unit.bytes = unit.bytes.saturating_add(len(file)?.ok_or_else(gone)?);
            }
            units.push(unit);
        }
        Ok(Groups { files, size, units })
    }

    /// The files of group `number`.
    fn files(&self, number: usize) -> &[PathBuf] {
        self.files.chunks(self.size).nth(number).unwrap_or_default()
    }

    /// The file after group `number`.
    fn next(&self, number: usize) -> Option<&Path> {
        self.files.get((number + 1).checked_mul(self.size)?).map(PathBuf::as_path)
    }
}

/// Where a job on groups reads and writes, and how much of it.
pub(super) struct Extent<'a> {
    pub(super) input: PathBuf,
    /// The folder that it writes.
    pub(super) output: PathBuf,
    /// The share of the groups to make; all of them without one.
    pub(super) share: Option<Share>,
    /// Whether nothing is written.
    pub(super) dry_run: bool,
    /// Set from another thread to end early.
    pub(super) stop: &'a AtomicBool,
}

/// A job that makes a shard of each group, on each of its sides.
pub(super) trait Grouped {
    /// Its name in plans of shares.
    fn job(&self) -> &'static str;

    fn extent(&self) -> &Extent<'_>;

    /// Names of the folders below the output. One empty name is the output itself.
    fn sides(&self) -> Vec<String>;

    /// The options that change a byte, by their names.
    ///
    /// Errors: `Config`.
    fn options(&self) -> Result<BTreeMap<String, Value>>;

    /// How shards are written.
    fn shards(&self) -> ShardOptions;

    /// The trajectories in the files of a group. Lays those of several files on the disk of `scratch`.
    ///
    /// Errors: those of reading.
    fn read(&self, files: &[PathBuf], scratch: Option<&Path>) -> Result<Gathered>;

    /// The metadata of the shards of a group, remarks about it, and the side of each trajectory.
    ///
    /// Errors: `Config` for metadata that would depend on other groups; `Format`.
    fn deal(&self, found: &Gathered) -> Result<(Vec<u8>, Vec<String>, Vec<usize>)>;
}

/// What came of some groups.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Sum {
    /// The form that was read.
    pub(super) from: String,
    /// Records, and metadata of the shards, of the first of these groups.
    layout: String,
    meta: Vec<u8>,
    pub(super) sides: Vec<SideCount>,
    pub(super) truncated: u64,
    pub(super) unended: u64,
    /// Files below the output, with their bytes.
    pub(super) files: Vec<(String, u64)>,
    pub(super) remarks: Vec<String>,
}

impl Sum {
    /// Trajectories and frames of all sides.
    pub(super) fn all(&self) -> (u64, u64) {
        self.sides.iter().fold((0, 0), |sum, side| (sum.0 + side.trajectories, sum.1 + side.frames))
    }

    /// Adds later groups.
    ///
    /// Errors: `Format` where they are no data of one set.
    pub(super) fn add(&mut self, next: Sum) -> gristmill_format::Result<()> {
        if next.from.is_empty() {
            return Ok(());
        }
        if self.from.is_empty() {
            *self = next;
            return Ok(());
        }
        if self.from != next.from || self.layout != next.layout {
            let (one, two) = ((&self.from, &self.layout), (&next.from, &next.layout));
            let text = format!("records of {two:?} after records of {one:?}; convert them one by one");
            return Err(FormatError::new(Kind::OutOfRange, text));
        }
        let parse = |meta: &[u8]| ShardMeta::parse(meta, MAX_BYTES);
        if self.meta != next.meta {
            parse(&self.meta)?.mixes_with(&parse(&next.meta)?)?;
        }
        for (side, more) in self.sides.iter_mut().zip(&next.sides) {
            side.trajectories += more.trajectories;
            side.frames += more.frames;
        }
        self.truncated += next.truncated;
        self.unended += next.unended;
        self.files.extend(next.files);
        let new = next.remarks.into_iter().filter(|remark| !self.remarks.contains(remark)).collect::<Vec<_>>();
        self.remarks.extend(new);
        Ok(())
    }
}

/// Makes the shards of all groups, which appear together; or one share of them, beside the output.
///
/// Errors: `Config` in `output` for a folder that has files; those of the job; `Stopped`. Nothing is written then.
pub(super) fn make(job: &dyn Grouped, groups: &Groups, progress: &mut Progress<'_>) -> Result<(Sum, Option<Shared>)> {
    let Extent { output, share, dry_run, .. } = job.extent();
    if let Some(share) = *share {
        return super::part::make(job, groups, share, progress);
    }
    check_new(output, &job.sides())?;
    let (all, mut sum) = (0..groups.units.len(), Sum::default());
    if *dry_run {
        sum = run(job, groups, all, None, progress)?;
    } else {
        let (mut staging, left) = Staging::open(output, STAGING, job.job())?;
        if left == Found::Unfinished {
            staging.clear(job.job())?;
        }
        sum.add(run(job, groups, all, Some(&staging.path("")), progress)?)?;
        staging.publish(&[])?;
    }
    Ok((sum, None))
}

/// Makes the shards of some groups below `to`, or reads these groups only.
pub(super) fn run(
    job: &dyn Grouped,
    groups: &Groups,
    numbers: std::ops::Range<usize>,
    to: Option<&Path>,
    progress: &mut Progress<'_>,
) -> Result<Sum> {
    let all: u64 = groups.units[numbers.clone()].iter().map(|unit| unit.inputs).sum();
    let (mut sum, mut done) = (Sum::default(), 0);
    if let Some(to) = to {
        folders(to, &job.sides())?;
    }
    for number in numbers {
        let one = group(job, groups, number, to)?;
        let first = || groups.files(number)[0].display().to_string();
        sum.add(one).map_err(|e| e.in_source(first()))?;
        done += groups.units[number].inputs;
        progress(Phase::Reading(done, all));
    }
    Ok(sum)
}

/// Makes the folders of all sides, those of sides without trajectories too.
pub(super) fn folders(to: &Path, sides: &[String]) -> Result<()> {
    for side in sides {
        let folder = to.join(side);
        std::fs::create_dir_all(&folder).map_err(|e| Error::path(&folder, &e))?;
    }
    Ok(())
}

fn group(job: &dyn Grouped, groups: &Groups, number: usize, to: Option<&Path>) -> Result<Sum> {
    let files = groups.files(number);
    let mut found = job.read(files, to)?;
    shards::check_fields(&found)?;
    check_end(&found, files, groups.next(number))?;
    let (meta, remarks, dealt) = job.deal(&found)?;
    let sides = job.sides();
    let mut sum = Sum {
        from: found.form.to_owned(),
        layout: found.layout.to_descr(),
        sides: sides.iter().map(|name| SideCount { name: name.clone(), ..SideCount::default() }).collect(),
        remarks,
        ..Sum::default()
    };
    for (part, side) in found.parts.iter().zip(&dealt) {
        sum.sides[*side].trajectories += 1;
        sum.sides[*side].frames += part.frames as u64;
        sum.truncated += u64::from(part.end == End::Truncated);
        sum.unended += u64::from(!part.done);
    }
    if let Some(to) = to {
        let name = format!("demos-{number:06}.tar.zst");
        let paths: Vec<PathBuf> = sides.iter().map(|side| to.join(side).join(&name)).collect();
        let mut told = |_| if job.extent().stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) };
        for path in write(&mut found, &dealt, &paths, &meta, &job.shards(), &mut told)? {
            let bytes = std::fs::metadata(&path).map_err(|e| Error::path(&path, &e))?.len();
            let below = path.strip_prefix(to).unwrap_or(&path).to_string_lossy().into_owned();
            sum.files.push((below, bytes));
        }
    }
    sum.meta = meta;
    Ok(sum)
}

/// Writes each trajectory to the shard of its side; a side without any gets none. The paths of the shards. `told` gets the frames so far.
///
/// Errors: those of writing, and of `told`. Nothing is written then.
pub(super) fn write(
    found: &mut Gathered,
    dealt: &[usize],
    paths: &[PathBuf],
    meta: &[u8],
    how: &ShardOptions,
    told: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut of_side: Vec<Option<usize>> = vec![None; paths.len()];
    for (side, path) in paths.iter().enumerate().filter(|(side, _)| dealt.contains(side)) {
        of_side[side] = Some(files.len());
        files.push(ShardFiles::create(path, meta.to_vec(), how.clone())?);
    }
    let (mut steps, mut done) = (Steps::default(), 0);
    let written = dealt.iter().enumerate().try_for_each(|(i, side)| {
        if let Some(at) = of_side[*side] {
            done += shards::write(found, i, &mut steps, &mut files[at])?;
        }
        told(done)
    });
    shards::end(files, written)
}

/// Refuses a last trajectory without an end where files follow: readers would let the next one run into it.
fn check_end(found: &Gathered, files: &[PathBuf], next: Option<&Path>) -> Result<()> {
    match (found.parts.last(), next, files.last()) {
        (Some(part), Some(next), Some(last)) if !part.done => {
            let text = format!(
                "its last trajectory has no end that `dones` marks, and could run on into {}; another number of files in a shard \
                 can keep both together, and one shard of all files does",
                next.display()
            );
            Err(FormatError::new(Kind::OutOfRange, text).in_source(last.display().to_string()).into())
        }
        _ => Ok(()),
    }
}

/// Refuses an output where something lies already.
pub(super) fn check_new(output: &Path, sides: &[String]) -> Result<()> {
    let refused = |path: PathBuf| {
        let e = std::io::Error::new(std::io::ErrorKind::AlreadyExists, "it exists; choose a new folder");
        Err(Error::path(path, &e))
    };
    if output.is_file() {
        return refused(output.to_owned());
    }
    for side in sides {
        let folder = output.join(side);
        if side.is_empty() {
            let mut there = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            if there.any(|entry| !entry.file_name().to_string_lossy().starts_with('.')) {
                return refused(output.to_owned());
            }
        } else if folder.exists() {
            return refused(folder);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_other_records_are_refused() {
        let sum = |from: &str, layout: &str| Sum { from: from.to_owned(), layout: layout.to_owned(), ..Sum::default() };
        let mut all = Sum::default();
        all.add(sum("demo.shard", "a")).unwrap();
        all.add(Sum::default()).unwrap();
        all.add(sum("demo.shard", "a")).unwrap();
        assert!(all.add(sum("demo.shard", "b")).unwrap_err().to_string().contains("records of"));
        assert!(all.add(sum("demo.atari", "a")).is_err());
    }
}
