//! The 2048 encoders through their public face: published tokenizer vectors, and augmentation that moves everything together.
//! The vectors are found through `GRISTMILL_SHARED`, else in `shared` beside the repository; without them the test says so.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests and benches may open files and take the time"
)]
#![allow(clippy::print_stderr, reason = "a skipped test must be seen")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use gristmill_format::Kind;
use gristmill_format::encode::{Encoder, Provenance, RandomBits, Row};
use gristmill_format::g2048::encode::{
    Augment, Binner, Branches, Classes, Draw, Element, StepEncoder, Symmetry, Target, Tokenizer, Valuation, ValueShape,
    ValueTargets,
};
use gristmill_format::g2048::value::{Support, ValueField};
use gristmill_format::g2048::{Board, Packed, heuristic};
use serde_json::Value;

fn vectors() -> Option<Value> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("GRISTMILL_SHARED").map_or_else(beside, PathBuf::from);
    let path = shared.join("vectors/macroxue/loader_vectors.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        eprintln!("skipped: no vectors at {}; set GRISTMILL_SHARED", path.display());
        return None;
    };
    Some(serde_json::from_str(&text).unwrap())
}

#[test]
fn every_published_row_gets_its_classes() {
    let Some(vectors) = vectors() else { return };
    let tokenizer = Tokenizer::from_json(&vectors["tokenizer_v2"]["spec"].to_string()).unwrap();
    let cases = vectors["tokenizer_v2"]["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 22);
    for case in cases {
        let values: Vec<f64> = serde_json::from_value(case["branch_evs_f32"].clone()).unwrap();
        let row = Branches {
            values: std::array::from_fn(|i| values[i] as f32),
            legal: case["ev_legal"].as_u64().unwrap() as u8,
            chosen: case["move_dir"].as_u64().unwrap() as u8,
            board_eval: case["board_eval"].as_i64().map(|eval| eval as i32),
        };
        let found = Valuation::named(case["valuation_type"].as_str().unwrap())
            .and_then(|valuation| tokenizer.classes(valuation, &row).ok());
        let expected: Option<[u16; 4]> = serde_json::from_value(case["tokens"].clone()).unwrap();
        assert_eq!(found, expected, "{case}");
    }
}

/// Fields of a row that the encoders look at.
#[derive(Clone)]
struct Step {
    board: u64,
    mask: u16,
    eval: i32,
    chosen: u8,
    valuation: u8,
    legal: u8,
    values: [f32; 4],
}

impl Step {
    fn bytes(&self) -> Vec<u8> {
        let mut out = vec![7, 0, 0, 0, 9, 0, 0, 0];
        out.extend_from_slice(&self.board.to_le_bytes());
        out.extend_from_slice(&self.eval.to_le_bytes());
        out.extend_from_slice(&self.mask.to_le_bytes());
        out.extend_from_slice(&[self.chosen, self.valuation, self.legal, 15, 0, 0, 1, 0, 0, 0]);
        self.values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
        out
    }

    /// The same position in another symmetry, as a log would have recorded it.
    fn seen(&self, symmetry: Symmetry) -> Step {
        let (board, mask) = (symmetry.board(self.board), symmetry.cells(self.mask));
        Step {
            board,
            mask,
            eval: eval(board, mask),
            chosen: symmetry.direction(self.chosen),
            legal: symmetry.directions(self.legal),
            values: symmetry.branches(self.values),
            ..self.clone()
        }
    }
}

fn eval(board: u64, mask: u16) -> i32 {
    heuristic::board_eval(&Board::unpack(Packed { board, mask })).unwrap()
}

fn step() -> Step {
    let (board, mask) = (0xFDB1_EC10_0230_0001, 1 << 5);
    Step {
        board,
        mask,
        eval: eval(board, mask),
        chosen: 3,
        valuation: 0,
        legal: 0b1011,
        values: [-4.5, -5.0, 0.0, -3.5],
    }
}

fn encode(encoder: &StepEncoder, step: &Step, bits: u64) -> gristmill_format::Result<Vec<Vec<u8>>> {
    encode_record(encoder, &step.bytes(), bits)
}

fn encode_record(encoder: &StepEncoder, record: &[u8], bits: u64) -> gristmill_format::Result<Vec<Vec<u8>>> {
    let mut out: Vec<Vec<u8>> = encoder.outputs().iter().map(|spec| vec![0xEE; spec.row_bytes()]).collect();
    let mut slices: Vec<&mut [u8]> = out.iter_mut().map(Vec::as_mut_slice).collect();
    encoder
        .encode(&[Row { record, provenance: Provenance::default(), bits: bits.into(), sparse: None }], &mut slices)?;
    Ok(out)
}

fn targets() -> Vec<Target> {
    let tokenizer = r#"{"tokenizer_type": "macroxue_ev_advantage_v2", "version": 2, "num_bins": 4,
        "vocab_order": ["ILLEGAL", "FAILURE", "BIN_0", "BIN_1", "BIN_2", "BIN_3", "WINNER"],
        "valuation_types": ["search", "tuple10", "tuple11"],
        "search": {"bin_edges": [-5000, -1000, -200, -20, 0], "failure_cutoff": -99999999},
        "tuple10": {"bin_edges": [-2, -1, -0.2, -0.05, 0]}, "tuple11": {"bin_edges": [-2.5, -1.5, -0.4, -0.05, 0]}}"#;
    let classes =
        Classes::new(Tokenizer::from_json(tokenizer).unwrap(), &["search", "tuple11", "tuple10", "line_plan"]);
    vec![Target::Steps, Target::HardMove, Target::BinnedEv(Binner::default()), Target::Tokens(classes)]
}

fn random(i: u64) -> u64 {
    let z = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z ^ z >> 31
}

/// Acceptance case 12 and more: each symmetry gives what the turned position itself would give.
#[test]
fn augmented_rows_are_what_the_turned_position_would_be() {
    let any = Augment { rotate: Draw::Any, flip: Draw::Any };
    for target in targets() {
        let plain = StepEncoder::new(target.clone(), Augment::default(), Element::I64).unwrap();
        let augmented = StepEncoder::new(target.clone(), any, Element::I64).unwrap();
        assert!(augmented.draws() && !plain.draws());
        let mut seen = std::collections::BTreeSet::new();
        for valuation in [0, 1, 2] {
            let step = Step { valuation, ..step() };
            for bits in (0..64).map(random) {
                let turned = step.seen(any.symmetry(bits));
                let expected = encode(&plain, &turned, 0).unwrap();
                assert_eq!(encode(&augmented, &step, bits).unwrap(), expected, "{target:?}, {bits:#x}");
                assert_eq!(encode(&plain, &step, bits).unwrap(), encode(&plain, &step, 0).unwrap());
                seen.insert(expected[0].clone());
            }
        }
        assert_eq!(seen.len(), 8, "all symmetries were drawn");
    }
}

/// The ten bytes of `docs/format/compact.md`, in any symmetry; targets do not change.
#[test]
fn nibbles_are_the_tokens() {
    let any = Augment { rotate: Draw::Any, flip: Draw::Any };
    let plain = StepEncoder::new(Target::HardMove, Augment::default(), Element::U8).unwrap().nibbles();
    assert_eq!(plain.outputs()[0].name, "board_nibbles");
    let golden = [0xfd, 0xb1, 0xef, 0x10, 0x02, 0x30, 0x00, 0x01, 0x20, 0x00];
    assert_eq!(encode(&plain, &step(), 0).unwrap()[0], golden);
    for target in targets() {
        let tokens = StepEncoder::new(target, any, Element::U8).unwrap();
        let nibbles = tokens.clone().nibbles();
        for bits in (0..64).map(random) {
            let (expected, found) = (encode(&tokens, &step(), bits).unwrap(), encode(&nibbles, &step(), bits).unwrap());
            assert_eq!((found.len(), &found[1..]), (expected.len(), &expected[1..]));
            let row = &found[0];
            let cell = |i: usize| match row[8 + i / 8] >> (i % 8) & 1 {
                1 => 16,
                _ => row[i / 2] >> (4 * (1 - i % 2)) & 15,
            };
            assert_eq!((0..16).map(cell).collect::<Vec<_>>(), expected[0]);
        }
    }
}

/// The six words of `docs/format/compact.md`, beside the row as it is.
#[test]
fn a_device_is_told_where_the_bits_are_drawn() {
    let augment = Augment { rotate: Draw::Changed, flip: Draw::Any };
    for target in targets() {
        let encoder = StepEncoder::new(target.clone(), augment, Element::I64).unwrap();
        let plain = StepEncoder::new(target.clone(), Augment::default(), Element::I64).unwrap();
        let device = match encoder.drawn_on_device() {
            Ok(encoder) => encoder,
            Err(e) => {
                assert!(matches!(target, Target::Tokens(_)) && e.detail().contains("draw on the host"), "{e}");
                continue;
            }
        };
        assert!(device.draws() && device.outputs()[1].name == "symmetry_draws");
        let bits = RandomBits { bits: u64::MAX, key: 0x0102_0304_0506_0708, number: 1 << 33, words: 4 };
        let record = step().bytes();
        let mut out: Vec<Vec<u8>> = device.outputs().iter().map(|spec| vec![0xEE; spec.row_bytes()]).collect();
        let row = Row { record: &record, provenance: Provenance::default(), bits, sparse: None };
        device.encode(&[row], &mut out.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>()).unwrap();
        let words: Vec<u32> = out.remove(1).as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        assert_eq!(words, [0x0506_0708, 0x0102_0304, 0, 2, 4, 2 + 3]);
        assert_eq!(out, encode(&plain, &step(), 0).unwrap());
        assert_eq!(plain.outputs().len(), plain.drawn_on_device().unwrap().outputs().len(), "nothing is drawn");
    }
}

#[test]
fn the_targets_are_those_of_the_row() {
    let ints = |bytes: &[u8]| -> Vec<i64> {
        bytes.chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect()
    };
    let encoded: Vec<Vec<Vec<u8>>> = targets()
        .into_iter()
        .map(|target| encode(&StepEncoder::new(target, Augment::default(), Element::I64).unwrap(), &step(), 5).unwrap())
        .collect();
    for tensors in &encoded {
        assert_eq!(ints(&tensors[0]), [15, 13, 11, 1, 14, 16, 1, 0, 0, 2, 3, 0, 0, 0, 0, 1]);
    }
    assert_eq!((ints(&encoded[0][1]), ints(&encoded[0][2])), (vec![7], vec![9]));
    assert_eq!(ints(&encoded[1][2]), [3]);
    assert_eq!((ints(&encoded[2][2]), &encoded[2][3]), (vec![0, 0, 0, 0], &vec![1, 1, 0, 1]));
    assert_eq!(ints(&encoded[3][1]), [3, 2, 0, 6]);
}

#[test]
fn rows_that_no_class_fits_are_refused_with_their_place() {
    let encoder = StepEncoder::new(targets().remove(3), Augment::default(), Element::U8).unwrap();
    for (step, word) in [
        (Step { valuation: 3, ..step() }, "line_plan"),
        (Step { valuation: 9, ..step() }, "valuation id 9"),
        (Step { chosen: 4, ..step() }, "move 4"),
        (Step { chosen: 2, ..step() }, "not legal"),
        (Step { values: [f32::NAN; 4], ..step() }, "not finite"),
    ] {
        let error = encode(&encoder, &step, 0).unwrap_err();
        assert_eq!(error.kind(), Kind::OutOfRange);
        assert!(error.to_string().contains(word) && error.place().frame == Some(0), "{error}");
    }
    let many = (0..=254).map(|i| f64::from(i) - 254.0).collect::<Vec<_>>();
    let wide = Tokenizer::new([many.clone(), many.clone(), many], 0, serde_json::Map::new()).unwrap();
    let target = Target::Tokens(Classes::new(wide, &["search"]));
    assert!(StepEncoder::new(target.clone(), Augment::default(), Element::U8).is_err());
    assert!(StepEncoder::new(target, Augment::default(), Element::I32).is_ok());
}

/// Spec 0.2: the reference trains each tuple type with the other's bins. Only under its name.
#[test]
fn the_mix_up_of_ids_is_there_by_name_only() {
    let Target::Tokens(classes) = targets().remove(3) else { unreachable!("the fourth is tokens") };
    let step = Step { valuation: 1, values: [0.9, 0.6, 0.0, 0.7], chosen: 0, ..step() };
    let made = |classes: Classes| {
        let encoder = StepEncoder::new(Target::Tokens(classes), Augment::default(), Element::U8).unwrap();
        encode(&encoder, &step, 0).unwrap().remove(1)
    };
    assert_eq!(made(classes.clone()), [6, 4, 5, 4], "by name: tuple11");
    assert_eq!(made(classes.with_swapped_tuple_ids()), [6, 3, 5, 4], "as tuple10");
}

/// What existing loaders trip over: rows without what a target needs. The refusal says what does fit.
#[test]
fn rows_that_lack_what_a_target_needs_are_refused_with_what_fits() {
    let layout = |descr: &str| gristmill_format::layout::Layout::parse_descr(descr).unwrap();
    let board = layout("[('run_id', '<u4'), ('board', '<u8')]");
    let moves = layout("[('board', '<u8'), ('branch_evs', '<f4', (4,)), ('move_dir', '|u1')]");
    let exponents = layout("[('exps', '|u1', (16,))]");
    let nothing = layout("[('run_id', '<u4')]");
    let fits = |layout: &gristmill_format::layout::Layout| -> Vec<Result<(), String>> {
        let encoders = targets().into_iter().map(|t| StepEncoder::new(t, Augment::default(), Element::I64).unwrap());
        encoders.map(|encoder| encoder.fits(layout).map_err(|e| e.detail().to_owned())).collect()
    };
    for bare in [board, exponents] {
        let found = fits(&bare);
        assert!(found[0].is_ok());
        for (i, missing) in [(1, "`branch_evs`, `move_dir`"), (2, "`branch_evs`"), (3, "`board_eval`")] {
            let refusal = found[i].clone().unwrap_err();
            assert!(refusal.contains(missing) && refusal.ends_with("what fits them: steps"), "{refusal}");
        }
    }
    let found = fits(&moves);
    assert!(found[..3].iter().all(Result::is_ok));
    assert!(found[3].clone().unwrap_err().ends_with("what fits them: steps, hard_move, binned_ev"));
    assert!(fits(&nothing).iter().all(|found| found.clone().unwrap_err().contains("no encoder of 2048 rows fits")));
    assert!(fits(gristmill_format::g2048::row::layout_packed()).iter().all(Result::is_ok));
}

/// The table of `docs/format/g2048-tensors.md` is what the encoders say of themselves.
#[test]
fn the_page_lists_the_tensors() {
    let page = include_str!("../../../docs/format/g2048-tensors.md");
    let section = page.split("\n## Tensors\n").nth(1).unwrap();
    let lines = section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect()
    };
    let documented: Vec<Vec<String>> = lines.skip(2).map(cells).map(|row| row[..4].to_vec()).collect();
    let mut found = Vec::new();
    for (name, target) in ["steps", "hard_move", "binned_ev", "tokens"].into_iter().zip(targets()) {
        let (wide, narrow) = (Element::I64, Element::U8);
        let specs = |element| StepEncoder::new(target.clone(), Augment::default(), element).unwrap().outputs().to_vec();
        for (spec, small) in specs(wide).into_iter().zip(specs(narrow)) {
            let fixed = match spec.dtype {
                gristmill_format::layout::Scalar::F32 => "f32",
                gristmill_format::layout::Scalar::Bool => "bool",
                _ => "i64",
            };
            let dtype = if spec.dtype == small.dtype { fixed } else { "whole" };
            let shape = spec.row_shape.first().map_or("()".to_owned(), |n| format!("({n},)"));
            let encoder = if spec.name == "tokens" { "all" } else { name };
            found.push([encoder, &spec.name, dtype, &shape].map(str::to_owned).to_vec());
        }
    }
    found.sort_unstable();
    found.dedup();
    let mut sorted = documented;
    sorted.sort_unstable();
    assert_eq!(sorted, found);
}

/// Acceptance case 17: what values become beside the targets of every encoder, and what is refused.
#[test]
fn values_beside_rows_become_targets() {
    for target in targets() {
        let plain = StepEncoder::new(target.clone(), Augment::default(), Element::I64).unwrap();
        let record = [step().bytes(), 123.25f32.to_le_bytes().to_vec()].concat();
        let expected = encode(&plain, &step(), 0).unwrap();
        for (form, width) in [(ValueShape::Scalar, 1), (ValueShape::TwoHot, 601)] {
            let targets = ValueTargets { field: ValueField::default(), shape: form, support: Support::default() };
            let encoder = plain.clone().valued(targets).unwrap();
            let spec = encoder.outputs().last().unwrap();
            let shape = spec.row_shape.first().map_or("()".to_owned(), |n| format!("({n},)"));
            let page = include_str!("../../../docs/format/g2048-values.md");
            assert!(page.contains(&format!(" | `f32` | {shape} | ")), "{shape}");
            assert_eq!((spec.name.as_str(), spec.row_bytes()), ("value_targets", 4 * width));
            let found = encode_record(&encoder, &record, 0).unwrap();
            assert_eq!(found[..expected.len()], expected);
            let values: Vec<f32> =
                found[expected.len()].as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
            match form {
                ValueShape::Scalar => assert_eq!(values, [123.25]),
                ValueShape::TwoHot => {
                    let weights: Vec<_> = (0..601).zip(values).filter(|(_, weight)| *weight != 0.0).collect();
                    assert_eq!(weights, [(123, 0.75), (124, 0.25)]);
                }
            }
            let broken = [step().bytes(), f32::NAN.to_le_bytes().to_vec()].concat();
            let e = encode_record(&encoder, &broken, 0).unwrap_err();
            assert!(e.kind() == Kind::OutOfRange && e.detail().contains("NaN"), "{e}");
            let e = encoder.fits(plain.input()).unwrap_err();
            assert!(e.kind() == Kind::Unfit && e.detail().contains("gristmill values"), "{e}");
        }
    }
}
