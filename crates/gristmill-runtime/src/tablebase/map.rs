//! A file of a tablebase -> its bytes, mapped: sets of tables are larger than memory, and probes touch little of them.
//! The only file of the engine that maps files, and one of three that may use `unsafe`.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::{Advice, Mmap};

/// The bytes of a file. They must not be changed in place while they are mapped: replace a table by renaming.
#[derive(Debug)]
pub(super) struct Mapped(Mmap);

impl Mapped {
    /// Maps a file, to be read here and there.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        // SAFETY: the map is read-only and private to this process; what lies in it is checked as bytes of any value.
        // A table that is overwritten or cut short while it is mapped breaks the documented promise above, as with
        // every reader of tablebases; none writes to them.
        let map = unsafe { Mmap::map(&file)? };
        // Only speed: a system that refuses it reads further ahead than is useful.
        let _ = map.advise(Advice::Random);
        Ok(Mapped(map))
    }
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
