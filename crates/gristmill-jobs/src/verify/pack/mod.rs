//! The folder of a pack -> every check over its rows, and its rows against its database, names and manifest.
//! Reads block by block on many threads; holds a few blocks and one entry for each run.

mod block;
mod ledger;
mod values;

use std::path::Path;
use std::sync::Arc;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::pack;
use gristmill_engine::pack::checksums::Guard;
use gristmill_engine::pack::manifest::{Manifest, RowFile};
use gristmill_engine::pack::metadata::{Extra, Metadata, Run};
use gristmill_engine::pack::rows::{self, RowBlock, RowsOf};
use gristmill_engine::pack::shards::{self, Shard};
use gristmill_engine::pack::valuation::ValuationTypes;
use gristmill_engine::store::files::is_file;
use gristmill_engine::store::{HeldFile, Residence};
use gristmill_format::g2048::check::Rule;
use gristmill_format::{Error as FormatError, Kind};
use xxhash_rust::xxh3::Xxh3;

use self::block::Judge;
use self::ledger::Ledger;
use super::{Fault, Progress, Verification, VerifyOptions};
use crate::in_order::InOrder;
use crate::work::played::{HIGHEST_TILE, STEPS};

/// A row's run is in the database, and all rows of the run lie together.
const RUN_ID: &str = "run_id";
/// A row's valuation has a name.
const VALUATION_TYPE: &str = "valuation_type";
/// A row's seed is that of its run, or, where that is not known, of the row before.
const SEED: &str = "seed";
/// The first row of a run is where the database says.
const FIRST_ROW: &str = "first_row";
/// Files, rows, runs and form are those of the manifest.
const MANIFEST: &str = "manifest";
/// The rows of a file have the hash of the manifest.
const HASH: &str = "hash";

/// Blocks of rows have the checksums beside them.
const CHECKSUM: &str = "checksum";

/// Verifies the pack in `folder`.
pub(super) fn verify(
    folder: &Path,
    options: &VerifyOptions,
    report: &mut Verification,
    progress: &mut Progress<'_>,
) -> Result<()> {
    let (keep, faults) = (options.max_faults, report.fault_count);
    report.will_check(Rule::ALL.map(Rule::name));
    report.will_check([RUN_ID, VALUATION_TYPE, SEED, STEPS, HIGHEST_TILE, FIRST_ROW, MANIFEST, HASH, CHECKSUM]);
    let names = match shards::complete(folder) {
        Ok(names) => names,
        Err(e) => return told(report, keep, e),
    };
    let mut files = Vec::new();
    let mut all = true;
    for name in names {
        report.files += 1;
        match shards::open(folder.join(name)).and_then(RowsOf::open).and_then(measured) {
            Ok(file) => files.push(file),
            Err(e) => {
                all = false;
                report.add(keep, Fault::new(&e));
            }
        }
    }
    let (runs, extras, types) = beside(folder, keep, report)?;
    report.chunks += runs.as_ref().map_or(0, |runs| runs.len() as u64);
    let total: u64 = files.iter().map(|file| file.shard.rows).sum();
    let blocks: Arc<[RowBlock]> = rows::blocks(&files).into();
    let judge = Arc::new(Judge::new(files, runs.clone(), types, keep));
    let (work, listed) = (judge.clone(), blocks.clone());
    let judged = move |i: usize| work.judge(&listed[i], i.checked_sub(1).map(|before| listed[before].last()));
    let flow = InOrder::start(options.workers, blocks.len(), options.stop.clone(), judged);
    let mut flow = flow.map_err(|e| Error::path(folder, &e))?;
    let mut ledger = Ledger::new(folder, runs, extras);
    let mut hashes: Vec<Option<Xxh3>> = judge.files().iter().map(|_| Some(Xxh3::new())).collect();
    let mut done = 0;
    for block in &*blocks {
        let Some(judged) = flow.next()? else { break };
        let hash = &mut hashes[block.file];
        match judged {
            Ok(judged) => {
                hash.iter_mut().for_each(|hash| hash.update(judged.stored()));
                report.absorb(keep, judged.found);
                for stretch in &judged.stretches {
                    ledger.add(stretch, &|stretch| judge.place(stretch), &mut |fault| report.add(keep, fault));
                }
                judge.recycle(judged.hand);
            }
            // A file that ends too early is reported once, by its first missing block.
            Err(e) => {
                if hash.take().is_some() {
                    report.add(keep, Fault::new(&e));
                }
            }
        }
        done += block.rows;
        progress(report, Some((done, total)));
    }
    drop(flow);
    ledger.finish(all && hashes.iter().all(Option::is_some), &mut |fault| report.add(keep, fault));
    match Manifest::read(folder) {
        Ok(Some(manifest)) => against(&manifest, folder, judge.files(), hashes, keep, report),
        Ok(None) => {}
        Err(e) => told(report, keep, e)?,
    }
    judge.files().iter().for_each(|file| summed(&file.shard, keep, report));
    // It was made of a pack without faults.
    if report.fault_count == faults
        && let Some(detail) = pack::opening::wrong(folder)
    {
        let path = folder.join(pack::OPENING).display().to_string();
        report.add(keep, Fault::new(&FormatError::new(Kind::Corrupt, detail).in_source(path)));
    }
    let shards: Vec<Shard> = judge.files().iter().map(|file| file.shard.clone()).collect();
    if all { values::verify(folder, &shards, options, report, progress) } else { Ok(()) }
}

/// Holds a file of rows against the checksums beside it, where there are some.
fn summed(shard: &Shard, keep: usize, report: &mut Verification) {
    let mut add = |e: &FormatError| report.add(keep, Fault { rule: Some(CHECKSUM), ..Fault::new(e) });
    let guard = match Guard::open(shard) {
        Ok(None) => return,
        Ok(Some(guard)) => guard,
        Err(e) => return add(&e),
    };
    let bytes = shard.rows.saturating_mul(shard.layout.size() as u64);
    // A file that is too short was reported before.
    if let Ok(rows) = HeldFile::open(&shard.path, shard.offset, bytes, Residence::Mapped) {
        match rows.have(0, usize::MAX) {
            Ok(()) => guard.damaged(rows.bytes()).for_each(|e| add(&e)),
            Err(e) => add(&e),
        }
    }
}

/// Refuses a file with bytes after its rows; one that ends before them is reported when they are read.
fn measured(file: RowsOf) -> gristmill_format::Result<RowsOf> {
    let (end, len) = (file.byte_of(file.shard.rows), file.file_bytes()?);
    if len > end {
        let detail = format!("{} bytes after the last row; the header says {} rows", len - end, file.shard.rows);
        return Err(file.place(FormatError::new(Kind::WrongSize, detail).at_byte(end)));
    }
    Ok(file)
}

/// Counts an error of the data as a fault.
///
/// Errors: those that are none of the data.
fn told(report: &mut Verification, keep: usize, e: Error) -> Result<()> {
    match e {
        Error::Format(e) => report.add(keep, Fault::new(&e)),
        Error::Path { path, kind, message } => {
            let e = FormatError::new(Kind::Io(kind), message).in_source(path.display().to_string());
            report.add(keep, Fault::new(&e));
        }
        e => return Err(e),
    }
    Ok(())
}

type Beside = (Option<Vec<Run>>, Vec<Extra>, Option<ValuationTypes>);

/// What lies beside the rows, as far as it can be read: runs by ascending id, where they come from, names.
fn beside(folder: &Path, keep: usize, report: &mut Verification) -> Result<Beside> {
    let (mut runs, mut extras) = (Vec::new(), Vec::new());
    let read = Metadata::open(folder.join(pack::METADATA)).and_then(|metadata| {
        metadata.runs(&mut |run| {
            runs.push(run);
            Ok(())
        })?;
        metadata.extras(&mut |extra| {
            extras.push(Extra { sidecar: String::new(), source: String::new(), ..extra });
            Ok(())
        })
    });
    let runs = match read {
        Ok(()) => Some(runs),
        Err(e) => {
            told(report, keep, e)?;
            None
        }
    };
    let types = match pack::open::valuations(folder) {
        Ok(types) => Some(types),
        Err(e) => {
            told(report, keep, e)?;
            None
        }
    };
    Ok((runs, extras, types))
}

/// Compares the pack with its manifest.
fn against(
    manifest: &Manifest,
    folder: &Path,
    files: &[RowsOf],
    hashes: Vec<Option<Xxh3>>,
    keep: usize,
    report: &mut Verification,
) {
    let mut differs = |rule: &'static str, file: String, kind: Kind, detail: String| {
        let e = FormatError::new(kind, detail).in_source(file);
        report.add(keep, Fault { rule: Some(rule), ..Fault::new(&e) });
    };
    let named = folder.join(pack::MANIFEST).display().to_string();
    let mut said: Vec<&RowFile> = manifest.files.iter().collect();
    for (file, hash) in files.iter().zip(hashes) {
        let path = file.shard.path.display().to_string();
        let name = file.shard.path.file_name().unwrap_or_default().to_string_lossy();
        let Some(at) = said.iter().position(|said| said.name == *name) else {
            differs(MANIFEST, path, Kind::Missing, "the manifest does not list this file".into());
            continue;
        };
        let said = said.swap_remove(at);
        if said.rows != file.shard.rows {
            let detail = format!("{} rows; the manifest says {}", file.shard.rows, said.rows);
            differs(MANIFEST, path.clone(), Kind::WrongSize, detail);
        }
        let form = pack::layout_of(&manifest.layout).map(|form| form.bytes());
        if form.is_some_and(|bytes| bytes != file.shard.layout.size()) {
            let detail = format!("rows of {} bytes; the manifest says {}", file.shard.layout.size(), manifest.layout);
            differs(MANIFEST, path.clone(), Kind::WrongSize, detail);
        }
        let Some(hash) = hash.map(|hash| format!("{:032x}", hash.digest128())) else { continue };
        if hash != said.xxh3_128 {
            let detail = format!("the rows have the hash {hash}; they had {} when they were written", said.xxh3_128);
            differs(HASH, path, Kind::Corrupt, detail);
        }
    }
    for gone in said {
        let path = folder.join(&gone.name);
        if matches!(is_file(&path), Ok(false)) {
            let detail = format!("the manifest lists this file of {} rows", gone.rows);
            differs(MANIFEST, path.display().to_string(), Kind::Missing, detail);
        }
    }
    let listed: u64 = manifest.files.iter().map(|file| file.rows).sum();
    if listed != manifest.rows {
        let detail = format!("{} rows, but its files have {listed}", manifest.rows);
        differs(MANIFEST, named, Kind::WrongSize, detail);
    }
}
