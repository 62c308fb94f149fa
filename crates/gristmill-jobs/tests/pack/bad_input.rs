//! Every row of a table of odd input, and damage of files: a defined result, with its
//! place, that costs one game at most.

use std::path::Path;

use gristmill_format::container::gzip::compress;
use gristmill_format::g2048::StepRow;
use gristmill_jobs::pack::{OnError, PackOptions, Packed, pack};
use gristmill_jobs::verify::{VerifyOptions, verify};

use crate::drops::*;

/// Packs a drop of a good game before and after the one in question.
fn between(make: impl FnOnce(&Path)) -> (Packed, Vec<StepRow>) {
    let (drop, out) = (drop_of(2), tempfile::tempdir().unwrap());
    make(drop.path());
    let target = out.path().join("pack");
    let done = packed(&options(drop.path(), &target));
    let manifest = manifest(&target);
    assert_eq!((&manifest.skipped, &manifest.remarks), (&done.skipped, &done.remarks));
    let rows = rows(&target);
    assert_eq!((manifest.rows, manifest.runs), (rows.len() as u64, done.runs));
    (done, rows)
}

/// The row of a game of one line, with these differences.
fn taken(differences: &[(&str, &str)]) -> StepRow {
    let text = line(0, differences) + "\n";
    let (done, rows) = between(|root| game(root, "game000a", &text));
    assert_eq!((done.runs, done.skipped.len()), (3, 0), "{text}: {:?}", done.skipped);
    rows[5]
}

/// The place and cause with which a game is left out.
fn left_out(text: &str) -> (String, Option<u64>, String) {
    let (done, rows) = between(|root| game(root, "game000a", text));
    assert_eq!((done.runs, rows.len(), done.skipped.len()), (2, 11, 1), "{text}");
    let skipped = &done.skipped[0];
    assert_eq!(skipped.file, "game000a.jsonl.gz");
    (skipped.kind.clone(), skipped.line, skipped.detail.clone())
}

#[test]
fn odd_values_are_taken_as_documented() {
    for (json, value) in [("0.0", 0.0), ("0", 0.0), ("-0.0", -0.0), ("1e40", f32::INFINITY), ("1e-50", 0.0)] {
        let row = taken(&[("0.250000", json)]);
        assert_eq!((row.branch_evs[3].to_bits(), row.ev_legal), (f32::to_bits(value), 0b1110), "{json}");
    }
    let row = taken(&[("\"right\":0.250000,", "")]);
    assert_eq!((row.branch_evs[3].to_bits(), row.ev_legal), (0, 0b0110), "a missing key is like null");
    for rank in [16, 17] {
        let row = taken(&[("[1,2,3,0", &format!("[1,{rank},3,0"))]);
        assert_eq!((row.board, row.tile_65536_mask), (0x1f30_0000_0000_0000, 2), "{rank}");
    }
    assert_eq!(taken(&[(",\"valuation_type\":\"search\"", "")]).valuation_type, 0);
    assert_eq!(taken(&[("\"search\"", "null")]).valuation_type, 0);
    assert_eq!(taken(&[("\"seed\":7", "\"seed\":4294967299")]).seed, 3);
    assert_eq!(
        (taken(&[("\"seed\":7,", "")]).seed, taken(&[("\"max_rank\":3", "\"max_rank\":null")]).max_rank),
        (7, 0)
    );
    let doubled = taken(&[("\"right\":0.250000", "\"right\":0.250000,\"right\":0.75")]);
    assert_eq!(doubled.branch_evs[3], 0.75, "of a branch given twice the last counts");
    assert_eq!(taken(&[("\"branch_evs\"", "\"notes\":{\"a\":[1,null]},\"branch_evs\"")]).max_rank, 3);
}

#[test]
fn indices_go_on_where_lines_have_none() {
    let text = [(4, true), (0, false), (0, false), (u32::MAX, true), (0, false)].map(|(index, said)| match said {
        true => line(index, &[("0.5", "0.5")]).replace("0.54294967295", "0.5"),
        false => line(0, &[("\"step_index\":0,", "")]),
    });
    let (_, rows) = between(|root| game(root, "game000a", &(text.join("\n") + "\r\n\n  \n")));
    let indices: Vec<u32> = rows[5..10].iter().map(|row| row.step_index).collect();
    assert_eq!(indices, [4, 5, 6, u32::MAX, u32::MAX]);
}

#[test]
fn bad_lines_cost_their_game_and_say_where() {
    for (part, instead) in [
        ("\"left\"", "\"Left\""),
        ("\"left\"", "null"),
        ("\"move\":\"left\",", ""),
        ("0.250000", "NaN"),
        ("\"seed\"", "'seed'"),
        ("{\"seed\"", "\u{feff}{\"seed\""),
        ("[1,2,3,0", "[1,2,3"),
        ("[1,2,3,0", "[1,2,3,0,0"),
        ("[1,2,3,0", "[1,256,3,0"),
        ("[1,2,3,0", "[1,-2,3,0"),
        ("[1,2,3,0", "[1,2.0,3,0"),
        ("[1,2,3,0", "[1,32,3,0"),
        ("[1,2,3,0", "[31,31,31,31"),
        (",\"board\":[1,2,3,0,0,0,0,0,0,0,0,0,0,0,0,0]", ""),
        ("\"max_rank\":3", "\"max_rank\":3,\"max_rank\":3"),
        ("\"branch_evs\":{\"up\":null", "\"branch_evs\":null,\"x\":{\"up\":null"),
        ("\"search\"", "\"\""),
        ("}}", "}"),
        ("}}", "}} x"),
    ] {
        let text = format!("{}\n\n{}\n{}\n", line(0, &[]), line(1, &[(part, instead)]), line(2, &[]));
        let (_, at, detail) = left_out(&text);
        assert_eq!(at, Some(3), "{part} -> {instead}: {detail}");
    }
    let (kind, at, _) = left_out(&format!("{}\n\u{1}\n", line(0, &[])));
    assert_eq!((kind.as_str(), at), ("corrupt", Some(2)));
}

#[test]
fn odd_games_are_taken_and_remarked_on() {
    let remark = |make: &dyn Fn(&Path)| {
        let (done, _) = between(make);
        assert_eq!((done.runs, done.skipped.len()), (3, 0));
        done.remarks.into_iter().map(|remark| remark.detail).collect::<Vec<_>>().join("; ")
    };
    let two = compress(6, text(4).as_bytes()).unwrap();
    let short = remark(&|root| {
        put(root, "game000a.meta.json", sidecar(9).as_bytes());
        put(root, "game000a.jsonl.gz", &[&two[..], &compress(1, line(4, &[]).as_bytes()).unwrap()].concat());
    });
    assert_eq!(short, "5 rows, the sidecar says 9 moves", "both members of the gzip file are read");
    let empty = remark(&|root| {
        put(root, "game000a.meta.json", sidecar(0).as_bytes());
        put(root, "game000a.jsonl.gz", &compress(6, b"").unwrap());
    });
    assert!(empty.contains("no row has an EV"), "{empty}");
    let unknown = remark(&|root| game(root, "game000a", &line(0, &[("\"up\"", "\"sideways\"")])));
    assert!(unknown.contains("other names"), "{unknown}");
}

#[test]
fn a_drop_of_empty_games_is_a_pack_without_rows() {
    let (drop, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    put(drop.path(), "g.meta.json", sidecar(0).as_bytes());
    put(drop.path(), "g.jsonl.gz", &compress(6, b"").unwrap());
    let done = packed(&options(drop.path(), out.path()));
    assert_eq!((done.runs, done.rows, done.skipped.len()), (1, 0, 0));
    assert!(rows(out.path()).is_empty() && out.path().join("steps.npy").exists(), "no rows are left of an older pack");
    let found = verify(&VerifyOptions::new(vec![out.path().to_owned()]), &mut |_, _| {}).unwrap();
    assert!(found.ok && found.chunks == 1, "{found:?}");
}

#[test]
fn damaged_files_cost_their_game() {
    let stored = compress(6, text(50).as_bytes()).unwrap();
    let mut flipped = stored.clone();
    let crc = flipped.len() - 6;
    flipped[crc] ^= 1;
    let bad_log = |bytes: &[u8]| {
        let (done, _) = between(|root| {
            put(root, "game000a.meta.json", sidecar(50).as_bytes());
            put(root, "game000a.jsonl.gz", bytes);
        });
        assert_eq!((done.runs, done.skipped.len(), done.skipped[0].line), (2, 1, None));
        (done.skipped[0].file.clone(), done.skipped[0].kind.clone(), done.skipped[0].offset)
    };
    let name = || "game000a.jsonl.gz".to_owned();
    assert_eq!(bad_log(b""), (name(), "empty".into(), Some(0)));
    assert_eq!(bad_log(&stored[..100]), (name(), "truncated".into(), Some(100)));
    assert_eq!(bad_log(&flipped).1, "corrupt");
    for (sidecar, line) in [
        (&b""[..], Some(1)),
        (b"{\"seed\": 7, \"num_moves\": 5, \"score\": -1, \"max_tile\": 8}", Some(1)),
        (b"{\"seed\": 7, \"num_moves\": 5, \"score\": 1.0, \"max_tile\": 8}", Some(1)),
        (b"{\"seed\": 7, \"num_moves\": 5, \"max_tile\": 8}", Some(1)),
        (b"{\"seed\": 7,\n \"num_moves\": 5, \"score\": 1, \"max_tile\": \"8\"}", Some(2)),
        (b"{\"seed\": 7, \"num_moves\": 5, \"score\": 18446744073709551615, \"max_tile\": 8}", None),
    ] {
        let (done, _) = between(|root| {
            put(root, "game000a.meta.json", sidecar);
            put(root, "game000a.jsonl.gz", &stored);
        });
        assert_eq!((done.runs, done.skipped.len()), (2, 1), "{}", String::from_utf8_lossy(sidecar));
        let at = done.skipped[0].line;
        assert!(at == line || sidecar.is_empty(), "{:?}", done.skipped);
        assert!(done.skipped[0].file.starts_with("game000a."));
    }
}

#[test]
fn a_line_without_end_does_not_eat_the_memory() {
    let (done, rows) = between(|root| {
        let text = format!("{}\n{}", text(3), " ".repeat(20 << 20));
        game(root, "game000a", &text);
    });
    assert_eq!((done.runs, rows.len()), (2, 11));
    assert_eq!(done.skipped[0].kind, "too_large");
}

#[test]
fn names_beyond_what_an_id_holds_cost_their_game() {
    let (done, rows) = between(|root| {
        let named = |i: u32| line(i, &[("search", &format!("type{i}"))]) + "\n";
        game(root, "game000a", &(0..250).map(named).collect::<String>());
        game(root, "game000b", &(250..260).map(named).collect::<String>());
        game(root, "game000c", &named(7));
    });
    assert_eq!((done.runs, rows.len()), (4, 11 + 250 + 1));
    assert_eq!((done.skipped.len(), done.skipped[0].file.as_str()), (1, "game000b.jsonl.gz"));
    assert_eq!(rows[5 + 250].valuation_type, 3 + 7, "names of the game that was left out are forgotten");
}

#[test]
fn policies() {
    let (drop, out) = (drop_of(2), tempfile::tempdir().unwrap());
    game(drop.path(), "game000a", &(text(3) + "nonsense\n"));
    let target = out.path().join("pack");
    let raise = PackOptions { on_error: OnError::Raise, ..options(drop.path(), &target) };
    let e = pack(&raise, &mut |_| {}).unwrap_err().to_string();
    assert!(e.contains("game000a.jsonl.gz, line 4 column 2") && e.contains("corrupt"), "{e}");
    assert!(!target.join("steps.npy").exists());
    let quarantine = PackOptions { on_error: OnError::Quarantine, ..options(drop.path(), &out.path().join("q")) };
    assert_eq!(packed(&quarantine).skipped.len(), 1);
    let report = std::fs::read_to_string(out.path().join("q/quarantine.jsonl")).unwrap();
    let line: serde_json::Value = serde_json::from_str(report.trim_end()).unwrap();
    assert_eq!((&line["file"], &line["line"]), (&"game000a.jsonl.gz".into(), &4.into()));
    let all_bad = tempfile::tempdir().unwrap();
    game(all_bad.path(), "g", "nonsense");
    let e = pack(&options(all_bad.path(), &out.path().join("none")), &mut |_| {}).unwrap_err().to_string();
    assert!(e.contains("g.jsonl.gz"), "{e}");
    assert!(!out.path().join("none").exists(), "nothing is left of a job that packed nothing");
}
