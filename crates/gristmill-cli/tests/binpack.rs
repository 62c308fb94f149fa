//! Stockfish's binpacks through every command: inspected, verified, counted, fed, packed, marked, converted both ways, refused.

use super::bullet::check_feeding;
use std::fs;
use std::path::{Path, PathBuf};

use gristmill_format::binpack::write::Writer;
use gristmill_format::binpack::{BYTES, Position};
use gristmill_format::bullet::Board;

use crate::command::{run, text};

/// Written by sfbinpack: 189 chains of 1597 positions.
fn golden() -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/binpack/golden")).unwrap()
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in");
    fs::create_dir(&input).unwrap();
    fs::write(input.join("a.binpack"), golden()).unwrap();
    (folder, input)
}

#[test]
fn a_file_is_inspected_verified_and_counted() {
    let (_folder, input) = folder();
    let path = input.join("a.binpack");
    let seen = run(&["inspect", text(&path), "--chunk", "0", "--frame", "0", "--json"]).ok().json();
    assert_eq!(
        (seen["format"].as_str(), seen["chunks"].as_u64(), seen["frames"].as_u64()),
        (Some("stockfish.binpack"), Some(189), Some(1597))
    );
    assert!(seen["frame"]["facts"]["fen"].as_str().unwrap().contains(" w "), "{seen}");
    assert_eq!(seen["frame"]["picture"].as_array().unwrap().len(), 8);
    let verified = run(&["verify", text(&path), "--json"]).ok().json();
    assert_eq!((verified["ok"].as_bool(), verified["checked"].as_u64()), (Some(true), Some(1597)));
    let counted = run(&["stats", text(&path), "--json"]).ok().json();
    assert_eq!(counted["frames"].as_u64(), Some(1597));
    assert!(counted["kinds"]["binpack"]["numbers"]["men on the board"].is_object(), "{counted}");
    assert!(run(&["doctor", text(&path)]).ok().out.contains("189"));
}

#[test]
fn a_folder_is_fed_the_same_as_its_pack_by_any_number_of_threads() {
    let (folder, input) = folder();
    let pack = folder.path().join("pack");
    run(&["pack", "--input", text(&input), "--output", text(&pack)]).ok();
    check_feeding(&input, &pack, 1597);
}

#[test]
fn a_pack_is_marked_by_filters_and_its_copies_are_found() {
    let (folder, input) = folder();
    fs::write(input.join("b.binpack"), golden()).unwrap();
    let pack = folder.path().join("pack");
    let packed = run(&["pack", "--input", text(&input), "--output", text(&pack), "--json"]).ok().json();
    assert_eq!((packed["runs"].as_u64(), packed["rows"].as_u64()), (Some(378), Some(3194)));
    let rule =
        "no_score = 0 AND game_ply >= 16 AND in_check = 0 AND capture = 0 AND abs(score) <= 3000 AND repeated < 2";
    let marked = run(&["mark", text(&pack), "train", "--rule", rule, "--json"]).ok().json();
    let all = run(&["mark", text(&pack), "none", "--rule", "no_score = 1", "--json"]).ok().json();
    let (kept, unscored) = (marked["marked"].as_u64().unwrap(), all["marked"].as_u64().unwrap());
    assert!(kept > 500 && kept + unscored < 3194 && unscored > 10, "{kept} {unscored}");
    let found = run(&["dedup", text(&pack), "--json"]).ok().json();
    assert!(found["exact"].as_u64().unwrap() >= 189, "{found}");
}

#[test]
fn files_packs_and_boards_become_each_other() {
    let (folder, input) = folder();
    let at = |name: &str| folder.path().join(name);
    let (pack, again, boards, lines) = (at("pack"), at("again.binpack"), at("boards.bf"), at("lines.fen"));
    run(&["pack", "--input", text(&input), "--output", text(&pack)]).ok();
    let told = run(&["convert", text(&pack), text(&again), "--json"]).ok().json();
    assert_eq!((told["frames"].as_u64(), told["unscored"].as_u64()), (Some(1597), Some(0)));
    assert!(fs::read(&again).unwrap() == golden());
    let told = run(&["convert", text(&input), text(&boards), "--to", "bulletformat", "--json"]).ok().json();
    let (frames, unscored) = (told["frames"].as_u64().unwrap(), told["unscored"].as_u64().unwrap());
    let bytes = fs::read(&boards).unwrap();
    assert!(unscored > 10 && frames + unscored == 1597 && bytes.len() as u64 == 32 * frames, "{told}");
    assert!(bytes.as_chunks::<32>().0.iter().all(|board| Board::new(board).is_ok()));
    let back = at("back.binpack");
    let told = run(&["convert", text(&boards), text(&back)]).ok();
    assert!(told.out.contains("made up: boards do not say it: White moves"), "{}", told.out);
    let once_more = at("more.bf");
    run(&["convert", text(&back), text(&once_more)]).ok();
    assert!(fs::read(&once_more).unwrap() == bytes, "boards change on the way");
    run(&["convert", text(&input), text(&lines)]).ok();
    assert_eq!(fs::read_to_string(&lines).unwrap().lines().count(), 1597);
    let refused = run(&["convert", text(&input), text(&at("games.pgn"))]);
    assert!(refused.code != 0 && (refused.out + &refused.err).contains("parts of games"));
}

#[test]
fn a_broken_chain_is_said_with_its_place_and_the_others_are_taken() {
    let (folder, input) = folder();
    let mut file = golden();
    // Another block of one good chain behind the damaged one.
    let (mut writer, mut block) = (Writer::default(), Vec::new());
    let mut record = Vec::new();
    let men = gristmill_format::binpack::Men { occ: 1 << 4 | 1 << 60, pcs: 0xba };
    let told = gristmill_format::binpack::record::Told {
        played: gristmill_format::binpack::Move::NONE,
        score: 7,
        ply: 1,
        result: 0,
        rule50: 0,
    };
    gristmill_format::binpack::record::push(&mut record, &men, &told, 0);
    assert_eq!(record.len(), BYTES);
    writer.add(&Position::new(&record).unwrap(), &mut block);
    writer.finish(&mut block);
    file[8..16].fill(0);
    fs::write(input.join("a.binpack"), [&file[..], &block].concat()).unwrap();
    let path = input.join("a.binpack");
    let verified = run(&["verify", text(&path), "--json"]).json();
    let fault = verified["faults"][0].to_string();
    assert!(verified["ok"] == false && fault.contains("are not read") && fault.contains("\"chunk\":0"), "{verified}");
    let pack = folder.path().join("pack");
    let packed = run(&["pack", "--input", text(&input), "--output", text(&pack), "--json"]);
    assert!(packed.code == 3 && packed.json()["rows"] == 1);
    let out = folder.path().join("out.bf");
    let told = run(&["convert", text(&path), text(&out), "--json"]);
    let json = told.json();
    assert!(told.code != 0 && json["frames"] == 1 && json["faults"][0].as_str().unwrap().contains("byte"), "{json}");
    fs::write(&path, b"BINP\xff\xff\xff\xff").unwrap();
    let refused = run(&["inspect", text(&path)]);
    assert!(refused.code != 0 && (refused.out + &refused.err).contains("expected at most 104857600"));
}
