//! A game cut into pieces at any place gives the rows, the names and the errors of the game as a whole;
//! and the parser of the producer's form agrees with the JSON one on whatever both take.

use gristmill_format::Result;
use gristmill_format::g2048::log::{Game, GameSummary, parse_fixed, parse_game, parse_json, parse_piece, pieces};
use gristmill_format::source::Limits;
use proptest::prelude::*;

use super::{LINE, sidecar};

/// Parses in pieces of at least `wanted` bytes.
fn in_pieces(text: &[u8], wanted: usize, rows: &mut Vec<u8>) -> Result<GameSummary> {
    let mut game = Game::default();
    rows.clear();
    for piece in pieces(text, wanted) {
        let mut own = Vec::new();
        let parsed = parse_piece(piece, &sidecar().defaults(), usize::MAX, &mut own).map_err(|e| game.place(e))?;
        game.join(&parsed, &mut own)?;
        rows.extend(own);
    }
    Ok(game.finish(&sidecar()))
}

fn line() -> impl Strategy<Value = String> {
    let index = prop_oneof![3 => Just(None), 1 => any::<u32>().prop_map(Some), 1 => Just(Some(u32::MAX - 1))];
    let name = prop::sample::select(vec!["search", "tuple10", "tuple11", "line_plan", "block_plan", "x"]);
    let good = (index, name).prop_map(|(index, name)| {
        let key = index.map_or(String::new(), |index| format!("\"step_index\":{index},"));
        LINE.replace("\"step_index\":7,", &key).replace("search", name)
    });
    prop_oneof![8 => good, 1 => Just(String::new()), 1 => Just(LINE.replace("null", "1e3"))]
}

/// A line in the producer's form or one edit away from it.
fn edited() -> impl Strategy<Value = Vec<u8>> {
    let ev = prop_oneof![
        4 => (any::<bool>(), 0u64..1_000_000_000, 0u32..1_000_000)
            .prop_map(|(minus, whole, part)| format!("{}{whole}.{part:06}", if minus { "-" } else { "" })),
        1 => Just("null".to_owned()),
    ];
    let ranks = prop::array::uniform16(0u8..40);
    let line = (any::<u64>(), any::<u32>(), any::<u8>(), ranks, prop::array::uniform5(ev)).prop_map(
        |(seed, index, most, ranks, [value, up, left, right, down])| {
            format!(
                "{{\"seed\":{seed},\"step_index\":{index},\"max_rank\":{most},\"move\":\"left\",\
                 \"valuation_type\":\"tuple10\",\"valuation\":{value},\"board\":{},\
                 \"branch_evs\":{{\"up\":{up},\"left\":{left},\"right\":{right},\"down\":{down}}}}}",
                format!("{ranks:?}").replace(' ', "")
            )
        },
    );
    let edit = prop::option::of((any::<prop::sample::Index>(), prop::option::of(any::<u8>()), any::<bool>()));
    (line, edit).prop_map(|(line, edit)| {
        let mut line = line.into_bytes();
        if let Some((at, byte, insert)) = edit {
            let at = at.index(line.len());
            match byte {
                Some(byte) if insert => line.insert(at, byte),
                Some(byte) => line[at] = byte,
                None => drop(line.remove(at)),
            }
        }
        line
    })
}

proptest! {
    #[test]
    fn both_parsers_agree(line in edited()) {
        if let Some((step, used)) = parse_fixed(&line) {
            let other = parse_json(line[..used].strip_suffix(b"\n").unwrap_or(&line[..used])).unwrap().unwrap();
            prop_assert_eq!(step.evs.map(f32::to_bits), other.evs.map(f32::to_bits));
            prop_assert_eq!(step, other);
        }
    }

    #[test]
    fn decimals_round_as_the_standard_library_does(minus: bool, whole in 0u64..1_000_000_000, part in 0u32..1_000_000) {
        let ev = format!("{}{whole}.{part:06}", if minus { "-" } else { "" });
        let line = LINE.replace("0.034000", &ev);
        let (step, _) = parse_fixed(line.as_bytes()).unwrap();
        prop_assert_eq!(step.evs[2].to_bits(), (ev.parse::<f64>().unwrap() as f32).to_bits());
    }

    #[test]
    fn the_cut_changes_nothing(lines in prop::collection::vec(line(), 0..12), wanted in 1usize..1200, ended: bool) {
        let text = lines.join("\n") + if ended { "\n" } else { "" };
        let (mut whole, mut parts) = (Vec::new(), Vec::new());
        let summary = parse_game(&sidecar(), text.as_bytes(), &Limits::default(), &mut whole).unwrap();
        prop_assert_eq!(in_pieces(text.as_bytes(), wanted, &mut parts).unwrap(), summary);
        prop_assert_eq!(parts, whole);
    }

    #[test]
    fn the_cut_does_not_move_an_error(
        lines in prop::collection::vec(line(), 0..12),
        at in any::<prop::sample::Index>(),
        wanted in 1usize..1200,
        bad in prop::sample::select(vec!["{\"move\":1}", "nonsense", "{\"move\":\"up\",\"board\":[40,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}"]),
    ) {
        let mut lines = lines;
        let at = at.index(lines.len() + 1);
        lines.insert(at, bad.to_owned());
        let text = lines.join("\n");
        let whole = parse_game(&sidecar(), text.as_bytes(), &Limits::default(), &mut Vec::new()).unwrap_err();
        prop_assert_eq!(whole.place().line.unwrap().0, at as u64 + 1);
        prop_assert_eq!(in_pieces(text.as_bytes(), wanted, &mut Vec::new()).unwrap_err(), whole);
    }
}

#[test]
fn pieces_are_whole_lines_and_all_of_the_text() {
    let text = b"one\ntwo\n\nfour";
    assert_eq!(pieces(text, 1).collect::<Vec<_>>(), [&b"one\n"[..], b"two\n", b"\n", b"four"]);
    assert_eq!(pieces(text, 5).collect::<Vec<_>>(), [&b"one\ntwo\n"[..], b"\nfour"]);
    assert_eq!(pieces(text, 0).count(), 4);
    assert_eq!(pieces(text, usize::MAX).count(), 1);
    assert_eq!(pieces(b"", 1).count(), 0);
}
