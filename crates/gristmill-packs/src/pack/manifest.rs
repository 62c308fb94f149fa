//! `manifest.json` <-> what a pack holds: rows, runs, files with their hashes, where it came from, what was left out.
//! Written last; holds no time and no path of a machine, so that the same games give the same bytes.

use std::path::Path;

use gristmill_runtime::error::Result;
use gristmill_runtime::lineage::Step;
use serde::{Deserialize, Serialize};

pub use crate::manifest::Skipped;
use crate::manifest::{parse, read, to_json};

/// What `format` says.
pub const FORMAT: &str = "gristmill.pack.2048";

/// The version that is written, and the newest that is read.
pub const VERSION: u32 = 1;

/// The manifest of a pack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`]: raised when the meaning of a file of the pack changes.
    pub version: u32,
    /// Name and version of the program that wrote the pack.
    pub writer: String,
    /// Form of the rows: `aligned48` or `packed46`.
    pub layout: String,
    /// Rows in all files.
    pub rows: u64,
    /// Games, those without rows included.
    pub runs: u64,
    /// Rows of every file but the last; none when there is one file for all.
    pub shard_rows: Option<u64>,
    /// The files of rows, in order.
    pub files: Vec<RowFile>,
    /// What the rows were made of.
    pub sources: Sources,
    /// What was found and is not in the pack, and why.
    pub skipped: Vec<Skipped>,
    /// What is odd about games that are in the pack.
    #[serde(default)]
    pub remarks: Vec<Remarked>,
    /// How the pack came to be: jobs, in order; none in packs of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lineage: Vec<Step>,
}

/// Something odd about a game that cost it nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remarked {
    /// Path of the log below the folder that was packed, with `/`.
    pub file: String,
    /// What is odd.
    pub detail: String,
}

/// One file of rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowFile {
    /// Its name.
    pub name: String,
    /// How many rows it has.
    pub rows: u64,
    /// XXH3-128 of everything after the header, as 32 hexadecimal digits.
    pub xxh3_128: String,
}

/// What the rows were made of. The logs one by one are in table `extras` of the database.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources {
    /// Logs that became runs.
    pub logs: u64,
    /// Their bytes as stored.
    pub stored_bytes: u64,
    /// Packs that were merged, from the first to the last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<Merged>,
}

impl Sources {
    /// Adds logs and their bytes, up to the largest number: a manifest may have said anything before.
    pub fn add(&mut self, logs: u64, stored_bytes: u64) {
        self.logs = self.logs.saturating_add(logs);
        self.stored_bytes = self.stored_bytes.saturating_add(stored_bytes);
    }
}

/// A pack that went into this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Merged {
    /// Its rows.
    pub rows: u64,
    /// Its runs; they have consecutive ids here.
    pub runs: u64,
    /// Its files of rows, as they were read.
    pub files: Vec<RowFile>,
}

impl Manifest {
    /// The text: two spaces of indent, a final line feed.
    ///
    /// Errors: none that data could cause.
    pub fn to_json(&self) -> Result<String> {
        to_json(self)
    }

    /// Reads the manifest of a pack; `None` where there is none, as in packs of other programs.
    ///
    /// Errors: `Format` with the path: `Io`, `Corrupt` for what is no manifest, `UnknownVersion` for a newer one.
    pub fn read(pack: &Path) -> Result<Option<Self>> {
        read(pack, &Self::parse)
    }

    fn parse(text: &str) -> gristmill_format::Result<Self> {
        parse(text, FORMAT, VERSION)
    }
}

#[cfg(test)]
mod tests {
    use gristmill_format::Kind;

    use super::*;

    #[test]
    fn manifests_come_back_and_others_are_refused() {
        let manifest = Manifest {
            format: FORMAT.into(),
            version: VERSION,
            writer: "gristmill 0.1.0".into(),
            layout: "aligned48".into(),
            rows: 3,
            runs: 2,
            shard_rows: None,
            files: vec![RowFile { name: "steps.npy".into(), rows: 3, xxh3_128: format!("{:032x}", 7) }],
            sources: Sources { logs: 2, stored_bytes: 100, merged: Vec::new() },
            skipped: vec![Skipped {
                file: "a/g.jsonl.gz".into(),
                kind: "corrupt".into(),
                line: Some(3),
                column: Some(9),
                offset: None,
                detail: "expected a number".into(),
            }],
            remarks: vec![Remarked { file: "b/g.jsonl.gz".into(), detail: "no row has an EV".into() }],
            lineage: Vec::new(),
        };
        let text = manifest.to_json().unwrap();
        assert_eq!(Manifest::parse(&text).unwrap(), manifest);
        let newer = text.replace("\"version\": 1", "\"version\": 2");
        assert_eq!(Manifest::parse(&newer).unwrap_err().kind(), Kind::UnknownVersion);
        let other = text.replace(FORMAT, "a.b");
        assert_eq!(Manifest::parse(&other).unwrap_err().kind(), Kind::UnknownFormat);
        assert_eq!(Manifest::parse(&text[..text.len() / 2]).unwrap_err().kind(), Kind::Corrupt);
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Manifest::read(folder.path()).unwrap(), None);
    }
}
