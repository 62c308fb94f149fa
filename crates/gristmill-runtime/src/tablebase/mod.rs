//! Directories -> a Syzygy tablebase that knows what it covers; what is missing or damaged is an error unless allowed.
//! Opens and maps files; every answer is the format's.

mod map;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_format::chess::rescore::Tablebase;
use gristmill_format::chess::syzygy::{Coverage, Material, Table, TableKind, Tables};
use xxhash_rust::xxh3::xxh3_64;

use self::map::Mapped;
use crate::error::{Error, Result};

/// An open tablebase.
#[derive(Debug, Clone)]
pub struct Syzygy {
    tables: Arc<Tables<Mapped>>,
    faults: Vec<gristmill_format::Error>,
    fingerprint: u64,
}

impl Syzygy {
    /// Opens every `.rtbw` and `.rtbz` file right in these directories; of two of one name the first counts.
    ///
    /// Errors: `Path` for a directory or file that cannot be read; `Config` where there is no table, or where a complete set
    /// of as many men has more; `Format` for a damaged one. None with `allow_missing`: [`Syzygy::lacks`] says what they are.
    pub fn open(directories: &[PathBuf], allow_missing: bool) -> Result<Self> {
        let (mut tables, mut faults) = (Vec::new(), Vec::new());
        let mut survived = |e: Error| match e {
            Error::Path { path, kind, message } if allow_missing => {
                let fault = gristmill_format::Error::new(gristmill_format::Kind::Io(kind), message);
                faults.push(fault.in_source(path.display().to_string()));
                Ok(())
            }
            Error::Format(e) if allow_missing => {
                faults.push(e);
                Ok(())
            }
            e => Err(e),
        };
        let mut files: BTreeMap<(String, TableKind), PathBuf> = BTreeMap::new();
        for directory in directories {
            list(directory, &mut files).or_else(&mut survived)?;
        }
        let mut names = String::new();
        for ((name, kind), path) in files {
            let in_file = |e: gristmill_format::Error| e.in_source(path.display().to_string()).into();
            match read(&name, kind, &path).and_then(|read| read.map_err(in_file)) {
                Ok((table, size)) => {
                    names.push_str(&format!("{name}.{} {size}\n", kind.extension()));
                    tables.push(table);
                }
                Err(e) => survived(e)?,
            }
        }
        let tables = Tables::new(tables);
        let coverage = tables.coverage();
        if !allow_missing && (coverage.tables[0] == 0 || !coverage.is_complete()) {
            let shown: Vec<String> = directories.iter().map(|d| d.display().to_string()).collect();
            let advice = "fetch what is missing, or allow missing tables";
            return Err(Error::config("syzygy", format!("{}: {coverage}; {advice}", shown.join(", "))));
        }
        Ok(Syzygy { tables: Arc::new(tables), faults, fingerprint: xxh3_64(names.as_bytes()) })
    }

    /// The directories in a list between commas, or what separates paths on this system.
    pub fn directories(list: &str) -> Vec<PathBuf> {
        let parts = list.split(',').flat_map(|part| std::env::split_paths(part.trim()).collect::<Vec<_>>());
        parts.filter(|path| !path.as_os_str().is_empty()).collect()
    }

    /// What the tables that are there cover.
    pub fn coverage(&self) -> &Coverage {
        self.tables.coverage()
    }

    /// The value of a position in Forsyth-Edwards notation for the side to move, -2 (lost) to 2 (won), and, on request,
    /// the plies to the next capture or pawn move.
    ///
    /// Errors: `OutOfRange` for what is no position; `Refused` by the reason why it cannot be probed.
    pub fn probe(&self, fen: &str, plies: bool) -> gristmill_format::Result<(i32, Option<i32>)> {
        let board: cozy_chess::Board = fen.parse().map_err(|e: cozy_chess::FenParseError| {
            gristmill_format::Error::new(gristmill_format::Kind::OutOfRange, format!("`{fen}` is no position: {e}"))
        })?;
        let wdl = self.tables.wdl(&board)?;
        let plies = if plies { Some(self.tables.dtz(&board)?) } else { None };
        Ok((wdl.number(), plies))
    }

    /// What was left out because it cannot be read: directories and damaged tables.
    pub fn faults(&self) -> &[gristmill_format::Error] {
        &self.faults
    }

    /// What it does without, in words: directories and tables that cannot be read, and what is missing of the set.
    pub fn lacks(&self) -> Vec<String> {
        let mut lacks: Vec<String> = self.faults.iter().map(ToString::to_string).collect();
        let coverage = self.coverage();
        if coverage.tables[0] == 0 || !coverage.is_complete() {
            lacks.push(coverage.to_string());
        }
        lacks
    }

    /// A number that tells sets of tables apart, by their names and sizes.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The tablebase, as passes ask it.
    pub fn tables(&self) -> Arc<dyn Tablebase> {
        Arc::clone(&self.tables) as Arc<dyn Tablebase>
    }
}

/// Adds the tables of a directory that are not there yet.
fn list(directory: &Path, files: &mut BTreeMap<(String, TableKind), PathBuf>) -> Result<()> {
    let failed = |e: std::io::Error| Error::path(directory, &e);
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let extension = path.extension().and_then(|e| e.to_str());
        let kind = TableKind::ALL.into_iter().find(|kind| extension == Some(kind.extension()));
        let (Some(kind), Some(name)) = (kind, path.file_stem().and_then(|name| name.to_str())) else { continue };
        files.entry((name.to_owned(), kind)).or_insert(path);
    }
    Ok(())
}

/// Reads one table; the outer error is the operating system's.
fn read(name: &str, kind: TableKind, path: &Path) -> Result<gristmill_format::Result<(Table<Mapped>, usize)>> {
    let Some(material) = Material::parse(name) else {
        let text = format!("`{name}` names no men, such as KQvKR of at most seven; rename or remove the file");
        return Ok(Err(gristmill_format::Error::new(gristmill_format::Kind::UnknownFormat, text)));
    };
    if fs::metadata(path).map_err(|e| Error::path(path, &e))?.len() == 0 {
        return Ok(Err(gristmill_format::Error::new(gristmill_format::Kind::Empty, "the file is empty")));
    }
    let bytes = Mapped::open(path).map_err(|e| Error::path(path, &e))?;
    let size = bytes.as_ref().len();
    Ok(Table::read(kind, material, bytes).map(|table| (table, size)))
}

#[cfg(test)]
mod tests;
