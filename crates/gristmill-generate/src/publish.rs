//! The bytes of a generated file -> the file. It appears under its name only when it is whole.
//! Nothing that exists is overwritten, unless that is wanted.

use std::path::{Path, PathBuf};

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::store::publish::Staged;

/// Writes `bytes` under a hidden name in `folder` and renames it to `name`.
///
/// Not forced to the disk: the same seed gives the same games again.
///
/// Errors: `Path` when the folder cannot be written or `name` exists and is not to be replaced.
pub(super) fn publish(folder: &Path, name: &str, bytes: &[u8], overwrite: bool) -> Result<PathBuf> {
    let path = folder.join(name);
    if !overwrite && path.exists() {
        let e = std::io::Error::new(std::io::ErrorKind::AlreadyExists, "is there already; --overwrite replaces it");
        return Err(Error::path(path, &e));
    }
    let mut staged = Staged::new(path.clone())?;
    staged.append(bytes)?;
    staged.publish()?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_exists_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        publish(folder.path(), "a", b"one", false).unwrap();
        assert!(publish(folder.path(), "a", b"two", false).is_err());
        assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"one");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
