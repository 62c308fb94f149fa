//! Body for tars: the walk keeps its bounds, and the members of a tar without faults are those that the `tar` crate reads.
//! Each input counts three times: as it is, with right checksums in its headers, and as names and contents that the crate writes.

use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use gristmill_format::chess::source::GameTar;
use gristmill_format::container::tar::{TarIndex, TarLimits, walk};
use gristmill_format::source::{Chunk, ChunkSource, read_span};

const BLOCK: usize = 512;

/// The walk ends, offsets grow, names stay bounded, the index survives being stored, and every game decodes or says where.
pub fn tar(data: &[u8]) {
    walked(data);
    let mended = mended(data);
    if mended != data {
        walked(&mended);
    }
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

/// The regular files that the `tar` crate reads; `None` where it refuses the tar or reads it by another rule.
fn by_crate(data: &[u8]) -> Option<Vec<Member>> {
    let mut members = Vec::new();
    for entry in tar::Archive::new(data).entries().ok()? {
        let mut entry = entry.ok()?;
        let kind = entry.header().entry_type();
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).ok()?;
        if (kind.is_file() || kind.is_contiguous()) && !name.ends_with('/') {
            members.push((name, entry.raw_file_position(), bytes));
        }
    }
    Some(members)
}

fn agree(data: &[u8], index: &TarIndex) {
    let Some(theirs) = by_crate(data) else { return };
    let ours: Vec<Member> = index
        .iter()
        .map(|e| (e.name.to_owned(), e.offset, data[e.offset as usize..][..e.len as usize].to_vec()))
        .collect();
    assert_eq!(ours, theirs, "two readers of tars, two answers");
}

/// `data` with a right checksum in each header that a reader comes to.
pub fn mended(data: &[u8]) -> Vec<u8> {
    let (mut data, mut at) = (data.to_vec(), 0usize);
    while let Some(block) = data.get_mut(at..at.saturating_add(BLOCK)).filter(|block| block.iter().any(|b| *b != 0)) {
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let digits = block[124..136].iter().skip_while(|b| **b == b' ').take_while(|b| b.is_ascii_digit());
        let size = digits.fold(0usize, |n, b| n.saturating_mul(8).saturating_add(usize::from(b - b'0')));
        at = at.saturating_add(BLOCK).saturating_add(size.div_ceil(BLOCK).saturating_mul(BLOCK));
    }
    data
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
