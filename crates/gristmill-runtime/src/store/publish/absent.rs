//! What is whole under another name -> its own name, unless something has it: of several processes that try, one wins.
//! Needs no lock, so that it holds between machines that share a folder. Replaces nothing.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;

use super::{sync_folder, withdraw};
use crate::error::{Error, Result};
use crate::runtime::seed::fresh_root;

/// Writes `bytes` as the file at `path`, whole and durable, unless something has that name; whether it did. The folder is there.
///
/// Errors: `Path`.
pub fn put_absent(path: &Path, bytes: &[u8]) -> Result<bool> {
    put_absent_through(folder_of(path), path, bytes)
}

/// The folder in which a file is.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The same, but what a killed process leaves lies in `staging`, a folder of the same disk.
///
/// Errors: `Path`.
pub fn put_absent_through(staging: &Path, path: &Path, bytes: &[u8]) -> Result<bool> {
    let refused = |e: std::io::Error| Error::path(path, &e);
    let whole = staging.join(format!(".{:016x}.part", fresh_root()));
    let mut file = File::create_new(&whole).map_err(refused)?;
    let linked = file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| fs::hard_link(&whole, path));
    withdraw(&whole)?;
    match linked {
        Ok(()) => sync_folder(folder_of(path)).map(|()| true),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(e) => Err(refused(e)),
    }
}

/// Gives a folder, whose files are durable, the name `path` beside it, unless something has that name; whether it did.
///
/// Errors: `Path`.
pub fn settle_absent(folder: &Path, path: &Path) -> Result<bool> {
    sync_folder(folder)?;
    match fs::rename(folder, path) {
        Ok(()) => path.parent().map_or(Ok(()), sync_folder).map(|()| true),
        Err(e) if matches!(e.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists) => Ok(false),
        Err(e) => Err(Error::path(path, &e)),
    }
}

/// Removes a folder: at once for all who look for its name, which it loses first. What an earlier removal left goes too.
/// Several may remove it at the same time: all succeed.
///
/// Errors: `Path`.
pub fn remove_at_once(folder: &Path) -> Result<()> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let gone = folder.with_file_name(format!(".{name}.gone"));
    loop {
        withdraw(&gone)?;
        match fs::rename(folder, &gone) {
            // Another process removed a folder of this name in between, and then one was made again.
            Err(e) if matches!(e.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists) => {}
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(Error::path(folder, &e)),
            _ => return withdraw(&gone),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_two_files_and_folders_stays() {
        let here = tempfile::tempdir().unwrap();
        let at = |name: &str| here.path().join(name);
        assert!(put_absent(&at("plan"), b"one").unwrap() && !put_absent(&at("plan"), b"two").unwrap());
        assert_eq!(fs::read(at("plan")).unwrap(), b"one");
        for name in ["a", "b"] {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("file"), name).unwrap();
        }
        assert!(settle_absent(&at("a"), &at("c")).unwrap() && !settle_absent(&at("b"), &at("c")).unwrap());
        assert_eq!(fs::read(at("c").join("file")).unwrap(), b"a");
        assert!(at("b").exists());
        remove_at_once(&at("c")).unwrap();
        remove_at_once(&at("c")).unwrap();
        let left = fs::read_dir(here.path()).unwrap().count();
        assert_eq!(left, 2, "the plan, and the folder that came second");
    }

    #[test]
    fn several_that_remove_one_folder_at_once_all_succeed() {
        let here = tempfile::tempdir().unwrap();
        let folder = here.path().join("shares");
        for round in 0..1000 {
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("plan"), "one").unwrap();
            let removed = std::thread::scope(|scope| {
                let all: Vec<_> = (0..2).map(|_| scope.spawn(|| remove_at_once(&folder))).collect();
                all.into_iter().map(|one| one.join().unwrap()).collect::<Result<Vec<()>>>()
            });
            removed.unwrap_or_else(|e| panic!("round {round}: {e}"));
            assert_eq!(fs::read_dir(here.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn what_cannot_be_done_is_an_error_and_leaves_nothing() {
        let here = tempfile::tempdir().unwrap();
        let at = |name: &str| here.path().join(name);
        fs::write(at("file"), "").unwrap();
        fs::create_dir(at("a")).unwrap();
        assert!(put_absent_through(here.path(), &at("none/plan"), b"one").is_err());
        assert!(settle_absent(&at("a"), &at("none/c")).is_err());
        assert!(remove_at_once(&at("file/inner")).is_err());
        assert!(remove_at_once(&at("a/..")).is_err(), "the system gives it no other name");
        // What an earlier removal left.
        fs::create_dir_all(at(".b.gone/deep")).unwrap();
        remove_at_once(&at("b")).unwrap();
        let mut left: Vec<_> = fs::read_dir(here.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["a", "file"]);
    }
}
