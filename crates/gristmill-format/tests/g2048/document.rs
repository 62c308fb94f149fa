//! The tables of `docs/format/g2048.md` and of the pages on other forms against the code: fields, offsets, keys.

use gristmill_format::g2048::Form;
use gristmill_format::g2048::row::{ALIGNED_BYTES, PACKED_BYTES, layout_aligned, layout_packed};
use gristmill_format::g2048::value::{VALUE_BYTES, value_layout};
use gristmill_format::layout::{DType, Layout};

use super::{LINE, SIDECAR, parse};

const PAGE: &str = include_str!("../../../../docs/format/g2048.md");

/// The body rows of the first table after a heading, as trimmed cells without backquotes.
fn table(heading: &str) -> Vec<Vec<String>> {
    table_of(PAGE, heading)
}

fn table_of(page: &str, heading: &str) -> Vec<Vec<String>> {
    let section = page.split(&format!("{heading}\n")).nth(1).unwrap_or_else(|| panic!("no section {heading}"));
    let lines = section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| line.trim_matches('|').split('|').map(|c| c.trim().replace('`', "")).collect();
    lines.skip(2).map(cells).collect()
}

/// Name, type and offset of each field.
fn fields(layout: &Layout) -> Vec<(String, String, usize)> {
    let fields = layout.fields().iter().map(|field| {
        let DType::Scalar(scalar, _) = &field.dtype else { panic!("{} is nested", field.name) };
        let shape = field.shape.first().map(|n| format!(" ({n},)")).unwrap_or_default();
        (field.name.clone(), format!("{}{shape}", scalar.code()), field.offset)
    });
    fields.collect()
}

#[test]
fn the_pages_on_other_forms_have_their_fields() {
    for (page, heading, form) in [
        (include_str!("../../../../docs/format/g2048-self-play.md"), "## Rows", Form::SelfPlay),
        (include_str!("../../../../docs/format/g2048-legacy.md"), "# Legacy expectimax packs", Form::Legacy),
    ] {
        let documented: Vec<(String, String, usize)> =
            table_of(page, heading).iter().map(|r| (r[0].clone(), r[1].clone(), r[2].parse().unwrap())).collect();
        assert_eq!(documented, fields(form.layout()));
        assert!(page.contains(&format!("{} bytes, packed.", form.layout().size())));
    }
    let page = include_str!("../../../../docs/format/g2048-values.md");
    let documented: Vec<(String, String, usize)> =
        table_of(page, "## Value rows").iter().map(|r| (r[0].clone(), r[1].clone(), r[2].parse().unwrap())).collect();
    assert_eq!(documented, fields(value_layout()));
    assert!(page.contains(&format!("{VALUE_BYTES} bytes, packed")));
    let page = include_str!("../../../../docs/format/g2048-exponents.md");
    let documented = table_of(page, "# Exponents: rows of 2048 made one");
    for (row, (name, code, _)) in documented.iter().zip(fields(Form::Exponents.layout())) {
        assert_eq!((&row[0], &row[1]), (&name, &code));
    }
}

#[test]
fn the_field_table_is_both_layouts() {
    let rows = table("## Step rows");
    let documented = |column: usize| -> Vec<(String, String, usize)> {
        rows.iter().map(|r| (r[0].clone(), r[1].clone(), r[column].parse().unwrap())).collect()
    };
    assert_eq!(documented(2), fields(layout_aligned()));
    assert_eq!(documented(3), fields(layout_packed()));
    assert!(PAGE.contains(&format!("A row is {ALIGNED_BYTES} bytes aligned")));
    assert!(PAGE.contains(&format!("and {PACKED_BYTES} packed")));
}

#[test]
fn keys_that_the_page_calls_refused_are() {
    let refused = |heading: &str| -> Vec<String> {
        table(heading).into_iter().filter(|row| row[2] == "refused").map(|row| row[0].clone()).collect()
    };
    for key in ["seed", "num_moves", "score", "max_tile", "max_rank", "other"] {
        let text = SIDECAR.replace(&format!("\"{key}\""), "\"renamed\"");
        let parsed = gristmill_format::g2048::log::Sidecar::parse(text.as_bytes());
        assert_eq!(parsed.is_err(), refused("### Sidecar").contains(&key.to_owned()), "{key}");
    }
    for key in ["seed", "step_index", "max_rank", "move", "valuation_type", "board", "branch_evs", "valuation"] {
        let parsed = parse(LINE.replace(&format!("\"{key}\""), "\"renamed\""));
        assert_eq!(parsed.is_err(), refused("### Lines").contains(&key.to_owned()), "{key}");
    }
}
