//! `.npz` bytes -> named `.npy` members, inflated one at a time and bounded before they are.
//! Reads stored and deflated members; evaluates nothing: arrays of Python objects are left to the unpickler.

use std::io::{Cursor, Read};

use zip::ZipArchive;
use zip::result::ZipError;

use crate::error::{Error, Kind, Result};

/// The first bytes of a file with members, and of one without.
pub const MAGICS: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

/// An open `.npz`.
#[derive(Debug)]
pub struct Npz<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
    names: Vec<String>,
}

impl<'a> Npz<'a> {
    /// Reads the directory of members.
    ///
    /// Errors: `Corrupt` where there is none (a truncated file has lost it), where two members share a name, or a
    /// name is no text.
    pub fn open(bytes: &'a [u8]) -> Result<Self> {
        let archive = ZipArchive::new(Cursor::new(bytes)).map_err(refusal)?;
        let mut names: Vec<String> = Vec::with_capacity(archive.len());
        for i in 0..archive.len() {
            let name = archive.name_for_index(i).transpose().map_err(refusal)?.unwrap_or_default();
            names.push(name.strip_suffix(".npy").unwrap_or(&name).to_owned());
        }
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::new(Kind::Corrupt, format!("two members are called `{}`", twice[0])));
        }
        Ok(Npz { archive, names })
    }

    /// The arrays' names, `.npy` left out, in the order of the directory.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Inflates the `.npy` file of an array into `out`, replacing what was there.
    ///
    /// Errors, with the member: `Missing`, naming what there is; `TooLarge` beyond `max` bytes; `Corrupt` (a checksum,
    /// a method that NumPy does not use), `Truncated`.
    pub fn read(&mut self, name: &str, max: usize, out: &mut Vec<u8>) -> Result<()> {
        let Some(i) = self.names.iter().position(|known| known == name) else {
            let known = self.names.join("`, `");
            return Err(Error::new(Kind::Missing, format!("no member is called `{name}`; there are `{known}`")));
        };
        inflate(&mut self.archive, i, max, out).map_err(|e| e.in_member(format!("{name}.npy")))
    }
}

fn inflate(archive: &mut ZipArchive<Cursor<&[u8]>>, i: usize, max: usize, out: &mut Vec<u8>) -> Result<()> {
    out.clear();
    let member = archive.by_index(i).map_err(refusal)?;
    // What the directory claims is a hint; the bound holds whatever it says.
    let claimed = usize::try_from(member.size()).unwrap_or(usize::MAX);
    if claimed > max {
        let detail = format!("{claimed} bytes, the bound is {max}; raise it if they are real");
        return Err(Error::new(Kind::TooLarge, detail));
    }
    out.reserve(claimed.min(1 << 20));
    member.take(max as u64 + 1).read_to_end(out).map_err(|e| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => Error::new(Kind::Truncated, e.to_string()),
        _ => Error::new(Kind::Corrupt, e.to_string()),
    })?;
    if out.len() > max {
        out.clear();
        return Err(Error::new(Kind::TooLarge, format!("more than {max} bytes; raise the bound if they are real")));
    }
    Ok(())
}

fn refusal(e: ZipError) -> Error {
    let kind = match &e {
        ZipError::UnsupportedArchive(_) => Kind::Unsupported,
        ZipError::Io(io) if io.kind() == std::io::ErrorKind::UnexpectedEof => Kind::Truncated,
        _ => Kind::Corrupt,
    };
    Error::new(kind, e.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::write::SimpleFileOptions;
    use zip::{CompressionMethod, ZipWriter};

    use super::*;

    fn npz(members: &[(&str, &[u8], CompressionMethod)]) -> Vec<u8> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes, method) in members {
            writer.start_file(*name, SimpleFileOptions::default().compression_method(*method)).unwrap();
            writer.write_all(bytes).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    #[test]
    fn stored_and_deflated_members_are_read() {
        let big = vec![7; 100_000];
        let bytes = npz(&[("a.npy", b"abc", CompressionMethod::Stored), ("b.npy", &big, CompressionMethod::Deflated)]);
        let mut npz = Npz::open(&bytes).unwrap();
        assert_eq!(npz.names(), ["a", "b"]);
        let mut out = Vec::new();
        npz.read("a", 3, &mut out).unwrap();
        assert_eq!(out, b"abc");
        npz.read("b", big.len(), &mut out).unwrap();
        assert_eq!(out, big);
        let e = npz.read("b", big.len() - 1, &mut out).unwrap_err();
        assert_eq!((e.kind(), e.place().member.as_deref()), (Kind::TooLarge, Some("b.npy")));
        assert!(npz.read("c", 1, &mut out).unwrap_err().detail().contains("`a`, `b`"));
    }

    #[test]
    fn damage_is_refused() {
        let bytes = npz(&[("a.npy", &[1, 2, 3, 4, 5, 6, 7, 8], CompressionMethod::Stored)]);
        for cut in 0..bytes.len() {
            assert!(Npz::open(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        let mut flipped = bytes.clone();
        let at = bytes.windows(3).position(|w| w == [1, 2, 3]).unwrap();
        flipped[at] ^= 1;
        let e = Npz::open(&flipped).unwrap().read("a", 100, &mut Vec::new()).unwrap_err();
        assert_eq!(e.kind(), Kind::Corrupt);
        assert!(Npz::open(b"").is_err());
    }
}
