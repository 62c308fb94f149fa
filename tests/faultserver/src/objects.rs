//! Files of a folder as objects: what one is, its bytes, lists, and writes that replace a file as a whole.
//! A condition is checked and the file written under one lock, as a bucket does it.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// What is known of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) key: String,
    pub(crate) size: u64,
    pub(crate) modified: SystemTime,
    pub(crate) etag: String,
}

/// A condition of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Only {
    /// Where there is no such object.
    New,
    /// Where the object has this mark.
    Replacing(String),
    /// Always.
    Any,
}

/// The buckets.
#[derive(Debug)]
pub(crate) struct Objects {
    root: PathBuf,
    writing: Mutex<u64>,
}

impl Objects {
    pub(crate) fn new(root: PathBuf) -> Self {
        Objects { root, writing: Mutex::new(0) }
    }

    /// The file of a key. Keys lead nowhere else.
    fn path(&self, bucket: &str, key: &str) -> io::Result<PathBuf> {
        match key.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
            true => Err(ErrorKind::InvalidInput.into()),
            false => Ok(self.root.join(bucket).join(key)),
        }
    }

    pub(crate) fn has_bucket(&self, bucket: &str) -> bool {
        self.root.join(bucket).is_dir()
    }

    pub(crate) fn stat(&self, bucket: &str, key: &str) -> io::Result<Stat> {
        let meta = fs::metadata(self.path(bucket, key)?)?;
        if !meta.is_file() {
            return Err(ErrorKind::NotFound.into());
        }
        let etag = format!(
            "{:x}-{:x}-{:x}",
            meta.len(),
            meta.ino(),
            meta.mtime() as u128 * 1_000_000_000 + meta.mtime_nsec() as u128
        );
        Ok(Stat { key: key.to_owned(), size: meta.len(), modified: meta.modified()?, etag })
    }

    pub(crate) fn read(&self, bucket: &str, key: &str, start: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        File::open(self.path(bucket, key)?)?.read_exact_at(&mut bytes, start)?;
        Ok(bytes)
    }

    /// Objects whose keys begin with `prefix` and come after `after`, sorted, at most `most`, and whether there are more.
    pub(crate) fn list(&self, bucket: &str, prefix: &str, after: &str, most: usize) -> io::Result<(Vec<Stat>, bool)> {
        let mut keys = Vec::new();
        let root = self.root.join(bucket);
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if let Some(key) = path.strip_prefix(&root).ok().and_then(Path::to_str)
                    && key.starts_with(prefix)
                    && key > after
                    && !key.contains(WRITING)
                {
                    keys.push(key.to_owned());
                }
            }
        }
        keys.sort_unstable();
        let more = keys.len() > most;
        keys.truncate(most);
        let stats = keys.iter().filter_map(|key| self.stat(bucket, key).ok()).collect();
        Ok((stats, more))
    }

    /// Writes an object as a whole; `false` where the condition does not hold.
    pub(crate) fn write(&self, bucket: &str, key: &str, bytes: &[u8], only: &Only) -> io::Result<Option<String>> {
        let mut writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let holds = match (only, self.stat(bucket, key)) {
            (Only::Any, _) => true,
            (Only::New, there) => there.is_err(),
            (Only::Replacing(etag), there) => there.is_ok_and(|there| there.etag == *etag),
        };
        if !holds {
            return Ok(None);
        }
        let path = self.path(bucket, key)?;
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        *writing += 1;
        let hidden = self.root.join(format!("{WRITING}{writing}"));
        File::create(&hidden)?.write_all(bytes)?;
        fs::rename(&hidden, &path)?;
        Ok(Some(self.stat(bucket, key)?.etag))
    }

    pub(crate) fn delete(&self, bucket: &str, key: &str) -> io::Result<()> {
        match fs::remove_file(self.path(bucket, key)?) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }
}

/// How the names of files that are being written begin.
const WRITING: &str = ".writing-";
