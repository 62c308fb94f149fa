//! A.6: the record R1 in a stored gzip in a ustar tar, byte for byte, and what must be survived.

use gristmill_format::chess::source::{GameFile, GameTar};
use gristmill_format::container::tar::TarWriter;
use gristmill_format::source::{Chunk, ChunkSource, Limits, Span, read_span};
use gristmill_format::{Error, Kind};

use super::sha256;

const GZIP_SHA: &str = "cf1f81ab17b62772fc21698cc5d02ca83a3083be77041a93c5814c63bc26e5fa";
const TAR_SHA: &str = "c88a9564ddf935f6a5e4c005a44340b657e18f961b428b23290b4dccc0dfc295";

/// The record R1 of A.3.
fn r1() -> Vec<u8> {
    let mut record = Vec::new();
    record.extend(6u32.to_le_bytes());
    record.extend(1u32.to_le_bytes());
    let mut probabilities = [-1.0f32; 1858];
    for k in 0..20u8 {
        probabilities[37 * usize::from(k)] = f32::from(k + 1) / 256.0;
    }
    probabilities[740] = 46.0 / 256.0;
    record.extend(probabilities.iter().flat_map(|p| p.to_le_bytes()));
    for i in 0..104u64 {
        let mut z = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        record.extend((z ^ (z >> 31)).to_le_bytes());
    }
    record.extend([1, 0, 1, 1, 1, 37, 0x28, 0]);
    for value in [0.25f32, -0.5, 0.125, 0.375, 40.5, 38.25, 61.0, 1.0, 0.0, -0.625, 0.25, 37.75] {
        record.extend(value.to_le_bytes());
    }
    record.extend([0x7fc0_0000u32; 3].iter().flat_map(|nan| nan.to_le_bytes()));
    record.extend(800u32.to_le_bytes());
    record.extend(148u16.to_le_bytes());
    record.extend(703u16.to_le_bytes());
    record.extend(0.03125f32.to_le_bytes());
    record.extend(0f32.to_le_bytes());
    record
}

/// R1 (or other bytes below 64 KiB) in gzip with one stored block; the trailer must be right for R1 only.
fn stored_gzip(record: &[u8], trailer: &[u8]) -> Vec<u8> {
    let len = u16::try_from(record.len()).unwrap();
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff, 1];
    [&head[..], &len.to_le_bytes(), &(!len).to_le_bytes(), record, trailer].concat()
}

fn gzip() -> Vec<u8> {
    stored_gzip(&r1(), &[0x3d, 0x08, 0xdf, 0x1d, 0xa4, 0x20, 0, 0])
}

fn tar_of(games: &[&[u8]]) -> Vec<u8> {
    let mut tar = TarWriter::new(Vec::new());
    tar.directory("d").unwrap();
    tar.append("d/LICENSE", &[b'x'; 600]).unwrap();
    for (i, game) in games.iter().enumerate() {
        tar.append(&format!("d/training.{}.gz", i + 1), game).unwrap();
    }
    tar.finish().unwrap()
}

fn decode(source: &impl ChunkSource, i: usize, file: &[u8]) -> Result<Chunk, Error> {
    let mut bytes = Vec::new();
    let mut chunk = Chunk::default();
    read_span(file, source.locate(i).unwrap().0, 1 << 20, &mut bytes)?;
    source.decode(i, &bytes, &Limits::default(), &mut chunk)?;
    Ok(chunk)
}

#[test]
fn the_bytes_are_as_published() {
    assert_eq!(sha256(&r1()), "7222c7d56bf642ce6366444f79b3bb5c75a60e76993e13a3b2c62f5d3043fc6a");
    assert_eq!((gzip().len(), sha256(&gzip())), (8379, GZIP_SHA.to_owned()));
    let tar = tar_of(&[&gzip(), &gzip()]);
    assert_eq!((tar.len(), sha256(&tar)), (21_504, TAR_SHA.to_owned()));
}

#[test]
fn the_index_has_two_chunks_and_each_is_r1() {
    let tar = tar_of(&[&gzip(), &gzip()]);
    let source = GameTar::open("a.tar", &tar[..]).unwrap();
    let places: Vec<_> = (0..source.len()).map(|i| source.locate(i).unwrap()).collect();
    assert_eq!(
        places,
        [
            (Span { offset: 2560, len: 8379 }, Some("d/training.1.gz")),
            (Span { offset: 11_776, len: 8379 }, Some("d/training.2.gz")),
        ]
    );
    assert_eq!((source.skipped(), source.faults()), (1, &[][..]));
    for i in 0..2 {
        let chunk = decode(&source, i, &tar).unwrap();
        assert_eq!((chunk.frames, chunk.records()), (1, &r1()[..]));
    }
}

#[test]
fn a_size_field_that_ends_in_a_space_gives_the_same_index() {
    let mut tar = tar_of(&[&gzip(), &gzip()]);
    let plain = GameTar::open("a.tar", &tar[..]).unwrap();
    for header in [2048, 11_264] {
        assert_eq!(&tar[header + 124..header + 136], b"00000020273\0");
        tar[header + 135] = b' ';
        mend_checksum(&mut tar[header..header + 512]);
    }
    let spaced = GameTar::open("a.tar", &tar[..]).unwrap();
    assert_eq!(spaced.index(), plain.index());
}

fn mend_checksum(header: &mut [u8]) {
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|&b| u32::from(b)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

#[test]
fn a_tar_cut_at_12000_keeps_its_first_game() {
    let tar = tar_of(&[&gzip(), &gzip()]);
    let cut = &tar[..12_000];
    let source = GameTar::open("a.tar", cut).unwrap();
    assert_eq!(source.len(), 2);
    assert_eq!(decode(&source, 0, cut).unwrap().frames, 1);
    let e = decode(&source, 1, cut).unwrap_err();
    assert_eq!((e.kind(), e.place().offset), (Kind::Truncated, Some(11_776)));
    assert_eq!(source.faults().len(), 1);
    assert_eq!(source.faults()[0].kind(), Kind::Truncated);
}

#[test]
fn every_flipped_crc_byte_makes_the_chunk_bad_and_no_more() {
    for byte in 0..8 {
        let mut bad = gzip();
        let at = bad.len() - 8 + byte;
        bad[at] ^= 1;
        let tar = tar_of(&[&bad, &gzip()]);
        let source = GameTar::open("a.tar", &tar[..]).unwrap();
        let e = decode(&source, 0, &tar).unwrap_err();
        assert_eq!(e.kind(), Kind::Corrupt, "{e}");
        assert_eq!((e.place().member.as_deref(), e.place().chunk), (Some("d/training.1.gz"), Some(0)));
        assert!(e.place().offset.is_some());
        assert_eq!(decode(&source, 1, &tar).unwrap().frames, 1);
    }
}

#[test]
fn a_doubled_gzip_is_two_frames() {
    let doubled = [gzip(), gzip()].concat();
    let tar = tar_of(&[&doubled]);
    let source = GameTar::open("a.tar", &tar[..]).unwrap();
    assert_eq!(decode(&source, 0, &tar).unwrap().frames, 2);
    assert_eq!(decode(&GameFile::new("a.gz"), 0, &doubled).unwrap().frames, 2);
}

#[test]
fn one_byte_too_many_is_a_wrong_size() {
    let longer = [r1(), vec![0]].concat();
    let gz = gristmill_format::container::gzip::compress(6, &longer).unwrap();
    let e = decode(&GameFile::new("a.gz"), 0, &gz).unwrap_err();
    assert_eq!((e.kind(), e.place().offset), (Kind::WrongSize, Some(8356)));
}

#[test]
fn padding_after_a_game_is_ignored_and_reported() {
    let padded = [gzip(), vec![0; 512]].concat();
    let chunk = decode(&GameFile::new("a.gz"), 0, &padded).unwrap();
    assert_eq!((chunk.frames, chunk.trailing), (1, 512));
    let plain = decode(&GameFile::new("a.gz"), 0, &r1()).unwrap();
    assert_eq!((plain.frames, plain.trailing), (1, 0));
}
