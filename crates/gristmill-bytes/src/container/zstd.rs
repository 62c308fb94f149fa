//! Zstandard streams -> bytes: one or several frames, checksums verified where they are; and back. Windows may have 128 MiB, and
//! more where the headers say that all of it stays within the bound.
//! The output is bounded before it grows; what follows the last frame and is no frame is refused.

use std::io::Write;

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use crate::error::{Error, Kind, Result};

/// The first four bytes of a frame.
pub const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Whether a skippable frame comes first, as `pzstd` writes one: it holds sizes, and no data.
pub fn is_skippable(bytes: &[u8]) -> bool {
    matches!(bytes, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// Largest window that is accepted, as a power of two: `--long=27`.
pub(super) const WINDOW_LOG: u32 = 27;

/// Bytes that the output grows by.
const STEP: usize = 1 << 20;

/// The most bytes that `input` can give, from the headers of its frames and blocks; `None` where they do not add up.
pub fn most(input: &[u8]) -> Option<usize> {
    zstd::bulk::Decompressor::<'_>::upper_bound(input)
}

/// Decompresses all frames of `input` to the start of `out` and says how many bytes they are; `None`, with anything in `out`,
/// where that is not possible at once: then [`decompress`] says why, or does it.
///
/// Errors: `Io` where there is no memory.
pub fn decompress_into(input: &[u8], out: &mut [u8]) -> Result<Option<usize>> {
    let mut decoder = zstd::bulk::Decompressor::new()?;
    Ok(decoder.decompress_to_buffer(input, out).ok())
}

/// Decompresses all frames of `input` into `out`, replacing what was there.
///
/// Errors, with the byte of `input`: `Truncated`, `Corrupt` (a checksum, a window beyond 128 MiB, what is no frame),
/// `TooLarge` beyond `max` bytes of output or of memory, `Empty` where there is no frame.
pub fn decompress(input: &[u8], max: usize, out: &mut Vec<u8>) -> Result<()> {
    out.clear();
    if input.is_empty() {
        return Err(Error::new(Kind::Empty, "expected a Zstandard frame, found nothing").at_byte(0));
    }
    if let Some(most) = most(input).filter(|most| *most <= max) {
        out.try_reserve_exact(most).map_err(|_| Error::new(Kind::TooLarge, format!("{most} bytes of memory")))?;
        let mut decoder = zstd::bulk::Decompressor::new()?;
        if decoder.decompress_to_buffer(input, out).is_ok() {
            return Ok(());
        }
        out.clear();
    }
    let mut decoder = Decoder::new()?;
    decoder.set_parameter(zstd::stream::raw::DParameter::WindowLogMax(WINDOW_LOG))?;
    let mut from = InBuffer::around(input);
    let mut written = 0;
    loop {
        if out.len() - written < STEP / 2 && out.len() <= max {
            // One byte beyond the bound tells what is too large from what just fits.
            let len = (out.len().max(STEP / 4) * 2).min(max.saturating_add(1));
            out.reserve_exact(len - out.len());
            out.resize(len, 0);
        }
        let mut to = OutBuffer::around(&mut out[written..]);
        let run = decoder.run(&mut from, &mut to);
        written += to.pos();
        let hint = run.map_err(|e| corrupt(&e, from.pos()))?;
        if written > max {
            out.clear();
            let detail = format!("more than {max} bytes decompressed; raise the bound if they are real");
            return Err(Error::new(Kind::TooLarge, detail).at_byte(from.pos() as u64));
        }
        match (hint, from.pos() == input.len()) {
            (0, true) => {
                out.truncate(written);
                return Ok(());
            }
            (0, false) => decoder.reinit()?,
            // Nothing to read and room to write: what is missing lies beyond the end.
            (_, true) if written < out.len() => {
                out.clear();
                let detail = format!("the stream ends inside a frame; {written} bytes were whole");
                return Err(Error::new(Kind::Truncated, detail).at_byte(input.len() as u64));
            }
            _ => {}
        }
    }
}

pub(super) fn corrupt(e: &std::io::Error, at: usize) -> Error {
    Error::new(Kind::Corrupt, format!("Zstandard: {e}")).at_byte(at as u64)
}

/// Compresses `data` as one frame with its checksum.
///
/// Errors: `OutOfRange` for a level that Zstandard does not have.
pub fn compress(level: i32, data: &[u8]) -> Result<Vec<u8>> {
    if !zstd::compression_level_range().contains(&level) {
        return Err(Error::new(Kind::OutOfRange, format!("compression level {level}; expected 1 to 22")));
    }
    let mut compressor = zstd::bulk::Compressor::new(level)?;
    compressor.include_checksum(true)?;
    Ok(compressor.compress(data)?)
}

/// Compresses what is written to it as one frame with its checksum, through a window of 64 MiB: what repeats far apart, such
/// as the frames of a game, is found.
pub struct ZstdWriter<W: Write>(zstd::stream::write::Encoder<'static, W>);

/// Distance that repetitions are looked for in, as a power of two.
const FAR_LOG: u32 = 26;

impl<W: Write> ZstdWriter<W> {
    /// A frame at the start of `to`.
    ///
    /// Errors: `OutOfRange` for a level that Zstandard does not have; `Io`.
    pub fn new(to: W, level: i32) -> Result<Self> {
        if !(1..=22).contains(&level) {
            return Err(Error::new(Kind::OutOfRange, format!("compression level {level}; expected 1 to 22")));
        }
        let mut encoder = zstd::stream::write::Encoder::new(to, level)?;
        encoder.include_checksum(true)?;
        encoder.long_distance_matching(true)?;
        encoder.window_log(FAR_LOG)?;
        Ok(ZstdWriter(encoder))
    }

    /// Ends the frame and gives back what it was written to.
    ///
    /// Errors: `Io`.
    pub fn finish(self) -> Result<W> {
        Ok(self.0.finish()?)
    }
}

impl<W: Write> Write for ZstdWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl<W: Write> std::fmt::Debug for ZstdWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ZstdWriter")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i / 7 % 251) as u8).collect()
    }

    #[test]
    fn several_frames_are_one_stream() {
        let whole = data(3 << 20);
        let (a, b) = whole.split_at(1_234_567);
        let stream = [compress(3, a).unwrap(), compress(19, b).unwrap()].concat();
        let mut out = Vec::new();
        decompress(&stream, whole.len(), &mut out).unwrap();
        assert!(out == whole);
        assert_eq!(most(&stream), Some(whole.len()));
        let mut room = vec![1; whole.len()];
        assert_eq!(decompress_into(&stream, &mut room).unwrap(), Some(whole.len()));
        assert!(room == whole);
        assert_eq!(decompress_into(&stream, &mut room[..1000]).unwrap(), None);
        // Nothing says how long a stream is that was written as it came; where more could come of it than is allowed, it is
        // decompressed in steps.
        let mut writer = ZstdWriter::new(Vec::new(), 3).unwrap();
        writer.write_all(&whole).unwrap();
        let stream = writer.finish().unwrap();
        assert!(most(&stream).is_some_and(|most| most > whole.len()));
        decompress(&stream, whole.len(), &mut out).unwrap();
        assert!(out == whole);
        decompress(&compress(1, b"").unwrap(), 0, &mut out).unwrap();
        assert!(out.is_empty());
    }

    #[test]
    fn every_cut_is_truncation_and_every_flip_is_noticed() {
        let stream = compress(3, &data(5000)).unwrap();
        let mut out = Vec::new();
        for cut in 1..stream.len() {
            let e = decompress(&stream[..cut], 1 << 20, &mut out).unwrap_err();
            assert_eq!((e.kind(), e.place().offset), (Kind::Truncated, Some(cut as u64)));
        }
        for at in 0..stream.len() {
            let mut bad = stream.clone();
            bad[at] ^= 0x10;
            if let Ok(()) = decompress(&bad, 1 << 20, &mut out) {
                assert!(out == data(5000), "byte {at}");
            }
        }
        let e = decompress(&[&stream[..], b"garbage"].concat(), 1 << 20, &mut out).unwrap_err();
        assert_eq!(e.kind(), Kind::Corrupt);
    }

    #[test]
    fn a_bomb_is_stopped_at_the_bound() {
        let bomb = compress(19, &vec![0; 64 << 20]).unwrap();
        let mut out = Vec::new();
        let e = decompress(&bomb, 1 << 20, &mut out).unwrap_err();
        assert_eq!(e.kind(), Kind::TooLarge);
        assert!(out.capacity() <= (1 << 20) + 1);
        assert_eq!(decompress(b"", 9, &mut out).unwrap_err().kind(), Kind::Empty);
    }
}
