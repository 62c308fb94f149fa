//! Rows in a chunk file: each chunk is a header with the layout, then the records unchanged.
//! The number of a record gives its place; nothing is unpacked.

use std::sync::Arc;

use gristmill_bytes::container::chunks::Codec;
use gristmill_bytes::container::described::{Described, FIXED};
use gristmill_bytes::container::packed::{PackedFile, Packing, Wanted, agree};
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::Layout;
use gristmill_bytes::source::Chunk;

use super::KIND;
use super::form::Form;
use super::row::check;

/// The codec of a chunk file of rows.
pub const CODEC: Codec = *b"katago\0\x01";

/// The name of the format of chunk files of rows.
pub const PACKED: &str = "katago.chunks";

/// Most bytes of the text of a layout.
const MOST_TEXT: usize = 16 << 10;

/// The form of the rows of the chunk that was read last.
pub type Last = gristmill_bytes::container::described::Last<Form>;

/// A chunk file of rows.
pub type PackedShards = PackedFile<KataGo>;

/// Rows, as chunks.
#[derive(Debug)]
pub struct KataGo;

/// A packed chunk.
#[derive(Debug, Clone, Copy)]
pub struct PackedRows<'a>(Described<'a>);

impl<'a> PackedRows<'a> {
    /// Parses the header of a packed chunk.
    ///
    /// Errors: as [`Described::new`].
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        Described::new(bytes, [MOST_TEXT, 0]).map(PackedRows)
    }

    /// How many rows it has, at least one.
    pub fn frames(&self) -> usize {
        self.0.frames
    }

    /// Their layout, as NumPy writes it.
    pub fn descr(&self) -> &'a str {
        self.0.texts[0]
    }

    /// The rows, back to back.
    pub fn records(&self) -> &'a [u8] {
        self.0.records
    }

    /// The form of its rows.
    ///
    /// Errors: as [`Layout::parse_descr`] and [`Form::of`]; `Corrupt` where the rows have another size.
    pub fn form(&self) -> Result<Form> {
        let form = form(self.descr())?;
        self.0.sized(form.layout().size())?;
        Ok(form)
    }

    /// The same, out of `last` where its text says the same.
    ///
    /// Errors: as [`PackedRows::form`].
    pub fn form_of(&self, last: &mut Last) -> Result<Arc<Form>> {
        let form = last.of(self.descr(), form)?;
        self.0.sized(form.layout().size())?;
        Ok(form)
    }

    /// Checks every row.
    ///
    /// Errors: as [`check`], with the frame; `Corrupt` where the rows have another size.
    pub fn check(&self, form: &Form) -> Result<()> {
        self.0.sized(form.layout().size())?;
        let mut records = self.0.records.chunks_exact(form.layout().size()).enumerate();
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
    Described { frames: chunk.frames, texts: [&layout.to_descr(), ""], records: chunk.records() }.write(out)
}

impl Packing for KataGo {
    const CODEC: Codec = CODEC;
    const KIND: &'static str = KIND;
    const FORMAT: &'static str = PACKED;
    const CHUNKS: &'static str = "rows of KataGo";

    fn unpack(bytes: &[u8], frames: usize, wanted: Wanted<'_>, max: usize, out: &mut Chunk) -> Result<()> {
        let packed = PackedRows::new(bytes)?;
        agree(packed.0.frames, frames)?;
        let form = packed.form_of(out.kept.tool::<Last>())?;
        packed.check(&form)?;
        packed.0.copy(wanted, max, out)?;
        out.layout = Some(Arc::clone(form.layout()));
        Ok(())
    }
}
