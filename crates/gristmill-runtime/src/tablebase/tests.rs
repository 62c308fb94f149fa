//! Sets of tables that we write ourselves: complete, partial, damaged, misnamed.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

/// A table all of whose positions have one value: head, men in order, flags, padding and checksum.
fn constant(material: &str, kind: TableKind, value: u8) -> Vec<u8> {
    let magic = match kind {
        TableKind::Wdl => [0x71, 0xe8, 0x23, 0x5d],
        TableKind::Dtz => [0xd7, 0x66, 0x0c, 0xa5],
    };
    let (white, black) = material.split_once('v').unwrap();
    let man = |letter: char, black: bool| {
        let piece = 1 + "PNBRQK".find(letter).unwrap() as u8;
        piece + if black { 8 } else { 0 }
    };
    let mut men: Vec<u8> = white.chars().map(|c| man(c, false)).chain(black.chars().map(|c| man(c, true))).collect();
    let has_pawns = material.contains('P');
    // Leading pawns stand first.
    men.sort_by_key(|man| (man & 7 != 1, man & 7 != 6));
    let symmetric = white == black;
    let two_sided = !symmetric && kind == TableKind::Wdl;
    let mut bytes = magic.to_vec();
    bytes.push(u8::from(two_sided) | if has_pawns { 2 } else { 0 });
    let files = if has_pawns { 4 } else { 1 };
    for _ in 0..files {
        bytes.push(0);
        bytes.extend(men.iter().map(|man| man | man << 4));
    }
    if !bytes.len().is_multiple_of(2) {
        bytes.push(0);
    }
    for _ in 0..files * if two_sided { 2 } else { 1 } {
        bytes.extend([0x80, value]);
    }
    bytes.resize(bytes.len().next_multiple_of(64) + 16, 0);
    bytes
}

/// All tables of three men, which say that the side to move has `value`.
fn three_men(folder: &Path, value: u8) {
    for name in ["KQvK", "KRvK", "KBvK", "KNvK", "KPvK"] {
        for kind in TableKind::ALL {
            fs::write(folder.join(format!("{name}.{}", kind.extension())), constant(name, kind, value)).unwrap();
        }
    }
}

fn open(folder: &Path, allow_missing: bool) -> Result<Syzygy> {
    Syzygy::open(&[folder.to_owned()], allow_missing)
}

#[test]
fn a_complete_set_answers() {
    let folder = tempfile::tempdir().unwrap();
    three_men(folder.path(), 4);
    fs::write(folder.path().join("README.txt"), "tables").unwrap();
    let set = open(folder.path(), false).unwrap();
    assert_eq!(set.coverage().to_string(), "5 WDL and 5 DTZ tables of up to 3 men");
    assert!(set.coverage().is_complete() && set.faults().is_empty());
    let tables = set.tables();
    let probe = |fen: &str| tables.wdl(&fen.parse().unwrap()).map(|wdl| wdl.number()).map_err(|e| e.to_string());
    assert_eq!(probe("8/8/4k3/8/8/3Q4/8/K7 w - - 0 1"), Ok(2));
    assert_eq!(probe("8/8/4k3/8/8/3P4/8/K7 b - - 0 1"), Ok(2));
    assert_eq!(probe("8/8/4k3/8/8/8/8/K7 b - - 0 1"), Ok(0));
    assert!(probe("8/8/4k3/8/8/8/8/R3K3 w Q - 0 1").unwrap_err().contains("castle"));
    assert!(probe("8/8/4k3/8/8/3PP3/8/K7 b - - 0 1").unwrap_err().contains("4 men"));
}

#[test]
fn of_two_directories_the_first_counts() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    three_men(a.path(), 4);
    three_men(b.path(), 0);
    let list = format!("{}, {}", a.path().display(), b.path().display());
    let set = Syzygy::open(&Syzygy::directories(&list), false).unwrap();
    let value = set.tables().wdl(&"8/8/4k3/8/8/3Q4/8/K7 w - - 0 1".parse().unwrap());
    assert_eq!(value.unwrap().number(), 2);
    let joined = std::env::join_paths([a.path(), b.path()]).unwrap().into_string().unwrap();
    assert_eq!(Syzygy::directories(&joined), Syzygy::directories(&list));
    assert_eq!(Syzygy::directories(" "), Vec::<PathBuf>::new());
}

#[test]
fn partial_sets_are_refused_unless_allowed_and_then_know_their_holes() {
    let folder = tempfile::tempdir().unwrap();
    assert!(open(folder.path(), false).unwrap_err().to_string().contains("0 WDL"));
    assert_eq!(open(folder.path(), true).unwrap().coverage().most_men, 2);
    three_men(folder.path(), 4);
    fs::remove_file(folder.path().join("KRvK.rtbw")).unwrap();
    let e = open(folder.path(), false).unwrap_err().to_string();
    assert!(e.contains("KRvK.rtbw") && e.contains("allow missing"), "{e}");
    let set = open(folder.path(), true).unwrap();
    let tables = set.tables();
    let wdl = |fen: &str| tables.wdl(&fen.parse().unwrap()).map_err(|e| e.to_string());
    assert!(wdl("8/8/4k3/8/8/3Q4/8/K7 w - - 0 1").is_ok());
    assert!(wdl("8/8/4k3/8/8/3R4/8/K7 w - - 0 1").unwrap_err().contains("KRvK"));
    // A pawn may become a rook, whose table is not there; its own says all.
    assert!(wdl("8/8/4k3/8/8/3P4/8/K7 w - - 0 1").is_ok());
    fs::remove_file(folder.path().join("KPvK.rtbz")).unwrap();
    let set = open(folder.path(), true).unwrap();
    let pawn = "8/8/4k3/8/8/3P4/8/K7 w - - 0 1".parse().unwrap();
    assert!(set.tables().wdl(&pawn).is_ok());
    assert_eq!(set.tables().dtz(&pawn).unwrap_err().to_string(), "there is no table KPvK.rtbz");
    let none = folder.path().join("none");
    assert!(matches!(Syzygy::open(std::slice::from_ref(&none), false), Err(Error::Path { .. })));
    let without = Syzygy::open(&[none], true).unwrap();
    assert!(without.faults()[0].to_string().contains("none") && without.lacks().len() == 2, "{:?}", without.lacks());
}

#[test]
fn damaged_tables_are_refused_unless_allowed() {
    let folder = tempfile::tempdir().unwrap();
    three_men(folder.path(), 4);
    let path = folder.path().join("KQvK.rtbw");
    let good = fs::read(&path).unwrap();
    let cut = &good[..good.len() - 1];
    let other = [b"none", &good[4..]].concat();
    let misnamed = constant("KRvK", TableKind::Wdl, 4);
    for (bytes, kind) in [(&b""[..], "empty"), (cut, "wrong_size"), (&other, "unknown_format"), (&misnamed, "corrupt")]
    {
        fs::write(&path, bytes).unwrap();
        let e = open(folder.path(), false).unwrap_err().to_string();
        assert!(e.contains(kind) && e.contains("KQvK.rtbw"), "{e}");
        let set = open(folder.path(), true).unwrap();
        assert_eq!((set.faults().len(), set.coverage().tables), (1, [4, 5]), "{kind}");
    }
    fs::write(&path, &good).unwrap();
    fs::write(folder.path().join("queens.rtbw"), &good).unwrap();
    assert!(open(folder.path(), false).unwrap_err().to_string().contains("names no men"));
}

#[test]
fn sets_differ_by_what_is_there() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    three_men(a.path(), 4);
    three_men(b.path(), 4);
    assert_eq!(open(a.path(), false).unwrap().fingerprint(), open(b.path(), false).unwrap().fingerprint());
    fs::remove_file(b.path().join("KRvK.rtbz")).unwrap();
    assert_ne!(open(a.path(), false).unwrap().fingerprint(), open(b.path(), true).unwrap().fingerprint());
}
