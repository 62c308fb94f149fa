//! Writes the records of each game in another version; without a version only the container changes.
//! Judges no game, and loses no value unless it may.

use gristmill_format::chess::Version;
use gristmill_format::chess::rescore::{LOSSY, Settings, narrow, widen};
use gristmill_format::container::salvage;
use gristmill_format::source::Chunk;
use gristmill_format::{Error, Kind, Result};
use serde_json::json;

use super::{Fate, Rewrite};

/// Turns games into one version.
#[derive(Debug)]
pub struct Recast {
    version: Option<Version>,
    /// Narrow V7 to V6 even where values are lost; without it such a game ends the run.
    pub lossy: bool,
    /// Decay of the short-term values per ply, 0 to 1.
    pub theta: f32,
}

impl Recast {
    /// Into records of `version`, V6 or V7; without one every game keeps its bytes.
    pub fn new(version: Option<Version>) -> Self {
        Recast { version, lossy: false, theta: Settings::default().theta }
    }
}

/// The version of the records that a chunk is stored as, compressed or not; none for what no version begins with.
///
/// Errors: those of the container.
pub(super) fn stored_version(stored: &[u8]) -> Result<Option<Version>> {
    let mut tag = Vec::new();
    salvage::inflate_prefix(stored, 4, &mut tag)?;
    let number = <[u8; 4]>::try_from(&tag[..]).map(u32::from_le_bytes);
    Ok(number.ok().and_then(Version::from_number))
}

impl Rewrite for Recast {
    fn settings(&self) -> serde_json::Value {
        json!({ "convert": self.version.map(Version::number), "lossy": self.lossy, "theta": self.theta })
    }

    fn reads(&self) -> bool {
        self.version.is_some()
    }

    /// Errors: `Refused` as lossy; `Unsupported` for other records than those of chess.
    fn chunk(&self, stored: &[u8], chunk: &mut Chunk, count: &mut dyn FnMut(&str, u64)) -> Result<Fate> {
        let Some(version) = self.version else { return Ok(Fate::Keep) };
        if stored_version(stored)? == Some(version) {
            return Ok(Fate::Keep);
        }
        match version {
            Version::V7 => count("frames_to_v7", widen(chunk, self.theta)? as u64),
            Version::V6 => {
                narrow(chunk, self.theta, self.lossy)?;
                count("frames_to_v6", chunk.frames as u64);
            }
            Version::V3 | Version::V4 | Version::V5 => {
                let text = format!("records of version {} are read, not written", version.number());
                return Err(Error::new(Kind::Unsupported, text));
            }
        }
        Ok(Fate::Write)
    }

    /// A game that would lose something is no bad game: nothing is dropped for it.
    fn ends_on(&self, fault: &Error) -> bool {
        matches!(fault.kind(), Kind::Refused(LOSSY) | Kind::Unsupported)
    }
}
