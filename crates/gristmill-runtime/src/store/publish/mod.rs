//! Bytes -> files that are under their names only when they are whole: one (`staged`), or several together (`staging`).
//! The one home of writing: all code that writes a file or a folder of files goes through here. Knows no format.

mod absent;
mod adopted;
mod folder;
mod left;
mod plan;
mod staged;
mod staging;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::path::Path;

use crate::error::{Error, Result};

pub use absent::{put_absent, put_absent_through, remove_at_once, settle_absent};
pub use adopted::adopt;
pub use left::{Left, State, left_in};
pub use staged::{Staged, Touched, withdraw, write_whole};
pub use staging::{Found, Staging, is_interrupted, is_staged, place_of};

/// Makes the names in a folder durable.
///
/// Errors: `Path`.
pub fn sync_folder(folder: &Path) -> Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder).and_then(|open| open.sync_all()).map_err(|e| Error::path(folder, &e))
}
