//! `manifest.json` of a chunk pack <-> what it holds: chunks, frames, files with their hashes, what was left out.
//! Written last; holds no time and no path of a machine, so that the same games give the same bytes.

use std::io::ErrorKind;
use std::path::Path;

use gristmill_format::{Error, Kind};
use gristmill_runtime::error::Result;
use gristmill_runtime::lineage::Step;
use gristmill_runtime::names::MANIFEST;
use serde::{Deserialize, Serialize};

use super::is_chunks;
use crate::manifest::{Skipped, parse, read, to_json};

/// What `format` says.
pub const FORMAT: &str = "gristmill.pack.chunks";

/// The version that is written, and the newest that is read.
pub const VERSION: u32 = 1;

/// The manifest of a chunk pack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`]: raised when the meaning of a file of the pack changes.
    pub version: u32,
    /// Name and version of the program that wrote the pack.
    pub writer: String,
    /// What the chunks hold: the name of its [`Codec`](super::codec::Codec).
    pub codec: String,
    /// Frames in all files.
    pub frames: u64,
    /// Games.
    pub games: u64,
    /// The chunk files, in order.
    pub files: Vec<ChunkFileEntry>,
    /// Bytes of the games as they were stored before.
    pub stored_bytes: u64,
    /// What was found and is not in the pack, and why.
    pub skipped: Vec<Skipped>,
    /// How the pack came to be: jobs, in order; none in packs of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lineage: Vec<Step>,
}

/// One chunk file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkFileEntry {
    /// Its name.
    pub name: String,
    /// Its games.
    pub games: u64,
    /// Their frames.
    pub frames: u64,
    /// The checksum in its footer, as 16 hexadecimal digits: that of the index, which has those of all games.
    pub index_xxh3: String,
}

impl Manifest {
    /// The text: two spaces of indent, a final line feed.
    ///
    /// Errors: none that data could cause.
    pub fn to_json(&self) -> Result<String> {
        to_json(self)
    }

    /// Reads the manifest of a pack.
    ///
    /// Errors: `Format` with the path: `Io`, `Corrupt` for what is no manifest or whose files do not add up, `UnknownFormat` for that
    /// of another kind of pack, `UnknownVersion` for a newer one.
    pub fn read(pack: &Path) -> Result<Self> {
        let none = || {
            Error::new(Kind::Io(ErrorKind::NotFound), "there is no manifest")
                .in_source(pack.join(MANIFEST).display().to_string())
        };
        Ok(read(pack, &Self::parse)?.ok_or_else(none)?)
    }

    fn parse(text: &str) -> gristmill_format::Result<Self> {
        let read: Manifest = parse(text, FORMAT, VERSION)?;
        if let Some(file) = read.files.iter().find(|file| !is_chunks(&file.name)) {
            let detail = format!("manifest: `{}` is no name of a chunk file", file.name.escape_debug());
            return Err(Error::new(Kind::Corrupt, detail));
        }
        let sum = |each: fn(&ChunkFileEntry) -> u64| read.files.iter().map(each).try_fold(0, u64::checked_add);
        let sums = [("games", read.games, sum(|file| file.games)), ("frames", read.frames, sum(|file| file.frames))];
        match sums.into_iter().find(|(_, said, are)| Some(*said) != *are) {
            None => Ok(read),
            Some((what, said, are)) => {
                let are = are.map_or("more than there can be".to_owned(), |are| are.to_string());
                Err(Error::new(Kind::Corrupt, format!("manifest: {said} {what}, those of its files are {are}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_come_back_and_others_are_refused() {
        let manifest = Manifest {
            format: FORMAT.into(),
            version: VERSION,
            writer: "gristmill".into(),
            codec: "chess".into(),
            frames: 5,
            games: 1,
            files: vec![ChunkFileEntry {
                name: "games-00000.chunks".into(),
                games: 1,
                frames: 5,
                index_xxh3: format!("{:016x}", 7),
            }],
            stored_bytes: 9,
            skipped: Vec::new(),
            lineage: Vec::new(),
        };
        let text = manifest.to_json().unwrap();
        assert_eq!(Manifest::parse(&text).unwrap(), manifest);
        let newer = text.replace("\"version\": 1", "\"version\": 2");
        assert_eq!(Manifest::parse(&newer).unwrap_err().kind(), Kind::UnknownVersion);
        let other = text.replace(FORMAT, "gristmill.pack.2048");
        assert_eq!(Manifest::parse(&other).unwrap_err().kind(), Kind::UnknownFormat);
        assert_eq!(Manifest::parse("{").unwrap_err().kind(), Kind::Corrupt);
        let wrong = |change: &dyn Fn(&mut Manifest)| {
            let mut manifest = manifest.clone();
            change(&mut manifest);
            Manifest::parse(&manifest.to_json().unwrap()).unwrap_err().to_string()
        };
        let said = wrong(&|manifest| manifest.frames = 6);
        assert!(said.contains("6 frames, those of its files are 5"), "{said}");
        let said = wrong(&|manifest| {
            manifest.files.push(manifest.files[0].clone());
            manifest.files[1].games = u64::MAX;
        });
        assert!(said.contains("1 games, those of its files are more than there can be"), "{said}");
    }
}
