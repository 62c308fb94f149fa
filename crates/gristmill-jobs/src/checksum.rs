//! `checksum`: the rows of a pack -> checksums of their blocks beside them, for packs that have none; and for packs of every layout what
//! opening them needs. Rows are not changed, and are held against the manifest before anything is written of them.

use std::path::{Path, PathBuf};

use gristmill_engine::chunks;
use gristmill_engine::error::Result;
use gristmill_engine::kinds::packs::{write_opening, wrong_opening};
use gristmill_engine::names::is_pack;
use gristmill_engine::pack::checksums::{self, Guard};
use gristmill_engine::pack::manifest::Manifest;
use gristmill_engine::pack::{self, open, shards};
use gristmill_engine::store::files::read_text;
use gristmill_engine::store::place::writable;
use gristmill_engine::store::{publish, settled};
use gristmill_format::{Error as FormatError, Kind};
use serde::Serialize;

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Checksummed {
    /// The folder of the pack.
    pub pack: String,
    /// Rows of all files.
    pub rows: u64,
    /// Files of checksums that were made, by name.
    pub made: Vec<String>,
    /// Files of checksums that were there already, and fit.
    pub there: Vec<String>,
    /// Whether the rows could be held against a manifest: those of other programs cannot.
    pub known: bool,
    /// Whether this was a dry run, which writes nothing.
    pub dry_run: bool,
}

/// What to make checksums of.
#[derive(Debug, Clone, Default)]
pub struct ChecksumOptions {
    /// The folder of the pack.
    pub pack: PathBuf,
    /// Replace existing checksums.
    pub overwrite: bool,
    /// Read everything, and write nothing.
    pub dry_run: bool,
}

/// Makes the checksums that a pack of rows lacks, or with `overwrite` all of them; and for every pack with a manifest the file of what
/// opening it needs, unless there is one that fits. `progress` gets the rows done, and
/// all; what it says ends the job between two files.
///
/// Errors: `Path`; `Format` with the file: `Corrupt` for rows that do not have the hash of the manifest, of which nothing is
/// written, and for checksums that do not fit, unless they are made again; what is wrong with the pack.
pub fn checksum(options: &ChecksumOptions, progress: &mut dyn FnMut(u64, u64) -> Result<()>) -> Result<Checksummed> {
    let folder = writable(&options.pack, "pack")?;
    let dry_run = options.dry_run;
    let folder = &*settled(&folder, dry_run)?;
    let mut done = Checksummed { pack: folder.display().to_string(), dry_run, ..Default::default() };
    if is_pack(folder)? {
        (done.rows, done.known) = (chunks::manifest::Manifest::read(folder)?.frames, true);
        let paths =
            chunks::files(folder)?.into_iter().filter(|name| chunks::is_chunks(name)).map(|name| folder.join(name));
        let write = |manifest: &str| write_opening(folder, &paths.collect::<Vec<_>>(), manifest);
        opening(folder, wrong_opening(folder).is_none(), &mut done, write)?;
        return Ok(done);
    }
    let files = shards::list(folder)?;
    open::recognise(&files)?;
    let manifest = Manifest::read(folder)?;
    let rows = files.iter().map(|file| file.rows).sum();
    let paths: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
    (done.rows, done.known) = (rows, manifest.is_some());
    let mut so_far = 0;
    for file in files {
        progress(so_far, rows)?;
        let path: PathBuf = checksums::beside(&file.path);
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        so_far += file.rows;
        if !options.overwrite && Guard::open(&file)?.is_some() {
            done.there.push(name(&path));
            continue;
        }
        let (bytes, hash) = checksums::of(&file)?;
        let of_file =
            manifest.as_ref().map(|manifest| manifest.files.iter().find(|said| said.name == name(&file.path)));
        let said = of_file.map(|said| said.map(|said| said.xxh3_128.as_str()));
        let found = format!("{hash:032x}");
        if let Some(said) = said.filter(|said| *said != Some(&found)) {
            let said = said.map_or("does not list it".to_owned(), |said| format!("says {said}"));
            let detail = format!(
                "the rows have the hash {found}; the manifest {said}: they are damaged or were changed, and get no checksums; \
                 `gristmill verify` says what is wrong"
            );
            let e = FormatError::new(Kind::Corrupt, detail).in_source(file.path.display().to_string());
            return Err(e.into());
        }
        if !dry_run {
            publish::write_whole(&path, &[&bytes])?;
        }
        done.made.push(name(&path));
    }
    let types = open::valuations(folder)?;
    let write = |manifest: &str| pack::opening::write(folder, &paths, &types, manifest);
    opening(folder, pack::opening::wrong(folder).is_none(), &mut done, write)?;
    progress(rows, rows)?;
    Ok(done)
}

/// Makes the file of what opening a pack needs, unless there is one, which `fits`.
fn opening(folder: &Path, fits: bool, done: &mut Checksummed, write: impl FnOnce(&str) -> Result<()>) -> Result<()> {
    let path = folder.join(pack::OPENING);
    let Some(manifest) = read_text(&folder.join(pack::MANIFEST), 1 << 30)? else { return Ok(()) };
    let is_there = fits && path.exists();
    if !is_there && !done.dry_run {
        write(&manifest)?;
    }
    // Not every pack can have one.
    let of = if is_there { &mut done.there } else { &mut done.made };
    of.extend((path.exists() || done.dry_run).then(|| pack::OPENING.to_owned()));
    Ok(())
}
