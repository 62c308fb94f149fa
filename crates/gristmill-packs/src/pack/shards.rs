//! The folder of a pack -> its files of rows, in the order in which rows are numbered, with their headers read.
//! Opens no file for longer than its header takes, and guesses no offset.

use std::path::{Path, PathBuf};

use gristmill_format::container::npy::Header;
use gristmill_format::layout::{DType, Layout};
use gristmill_format::{Error, Kind};
use gristmill_runtime::error::Result;
use gristmill_runtime::store::{open_file, publish};

use crate::holdings::Holdings;
use crate::row_files::{SINGLE, is_rows, listed};

/// One file of rows.
#[derive(Debug, Clone)]
pub struct Shard {
    /// Where it is.
    pub path: PathBuf,
    /// Its records.
    pub layout: Layout,
    /// How many there are.
    pub rows: u64,
    /// Byte of the file at which they start.
    pub offset: u64,
}

/// The name of shard `i`.
pub fn name(i: usize) -> String {
    format!("steps-{i:05}.npy")
}

/// Names of the files of rows in a folder: `steps.npy` first, then `steps-*.npy` by name.
///
/// Errors: `Path` when the folder cannot be listed.
pub fn names(pack: &Path) -> Result<Vec<String>> {
    let mut names = listed(pack, is_rows)?;
    names.sort_unstable_by_key(|name| (name != SINGLE, name.len(), name.clone()));
    Ok(names)
}

/// Names of the files of rows of the pack in the folder `pack`, as [`names`].
///
/// Errors: `Path`; `Format` with the folder: `Missing` where there are none, `Unfit` for a pack of something else, `Corrupt` when
/// a job was interrupted while it changed the pack.
pub fn complete(pack: &Path) -> Result<Vec<String>> {
    let refuse = |kind: Kind, detail: &str| Err(Error::new(kind, detail).in_source(pack.display().to_string()).into());
    if publish::is_interrupted(pack, super::STAGING) {
        let detail = format!(
            "a job was interrupted while it put its files in place; `gristmill recover {}` finishes it",
            pack.display()
        );
        return refuse(Kind::Corrupt, &detail);
    }
    let names = names(pack)?;
    if names.is_empty() {
        if gristmill_runtime::names::is_pack(pack)? {
            return refuse(Kind::Unfit, "this is a pack of whole games; a pack of rows of 2048 is needed here");
        }
        let none = "no steps.npy and no steps-*.npy: this folder is no pack";
        let Some(games) = unpacked(pack)? else {
            return refuse(Kind::Missing, &format!("{none}; it {}", Holdings::of(pack).told(pack)));
        };
        let advice = format!(
            "{none}; it holds files of games, such as {games}: `gristmill pack` (in Python gristmill.pack) makes a pack of \
             them in a folder of its own"
        );
        return refuse(Kind::Missing, &advice);
    }
    Ok(names)
}

/// The first file in a folder, by name, that packs are made of.
fn unpacked(folder: &Path) -> Result<Option<String>> {
    let is_games = |name: &str| [".gz", ".tar", ".jsonl"].iter().any(|ending| name.ends_with(ending));
    Ok(listed(folder, is_games)?.into_iter().next())
}

/// The file of rows at `path`.
///
/// Errors, with the file: `Unsupported` for an array that is no list of records, what [`Header::read`] says.
pub fn open(path: PathBuf) -> gristmill_format::Result<Shard> {
    let place = |e: Error| e.in_source(path.display().to_string());
    let header = open_file(&path).and_then(|file| Header::read(&*file)).map_err(place)?;
    let (DType::Record(layout), &[rows]) = (header.dtype(), header.shape()) else {
        let detail = format!("expected one axis of records, found shape {:?}", header.shape());
        return Err(place(Error::new(Kind::Unsupported, detail)));
    };
    Ok(Shard { layout: layout.clone(), rows, offset: header.data_offset(), path })
}

/// The files of rows of the pack in the folder `pack`.
///
/// Errors: as [`complete`] and [`open`].
pub fn list(pack: &Path) -> Result<Vec<Shard>> {
    complete(pack)?.into_iter().map(|name| Ok(open(pack.join(name))?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_comes_first_and_shards_follow_by_number() {
        let pack = tempfile::tempdir().unwrap();
        for name in
            ["steps-00010.npy", "steps-00002.npy", "steps-100000.npy", "steps.npy", "steps.npy.tmp", "embed-1.npy"]
        {
            std::fs::write(pack.path().join(name), "").unwrap();
        }
        assert_eq!(
            names(pack.path()).unwrap(),
            ["steps.npy", "steps-00002.npy", "steps-00010.npy", "steps-100000.npy"]
        );
        let e = list(pack.path()).unwrap_err().to_string();
        assert!(e.contains("steps.npy") && e.contains("truncated"), "{e}");
        let games = tempfile::tempdir().unwrap();
        let refusal = || list(games.path()).unwrap_err().to_string();
        assert!(refusal().ends_with("this folder is no pack; it is empty"), "{}", refusal());
        for name in ["training.2.gz", "training.1.gz", "a.txt"] {
            std::fs::write(games.path().join(name), "").unwrap();
        }
        assert!(refusal().contains("such as training.1.gz: `gristmill pack`"), "{}", refusal());
    }
}
