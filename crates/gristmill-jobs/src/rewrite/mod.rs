//! Files of chunks -> the same files again, each chunk kept, rewritten or dropped: one job behind several commands.
//! Parallel in the middle and ordered at the end: the same input gives the same bytes, however many threads work.

mod filter;
mod join;
mod ledger;
mod line;
mod part;
mod pass;
mod plan;
mod recast;
mod rescored;
mod split;
mod unit;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gristmill_engine::error::{Error, Result};
use gristmill_engine::holdings::Holdings;
use gristmill_engine::kinds::demo::is_trajectories;
use gristmill_engine::runtime::scheduler::{Lane, Scheduler, Tasks};
use gristmill_engine::store::newest;
use gristmill_engine::store::place::writable;
use gristmill_format::source::Chunk;
use serde::{Deserialize, Serialize};

pub use filter::Filter;
pub use pass::Passes;
pub use plan::Container;
pub use recast::Recast;
pub use rescored::rescored;
pub use split::{By, Split};

pub(crate) use self::join::commit;
use self::ledger::Ledger;
pub(crate) use self::ledger::{are_sides_there, is_there, left_in};
use self::line::Line;
use self::plan::Plan;
pub(crate) use self::split::check_sides;
use self::unit::Writer;
use crate::shares::{Share, Shared, place};

/// What becomes of a chunk that is not dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Its stored bytes go out as they are.
    Keep,
    /// Its records go out, compressed again if they were compressed.
    Write,
}

/// What a command does with each chunk. A pure function of the chunk and the command's own settings.
pub trait Rewrite: Send + Sync {
    /// Command and settings; a run resumes another only where they are the same.
    fn settings(&self) -> serde_json::Value;

    /// Whether it looks at records. Where it does not, no chunk is decoded and all stored bytes go out as they are.
    fn reads(&self) -> bool {
        true
    }

    /// Number of the folder that a chunk goes to, by the key of its source, its name and its index there.
    fn side(&self, _key: &str, _member: Option<&str>, _index: usize) -> usize {
        0
    }

    /// Number of the folder that the chunk goes to by its records, where these decide it; asked after [`Rewrite::chunk`].
    ///
    /// Errors: the chunk is dropped, as by [`Rewrite::chunk`].
    fn side_of(&self, _chunk: &Chunk) -> gristmill_format::Result<Option<usize>> {
        Ok(None)
    }

    /// Judges or changes the records in `chunk`, which `stored` was decoded to. `count(name, n)` adds to the summary.
    ///
    /// Errors: the chunk is dropped; the kind is the reason that the summary names.
    fn chunk(
        &self,
        stored: &[u8],
        chunk: &mut Chunk,
        count: &mut dyn FnMut(&str, u64),
    ) -> gristmill_format::Result<Fate>;

    /// Whether an error of `chunk` ends the run instead of dropping the chunk.
    fn ends_on(&self, _fault: &gristmill_format::Error) -> bool {
        false
    }
}

/// From where to where, and how.
#[derive(Debug, Clone)]
pub struct RewriteOptions {
    /// A file, or a folder with everything below it.
    pub path: PathBuf,
    /// Folder to write to: new, empty, or left by an earlier run of the same command; or the one that has those of the sides.
    pub out: PathBuf,
    /// Names of the folders in it, one for each side; none where all goes to `out` itself.
    pub sides: Vec<String>,
    /// What the games are put in.
    pub container: Container,
    /// Worker threads; the number of cores when absent. Never changes what is written.
    pub threads: Option<usize>,
    /// Judge everything and write nothing. A share only reports its inputs.
    pub dry_run: bool,
    /// The share that is written, beside `out`, for a [commit](crate::commit::commit); none for all of it.
    pub share: Option<Share>,
}

impl RewriteOptions {
    /// The folders to write to.
    pub fn outs(&self) -> Vec<PathBuf> {
        outs(&self.out, &self.sides)
    }
}

/// The folders of sides below `out`; itself where there are no sides.
fn outs(out: &Path, sides: &[String]) -> Vec<PathBuf> {
    if sides.is_empty() { vec![out.to_owned()] } else { sides.iter().map(|side| out.join(side)).collect() }
}

/// What was done with some chunks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// Chunks read, unreadable ones included.
    pub chunks: u64,
    /// Chunks whose stored bytes went out as they were.
    pub kept: u64,
    /// Chunks that were rewritten.
    pub changed: u64,
    /// Chunks that were dropped, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Chunks that could not be read, by kind of damage; they are dropped too.
    pub damaged: BTreeMap<String, u64>,
    /// Frames of the chunks that could be read; 0 where no records were decoded.
    pub frames_in: u64,
    /// Frames that went out; 0 where no records were decoded.
    pub frames_out: u64,
    /// Stored bytes of the chunks.
    pub bytes_in: u64,
    /// Bytes of the files written.
    pub bytes_out: u64,
    /// Files written.
    pub files_out: u64,
    /// Whatever else the command counts.
    pub counts: BTreeMap<String, u64>,
}

impl Done {
    fn add(&mut self, other: &Done) {
        self.chunks += other.chunks;
        self.kept += other.kept;
        self.changed += other.changed;
        self.frames_in += other.frames_in;
        self.frames_out += other.frames_out;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.files_out += other.files_out;
        for (mine, its) in [
            (&mut self.dropped, &other.dropped),
            (&mut self.damaged, &other.damaged),
            (&mut self.counts, &other.counts),
        ] {
            its.iter().for_each(|(name, n)| *mine.entry(name.clone()).or_default() += n);
        }
    }
}

/// Messages about damage that are kept for people to read.
const MESSAGES: usize = 20;

/// The summary of a run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Rewritten {
    /// Files that hold games.
    pub files: u64,
    /// Files in the folder that hold none.
    pub skipped: u64,
    /// Files that an earlier run had done; their sums are in here too.
    pub resumed: u64,
    /// Files done, those of earlier runs included.
    pub files_done: u64,
    /// The sums.
    #[serde(flatten)]
    pub done: Done,
    /// What was damaged, at most the first few.
    pub faults: Vec<String>,
    /// Games answered in this run, those of files that are not done yet among them.
    #[serde(skip)]
    pub seen: u64,
    /// Whether it stopped before the end; the same command resumes.
    pub interrupted: bool,
    /// Whether nothing was written.
    pub dry_run: bool,
    /// The share that it is of; all numbers are its own then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<Shared>,
    /// For a share, its folder, which the commit removes. For a commit, the folders that it wrote.
    #[serde(skip)]
    pub folders: Vec<PathBuf>,
}

/// Runs `rewrite` over every chunk at `options.path`. It calls `progress` after each file, and now and then within one.
///
/// Source files are done in order of name. What they give is written under hidden names, forced to the disk, and
/// renamed; then the ledger in the first folder says that they are done. After an early end, by `stop` or by a
/// crash, the same call resumes.
///
/// A share is done once, in a folder of its own, and does not resume.
///
/// Errors: `Config` for folders that cannot be used, `Path` for what cannot be read or written, `Format` for what the
/// rewrite ends on. Damage in the data is counted, not an error.
pub fn rewrite(
    rewrite: Arc<dyn Rewrite>,
    options: &RewriteOptions,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&Rewritten),
) -> Result<Rewritten> {
    let out = match options.share {
        Some(_) => place(&options.out)?,
        None => writable(&options.out, "output")?.into_owned(),
    };
    let options = &RewriteOptions { path: newest(&options.path)?.into_owned(), out, ..options.clone() };
    check_sides(options.sides.iter())?;
    let plan = Plan::new(&options.path, options.container)?;
    if plan.units.is_empty() && plan.unlisted.is_empty() {
        let holds = Holdings::of(&options.path);
        let advice = match is_trajectories(&options.path) {
            Ok(true) => ": it is a pack of demonstrations, which the commands `convert` and `split` take".to_owned(),
            _ if holds.has_games() => String::new(),
            _ => format!(": it {}", holds.told(&options.path)),
        };
        return Err(Error::config("path", format!("there are no chess games in {}{advice}", options.path.display())));
    }
    if let Some(share) = options.share {
        return part::rewrite(rewrite, (options, plan), share, stop, progress);
    }
    let mut ledger = Ledger::open(rewrite.settings(), options)?;
    let mut report = Rewritten {
        files: plan.files,
        skipped: plan.skipped,
        dry_run: options.dry_run,
        faults: plan.faults.clone(),
        ..Rewritten::default()
    };
    for (kind, n) in &plan.unlisted {
        *report.done.damaged.entry(kind.clone()).or_default() += n;
    }
    run_units(rewrite, options, &plan, &mut ledger, stop, &mut report, progress)?;
    if !report.interrupted && !options.dry_run {
        ledger::tell_others(&options.outs())?;
    }
    Ok(report)
}

/// Does the units of a plan by many threads, and adds them to the report.
fn run_units(
    rewrite: Arc<dyn Rewrite>,
    options: &RewriteOptions,
    plan: &Plan,
    ledger: &mut Ledger,
    stop: &AtomicBool,
    report: &mut Rewritten,
    progress: &mut dyn FnMut(&Rewritten),
) -> Result<()> {
    let threads = options.threads.or_else(|| std::thread::available_parallelism().ok().map(usize::from)).unwrap_or(1);
    let line = Arc::new(Line::new(rewrite, options));
    let scheduler = Scheduler::new();
    line.wake_with(scheduler.signal());
    let tasks: Arc<[Arc<dyn Tasks>]> = Arc::new([Arc::clone(&line) as Arc<dyn Tasks>]);
    let failed = |e: std::io::Error| Error::config("threads", format!("no thread could be started: {e}"));
    scheduler.staff(Lane::Work, threads.clamp(1, 256), &tasks).map_err(failed)?;
    let mut writer = Writer::new(Arc::clone(&line), options, threads);
    let result = run(plan, ledger, &mut writer, stop, report, progress);
    scheduler.stop();
    writer.abandon();
    result
}

fn run(
    plan: &Plan,
    ledger: &mut Ledger,
    writer: &mut Writer,
    stop: &AtomicBool,
    report: &mut Rewritten,
    progress: &mut dyn FnMut(&Rewritten),
) -> Result<()> {
    for unit in &plan.units {
        if stop.load(Ordering::Relaxed) {
            report.interrupted = true;
            break;
        }
        if let Some(done) = ledger.done(unit) {
            report.done.add(done);
            report.resumed += unit.sources.len() as u64;
            report.files_done += unit.sources.len() as u64;
            continue;
        }
        let mut seen = |games: u64| {
            report.seen = games;
            progress(report);
        };
        if !writer.begin(&*plan.store, unit, stop, &mut seen)? {
            report.interrupted = true;
            break;
        }
        while let Some(finished) = writer.settle(false)? {
            account(finished, ledger, report, progress)?;
        }
    }
    // What is on its way is brought to its end, so that a stop loses little.
    while let Some(finished) = writer.settle(true)? {
        account(finished, ledger, report, progress)?;
    }
    ledger.commit()
}

fn account(
    finished: unit::Finished,
    ledger: &mut Ledger,
    report: &mut Rewritten,
    progress: &mut dyn FnMut(&Rewritten),
) -> Result<()> {
    report.done.add(&finished.done);
    report.files_done += finished.unit.sources.len() as u64;
    let room = MESSAGES.saturating_sub(report.faults.len());
    report.faults.extend(finished.faults.iter().take(room).cloned());
    ledger.add(&finished)?;
    progress(report);
    Ok(())
}

/// Whether `inner` is `outer` or lies below it, as far as both exist.
fn lies_in(inner: &Path, outer: &Path) -> bool {
    let real = |path: &Path| {
        let existing = path.ancestors().find(|p| p.exists() && !p.as_os_str().is_empty())?;
        let rest = path.strip_prefix(existing).ok()?;
        Some(existing.canonicalize().ok()?.join(rest))
    };
    match (real(inner), real(outer)) {
        (Some(inner), Some(outer)) => inner.starts_with(outer),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
