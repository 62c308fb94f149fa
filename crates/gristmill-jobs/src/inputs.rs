//! Paths -> their files and packs of rows, each with its place among the bytes of all; and those that a process has to read,
//! which are all of them, or a share. Opens no file.

use std::borrow::Cow;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use gristmill_engine::error::{Error, Result};
use gristmill_engine::pack::STAGING;
use gristmill_engine::store::place::resolved;
use gristmill_engine::store::publish::is_interrupted;
use gristmill_format::Kind;

use crate::files::{self, Closed, Listing};
use crate::shares::{Portion, Unit};
use crate::work::Opened;

/// The ending of chunk files. A share may take some chunks of one, since each chunk is read by itself.
const CUT: &str = ".chunks";

/// What lies at each of some paths.
pub(crate) struct Inputs {
    /// The paths as they were given, and what lies there; the error of one that cannot be listed.
    pub(crate) paths: Vec<(PathBuf, gristmill_format::Result<Listing>)>,
}

/// A file, and the part of it that this process reads.
pub(crate) struct OwnFile {
    pub(crate) file: Closed,
    pub(crate) place: Place,
}

/// The bytes of a file or of a pack of rows among the bytes of all inputs, and the portion that one process takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    portion: Portion,
    at: u128,
    bytes: u128,
    /// Whether shares may have a part of it.
    cut: bool,
}

impl Place {
    /// A file that is read whole.
    pub(crate) fn whole() -> Self {
        Place { portion: Portion::Whole, at: 0, bytes: 1, cut: false }
    }

    /// Whether this process reports on the file or pack as a whole. Exactly one of the shares that have a part of it does.
    pub(crate) fn begins(&self) -> bool {
        !self.cut || self.portion.begins(self.at)
    }

    /// Whether a process has all of it.
    pub(crate) fn is_whole(&self) -> bool {
        !self.portion.is_share()
    }

    /// Whether rows of a pack are its own, from number `first` on, of `total`.
    pub(crate) fn has_rows(&self, first: u64, rows: u64, total: u64) -> bool {
        let at = |row: u64| self.at + self.bytes * u128::from(row) / u128::from(total.max(1));
        self.portion.has(at(first), at(first + rows) - at(first))
    }

    /// Whether chunk `i` of the opened file is its own.
    pub(crate) fn has(&self, file: &Opened, i: usize) -> bool {
        if !self.cut || !self.portion.is_share() {
            return true;
        }
        match file.source.locate(i).filter(|_| file.is_of_chunks()) {
            Some((span, _)) => {
                let start = u128::from(span.offset).min(self.bytes - 1);
                self.portion.has(self.at + start, u128::from(span.len).min(self.bytes - start))
            }
            None => self.begins(),
        }
    }
}

impl Inputs {
    /// Lists all paths.
    pub(crate) fn list(paths: &[PathBuf]) -> Self {
        // The listing refuses what names no place.
        let listed = |path: &PathBuf| files::list(&resolved(path).unwrap_or(Cow::Borrowed(path)));
        Inputs { paths: paths.iter().map(|path| (path.clone(), listed(path))).collect() }
    }

    /// Lists the paths of a report.
    ///
    /// Errors: `Format`, of `Io`, for a path where nothing is: the caller named a wrong one, and the data have no fault. What a job
    /// left that was interrupted while it put its files in place is a fault of the data.
    pub(crate) fn there(paths: &[PathBuf]) -> Result<Self> {
        let inputs = Inputs::list(paths);
        for (path, listing) in &inputs.paths {
            let Err(e) = listing else { continue };
            let is_nothing = matches!(e.kind(), Kind::Io(ErrorKind::NotFound | ErrorKind::NotADirectory));
            if is_nothing && !is_interrupted(path, STAGING) {
                return Err(e.clone().into());
            }
        }
        Ok(inputs)
    }

    /// Every file, in order: the inputs of the plan of shares.
    ///
    /// Errors: `Config` in `share` where something cannot be listed, or a path has nothing: the shares of another process might
    /// be of other inputs.
    pub(crate) fn units(&self) -> Result<Vec<Unit>> {
        let refuse = |path: &Path, why: &dyn std::fmt::Display| {
            let text = format!("{}: {why}; every process must list the same files", path.display());
            Err(Error::config("share", text))
        };
        let mut units = Vec::new();
        for (path, listing) in &self.paths {
            let listing = match listing {
                Ok(listing) => listing,
                Err(e) => return refuse(path, e),
            };
            if let Some(unlisted) = listing.unlisted.first() {
                return refuse(path, &unlisted.latest);
            }
            if listing.files.is_empty() && listing.packs.is_empty() {
                return refuse(path, &"there is no file");
            }
            units.extend(listing.files.iter().map(|file| unit(file.path().to_owned(), file.bytes())));
            let parts = listing.parts.iter().flatten();
            units.extend(parts.map(|(name, bytes)| unit(path.join(name).display().to_string(), *bytes)));
        }
        Ok(units)
    }

    /// What of each path is the process's own: its files, whether the path begins in its portion, and its packs of rows by number.
    pub(crate) fn own(&self, portion: Portion) -> Vec<Own> {
        let mut at = 0;
        let mut all = Vec::new();
        for (_, listing) in &self.paths {
            let mut own = Own { begins: portion.begins(at), files: Vec::new(), packs: Vec::new() };
            let Ok(listing) = listing else {
                all.push(own);
                continue;
            };
            for file in &listing.files {
                let (bytes, cut) = (weight(file.bytes()), file.named(CUT));
                if if cut { portion.touches(at, bytes) } else { portion.has(at, bytes) } {
                    own.files.push(OwnFile { file: file.clone(), place: Place { portion, at, bytes, cut } });
                }
                at += bytes;
            }
            for (number, parts) in listing.parts.iter().enumerate() {
                let bytes = parts.iter().map(|(_, bytes)| weight(*bytes)).sum();
                if portion.touches(at, bytes) {
                    own.packs.push((number, Place { portion, at, bytes, cut: true }));
                }
                at += bytes;
            }
            all.push(own);
        }
        all
    }
}

/// What of a path a process has.
pub(crate) struct Own {
    /// Whether the first byte of the path is its own.
    pub(crate) begins: bool,
    pub(crate) files: Vec<OwnFile>,
    /// Packs of rows by number, of which it may have rows.
    pub(crate) packs: Vec<(usize, Place)>,
}

fn unit(name: String, bytes: u64) -> Unit {
    Unit { name, bytes, inputs: 1 }
}

/// The weight of a file, as [`Unit`] has it.
fn weight(bytes: u64) -> u128 {
    unit(String::new(), bytes).weight()
}
