//! What a folder of columns says about itself (`docs/format/demonstrations.md`): which files it was made of, as they were then,
//! and what is in which file. Reads and writes JSON; judges nothing but whether it fits.

use std::path::Path;

use gristmill_format::{Error, Kind, Result};
use gristmill_runtime::store::files::stat;
use serde::{Deserialize, Serialize};

use super::origin::Origins;

/// The manifest's file.
pub(super) const FILE: &str = "columns.json";

/// The ends of trajectories: int64 (n, 2), the frame after the last and 1 where the trajectory was cut.
pub(super) const ENDS: &str = "_ends.npy";

/// The pickled metadata of a shard.
pub(super) const METADATA: &str = "_metadata.pickle";

/// Version of the folder; one of another version is rewritten.
const VERSION: u32 = 1;

/// What a folder of columns is of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Manifest {
    version: u32,
    /// The files, as they were.
    pub(super) sources: Vec<Stored>,
    /// How they were read.
    pub(super) options: String,
    /// Short name of the form.
    pub(super) format: String,
    /// NumPy's description of one record of all fields.
    pub(super) layout: String,
    /// How many steps there are.
    pub(super) frames: usize,
    /// Field and file.
    pub(super) columns: Vec<(String, String)>,
    /// Field without a fixed size, and the stem of its two files.
    pub(super) extras: Vec<(String, String)>,
    /// Whether there is metadata of a shard.
    pub(super) metadata: bool,
    /// Facts for people.
    pub(super) about: Vec<(String, String)>,
    /// Which file each trajectory begins in; of a folder of before nothing.
    #[serde(default)]
    pub(super) origins: Origins,
}

/// A file, as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stored {
    name: String,
    size: u64,
    mtime_ns: i64,
    inode: u64,
}

impl Stored {
    /// The state of a file now.
    ///
    /// Errors, with the path: `Io`.
    pub(super) fn of(path: &Path) -> gristmill_runtime::Result<Stored> {
        let stat = stat(path)?;
        let name = path.display().to_string();
        Ok(Stored { name, size: stat.size, mtime_ns: stat.mtime_ns, inode: stat.inode })
    }
}

impl Manifest {
    /// That of a folder which holds nothing yet.
    pub(crate) fn new(sources: Vec<Stored>, options: String) -> Manifest {
        Manifest {
            version: VERSION,
            sources,
            options,
            format: String::new(),
            layout: String::new(),
            frames: 0,
            columns: Vec::new(),
            extras: Vec::new(),
            metadata: false,
            about: Vec::new(),
            origins: Origins::default(),
        }
    }

    /// The manifest of a folder; `None` where there is none, or none that is understood.
    pub(super) fn read(folder: &Path) -> Option<Manifest> {
        let text = std::fs::read(folder.join(FILE)).ok()?;
        let found: Manifest = serde_json::from_slice(&text).ok()?;
        (found.version == VERSION).then_some(found)
    }

    /// Whether it is of the same files, unchanged since, read the same way.
    pub(super) fn is_of(&self, other: &Manifest) -> bool {
        self.sources == other.sources && self.options == other.options
    }

    /// Its bytes.
    ///
    /// Errors: `Corrupt` where JSON cannot say it.
    pub(super) fn text(&self) -> Result<Vec<u8>> {
        serde_json::to_vec_pretty(self).map_err(|e| Error::new(Kind::Corrupt, e.to_string()))
    }
}
