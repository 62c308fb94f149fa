//! A pack to merge: its files of rows, runs, names and session, read and compared with each other.

use std::path::{Path, PathBuf};

use gristmill_engine::error::{Error, Result};
use gristmill_engine::pack;
use gristmill_engine::pack::manifest::{Manifest, Merged, RowFile};
use gristmill_engine::pack::metadata::{Metadata, MetadataWriter, Run};
use gristmill_engine::pack::rows::RowsOf;
use gristmill_engine::pack::valuation::ValuationTypes;
use gristmill_engine::row_files;
use gristmill_format::{Error as FormatError, Kind};
use xxhash_rust::xxh3::Xxh3;

use super::beside::{self, Beside};

/// One pack.
pub(super) struct Input {
    pub(super) path: PathBuf,
    pub(super) files: Vec<RowsOf>,
    pub(super) beside: Beside,
    /// Ids of its runs, ascending, and how many rows the database says each has.
    pub(super) runs: Vec<(u32, u64)>,
    pub(super) types: ValuationTypes,
    /// What each of its valuation ids is in the new pack.
    pub(super) ids: Vec<u8>,
    pub(super) manifest: Option<Manifest>,
    /// Id of its first run in the new pack.
    pub(super) first_run: u64,
}

impl Input {
    /// Opens the pack in the folder `path`. Its names are unified with `types`; none for the pack that gives them.
    ///
    /// Errors: `Format` naming the file: what is missing, damaged, or holds other rows.
    pub(super) fn open(path: &Path, types: Option<&mut ValuationTypes>) -> Result<Self> {
        let (files, beside) = beside::open(path)?;
        let database = path.join(pack::METADATA);
        let wrong = |e: FormatError| Error::from(e.in_source(database.display().to_string()));
        let mut runs = Vec::new();
        Metadata::open(&database)?.runs(&mut |run| {
            let id = u32::try_from(run.id);
            let id = id.map_err(|_| {
                wrong(FormatError::new(Kind::OutOfRange, format!("run id {}: rows have 32 bits for it", run.id)))
            })?;
            runs.push((id, run.steps));
            Ok(())
        })?;
        let names = path.join(row_files::VALUATION_TYPES);
        let own = pack::open::valuations(path)?;
        let ids = match types {
            Some(types) => types.unify(&own).map_err(|e| e.in_source(names.display().to_string()))?,
            None => own.clone().unify(&own)?,
        };
        let manifest = Manifest::read(path)?;
        Ok(Input { path: path.to_owned(), files, beside, runs, types: own, ids, manifest, first_run: 0 })
    }

    /// Rows in all files.
    pub(super) fn rows(&self) -> u64 {
        self.files.iter().map(|file| file.shard.rows).sum()
    }

    /// Whether its valuations have the same ids in the new pack.
    pub(super) fn keeps_names(&self) -> bool {
        self.ids.iter().enumerate().all(|(was, is)| was == usize::from(*is))
    }

    /// Writes the session entries of pack number `i`. A key that an earlier pack has with another value gets the
    /// pack's number after it, from 1.
    pub(super) fn put_session(&self, i: usize, earlier: &[Input], metadata: &mut MetadataWriter) -> Result<()> {
        let session = |input: &Input| Metadata::open(input.path.join(pack::METADATA))?.session();
        for (key, value) in session(self)? {
            let mut taken = false;
            for input in earlier {
                taken |= session(input)?.get(&key).is_some_and(|theirs| *theirs != value);
            }
            let key = if taken { format!("{key}@{}", i + 1) } else { key };
            metadata.put_session(&key, &value)?;
        }
        Ok(())
    }
}

/// The sums over the rows of a pack, held against its database and its manifest.
pub(super) struct Tally {
    /// The hash of each file.
    hashes: Vec<Xxh3>,
    /// Rows of each run, and the number of its first one.
    runs: Vec<(u64, u64)>,
    first_row: u64,
    at: u64,
}

impl Tally {
    /// Starts where the first row of the pack goes.
    pub(super) fn new(input: &Input, first_row: u64) -> Self {
        let hashes = input.files.iter().map(|_| Xxh3::new()).collect();
        Tally { hashes, runs: vec![(0, 0); input.runs.len()], first_row, at: first_row }
    }

    /// Takes in the next block of a file: its bytes as they were stored, and its rows as (position of the run in the
    /// pack, rows).
    pub(super) fn add(&mut self, file: usize, stored: &[u8], runs: &[(usize, u64)]) {
        self.hashes[file].update(stored);
        for &(run, rows) in runs {
            if let Some((count, first)) = self.runs.get_mut(run) {
                if *count == 0 {
                    *first = self.at;
                }
                *count += rows;
            }
            self.at += rows;
        }
    }

    /// Writes the runs of the pack under their new ids.
    ///
    /// Errors: `Format` naming the database and the run when the rows are not as many as it says; `Corrupt` naming the
    /// file whose rows do not have the hash of the manifest.
    pub(super) fn finish(self, input: &Input, metadata: &mut MetadataWriter) -> Result<Merged> {
        let files = self.files(input)?;
        let path = input.path.join(pack::METADATA);
        for (&(id, said), &(found, _)) in input.runs.iter().zip(&self.runs) {
            if said != found {
                let detail =
                    format!("run {id} has {said} steps, the files of rows have {found}; see `gristmill verify`");
                return Err(FormatError::new(Kind::WrongSize, detail).in_source(path.display().to_string()).into());
            }
        }
        let old = Metadata::open(&path)?;
        let new_id = |id: u64| {
            let at = input.runs.binary_search_by_key(&id, |(id, _)| u64::from(*id)).ok()?;
            Some((at, input.first_run + at as u64))
        };
        old.runs(&mut |run| match new_id(run.id) {
            Some((_, id)) => metadata.put_run(&Run { id, ..run }),
            None => Ok(()),
        })?;
        old.extras(&mut |mut extra| {
            let Some((at, id)) = new_id(extra.run_id) else { return Ok(()) };
            let (rows, first_row) = self.runs[at];
            extra.run_id = id;
            extra.first_row = if rows == 0 { self.first_row } else { first_row };
            metadata.put_extra(&extra)
        })?;
        metadata.commit()?;
        let rows = self.at - self.first_row;
        Ok(Merged { rows, runs: input.runs.len() as u64, files })
    }

    /// The files as they were read.
    fn files(&self, input: &Input) -> Result<Vec<RowFile>> {
        let mut files = Vec::new();
        for (file, hash) in input.files.iter().zip(&self.hashes) {
            let name = file.shard.path.file_name().map(|name| name.to_string_lossy().into_owned());
            let (name, xxh3_128) = (name.unwrap_or_default(), format!("{:032x}", hash.digest128()));
            let said = input.manifest.iter().flat_map(|manifest| &manifest.files).find(|said| said.name == name);
            if said.is_some_and(|said| said.xxh3_128 != xxh3_128) {
                let e = FormatError::new(
                    Kind::Corrupt,
                    "the rows do not have the hash of the manifest; see `gristmill verify`",
                );
                return Err(e.in_source(file.shard.path.display().to_string()).into());
            }
            files.push(RowFile { name, rows: file.shard.rows, xxh3_128 });
        }
        Ok(files)
    }
}
