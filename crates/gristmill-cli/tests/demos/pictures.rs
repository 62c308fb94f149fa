//! Film strips: as PNG by name or by folder, in a terminal that shows colours, and nowhere else.

use std::fs;
use std::path::Path;

use gristmill_format::demo::picture::picture;
use gristmill_format::demo::value::Value;

use super::files::{imitation, names, shard, steps};
use crate::command::{run, text};
use crate::terminal::Terminal;

/// Sides and pixels of a PNG file: red values, row by row.
fn red(path: &Path) -> (usize, usize, Vec<u8>) {
    let bytes = fs::read(path).unwrap();
    let Value::Array { shape, bytes, .. } = picture(&bytes, 1 << 20).unwrap() else { panic!("an array") };
    (shape[1], shape[0], bytes.chunks_exact(3).map(|rgb| rgb[0]).collect())
}

#[test]
fn strips_are_written_as_png() {
    let folder = tempfile::tempdir().unwrap();
    let path = shard(&folder.path().join("demos.tar.zst"), &steps(&[5, 2]));
    let one = folder.path().join("one.png");
    let done = run(&["inspect", text(&path), "--png", text(&one), "--strip", "3", "--json"]).ok().json();
    assert_eq!(done["pictures"][0], text(&one));
    let (width, height, pixels) = red(&one);
    // Three pictures of 6 x 6 with borders of 4: steps 0, 2 and 4, whose pixels are their numbers.
    assert_eq!((width, height), (4 + 3 * 10, 14));
    assert_eq!([4, 14, 24].map(|x| pixels[4 * width + x]), [0, 2, 4]);
    assert_eq!((pixels[0], pixels[4 * width + 10]), (255, 255));
    run(&["inspect", text(&path), "--chunk", "1", "--frame", "1", "--png", text(&one), "--overwrite"]).ok();
    let (width, _, pixels) = red(&one);
    assert_eq!((width, pixels[4 * width + 4]), (14, 41));
    let all = folder.path().join("all");
    let words = ["inspect", text(&path), "--png", text(&all), "--field", "obs", "--field", "next_obs"];
    let said = run(&words).ok().out;
    let expected: Vec<String> =
        (0..2).flat_map(|i| ["next_obs", "obs"].map(|field| format!("trajectory-{i:06}-{field}.png"))).collect();
    assert_eq!(names(&all), expected);
    assert!(said.contains("written: ") && !said.contains('\x1b'), "{said}");
    let again = run(&words);
    assert!(again.code == 1 && again.err.contains("it exists"), "{again:?}");
    assert_eq!(names(&all), expected);
}

#[test]
fn what_is_no_picture_is_refused_and_a_pipe_gets_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = shard(&folder.path().join("demos.tar.zst"), &steps(&[5, 2]));
    let flat = folder.path().join("i.npz");
    imitation(&flat, &[3], 0.0);
    let out = folder.path().join("x.png");
    let png = ["--png", text(&out)];
    for (path, more, says) in [
        (&flat, &png[..], "`obs`: f4 [4] is no picture"),
        (&path, &[&png[..], &["--field", "acts"]].concat(), "no picture"),
        (&path, &[&png[..], &["--field", "pixels"]].concat(), "there is no field `pixels`; there are"),
        (&path, &[&png[..], &["--chunk", "2"]].concat(), "there is no trajectory 2; there are 2"),
        (&path, &[&png[..], &["--field", "obs", "--field", "next_obs"]].concat(), "one picture is of one field"),
        (&flat, &["--pictures", "always"], "no picture"),
    ] {
        let ran = run(&[&["inspect", text(path)], more].concat());
        assert!(ran.code != 0 && ran.err.contains(says), "{more:?}: {ran:?}");
        assert!(!out.exists());
    }
    let said = run(&["inspect", text(&path)]).ok().out;
    assert!(said.contains("2 chunks, 7 frames") && !said.contains('▀'), "{said}");
    let drawn = run(&["inspect", text(&path), "--pictures", "always"]).ok().out;
    assert!(drawn.contains("trajectory-000000-obs") && drawn.contains("\x1b[38;2;2;2;2m"), "{drawn}");
}

#[test]
fn a_terminal_that_shows_colours_gets_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let path = shard(&folder.path().join("demos.tar.zst"), &steps(&[5, 2]));
    let mut terminal = Terminal::run_with(&["inspect", text(&path)], &[("COLORTERM", "truecolor")]);
    terminal.wait_line(&["▀▀▀▀"]);
    let (code, _) = terminal.end();
    let colors = terminal.screen().cell(23, 0).map(|cell| cell.fgcolor());
    assert_eq!((code, colors.is_some()), (0, true));
    let mut plain = Terminal::run_with(&["inspect", text(&path)], &[("COLORTERM", "")]);
    let (code, lines) = plain.end();
    assert!(code == 0 && !lines.join("").contains('▀'), "{lines:?}");
}
