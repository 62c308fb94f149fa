//! The inflated bytes of one game -> a chunk of V6 or V7 records: versions, sizes and values checked, V3 to V5 upgraded.
//! Never allocates beyond the buffer of the chunk, and never lets a value through that would poison training.

use std::sync::Arc;

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::source::Chunk;

use super::record::{self, POLICY, V6_BYTES, Version, at};

/// The searched values in stored order; each version has a prefix of them.
const VALUES: [&str; 12] = [
    "root_q",
    "best_q",
    "root_d",
    "best_d",
    "root_m",
    "best_m",
    "plies_left",
    "result_q",
    "result_d",
    "played_q",
    "played_d",
    "played_m",
];

/// Where the parts of a record of one version lie.
#[derive(Debug, Clone, Copy)]
struct Form {
    version: Version,
    /// Offset of `input_format`, where there is one.
    input_format: Option<usize>,
    /// Offset of the probabilities; planes and the eight bytes follow.
    probabilities: usize,
    /// Offset of the first searched value, and how many there are.
    values: (usize, usize),
}

impl Form {
    fn of(version: Version) -> Self {
        let (input_format, probabilities, values) = match version {
            Version::V3 => (None, 4, (8276, 0)),
            Version::V4 => (None, 4, (8276, 4)),
            Version::V5 => (Some(4), 8, (8280, 7)),
            Version::V6 | Version::V7 => (Some(at::INPUT_FORMAT), at::PROBABILITIES, (at::ROOT_Q, 12)),
        };
        Form { version, input_format, probabilities, values }
    }

    /// Offset of byte `i` of the eight bytes after the planes.
    fn byte(&self, i: usize) -> usize {
        self.probabilities + (at::CASTLING_US_OOO - at::PROBABILITIES) + i
    }
}

/// Checks one game and turns it into V6 or V7 records.
///
/// On entry `chunk.bytes` holds exactly the inflated bytes of the game. On success `layout` is that of V6
/// or V7 and `frames` is set; V3, V4 and V5 records have become V6 (`docs/format/chess.md`).
/// On error the contents of the chunk are unspecified.
///
/// Errors, with frame and byte offset (of the stored game, before any upgrade):
/// `Empty`; `UnknownVersion` for a version that is not 3 to 7 or differs within the game; `WrongSize` unless
/// the bytes are a whole number of records; `OutOfRange` for an unknown input format, a result byte that is
/// not -1, 0 or 1, or a searched or target value that is NaN or infinite (`orig_*`, the policy, `policy_kld`
/// and the `q_st` of V6 may be NaN).
pub fn parse(chunk: &mut Chunk) -> Result<()> {
    chunk.frames = 0;
    chunk.layout = None;
    let version = version_of(&chunk.bytes)?;
    let size = version.bytes();
    if !chunk.bytes.len().is_multiple_of(size) {
        return Err(wrong_size(version, chunk.bytes.len()));
    }
    let form = Form::of(version);
    check_all(&form, &chunk.bytes)?;
    chunk.frames = chunk.bytes.len() / size;
    let layout = match version {
        Version::V7 => record::layout_v7(),
        Version::V6 => record::layout_v6(),
        Version::V3 | Version::V4 | Version::V5 => {
            upgrade(&form, chunk);
            record::layout_v6()
        }
    };
    chunk.layout = Some(Arc::clone(layout));
    Ok(())
}

/// Checks the first `frames` records of a game; `chunk.bytes` holds at least their bytes, and any bytes after them are
/// ignored. `false`, and the chunk unspecified, for V3 to V5, which are upgraded as a whole.
///
/// Errors: as [`parse`].
pub fn parse_head(chunk: &mut Chunk, frames: usize) -> Result<bool> {
    chunk.frames = 0;
    chunk.layout = None;
    let version = version_of(&chunk.bytes)?;
    let layout = match version {
        Version::V6 => record::layout_v6(),
        Version::V7 => record::layout_v7(),
        Version::V3 | Version::V4 | Version::V5 => return Ok(false),
    };
    let head = chunk.bytes.get(..frames * version.bytes()).ok_or_else(|| wrong_size(version, chunk.bytes.len()))?;
    check_all(&Form::of(version), head)?;
    chunk.frames = frames;
    chunk.layout = Some(Arc::clone(layout));
    Ok(true)
}

fn check_all(form: &Form, records: &[u8]) -> Result<()> {
    let size = form.version.bytes();
    for (i, bytes) in records.chunks_exact(size).enumerate() {
        check(form, bytes).map_err(|(offset, error)| error.in_frame(i).at_byte((i * size + offset) as u64))?;
    }
    Ok(())
}

fn version_of(bytes: &[u8]) -> Result<Version> {
    if bytes.is_empty() {
        return Err(Error::new(Kind::Empty, "the game has no frames"));
    }
    let Some(tag) = bytes.first_chunk::<4>() else {
        let detail = format!("{} bytes; the smallest record has {}", bytes.len(), record::V3_BYTES);
        return Err(Error::new(Kind::WrongSize, detail).in_frame(0).at_byte(0));
    };
    let number = u32::from_le_bytes(*tag);
    Version::from_number(number).ok_or_else(|| {
        let advice = match number {
            70 | 170 => "this is a third-party extension of V7; export it as V7",
            _ => "is this a game of lc0, and is the container whole?",
        };
        Error::new(Kind::UnknownVersion, format!("record version {number}; known are 3 to 7. {advice}"))
            .in_frame(0)
            .at_byte(0)
    })
}

fn wrong_size(version: Version, len: usize) -> Error {
    let (whole, rest) = (len / version.bytes(), len % version.bytes());
    let other = match version {
        Version::V6 => Version::V7,
        _ => Version::V6,
    };
    let advice = if len.is_multiple_of(other.bytes()) {
        format!("it would be whole as records of {} bytes: was it written with a wrong version tag?", other.bytes())
    } else {
        "the game was cut short or something was added; fetch or write it again".to_owned()
    };
    let detail = format!(
        "{len} bytes are {whole} records of version {} ({} bytes each) and {rest} bytes; {advice}",
        version.number(),
        version.bytes()
    );
    Error::new(Kind::WrongSize, detail).in_frame(whole).at_byte((whole * version.bytes()) as u64)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Whether an f32 is infinite or NaN.
fn is_wild(bits: u32) -> bool {
    bits & 0x7f80_0000 == 0x7f80_0000
}

/// Checks one V6 or V7 record; an error comes with its offset in the record.
pub(super) fn check_record(version: Version, bytes: &[u8]) -> Result<(), (usize, Error)> {
    check(&Form::of(version), bytes)
}

/// Checks one record; an error comes with its offset in the record.
fn check(form: &Form, bytes: &[u8]) -> Result<(), (usize, Error)> {
    let tag = word(bytes, 0);
    if tag != form.version.number() {
        let detail = format!("record version {tag} in a game that began with version {}", form.version.number());
        let advice = "one game has one version; was something written over or two games joined?";
        return Err((0, Error::new(Kind::UnknownVersion, format!("{detail}; {advice}"))));
    }
    if let Some(offset) = form.input_format {
        record::known_format(word(bytes, offset)).map_err(|e| (offset, e))?;
    }
    if form.version < Version::V6 {
        let offset = form.byte(7);
        if !matches!(bytes[offset], 0 | 1 | 255) {
            let detail = format!("result byte {}; expected 0 (draw), 1 (win) or 255 (loss)", bytes[offset]);
            return Err((offset, Error::new(Kind::OutOfRange, detail)));
        }
    }
    let (first, count) = form.values;
    let values = &bytes[first..first + 4 * count];
    let wild = values.chunks_exact(4).fold(false, |wild, v| wild | is_wild(word(v, 0)));
    if wild {
        let index = values.chunks_exact(4).position(|v| is_wild(word(v, 0))).unwrap_or(0);
        return Err(not_finite(VALUES[index], first + 4 * index, bytes));
    }
    if form.version == Version::V7 {
        for (name, offset) in [("q_st", at::Q_ST), ("d_st", at::D_ST)] {
            if is_wild(word(bytes, offset)) {
                return Err(not_finite(name, offset, bytes));
            }
        }
    }
    Ok(())
}

fn not_finite(name: &str, offset: usize, bytes: &[u8]) -> (usize, Error) {
    let value = f32::from_bits(word(bytes, offset));
    (offset, Error::new(Kind::OutOfRange, format!("{name} is {value}; only finite values can be trained on")))
}

/// Rewrites the V3, V4 or V5 records of `chunk.bytes` as V6, in their place.
fn upgrade(form: &Form, chunk: &mut Chunk) {
    let mut old = vec![0; form.version.bytes()];
    record::spread(&mut chunk.bytes, old.len(), V6_BYTES);
    for new in chunk.bytes.chunks_exact_mut(V6_BYTES) {
        old.copy_from_slice(&new[..form.version.bytes()]);
        new.fill(0);
        upgrade_record(form, &old, new);
    }
}

/// One checked V3, V4 or V5 record -> V6; `new` is all zero on entry.
fn upgrade_record(form: &Form, old: &[u8], new: &mut [u8]) {
    new[at::VERSION..at::VERSION + 4].copy_from_slice(&Version::V6.number().to_le_bytes());
    let format = form.input_format.map_or(1, |offset| word(old, offset));
    new[at::INPUT_FORMAT..at::INPUT_FORMAT + 4].copy_from_slice(&format.to_le_bytes());
    let body = 4 * POLICY + (at::INVARIANCE_INFO - at::PLANES);
    new[at::PROBABILITIES..at::PROBABILITIES + body]
        .copy_from_slice(&old[form.probabilities..form.probabilities + body]);
    // Byte 6 is a move count before V5: as flags it would mark frames as proven, adjudicated or deleted.
    if form.version == Version::V5 {
        new[at::INVARIANCE_INFO] = old[form.byte(6)];
    }
    let (first, count) = form.values;
    new[at::ROOT_Q..at::ROOT_Q + 4 * count].copy_from_slice(&old[first..first + 4 * count]);
    let (result_q, result_d): (f32, f32) = match old[form.byte(7)] {
        0 => (0.0, 1.0),
        1 => (1.0, 0.0),
        _ => (-1.0, 0.0),
    };
    new[at::RESULT_Q..at::RESULT_Q + 4].copy_from_slice(&result_q.to_le_bytes());
    new[at::RESULT_D..at::RESULT_D + 4].copy_from_slice(&result_d.to_le_bytes());
    for offset in [at::ORIG_Q, at::ORIG_D, at::ORIG_M] {
        new[offset..offset + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    }
}
