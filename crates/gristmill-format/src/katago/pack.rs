//! Rows in a chunk file: each chunk with its layout before its records, which lie as they are.
//! Any record lies at a place that its number gives; nothing is unpacked.

use std::sync::Arc;

use gristmill_bytes::container::chunks::Codec;
use gristmill_bytes::container::packed::{PackedFile, Packing, Wanted, agree, check_room};
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::Layout;
use gristmill_bytes::source::Chunk;

use super::KIND;
use super::form::Form;
use super::row::check;

/// What a chunk file of rows says that it holds.
pub const CODEC: Codec = *b"katago\0\x01";

/// How sources call chunk files of rows.
pub const PACKED: &str = "katago.chunks";

/// The form that is written, and the only one that is read.
pub const FORM: u8 = 1;

/// Bytes before the layout.
pub const FIXED: usize = 16;

/// Most bytes of the text of a layout.
const MOST_TEXT: usize = 16 << 10;

/// A chunk file of rows.
pub type PackedShards = PackedFile<KataGo>;

/// Rows, as chunks.
#[derive(Debug)]
pub struct KataGo;

/// A packed chunk.
#[derive(Debug, Clone, Copy)]
pub struct PackedRows<'a> {
    /// How many rows it has, at least one.
    pub frames: usize,
    /// Their layout, as NumPy writes it.
    pub descr: &'a str,
    /// The rows, back to back.
    pub records: &'a [u8],
}

impl<'a> PackedRows<'a> {
    /// Looks at a packed chunk.
    ///
    /// Errors, with the byte: `Truncated`, `UnknownVersion`, `Corrupt`, `TooLarge`.
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        let cut = || Error::new(Kind::Truncated, format!("a packed chunk of {} bytes", bytes.len())).at_byte(0);
        let (fixed, rest) = bytes.split_first_chunk::<FIXED>().ok_or_else(cut)?;
        if fixed[0] != FORM {
            let detail = format!("a packed chunk of form {}, expected {FORM}; a newer gristmill wrote it", fixed[0]);
            return Err(Error::new(Kind::UnknownVersion, detail).at_byte(0));
        }
        let word = |at: usize| fixed[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word)) as usize;
        let (frames, text) = (word(4), word(8));
        if text > MOST_TEXT {
            return Err(
                Error::new(Kind::TooLarge, format!("a layout of {text} bytes; the bound is {MOST_TEXT}")).at_byte(8)
            );
        }
        let (descr, records) = rest.split_at_checked(text).ok_or_else(cut)?;
        let descr = std::str::from_utf8(descr)
            .map_err(|_| Error::new(Kind::Corrupt, "a layout that is no text").at_byte(FIXED as u64))?;
        if frames == 0 || records.is_empty() || !records.len().is_multiple_of(frames) {
            return Err(Error::new(Kind::Corrupt, format!("{} bytes of {frames} rows", records.len())).at_byte(4));
        }
        Ok(PackedRows { frames, descr, records })
    }

    /// What its rows are.
    ///
    /// Errors: as [`Layout::parse_descr`] and [`Form::of`]; `Corrupt` where the rows have another size.
    pub fn form(&self) -> Result<Form> {
        let form = form(self.descr)?;
        self.sized(&form)?;
        Ok(form)
    }

    fn sized(&self, form: &Form) -> Result<()> {
        let (found, size) = (self.records.len() / self.frames, form.layout().size());
        if found == size {
            return Ok(());
        }
        Err(Error::new(Kind::Corrupt, format!("rows of {found} bytes, the layout has {size}")).at_byte(4))
    }

    /// Checks every row.
    ///
    /// Errors: as [`check`], with the frame.
    pub fn check(&self, form: &Form) -> Result<()> {
        self.sized(form)?;
        let mut records = self.records.chunks_exact(form.layout().size()).enumerate();
        records.try_for_each(|(frame, record)| check(form, record).map_err(|e| e.in_frame(frame)))
    }
}

fn form(descr: &str) -> Result<Form> {
    let layout = Layout::parse_descr(descr)
        .map_err(|e| Error::new(e.kind(), e.detail()).at_byte(FIXED as u64 + e.place().offset.unwrap_or(0)))?;
    Form::of(&layout).map_err(|e| e.at_byte(FIXED as u64))
}

/// Packs a chunk of rows, to the end of `out`.
///
/// Errors: `Missing` for a chunk without a layout; `TooLarge`.
pub fn pack(chunk: &Chunk, out: &mut Vec<u8>) -> Result<()> {
    let layout = chunk.layout.as_ref().ok_or_else(|| Error::new(Kind::Missing, "rows without a layout"))?;
    let descr = layout.to_descr();
    let lengths = [chunk.frames, descr.len(), 0].map(u32::try_from);
    out.extend_from_slice(&[FORM, 0, 0, 0]);
    for length in lengths {
        let length = length.map_err(|_| Error::new(Kind::TooLarge, "more than 32 bits count"))?;
        out.extend_from_slice(&length.to_le_bytes());
    }
    out.extend_from_slice(descr.as_bytes());
    out.extend_from_slice(chunk.records());
    Ok(())
}

/// The form of the chunk that was read last: most chunks say the same as the one before, which is not parsed again.
#[derive(Debug, Default)]
pub struct Last(Option<(String, Arc<Form>)>);

impl Last {
    /// The form that this text says.
    ///
    /// Errors: as [`PackedRows::form`].
    pub fn of(&mut self, descr: &str) -> Result<Arc<Form>> {
        match &self.0 {
            Some((last, form)) if last == descr => Ok(Arc::clone(form)),
            _ => {
                let form = Arc::new(form(descr)?);
                self.0 = Some((descr.to_owned(), Arc::clone(&form)));
                Ok(form)
            }
        }
    }
}

impl Packing for KataGo {
    const CODEC: Codec = CODEC;
    const KIND: &'static str = KIND;
    const FORMAT: &'static str = PACKED;
    const CHUNKS: &'static str = "rows of KataGo";

    fn unpack(bytes: &[u8], frames: usize, wanted: Wanted<'_>, max: usize, out: &mut Chunk) -> Result<()> {
        let packed = PackedRows::new(bytes)?;
        agree(packed.frames, frames)?;
        let form = out.kept.tool::<Last>().of(packed.descr)?;
        packed.check(&form)?;
        let size = form.layout().size();
        let many = if let Wanted::Rows(rows) = wanted { rows.len() } else { frames };
        let room = check_room(many, size, max)?;
        out.bytes.reserve_exact(room);
        match wanted {
            Wanted::All | Wanted::Judged => out.bytes.extend_from_slice(packed.records),
            Wanted::Rows(rows) => {
                for row in rows {
                    let record = packed.records.chunks_exact(size).nth(*row as usize);
                    let missing = || Error::new(Kind::Missing, format!("frame {row} of {frames}"));
                    out.bytes.extend_from_slice(record.ok_or_else(missing)?);
                }
            }
        }
        (out.layout, out.frames) = (Some(Arc::clone(form.layout())), many);
        Ok(())
    }
}
