//! Every row of the tables about lines of raw logs: what is taken, and what is refused where.
//! Lines are made from a good one by one change each.

use gristmill_format::Kind;
use gristmill_format::g2048::log::Remark;
use gristmill_format::source::Limits;

use super::{LINE, parse, row, sidecar};

/// The good line with one part replaced.
fn with(was: &str, is: &str) -> String {
    let line = LINE.replacen(was, is, 1);
    assert_ne!(line, LINE, "{was}");
    line
}

#[test]
fn the_acceptance_case_of_the_packer() {
    let line = r#"{"move":"right","board":[0,1,2,3,4,16,6,7,8,9,10,11,12,13,14,15],"branch_evs":{"up":0.9,"down":0.7,"left":0.3,"right":null}}"#;
    let row = row(line);
    assert_eq!((row.board, row.tile_65536_mask, row.board_eval), (0x0123_4f67_89ab_cdef, 32, -39_035_046));
    assert_eq!((row.move_dir, row.branch_evs, row.ev_legal), (3, [0.9, 0.7, 0.3, 0.0], 7));
    assert_eq!((row.seed, row.max_rank, row.step_index, row.valuation_type), (9, 15, 0, 0));
}

#[test]
fn absent_and_null_take_their_defaults() {
    for (was, nothing) in [
        ("\"seed\":272350805,", ["", "\"seed\":null,"]),
        ("\"step_index\":7,", ["", "\"step_index\":null,"]),
        ("\"max_rank\":15,", ["", "\"max_rank\":null,"]),
        ("\"valuation_type\":\"search\",", ["", "\"valuation_type\":null,"]),
    ] {
        let [absent, null] = nothing.map(|is| row(with(was, is)));
        assert_eq!(absent, null);
        let (seed, index) =
            (if was.contains("seed") { 9 } else { 272_350_805 }, if was.contains("step") { 0 } else { 7 });
        assert_eq!((absent.seed, absent.step_index, absent.max_rank, absent.valuation_type), (seed, index, 15, 0));
    }
    let evs = row(with(r#","branch_evs":{"up":null,"left":0.034000,"right":-0.000000,"down":-1587.186000}"#, ""));
    assert_eq!((evs.ev_legal, evs.branch_evs.map(f32::to_bits)), (0, [0; 4]));
    assert_eq!(row(with("\"up\":null,", "")), row(LINE), "a branch that is missing is null");
    assert_eq!(row(with("\"valuation\":-1587.186000,", "")), row(LINE), "the valuation is not stored");
}

#[test]
fn indices_go_on_from_the_row_before_and_stop_at_the_end() {
    let none = with("\"step_index\":7,", "");
    let at = |n: u64| with("\"step_index\":7", &format!("\"step_index\":{n}"));
    let (_, rows) = parse(
        [none.clone(), none.clone(), at(40), none.clone(), at(3), at(4_294_967_294), none.clone(), none].join("\n"),
    )
    .unwrap();
    let indices: Vec<u32> = rows.iter().map(|row| row.step_index).collect();
    assert_eq!(indices, [0, 1, 40, 41, 3, u32::MAX - 1, u32::MAX, u32::MAX]);
}

#[test]
fn numbers_at_the_edge_are_taken_as_defined() {
    assert_eq!(row(with("272350805", "9223372036854775809")).seed, 1, "the low 32 bits");
    for (ev, bits, legal) in [
        ("0", 0.0f32, true),
        ("0.0", 0.0, true),
        ("0.000000", 0.0, true),
        ("-0.0", -0.0, true),
        ("-0", -0.0, true),
        ("-0.000000", -0.0, true),
        ("1e40", f32::INFINITY, true),
        ("-1E+40", f32::NEG_INFINITY, true),
        ("1e-50", 0.0, true),
        ("16777217", 16_777_216.0, true),
        ("18446744073709551616", 18_446_744_073_709_551_616.0, true),
        ("0.817681", 0.817_681, true),
        ("null", 0.0, false),
    ] {
        let row = row(with("0.034000", ev));
        assert_eq!((row.branch_evs[2].to_bits(), row.ev_legal >> 2 & 1 == 1), (bits.to_bits(), legal), "{ev}");
    }
}

#[test]
fn a_decimal_becomes_binary64_and_then_binary32() {
    // Halfway between two binary32 but for what binary64 drops: rounding once would give the other neighbour.
    let text = "1.000000059604644775390625000001";
    let row = row(with("0.034000", text));
    assert_eq!(row.branch_evs[2], text.parse::<f64>().unwrap() as f32);
    assert_ne!(row.branch_evs[2], text.parse::<f32>().unwrap());
}

#[test]
fn unknown_and_doubled_keys_are_defined() {
    assert_eq!(
        row(with("{\"seed\"", r#"{"notes":{"a":[1,null,{"b":"\u0041"}]},"num_empty":3,"num_empty":4,"seed""#)),
        row(LINE)
    );
    assert_eq!(row(with("}}", r#"},"score":12}"#)), row(LINE));
    let (summary, rows) = parse(with("{\"up\":null", r#"{"sideways":0.5,"up":null"#)).unwrap();
    assert_eq!((rows[0], summary.remarks), (row(LINE), vec![Remark::UnknownBranches(1)]));
    let twice = row(with("\"up\":null", r#""up":0.25,"down":1,"up":0.5"#));
    assert_eq!((twice.branch_evs[0], twice.branch_evs[1], twice.ev_legal), (0.5, -1587.186, 15), "the last one wins");
    assert_eq!(row(with("\"up\":null", r#""up":0.25,"up":null"#)), row(LINE));
    for key in ["seed", "step_index", "max_rank", "move", "valuation_type", "board", "branch_evs"] {
        let at = LINE.find(&format!("\"{key}\"")).unwrap();
        let value = match key {
            "move" => "\"up\"",
            "board" => "[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]",
            "branch_evs" => "{}",
            _ => "null",
        };
        let line = format!("{}\"{key}\":{value},{}", &LINE[..at], &LINE[at..]);
        let e = parse(&line).unwrap_err();
        assert!(e.kind() == Kind::Corrupt && e.detail().contains(&format!("duplicate field `{key}`")), "{e}");
    }
}

#[test]
fn boards_are_judged_by_their_true_ranks() {
    let board = |cells: &str| with("15,13,11,1,14,12,1,0,0,0,0,0,0,0,0,0", cells);
    for rank in [16, 17] {
        let row = row(board(&format!("0,0,0,{rank},0,0,0,0,0,0,0,0,0,0,0,0")));
        assert_eq!((row.board, row.tile_65536_mask), (0x000f << 48, 8));
        assert_eq!(row.board_eval, -10 * (rank << rank));
    }
    for (cells, why) in [
        ("0,0,0,25,0,0,0,0,0,0,0,0,0,0,0,0", "beyond 32 bits"),
        ("0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,40", "cell 15 has rank 40"),
        ("32,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0", "cell 0 has rank 32"),
        ("0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,255", "cell 15 has rank 255"),
    ] {
        let e = parse(format!("\n{LINE}\n{}\n", board(cells))).unwrap_err();
        assert!(e.kind() == Kind::OutOfRange && e.detail().contains(why), "{e}");
        let column = LINE.find("\"board\"").unwrap() as u64 + 1;
        let byte = 1 + LINE.len() as u64 + 1 + column - 1;
        assert_eq!((e.place().line, e.place().offset), (Some((3, column)), Some(byte)));
    }
}

#[test]
fn what_is_no_step_is_refused_with_line_and_column() {
    let board = "[15,13,11,1,14,12,1,0,0,0,0,0,0,0,0,0]";
    let evs = r#"{"up":null,"left":0.034000,"right":-0.000000,"down":-1587.186000}"#;
    let cases: Vec<(String, &str)> = vec![
        ("\u{feff}".to_owned() + LINE, "byte-order mark"),
        (with("0.034000", "NaN"), "expected value"),
        (with("0.034000", "Infinity"), "expected value"),
        (with("0.034000", "\"0.03\""), "invalid type: string"),
        (with("0.034000", "1e400"), "out of range"),
        (with("0.034000", "00.5"), "number"),
        (with("null", "None"), "expected"),
        (LINE.replace('"', "'"), "key must be a string"),
        (with("down\",", "Down\","), "expected `up`, `down`, `left` or `right`"),
        (with("\"move\":\"down\"", "\"move\":null"), "invalid type: null"),
        (with("\"move\":\"down\",", ""), "missing field `move`"),
        (with(&format!("\"board\":{board},"), ""), "missing field `board`"),
        (with(board, "null"), "invalid type: null"),
        (with(board, "[1,2,3]"), "invalid length 3"),
        (with(board, "[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]"), "16 ranks"),
        (with("[15,", "[256,"), "256"),
        (with("[15,", "[-1,"), "-1"),
        (with("[15,", "[15.0,"), "floating point"),
        (with("[15,", "[1e1,"), "floating point"),
        (with(evs, "null"), "invalid type: null"),
        (with(evs, "[1,2,3,4]"), "sequence"),
        (with("272350805", "-5"), "-5"),
        (with("272350805", "1.5"), "floating point"),
        (with("272350805", "18446744073709551616"), "expected u64"),
        (with("\"step_index\":7", "\"step_index\":4294967296"), "4294967296"),
        (with("\"max_rank\":15", "\"max_rank\":256"), "256"),
        (with("\"search\"", "5"), "integer `5`"),
        (with("\"search\"", "\"\""), "valuation_type is empty"),
        (with("}}", "}"), "EOF"),
        (with("}}", "}}{}"), "trailing characters"),
        ("[]".to_owned(), "sequence"),
        ("7".to_owned(), "integer"),
    ];
    for (line, why) in cases {
        let text =
            if line.starts_with('\u{feff}') { line.clone() } else { format!("{LINE}\r\n\n  \n{line}\n{LINE}\n") };
        let first = if line.starts_with('\u{feff}') { 1 } else { 4 };
        let e = parse(&text).unwrap_err();
        assert!(matches!(e.kind(), Kind::Corrupt | Kind::OutOfRange) && e.detail().contains(why), "{line}: {e}");
        let (found, column) = e.place().line.unwrap();
        assert!(found == first && (1..=line.len() as u64 + 1).contains(&column), "{line}: {e}");
        assert!(e.place().offset.unwrap() <= text.len() as u64);
    }
}

#[test]
fn bytes_that_are_no_text_are_refused_at_their_column() {
    let mut line = with("{\"seed\"", r#"{"note":"?","seed""#).into_bytes();
    line[9] = 0xff;
    let e = parse(line).unwrap_err();
    assert_eq!((e.kind(), e.place().line), (Kind::Corrupt, Some((1, 10))));
}

#[test]
fn blank_lines_and_all_ends_of_lines_are_harmless() {
    for text in [
        LINE.to_owned(),
        format!("{LINE}\n"),
        format!("{LINE}\r\n"),
        format!("\n\r\n \t\n{LINE}\n\n"),
        format!("  {LINE}  \r"),
        format!("\u{a0}\n{LINE}"),
    ] {
        assert_eq!(row(&text), row(LINE), "{text:?}");
    }
}

#[test]
fn nothing_and_odd_counts_are_remarked_on() {
    let (summary, rows) = parse("").unwrap();
    assert!(rows.is_empty());
    assert_eq!(summary.remarks, [Remark::RowCount { found: 0, promised: 1 }, Remark::NoEvs]);
    let (summary, _) = parse(format!("{LINE}\n{LINE}")).unwrap();
    assert_eq!(summary.remarks, [Remark::RowCount { found: 2, promised: 1 }]);
    assert_eq!(summary.remarks[0].to_string(), "2 rows, the sidecar says 1 moves");
    assert!(parse(LINE).unwrap().0.remarks.is_empty());
}

#[test]
fn names_of_valuations_get_ids_in_order() {
    let named = |name: &str| with("\"search\"", &format!("\"{name}\""));
    let lines = ["tuple10", "line_plan", "tuple11", "se\\u0061rch", "caf\u{e9}", "line_plan"].map(named);
    let (summary, rows) = parse(lines.join("\n")).unwrap();
    assert_eq!(rows.iter().map(|row| row.valuation_type).collect::<Vec<_>>(), [2, 3, 1, 0, 4, 3]);
    assert_eq!(summary.valuations.names()[3..], ["line_plan", "caf\u{e9}"]);
    let many: Vec<String> = (0..254).map(|i| named(&format!("v{i}"))).collect();
    let e = parse(many.join("\n")).unwrap_err();
    assert_eq!((e.kind(), e.place().line.unwrap().0), (Kind::OutOfRange, 254));
}

#[test]
fn rows_beyond_the_bound_are_refused_before_they_are_made() {
    let mut rows = Vec::new();
    let text = [LINE; 3].join("\n");
    let limits = Limits { max_chunk_bytes: 2 * 48 + 47 };
    let e = gristmill_format::g2048::log::parse_game(&sidecar(), text.as_bytes(), &limits, &mut rows).unwrap_err();
    assert_eq!((e.kind(), e.place().line.unwrap().0, rows.len()), (Kind::TooLarge, 3, 96));
}
