//! Packed trajectories by number, and what their headers say of all of them: where each ends and how, what it is of.
//! A trajectory is held against its checksum before its first step is given; for what headers say nothing else is read.

use std::path::Path;
use std::sync::Arc;

use gristmill_format::demo::pack::{About, CODEC, PackedTrajectory};
use gristmill_format::demo::trajectory::End;
use gristmill_format::layout::Layout;
use gristmill_format::{Error, Kind, Result};
use gristmill_runtime::table::FrameTable;

use crate::chunks::open::{ChunkPack, File};
use crate::kinds::packs::codec_of;

/// What a trajectory is called in a pack: the path of its file below the folder that was packed, and its number there.
pub fn name(path: &str, number: u64) -> String {
    format!("{path}#{number}")
}

/// The file, without folders, in which a trajectory of this name begins, and its number there; none where an older gristmill
/// gave the name, which has the number among all shards of a folder.
pub fn begun(name: &str) -> Option<(&str, u64)> {
    let (file, number) = name.rsplit('/').next()?.rsplit_once('#')?;
    Some((file, number.parse().ok()?)).filter(|_| !file.is_empty())
}

/// Whether a folder is a chunk pack of demonstrations.
///
/// Errors: as [`codec_of`].
pub fn is_trajectories(folder: &Path) -> Result<bool> {
    Ok(codec_of(folder)?.is_some_and(|codec| codec.tag() == CODEC))
}

impl ChunkPack {
    /// Packed trajectory `i` of a file, whose records have the layout of the pack.
    pub(super) fn trajectory<'a>(&self, file: &'a File, i: usize) -> Result<PackedTrajectory<'a>> {
        let (bytes, known) = file.stored(i)?;
        let packed = PackedTrajectory::new(bytes)?;
        if !known {
            let (frames, said) = (packed.frames(), file.index().frames(i) as usize);
            if frames != said {
                let detail = format!("{frames} frames, the index says {said}");
                return Err(Error::new(Kind::Corrupt, detail).at_byte(4));
            }
            fits(&packed.about()?.layout, self.layout())?;
            file.pass(i);
        }
        Ok(packed)
    }

    /// Trajectory `i`, with its metadata and the fields beside it.
    ///
    /// Errors: `Missing` for one that does not exist, `Unsupported` in a pack of something else; `Corrupt` with the
    /// place.
    pub fn demonstration(&self, game: u64) -> Result<PackedTrajectory<'_>> {
        let (file, within) = self.demonstration_at(game)?;
        self.trajectory(file, within).map_err(|e| file.named(within, e))
    }

    /// The file and the number there of trajectory `i`.
    fn demonstration_at(&self, game: u64) -> Result<(&File, usize)> {
        if self.codec().tag() != CODEC {
            let detail = format!("chunks of `{}` are no trajectories of demonstrations", self.codec().name());
            return Err(Error::new(Kind::Unsupported, detail));
        }
        let missing = || Error::new(Kind::Missing, format!("trajectory {game} of {}", self.games()));
        let (file, within, _) = self.place(game).ok_or_else(missing)?;
        Ok((file, within))
    }

    /// The frame after the last of each trajectory, and how it ended, as the headers have it.
    ///
    /// Errors, with the place: `Corrupt`, `Truncated`; `Unsupported` in a pack of something else.
    pub fn ends(&self) -> Result<Vec<(u64, End)>> {
        let end = |game: u64| {
            let (first, frames) = self.frames(game).unwrap_or_default();
            Ok((first + frames, self.header(game)?.end()))
        };
        (0..self.games()).map(end).collect()
    }

    /// What the trajectories are of: the number of a trajectory, and what is true of it and of those after it up to the next.
    ///
    /// Errors: as [`ChunkPack::ends`]; `WrongSize` for records of another layout than the pack's.
    pub fn told(&self) -> Result<Vec<(u64, About)>> {
        let mut found = Vec::new();
        let mut before: Option<PackedTrajectory<'_>> = None;
        for game in 0..self.games() {
            let header = self.header(game)?;
            if before.as_ref().is_none_or(|before| !before.is_of_the_same(&header)) {
                let about = header.about().and_then(|about| fits(&about.layout, self.layout()).map(|()| about));
                found.push((game, about.map_err(|e| self.named(game, e))?));
            }
            before = Some(header);
        }
        Ok(found)
    }

    /// Trajectory `i`, of which only the header may be believed.
    fn header(&self, game: u64) -> Result<PackedTrajectory<'_>> {
        let (file, within) = self.demonstration_at(game)?;
        file.bytes(within).and_then(PackedTrajectory::new).map_err(|e| file.named(within, e))
    }

    fn named(&self, game: u64, e: Error) -> Error {
        match self.place(game) {
            Some((file, within, _)) => file.named(within, e),
            None => e,
        }
    }
}

fn fits(found: &Arc<Layout>, own: &Layout) -> Result<()> {
    if **found == *own {
        return Ok(());
    }
    let (one, all) = (found.to_descr(), own.to_descr());
    Err(Error::new(Kind::WrongSize, format!("records of {one} in a pack of {all}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_where_a_trajectory_begins_unless_it_is_an_older_one() {
        let named = name("below/a#1/demos-0.tar", 7);
        for packed in [&named, &format!("games-00000.chunks/{named}"), "demos-0.tar#7"] {
            assert_eq!(begun(packed), Some(("demos-0.tar", 7)), "{packed}");
        }
        assert_eq!(begun(&name("odd#3.tar", 2)), Some(("odd#3.tar", 2)));
        for older in ["demos/7", "demos.tar#/7", "a#1/7", "7", "", "#7", "a#b"] {
            assert_eq!(begun(older), None, "{older}");
        }
    }
}
