//! Boards of bulletformat through every command: inspected, verified, counted, fed, packed, marked, searched for copies, refused.

use std::fs;
use std::path::Path;

use gristmill_format::bullet::Board;

use crate::command::{run, text};

/// A board of the kings, a pawn, and a knight or not.
fn board(number: u32) -> Vec<u8> {
    let mut men = vec![(4, 5), (8 + (number % 40) as u8, 0), (60, 13)];
    if number.is_multiple_of(3) {
        men.insert(0, (1, 1));
    }
    Board::of(&men, number as i16 - 300, (number % 3) as u8).unwrap().bytes().to_vec()
}

fn boards(numbers: std::ops::Range<u32>) -> Vec<u8> {
    numbers.flat_map(board).collect()
}

#[test]
fn a_file_is_inspected_verified_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("boards.bf");
    fs::write(&path, boards(0..600)).unwrap();
    let seen = run(&["inspect", text(&path), "--chunk", "1", "--frame", "2", "--json"]).ok().json();
    assert_eq!(
        (seen["format"].as_str(), seen["chunks"].as_u64(), seen["frames"].as_u64()),
        (Some("bullet.bf"), Some(3), Some(600))
    );
    assert_eq!(seen["frame"]["picture"][7], ". N . . K . . .");
    assert_eq!(seen["frame"]["facts"]["score"], "-42 centipawns");
    let drawn = run(&["inspect", text(&path)]).ok().out;
    assert!(drawn.contains("\n. . . . k . . .\n") && drawn.contains("result: loss"), "{drawn}");
    let verified = run(&["verify", text(&path), "--json"]).ok().json();
    assert_eq!((verified["ok"].as_bool(), verified["checked"].as_u64()), (Some(true), Some(600)));
    let counted = run(&["stats", text(&path), "--json"]).ok().json();
    let numbers = &counted["kinds"]["bullet"]["numbers"];
    assert_eq!((counted["frames"].as_u64(), numbers["men on the board"]["4"].as_u64()), (Some(600), Some(200)));
    let shown = run(&["stats", text(&path)]).ok().out;
    assert!(shown.contains("men on the board") && shown.contains("score in centipawns"), "{shown}");
}

/// Feeds a folder with one thread and with three, and its pack: all have as many frames, and threads change nothing. The pack is whole.
pub(crate) fn check_feeding(input: &Path, pack: &Path, frames: u64) {
    let feed = |place: &Path, threads: &str| {
        let out = tempfile::tempdir().unwrap();
        let words = ["--epochs", "1", "--batch-size", "128", "--seed", "3", "--threads", threads, "--json"];
        let fed = run(&[&["feed", text(place), "--out", text(out.path())], &words[..]].concat()).ok().json();
        assert_eq!(fed["frames"].as_u64(), Some(frames));
        let mut names: Vec<_> = fs::read_dir(out.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        assert!(names.iter().any(|name| text(name).ends_with("-nstm.npy")), "{names:?}");
        names.iter().map(|name| fs::read(name).unwrap()).collect::<Vec<_>>()
    };
    let one = feed(input, "1");
    assert!(one == feed(input, "3"), "threads change batches");
    assert_eq!(feed(pack, "2").iter().map(Vec::len).sum::<usize>(), one.iter().map(Vec::len).sum::<usize>());
    assert!(run(&["verify", text(pack), "--json"]).ok().json()["ok"] == true);
}

#[test]
fn a_folder_is_fed_the_same_as_its_pack_by_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in");
    fs::create_dir(&input).unwrap();
    fs::write(input.join("a.bf"), boards(0..600)).unwrap();
    fs::write(input.join("b.bullet"), boards(600..900)).unwrap();
    let pack = folder.path().join("pack");
    run(&["pack", "--input", text(&input), "--output", text(&pack)]).ok();
    check_feeding(&input, &pack, 900);
}

#[test]
fn a_pack_is_marked_and_its_copies_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in");
    fs::create_dir(&input).unwrap();
    fs::write(input.join("a.bf"), boards(0..300)).unwrap();
    fs::write(input.join("b.bf"), boards(300..400)).unwrap();
    let plain = boards(300..400);
    let mirrored = plain.as_chunks::<32>().0.iter().flat_map(|record| {
        let mut men: Vec<(u8, u8)> = Board::new(record).unwrap().pieces().map(|(at, man)| (at ^ 7, man)).collect();
        men.sort_unstable();
        Board::of(&men, 1, 1).unwrap().bytes().to_vec()
    });
    fs::write(input.join("c.bf"), mirrored.collect::<Vec<u8>>()).unwrap();
    let pack = folder.path().join("pack");
    let packed = run(&["pack", "--input", text(&input), "--output", text(&pack), "--json"]).ok().json();
    assert_eq!((packed["runs"].as_u64(), packed["rows"].as_u64()), (Some(4), Some(500)));
    let marked = run(&["mark", text(&pack), "few", "--rule", "men = 3 AND score < -290", "--json"]).ok().json();
    assert_eq!(marked["marked"].as_u64(), Some(6));
    let found = run(&["dedup", text(&pack), "--mark", "again", "--json"]).ok().json();
    assert_eq!(
        (found["games"].as_u64(), found["mirrored"].as_u64(), found["exact"].as_u64()),
        (Some(4), Some(1), Some(0))
    );
    assert_eq!(found["mark"]["marked"].as_u64(), Some(100));
    let seen = run(&["inspect", text(&pack), "--frame", "299", "--json"]).ok().json();
    assert_eq!(seen["frame"]["facts"]["score"], "-1 centipawns");
}

#[test]
fn what_is_no_board_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let (cut, bad) = (folder.path().join("cut.bf"), folder.path().join("bad.bf"));
    let good = boards(0..300);
    fs::write(&cut, &good[..32 * 7 + 5]).unwrap();
    let mut damaged = good.clone();
    damaged[32 * 258 + 26] = 7;
    fs::write(&bad, &damaged).unwrap();
    for words in [&["inspect"][..], &["verify"], &["pack", "--output", text(&folder.path().join("pack")), "--input"]] {
        let ran = run(&[words, &[text(&cut)]].concat());
        let said = ran.out + &ran.err;
        assert!(
            ran.code != 0 && said.contains("cut.bf") && said.contains("frame 7") && said.contains("byte 224"),
            "{said}"
        );
    }
    let verified = run(&["verify", text(&bad), "--json"]).json();
    let fault = verified["faults"][0].to_string();
    assert!(verified["ok"] == false && fault.contains("8282") && fault.contains("expected 0, 1 or 2"), "{fault}");
    assert_eq!(verified["salvageable"].as_u64(), Some(2));
    let refused = run(&["feed", text(&bad), "--epochs", "1", "--bad-chunks", "raise", "--tensors", "stm"]);
    assert!(refused.code != 0 && refused.err.contains("bad.bf"), "{refused:?}");
    let other = run(&["feed", text(&bad), "--epochs", "1", "--tensors", "probs"]);
    assert!(other.code == 2 && other.err.contains("stm, nstm"), "{other:?}");
}
