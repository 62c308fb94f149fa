//! Every field of a sound game perturbed in turn: the rule that owns it catches it, alone; what no rule can judge is
//! listed here, and only here.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use gristmill_engine::open::open;
use gristmill_format::chess::check::{self, Breach, Rule, Rules};
use gristmill_format::chess::record::at;
use gristmill_format::chess::rescore::{Rescorer, Settings};
use gristmill_format::chess::{Frame, FrameMut, InputFormat, Version, layout_v6, layout_v7};
use gristmill_format::source::Chunk;
use gristmill_generate::{ChessGenerator, ChessOptions};

/// Generated games in a format, each as one run of records.
fn games(version: Version, format: InputFormat) -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_owned();
    let options = ChessOptions { folder, games: 2, first: 1, seed: 11, plies_max: 26, version, games_per_tar: None };
    let mut generator = ChessGenerator::new(options).unwrap();
    let settings = Settings { input_format: Some(format), keep_v6: true, ..Settings::default() };
    let rescorer = Rescorer::new(settings, None).unwrap();
    let mut games = Vec::new();
    while let Some(file) = generator.write_next().unwrap() {
        let mut chunk = Chunk::default();
        open(&file.path).unwrap().chunk(0, &mut chunk).unwrap();
        rescorer.run(&mut chunk).unwrap();
        games.push(chunk.records().to_vec());
    }
    games
}

fn judged(game: &[u8], size: usize, rules: Rules) -> Vec<Breach> {
    let frames: Vec<Frame<'_>> = game.chunks_exact(size).map(|record| Frame::new(record).unwrap()).collect();
    let mut breaches = Vec::new();
    check::game(&frames, rules, &mut |breach| {
        breaches.push(breach);
        ControlFlow::Continue(())
    });
    breaches
}

type Perturb = Box<dyn Fn(&mut Vec<u8>)>;

/// One way to perturb a record, and the rules that must catch it, each alone; any of `or` is enough.
struct Fault {
    field: &'static str,
    what: &'static str,
    caught_by: &'static [Rule],
    perturb: Perturb,
}

fn bytes(field: &'static str, what: &'static str, rule: Rule, offset: usize, value: impl AsRef<[u8]>) -> Fault {
    let value = value.as_ref().to_vec();
    let perturb = move |record: &mut Vec<u8>| record[offset..offset + value.len()].copy_from_slice(&value);
    Fault { field, what, caught_by: Vec::leak(vec![rule]), perturb: Box::new(perturb) }
}

fn changed(
    field: &'static str,
    what: &'static str,
    caught_by: &'static [Rule],
    perturb: impl Fn(&mut FrameMut<'_>) + 'static,
) -> Fault {
    let perturb = move |record: &mut Vec<u8>| perturb(&mut FrameMut::new(record).unwrap());
    Fault { field, what, caught_by, perturb: Box::new(perturb) }
}

/// Searched values: what is in range cannot be judged, since the result of the search is unknown.
const VALUES: [(&str, usize, bool); 16] = [
    ("root_q", at::ROOT_Q, false),
    ("best_q", at::BEST_Q, false),
    ("root_d", at::ROOT_D, false),
    ("best_d", at::BEST_D, false),
    ("root_m", at::ROOT_M, false),
    ("best_m", at::BEST_M, false),
    ("plies_left", at::PLIES_LEFT, false),
    ("result_q", at::RESULT_Q, false),
    ("result_d", at::RESULT_D, false),
    ("played_q", at::PLAYED_Q, false),
    ("played_d", at::PLAYED_D, false),
    ("played_m", at::PLAYED_M, false),
    ("orig_q", at::ORIG_Q, true),
    ("orig_d", at::ORIG_D, true),
    ("orig_m", at::ORIG_M, true),
    ("policy_kld", at::POLICY_KLD, false),
];

fn faults(version: Version, format: InputFormat) -> Vec<Fault> {
    let mut faults = vec![
        bytes("version", "another", Rule::Version, at::VERSION, [5, 0, 0, 0]),
        bytes("input_format", "unknown", Rule::InputFormat, at::INPUT_FORMAT, [9, 0, 0, 0]),
        bytes("input_format", "another", Rule::InputFormat, at::INPUT_FORMAT, [132, 0, 0, 0]),
        bytes("rule50_count", "over 100", Rule::Rule50, at::RULE50_COUNT, [101]),
        changed("rule50_count", "one more", &[Rule::Rule50], |f| {
            f.set_rule50_count(f.as_frame().rule50_count() + 1);
        }),
        bytes("dummy", "not 0", Rule::Reserved, at::DUMMY, [1]),
        changed("visits", "none", &[Rule::Visits], |f| {
            f.set_visits(0);
        }),
        changed("result_q", "another", &[Rule::Result], |f| {
            let q = f.as_frame().result_q();
            f.set_result_q(if q == 0.0 { 1.0 } else { -q });
        }),
        changed("result_q", "a fraction", &[Rule::Result], |f| {
            let q = f.as_frame().result_q();
            f.set_result_q(q + if q > 0.0 { -0.9 } else { 0.9 });
        }),
        changed("result_d", "another", &[Rule::Result], |f| {
            f.set_result_d(1.0 - f.as_frame().result_d());
        }),
        changed("plies_left", "more or less", &[Rule::PliesLeft], |f| {
            let left = f.as_frame().plies_left();
            f.set_plies_left(left + 2.5);
        }),
        changed("played_idx", "another legal move", &[Rule::PlayedIdx], |f| {
            let frame = f.as_frame();
            let other = (0..1858).find(|i| frame.probability(usize::from(*i)) >= 0.0 && *i != frame.played_idx());
            f.set_played_idx(other.unwrap_or(0));
        }),
        bytes("played_idx", "no move", Rule::PlayedIdx, at::PLAYED_IDX, 1858u16.to_le_bytes()),
        bytes("best_idx", "no move", Rule::BestIdx, at::BEST_IDX, 1858u16.to_le_bytes()),
        changed("best_idx", "an illegal move", &[Rule::BestIdx], |f| {
            let frame = f.as_frame();
            let illegal = (0..1858).find(|i| frame.probability(usize::from(*i)) < 0.0);
            f.set_best_idx(illegal.unwrap_or(0));
        }),
        probability("a legal move made illegal", &[Rule::PolicyMoves], true, |_| -1.0),
        probability("an illegal move made legal", &[Rule::PolicyMoves], false, |_| 0.0),
        probability("more for a legal move", &[Rule::PolicySum], true, |p| if p < 0.5 { p + 0.1 } else { p - 0.1 }),
        probability("over 1", &[Rule::PolicyValues], true, |_| 1.5),
        probability("negative", &[Rule::PolicyValues], false, |_| -0.5),
        probability("infinite", &[Rule::PolicyValues], true, |_| f32::INFINITY),
        probability("NaN for a legal move", &[Rule::PolicyMoves], true, |_| f32::NAN),
    ];
    faults.extend(position_bytes(format));
    for (field, offset, may_be_unknown) in VALUES {
        if !may_be_unknown {
            faults.push(bytes(field, "NaN", Rule::Nan, offset, f32::NAN.to_le_bytes()));
        }
        faults.push(bytes(field, "infinite", Rule::Nan, offset, f32::INFINITY.to_le_bytes()));
        faults.push(bytes(field, "below", Rule::Values, offset, (-1.5f32).to_le_bytes()));
        if field.ends_with("_q") || field.ends_with("_d") {
            faults.push(bytes(field, "above", Rule::Values, offset, 1.5f32.to_le_bytes()));
        }
    }
    for plane in 0..104 {
        let (board, k) = (plane / 13, plane % 13);
        let caught_by: &[Rule] = match (board, k) {
            // Canonical formats choose among the boards before, and judge them whole.
            (1.., _) if format.is_canonical() => &[Rule::History],
            (_, 12) => &[Rule::Repetition],
            (0, _) => &[Rule::Moves, Rule::History, Rule::Men],
            _ => &[Rule::History],
        };
        faults.push(changed("planes", "a bit", caught_by, move |f| {
            f.set_plane(plane, f.as_frame().plane(plane) ^ 1 << (plane % 64));
        }));
        if k == 12 {
            faults.push(changed("planes", "all bits", caught_by, move |f| {
                f.set_plane(plane, !f.as_frame().plane(plane));
            }));
        }
    }
    if version == Version::V7 {
        for (field, offset) in [("q_st", at::Q_ST), ("d_st", at::D_ST)] {
            faults.push(bytes(field, "NaN", Rule::Nan, offset, f32::NAN.to_le_bytes()));
            faults.push(bytes(field, "out of range", Rule::Values, offset, 1.5f32.to_le_bytes()));
        }
        for (field, offset) in [("opp_played_idx", at::OPP_PLAYED_IDX), ("next_played_idx", at::NEXT_PLAYED_IDX)] {
            faults.push(bytes(field, "another", Rule::NextMoves, offset, 7u16.to_le_bytes()));
        }
        faults.push(bytes("reserved", "not 0", Rule::Reserved, at::RESERVED + 12, 1f32.to_le_bytes()));
    }
    faults
}

/// Ways to perturb the bytes after the planes, whose meaning is the format's.
fn position_bytes(format: InputFormat) -> Vec<Fault> {
    const PASSING: &str = "side_to_move_or_enpassant";
    let mut faults = Vec::new();
    let (no_right, right) = if format.has_castling_masks() { (3, 1 << 3) } else { (2, 1) };
    for (field, offset) in [
        ("castling_us_ooo", at::CASTLING_US_OOO),
        ("castling_us_oo", at::CASTLING_US_OO),
        ("castling_them_ooo", at::CASTLING_THEM_OOO),
        ("castling_them_oo", at::CASTLING_THEM_OO),
    ] {
        faults.push(bytes(field, "no flag", Rule::Castling, offset, [no_right]));
        let other = move |record: &mut Vec<u8>| record[offset] = if record[offset] == 0 { right } else { 0 };
        faults.push(Fault { field, what: "the other", caught_by: &[Rule::Castling], perturb: Box::new(other) });
    }
    if format.is_canonical() {
        faults.push(bytes(PASSING, "two files", Rule::EnPassant, at::SIDE_TO_MOVE_OR_ENPASSANT, [3]));
        faults.push(changed(PASSING, "a file or none", &[Rule::EnPassant], |f| {
            f.set_side_to_move_or_enpassant(f.as_frame().side_to_move_or_enpassant() ^ 1);
        }));
    } else {
        faults.push(bytes(PASSING, "no side", Rule::SideToMove, at::SIDE_TO_MOVE_OR_ENPASSANT, [2]));
        faults.push(changed(PASSING, "the other", &[Rule::SideToMove], |f| {
            f.set_side_to_move_or_enpassant(1 - f.as_frame().side_to_move_or_enpassant());
        }));
    }
    // Bits 3 (proven) and 6 (deleted) are a search's and a tool's to say.
    for bit in [0, 1, 2, 4, 5, 7] {
        let caught_by: &[Rule] = match bit {
            // What is left may be the transform of the mirrored position: then no move leads there.
            0..=2 if format.is_canonical() => &[Rule::Transform, Rule::Moves],
            7 if format.is_canonical() => &[Rule::SideToMove],
            _ => &[Rule::Flags],
        };
        let flip = move |record: &mut Vec<u8>| record[at::INVARIANCE_INFO] ^= 1 << bit;
        faults.push(Fault { field: "invariance_info", what: "a bit", caught_by, perturb: Box::new(flip) });
    }
    faults
}

/// A probability of a legal or an illegal move, made another.
fn probability(
    what: &'static str,
    caught_by: &'static [Rule],
    legal: bool,
    other: impl Fn(f32) -> f32 + 'static,
) -> Fault {
    changed("probabilities", what, caught_by, move |f| {
        let frame = f.as_frame();
        let i = (0..1858).rev().find(|i| (frame.probability(*i) >= 0.0) == legal).unwrap_or(0);
        let p = frame.probability(i);
        f.set_probability(i, other(p));
    })
}

#[test]
fn every_perturbed_field_is_caught_by_the_rule_that_owns_it() {
    every_fault_is_caught(Version::V6, InputFormat::Classical);
    every_fault_is_caught(Version::V7, InputFormat::Classical);
}

#[test]
fn and_so_it_is_in_the_other_formats() {
    every_fault_is_caught(Version::V6, InputFormat::Castling);
    every_fault_is_caught(Version::V7, InputFormat::CanonicalHectoplies);
    every_fault_is_caught(Version::V6, InputFormat::CanonicalV2);
}

fn every_fault_is_caught(version: Version, format: InputFormat) {
    let faults = faults(version, format);
    for game in games(version, format) {
        let size = version.bytes();
        let frames = game.len() / size;
        assert_eq!(judged(&game, size, Rules::ALL), [], "a sound game");
        // It is unknown whether a canonical format shows the boards before the game.
        let first = if format.is_canonical() { [8, 9] } else { [1, 2] };
        for i in [first[0], first[1], frames / 2, frames - 2] {
            for fault in &faults {
                let mut record = game[i * size..(i + 1) * size].to_vec();
                (fault.perturb)(&mut record);
                assert_ne!(record, game[i * size..(i + 1) * size], "{} {}", fault.field, fault.what);
                let broken = [&game[..i * size], &record, &game[(i + 1) * size..]].concat();
                let alone = |rule: &Rule| judged(&broken, size, Rules::NONE.with(*rule));
                let found = fault.caught_by.iter().map(alone).find(|found| !found.is_empty());
                let Some(found) = found else {
                    panic!("{:?}: frame {i} of {frames}, {} {}", fault.caught_by, fault.field, fault.what);
                };
                let near = |breach: &Breach| breach.frame.abs_diff(i) <= 8;
                assert!(found.iter().any(near), "{found:?}: frame {i}, {} {}", fault.field, fault.what);
            }
        }
    }
    let owned: BTreeSet<&str> = faults.iter().map(|fault| fault.field).collect();
    // V6 does not define what it means.
    let unjudgeable = if version == Version::V6 { &["q_st"][..] } else { &[] };
    let layout = if version == Version::V6 { layout_v6() } else { layout_v7() };
    for field in layout.fields() {
        let name = field.name.as_ref();
        assert_ne!(owned.contains(name), unjudgeable.contains(&name), "{name} in {version:?}");
    }
}

#[test]
fn games_that_are_cut_joined_or_shuffled_are_caught() {
    let size = Version::V6.bytes();
    let games = games(Version::V6, InputFormat::Classical);
    let (one, other) = (&games[0], &games[1]);
    let at = |i: usize| i * size;
    for (what, game) in [
        ("a frame is missing", [&one[..at(5)], &one[at(6)..]].concat()),
        ("two frames are missing", [&one[..at(5)], &one[at(7)..]].concat()),
        ("a frame is there twice", [&one[..at(5)], &one[at(4)..]].concat()),
        ("two frames are exchanged", [&one[..at(5)], &one[at(6)..at(7)], &one[at(5)..at(6)], &one[at(7)..]].concat()),
        ("another game follows", [&one[..at(6)], &other[at(6)..]].concat()),
    ] {
        let found = judged(&game, size, Rules::DEFAULT);
        for rule in [Rule::History, Rule::Moves] {
            assert!(found.iter().any(|breach| breach.rule == rule), "{what}, {rule}: {found:?}");
        }
    }
    let half = &one[..at(one.len() / size / 2)];
    assert_eq!(judged(half, size, Rules::ALL), [], "where a game stops, nothing is wrong with what is there");
    assert_eq!(judged(&one[at(9)..], size, Rules::ALL), [], "nor where it starts");
}
