//! Records of any game: golden bytes, round trips, and what is refused with its place.
#![allow(missing_docs, clippy::unwrap_used)]

use gristmill_format::Kind;
use gristmill_format::container::chunks::{ChunkFileWriter, MAGIC};
use gristmill_format::container::described::{FIXED, FORM};
use gristmill_format::records::pack::{CODEC, PackedGame, pack};
use gristmill_format::records::{RecordFile, Schema, log};
use gristmill_format::source::{Chunk, ChunkSource, Limits, read_span};

/// A byte and a number, with a fact.
const SCHEMA: &str = r#"{"layout":"[('a', '|u1'), ('b', '<i2')]","identity":["a"],"columns":[["last_b","last","b"]],"facts":[["who","text"]]}"#;

pub(crate) fn schema() -> Schema {
    Schema::parse(SCHEMA).unwrap()
}

fn games() -> Vec<Vec<u8>> {
    vec![vec![1, 2, 3, 4, 5, 6], vec![7, 8, 9], vec![1, 0xff, 0xff, 3, 0, 0, 9, 9, 9]]
}

/// A file, and the records of its games.
pub(crate) fn file() -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut file = log::begin(&schema());
    for (i, records) in games().iter().enumerate() {
        let facts = if i == 1 { String::new() } else { format!("[\"player {i}\"]") };
        file.extend(log::entry(&schema(), records, &facts).unwrap());
    }
    (file, games())
}

/// The games of a file, decoded.
fn decoded(file: &[u8]) -> (Vec<Chunk>, Vec<String>) {
    let source = RecordFile::open("x.records", file).unwrap();
    let chunk = |i: usize| {
        let (mut stored, mut chunk) = (Vec::new(), Chunk::default());
        read_span(file, source.locate(i).unwrap().0, 1 << 20, &mut stored).unwrap();
        source.decode(i, &stored, &Limits::default(), &mut chunk).map(|()| chunk)
    };
    let (good, bad): (Vec<_>, Vec<_>) = (0..source.len()).map(chunk).partition(Result::is_ok);
    let faults = source.faults().iter().map(ToString::to_string);
    let bad = bad.into_iter().map(|e| e.unwrap_err().to_string());
    (good.into_iter().map(Result::unwrap).collect(), bad.chain(faults).collect())
}

/// The same games in a chunk file.
pub(crate) fn chunk_file() -> (Vec<u8>, Vec<Vec<u8>>) {
    let (mut out, mut index) = (MAGIC.to_vec(), ChunkFileWriter::new(CODEC));
    for (i, chunk) in decoded(&file().0).0.iter().enumerate() {
        let mut packed = Vec::new();
        pack(chunk, &mut packed).unwrap();
        index.add(&format!("games-000000.records/{i}"), chunk.frames as u32, &packed).unwrap();
        out.extend(packed);
    }
    out.extend(index.finish());
    (out, games())
}

#[test]
fn golden_bytes() {
    let (file, _) = file();
    let schema = schema();
    assert_eq!(schema.text(), SCHEMA);
    let expected = [b"GMRECS\0\x01", &[SCHEMA.len() as u8, 0, 0, 0, 0, 0, 0, 0][..]].concat();
    assert_eq!(file[..16], expected);
    let first = &file[log::FIXED + SCHEMA.len()..];
    assert_eq!(first[..8], [2, 0, 0, 0, 12, 0, 0, 0]);
    assert_eq!(&first[16..34], b"[\"player 0\"]\x01\x02\x03\x04\x05\x06");
    let mut packed = Vec::new();
    pack(&decoded(&file).0[0], &mut packed).unwrap();
    assert_eq!(packed[..16], [FORM, 0, 0, 0, 2, 0, 0, 0, SCHEMA.len() as u8, 0, 0, 0, 12, 0, 0, 0]);
    let game = PackedGame::new(&packed).unwrap();
    assert_eq!(
        (game.frames(), game.schema(), game.facts(), game.records()),
        (2, SCHEMA, "[\"player 0\"]", &games()[0][..])
    );
}

#[test]
fn the_page_has_every_number_and_name() {
    let page = include_str!("../../../docs/format/records.md");
    for part in ["| 8 | `GMRECS`, 0, 1 |", "codec `records`, 1.", "| 1 | form 1 |", "| 4 | u32 number of records |"] {
        assert!(page.contains(part), "{part}");
    }
    for name in ["`layout`", "`identity`", "`columns`", "`facts`", "`first`", "`mean`", "`real`", "`draw`"] {
        assert!(page.contains(name), "{name}");
    }
    assert_eq!((log::FIXED, log::ENTRY, FIXED, log::MAGIC, CODEC), (24, 16, 16, *b"GMRECS\0\x01", *b"records\x01"));
    assert_eq!((log::MOST_GAME, gristmill_format::records::schema::MOST_TEXT), (1 << 30, 1 << 20));
}

#[test]
fn a_cut_keeps_the_games_before_it_and_a_changed_byte_loses_one() {
    let (file, games) = file();
    let start = log::FIXED + SCHEMA.len();
    let mut ends = vec![start];
    let source = RecordFile::open("x.records", &file[..]).unwrap();
    ends.extend((0..3).map(|i| source.locate(i).map(|(span, _)| (span.offset + span.len) as usize).unwrap()));
    for cut in 0..file.len() {
        if cut < start {
            let e = RecordFile::open("x.records", &file[..cut]).unwrap_err();
            assert!(matches!(e.kind(), Kind::Truncated | Kind::UnknownFormat), "{cut}: {e}");
            continue;
        }
        let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
        let (found, faults) = decoded(&file[..cut]);
        assert_eq!(found.iter().map(|chunk| chunk.records().to_vec()).collect::<Vec<_>>(), games[..whole], "{cut}");
        assert_eq!(faults.len(), usize::from(!ends.contains(&cut)), "{cut}: {faults:?}");
    }
    for at in 0..file.len() {
        let mut damaged = file.clone();
        damaged[at] ^= 0x10;
        if at < start {
            // The four bytes that are 0 say nothing.
            assert_eq!(RecordFile::open("x.records", &damaged[..]).is_ok(), (12..16).contains(&at), "{at}");
            continue;
        }
        let (found, faults) = decoded(&damaged);
        assert!(found.len() < 3 && !faults.is_empty(), "{at}: {faults:?}");
        assert!(found.iter().all(|chunk| games.contains(&chunk.records().to_vec())), "{at}");
    }
}

#[test]
fn hostile_sizes_are_refused_before_anything_is_allocated() {
    let begun = log::begin(&schema());
    let with = |frames: u32, facts: u32| {
        let entry = [frames.to_le_bytes(), facts.to_le_bytes(), [0; 4], [0; 4]].concat();
        decoded(&[begun.clone(), entry, vec![0; 64]].concat()).1.join("; ")
    };
    assert!(with(0, 0).contains("says 0 rows"), "{}", with(0, 0));
    assert!(with(u32::MAX, 0).contains("cannot be"), "{}", with(u32::MAX, 0));
    assert!(with(1, u32::MAX).contains("cannot be"), "{}", with(1, u32::MAX));
    assert!(with(1000, 0).contains("game 0 is cut: 80 bytes of 3016"), "{}", with(1000, 0));
    let mut long = begun;
    long[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(RecordFile::open("x.records", &long[..]).unwrap_err().kind(), Kind::TooLarge);
    for bytes in [&[][..], &[2; 16], &[1; 16], &[FORM, 0, 0, 0, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]] {
        PackedGame::new(bytes).unwrap_err();
    }
}

/// Files of the corpus, by name.
pub(crate) fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let (whole, _) = file();
    let mut packed = Vec::new();
    pack(&decoded(&whole).0[0], &mut packed).unwrap();
    let cut = whole[..whole.len() - 5].to_vec();
    let zeros = [&whole[..whole.len() - 20], &[0; 64]].concat();
    vec![("whole", whole), ("cut", cut), ("schema", SCHEMA.into()), ("packed", packed), ("zeros", zeros)]
}
