//! Games in PGN through every command: inspected, verified, counted, packed with their tags, fed, refused one by one.

use std::fs;
use std::path::Path;

use gristmill_format::container::gzip::compress;
use gristmill_format::container::zstd;

use crate::command::{run, text};

/// A game of database `number`: four plies, and a result.
fn game(number: usize) -> String {
    let (result, moves) = [
        ("1-0", "1. e4 { [%eval 0.2] } e5 2. Nf3 Nc6"),
        ("0-1", "1. f3 e5 2. g4 Qh4#"),
        ("1/2-1/2", "1. d4 (1. c4) d5 2. c4 e6"),
    ][number % 3];
    format!(
        "[Event \"Blitz {number}\"]\n[White \"a\"]\n[Black \"b\"]\n[Result \"{result}\"]\n[WhiteElo \"{}\"]\n[BlackElo \"?\"]\n\
         [ECO \"C2{}\"]\n[Termination \"Normal\"]\n\n{moves} {result}\n\n",
        1500 + 100 * number,
        number % 10
    )
}

fn games(count: usize) -> String {
    (0..count).map(game).collect()
}

#[test]
fn a_file_is_inspected_verified_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, packed) = (folder.path().join("a.pgn"), folder.path().join("b.pgn.gz"));
    fs::write(&plain, games(6).replace('\n', "\r\n")).unwrap();
    fs::write(&packed, compress(6, games(6).as_bytes()).unwrap()).unwrap();
    for path in [&plain, &packed] {
        let seen = run(&["inspect", text(path), "--chunk", "1", "--frame", "3", "--json"]).ok().json();
        assert_eq!(
            (seen["format"].as_str(), seen["chunks"].as_u64(), seen["frame"]["fen"].as_str()),
            (Some("pgn"), Some(6), Some("rnbqkbnr/pppp1ppp/8/4p3/6P1/5P2/PPPPP2P/RNBQKBNR b KQkq - 0 1")),
            "{seen}"
        );
        let verified = run(&["verify", text(path), "--json"]).ok().json();
        assert_eq!((verified["ok"].as_bool(), verified["checked"].as_u64()), (Some(true), Some(24)));
        let counted = run(&["stats", text(path), "--json"]).ok().json();
        assert_eq!(counted["frames"].as_u64(), Some(24), "{counted}");
    }
}

#[test]
fn a_pack_has_the_tags_of_its_games_and_feeds_what_the_files_do() {
    let folder = tempfile::tempdir().unwrap();
    let (input, pack) = (folder.path().join("in"), folder.path().join("pack"));
    fs::create_dir(&input).unwrap();
    fs::write(input.join("a.pgn"), games(6)).unwrap();
    run(&["pack", "--input", text(&input), "--output", text(&pack)]).ok();
    fs::write(input.join("b.pgn"), game(9)).unwrap();
    run(&["pack", "--input", text(&input), "--output", text(&pack), "--append"]).ok();
    assert!(run(&["verify", text(&pack), "--json"]).ok().json()["ok"] == true);
    let database = rusqlite::Connection::open(pack.join("metadata.db")).unwrap();
    let sql = "SELECT white_elo, eco, termination, result, adjudicated FROM games WHERE black_elo IS NULL ORDER BY id";
    let mut statement = database.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)));
    let rows: Vec<(i64, String, String, f64, i64)> = rows.unwrap().collect::<Result<_, _>>().unwrap();
    // The records of game 9 are those of game 0, which is known.
    assert_eq!(rows[0], (1500, "C20".to_owned(), "Normal".to_owned(), 1.0, 1));
    assert_eq!(rows[1], (1600, "C21".to_owned(), "Normal".to_owned(), -1.0, 0));
    let marked = run(&["mark", text(&pack), "strong", "--rule", "ply = 0 AND game.white_elo >= 1700", "--json"]);
    assert_eq!(marked.ok().json()["marked"].as_u64(), Some(rows.len() as u64 - 2));
    let feed = |place: &Path, threads: &str| {
        let out = tempfile::tempdir().unwrap();
        let words = ["--epochs", "1", "--batch-size", "8", "--seed", "3", "--threads", threads, "--json"];
        let fed = run(&[&["feed", text(place), "--out", text(out.path())], &words[..]].concat()).ok().json();
        let mut names: Vec<_> = fs::read_dir(out.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        (fed["frames"].as_u64(), names.iter().map(|name| fs::read(name).unwrap()).collect::<Vec<_>>())
    };
    let one = feed(&input, "1");
    assert_eq!(one.0, Some(28));
    assert!(one == feed(&input, "3"), "threads change batches");
    assert_eq!(feed(&pack, "2").0, Some(4 * rows.len() as u64));
}

#[test]
fn a_bad_game_is_left_out_with_its_place_and_the_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let (path, pack) = (folder.path().join("a.pgn"), folder.path().join("pack"));
    let bad = game(3).replace("2. Nf3", "2. Nf6");
    let file = format!("{}{bad}{}{}", game(0), game(1), game(2).replace("1/2-1/2\n", "*\n"));
    fs::write(&path, &file).unwrap();
    let verified = run(&["verify", text(&path), "--json"]).json();
    let fault = verified["faults"][0].to_string();
    let byte = file.find("Nf6").unwrap().to_string();
    assert!(verified["ok"] == false && fault.contains(&byte) && fault.contains("move 2. `Nf6`"), "{verified}");
    let words = ["--input", text(&path), "--output", text(&pack), "--on-error", "quarantine", "--json"];
    let packed = run(&[&["pack"], &words[..]].concat());
    assert_eq!(packed.code, 3, "something was left out");
    let packed = packed.json();
    assert_eq!((packed["runs"].as_u64(), packed["rows"].as_u64()), (Some(2), Some(8)), "{packed}");
    let report = fs::read_to_string(pack.join("quarantine.jsonl")).unwrap();
    assert!(report.contains("a.pgn/1") && report.contains("Nf6") && report.contains("no result"), "{report}");
}

#[test]
fn a_text_becomes_records_and_a_pack_becomes_the_text_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("a.pgn"), games(6)).unwrap();
    let done = run(&["convert", text(&at("a.pgn")), text(&at("tars")), "--to", "v6", "--json"]).ok().json();
    assert_eq!((done["chunks"].as_u64(), done["frames_out"].as_u64()), (Some(6), Some(24)), "{done}");
    let tar = at("tars").join("a.tar");
    let verified = run(&["verify", text(&tar), "--json"]).ok().json();
    assert_eq!(verified["checked"].as_u64(), Some(24));
    let seen = run(&["inspect", text(&tar), "--chunk", "5", "--json"]).ok().json();
    assert!(seen["frame"]["place"].to_string().contains("training.5.gz") || seen.to_string().contains("training.5.gz"));
    run(&["convert", text(&at("a.pgn")), text(&at("loose")), "--to", "v7", "--container", "loose"]).ok();
    assert!(at("loose").join("a/training.5.gz").is_file());
    run(&["rescore", text(&at("a.pgn")), text(&at("fifth")), "--new-input-format", "5"]).ok();
    run(&["verify", text(&at("fifth"))]).ok();
    let pack = at("pack");
    run(&["pack", "--input", text(&at("a.pgn")), "--output", text(&pack)]).ok();
    let told = run(&["convert", text(&pack), text(&at("b.pgn")), "--json"]).ok().json();
    assert_eq!((told["games"].as_u64(), told["frames"].as_u64()), (Some(6), Some(24)), "{told}");
    let again = fs::read_to_string(at("b.pgn")).unwrap();
    assert!(again.contains("[WhiteElo \"2000\"]") && again.contains("1. f3 e5 2. g4 Qh4# 0-1"), "{again}");
    run(&["pack", "--input", text(&at("b.pgn")), "--output", text(&at("again"))]).ok();
    let records = |pack: &Path| {
        let out = tempfile::tempdir().unwrap();
        run(&["convert", text(pack), text(out.path()), "--container", "loose", "--version", "6"]).ok();
        let mut files = Vec::new();
        for entry in fs::read_dir(out.path().join("games-00000")).unwrap() {
            files.push(fs::read(entry.unwrap().path()).unwrap());
        }
        files.sort();
        files
    };
    assert_eq!(records(&pack), records(&at("again")));
    let told = run(&["convert", text(&tar), text(&at("c.txt")), "--to", "fen", "--json"]).ok().json();
    assert_eq!(told["frames"].as_u64(), Some(24));
    let lines = fs::read_to_string(at("c.txt")).unwrap();
    assert_eq!(lines.lines().count(), 24);
    assert!(lines.starts_with("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1\n"), "{lines}");
    let refused = run(&["convert", text(&pack), text(&at("b.pgn"))]);
    assert!(refused.code == 2 && refused.err.contains("--overwrite"), "{refused:?}");
    let rows = run(&["convert", text(&at("a.pgn")), text(&at("d")), "--to", "exponents"]);
    assert!(rows.code == 2 && rows.err.contains("v6"), "{rows:?}");
}

#[test]
fn a_compressed_text_that_is_cut_gives_its_games_and_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pgn.zst");
    let whole = zstd::compress(3, games(900).as_bytes()).unwrap();
    fs::write(&path, &whole).unwrap();
    assert_eq!(run(&["verify", text(&path), "--json"]).ok().json()["checked"].as_u64(), Some(3600));
    fs::write(&path, [&whole[..], &zstd::compress(3, games(3).as_bytes()).unwrap()[..40]].concat()).unwrap();
    let verified = run(&["verify", text(&path), "--json"]).json();
    assert_eq!((verified["ok"].as_bool(), verified["checked"].as_u64()), (Some(false), Some(3600)), "{verified}");
    assert!(verified["faults"][0].to_string().contains("truncated"), "{verified}");
    fs::write(&path, &whole[..20]).unwrap();
    assert!(run(&["verify", text(&path)]).code != 0);
}
