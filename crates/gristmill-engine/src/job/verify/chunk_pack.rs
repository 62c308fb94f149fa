//! The folder of a chunk pack -> whether files, manifest and database tell the same of its games.
//! The games themselves are checked file by file.

use std::path::Path;

use gristmill_format::{Error, Kind};

use super::{Fault, Verification};
use crate::chunks::manifest::Manifest;
use crate::chunks::metadata::Games;
use crate::chunks::open::ChunkPack;
use crate::error::Result;
use crate::pack::{MANIFEST, METADATA};
use crate::store::Residence;

/// Adds what does not fit to `found`.
pub(super) fn verify(folder: &Path, keep: usize, found: &mut Verification) {
    let mut tell = |name: &str, detail: String| {
        let e = Error::new(Kind::Corrupt, detail).in_source(folder.join(name).display().to_string());
        found.add(keep, Fault::new(&e));
    };
    // A file that cannot be opened is told where the files are checked.
    let Ok(pack) = ChunkPack::open(folder, Residence::Mapped) else { return };
    match Manifest::read(folder) {
        Ok(manifest) => {
            let said: Vec<_> = manifest.files.iter().map(|file| (file.name.clone(), file.index_xxh3.clone())).collect();
            let are: Vec<_> = pack.checksums().map(|(name, hash)| (name, format!("{hash:016x}"))).collect();
            if said != are {
                tell(MANIFEST, format!("it lists the files {said:?}, there are {are:?}"));
            }
        }
        Err(e) => tell(MANIFEST, e.to_string()),
    }
    if let Err(e) = games(&pack, &mut |detail| tell(METADATA, detail)) {
        tell(METADATA, e.to_string());
    }
}

/// Holds the rows of the database against the games.
fn games(pack: &ChunkPack, tell: &mut dyn FnMut(String)) -> Result<()> {
    let mut next = 0;
    Games::open(&pack.folder().join(METADATA))?.each(&mut |game| {
        let there = pack.frames(game.id);
        if game.id != next || there != Some((game.first_frame, game.frames)) || pack.source(game.id) != game.source {
            let said = (game.first_frame, game.frames);
            tell(format!("game {} has {said:?} (first frame, frames), the chunk files say {there:?}", game.id));
        }
        next = game.id + 1;
        Ok(())
    })?;
    if next != pack.games() {
        tell(format!("the last of its games is before number {next}, there are {}", pack.games()));
    }
    Ok(())
}
