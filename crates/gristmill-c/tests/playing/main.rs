//! A C program, compiled against the header and linked to the library. It plays in two processes; the test kills one.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used)]
#![allow(clippy::print_stderr, reason = "a skipped test must be seen")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use gristmill_format::records::Schema;
use gristmill_format::source::Chunk;
use gristmill_jobs::pack::{PackOptions, pack};
use gristmill_jobs::verify::{VerifyOptions, verify};
use gristmill_packs::recording::GameWriter;

const HEADER: &str = include_str!("../../include/gristmill.h");

/// The folder of `libgristmill.so`: it is built for this test, beside it.
fn built() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

fn library() -> PathBuf {
    built().join(format!("{}gristmill{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX))
}

/// The C program that plays; none where there is no compiler.
fn player(folder: &Path) -> Option<PathBuf> {
    compiled(folder, &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/playing/player.c"))
}

/// A C program against the header and the library; none where there is no compiler.
fn compiled(folder: &Path, source: &Path) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.join("program");
    let mut cc = Command::new("cc");
    cc.args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"]).arg(here.join("include"));
    cc.arg("-o").arg(&program).arg(source).arg(library());
    cc.arg(format!("-Wl,-rpath,{}", built().display()));
    match cc.status() {
        Ok(status) => {
            assert!(status.success());
            Some(program)
        }
        Err(e) => {
            eprintln!("skipped: cc: {e}");
            None
        }
    }
}

/// A player that has written all of its games, and waits.
fn playing(program: &Path, folder: &Path, first: u32, count: u32) -> Child {
    let mut words = Command::new(program);
    words.arg(folder).args([first.to_string(), count.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = words.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    (0..count).for_each(|_| assert_eq!(lines.next().unwrap().unwrap(), "written"));
    child
}

/// The numbers of all rows in the files that readers see, game by game.
fn games(folder: &Path) -> Vec<Vec<u32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        assert!(!path.file_name().unwrap().to_str().unwrap().starts_with('.'), "{}", path.display());
        let source = gristmill_runtime::open::open(path).unwrap();
        let mut chunk = Chunk::default();
        for i in 0..source.len() {
            source.chunk(i, &mut chunk).unwrap();
            let number = |row: &[u8]| u32::from_le_bytes(row[8..12].try_into().unwrap());
            found.push(chunk.records().chunks(12).map(number).collect());
        }
    }
    found.sort_unstable();
    found
}

fn played(game: u32) -> Vec<u32> {
    (0..if game % 2 == 1 { 3 } else { 1 }).map(|ply| 100 * game + ply).collect()
}

#[test]
fn two_processes_play_and_one_is_killed() {
    let place = tempfile::tempdir().unwrap();
    let Some(program) = player(place.path()) else { return };
    let (folder, out) = (place.path().join("games"), place.path().join("pack"));
    let mut killed = playing(&program, &folder, 0, 7);
    let mut living = playing(&program, &folder, 50, 20);
    killed.kill().unwrap();
    killed.wait().unwrap();
    living.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(living.wait().unwrap().success());

    let packed = pack(&PackOptions::new(&folder, &out), &mut |_| {}).unwrap();
    let verified = verify(&VerifyOptions::new(vec![out]), &mut |_, _| {}).unwrap();
    assert!(verified.faults.is_empty(), "{:?}", verified.faults);
    assert_eq!((packed.runs, packed.skipped.len()), (27, 0));
    assert_eq!(games(&folder), (0..7).chain(50..70).map(played).collect::<Vec<_>>());
}

#[test]
fn the_program_of_the_page_plays() {
    let place = tempfile::tempdir().unwrap();
    let page = include_str!("../../../../docs/guide/your-own-game.md");
    let text = page.split("```c\n").nth(1).unwrap().split("\n```").next().unwrap();
    fs::write(place.path().join("page.c"), text).unwrap();
    let Some(program) = compiled(place.path(), &place.path().join("page.c")) else { return };
    assert!(Command::new(program).current_dir(place.path()).status().unwrap().success());
    let packed = pack(&PackOptions::new(place.path().join("games"), place.path().join("pack")), &mut |_| {}).unwrap();
    assert_eq!((packed.runs, packed.skipped.len()), (20, 0));
}

#[test]
fn rust_programs_take_up_what_c_programs_left() {
    let place = tempfile::tempdir().unwrap();
    let Some(program) = player(place.path()) else { return };
    let folder = place.path().join("games");
    let mut killed = playing(&program, &folder, 3, 1);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let schema = Schema::parse(r#"{"layout": "[('number', '<u4')]"}"#).unwrap();
    let mut writer = GameWriter::open(&folder, schema, 1 << 20).unwrap();
    assert_eq!(writer.adopted(), 1);
    assert_eq!(games(&folder), [played(3)]);
    writer.write(&7u32.to_le_bytes(), "").unwrap();
    writer.finish().unwrap();
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    let place = tempfile::tempdir().unwrap();
    let Some(program) = player(place.path()) else { return };
    let folder = place.path().join("games");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("file"), "").unwrap();
    let done = Command::new(program).arg(&folder).arg("refused").output().unwrap();
    fs::remove_file(folder.join("file")).unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let lines: Vec<String> = done.stdout.lines().map(Result::unwrap).collect();
    let expected = [
        "0 ",
        "0 folder: a null pointer",
        "0 schema: corrupt: this is no schema of records: EOF",
        "0 schema: no UTF-8: invalid utf-8 sequence",
        "0 row_bytes: 16; the layout has 12: is the struct of a row packed?",
        "0 ",
        "1 writer: a null pointer",
        "1 writer: a null pointer",
        "1 rows: a null pointer",
        "2 game 0: rows beyond the bound of 1073741824 bytes",
        "2 game 0: rows beyond the bound of 1073741824 bytes",
        "2 game 0: empty: a game without rows",
        "2 game 0: wrong_size: 1 facts of a game, expected 2",
        "1 facts: no UTF-8: invalid utf-8 sequence",
        "2 game 0: ",
        "1 game 1: 1 rows of a game that was not ended are in no file",
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, begins) in lines.iter().zip(expected) {
        assert!(line.starts_with(begins), "{line:?}; expected {begins:?}");
    }
    assert!(lines[5].contains("/games/file: "), "{}", lines[5]);
    assert!(lines[14].contains("fact `elo` is Text"), "{}", lines[14]);
    assert_eq!(games(&folder), [[700]]);
}

#[test]
fn the_header_declares_what_the_library_has() {
    let code: Vec<&str> = HEADER.split("*/").map(|part| part.split("/*").next().unwrap()).collect();
    let words = code.iter().flat_map(|part| part.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '(')));
    let declared: BTreeSet<&str> = words.filter_map(|word| word.split_once('(')).map(|(name, _)| name).collect();
    let declared: BTreeSet<&str> = declared.into_iter().filter(|name| name.starts_with("gristmill_")).collect();
    let listed = Command::new("nm").args(["-D", "--defined-only"]).arg(library()).output();
    let Ok(listed) = listed else {
        eprintln!("skipped: there is no nm");
        return;
    };
    let text = String::from_utf8(listed.stdout).unwrap();
    let names = text.lines().filter_map(|line| line.split(' ').next_back());
    let exported: BTreeSet<&str> = names.filter(|name| name.starts_with("gristmill_")).collect();
    assert_eq!(declared, exported);
    assert_eq!(exported.len(), 8);
}
