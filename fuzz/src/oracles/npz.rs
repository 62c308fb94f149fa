//! The `npz` target beside the `zip` crate: an archive that both read has the same members with the same bytes.
//! What that crate writes, our reader gives back; what our writer writes, that crate gives back.

use std::io::{Cursor, Read, Write};

use gristmill_format::container::npz::Npz;
use gristmill_format::container::npz_write::NpzWriter;
use gristmill_format::layout::{DType, Order, Scalar};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

const MAX: usize = 1 << 20;

/// The input as an archive, and as names and contents of one.
pub fn npz(data: &[u8]) {
    archive(data);
    written(data);
}

fn archive(data: &[u8]) {
    let Ok(ours) = Npz::open(data) else { return };
    let Ok(mut theirs) = ZipArchive::new(Cursor::new(data)) else { return };
    let mut out = Vec::new();
    for i in 0..theirs.len() {
        let Ok(mut file) = theirs.by_index(i) else { continue };
        let name = String::from_utf8(file.name_raw().to_vec()).expect("a name that was read as text");
        let name = name.strip_suffix(".npy").unwrap_or(&name);
        assert!(ours.names().iter().any(|own| own == name), "{name} is missing");
        let mut bytes = Vec::new();
        let whole = file.by_ref().take(MAX as u64 + 1).read_to_end(&mut bytes).is_ok() && bytes.len() <= MAX;
        if ours.read(name, MAX, &mut out).is_ok() && whole {
            assert!(out == bytes, "two readers of zip, two answers");
        }
    }
    assert!(theirs.len() == ours.names().len(), "{} members beside {:?}", theirs.len(), ours.names());
}

/// A name, how it is stored, its contents.
type Member<'a> = (String, bool, &'a [u8]);

/// Cuts members from the input. No name comes twice.
fn members(mut data: &[u8]) -> Vec<Member<'_>> {
    let mut found: Vec<Member<'_>> = Vec::new();
    while let Some((&[form, name, size], after)) = data.split_first_chunk() {
        let (name, after) = after.split_at(after.len().min(usize::from(name)));
        let (content, after) = after.split_at(after.len().min(usize::from(size)));
        data = after;
        let name = String::from_utf8_lossy(name).replace(['\0', '/', '\\'], "_");
        if !found.iter().any(|(other, ..)| *other == name) {
            found.push((name, form & 1 == 0, content));
        }
    }
    found
}

fn written(data: &[u8]) {
    let members = members(data);
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, stored, content) in &members {
        let method = if *stored { CompressionMethod::Stored } else { CompressionMethod::Deflated };
        let options = SimpleFileOptions::default().compression_method(method);
        if writer.start_file(format!("{name}.npy"), options).is_err() {
            return;
        }
        writer.write_all(content).expect("bytes in memory");
    }
    let bytes = writer.finish().expect("bytes in memory").into_inner();
    let npz = Npz::open(&bytes).expect("an archive that was written");
    let mut out = Vec::new();
    assert!(npz.names().iter().eq(members.iter().map(|(name, ..)| name)));
    for (name, _, content) in &members {
        npz.read(name, MAX, &mut out).expect("a member that was written");
        assert!(out == *content, "a member of that crate reads otherwise");
    }

    let mut writer = NpzWriter::new(Vec::new(), u32::from(data.first().copied().unwrap_or(0) & 7));
    let byte = DType::Scalar(Scalar::U8, Order::Little);
    for (name, _, content) in &members {
        let fill = &mut |to: &mut dyn Write| Ok(to.write_all(content)?);
        if writer.array(name, &byte, &[content.len() as u64], fill).is_err() {
            return;
        }
    }
    let bytes = writer.finish().expect("bytes in memory");
    let mut theirs = ZipArchive::new(Cursor::new(&bytes)).expect("an archive that we wrote");
    assert!(theirs.len() == members.len());
    for (i, (name, _, content)) in members.iter().enumerate() {
        let mut file = theirs.by_index(i).expect("a member that we wrote");
        assert!(file.name_raw() == format!("{name}.npy").as_bytes());
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).expect("a member that we wrote");
        assert!(bytes.ends_with(content), "our member reads otherwise");
    }
}
