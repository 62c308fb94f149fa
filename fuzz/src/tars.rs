//! Body for tars: the walk keeps its bounds, and the members of a tar without faults are those that the `tar` crate reads.
//! Each input counts three times: as it is, with right checksums in its headers, and as names and contents that the crate writes.

use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use gristmill_format::chess::source::GameTar;
use gristmill_format::container::tar::{TarIndex, TarLimits, walk};
use gristmill_format::source::{Chunk, ChunkSource, read_span};

use super::mended;

/// The walk ends, offsets grow, names stay bounded, the index survives being stored, and every game decodes or says where.
pub fn tar(data: &[u8]) {
    walked(data);
    walked(&mended::tar(data));
    written(data);
}

fn walked(data: &[u8]) -> TarIndex {
    let limits = TarLimits { max_faults: 50, ..TarLimits::default() };
    let index = walk(data, &limits).expect("reading memory does not fail");
    assert!(index.slots().is_sorted_by(|a, b| a.offset < b.offset));
    assert!(index.iter().all(|e| e.offset <= data.len() as u64));
    assert!(index.faults().len() <= limits.max_faults + 1);
    assert!(index.faults().iter().all(|e| e.place().offset.is_some()));
    let stored = TarIndex::from_parts(index.names().to_owned(), index.slots().to_vec(), index.faults().to_vec());
    assert_eq!(stored.as_ref(), Ok(&index));
    let games = GameTar::new("fuzz.tar", &index);
    let (mut bytes, mut chunk) = (Vec::new(), Chunk::default());
    for i in 0..games.len().min(4) {
        let (span, _) = games.locate(i).expect("within its length");
        let decoded = read_span(data, span, data.len() as u64, &mut bytes)
            .and_then(|()| games.decode(i, &bytes, &super::LIMITS, &mut chunk));
        if let Err(e) = decoded {
            assert!(e.place().offset.is_some(), "{e}");
        }
    }
    if index.faults().is_empty() {
        agree(data, &index);
    }
    index
}

/// One regular file: name, byte at which it starts, contents.
type Member = (String, u64, Vec<u8>);

/// The regular files that the `tar` crate reads; `None` where it refuses the tar, or reads it by another rule than ours.
fn by_crate(data: &[u8]) -> Option<Vec<Member>> {
    let mut members = Vec::new();
    for entry in tar::Archive::new(data).entries().ok()? {
        let mut entry = entry.ok()?;
        let kind = entry.header().entry_type();
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).ok()?;
        if is_by_another_rule(&mut entry, &name) {
            return None;
        }
        if (kind.is_file() || kind.is_contiguous()) && !name.ends_with('/') {
            members.push((name, entry.raw_file_position(), bytes));
        }
    }
    Some(members)
}

/// Where the crate has another rule:
/// - extended headers: it takes no global one, and those of pax and GNU only behind a magic; an empty path is a name there; of two paths
///   it takes the first, and that of GNU before that of pax; it passes over records that it does not understand;
/// - long names of GNU may have zeros there;
/// - links, folders and devices have the contents that their size says, we look whether a header follows;
/// - a prefix belongs to the name only in version 00 of POSIX, and there also if the name has a backslash.
fn is_by_another_rule<R: Read>(entry: &mut tar::Entry<'_, R>, name: &str) -> bool {
    let header = entry.header().as_bytes();
    let (kind, posix) = (header[156], &header[257..263] == b"ustar\0" && &header[263..265] != b"00");
    let sized = matches!(kind, b'1'..=b'6') && entry.size() > 0;
    if matches!(kind, b'g' | b'x' | b'X' | b'L' | b'K') || sized || posix || name.is_empty() || name.contains('\0') {
        return true;
    }
    let (mut paths, mut sizes) = (Vec::new(), 0);
    let Ok(records) = entry.pax_extensions() else { return true };
    for record in records.into_iter().flatten() {
        let Ok(record) = record else { return true };
        match record.key_bytes() {
            b"path" => paths.push(String::from_utf8_lossy(record.value_bytes()).into_owned()),
            b"size" => sizes += 1,
            _ => {}
        }
    }
    paths.iter().any(|path| path != name) || sizes > 1
}

fn agree(data: &[u8], index: &TarIndex) {
    let Some(theirs) = by_crate(data) else { return };
    let ours: Vec<Member> = index
        .iter()
        .map(|e| (e.name.to_owned(), e.offset, data[e.offset as usize..][..e.len as usize].to_vec()))
        .collect();
    assert_eq!(ours, theirs, "two readers of tars, two answers");
}

/// What the `tar` crate writes is read back whole: names of every form, contents of any length.
fn written(mut data: &[u8]) {
    let (mut builder, mut contents) = (tar::Builder::new(Vec::new()), Vec::new());
    while let Some((&[form, name, size], after)) = data.split_first_chunk() {
        let (name, after) = after.split_at(after.len().min(usize::from(name)));
        let (content, after) = after.split_at(after.len().min(usize::from(size)));
        data = after;
        let mut header = match form & 3 {
            0 => tar::Header::new_old(),
            1 => tar::Header::new_ustar(),
            _ => tar::Header::new_gnu(),
        };
        header.set_size(content.len() as u64);
        let named = if form & 4 == 0 {
            builder.append_data(&mut header, Path::new(std::ffi::OsStr::from_bytes(name)), content)
        } else {
            builder
                .append_pax_extensions([("path", name)])
                .and_then(|()| builder.append_data(&mut header, "short", content))
        };
        match named {
            Ok(()) => contents.push(content.to_vec()),
            Err(_) => return,
        }
    }
    let Ok(bytes) = builder.into_inner() else { return };
    let index = walked(&bytes);
    if index.faults().is_empty() && by_crate(&bytes).is_some_and(|members| members.len() == contents.len()) {
        let read = index.iter().map(|e| bytes[e.offset as usize..][..e.len as usize].to_vec());
        assert!(read.eq(contents), "a tar that was written reads otherwise");
    }
}
