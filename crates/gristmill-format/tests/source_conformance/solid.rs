//! Solid files against their contract: plain bytes over which a source conforms, bounds that are kept, and damage that says what.

use std::sync::Arc;

use gristmill_format::Kind;
use gristmill_format::container::gzip::compress;
use gristmill_format::container::npy::{Header, Spelling};
use gristmill_format::container::npz_write::NpzWriter;
use gristmill_format::container::tar::TarWriter;
use gristmill_format::container::zstd;
use gristmill_format::detect::{Format, access, detect_alone, read_whole};
use gristmill_format::layout::{DType, Order, Scalar};
use gristmill_format::plain::{Rooms, Whole};
use gristmill_format::source::{Access, Chunk, ChunkSource, Limits, Span};
use xxhash_rust::xxh3::xxh3_64;

use super::{Bytes, game};

const MAX: usize = 1 << 20;

fn read(name: &str, stored: &[u8], max: usize) -> gristmill_format::Result<Whole> {
    let format = detect_alone(name, &Bytes(stored)).unwrap().unwrap();
    assert_eq!(access(format), Access::Solid);
    read_whole(format, name, &Bytes(stored), max, &mut Rooms::default()).map(|(whole, _)| whole)
}

/// The records of each chunk.
fn chunks(whole: &Whole) -> gristmill_format::Result<Vec<Vec<u8>>> {
    let (mut bytes, mut out) = (Vec::new(), Chunk::default());
    let chunk = |i: usize| {
        let (span, _) = whole.chunks.locate(i).unwrap();
        whole.plain.read(span, u64::MAX, &mut bytes)?;
        whole.chunks.decode(i, &bytes, &Limits::default(), &mut out)?;
        Ok(out.records().to_vec())
    };
    (0..whole.chunks.len()).map(chunk).collect()
}

fn npy(scalar: Scalar, shape: &[u64], bytes: &[u8]) -> Vec<u8> {
    [Header::write(&DType::Scalar(scalar, Order::Little), shape, Spelling::NumPy).unwrap(), bytes.to_vec()].concat()
}

/// A shard of two trajectories, of two steps and one.
fn shard() -> Vec<u8> {
    let mut tar = TarWriter::new(Vec::new());
    for (step, done) in [0, 1, 1].into_iter().enumerate() {
        tar.append(&format!("{step}.acts.npy"), &npy(Scalar::I64, &[], &(step as u64).to_le_bytes())).unwrap();
        tar.append(&format!("{step}.dones.npy"), &npy(Scalar::Bool, &[], &[done])).unwrap();
    }
    tar.finish().unwrap()
}

/// A shard of two trajectories, of three steps and one, whose pictures are most of its tar: its records stay there.
fn pictures() -> Vec<u8> {
    let mut tar = TarWriter::new(Vec::new());
    for (step, done) in [0, 0, 1, 1].into_iter().enumerate() {
        let obs: Vec<u8> = (0..64 * 64).map(|i| (i / 64 * step) as u8).collect();
        tar.append(&format!("{step}.acts.npy"), &npy(Scalar::U8, &[], &[step as u8])).unwrap();
        tar.append(&format!("{step}.dones.npy"), &npy(Scalar::Bool, &[], &[done])).unwrap();
        tar.append(&format!("{step}.obs.npy"), &npy(Scalar::U16, &[2, 32, 32], &obs)).unwrap();
    }
    tar.finish().unwrap()
}

/// The same steps as arrays of the imitation library.
fn arrays() -> Vec<u8> {
    let mut npz = NpzWriter::new(Vec::new(), 6);
    let mut array = |name: &str, scalar: Scalar, shape: &[u64], bytes: &[u8]| {
        npz.array(name, &DType::Scalar(scalar, Order::Little), shape, &mut |to| Ok(to.write_all(bytes)?)).unwrap();
    };
    array("obs", Scalar::U8, &[5, 2], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    array("acts", Scalar::U8, &[3], &[0, 1, 2]);
    array("indices", Scalar::U8, &[1], &[2]);
    array("terminal", Scalar::Bool, &[2], &[1, 1]);
    npz.finish().unwrap()
}

fn games() -> Vec<u8> {
    let mut tar = TarWriter::new(Vec::new());
    tar.append("d/LICENSE", b"free").unwrap();
    for i in 0..3 {
        tar.append(&format!("d/training.{i}.gz"), &compress(6, &game(i + 1, i)).unwrap()).unwrap();
    }
    tar.finish().unwrap()
}

/// Each form: its name, its stored bytes, and the frames of its chunks.
fn forms() -> Vec<(&'static str, Vec<u8>, Vec<usize>)> {
    vec![
        ("demos.tar.zst", zstd::compress(1, &shard()).unwrap(), vec![2, 1]),
        ("demos.tgz", compress(6, &shard()).unwrap(), vec![2, 1]),
        ("pictures.tar.zst", zstd::compress(1, &pictures()).unwrap(), vec![3, 1]),
        ("demos.npz", arrays(), vec![2, 1]),
        ("rows.npz", crate::katago::shard(5, 3), vec![3]),
        ("games.tar.gz", compress(6, &games()).unwrap(), vec![1, 2, 3]),
        ("games.tar.zst", zstd::compress(1, &games()).unwrap(), vec![1, 2, 3]),
    ]
}

#[test]
fn chunks_are_those_of_the_file_and_frames_are_read_alone() {
    for (name, stored, frames) in forms() {
        let whole = read(name, &stored, MAX).unwrap();
        let (source, again): (&Arc<dyn ChunkSource>, _) = (&whole.chunks, read(name, &stored, MAX).unwrap());
        assert_eq!((source.len(), source.describe().key.as_str(), whole.faults.len()), (frames.len(), name, 0));
        assert!(whole.plain.digest() == again.plain.digest(), "{name}: read twice");
        assert!(xxh3_64(&again.plain.into_bytes()) == whole.plain.digest(), "{name}: all bytes");
        let all = chunks(&whole).unwrap();
        let (mut bytes, mut out) = (Vec::new(), Chunk::default());
        for (i, frames) in frames.iter().enumerate() {
            let (span, _) = source.locate(i).unwrap();
            whole.plain.read(span, u64::MAX, &mut bytes).unwrap();
            source.decode(i, &bytes, &Limits::default(), &mut out).unwrap();
            assert_eq!(out.frames, *frames, "{name}, chunk {i}");
            let mut taken = bytes.clone();
            source.decode_taking(i, &mut taken, &Limits::default(), &mut out).unwrap();
            assert!(out.records() == all[i] && out.frames == *frames, "{name}, chunk {i}");
            let size = all[i].len() / frames;
            let last = *frames as u32 - 1;
            if source.decode_rows(i, &[last, 0], &bytes, &Limits::default(), &mut out).unwrap() {
                let expected = [&all[i][size * last as usize..], &all[i][..size]].concat();
                assert!(out.records() == expected, "{name}, chunk {i}");
                assert!(source.decode_rows(i, &[last + 1], &bytes, &Limits::default(), &mut out).is_err());
            }
            let small = Limits { max_chunk_bytes: all[i].len() - 1 };
            assert_eq!(source.decode(i, &bytes, &small, &mut out).unwrap_err().kind(), Kind::TooLarge);
            assert!(source.decode(i, &bytes[1..], &Limits::default(), &mut out).is_err());
        }
        assert!(source.locate(frames.len()).is_none());
        let beyond = source.decode(frames.len(), &bytes, &Limits::default(), &mut out).unwrap_err();
        assert_eq!(beyond.kind(), Kind::Missing);
    }
}

#[test]
fn a_plain_shard_is_read_where_it_lies_and_other_bytes_are_refused() {
    let stored = pictures();
    let whole = read("pictures.tar", &stored, MAX).unwrap();
    let spans: Vec<Span> = (0..whole.chunks.len()).map(|i| whole.chunks.locate(i).unwrap().0).collect();
    let scattered = whole.plain.scattered(&mut spans.iter().copied()).unwrap();
    assert!(scattered.takes() > 0 && scattered.takes() < 1024, "places, and no pictures");
    let (mut expected, mut found) = (Vec::new(), vec![0xEE; 1 << 16]);
    for span in &spans {
        whole.plain.read(*span, u64::MAX, &mut expected).unwrap();
        assert!(scattered.read(&Bytes(&stored), *span, &mut found).unwrap() && found == expected);
    }
    let part = Span { len: spans[0].len / 3, ..spans[0] };
    assert!(!scattered.read(&Bytes(&stored), part, &mut found).unwrap(), "no chunk");
    let last = &stored[..stored.len() - 4096];
    assert!(!scattered.read(&Bytes(last), spans[1], &mut found).unwrap(), "cut");
    let mut flips = 0;
    let mut flipped = stored.clone();
    for at in (0..stored.len()).step_by(97) {
        flipped[at] ^= 1;
        let kept = |span: &Span, found: &mut Vec<u8>| scattered.read(&Bytes(&flipped), *span, found).unwrap();
        flips += spans.iter().filter(|span| !kept(span, &mut found)).count();
        flipped[at] ^= 1;
    }
    assert!(flips > 4 * 4096 / 97 - 4, "each flip of a picture is seen: {flips}");
    for (name, stored, _) in forms() {
        let whole = read(name, &stored, MAX).unwrap();
        assert!(whole.plain.scattered(&mut std::iter::empty()).is_none(), "{name} is packed");
    }
}

#[test]
fn memory_of_other_files_changes_no_byte() {
    let mut rooms = Rooms::default();
    let again = |name: &str, stored: &[u8], rooms: &mut Rooms| {
        let format = detect_alone(name, &Bytes(stored)).unwrap().unwrap();
        read_whole(format, name, &Bytes(stored), MAX, rooms).unwrap().0
    };
    for (name, stored, _) in forms().into_iter().chain(forms().into_iter().rev()) {
        let (whole, fresh) = (again(name, &stored, &mut rooms), read(name, &stored, MAX).unwrap());
        assert!(chunks(&whole).unwrap() == chunks(&fresh).unwrap(), "{name}");
        assert!(whole.plain.digest() == fresh.plain.digest() && whole.plain.takes() >= whole.plain.len(), "{name}");
        let mut room = whole.plain.into_room();
        room.fill(0xEE);
        rooms.give(room);
    }
}

#[test]
fn the_bound_is_of_stored_and_of_plain_bytes() {
    for (name, stored, _) in forms() {
        let plain = read(name, &stored, MAX).unwrap().plain.len();
        for max in [0, stored.len() - 1, plain.max(stored.len()) / 2] {
            if max < plain.max(stored.len()) {
                assert_eq!(read(name, &stored, max).unwrap_err().kind(), Kind::TooLarge, "{name} within {max}");
            }
        }
    }
}

#[test]
fn every_cut_is_refused_and_every_flip_gives_an_error_or_whole_records() {
    for (name, stored, frames) in forms() {
        for cut in 0..stored.len() {
            assert!(read(name, &stored[..cut], MAX).and_then(|whole| chunks(&whole)).is_err(), "{name} cut at {cut}");
        }
        let mut flipped = stored.clone();
        for at in 0..stored.len() {
            flipped[at] ^= 1 << (at % 8);
            if let Ok(found) = read(name, &flipped, MAX).and_then(|whole| chunks(&whole)) {
                assert!(found.len() <= frames.len(), "{name}: bit {} of byte {at}", at % 8);
            }
            flipped[at] = stored[at];
        }
    }
}

#[test]
fn what_is_not_solid_is_not_read_whole() {
    let refused = read_whole(Format::ChessGame, "training.1.gz", &Bytes(b""), MAX, &mut Rooms::default()).unwrap_err();
    assert_eq!(refused.kind(), Kind::Unsupported);
}
