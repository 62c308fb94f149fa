//! Body of the `syzygy` fuzz target: arbitrary bytes as a table among sound ones; panics when a promise breaks.
//! Shared, as source, with the replay of its corpus on stable Rust.

use std::collections::BTreeSet;

use gristmill_format::chess::syzygy::{Material, Table, TableKind, Tables, Unprobed, Wdl};

/// The tables that an input may be: without pawns, with pawns of one side and of both, of like sides.
pub const MATERIALS: [&str; 6] = ["KQvK", "KPvK", "KRvKR", "KBNvK", "KPvKP", "KQPvK"];

/// The first byte chooses kind and material, the rest is the file: as it is, and with magic and size mended, so that
/// short inputs get past the first checks. A refusal says where; a table that is read answers or contradicts itself,
/// counts plies for the side that it says wins, and changes no answer of other tables.
pub fn syzygy(data: &[u8]) {
    let Some((choice, file)) = data.split_first() else { return };
    let kind = TableKind::ALL[usize::from(choice & 1)];
    let material = Material::parse(MATERIALS[usize::from(choice >> 1) % MATERIALS.len()]).expect("a material");
    let mut mended = file.to_vec();
    mended.resize(file.len().saturating_sub(16).next_multiple_of(64) + 16, 0);
    mended[..4].copy_from_slice(&magic(kind));
    for bytes in [file.to_vec(), mended] {
        match Table::read(kind, material, bytes) {
            Ok(table) => probe(table),
            Err(e) => assert!(e.place().offset.is_some(), "{e}"),
        }
    }
}

fn probe(table: Table<Vec<u8>>) {
    let (material, kind) = (table.material(), table.kind());
    let mut below = BTreeSet::new();
    closure(material, &mut below);
    let sound = |kind: TableKind| move |m: &Material| Table::read(kind, *m, constant(*m, kind, 2)).expect("a table");
    let own = Table::read(TableKind::Wdl, material, constant(material, TableKind::Wdl, 4)).expect("a table");
    let others = TableKind::ALL.into_iter().flat_map(|kind| below.iter().map(sound(kind)));
    // Of two of one kind the first counts.
    let tables = Tables::new([table, own].into_iter().chain(others));
    let coverage = tables.coverage();
    let count = below.len() + 1;
    assert_eq!(coverage.tables, [count, below.len() + usize::from(kind == TableKind::Dtz)]);
    assert_eq!(coverage.most_men, material.men());
    for fen in positions(material) {
        let Ok(board) = fen.parse() else { continue };
        let wdl = tables.wdl(&board);
        assert!(matches!(wdl, Ok(_) | Err(Unprobed::Corrupt(_) | Unprobed::Illegal)), "{fen}: {wdl:?}");
        let dtz = tables.dtz(&board);
        match (kind, &wdl, &dtz) {
            (TableKind::Dtz, Ok(wdl), Ok(dtz)) => assert_eq!(dtz.signum(), wdl.number().signum(), "{fen}: {dtz} plies"),
            (TableKind::Wdl, ..) => {}
            (_, _, Err(Unprobed::Corrupt(_) | Unprobed::Illegal)) => {}
            other => panic!("{fen}: {other:?}"),
        }
    }
    for other in below {
        for fen in positions(other) {
            let Ok(board) = fen.parse() else { continue };
            let wdl = tables.wdl(&board);
            assert!(matches!(wdl, Ok(Wdl::Draw) | Err(Unprobed::Illegal)), "{fen} needs no {material}: {wdl:?}");
        }
    }
}

/// What captures and promotions can make of a material, two bare kings left out.
pub fn closure(material: Material, below: &mut BTreeSet<Material>) {
    for next in material.after_one_move().into_iter().map(Material::ordered) {
        if next != Material::BARE && below.insert(next) {
            closure(next, below);
        }
    }
}

/// Some placements of the men, in either colour and with either side to move; some of them no game can reach.
fn positions(material: Material) -> Vec<String> {
    [material, material.swapped()].into_iter().flat_map(|material| placements(&material.to_string())).collect()
}

fn placements(name: &str) -> Vec<String> {
    let (white, black) = name.split_once('v').expect("two sides");
    let men: Vec<char> = white.chars().chain(black.chars().map(|man| man.to_ascii_lowercase())).collect();
    let place = |n: usize| {
        let mut board = [None; 64];
        for (i, man) in men.iter().enumerate() {
            // Any squares, far from each other.
            let square = (n * 11 + i * 23 + n * i * 5) % 64;
            board[if *man == 'P' || *man == 'p' { 8 + square % 48 } else { square }] = Some(*man);
        }
        let rank = |squares: &[Option<char>]| squares.iter().map(|man| man.unwrap_or('1')).collect::<String>();
        board.chunks(8).map(rank).collect::<Vec<_>>().join("/")
    };
    (0..16).flat_map(|n| ["w", "b"].map(|side| format!("{} {side} - - 0 1", place(n)))).collect()
}

fn magic(kind: TableKind) -> [u8; 4] {
    match kind {
        TableKind::Wdl => [0x71, 0xe8, 0x23, 0x5d],
        TableKind::Dtz => [0xd7, 0x66, 0x0c, 0xa5],
    }
}

/// A table all of whose positions have one value.
pub fn constant(material: Material, kind: TableKind, value: u8) -> Vec<u8> {
    written(material, kind, &[0x80, value], &[])
}

/// A table of three men whose arrays are compressed: one symbol stands for 256 times `value`, another once for `other`,
/// and all codes are of one bit. The codes are `bits`, from the highest on.
pub fn compressed(material: Material, kind: TableKind, value: u8, other: u8, bits: &[u8; 32]) -> Vec<u8> {
    // One block of 32 bytes, a sparse index of one entry, ten symbols.
    let mut header = vec![0, 5, 16, 0, 1, 0, 0, 0, 1, 1, 8, 0, 10, 0];
    let mut symbol = |left: u16, right: u16| {
        header.extend([left as u8, (left >> 8) as u8 | (right << 4) as u8, (right >> 4) as u8]);
    };
    symbol(value.into(), 0xfff);
    (0..8).for_each(|half| symbol(half, half));
    symbol(other.into(), 0xfff);
    written(material, kind, &header, bits)
}

/// Head, men in order, the header of each array, and for compressed ones index, count and block.
fn written(material: Material, kind: TableKind, header: &[u8], block: &[u8]) -> Vec<u8> {
    let name = material.to_string();
    let (white, black) = name.split_once('v').expect("two sides");
    let man = |letter: char, black: u8| 1 + "PNBRQK".find(letter).expect("a man") as u8 + black;
    let mut men: Vec<u8> = white.chars().map(|c| man(c, 0)).chain(black.chars().map(|c| man(c, 8))).collect();
    // Pawns lead, else any three men of which there is one.
    men.sort_by_key(|man| (man & 7 != 1, man & 7 != 6));
    let pawns = material.pawns();
    let two_sided = !material.is_symmetric() && kind == TableKind::Wdl;
    let (files, sides) = (if pawns == [0, 0] { 1 } else { 4 }, if two_sided { 2 } else { 1 });
    let mut bytes = magic(kind).to_vec();
    bytes.push(u8::from(two_sided) | if files > 1 { 2 } else { 0 });
    for _ in 0..files {
        bytes.push(0);
        if pawns[0] > 0 && pawns[1] > 0 {
            bytes.push(0x11);
        }
        bytes.extend(men.iter().map(|man| man | man << 4));
    }
    bytes.resize(bytes.len().next_multiple_of(2), 0);
    (0..files * sides).for_each(|_| bytes.extend(header));
    if !block.is_empty() {
        // The middle of the first span, and one block that holds as many values as a count can say.
        (0..files * sides).for_each(|_| bytes.extend([0, 0, 0, 0, 0, 0x80]));
        (0..files * sides).for_each(|_| bytes.extend([0xff, 0xff]));
        for _ in 0..files * sides {
            bytes.resize(bytes.len().next_multiple_of(64), 0);
            bytes.extend(block);
        }
    }
    bytes.resize(bytes.len().next_multiple_of(64) + 16, 0);
    bytes
}
