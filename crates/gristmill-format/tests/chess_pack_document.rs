//! The page on packed chess games against the bytes of a game that was packed just now, and the codec of its files.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use gristmill_format::chess::pack::{CODEC, PackedGame, Packer, Position};
use gristmill_format::chess::record::{InputFormat, Version, at};
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

/// Stored words of the usual first board, and of that after e2e4, as the side to move sees them.
const START: [u64; 12] =
    [0xff00, 0x42, 0x24, 0x81, 0x10, 0x08, 0xff << 48, 0x42 << 56, 0x24 << 56, 0x81 << 56, 0x10 << 56, 0x08 << 56];

/// The two records that the page describes.
fn described() -> Vec<u8> {
    let mut after = START;
    after[0] = after[0] & !(1 << 11) | 1 << 27;
    let turned: Vec<u64> = (0..12).map(|i| after[(i + 6) % 12].swap_bytes()).collect();
    let boards: [Vec<&[u64]>; 2] = [vec![&START], vec![&turned, &START]];
    let mut records = vec![0; 2 * Version::V6.bytes()];
    for (k, record) in records.chunks_exact_mut(Version::V6.bytes()).enumerate() {
        let mut frame = FrameMut::blank(record, InputFormat::Classical).unwrap();
        frame.set_side_to_move_or_enpassant(k as u8).set_rule50_count(0);
        frame.set_plies_left(2.0 - k as f32).set_result_q(if k == 0 { 1.0 } else { -1.0 }).set_result_d(0.0);
        frame.set_orig_q(f32::from_bits(0x7fc0_0000)).set_orig_d(f32::from_bits(0x7fc0_0000));
        frame.set_orig_m(f32::from_bits(0x7fc0_0000)).set_best_q(0.25).set_root_q(0.25).set_played_q(0.25);
        frame.set_visits(if k == 0 { 5 } else { 2 }).set_played_idx(322).set_best_idx(322);
        record[at::CASTLING_US_OOO..at::SIDE_TO_MOVE_OR_ENPASSANT].fill(1);
        let policy: &[(usize, f32)] = if k == 0 { &[(293, 0.25), (322, 0.75)] } else { &[(322, 1.0)] };
        for (i, bytes) in record[at::PROBABILITIES..at::PLANES].chunks_exact_mut(4).enumerate() {
            let value = policy.iter().find(|(index, _)| *index == i).map_or(-1.0, |(_, value)| *value);
            bytes.copy_from_slice(&value.to_le_bytes());
        }
        for (h, board) in boards[k].iter().enumerate() {
            for (plane, word) in board.iter().enumerate() {
                let from = at::PLANES + 8 * (13 * h + plane);
                record[from..from + 8].copy_from_slice(&word.to_le_bytes());
            }
        }
    }
    records
}

#[test]
fn the_game_of_the_page_is_packed_to_its_bytes() {
    let mut packed = Vec::new();
    Packer::default().pack(Version::V6, &described(), &mut packed).unwrap();
    let text: String = packed.iter().map(|byte| format!("{byte:02x}")).collect();
    let section = PAGE.split("## One game, byte by byte").nth(1).unwrap().split("## What is refused").next().unwrap();
    assert!(
        section.replace('\n', "").contains(&text) && section.contains(&format!("{} bytes", packed.len())),
        "{text}"
    );
    let mut again = Vec::new();
    PackedGame::new(&packed).unwrap().records(1 << 20, &mut Position::default(), &mut again).unwrap();
    assert!(again == described());
}
