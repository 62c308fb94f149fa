//! The `.meta.json` beside a game's lines: the five facts that packs keep, and the rest as it was written.
//! Takes inflated bytes; names alone decide which files belong together.

use std::fmt;

use gristmill_bytes::error::{Error, Kind, Result};
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::STEPS_SUFFIX;
use super::json::{once, refused};

/// How the names of sidecars end; the letters' case matters.
const SUFFIXES: [&str; 2] = [".meta.json", ".meta.json.gz"];

/// What a sidecar says of its game.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sidecar {
    /// Seed of the game.
    pub seed: u64,
    /// How many moves the producer made.
    pub num_moves: u64,
    /// Score at the end.
    pub score: u64,
    /// The largest tile, such as 32768.
    pub max_tile: u32,
    /// The highest rank, where given.
    pub max_rank: Option<u8>,
    /// All other keys in order of appearance, each with its value as JSON text; of a doubled key both are kept.
    pub extras: Vec<(String, String)>,
}

impl Sidecar {
    /// Parses the inflated bytes of a sidecar.
    ///
    /// Errors, with line and column: `Corrupt` for anything but one JSON object in UTF-8, and for a key among
    /// `seed`, `num_moves`, `score`, `max_tile`, `max_rank` that is missing (but for `max_rank`), doubled, or not
    /// an integer within its range.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let text = std::str::from_utf8(bytes).map_err(|e| {
            let good = &bytes[..e.valid_up_to()];
            let line = 1 + good.iter().filter(|c| **c == b'\n').count() as u64;
            let column = 1 + good.iter().rev().take_while(|c| **c != b'\n').count() as u64;
            Error::new(Kind::Corrupt, "the sidecar is not UTF-8").at_line(line, column).at_byte(good.len() as u64)
        })?;
        if text.starts_with('\u{feff}') {
            let detail = "the sidecar starts with a byte-order mark; remove its three bytes";
            return Err(Error::new(Kind::Corrupt, detail).at_line(1, 1));
        }
        serde_json::from_str(text).map_err(|e| refused(&e, "the sidecar of a game"))
    }
}

/// Whether a file of this name is a sidecar. A name that is only the ending counts.
pub fn is_sidecar(name: &str) -> bool {
    SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// The name of the file with the lines of the game whose sidecar has this name; `None` for other names.
pub fn steps_name(sidecar: &str) -> Option<String> {
    SUFFIXES.iter().find_map(|suffix| Some(format!("{}{STEPS_SUFFIX}", sidecar.strip_suffix(suffix)?)))
}

impl<'de> Deserialize<'de> for Sidecar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct SidecarVisitor;
        impl<'de> Visitor<'de> for SidecarVisitor {
            type Value = Sidecar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> std::result::Result<Sidecar, M::Error> {
                let (mut seed, mut num_moves, mut score) = (None, None, None);
                let (mut max_tile, mut max_rank) = (None, None);
                let mut extras = Vec::new();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "seed" => once(&mut seed, "seed", &mut map)?,
                        "num_moves" => once(&mut num_moves, "num_moves", &mut map)?,
                        "score" => once(&mut score, "score", &mut map)?,
                        "max_tile" => once(&mut max_tile, "max_tile", &mut map)?,
                        "max_rank" => once(&mut max_rank, "max_rank", &mut map)?,
                        _ => extras.push((key, map.next_value::<Box<RawValue>>()?.get().to_owned())),
                    }
                }
                let missing = de::Error::missing_field;
                Ok(Sidecar {
                    seed: seed.ok_or_else(|| missing("seed"))?,
                    num_moves: num_moves.ok_or_else(|| missing("num_moves"))?,
                    score: score.ok_or_else(|| missing("score"))?,
                    max_tile: max_tile.ok_or_else(|| missing("max_tile"))?,
                    max_rank: max_rank.flatten(),
                    extras,
                })
            }
        }
        deserializer.deserialize_map(SidecarVisitor)
    }
}
