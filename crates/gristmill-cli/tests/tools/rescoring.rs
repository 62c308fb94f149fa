//! Rescoring: games come out sound, tables are read, and missing tables are always reported.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::folders::{V6, games, is_sound, names, records, unpacked};
use crate::command::{Ran, generate, run, text};

/// A table of three men all of whose positions have one value, for the side to move: 2 is a draw, 4 a win.
fn constant(material: &str, wdl: bool, value: u8) -> Vec<u8> {
    let magic = if wdl { [0x71, 0xe8, 0x23, 0x5d] } else { [0xd7, 0x66, 0x0c, 0xa5] };
    let pawn = material.contains('P');
    let man = |letter: char, black: u8| 1 + "PNBRQK".find(letter).unwrap() as u8 + black;
    let third = man(material.as_bytes()[1].into(), 0);
    // A leading pawn stands first.
    let men = if pawn { [third, 6, 14] } else { [6, third, 14] };
    let files = if pawn { 4 } else { 1 };
    let mut bytes = magic.to_vec();
    bytes.push(u8::from(wdl) | if pawn { 2 } else { 0 });
    for _ in 0..files {
        bytes.push(0);
        bytes.extend(men.map(|man| man | man << 4));
    }
    bytes.resize(bytes.len().next_multiple_of(2), 0);
    for _ in 0..files * if wdl { 2 } else { 1 } {
        bytes.extend([0x80, value]);
    }
    bytes.resize(bytes.len().next_multiple_of(64) + 16, 0);
    bytes
}

/// All tables of three men.
fn tables(folder: &Path, value: u8) {
    fs::create_dir_all(folder).unwrap();
    for name in ["KQvK", "KRvK", "KBvK", "KNvK", "KPvK"] {
        for (ending, wdl) in [("rtbw", true), ("rtbz", false)] {
            fs::write(folder.join(format!("{name}.{ending}")), constant(name, wdl, value)).unwrap();
        }
    }
}

/// Two games that end with three men on the board, both drawn.
fn endgames() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let games = folder.path().join("games");
    for first in ["10", "13"] {
        let words = ["generate", "chess", text(&games), "--games", "1", "--seed", "5", "--plies-max", "400"];
        run(&[&words[..], &["--first", first]].concat()).ok();
    }
    (folder, games)
}

fn rescore(games: &Path, out: &Path, more: &[&str]) -> Ran {
    run(&[&["rescore", text(games), text(out), "--json"], more].concat())
}

fn count(done: &Value, name: &str) -> u64 {
    done["counts"][name].as_u64().unwrap_or(0)
}

#[test]
fn games_come_out_sound_as_v7_and_their_container_stays() {
    let (folder, games) = games("6");
    generate(&games.join("tars"), "6", &["--first", "7", "--tar", "--games-per-tar", "6", "--version", "7"]);
    let out = folder.path().join("out");
    let ran = run(&["rescore", text(&games), text(&out), "--threads", "2"]).ok();
    for part in ["12 games in 7 files", "frames_to_v7", "changed", "7 files, "] {
        assert!(ran.out.contains(part), "no `{part}` in {}", ran.out);
    }
    assert_eq!(names(&out), names(&games));
    assert!(is_sound(&out));
    let stats = run(&["stats", text(&out), "--json"]).ok().json();
    assert_eq!(stats["versions"]["7"], stats["frames"]);
    let kept = folder.path().join("kept");
    let done = rescore(&games, &kept, &["--keep-v6"]).ok().json();
    assert_eq!(done["kept"], 12, "no pass was chosen: {done}");
    assert!(unpacked(&kept) == unpacked(&games));
}

/// The same records as V5 has them: no move played, no visits, the result as a byte.
fn as_v5(records: &[u8]) -> Vec<u8> {
    let frame = |record: &[u8]| {
        let result = f32::from_le_bytes(record[8308..8312].try_into().unwrap()) as i8;
        [&5u32.to_le_bytes()[..], &record[4..8279], &result.to_le_bytes(), &record[8280..8308]].concat()
    };
    records.chunks_exact(V6).flat_map(frame).collect()
}

#[test]
fn records_of_old_versions_go_out_as_v6_where_v6_is_to_stay() {
    let (folder, games) = games("2");
    let [old, kept, wide] = ["old", "kept", "wide"].map(|name| folder.path().join(name));
    fs::create_dir(&old).unwrap();
    let sources = names(&games);
    // One plain, one compressed.
    fs::write(old.join("training.1"), as_v5(&records(&games.join(&sources[0])))).unwrap();
    let two = old.join("training.2");
    fs::write(&two, as_v5(&records(&games.join(&sources[1])))).unwrap();
    assert!(std::process::Command::new("gzip").arg(&two).status().unwrap().success());
    let done = rescore(&old, &kept, &["--keep-v6"]).ok().json();
    assert_eq!((done["changed"].as_u64(), done["kept"].as_u64()), (Some(2), Some(0)), "{done}");
    assert_eq!(done["counts"]["frames_to_v6"], done["frames_in"], "{done}");
    let stats = run(&["stats", text(&kept), "--json"]).ok().json();
    assert_eq!((&stats["versions"]["6"], &stats["versions"]["5"]), (&done["frames_in"], &Value::Null), "{stats}");
    for (name, bytes) in [
        ("training.1", fs::read(kept.join("training.1")).unwrap()),
        ("training.2.gz", records(&kept.join("training.2.gz"))),
    ] {
        assert!(bytes.len().is_multiple_of(V6) && bytes[0] == 6, "{name}");
    }
    let again = folder.path().join("again");
    let done = rescore(&kept, &again, &["--keep-v6"]).ok().json();
    assert_eq!(done["kept"], 2, "{done}");
    let done = rescore(&old, &wide, &[]).ok().json();
    assert_eq!(
        (&done["counts"]["frames_to_v7"], done["counts"].get("frames_to_v6")),
        (&done["frames_in"], None),
        "{done}"
    );
}

#[test]
fn every_pass_can_be_asked_for() {
    let (folder, games) = games("4");
    let out = folder.path().join("out");
    let passes = ["--dist-temp", "2", "--dist-offset", "-0.001", "--new-input-format", "3", "--deblunder-threshold"];
    let more = ["0.05", "--deblunder-width", "0.02", "--policies", text(&games), "--compat", "deblunder_start"];
    let done = rescore(&games, &out, &[&passes[..], &more].concat()).ok().json();
    let frames = done["frames_in"].as_u64();
    assert_eq!(done["counts"]["frames_converted"].as_u64(), frames, "{done}");
    assert!(count(&done, "policies_reshaped") > 0 && count(&done, "frames_to_v7") == frames.unwrap(), "{done}");
    assert!(is_sound(&out));
    let stats = run(&["stats", text(&out), "--json"]).ok().json();
    assert_eq!(stats["input_formats"]["3"].as_u64(), frames);
}

#[test]
fn tables_are_asked_and_are_part_of_what_a_run_is() {
    let (folder, games) = endgames();
    let [draws, drawn] = ["draws", "drawn"].map(|name| folder.path().join(name));
    tables(&draws, 2);
    // Twice the same directory, by both ways of giving several.
    let twice = format!("{0},{0}", text(&draws));
    let done = rescore(&games, &drawn, &["--syzygy", &twice, "--syzygy", text(&draws)]).ok().json();
    assert!(count(&done, "probes") > 0 && count(&done, "results_by_tablebase") == 0, "{done}");
    assert!(is_sound(&drawn));
    fs::rename(&draws, folder.path().join("moved")).unwrap();
    let moved = folder.path().join("moved");
    let again = rescore(&games, &drawn, &["--syzygy", text(&moved)]).ok().json();
    assert_eq!(again["resumed"], 2, "the same tables elsewhere are the same tables");
    fs::remove_file(moved.join("KQvK.rtbw")).unwrap();
    let other = rescore(&games, &drawn, &["--syzygy", text(&moved), "--allow-missing-tables"]);
    assert!(other.code == 2 && other.err.contains("other settings"), "{other:?}");
}

#[test]
fn tables_that_contradict_themselves_end_the_run_and_drop_no_game() {
    let (folder, games) = endgames();
    let [wins, out, allowed] = ["wins", "out", "allowed"].map(|name| folder.path().join(name));
    tables(&wins, 4);
    let ran = rescore(&games, &out, &["--syzygy", text(&wins)]);
    assert!(ran.code == 1 && ran.json()["error"]["kind"] == "failed", "{ran:?}");
    assert!(ran.err.contains("training.10.gz") && ran.err.contains("corrupt_table"), "{ran:?}");
    let done = rescore(&games, &allowed, &["--syzygy", text(&wins), "--allow-missing-tables"]).ok().json();
    assert!(count(&done, "corrupt_tables") > 0 && count(&done, "results_by_tablebase") > 0, "{done}");
    assert_eq!(names(&allowed), names(&games));
}

#[test]
fn missing_tables_are_an_error_unless_they_are_allowed() {
    let (folder, games) = endgames();
    let [none, some, out] = ["none", "some", "out"].map(|name| folder.path().join(name));
    fs::create_dir(&none).unwrap();
    tables(&some, 2);
    for name in ["KNvK", "KBvK", "KPvK"] {
        fs::remove_file(some.join(format!("{name}.rtbw"))).unwrap();
    }
    for (tables, says) in [(&none, "0 WDL"), (&some, "KNvK.rtbw")] {
        let ran = rescore(&games, &out, &["--syzygy", text(tables)]);
        assert!(ran.code == 2 && ran.json()["error"]["kind"] == "usage", "{ran:?}");
        assert!(ran.err.contains(says) && ran.err.contains("allow missing"), "{ran:?}");
    }
    let gone = rescore(&games, &out, &["--syzygy", text(&folder.path().join("gone"))]);
    assert!(gone.code == 1 && gone.err.contains("gone"), "{gone:?}");
    fs::write(some.join("KBvK.rtbw"), b"damaged").unwrap();
    let damaged = rescore(&games, &out, &["--syzygy", text(&some)]);
    assert!(damaged.code == 1 && damaged.err.contains("KBvK.rtbw"), "{damaged:?}");
    assert!(!out.exists(), "nothing was begun");
    let ran = run(&["rescore", text(&games), text(&out), "--syzygy", text(&some), "--allow-missing-tables"]).ok();
    assert!(ran.err.contains("are missing") && ran.err.contains("KBvK.rtbw"), "{ran:?}");
    assert!(ran.out.contains("missing_tables"), "{ran:?}");
    let again = folder.path().join("again");
    let done = rescore(&games, &again, &["--syzygy", text(&some), "--allow-missing-tables"]).ok().json();
    let counts = done["counts"].as_object().unwrap();
    let named = counts.iter().filter(|(name, _)| name.starts_with("missing:"));
    let named: Vec<(&str, u64)> = named.map(|(name, n)| (name.as_str(), n.as_u64().unwrap())).collect();
    assert_eq!(named.iter().map(|(_, n)| n).sum::<u64>(), count(&done, "missing_tables"), "{done}");
    let lacking = ["missing:KBvK.rtbw", "missing:KNvK.rtbw", "missing:KPvK.rtbw"];
    assert!(!named.is_empty() && named.iter().all(|(name, _)| lacking.contains(name)), "{done}");
    assert!(ran.out.contains(named[0].0), "{ran:?}");
}

#[test]
fn real_tables_mend_real_endings() {
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/syzygy");
    if !fetched.is_dir() {
        return println!("skipped: no tables at {}; `make tables` fetches them", fetched.display());
    }
    let (folder, games) = endgames();
    let out = folder.path().join("out");
    let done = rescore(&games, &out, &["--syzygy", text(&fetched), "--dtz-boost", "0.1"]).ok().json();
    assert!(count(&done, "probes") > 50 && count(&done, "missing_tables") == 0, "{done}");
    assert!(is_sound(&out));
}
