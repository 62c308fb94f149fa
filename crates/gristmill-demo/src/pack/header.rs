//! What a trajectory says once <-> the first bytes of its chunk: sizes, where each field is, where runs of blocks lie, and,
//! compressed, what the whole is of. All that a step is read by is checked here, before anything is read.

use std::sync::Arc;

use gristmill_bytes::container::blocks::{MOST_BLOCK, Run};
use gristmill_bytes::container::zstd;
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{DType, Layout, Order};

use crate::trajectory::End;

/// The form that is written, and the only one that is read.
pub(super) const FORM: u8 = 1;

/// Bytes before the fields, and of one field.
pub(super) const FIXED: usize = 32;
pub(super) const FIELD: usize = 20;

/// Maximum number of bytes that the blocks of one step unpack to.
pub(super) const MOST_OPEN: u64 = 256 << 20;

/// Largest text about a trajectory.
const MOST_ABOUT: usize = 16 << 20;

/// What a trajectory is of; the same for all of a data set, but for its facts.
#[derive(Debug, Clone, PartialEq)]
pub struct About {
    /// Layout of its records.
    pub layout: Arc<Layout>,
    /// Short name of the form that it came in, such as `demo.magical`.
    pub form: String,
    /// What its file said about itself, for people.
    pub facts: Vec<(String, String)>,
    /// The metadata of its shard: a pickle, for the safe unpickler alone.
    pub metadata: Option<Vec<u8>>,
}

/// How a field is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// Not at all, or along its first axis: pieces lie one after another.
    First,
    /// Along its last axis: the elements of pieces take turns.
    Last,
}

/// Where a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Its first byte within a record, and how many it has.
    pub(super) offset: u32,
    pub(super) bytes: u32,
    /// Within the row: where its bytes are, or where the numbers of its pieces are.
    pub(super) at: u32,
    /// The run of its pieces; 0 where it is in the row.
    pub(super) run: u16,
    pub(super) cut: Cut,
    /// Bytes of an element.
    pub(super) unit: u32,
}

/// Everything that a step is read by.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Header {
    pub(super) end: End,
    pub(super) frames: u32,
    pub(super) record: u32,
    pub(super) fields: Vec<Place>,
    /// Rows first, then pieces.
    pub(super) runs: Vec<Run>,
    /// Where blocks of what has no fixed size start, and how many there are.
    pub(super) beside: (u32, u32),
    /// Where the text about the whole lies: start and bytes.
    about: (u32, u32),
}

impl Header {
    /// Reads the header of a chunk.
    ///
    /// Errors, with the byte: `Truncated`, `UnknownVersion`, `Corrupt` for what cannot be.
    pub(super) fn read(bytes: &[u8]) -> Result<Header> {
        let cut = |need: usize| {
            let detail = format!("a packed trajectory of {} bytes; its header has {need}", bytes.len());
            Error::new(Kind::Truncated, detail).at_byte(bytes.len() as u64)
        };
        let fixed = bytes.get(..FIXED).ok_or_else(|| cut(FIXED))?;
        let word = |at: usize| fixed[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
        let corrupt = |detail: String, at: usize| Error::new(Kind::Corrupt, detail).at_byte(at as u64);
        if fixed[0] != FORM {
            let detail =
                format!("a packed trajectory of form {}, expected {FORM}; a newer gristmill wrote it", fixed[0]);
            return Err(Error::new(Kind::UnknownVersion, detail).at_byte(0));
        }
        let end = match fixed[1] {
            0 => End::Terminated,
            1 => End::Truncated,
            other => return Err(corrupt(format!("an end of kind {other}, expected 0 or 1"), 1)),
        };
        let (fields, runs) = (usize::from(fixed[2]) | usize::from(fixed[3]) << 8, word(12) as usize);
        let need = runs.saturating_mul(Run::BYTES).saturating_add(FIXED + fields * FIELD);
        let rest = bytes.get(FIXED..need).ok_or_else(|| cut(need))?;
        let (stored, rest) = rest.split_at(fields * FIELD);
        let runs: Result<Vec<Run>> = rest.as_chunks().0.iter().map(|run| Run::read(run, bytes.len())).collect();
        let runs = runs.map_err(|e| e.at_byte((FIXED + fields * FIELD) as u64))?;
        if runs.iter().map(Run::open_bytes).sum::<u64>() > MOST_OPEN {
            return Err(corrupt(format!("blocks of more than {MOST_OPEN} bytes for one step"), 12));
        }
        let header = Header {
            end,
            frames: word(4),
            record: word(8),
            fields: stored.as_chunks().0.iter().map(place).collect(),
            runs,
            beside: (word(16), word(20)),
            about: (word(24), word(28)),
        };
        let rows = header.runs.first().filter(|rows| rows.items == header.frames && header.frames > 0);
        let rows = rows.ok_or_else(|| corrupt(format!("{} frames without as many rows", header.frames), 4))?;
        let mut behind = 0;
        for (i, place) in header.fields.iter().enumerate() {
            let last = u64::from(place.offset) + u64::from(place.bytes);
            if place.offset < behind || last > u64::from(header.record) || !fits(place, rows, &header.runs) {
                return Err(corrupt(format!("field {i} cannot be: {place:?}"), FIXED + i * FIELD));
            }
            behind = last as u32;
        }
        Ok(header)
    }

    /// Writes the header, whose length is [`Header::len`].
    pub(super) fn write(&self, out: &mut [u8]) {
        let mut bytes = vec![FORM, u8::from(self.end == End::Truncated)];
        bytes.extend_from_slice(&(self.fields.len() as u16).to_le_bytes());
        let (beside, about) = (self.beside, self.about);
        for number in [self.frames, self.record, self.runs.len() as u32, beside.0, beside.1, about.0, about.1] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for Place { offset, bytes: len, at, run, cut, unit } in &self.fields {
            [*offset, *len, *at].iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
            bytes.extend_from_slice(&run.to_le_bytes());
            bytes.extend_from_slice(&[u8::from(*cut == Cut::Last), 0]);
            bytes.extend_from_slice(&unit.to_le_bytes());
        }
        self.runs.iter().for_each(|run| run.write(&mut bytes));
        out[..bytes.len()].copy_from_slice(&bytes);
    }

    /// Bytes of a header.
    pub(super) fn len(fields: usize, runs: usize) -> usize {
        FIXED + fields * FIELD + runs * Run::BYTES
    }

    /// A header without places.
    pub(super) fn new(end: End, frames: u32, record: u32) -> Header {
        Header { end, frames, record, fields: Vec::new(), runs: Vec::new(), beside: (0, 0), about: (0, 0) }
    }

    /// Puts the text about the whole to the end of `out`.
    pub(super) fn put_about(&mut self, about: &About, out: &mut Vec<u8>) -> Result<()> {
        let mut text = Vec::new();
        let mut put = |bytes: &[u8]| {
            text.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            text.extend_from_slice(bytes);
        };
        put(about.layout.to_descr().as_bytes());
        put(about.form.as_bytes());
        put(about.metadata.as_deref().unwrap_or_default());
        for (name, value) in &about.facts {
            put(name.as_bytes());
            put(value.as_bytes());
        }
        let packed = zstd::compress(19, &text)?;
        self.about = (out.len() as u32, packed.len() as u32);
        out.extend_from_slice(&packed);
        Ok(())
    }

    /// The text about the whole as it is stored; none where it does not lie within the chunk.
    pub(super) fn told<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let (start, len) = (self.about.0 as usize, self.about.1 as usize);
        start.checked_add(len).and_then(|end| bytes.get(start..end))
    }

    /// What a trajectory is of, from its whole chunk.
    ///
    /// Errors: `Corrupt`, with the byte; `TooLarge`.
    pub(super) fn about(&self, bytes: &[u8]) -> Result<About> {
        let start = self.about.0 as usize;
        let corrupt = |detail: String| Error::new(Kind::Corrupt, detail).at_byte(start as u64);
        let stored = self.told(bytes).ok_or_else(|| corrupt("the text about it does not lie within it".to_owned()))?;
        let mut text = Vec::new();
        zstd::decompress(stored, MOST_ABOUT, &mut text).map_err(|e| e.at_byte(start as u64))?;
        let (mut parts, mut rest) = (Vec::new(), &text[..]);
        while let Some((len, after)) = rest.split_first_chunk() {
            let part = after.split_at_checked(u32::from_le_bytes(*len) as usize);
            let (part, after) = part.ok_or_else(|| corrupt("a part of the text ends beyond it".to_owned()))?;
            parts.push(part);
            rest = after;
        }
        let [layout, form, metadata, facts @ ..] = &parts[..] else {
            return Err(corrupt(format!("{} parts of text, expected 3 at least", parts.len())));
        };
        let said = |part: &&[u8]| match str::from_utf8(part) {
            Ok(text) => Ok(text.to_owned()),
            Err(e) => Err(corrupt(format!("a text that is no UTF-8: {e}"))),
        };
        let facts: Result<Vec<(String, String)>> =
            facts.as_chunks::<2>().0.iter().map(|[name, value]| Ok((said(name)?, said(value)?))).collect();
        let layout = Layout::parse_descr(&said(layout)?)?;
        self.fits(&layout).map_err(corrupt)?;
        Ok(About {
            layout: Arc::new(layout),
            form: said(form)?,
            facts: facts?,
            metadata: (!metadata.is_empty()).then(|| metadata.to_vec()),
        })
    }

    /// Whether the fields are those of a layout.
    fn fits(&self, layout: &Layout) -> std::result::Result<(), String> {
        let fields = layout.fields();
        let same = fields.iter().zip(&self.fields).all(|(field, place)| {
            let little = matches!(field.dtype, DType::Scalar(_, Order::Little));
            little && field.offset == place.offset as usize && field.bytes() == place.bytes as usize
        });
        if same && fields.len() == self.fields.len() && layout.size() == self.record as usize {
            return Ok(());
        }
        Err(format!("its fields are not those of its records, {}", layout.to_descr()))
    }
}

fn place(bytes: &[u8; FIELD]) -> Place {
    let word = |at: usize| bytes[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
    let cut = if bytes[14] == 0 { Cut::First } else { Cut::Last };
    let run = u16::from_le_bytes([bytes[12], bytes[13]]);
    Place { offset: word(0), bytes: word(4), at: word(8), run, cut, unit: word(16) }
}

/// Whether the row has what the place of a field says, and its pieces make it up.
fn fits(place: &Place, rows: &Run, runs: &[Run]) -> bool {
    let row = u64::from(rows.item);
    if place.run == 0 {
        return u64::from(place.at) + u64::from(place.bytes) <= row;
    }
    let Some(run) = runs.get(usize::from(place.run)) else { return false };
    let whole = place.bytes > 0 && place.bytes.is_multiple_of(run.item) && place.bytes as usize <= MOST_BLOCK;
    let even = place.cut == Cut::First || place.unit > 0 && run.item.is_multiple_of(place.unit);
    whole && even && u64::from(place.at) + 4 * u64::from(place.bytes / run.item) <= row
}
