//! A packed chunk whose records follow two texts that describe them <-> the texts and the records, which lie as they are.
//! Bounds every length; what the texts mean is for their format to say.

use std::sync::Arc;

use super::packed::{self, Wanted};
use crate::error::{Error, Kind, Result};
use crate::source::Chunk;

/// The form that is written, and the only one that is read.
pub const FORM: u8 = 1;

/// Bytes before the texts: the form, three zeros, and three little-endian u32: frames, bytes of each text.
pub const FIXED: usize = 16;

/// A chunk, taken apart.
#[derive(Debug, Clone, Copy)]
pub struct Described<'a> {
    /// How many records it has, at least one.
    pub frames: usize,
    /// What describes them; the second may be empty.
    pub texts: [&'a str; 2],
    /// The records, back to back.
    pub records: &'a [u8],
}

impl<'a> Described<'a> {
    /// Takes a chunk apart whose texts have at most `most` bytes each.
    ///
    /// Errors, with the byte: `Truncated`, `UnknownVersion`, `TooLarge`, `Corrupt`.
    pub fn new(bytes: &'a [u8], most: [usize; 2]) -> Result<Self> {
        let cut = || {
            Error::new(Kind::Truncated, format!("a packed chunk of {} bytes", bytes.len())).at_byte(bytes.len() as u64)
        };
        let (fixed, rest) = bytes.split_first_chunk::<FIXED>().ok_or_else(cut)?;
        if fixed[0] != FORM {
            let detail = format!("a packed chunk of form {}, expected {FORM}; a newer gristmill wrote it", fixed[0]);
            return Err(Error::new(Kind::UnknownVersion, detail).at_byte(0));
        }
        let word = |at: usize| fixed[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word)) as usize;
        let (frames, lengths) = (word(4), [word(8), word(12)]);
        if let Some(i) = (0..2).find(|i| lengths[*i] > most[*i]) {
            let detail = format!("a text of {} bytes, the bound is {}", lengths[i], most[i]);
            return Err(Error::new(Kind::TooLarge, detail).at_byte(8 + 4 * i as u64));
        }
        let (first, rest) = rest.split_at_checked(lengths[0]).ok_or_else(cut)?;
        let (second, records) = rest.split_at_checked(lengths[1]).ok_or_else(cut)?;
        let text = |bytes: &'a [u8], at: usize| {
            std::str::from_utf8(bytes)
                .map_err(|_| Error::new(Kind::Corrupt, "a text that is no UTF-8").at_byte(at as u64))
        };
        let texts = [text(first, FIXED)?, text(second, FIXED + lengths[0])?];
        if frames == 0 || records.is_empty() || !records.len().is_multiple_of(frames) {
            let detail = format!("{} bytes of {frames} records", records.len());
            return Err(Error::new(Kind::Corrupt, detail).at_byte(4));
        }
        Ok(Described { frames, texts, records })
    }

    /// That its records have the size that the texts say.
    ///
    /// Errors: `Corrupt`.
    pub fn sized(&self, size: usize) -> Result<()> {
        let found = self.records.len() / self.frames;
        if found == size {
            return Ok(());
        }
        Err(Error::new(Kind::Corrupt, format!("records of {found} bytes, the layout has {size}")).at_byte(4))
    }

    /// Puts the wanted records into `out`, which is empty; no more than `max` bytes of them.
    ///
    /// Errors: `TooLarge`; `Missing` for a frame that does not exist.
    pub fn copy(&self, wanted: Wanted<'_>, max: usize, out: &mut Chunk) -> Result<()> {
        packed::copy(self.records, self.records.len() / self.frames, wanted, max, out)
    }

    /// Writes it, to the end of `out`.
    ///
    /// Errors: `TooLarge` for more than 32 bits count.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        let lengths = [self.frames, self.texts[0].len(), self.texts[1].len()].map(u32::try_from);
        out.extend_from_slice(&[FORM, 0, 0, 0]);
        for length in lengths {
            let length = length.map_err(|_| Error::new(Kind::TooLarge, "more than 32 bits count"))?;
            out.extend_from_slice(&length.to_le_bytes());
        }
        self.texts.iter().for_each(|text| out.extend_from_slice(text.as_bytes()));
        out.extend_from_slice(self.records);
        Ok(())
    }
}

/// What the text of the last chunk meant: most chunks have the same text as the one before, which is not parsed again.
#[derive(Debug)]
pub struct Last<T>(Option<(String, Arc<T>)>);

impl<T> Default for Last<T> {
    fn default() -> Self {
        Last(None)
    }
}

impl<T> Last<T> {
    /// What `text` means.
    ///
    /// Errors: those of `parse`.
    pub fn of(&mut self, text: &str, parse: impl FnOnce(&str) -> Result<T>) -> Result<Arc<T>> {
        match &self.0 {
            Some((last, meaning)) if last == text => Ok(Arc::clone(meaning)),
            _ => {
                let meaning = Arc::new(parse(text)?);
                self.0 = Some((text.to_owned(), Arc::clone(&meaning)));
                Ok(meaning)
            }
        }
    }
}
