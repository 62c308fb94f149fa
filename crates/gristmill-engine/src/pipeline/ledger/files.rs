//! Ids of sources, which are those of one process -> hashes of their names, which are the same for all.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use xxhash_rust::xxh3::xxh3_64;

use crate::pipeline::draw::roster::Roster;

/// Hashes of the names of files, each made once.
#[derive(Debug)]
pub(in crate::pipeline) struct FileHashes {
    rosters: Vec<Arc<Roster>>,
    known: RwLock<HashMap<u64, u64>>,
}

impl FileHashes {
    /// Of the files of these.
    pub(in crate::pipeline) fn new(rosters: &[Arc<Roster>]) -> Self {
        FileHashes { rosters: rosters.to_vec(), known: RwLock::default() }
    }

    /// XXH3-64 of the name of the file's loader stage, a zero byte, and its name below the directory of that when it was first
    /// seen; 0 where there is no such file any more.
    pub(in crate::pipeline) fn of(&self, source: u64) -> u64 {
        if let Some(hash) = self.known.read().unwrap_or_else(PoisonError::into_inner).get(&source) {
            return *hash;
        }
        let named = self.rosters.iter().find_map(|roster| Some((roster, roster.first_name(source)?)));
        let Some((roster, name)) = named else { return 0 };
        let hash = xxh3_64(&[roster.loader.as_bytes(), &[0], name.as_bytes()].concat());
        self.known.write().unwrap_or_else(PoisonError::into_inner).insert(source, hash);
        hash
    }
}
