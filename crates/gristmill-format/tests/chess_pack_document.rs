//! The page on packed chess games against the bytes of a game that was packed just now, and the codec of its files.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use gristmill_format::chess::pack::{CODEC, PackedGame, Packer};
use gristmill_format::chess::record::{InputFormat, Version};
use gristmill_format::chess::{FrameMut, layout_v7};

const PAGE: &str = include_str!("../../../docs/format/chess-pack.md");
const FILES: &str = include_str!("../../../docs/format/chunk-file.md");

/// Bytes that the page gives to the rows of its first table which come before the first board.
fn head() -> usize {
    let rows = PAGE.split("\n## A game\n").nth(1).unwrap().lines().filter(|line| line.starts_with("| "));
    let cells = rows.map(|line| line.split('|').nth(1).unwrap().trim().to_owned());
    let sizes = cells.skip_while(|cell| cell != "1").take_while(|cell| !cell.contains("or"));
    sizes.flat_map(|cell| cell.split(", ").map(|n| n.parse::<usize>().unwrap()).collect::<Vec<_>>()).sum()
}

fn records(version: Version, frames: usize) -> Vec<u8> {
    let mut bytes = vec![0; frames * version.bytes()];
    for record in bytes.chunks_exact_mut(version.bytes()) {
        FrameMut::blank(record, InputFormat::Classical).unwrap();
        record[..4].copy_from_slice(&version.number().to_le_bytes());
    }
    bytes
}

#[test]
fn the_table_of_a_game_is_what_is_written() {
    for version in [Version::V6, Version::V7] {
        let mut packed = Vec::new();
        Packer::default().pack(version, &records(version, 3), &mut packed).unwrap();
        assert_eq!((packed[0], u32::from(packed[1])), (1, version.number()), "form and version come first");
        assert_eq!(u32::from_le_bytes(packed[4..8].try_into().unwrap()), 3, "frames");
        assert_eq!(head(), 46, "what is said once");
        assert!(PackedGame::new(&packed[..head()]).is_err() && PackedGame::new(&packed).is_ok());
    }
    assert!(PAGE.contains("| 1 | form, 1 |") && PAGE.contains("at most 7"));
}

#[test]
fn values_and_codec_are_those_of_the_code() {
    let listed = PAGE.split("Values in order of their bits: ").nth(1).unwrap().split(". Those").next().unwrap();
    let names: Vec<String> = listed.split(',').map(|name| name.trim().trim_matches('`').to_owned()).collect();
    assert_eq!(names.len(), 18);
    for name in &names {
        assert!(layout_v7().field(name).is_some(), "{name}");
    }
    assert_eq!(CODEC, *b"chess\0\0\x01");
    assert!(FILES.contains("| `chess`, 0, 0, 1 |") && PAGE.contains("codec `chess`, 0, 0, 1"));
}
