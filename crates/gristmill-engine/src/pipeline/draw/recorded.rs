//! A file as journals and states remember it, and whether a file that is there now is as it was.
//! Reads nothing.

use gristmill_runtime::store::FileStat;
use serde::{Deserialize, Serialize};

/// A file as a journal or state remembers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::pipeline) struct Recorded {
    pub(in crate::pipeline) id: u64,
    pub(in crate::pipeline) name: String,
    pub(in crate::pipeline) size: u64,
    /// Time of change when it was first seen, in nanoseconds since 1970. Absent in what older versions wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::pipeline) mtime: Option<i64>,
    /// Which version of an object it was when it was first seen: a hash of its ETag, as 16 hexadecimal digits. Absent of files
    /// that have none, and in what older versions wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::pipeline) version: Option<String>,
    /// What was first read of it: a digest of its bytes, or of its index, as 16 hexadecimal digits. Absent where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::pipeline) bytes: Option<String>,
}

impl Recorded {
    /// Whether a file of its name and size is as it was: of the same time and, where both say one, of the same version.
    pub(in crate::pipeline) fn is_untouched(&self, mtime: Option<i64>, version: Option<&str>) -> bool {
        let is_of_version = self.version.as_deref().zip(version).is_none_or(|(was, is)| was == is);
        self.mtime.is_some() && self.mtime == mtime && is_of_version
    }

    /// The digest of its first reading.
    pub(in crate::pipeline) fn digest(&self) -> Option<u64> {
        u64::from_str_radix(self.bytes.as_deref()?, 16).ok()
    }

    /// The same file with the digest of its first reading, if it had none.
    pub(in crate::pipeline) fn read(mut self, digest: u64) -> Self {
        self.bytes.get_or_insert_with(|| format!("{digest:016x}"));
        self
    }
}

/// A file that was found, under its id.
pub(in crate::pipeline) fn record(id: u64, stat: &FileStat) -> Recorded {
    let (name, version) = (stat.name.to_string(), stat.version());
    Recorded { id, name, size: stat.size, mtime: Some(stat.mtime_ns), version, bytes: None }
}
