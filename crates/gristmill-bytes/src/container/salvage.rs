//! Gzip bytes -> what can be had of them in order: a prefix, or all that comes before the damage; and what the damage is.
//! Slower than [`super::gzip`] and used only where that one cannot help; bounded like it.

use flate2::{Decompress, FlushDecompress, Status};

use super::gzip::MAGIC;
use crate::error::{Error, Kind, Result};

/// Bytes produced per step.
const STEP: usize = 32 << 10;

/// Why a pass over the members stopped, and at which byte of the input.
enum End {
    /// All members, and how many bytes of the input they take.
    Complete(usize),
    Enough,
    Truncated,
    Corrupt(u64, String),
}

/// Walks the members from `at`, handing out what they hold, until `take` has had enough.
fn stream(input: &[u8], at: usize, mut take: impl FnMut(&[u8]) -> bool) -> End {
    let mut step = vec![0; STEP];
    let mut at = at;
    loop {
        let mut member = Decompress::new_gzip(15);
        loop {
            let (read, written) = (member.total_in(), member.total_out());
            let from = at + read as usize;
            let verdict = member.decompress(&input[from..], &mut step, FlushDecompress::None);
            let fresh = (member.total_out() - written) as usize;
            if fresh > 0 && !take(&step[..fresh]) {
                return End::Enough;
            }
            match verdict {
                Ok(Status::StreamEnd) => break,
                Ok(_) if member.total_in() == read && fresh == 0 => return End::Truncated,
                Ok(_) => {}
                Err(e) => return End::Corrupt(at as u64 + member.total_in(), e.to_string()),
            }
        }
        at += member.total_in() as usize;
        if !input[at..].starts_with(&MAGIC) {
            return End::Complete(at);
        }
    }
}

/// Says what is wrong with the member that starts at byte `at`, after the fast path refused it; none where more than `max` bytes come
/// before the damage. The fast path takes the last 8 bytes for a trailer, so a cut file seems to it to end earlier.
pub(super) fn explain(input: &[u8], at: usize, max: usize) -> Option<Error> {
    let mut made = 0;
    let within = |fresh: &[u8]| {
        made += fresh.len();
        made <= max
    };
    Some(match stream(input, at, within) {
        End::Enough => return None,
        End::Truncated => {
            Error::new(Kind::Truncated, "the gzip data ends before its last member does").at_byte(input.len() as u64)
        }
        End::Corrupt(byte, why) => Error::new(Kind::Corrupt, format!("damaged gzip data: {why}")).at_byte(byte),
        End::Complete(_) => {
            Error::new(Kind::Corrupt, "damaged gzip data: a header libdeflate refuses").at_byte(at as u64)
        }
    })
}

/// Replaces `out` by up to `max` bytes of what `input` holds, up to the first damage.
/// Returns how many; plain bytes are taken as they are. Checksums of damaged members are not verified.
pub fn salvage(input: &[u8], max: usize, out: &mut Vec<u8>) -> usize {
    fill(input, max, out);
    out.len()
}

/// Replaces `out` by the first `n` bytes of what `input` holds, fewer where it holds less.
///
/// Errors: `Truncated` or `Corrupt` when the damage comes before byte `n`. What follows is not read.
pub fn inflate_prefix(input: &[u8], n: usize, out: &mut Vec<u8>) -> Result<()> {
    match fill(input, n, out) {
        End::Complete(_) | End::Enough => Ok(()),
        End::Truncated => {
            Err(Error::new(Kind::Truncated, format!("the gzip data ends after {} of {n} bytes", out.len()))
                .at_byte(input.len() as u64))
        }
        End::Corrupt(byte, why) => Err(Error::new(Kind::Corrupt, format!("damaged gzip data: {why}")).at_byte(byte)),
    }
}

/// Hands what `input` holds to `each`, in order and some kilobytes at a time, until it returns `false`; plain bytes are
/// handed on as they are. Returns how many bytes after the last member were ignored. Takes the memory of one step.
///
/// Errors, with the byte of `input`: `Truncated`, `Corrupt`; what came before the damage was handed out by then.
pub fn inflate_steps(input: &[u8], mut each: impl FnMut(&[u8]) -> bool) -> Result<usize> {
    if !input.starts_with(&MAGIC) {
        let _ = input.chunks(STEP).all(each);
        return Ok(0);
    }
    match stream(input, 0, &mut each) {
        End::Complete(end) => Ok(input.len() - end),
        End::Enough => Ok(0),
        End::Truncated => {
            Err(Error::new(Kind::Truncated, "the gzip data ends before its last member does")
                .at_byte(input.len() as u64))
        }
        End::Corrupt(byte, why) => Err(Error::new(Kind::Corrupt, format!("damaged gzip data: {why}")).at_byte(byte)),
    }
}

fn fill(input: &[u8], max: usize, out: &mut Vec<u8>) -> End {
    out.clear();
    if !input.starts_with(&MAGIC) {
        out.extend_from_slice(&input[..input.len().min(max)]);
        return End::Complete(input.len());
    }
    if max == 0 {
        return End::Enough;
    }
    stream(input, 0, |fresh| {
        out.extend_from_slice(&fresh[..fresh.len().min(max - out.len())]);
        out.len() < max
    })
}

#[cfg(test)]
mod tests {
    use super::super::gzip::{Inflater, compress};
    use super::*;

    #[test]
    fn a_cut_file_beyond_the_bound_is_too_large() {
        let file = compress(6, &vec![0; 1 << 18]).unwrap();
        let (mut whole, mut out) = (Vec::new(), Vec::new());
        for cut in (40..file.len() - 8).step_by(13) {
            let cut = &file[..cut];
            let there = salvage(cut, 1 << 20, &mut whole);
            for (max, kind) in [(there - 1, Kind::TooLarge), (there, Kind::Truncated), (there + 1, Kind::Truncated)] {
                let e = Inflater::default().inflate(cut, max, &mut out).unwrap_err();
                assert_eq!(e.kind(), kind, "{} bytes, {there} in them, at most {max}: {e}", cut.len());
            }
        }
    }
}
