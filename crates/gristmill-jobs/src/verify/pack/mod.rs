//! The folder of a pack -> every check over its rows, and its rows against its database, names and manifest.
//! Reads block by block on many threads; holds a few blocks and one entry for each run.

mod block;
mod found;
mod ledger;
mod values;

use std::path::Path;
use std::sync::Arc;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::pack;
use gristmill_engine::pack::checksums::Guard;
use gristmill_engine::pack::manifest::Manifest;
use gristmill_engine::pack::metadata::{Extra, Metadata, Run};
use gristmill_engine::pack::rows::{self, RowBlock, RowsOf};
use gristmill_engine::pack::shards::{self, Shard};
use gristmill_engine::pack::valuation::ValuationTypes;
use gristmill_engine::store::files::is_file;
use gristmill_engine::store::{HeldFile, Residence};
use gristmill_format::g2048::check::Rule;
use gristmill_format::g2048::played::{HIGHEST_TILE, STEPS};
use gristmill_format::{Error as FormatError, Kind};
use xxhash_rust::xxh3::Xxh3;

use self::block::Judge;
use self::found::About;
pub(super) use self::found::{OfPack, Telling};
use self::ledger::Database;
use super::{Fault, Progress, Verification, VerifyOptions};
use crate::in_order::InOrder;
use crate::inputs::Place;

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
    let (mut telling, keep) = (Telling::default(), options.max_faults);
    let found = part(folder, Place::whole(), options, &mut |found, of_pack| {
        telling.tell(found, keep, report);
        progress(report, of_pack);
    })?;
    telling.finish(found, keep, report);
    Ok(())
}

/// A callback. It gets the faults found so far, which it may take away, and two numbers: the rows read so far, and all rows.
type Taking<'a> = dyn FnMut(&mut OfPack, Option<(u64, u64)>) + 'a;

/// Verifies what of the pack in `folder` is at `place`: blocks of its rows, files by their hashes, and once the pack as such. It calls `progress`
/// after each block, which may take away what was found.
pub(super) fn part(folder: &Path, place: Place, options: &VerifyOptions, progress: &mut Taking<'_>) -> Result<OfPack> {
    let (keep, begins) = (options.max_faults, place.begins());
    let (mut all, mut opened) = (OfPack::default(), Verification::default());
    opened.will_check(Rule::ALL.map(Rule::name));
    opened.will_check([RUN_ID, VALUATION_TYPE, SEED, STEPS, HIGHEST_TILE, FIRST_ROW, MANIFEST, HASH, CHECKSUM]);
    let (files, is_whole) = open(folder, keep, &mut opened)?;
    let Some(files) = files else {
        if begins {
            all.opened = opened;
        }
        return Ok(all);
    };
    let (runs, extras, types) = beside(folder, keep, &mut opened)?;
    opened.chunks += runs.as_ref().map_or(0, |runs| runs.len() as u64);
    let total: u64 = files.iter().map(|file| file.shard.rows).sum();
    if begins {
        let path = folder.join(pack::METADATA).display().to_string();
        let paths = files.iter().map(|file| file.shard.path.display().to_string()).collect();
        let of_run = |run: &Run| (run.id, run.steps, run.highest_tile);
        let runs = runs.iter().flatten().map(of_run).collect();
        let first_rows = extras.iter().map(|extra| (extra.run_id, extra.first_row)).collect();
        all.about = Some(About { all: is_whole, paths, database: Database { path, runs, first_rows } });
        all.opened = opened;
    }
    let own = |start, rows| place.has_rows(start, rows, total);
    let (mut hashes, mut start) = (Vec::new(), 0);
    for RowsOf { shard, .. } in &files {
        hashes.push(own(start, shard.rows).then(|| Some(Xxh3::new())));
        start += shard.rows;
    }
    // Blocks of a file that is hashed here are read, even where another process judges them.
    let blocks = rows::blocks(&files).into_iter();
    let blocks = blocks.enumerate().filter(|(_, block)| own(block.start, block.rows) || hashes[block.file].is_some());
    let blocks: Vec<usize> = blocks.map(|(i, _)| i).collect();
    let listed: Arc<[RowBlock]> = rows::blocks(&files).into();
    let (number, to_do) = (blocks.len(), blocks.clone());
    let judge = Arc::new(Judge::new(files, runs, types, keep));
    let (work, of_work) = (judge.clone(), listed.clone());
    let judged = move |i: usize| {
        let (at, block) = (to_do[i], &of_work[to_do[i]]);
        match place.has_rows(block.start, block.rows, total) {
            true => work.judge(block, at.checked_sub(1).map(|before| of_work[before].last())),
            false => work.read(block),
        }
    };
    let flow = InOrder::start(options.workers, number, options.stop.clone(), judged);
    let mut flow = flow.map_err(|e| Error::path(folder, &e))?;
    let mut done = 0;
    for block in blocks.into_iter().map(|i| &listed[i]) {
        let Some(judged) = flow.next()? else { break };
        let hash = hashes[block.file].as_mut();
        let is_own = own(block.start, block.rows);
        match judged {
            Ok(judged) => {
                hash.into_iter().flatten().for_each(|hash| hash.update(judged.stored()));
                if is_own {
                    all.block(keep, judged.found, judged.stretches);
                }
                judge.recycle(judged.hand);
            }
            Err(e) => {
                hash.into_iter().for_each(|hash| *hash = None);
                if is_own {
                    all.unread(block.file, Fault::new(&e));
                }
            }
        }
        done += block.rows;
        progress(&mut all, Some((done, total)));
    }
    drop(flow);
    let hashed = hashes.into_iter().enumerate().filter_map(|(file, hash)| Some((file, hash?)));
    let hashed: Vec<_> = hashed.map(|(file, hash)| (file, &judge.files()[file], hash)).collect();
    match Manifest::read(folder) {
        Ok(Some(manifest)) => {
            for (number, file, hash) in &hashed {
                of_file(&manifest, file, hash.as_ref(), keep, all.files.entry(*number).or_default());
            }
            if begins {
                against(&manifest, folder, judge.files(), keep, &mut all.manifest);
            }
        }
        Err(e) if begins => told(&mut all.manifest, keep, e)?,
        Ok(None) | Err(_) => {}
    }
    hashed.iter().for_each(|(number, file, _)| summed(&file.shard, keep, all.sums.entry(*number).or_default()));
    if begins && let Some(detail) = pack::opening::wrong(folder) {
        let path = folder.join(pack::OPENING).display().to_string();
        all.opening = Some(Fault::new(&FormatError::new(Kind::Corrupt, detail).in_source(path)));
    }
    if begins && is_whole {
        let shards: Vec<Shard> = judge.files().iter().map(|file| file.shard.clone()).collect();
        let mut found = Verification::default();
        values::verify(folder, &shards, options, &mut found, &mut |_, of_pack| progress(&mut all, of_pack))?;
        all.values = found;
    }
    Ok(all)
}

/// The files of rows of a pack that can be opened, none where it has no list of them; and whether those are all.
fn open(folder: &Path, keep: usize, report: &mut Verification) -> Result<(Option<Vec<RowsOf>>, bool)> {
    let names = match shards::complete(folder) {
        Ok(names) => names,
        Err(e) => return told(report, keep, e).map(|()| (None, false)),
    };
    let (mut files, mut all) = (Vec::new(), true);
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
    Ok((Some(files), all))
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

/// A fault of what the manifest says.
fn differs(rule: &'static str, file: String, kind: Kind, detail: String) -> Fault {
    Fault { rule: Some(rule), ..Fault::new(&FormatError::new(kind, detail).in_source(file)) }
}

/// Compares a file with the manifest; its hash is not known where it could not be read.
fn of_file(manifest: &Manifest, file: &RowsOf, hash: Option<&Xxh3>, keep: usize, report: &mut Verification) {
    let path = file.shard.path.display().to_string();
    let name = file.shard.path.file_name().unwrap_or_default().to_string_lossy();
    let Some(said) = manifest.files.iter().find(|said| said.name == *name) else {
        let detail = "the manifest does not list this file".into();
        return report.add(keep, differs(MANIFEST, path, Kind::Missing, detail));
    };
    if said.rows != file.shard.rows {
        let detail = format!("{} rows; the manifest says {}", file.shard.rows, said.rows);
        report.add(keep, differs(MANIFEST, path.clone(), Kind::WrongSize, detail));
    }
    let form = pack::layout_of(&manifest.layout).map(|form| form.bytes());
    if form.is_some_and(|bytes| bytes != file.shard.layout.size()) {
        let detail = format!("rows of {} bytes; the manifest says {}", file.shard.layout.size(), manifest.layout);
        report.add(keep, differs(MANIFEST, path.clone(), Kind::WrongSize, detail));
    }
    let hash = hash.map(|hash| format!("{:032x}", hash.digest128()));
    if let Some(hash) = hash.filter(|hash| *hash != said.xxh3_128) {
        let detail = format!("the rows have the hash {hash}; they had {} when they were written", said.xxh3_128);
        report.add(keep, differs(HASH, path, Kind::Corrupt, detail));
    }
}

/// Compares the manifest with the files of the pack.
fn against(manifest: &Manifest, folder: &Path, files: &[RowsOf], keep: usize, report: &mut Verification) {
    let named = |name: &str| files.iter().any(|file| file.shard.path.file_name().is_some_and(|known| known == name));
    for gone in manifest.files.iter().filter(|said| !named(&said.name)) {
        let path = folder.join(&gone.name);
        if matches!(is_file(&path), Ok(false)) {
            let detail = format!("the manifest lists this file of {} rows", gone.rows);
            report.add(keep, differs(MANIFEST, path.display().to_string(), Kind::Missing, detail));
        }
    }
    let listed: u64 = manifest.files.iter().map(|file| file.rows).sum();
    if listed != manifest.rows {
        let detail = format!("{} rows, but its files have {listed}", manifest.rows);
        let path = folder.join(pack::MANIFEST).display().to_string();
        report.add(keep, differs(MANIFEST, path, Kind::WrongSize, detail));
    }
}
