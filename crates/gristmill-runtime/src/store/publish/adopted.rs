//! A file that is whole and durable under another name -> the same file under its own: by a link where the file system has links,
//! else as a copy. The other name stays.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::staged::{Staged, hidden, remove};
use crate::error::{Error, Result};

/// Publishes the file `from` as `path`, in a folder that is made if need be; its length in bytes. What was under the name is gone.
/// The folders are to be forced to the disk.
///
/// Errors: `Path`, of `from` where it cannot be read.
pub fn adopt(from: &Path, path: &Path) -> Result<u64> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|e| Error::path(folder, &e))?;
    }
    let refused = |e: io::Error| Error::path(path, &e);
    let part = hidden(path);
    // What a killed process left.
    remove(&part).map_err(refused)?;
    match fs::hard_link(from, &part) {
        Ok(()) => {
            fs::rename(&part, path).map_err(refused)?;
            // Where both names are of one file already, a rename does nothing.
            remove(&part).map_err(refused)?;
            Ok(fs::symlink_metadata(path).map_err(refused)?.len())
        }
        Err(e) if e.kind() == ErrorKind::NotFound => Err(Error::path(from, &e)),
        Err(_) => copied(from, path),
    }
}

/// The same, as a copy.
fn copied(from: &Path, path: &Path) -> Result<u64> {
    let mut open = File::open(from).map_err(|e| Error::path(from, &e))?;
    let mut staged = Staged::new(PathBuf::from(path))?;
    io::copy(&mut open, &mut staged).map_err(|e| Error::path(path, &e))?;
    staged.seal()?;
    staged.publish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gets_its_name_and_keeps_the_other() {
        let here = tempfile::tempdir().unwrap();
        let at = |name: &str| here.path().join(name);
        fs::write(at("made"), "whole").unwrap();
        fs::create_dir(at("deep")).unwrap();
        fs::write(at("deep/out"), "old").unwrap();
        fs::write(at("deep/.out.part"), "left by a killed process").unwrap();
        // The second time as after a kill.
        for publish in [adopt, adopt, copied] {
            assert_eq!(publish(&at("made"), &at("deep/out")).unwrap(), 5);
            assert_eq!(fs::read(at("deep/out")).unwrap(), b"whole");
            assert_eq!(fs::read(at("made")).unwrap(), b"whole");
            assert_eq!(fs::read_dir(at("deep")).unwrap().count(), 1);
        }
        assert_eq!(adopt(&at("made"), &at("new/folder/out")).unwrap(), 5);
        let missing = adopt(&at("none"), &at("deep/out")).unwrap_err();
        assert!(missing.to_string().contains("none"), "{missing}");
        assert_eq!(fs::read(at("deep/out")).unwrap(), b"whole");
        // No file of another file system gets a name here: it is copied.
        let far = Path::new("/proc/version");
        assert_eq!(adopt(far, &at("deep/out")).unwrap(), fs::read(far).unwrap().len() as u64);
        assert_eq!(fs::read(at("deep/out")).unwrap(), fs::read(far).unwrap());
    }
}
