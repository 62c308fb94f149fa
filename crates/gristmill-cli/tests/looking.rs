//! `inspect` of frames: the picture first, any frame of any pack, layout and record where wanted, colours where wanted.

use std::path::Path;

use serde_json::Value;

use crate::command::{generate, only, run, text};
use crate::terminal::Terminal;

/// A folder with chess games, and a pack of them.
fn chess() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let games = folder.path().join("games");
    generate(&games, "3", &[]);
    run(&["pack", text(&games), text(&folder.path().join("pack")), "-q"]).ok();
    folder
}

fn seen(path: &Path, more: &[&str]) -> Value {
    run(&[&["inspect", text(path), "--json"], more].concat()).ok().json()
}

#[test]
fn the_picture_comes_first_and_layout_and_record_where_they_are_wanted() {
    let folder = chess();
    let file = only(&folder.path().join("games"), "training.1.gz");
    let words = ["inspect", text(&file), "--frame", "5"];
    let plain = run(&words).ok().out;
    assert!(plain.starts_with("chunk 0, frame 5 of "), "{plain}");
    assert!(plain.find("a b c d e f g h") < plain.find("lc0.gz"), "{plain}");
    let bars: Vec<usize> =
        plain.lines().filter(|line| line.contains(" % #")).map(|line| line.matches('#').count()).collect();
    assert_eq!(bars.iter().max(), Some(&24), "bars are relative to the best: {plain}");
    assert!(plain.lines().any(|line| line.contains(" % ") && line.contains("best")), "{plain}");
    assert!(plain.lines().any(|line| line.contains(" % ") && line.ends_with("played")), "{plain}");
    let (layout, record) = ("record of 8356 bytes:", "the record in full:");
    assert!(!plain.contains(layout) && !plain.contains(record) && !plain.contains('\x1b'), "{plain}");
    let laid = run(&[&words[..], &["--layout"]].concat()).ok().out;
    assert!(laid.contains(layout) && laid.contains("played_idx") && !laid.contains(record), "{laid}");
    let full = run(&[&words[..], &["--record"]].concat()).ok().out;
    assert!(full.contains(record) && !full.contains(layout), "{full}");
    let first = run(&["inspect", text(&file), "--record"]).ok().out;
    assert!(first.contains("frame 0 of ") && first.contains(record), "{first}");
    let json = seen(&file, &["--frame", "5"]);
    assert_eq!(json, seen(&file, &["--frame", "5", "--layout", "--record"]), "JSON has both always");
}

#[test]
fn colours_are_as_wished_and_change_no_letter() {
    let folder = chess();
    let file = only(&folder.path().join("games"), "training.1.gz");
    let words = ["inspect", text(&file), "--frame", "5", "--ascii"];
    let plain = run(&words).ok().out;
    let never = run(&[&words[..], &["--color=never"]].concat()).ok().out;
    let always = run(&[&words[..], &["--color=always"]].concat()).ok().out;
    assert_eq!(plain, never);
    assert!(always.contains("\x1b[48;5;180m") && always.contains("\x1b[48;5;71m"), "squares, and the move: {always}");
    let bare: String = always.split('\x1b').map(|part| part.split_once('m').map_or(part, |cut| cut.1)).collect();
    let letters = |text: &str| text.replace(['.', ' ', '\n'], "");
    let marked =
        |text: &str| letters(&text.lines().skip(3).take(8).flat_map(|line| line.chars().take(22)).collect::<String>());
    assert_eq!(marked(&plain), marked(&bare), "the same pieces");
}

/// A text without its colours.
fn plain(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| out + part.split_once('m').map_or("", |(_, rest)| rest))
}

#[test]
fn moves_stand_in_one_column_beside_a_coloured_board() {
    let folder = chess();
    let file = only(&folder.path().join("games"), "training.1.gz");
    for color in ["--color=never", "--color=always"] {
        let seen = plain(&run(&["inspect", text(&file), "--frame", "5", "--record", color]).ok().out);
        let moves = seen.lines().filter(|line| line.contains(" % "));
        let columns: Vec<usize> = moves.filter_map(|line| line.chars().position(|c| c == '%')).collect();
        assert!(columns.len() > 12, "{seen}");
        assert!(columns.iter().all(|column| *column == columns[0]), "{color}: {columns:?}\n{seen}");
    }
}

#[test]
fn a_terminal_shows_colours_unless_no_color_is_set() {
    let folder = chess();
    let file = only(&folder.path().join("games"), "training.1.gz");
    let logs = folder.path().join("logs");
    run(&["generate", "2048", text(&logs), "--games", "1", "--seed", "5", "--moves-max", "40", "-q"]).ok();
    let log = only(&logs, "game000000.jsonl.gz");
    let coloured = |file: &Path, more: &[&str], variables: &[(&str, &str)]| {
        let words = [&["inspect", text(file), "--frame", "5"], more].concat();
        let mut terminal = Terminal::run_with(&words, variables);
        terminal.resize(80, 100);
        let (code, lines) = terminal.end();
        assert_eq!(code, 0, "{lines:#?}");
        assert!(lines.iter().any(|line| line.contains("best")), "{lines:#?}");
        let cells = (0..100).flat_map(|row| (0..80).map(move |column| (row, column)));
        let filled = |cell: &vt100::Cell| cell.bgcolor() != vt100::Color::Default;
        cells.filter_map(|(row, column)| terminal.screen().cell(row, column)).filter(|cell| filled(cell)).count()
    };
    for file in [&file, &log] {
        assert!(coloured(file, &[], &[]) > 16);
        assert_eq!(coloured(file, &[], &[("NO_COLOR", "1")]), 0);
        assert_eq!(coloured(file, &["--color", "never"], &[]), 0);
        assert!(coloured(file, &[], &[("NO_COLOR", "")]) > 16, "an empty one is none");
        assert!(coloured(file, &["--color", "always"], &[("NO_COLOR", "1")]) > 16, "the option is nearer");
    }
}

#[test]
fn any_frame_of_a_pack_of_games_is_the_frame_of_its_file() {
    let folder = chess();
    let pack = folder.path().join("pack");
    let all = seen(&pack, &[])["frames"].as_u64().unwrap();
    let mut before = 0;
    for game in 0..3_u64 {
        let name = format!("training.{}.gz", game + 1);
        let file = only(&folder.path().join("games"), &name);
        let frames = seen(&file, &[])["frames"].as_u64().unwrap();
        for at in [0, frames - 1] {
            let own = seen(&file, &["--frame", &at.to_string()])["frame"].clone();
            let counted = seen(&pack, &["--frame", &(before + at).to_string()])["frame"].clone();
            let named = seen(&pack, &["--chunk", &game.to_string(), "--frame", &at.to_string()])["frame"].clone();
            assert_eq!(counted, named);
            for (field, value) in own["record"].as_object().unwrap() {
                assert_eq!(&counted["record"][field], value, "{field}: a pack holds V7, with fields that V6 has not");
            }
            assert_eq!(counted["fen"], own["fen"]);
            assert_eq!((&counted["member"], &counted["chunk"]), (&Value::from(name.as_str()), &Value::from(game)));
        }
        before += frames;
    }
    assert_eq!(before, all);
    let shown = run(&["inspect", text(&pack), "--frame", "7"]).ok().out;
    assert!(shown.starts_with("chunk 0, frame 7 of ") && shown.contains("a b c d e f g h"), "{shown}");
    for (words, part) in [
        (&["--frame", &all.to_string()][..], format!("there is no frame {all}; the pack has {all}, counted from 0")),
        (&["--chunk", "3"], "there is no game 3; the pack has 3".to_owned()),
        (&["--chunk", "0", "--frame", "999"], "there is no frame 999 of game 0".to_owned()),
        (&["--run", "0"], "runs are those of packs of 2048".to_owned()),
    ] {
        let said = run(&[&["inspect", text(&pack)], words].concat());
        assert!(said.code != 0 && said.err.contains(&part), "{part}: {said:?}");
    }
}

#[test]
fn rows_of_a_2048_pack_are_found_by_row_and_by_run_and_step() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    run(&["generate", "2048", text(&at("logs")), "--games", "3", "--seed", "5", "--moves-max", "40", "-q"]).ok();
    for layout in ["aligned48", "packed46"] {
        let pack = at(layout);
        run(&["pack", text(&at("logs")), text(&pack), "--layout", layout, "-q"]).ok();
        let row = seen(&pack, &["--frame", "95"])["frame"].clone();
        assert_eq!((&row["run_id"], &row["step_index"], &row["seed"]), (&2.into(), &15.into(), &7.into()), "{layout}");
        assert_eq!(row, seen(&pack, &["--run", "2", "--step", "15"])["frame"]);
        assert_eq!(row, seen(&pack, &["--chunk", "2", "--frame", "15"])["frame"]);
        let log = only(&at("logs"), "game000002.jsonl.gz");
        let own = seen(&log, &["--frame", "15"])["frame"].clone();
        for field in ["ranks", "branches", "move", "board_eval"] {
            assert_eq!(row[field], own[field], "{field}");
        }
        let shown = run(&["inspect", text(&pack), "--run", "2", "--step", "15"]).ok().out;
        assert!(shown.starts_with("chunk 2, frame 15 of 40, steps.npy, row 95: run 2, step 15, seed 7"), "{shown}");
        assert!(shown.contains("best") && !shown.contains('\x1b'), "{shown}");
        let tinted = run(&["inspect", text(&pack), "--run", "2", "--step", "15", "--color=always"]).ok().out;
        assert!(tinted.contains("\x1b[48;5;255m"), "tiles have colours: {tinted}");
        for (words, part) in [
            (&["--frame", "120"][..], "there is no row 120; the pack has 120, counted from 0"),
            (&["--run", "2", "--step", "40"], "there is no step 40 of run 2; it has 40"),
            (&["--run", "9"], "there is no run 9"),
            (&["--chunk", "3"], "there is no game 3; the pack has 3"),
        ] {
            let said = run(&[&["inspect", text(&pack)], words].concat());
            assert!(said.code == 1 && said.err.contains(part), "{part}: {said:?}");
        }
    }
}
