//! The tables of `docs/format/chess.md` and `policy.md` against the code: offsets, sizes, tensors and indices.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use gristmill_format::chess::record::{Version, at};
use gristmill_format::chess::{InputFormat, Output, layout_v6, layout_v7, policy};
use gristmill_format::layout::{DType, Layout, Scalar};

const CHESS: &str = include_str!("../../../docs/format/chess.md");
const POLICY: &str = include_str!("../../../docs/format/policy.md");

/// The body rows of the table under a heading, as trimmed cells without backquotes.
fn table(page: &str, heading: &str) -> Vec<Vec<String>> {
    let section = page.split(&format!("\n## {heading}\n")).nth(1).unwrap_or_else(|| panic!("no section {heading}"));
    let lines = section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| line.trim_matches('|').split('|').map(|c| c.trim().replace('`', "")).collect();
    lines.skip(2).map(cells).collect()
}

fn type_text(code: &str) -> String {
    let (kind, bytes) = code.split_at(1);
    format!("{kind}{}", 8 * bytes.parse::<usize>().unwrap())
}

#[test]
fn the_field_table_is_the_layout() {
    let rows = table(CHESS, "Fields");
    let fields = |layout: &Layout| -> Vec<(usize, String, String)> {
        let fields = layout.fields().iter().map(|field| {
            let DType::Scalar(scalar, _) = &field.dtype else { panic!("{} is nested", field.name) };
            let shape = field.shape.first().map(|n| format!(" ({n})")).unwrap_or_default();
            (field.offset, type_text(&scalar.code()) + &shape, field.name.clone())
        });
        fields.collect()
    };
    let documented: Vec<_> = rows.iter().map(|r| (r[0].parse().unwrap(), r[1].clone(), r[2].clone())).collect();
    assert_eq!(documented, fields(layout_v7()));
    let within_v6: Vec<_> = documented.into_iter().filter(|(offset, ..)| *offset < layout_v6().size()).collect();
    assert_eq!(within_v6, fields(layout_v6()));
}

#[test]
fn the_offset_constants_are_those_of_the_table() {
    let rows = table(CHESS, "Fields");
    #[rustfmt::skip]
    let constants = [
        at::VERSION, at::INPUT_FORMAT, at::PROBABILITIES, at::PLANES, at::CASTLING_US_OOO, at::CASTLING_US_OO,
        at::CASTLING_THEM_OOO, at::CASTLING_THEM_OO, at::SIDE_TO_MOVE_OR_ENPASSANT, at::RULE50_COUNT,
        at::INVARIANCE_INFO, at::DUMMY, at::ROOT_Q, at::BEST_Q, at::ROOT_D, at::BEST_D, at::ROOT_M, at::BEST_M,
        at::PLIES_LEFT, at::RESULT_Q, at::RESULT_D, at::PLAYED_Q, at::PLAYED_D, at::PLAYED_M, at::ORIG_Q, at::ORIG_D,
        at::ORIG_M, at::VISITS, at::PLAYED_IDX, at::BEST_IDX, at::POLICY_KLD, at::Q_ST, at::D_ST, at::OPP_PLAYED_IDX,
        at::NEXT_PLAYED_IDX, at::RESERVED,
    ];
    let documented: Vec<usize> = rows.iter().map(|r| r[0].parse().unwrap()).collect();
    assert_eq!(constants[..], documented);
}

#[test]
fn the_version_and_format_tables_are_complete() {
    let versions: Vec<_> = table(CHESS, "Versions").iter().map(|r| (r[0].clone(), r[1].clone())).collect();
    assert_eq!(versions, Version::ALL.map(|v| (v.number().to_string(), v.bytes().to_string())));
    let formats: Vec<_> = table(CHESS, "Input formats").iter().map(|r| r[0].clone()).collect();
    assert_eq!(formats, InputFormat::ALL.map(|f| f.value().to_string()));
}

#[test]
fn the_tensor_table_is_what_the_outputs_make() {
    let mut documented = Vec::new();
    for row in table(CHESS, "Tensors") {
        let shape: Vec<usize> =
            row[3].trim_matches(['(', ')']).split(", ").filter(|n| !n.is_empty()).map(|n| n.parse().unwrap()).collect();
        for name in row[0].split(", ") {
            let tensor = if row[1] == "same" { name } else { &row[1] };
            documented.push((name.to_owned(), tensor.to_owned(), row[2].clone(), shape.clone()));
        }
    }
    let mut made = Vec::new();
    for name in Output::names() {
        for (i, spec) in Output::parse(name).unwrap().specs().into_iter().enumerate() {
            let dtype = match spec.dtype {
                Scalar::Bool => "bool".to_owned(),
                Scalar::Bf16 => "bf16".to_owned(),
                other => type_text(&other.code()),
            };
            made.push((if i == 0 { name.to_owned() } else { String::new() }, spec.name, dtype, spec.row_shape));
        }
    }
    documented.sort();
    made.sort();
    assert_eq!(documented, made);
}

#[test]
fn the_published_indices_are_those_of_the_table() {
    let section = POLICY.split_once("\n| move | index |").unwrap().1;
    let mut checked = 0;
    for row in section.lines().skip(2).take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        for pair in cells.chunks_exact(2) {
            assert_eq!(policy::entry(pair[1].parse().unwrap()).unwrap().to_string(), pair[0]);
            checked += 1;
        }
    }
    assert_eq!(checked, 12);
}
