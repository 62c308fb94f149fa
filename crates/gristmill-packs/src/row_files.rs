//! Names of files -> what they are in a pack of rows: rows, values, vectors, checksums, and what lies beside them.
//! Looks at names only; opens nothing. Names that every pack has are in `gristmill_runtime::names`.

use std::path::Path;

use gristmill_runtime::error::Result;
use gristmill_runtime::lineage;
use gristmill_runtime::names::{MANIFEST, METADATA, OPENING, QUARANTINE};
use gristmill_runtime::store::files;

/// The file of rows of a pack that is not sharded.
pub const SINGLE: &str = "steps.npy";

/// What names of files of rows start with.
pub const ROWS: &str = "steps";

/// What names of files with values start with; the rest is that of the shard.
pub const VALUES: &str = "values";

/// The file that says how the values of a folder were made: ours alone.
pub const VALUES_MADE: &str = "values.json";

/// What names of files with vectors start with; the rest is that of the shard.
pub const VECTORS: &str = "embeddings";

/// What names of checksums of rows end with; the rest is that of the rows.
pub const CHECKSUMS: &str = ".xxh3";

/// Name of the file with the names of valuation types.
pub const VALUATION_TYPES: &str = "valuation_types.json";

/// Whether a file of this name holds rows of a pack.
pub fn is_rows(name: &str) -> bool {
    name == SINGLE || name.starts_with("steps-") && name.ends_with(".npy")
}

/// Whether a file of this name holds values of rows.
pub fn is_values(name: &str) -> bool {
    beside_rows(name, VALUES)
}

/// Whether a file of this name holds vectors of rows.
pub fn is_vectors(name: &str) -> bool {
    beside_rows(name, VECTORS)
}

/// Whether a file of this name holds checksums of rows.
pub fn is_checksums(name: &str) -> bool {
    name.strip_suffix(CHECKSUMS).is_some_and(is_rows)
}

/// Whether a file of this name belongs to the pack in its folder.
pub fn is_part(name: &str) -> bool {
    let beside = [METADATA, VALUATION_TYPES, MANIFEST, OPENING, QUARANTINE, VALUES_MADE, lineage::FILE];
    is_rows(name)
        || is_checksums(name)
        || is_vectors(name)
        || is_values(name)
        || beside.contains(&name)
        || name.strip_prefix(METADATA).is_some_and(|rest| ["-wal", "-shm"].contains(&rest))
}

/// The name of the file that lies beside the rows in the file `shard`, and whose name begins with `prefix`.
pub fn beside(shard: &str, prefix: &str) -> String {
    format!("{prefix}{}", shard.strip_prefix(ROWS).unwrap_or(shard))
}

fn beside_rows(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|rest| is_rows(&format!("{ROWS}{rest}")))
}

/// The names in a folder of which `is` is true, sorted.
///
/// Errors: `Path` when the folder cannot be listed, also where there is none.
pub fn listed(folder: &Path, is: impl Fn(&str) -> bool) -> Result<Vec<String>> {
    let mut names = files::names(folder)?;
    names.retain(|name| is(name));
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mirror_those_of_the_rows() {
        for (rows, values) in [("steps.npy", "values.npy"), ("steps-00012.npy", "values-00012.npy")] {
            assert_eq!(beside(rows, VALUES), values);
            assert!(is_values(values) && is_part(values) && !is_rows(values));
        }
        assert!(!is_values("values.json") && is_part("values.json") && !is_values("values-1.npz"));
    }
}
