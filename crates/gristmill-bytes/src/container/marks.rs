//! Frames that a rule accepts, or that the user gave <-> a mark file: the rule, the numbers as a compressed bitmap,
//! what they are numbers of. Bytes in, bytes out. The layout is `docs/format/marks.md`.

use roaring::RoaringTreemap;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Kind, Result};

/// What a file begins with.
pub const MAGIC: [u8; 8] = *b"GM-MARKS";

/// The version that is written and read.
pub const VERSION: u32 = 1;

/// Bytes before the rule, and of the checksum at the end.
const HEADER: usize = 56;
const CHECKSUM: usize = 8;

/// Longest rule.
pub const MOST_RULE: usize = 1 << 16;

/// Byte of the identity of what is marked.
pub const IDENTITY_AT: u64 = 32;

/// How the frames were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// An SQL condition over frames.
    Rule,
    /// They were given.
    Given,
    /// They are of games that came again.
    Duplicates,
}

const ORIGINS: [Origin; 3] = [Origin::Rule, Origin::Given, Origin::Duplicates];

impl Origin {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Rule => "rule",
            Origin::Given => "given",
            Origin::Duplicates => "duplicates",
        }
    }
}

/// A mark.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// How its frames were found.
    pub origin: Origin,
    /// The condition, or what is to be said of frames that were given; UTF-8, up to [`MOST_RULE`] bytes.
    pub rule: String,
    /// How many frames there were to choose from.
    pub frames: u64,
    /// Hash of what they were frames of.
    pub identity: u64,
    /// The frames, each below `frames`.
    pub rows: RoaringTreemap,
}

impl Mark {
    /// The bytes of the file.
    ///
    /// Errors: `TooLarge` for a rule longer than [`MOST_RULE`].
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        if self.rule.len() > MOST_RULE {
            return Err(Error::new(
                Kind::TooLarge,
                format!("a rule of {} bytes, at most {MOST_RULE}", self.rule.len()),
            ));
        }
        let size = self.rows.serialized_size();
        let mut out = Vec::with_capacity(HEADER + self.rule.len() + size + CHECKSUM);
        let origin = ORIGINS.iter().position(|origin| *origin == self.origin).unwrap_or(0) as u32;
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&origin.to_le_bytes());
        for number in [self.frames, self.rows.len(), self.identity, self.rule.len() as u64, size as u64] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(self.rule.as_bytes());
        self.rows.serialize_into(&mut out)?;
        out.extend_from_slice(&xxh3_64(&out).to_le_bytes());
        Ok(out)
    }

    /// Reads a file.
    ///
    /// Errors, with the byte: `UnknownFormat`, `UnknownVersion`, `Truncated`, `TooLarge` for a rule, `Corrupt`, and
    /// `OutOfRange` for frames beyond those that there were.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let at = |kind, byte: usize, detail: &str| Error::new(kind, detail).at_byte(byte as u64);
        if !bytes.starts_with(&MAGIC) {
            return Err(at(Kind::UnknownFormat, 0, "this is no mark file"));
        }
        if bytes.len() < HEADER + CHECKSUM {
            return Err(at(Kind::Truncated, bytes.len(), "a mark file ends in its header; mark the frames again"));
        }
        let (version, origin) = (word(bytes, 8) as u32, (word(bytes, 8) >> 32) as usize);
        if version != VERSION {
            let detail = format!("mark file version {version}; this program knows {VERSION}");
            return Err(Error::new(Kind::UnknownVersion, detail).at_byte(8));
        }
        let [frames, marked, identity, rule, size] = [16, 24, 32, 40, 48].map(|byte| word(bytes, byte));
        if rule > MOST_RULE as u64 {
            return Err(at(Kind::TooLarge, 40, &format!("a rule of {rule} bytes, at most {MOST_RULE}")));
        }
        let expected = size.checked_add(HEADER as u64 + rule + CHECKSUM as u64);
        if expected != Some(bytes.len() as u64) {
            let (kind, found) = (
                if expected.is_some_and(|end| end < bytes.len() as u64) { Kind::Corrupt } else { Kind::Truncated },
                bytes.len(),
            );
            let detail = format!(
                "a bitmap of {size} bytes and a rule of {rule} do not end with the file; mark the frames again"
            );
            return Err(at(kind, found.min(expected.unwrap_or(u64::MAX) as usize), &detail));
        }
        let sealed = bytes.len() - CHECKSUM;
        if xxh3_64(&bytes[..sealed]) != word(bytes, sealed) {
            return Err(at(Kind::Corrupt, sealed, "the mark file does not have its checksum; mark the frames again"));
        }
        let origin = *ORIGINS.get(origin).ok_or_else(|| at(Kind::Corrupt, 12, "frames found in an unknown way"))?;
        let bitmap = HEADER + rule as usize;
        let rule = std::str::from_utf8(&bytes[HEADER..bitmap]);
        let rule =
            rule.map_err(|e| at(Kind::Corrupt, HEADER + e.valid_up_to(), "a rule that is not UTF-8"))?.to_owned();
        let mut rest = &bytes[bitmap..sealed];
        let rows = RoaringTreemap::deserialize_from(&mut rest);
        let rows =
            rows.map_err(|e| at(Kind::Corrupt, sealed - rest.len(), &format!("a bitmap that cannot be: {e}")))?;
        if !rest.is_empty() || rows.len() != marked {
            let detail =
                format!("a bitmap of {} frames, and {} bytes after it; expected {marked}", rows.len(), rest.len());
            return Err(at(Kind::Corrupt, bitmap, &detail));
        }
        if rows.max().is_some_and(|last| last >= frames) {
            return Err(at(Kind::OutOfRange, bitmap, &format!("a frame beyond the {frames} that there were")));
        }
        Ok(Mark { origin, rule, frames, identity, rows })
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark() -> Mark {
        let rows = (0..5000).step_by(3).chain([1 << 33]).collect();
        Mark {
            origin: Origin::Rule, rule: "plies_left < 20 -- é".to_owned(), frames: (1 << 33) + 1, identity: 7, rows
        }
    }

    #[test]
    fn marks_come_back_and_every_damaged_byte_is_found() {
        for origin in ORIGINS {
            let mark = Mark { origin, ..mark() };
            let bytes = mark.to_bytes().unwrap();
            assert_eq!(Mark::from_bytes(&bytes).unwrap(), mark);
        }
        let bytes = mark().to_bytes().unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let e = Mark::from_bytes(&damaged).unwrap_err();
            assert!(e.place().offset.is_some_and(|byte| byte <= bytes.len() as u64), "{e}");
            let cut = Mark::from_bytes(&bytes[..at]).unwrap_err();
            assert!(matches!(cut.kind(), Kind::Truncated | Kind::UnknownFormat), "{cut}");
        }
        assert_eq!(Mark::from_bytes(&[&bytes[..], &[0]].concat()).unwrap_err().kind(), Kind::Corrupt);
        let long = Mark { rule: "x".repeat(MOST_RULE + 1), ..mark() };
        assert_eq!(long.to_bytes().unwrap_err().kind(), Kind::TooLarge);
    }

    #[test]
    fn what_has_its_checksum_and_cannot_be_is_refused() {
        let resealed = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = mark().to_bytes().unwrap();
            bytes.truncate(bytes.len() - CHECKSUM);
            change(&mut bytes);
            bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
            Mark::from_bytes(&bytes).unwrap_err()
        };
        let rule = mark().rule.len();
        let few = resealed(&|bytes| bytes[16..24].copy_from_slice(&5000u64.to_le_bytes()));
        assert_eq!((few.kind(), few.place().offset), (Kind::OutOfRange, Some((HEADER + rule) as u64)));
        assert_eq!(resealed(&|bytes| bytes[24] ^= 1).kind(), Kind::Corrupt);
        assert_eq!(resealed(&|bytes| bytes[12] = 9).place().offset, Some(12));
        assert_eq!(resealed(&|bytes| bytes[HEADER] = 0xFF).place().offset, Some(HEADER as u64));
        assert_eq!(resealed(&|bytes| bytes[HEADER + rule + 12] = 0).kind(), Kind::Corrupt);
    }

    /// What a mark is on disk is a promise: a change here is a change of format.
    #[test]
    fn the_bytes_are_the_published_ones() {
        let mark = Mark { rule: "x".into(), frames: 4, identity: 0x0102, rows: [1, 3].into(), origin: Origin::Given };
        let text: String = mark.to_bytes().unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text, GOLDEN);
        assert!(PAGE.replace('\n', "").contains(GOLDEN), "the page has other bytes");
    }

    const PAGE: &str = include_str!("../../../../docs/format/marks.md");

    const GOLDEN: &str = "474d2d4d41524b53010000000100000004000000000000000200000000000000020100000000000001000000000000002000000000000000780100000000000000000000003a30000001000000000001001000000001000300d0b8b19a89787107";
}
