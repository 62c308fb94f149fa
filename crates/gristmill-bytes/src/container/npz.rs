//! `.npz` bytes -> named `.npy` members, inflated one at a time and bounded before they are.
//! Reads stored and deflated members; evaluates nothing: arrays of Python objects are left to the unpickler.

use std::collections::HashMap;
use std::io::Read;

use flate2::bufread::DeflateDecoder;
use rawzip::{CompressionMethod, ErrorKind, ZipArchive, ZipArchiveEntryWayfinder, ZipSliceArchive};

use crate::error::{Error, Kind, Result};

/// The first bytes of a file with members, and of one without.
pub const MAGICS: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

/// An open `.npz`.
#[derive(Debug)]
pub struct Npz<'a> {
    archive: ZipSliceArchive<&'a [u8]>,
    names: Vec<String>,
    places: HashMap<String, usize>,
    members: Vec<(ZipArchiveEntryWayfinder, CompressionMethod)>,
}

impl<'a> Npz<'a> {
    /// Reads the directory of members.
    ///
    /// Errors: `Corrupt` where there is none (a truncated file has lost it), where it lists another number of members
    /// than it claims, where two share a name, or a name is no text.
    pub fn open(bytes: &'a [u8]) -> Result<Self> {
        let archive = ZipArchive::from_slice(bytes).map_err(|e| refusal(&e))?;
        let (mut names, mut members) = (Vec::new(), Vec::new());
        let mut entries = archive.entries();
        while let Some(entry) = entries.next_entry().map_err(|e| refusal(&e))? {
            let name = std::str::from_utf8(entry.file_path().as_bytes()).map_err(|_| {
                Error::new(Kind::Corrupt, format!("the name of member {} is no UTF-8 text", names.len()))
            })?;
            names.push(name.strip_suffix(".npy").unwrap_or(name).to_owned());
            members.push((entry.wayfinder(), entry.compression_method()));
        }
        if names.len() as u64 != archive.entries_hint() {
            let detail = format!("the directory lists {} members and claims {}", names.len(), archive.entries_hint());
            return Err(Error::new(Kind::Corrupt, detail));
        }
        let mut places = HashMap::with_capacity(names.len());
        for (i, name) in names.iter().enumerate() {
            if places.insert(name.clone(), i).is_some() {
                return Err(Error::new(Kind::Corrupt, format!("two members are called `{}`", name.escape_default())));
            }
        }
        Ok(Npz { archive, names, places, members })
    }

    /// The arrays' names, `.npy` left out, in the order of the directory.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Inflates at most the first `most` bytes of the `.npy` file of an array into `out`, replacing what was there: its header.
    /// Whether they have their checksum, only all of them say.
    ///
    /// Errors: as [`Npz::read`].
    pub fn head(&self, name: &str, most: usize, out: &mut Vec<u8>) -> Result<()> {
        self.member(name, out, |at, method, out| self.inflate(at, method, (most, false), out))
    }

    /// Inflates the `.npy` file of an array into `out`, replacing what was there.
    ///
    /// Errors, with the member: `Missing`, naming what there is; `TooLarge` beyond `max` bytes; `Unsupported` (a method
    /// that NumPy does not write, encryption); `Corrupt` (a checksum, a size), `Truncated`.
    pub fn read(&self, name: &str, max: usize, out: &mut Vec<u8>) -> Result<()> {
        self.member(name, out, |at, method, out| self.inflate(at, method, (max, true), out))
    }

    fn member(
        &self,
        name: &str,
        out: &mut Vec<u8>,
        inflate: impl FnOnce(ZipArchiveEntryWayfinder, CompressionMethod, &mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let Some(&i) = self.places.get(name) else {
            let known = self.names.join("`, `").escape_debug().to_string();
            return Err(Error::new(Kind::Missing, format!("no member is called `{name}`; there are `{known}`")));
        };
        out.clear();
        let (at, method) = self.members[i];
        inflate(at, method, out).map_err(|e| {
            out.clear();
            e.in_member(format!("{name}.npy"))
        })
    }

    fn inflate(
        &self,
        at: ZipArchiveEntryWayfinder,
        method: CompressionMethod,
        (max, whole): (usize, bool),
        out: &mut Vec<u8>,
    ) -> Result<()> {
        // What the directory claims is a hint; the bound holds whatever it says.
        let claimed = usize::try_from(at.uncompressed_size_hint()).unwrap_or(usize::MAX);
        if whole && claimed > max {
            let detail = format!("{claimed} bytes, the bound is {max}; raise it if they are real");
            return Err(Error::new(Kind::TooLarge, detail));
        }
        let entry = self.archive.get_entry(at).map_err(|e| refusal(&e))?;
        if entry.local_header().flags().is_encrypted() {
            return Err(Error::new(Kind::Unsupported, "it is encrypted; store it in the open"));
        }
        out.reserve(claimed.min(1 << 20));
        let bound = if whole { max as u64 + 1 } else { max as u64 };
        let read = match method {
            CompressionMethod::STORE => entry.verifying_reader(entry.data()).take(bound).read_to_end(out),
            CompressionMethod::DEFLATE => {
                entry.verifying_reader(DeflateDecoder::new(entry.data())).take(bound).read_to_end(out)
            }
            other => {
                let detail = format!("method {} of compression; NumPy stores or deflates", other.as_u16());
                return Err(Error::new(Kind::Unsupported, detail));
            }
        };
        read.map_err(|e| match e.kind() {
            std::io::ErrorKind::UnexpectedEof => Error::new(Kind::Truncated, e.to_string()),
            _ => Error::new(Kind::Corrupt, e.to_string()),
        })?;
        if out.len() > max {
            return Err(Error::new(Kind::TooLarge, format!("more than {max} bytes; raise the bound if they are real")));
        }
        Ok(())
    }
}

fn refusal(e: &rawzip::Error) -> Error {
    let kind = if matches!(e.kind(), ErrorKind::Eof) { Kind::Truncated } else { Kind::Corrupt };
    Error::new(kind, e.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::DeflateEncoder;
    use rawzip::ZipArchiveWriter;

    use super::*;

    fn npz(members: &[(&str, &[u8], CompressionMethod)]) -> Vec<u8> {
        let mut writer = ZipArchiveWriter::new(Vec::new());
        for (name, bytes, method) in members {
            let (mut entry, config) = writer.new_file(*name).compression_method(*method).start().unwrap();
            let descriptor = if *method == CompressionMethod::STORE {
                let mut file = config.wrap(&mut entry);
                file.write_all(bytes).unwrap();
                file.finish().unwrap().1
            } else {
                let mut file = config.wrap(DeflateEncoder::new(&mut entry, Compression::fast()));
                file.write_all(bytes).unwrap();
                let (encoder, descriptor) = file.finish().unwrap();
                encoder.finish().unwrap();
                descriptor
            };
            entry.finish(descriptor).unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn stored_and_deflated_members_are_read() {
        let big = vec![7; 100_000];
        let bytes = npz(&[("a.npy", b"abc", CompressionMethod::STORE), ("b.npy", &big, CompressionMethod::DEFLATE)]);
        let npz = Npz::open(&bytes).unwrap();
        assert_eq!(npz.names(), ["a", "b"]);
        let mut out = Vec::new();
        npz.read("a", 3, &mut out).unwrap();
        assert_eq!(out, b"abc");
        npz.read("b", big.len(), &mut out).unwrap();
        assert_eq!(out, big);
        let e = npz.read("b", big.len() - 1, &mut out).unwrap_err();
        assert_eq!((e.kind(), e.place().member.as_deref()), (Kind::TooLarge, Some("b.npy")));
        npz.head("b", 10, &mut out).unwrap();
        assert_eq!(out, [7; 10]);
        npz.head("a", 10, &mut out).unwrap();
        assert_eq!(out, b"abc");
        assert_eq!(npz.head("c", 1, &mut out).unwrap_err().kind(), Kind::Missing);
        assert!(npz.read("c", 1, &mut out).unwrap_err().detail().contains("`a`, `b`"));
    }

    #[test]
    fn damage_is_refused() {
        let bytes = npz(&[("a.npy", &[1, 2, 3, 4, 5, 6, 7, 8], CompressionMethod::STORE)]);
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
