//! Bodies of the `log_line`, `sidecar`, `tokenizer` and `rows` fuzz targets: arbitrary bytes as files of 2048; panics when a
//! promise breaks.
//! Shared, as source, with the replay of their corpora on stable Rust.

use gristmill_format::Kind;
use gristmill_format::g2048::encode::{Branches, Tokenizer, Valuation};
use gristmill_format::g2048::form::{Columns, Form, Step};
use gristmill_format::g2048::log::{Game, RowDefaults, Sidecar, parse_fixed, parse_json, parse_piece, pieces};
use gristmill_format::g2048::source::LogFile;
use gristmill_format::layout::{Conform, Layout};
use gristmill_format::source::{Chunk, ChunkSource};

use super::LIMITS;

/// The parser of the producer's form and the JSON one give the same step wherever the first takes a line; a text gives
/// the same rows, or the same refusal, in one piece and in many; refusals say where.
pub fn log_line(data: &[u8]) {
    if let Some((step, used)) = parse_fixed(data) {
        let line = data[..used].strip_suffix(b"\n").unwrap_or(&data[..used]);
        let other = parse_json(line).expect("the producer's form is JSON").expect("and not blank");
        assert_eq!(step.evs.map(f32::to_bits), other.evs.map(f32::to_bits));
        assert_eq!(step, other);
    }
    let whole = in_pieces(data, usize::MAX);
    if let Err(e) = &whole {
        let (line, column) = e.place().line.expect("a refusal says its line");
        assert!(line > 0 && column > 0 && e.place().offset.is_some_and(|at| at <= data.len() as u64), "{e}");
    }
    assert_eq!(in_pieces(data, 1), whole);
    assert_eq!(in_pieces(data, data.len() / 3), whole);
    let mut chunk = Chunk::default();
    match LogFile::new("fuzz.jsonl.gz").decode(0, data, &LIMITS, &mut chunk) {
        Ok(()) => assert!(chunk.frames > 0 && chunk.records().len() <= LIMITS.max_chunk_bytes),
        Err(e) => assert!(e.place().offset.is_some() && chunk.frames == 0, "{e}"),
    }
}

/// Rows of a text that is parsed in pieces of at least `wanted` bytes, and how many names of valuations it has.
fn in_pieces(text: &[u8], wanted: usize) -> gristmill_format::Result<(Vec<u8>, usize)> {
    let (mut game, mut rows) = (Game::default(), Vec::new());
    for piece in pieces(text, wanted) {
        let mut own = Vec::new();
        let defaults = RowDefaults { seed: 7, max_rank: 3 };
        let parsed = parse_piece(piece, &defaults, LIMITS.max_chunk_bytes, &mut own).map_err(|e| game.place(e))?;
        game.join(&parsed, &mut own)?;
        rows.extend(own);
    }
    Ok((rows, game.valuations().names().len()))
}

/// What is taken has facts within their ranges and extras that are JSON; refusals say line and column.
pub fn sidecar(data: &[u8]) {
    match Sidecar::parse(data) {
        Ok(sidecar) => {
            let mut text = format!(
                "{{\"seed\":{},\"num_moves\":{},\"score\":{},\"max_tile\":{}",
                sidecar.seed, sidecar.num_moves, sidecar.score, sidecar.max_tile
            );
            if let Some(rank) = sidecar.max_rank {
                text += &format!(",\"max_rank\":{rank}");
            }
            for (i, (_, value)) in sidecar.extras.iter().enumerate() {
                text += &format!(",\"extra{i}\":{value}");
            }
            let again = Sidecar::parse((text + "}").as_bytes()).expect("facts and extras are JSON");
            let values = |sidecar: &Sidecar| sidecar.extras.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>();
            assert_eq!(values(&again), values(&sidecar));
            assert_eq!(Sidecar { extras: Vec::new(), ..again }, Sidecar { extras: Vec::new(), ..sidecar });
        }
        Err(e) => assert!(e.kind() == Kind::Corrupt && e.place().line.is_some(), "{e}"),
    }
}

/// What is taken comes back the same from its own text, and gives every row classes that there are.
pub fn tokenizer(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(tokenizer) = Tokenizer::from_json(text) else { return };
    for indent in [0, 2] {
        assert_eq!(Tokenizer::from_json(&tokenizer.to_json(indent)).expect("our own text"), tokenizer);
    }
    let number =
        |i: usize| f32::from_bits(data.iter().skip(i).take(4).fold(0, |bits, byte| bits << 8 | u32::from(*byte)));
    for (i, valuation) in (0..64).flat_map(|i| Valuation::ALL.map(|valuation| (i, valuation))) {
        let board_eval = (i % 3 != 0).then_some(number(i + 9).to_bits().cast_signed());
        let (legal, chosen) = (i as u8, (i / 16) as u8);
        let row = Branches { values: [0, 1, 2, 3].map(|j| number(i + j)), legal, chosen, board_eval };
        if let Ok(classes) = tokenizer.classes(valuation, &row) {
            assert!(classes.iter().all(|class| usize::from(*class) < tokenizer.num_classes()));
            assert_eq!(usize::from(classes[usize::from(chosen)]), tokenizer.num_classes() - 1);
        }
    }
}

/// The first line is the description of a layout, the rest records of it: a form is recognized or refused, its records
/// are steps or refused, and a step gives the same step when it is written and read again.
pub fn rows(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let Ok(descr) = std::str::from_utf8(&data[..end]) else { return };
    let Ok(layout) = Layout::parse_descr(descr) else { return };
    let Ok(columns) = Columns::of(&layout) else { return };
    let form = columns.form();
    let Ok(conform) = Conform::new(&layout, form.layout()) else { return };
    let whole = Columns::of(form.layout()).expect("its own layout");
    for record in data.get(end + 1..).unwrap_or_default().chunks_exact(layout.size()) {
        let mut own = vec![0; form.layout().size()];
        conform.record(record, &mut own);
        let step = match columns.step(&own) {
            Ok(step) => step,
            Err(e) => {
                assert!(e.kind() == Kind::OutOfRange && matches!(form, Form::SelfPlay | Form::Exponents), "{e}");
                continue;
            }
        };
        assert!(step.row.decoded_board().max_rank() <= 16 && step.run_id as u32 == step.row.run_id);
        let mut written = Vec::new();
        form.write(&step, &mut written);
        let again: Step = whole.step(&written).expect("what was written");
        let bits = |step: &Step| (step.row.to_aligned(), step.run_id);
        assert_eq!(bits(&again), bits(&step));
    }
}
