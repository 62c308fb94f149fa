//! Sidecars: what is kept, what is refused and where, and which names belong together.

use gristmill_format::Kind;
use gristmill_format::g2048::log::{Sidecar, is_sidecar, steps_name};

use super::SIDECAR;

#[test]
fn the_facts_are_kept_and_everything_else_as_it_was_written() {
    let text = r#" {"steps_file":"a/b.jsonl.gz","score":18446744073709551615,"seed":1,"x":{"y":[1.50]},"num_moves":0,
"seconds":50.247026,"max_tile":0,"x":2} "#;
    let sidecar = Sidecar::parse(text.as_bytes()).unwrap();
    assert_eq!((sidecar.seed, sidecar.num_moves, sidecar.score, sidecar.max_tile), (1, 0, u64::MAX, 0));
    assert_eq!(sidecar.max_rank, None);
    let extras: Vec<(&str, &str)> = sidecar.extras.iter().map(|(key, value)| (&**key, &**value)).collect();
    assert_eq!(
        extras,
        [("steps_file", "\"a/b.jsonl.gz\""), ("x", "{\"y\":[1.50]}"), ("seconds", "50.247026"), ("x", "2")]
    );
    assert_eq!(Sidecar::parse(SIDECAR.as_bytes()).unwrap().max_rank, Some(15));
    assert_eq!(Sidecar::parse(SIDECAR.replace("15}", "null}").as_bytes()).unwrap().max_rank, None);
}

#[test]
fn what_is_no_sidecar_is_refused_with_line_and_column() {
    for (was, is, why) in [
        ("\"seed\": 9", "\"seed\": -1", "-1"),
        ("\"seed\": 9", "\"seed\": 1.0", "floating point"),
        ("\"seed\": 9", "\"seed\": null", "null"),
        ("\"seed\": 9", "\"seed\": 18446744073709551616", "expected u64"),
        ("\"seed\": 9", "\"seed\": 9, \"seed\": 9", "duplicate field `seed`"),
        ("\"seed\": 9, ", "", "missing field `seed`"),
        ("\"num_moves\": 1, ", "", "missing field `num_moves`"),
        ("\"score\": 795564, ", "", "missing field `score`"),
        ("\"score\": 795564", "\"score\": -5", "-5"),
        ("\"score\": 795564", "\"score\": 795564.0", "floating point"),
        ("\"max_tile\": 32768, ", "", "missing field `max_tile`"),
        ("\"max_tile\": 32768", "\"max_tile\": 4294967296", "4294967296"),
        ("15}", "256}", "256"),
        ("15}", "15", "EOF"),
        ("15}", "15}x", "trailing"),
        ("{\"seed\"", "\u{feff}{\"seed\"", "byte-order mark"),
        ("{\"seed\"", "[{\"seed\"", "sequence"),
        ("6", "NaN", "expected"),
    ] {
        let text = SIDECAR.replacen(was, is, 1);
        assert_ne!(text, SIDECAR);
        let e = Sidecar::parse(text.as_bytes()).unwrap_err();
        assert!(e.kind() == Kind::Corrupt && e.detail().contains(why), "{text}: {e}");
        assert!(e.place().line.is_some_and(|(line, column)| line == 1 && column <= text.len() as u64 + 1), "{e}");
    }
    for text in ["", "null", "3"] {
        assert_eq!(Sidecar::parse(text.as_bytes()).unwrap_err().kind(), Kind::Corrupt);
    }
    let e = Sidecar::parse(b"{\n\"seed\": \"\xff\"}").unwrap_err();
    assert_eq!((e.place().line, e.place().offset), (Some((2, 10)), Some(11)));
}

#[test]
fn names_tell_sidecars_and_what_lies_beside_them() {
    for (name, steps) in [
        ("d/g.meta.json", Some("d/g.jsonl.gz")),
        ("g.meta.json.gz", Some("g.jsonl.gz")),
        (".meta.json", Some(".jsonl.gz")),
        ("g.meta.meta.json", Some("g.meta.jsonl.gz")),
        ("g.META.json", None),
        ("g.meta.json.GZ", None),
        ("g.json", None),
        ("g.jsonl.gz", None),
    ] {
        assert_eq!((steps_name(name).as_deref(), is_sidecar(name)), (steps, steps.is_some()), "{name}");
    }
}
