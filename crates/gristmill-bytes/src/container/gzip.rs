//! Gzip bytes -> the bytes inside, whole: every member, one after another, each checksum verified (libdeflate).
//! Never trusts a stored size and never grows the output beyond its bound. The one file here with `unsafe`: the C calls.
#![allow(unsafe_code)]

use std::fmt;
use std::ptr::NonNull;

use libdeflate_sys as sys;

use super::salvage;
use super::tar::set_in;
use crate::error::{Error, Kind, Result};

/// The first two bytes of every gzip member.
pub const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Deflate cannot do better: 258 bytes from two bits.
const MAX_RATIO: usize = 1032;

/// Room given beyond what the ratio allows, and the least that is ever offered to the decompressor.
const SLACK: usize = 64 << 10;

/// At most this many bytes are taken by [`Inflater::inflate_head`] beyond the requested ones.
pub const HEAD_ROOM: usize = AHEAD + MARK.len() + LONGEST_RUN;

/// Room after a head: more than the decompressor ever writes ahead of itself, then the mark that it was there.
const AHEAD: usize = 312;

/// Stands after a head before it is written; still there afterwards, the decompressor may not have got so far.
const MARK: [u8; 8] = *b"\xa7\x1d\xe4\x93\x5c\x0f\xb8\x62";

/// Longest run that one deflate symbol stands for: so close to the end of its room the decompressor may stop.
const LONGEST_RUN: usize = 258;

/// How the bytes were stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// One or more gzip members.
    Gzip,
    /// No gzip magic: the bytes are taken as they are, as zlib's file reader does.
    Plain,
}

/// What [`Inflater::inflate`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inflated {
    /// How the bytes were stored.
    pub stored: Stored,
    /// Number of gzip members.
    pub members: usize,
    /// Bytes after the last member that were ignored: padding or garbage.
    pub trailing: usize,
}

/// A reusable decompressor. Costs nothing until it is first used, then about 11 kB.
#[derive(Default)]
pub struct Inflater {
    raw: Option<NonNull<sys::libdeflate_decompressor>>,
}

// SAFETY: the decompressor is plain memory without ties to a thread, and only `&mut self` reaches it.
unsafe impl Send for Inflater {}
// SAFETY: nothing can be done to the decompressor through `&self`.
unsafe impl Sync for Inflater {}

impl fmt::Debug for Inflater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inflater")
    }
}

impl Drop for Inflater {
    fn drop(&mut self) {
        if let Some(raw) = self.raw.take() {
            // SAFETY: `raw` came from `libdeflate_alloc_decompressor` and is freed once.
            unsafe { sys::libdeflate_free_decompressor(raw.as_ptr()) }
        }
    }
}

/// What one call into libdeflate said.
enum Step {
    Done { read: usize },
    Full,
    Bad,
}

/// Why a member was not delivered.
enum Refused {
    TooLarge(usize),
    Damaged,
    Other(Error),
}

impl Inflater {
    /// Replaces `out` by what `input` holds, at most `max` bytes of it; on an error `out` is empty.
    ///
    /// `out` keeps its memory between calls and is never zeroed.
    ///
    /// Errors, with the byte of `input`: `Empty`, `TooLarge` beyond `max`, `Truncated`, `Corrupt`
    /// (damaged data, or a checksum or length that does not agree).
    pub fn inflate(&mut self, input: &[u8], max: usize, out: &mut Vec<u8>) -> Result<Inflated> {
        out.clear();
        if input.is_empty() {
            return Err(Error::new(Kind::Empty, "expected gzip data, found no bytes").at_byte(0));
        }
        if !input.starts_with(&MAGIC) {
            if input.len() > max {
                return Err(too_large(max).at_byte(0));
            }
            out.reserve_exact(input.len());
            out.extend_from_slice(input);
            return Ok(Inflated { stored: Stored::Plain, members: 0, trailing: 0 });
        }
        let mut at = 0;
        let mut members = 0;
        while input[at..].starts_with(&MAGIC) {
            match self.member(&input[at..], max, out) {
                Ok(read) => at += read,
                Err(refused) => {
                    let filled = out.len();
                    out.clear();
                    return Err(match refused {
                        Refused::TooLarge(bound) => too_large(bound).at_byte(at as u64),
                        Refused::Damaged => salvage::explain(input, at, max - filled)
                            .unwrap_or_else(|| too_large(max).at_byte(at as u64)),
                        Refused::Other(e) => e,
                    });
                }
            }
            members += 1;
        }
        Ok(Inflated { stored: Stored::Gzip, members, trailing: input.len() - at })
    }

    /// Inflates the one member of `input` to the start of `out` and says how many bytes they are; `None`, with anything in
    /// `out`, where that is not possible: then [`Inflater::inflate`] says why, or does it.
    ///
    /// Errors: `Io` where there is no memory for a decompressor.
    pub fn inflate_into(&mut self, input: &[u8], out: &mut [u8]) -> Result<Option<usize>> {
        if !input.starts_with(&MAGIC) {
            return Ok(None);
        }
        let raw = self.raw()?;
        let (mut read, mut written) = (0usize, 0usize);
        // SAFETY: `raw` is a live decompressor that only we use; both buffers are valid for the lengths given and
        // initialised; the two counters outlive the call.
        let verdict = unsafe {
            sys::libdeflate_gzip_decompress_ex(
                raw.as_ptr(),
                input.as_ptr().cast(),
                input.len(),
                out.as_mut_ptr().cast(),
                out.len(),
                &raw mut read,
                &raw mut written,
            )
        };
        let whole = verdict == sys::libdeflate_result_LIBDEFLATE_SUCCESS && set_in(&input[read..]).is_none();
        Ok(whole.then_some(written))
    }

    /// Makes the first `want` bytes of `out` those of what `input` holds, and stops there: what costs as much as it gives.
    /// `false`, with any bytes in `out`, where that is not possible or not cheaper; then use [`Inflater::inflate`].
    ///
    /// Verifies no checksum: hold what it gives against a sum of your own. `out` grows as needed and never shrinks.
    ///
    /// Errors: `Io` where there is no memory for a decompressor.
    pub fn inflate_head(&mut self, input: &[u8], want: usize, out: &mut Vec<u8>) -> Result<bool> {
        let room = want.saturating_add(HEAD_ROOM);
        if !input.starts_with(&MAGIC) || first_guess(input, 0) <= room {
            return Ok(false);
        }
        let raw = self.raw()?;
        if out.len() < room {
            out.resize(room, 0);
        }
        let (mark, end) = (want + AHEAD, want + AHEAD + MARK.len());
        out[mark..end].copy_from_slice(&MARK);
        // SAFETY: `raw` is a live decompressor that only we use; both buffers are valid for the lengths given and
        // initialised; the counters may be null.
        let verdict = unsafe {
            sys::libdeflate_gzip_decompress_ex(
                raw.as_ptr(),
                input.as_ptr().cast(),
                input.len(),
                out.as_mut_ptr().cast(),
                room,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
        };
        // It writes front to back, and what it found before the room was full is in place (pinned by a test).
        Ok(verdict == sys::libdeflate_result_LIBDEFLATE_INSUFFICIENT_SPACE && out[mark..end] != MARK)
    }

    /// Appends the first member of `input` to `out` and says how long it was in `input`.
    fn member(&mut self, input: &[u8], max: usize, out: &mut Vec<u8>) -> Result<usize, Refused> {
        let bound = max.min(out.len().saturating_add(input.len().saturating_mul(MAX_RATIO)).saturating_add(SLACK));
        let mut room = first_guess(input, out.len()).min(bound);
        loop {
            out.reserve_exact(room.saturating_sub(out.len()));
            let offered = out.capacity().min(bound) - out.len();
            match self.step(input, offered, out).map_err(Refused::Other)? {
                Step::Done { read } => return Ok(read),
                Step::Bad => return Err(Refused::Damaged),
                Step::Full if out.len() + offered >= bound => return Err(Refused::TooLarge(bound)),
                Step::Full => room = out.capacity().saturating_mul(2).min(bound),
            }
        }
    }

    /// One call: decompresses the first member of `input` into at most `offered` spare bytes of `out`.
    fn step(&mut self, input: &[u8], offered: usize, out: &mut Vec<u8>) -> Result<Step> {
        let raw = self.raw()?;
        let spare = &mut out.spare_capacity_mut()[..offered];
        let (mut read, mut written) = (0usize, 0usize);
        // SAFETY: `raw` is a live decompressor that only we use; both buffers are valid for the lengths
        // given, the output only ever written through; the two counters outlive the call.
        let verdict = unsafe {
            sys::libdeflate_gzip_decompress_ex(
                raw.as_ptr(),
                input.as_ptr().cast(),
                input.len(),
                spare.as_mut_ptr().cast(),
                spare.len(),
                &raw mut read,
                &raw mut written,
            )
        };
        Ok(match verdict {
            sys::libdeflate_result_LIBDEFLATE_SUCCESS => {
                assert!(0 < read && read <= input.len() && written <= offered, "libdeflate stays within its buffers");
                // SAFETY: on success exactly `written` spare bytes were initialised, and they fit (asserted).
                unsafe { out.set_len(out.len() + written) }
                Step::Done { read }
            }
            sys::libdeflate_result_LIBDEFLATE_INSUFFICIENT_SPACE => Step::Full,
            _ => Step::Bad,
        })
    }

    fn raw(&mut self) -> Result<NonNull<sys::libdeflate_decompressor>> {
        if let Some(raw) = self.raw {
            return Ok(raw);
        }
        // SAFETY: no arguments; null is handled.
        let raw = NonNull::new(unsafe { sys::libdeflate_alloc_decompressor() });
        self.raw = raw;
        raw.ok_or_else(out_of_memory)
    }
}

/// How many bytes `input` says that it holds, where that can be: right for one member below 4 GiB.
pub fn told(input: &[u8]) -> Option<usize> {
    let stored = input.last_chunk::<4>().map(|tail| u32::from_le_bytes(*tail) as usize)?;
    (stored <= input.len().saturating_mul(MAX_RATIO)).then_some(stored)
}

/// The length stored in the last four bytes is right for one member below 4 GiB; elsewhere only a start.
fn first_guess(input: &[u8], filled: usize) -> usize {
    let stored = input.last_chunk::<4>().map_or(0, |tail| u32::from_le_bytes(*tail) as usize);
    let believable = input.len().saturating_mul(MAX_RATIO);
    filled.saturating_add(if stored <= believable { stored.max(SLACK) } else { SLACK })
}

fn too_large(bound: usize) -> Error {
    Error::new(Kind::TooLarge, format!("more than {bound} bytes, the bound; raise max_chunk_bytes if it is real"))
}

fn out_of_memory() -> Error {
    Error::new(Kind::Io(std::io::ErrorKind::OutOfMemory), "no memory for a (de)compressor")
}

/// One gzip member without name or time: the same bytes for the same data and level (0..=12), always.
///
/// Errors: `OutOfRange` for another level.
pub fn compress(level: u8, data: &[u8]) -> Result<Vec<u8>> {
    if level > 12 {
        return Err(Error::new(Kind::OutOfRange, format!("compression level {level}; expected 0..=12")));
    }
    // SAFETY: no pointers go in; null is handled.
    let raw = NonNull::new(unsafe { sys::libdeflate_alloc_compressor(i32::from(level)) }).ok_or_else(out_of_memory)?;
    // SAFETY: `raw` is live.
    let bound = unsafe { sys::libdeflate_gzip_compress_bound(raw.as_ptr(), data.len()) };
    let mut out: Vec<u8> = Vec::with_capacity(bound);
    let spare = &mut out.spare_capacity_mut()[..bound];
    // SAFETY: `raw` is live and ours; both buffers are valid for the lengths given, the output only written.
    let written = unsafe {
        sys::libdeflate_gzip_compress(
            raw.as_ptr(),
            data.as_ptr().cast(),
            data.len(),
            spare.as_mut_ptr().cast(),
            spare.len(),
        )
    };
    // SAFETY: `raw` came from `libdeflate_alloc_compressor` and is freed once.
    unsafe { sys::libdeflate_free_compressor(raw.as_ptr()) }
    assert!(0 < written && written <= bound, "libdeflate keeps its bound");
    // SAFETY: exactly `written` bytes were initialised, and they fit (asserted).
    unsafe { out.set_len(written) }
    Ok(out)
}
