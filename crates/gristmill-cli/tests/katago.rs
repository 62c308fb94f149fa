//! Shards of KataGo through the commands: inspected, verified, counted, packed, planned, fed, refused by member and row.

use std::fs;

use gristmill_format::container::npz_write::NpzWriter;
use gristmill_format::katago::form::{MEMBERS, PLANES, POLICY};
use gristmill_format::layout::{DType, Order};

use crate::command::{run, text};

/// A shard of rows: a full board, an own stone at the first point and another at the second, all visits to D4 and the pass.
fn shard(rows: u64) -> Vec<u8> {
    let mut npz = NpzWriter::new(Vec::new(), 6);
    for (name, scalar, shape) in MEMBERS {
        let mut row = vec![0u8; scalar.size() * shape.iter().product::<usize>()];
        match name {
            PLANES => {
                row[..45].fill(0xff);
                (row[45], row[46], row[92]) = (0x80, 0x80, 0x40);
            }
            POLICY => (row[2 * (15 * 19 + 3)], row[2 * 361]) = (3, 1),
            _ => {}
        }
        let dims: Vec<u64> = std::iter::once(rows).chain(shape.iter().map(|dim| *dim as u64)).collect();
        let all = row.repeat(rows as usize);
        npz.array(name, &DType::Scalar(scalar, Order::Little), &dims, &mut |to| Ok(to.write_all(&all)?)).unwrap();
    }
    npz.finish().unwrap()
}

#[test]
fn shards_are_inspected_verified_counted_packed_planned_and_fed() {
    let folder = tempfile::tempdir().unwrap();
    let (input, pack) = (folder.path().join("in"), folder.path().join("pack"));
    fs::create_dir(&input).unwrap();
    fs::write(input.join("data0.npz"), shard(300)).unwrap();
    fs::write(input.join("data1.npz"), shard(7)).unwrap();
    let path = input.join("data0.npz");
    let seen = run(&["inspect", text(&path), "--chunk", "1", "--frame", "2", "--json"]).ok().json();
    assert_eq!(
        (seen["format"].as_str(), seen["chunks"].as_u64(), seen["frames"].as_u64()),
        (Some("katago.npz"), Some(2), Some(300))
    );
    assert!(seen["frame"]["picture"][0].as_str().unwrap().starts_with("X O . . "), "{}", seen["frame"]);
    assert_eq!(seen["frame"]["facts"]["moves"], "D4 75.0 %, pass 25.0 %");
    assert_eq!(seen["frame"]["facts"]["board"], "361 points in a frame of 19 x 19");
    run(&["pack", "--input", text(&input), "--output", text(&pack)]).ok();
    for place in [&input, &pack] {
        let verified = run(&["verify", text(place), "--json"]).ok().json();
        assert_eq!((verified["ok"].as_bool(), verified["checked"].as_u64()), (Some(true), Some(307)));
        let counted = run(&["stats", text(place), "--json"]).ok().json();
        assert_eq!(counted["kinds"]["katago"]["numbers"]["stones on the board"]["2"].as_u64(), Some(307));
    }
    run(&["plan", text(&pack), "--tensors", "planes,policy,symmetry"]).ok();
    let words =
        ["--epochs", "1", "--batch-size", "100", "--seed", "3", "--tensors", "planes,policy,symmetry", "--json"];
    let fed = run(&[&["feed", text(&pack)], &words[..]].concat()).ok().json();
    assert_eq!(fed["frames"].as_u64(), Some(307));
    let loose = run(&["feed", text(&input), "--epochs", "1"]);
    assert!(loose.code != 0 && loose.err.contains("max_solid_bytes"), "{loose:?}");
}

#[test]
fn a_damaged_shard_is_named_with_its_member() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data0.npz");
    let mut bytes = shard(300);
    let at = bytes.windows(4).rposition(|window| window == b"PK\x03\x04").unwrap() + 300;
    bytes[at] ^= 0xff;
    fs::write(&path, &bytes).unwrap();
    let verified = run(&["verify", text(&path), "--json"]).json();
    let fault = verified["faults"].to_string();
    assert!(verified["ok"] == false && fault.contains("valueTargetsNCHW.npy"), "{fault}");
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    for words in [&["inspect"][..], &["verify"], &["pack", "--output", text(&folder.path().join("pack")), "--input"]] {
        let ran = run(&[words, &[text(&path)]].concat());
        let said = ran.out + &ran.err;
        assert!(ran.code != 0 && said.contains("data0.npz"), "{said}");
    }
}
