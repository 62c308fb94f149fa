//! Which tensors to make of a record: their names, dtypes and shapes, and the text that selects them.

use std::fmt;
use std::ops::RangeInclusive;

use gristmill_bytes::encode::TensorSpec;
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::Scalar;

use super::compact::{LEAST_PAIRS, LEGAL_BYTES, MOST_PAIRS, PACKED_BYTES, PAIRS};
use super::position::{self, CHANGES, MOST_CHANGES};
use crate::chess::record::{PLANES, POLICY};
use crate::nnue;

/// Element type of dense planes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Element {
    /// Binary32.
    F32,
    /// Binary16, rounded to nearest from the binary32 value.
    F16,
    /// The upper half of binary32, rounded to nearest from the binary32 value.
    Bf16,
    /// The stored integer; plane 109 holds the fifty-move count itself (see [`super::MetaPlane::raw`]).
    U8,
}

impl Element {
    /// The dtype of the tensor.
    pub fn scalar(self) -> Scalar {
        match self {
            Element::F32 => Scalar::F32,
            Element::F16 => Scalar::F16,
            Element::Bf16 => Scalar::Bf16,
            Element::U8 => Scalar::U8,
        }
    }

    /// Bytes of the 112 planes of one row.
    pub fn row_bytes(self) -> usize {
        self.scalar().size() * 112 * 64
    }
}

/// One selectable output. `[..]` below is the shape of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Output {
    /// `planes` `[112, 8, 8]`: rank, file; rank 0 is the side to move's first.
    Planes(Element),
    /// `planes` f32 `[112, 64]`: the same, flat, as older trainers take it.
    PlanesFlat,
    /// `planes` u64 `[104]` and `meta` u8 `[12]`: the record's words, bytes 8272..8280 and `input_format`.
    PlaneBits,
    /// `planes_packed` u8 `[844]`: words, bytes 8272..8280 and `input_format` back to back, for a device to expand.
    PlanesPacked,
    /// `planes_position` u8 `[43 + n + ceil(n / 2)]`: the men of the position, and what stood on up to n squares in the positions before
    /// it. A device makes planes of these.
    PlanesPosition(u16),
    /// `probs` f32 `[1858]`: the policy bit for bit; illegal moves are -1.
    Probs,
    /// `probs_indices` i16 `[n]` and `probs_values` f32 `[n]`: the moves that have another value than most, then -1 and that
    /// value; one pair at least is no move.
    ProbsSparse(u16),
    /// `values` f32 `[6, 3]`: result, best, played, orig, root, short-term, each (q, d, m); the last m is NaN.
    Values,
    /// `values` f32 `[6, 4]`: as [`Output::Values`], and of the result the plies until the next capture or pawn move,
    /// which whole games tell; all else is NaN.
    Values4,
    /// `winner` f32 `[3]`: win, draw, loss of the result.
    Winner,
    /// `best_q` f32 `[3]`: win, draw, loss of the best move.
    BestQ,
    /// `plies_left` f32 `[]`.
    PliesLeft,
    /// `legal` bool `[1858]`: whether the policy is >= 0 there.
    Legal,
    /// `legal_bits` u8 `[233]`: the same, bit `i % 8` of byte `i / 8`.
    LegalBits,
    /// `ids` u64 `[3]`: source, chunk, frame.
    Ids,
    /// `played_idx` i32 `[]`.
    PlayedIdx,
    /// `best_idx` i32 `[]`.
    BestIdx,
    /// `opp_played_idx` i32 `[]`: the reply, -1 if none.
    OppPlayedIdx,
    /// `next_played_idx` i32 `[]`: the move after the reply, -1 if none.
    NextPlayedIdx,
    /// What trainers of NNUE take: sparse features, and what goes with them.
    Nnue(nnue::Tensor),
}

/// The text of every output but those of NNUE, for [`Output::parse`] and its refusals.
const NAMES: [(&str, Output); 23] = [
    ("planes", Output::Planes(Element::F32)),
    ("planes:f32", Output::Planes(Element::F32)),
    ("planes:f16", Output::Planes(Element::F16)),
    ("planes:bf16", Output::Planes(Element::Bf16)),
    ("planes:u8", Output::Planes(Element::U8)),
    ("planes:bits", Output::PlaneBits),
    ("planes:packed", Output::PlanesPacked),
    ("planes:position", Output::PlanesPosition(CHANGES)),
    ("planes:flat", Output::PlanesFlat),
    ("probs", Output::Probs),
    ("probs:sparse", Output::ProbsSparse(PAIRS)),
    ("values", Output::Values),
    ("values:4", Output::Values4),
    ("winner", Output::Winner),
    ("best_q", Output::BestQ),
    ("plies_left", Output::PliesLeft),
    ("legal", Output::Legal),
    ("legal:bits", Output::LegalBits),
    ("ids", Output::Ids),
    ("played_idx", Output::PlayedIdx),
    ("best_idx", Output::BestIdx),
    ("opp_played_idx", Output::OppPlayedIdx),
    ("next_played_idx", Output::NextPlayedIdx),
];

/// What stands before a number of pairs.
const SPARSE: &str = "probs:sparse:";

/// The text before the number of changed squares.
const POSITION: &str = "planes:position:";

/// For each output with a number: the text before it, what it counts, and its range.
type Numbered = (&'static str, fn(u16) -> Output, RangeInclusive<u16>);
const NUMBERED: [Numbered; 2] =
    [(SPARSE, Output::ProbsSparse, LEAST_PAIRS..=MOST_PAIRS), (POSITION, Output::PlanesPosition, 1..=MOST_CHANGES)];

impl Output {
    /// The output that `text` names, such as `planes`, `planes:bits`, `probs` or `probs:sparse:64`.
    ///
    /// Errors: `Missing` for any other text, listing what is known; `OutOfRange` for a number of pairs or squares that is none.
    pub fn parse(text: &str) -> Result<Self> {
        let mut numbered = NUMBERED.iter().filter_map(|one| Some((one, text.strip_prefix(one.0)?)));
        if let Some(((name, output, known), number)) = numbered.next() {
            let found = number.parse().ok().filter(|n: &u16| known.contains(n) && n.to_string() == number);
            return found.map(output).ok_or_else(|| {
                let detail = format!("`{text}`: expected {name}N with N from {} to {}", known.start(), known.end());
                Error::new(Kind::OutOfRange, detail)
            });
        }
        let own = NAMES.iter().find(|(name, _)| *name == text).map(|&(_, output)| output);
        own.or_else(|| nnue::Tensor::named(text).map(Output::Nnue)).ok_or_else(|| {
            let known = Output::names().collect::<Vec<_>>().join(", ");
            Error::new(Kind::Missing, format!("no chess output is called `{text}`; known are {known}"))
        })
    }

    /// Every text without a number that [`Output::parse`] takes.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name).chain(nnue::Tensor::ALL.iter().map(|(name, _)| *name))
    }

    /// The tensors it makes, in order: one, or two for [`Output::PlaneBits`] and [`Output::ProbsSparse`].
    pub fn specs(self) -> Vec<TensorSpec> {
        let one = |name, dtype, shape: &[usize]| vec![TensorSpec::new(name, dtype, shape)];
        match self {
            Output::Planes(element) => one("planes", element.scalar(), &[112, 8, 8]),
            Output::PlanesFlat => one("planes", Scalar::F32, &[112, 64]),
            Output::PlaneBits => {
                vec![TensorSpec::new("planes", Scalar::U64, &[PLANES]), TensorSpec::new("meta", Scalar::U8, &[12])]
            }
            Output::PlanesPacked => one("planes_packed", Scalar::U8, &[PACKED_BYTES]),
            Output::PlanesPosition(changes) => one("planes_position", Scalar::U8, &[position::bytes(changes)]),
            Output::ProbsSparse(pairs) => {
                let row = [pairs.into()];
                vec![
                    TensorSpec::new("probs_indices", Scalar::I16, &row),
                    TensorSpec::new("probs_values", Scalar::F32, &row),
                ]
            }
            Output::Probs => one("probs", Scalar::F32, &[POLICY]),
            Output::Values => one("values", Scalar::F32, &[6, 3]),
            Output::Values4 => one("values", Scalar::F32, &[6, 4]),
            Output::Winner => one("winner", Scalar::F32, &[3]),
            Output::BestQ => one("best_q", Scalar::F32, &[3]),
            Output::PliesLeft => one("plies_left", Scalar::F32, &[]),
            Output::Legal => one("legal", Scalar::Bool, &[POLICY]),
            Output::LegalBits => one("legal_bits", Scalar::U8, &[LEGAL_BYTES]),
            Output::Ids => one("ids", Scalar::U64, &[3]),
            Output::PlayedIdx => one("played_idx", Scalar::I32, &[]),
            Output::BestIdx => one("best_idx", Scalar::I32, &[]),
            Output::OppPlayedIdx => one("opp_played_idx", Scalar::I32, &[]),
            Output::NextPlayedIdx => one("next_played_idx", Scalar::I32, &[]),
            Output::Nnue(tensor) => vec![tensor.spec()],
        }
    }
}

impl fmt::Display for Output {
    /// The shortest text that [`Output::parse`] reads back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (NAMES.iter().find(|(_, output)| output == self), self) {
            (Some((name, _)), _) => f.write_str(name),
            (None, Output::ProbsSparse(pairs)) => write!(f, "{SPARSE}{pairs}"),
            (None, Output::PlanesPosition(changes)) => write!(f, "{POSITION}{changes}"),
            (None, Output::Nnue(tensor)) => f.write_str(tensor.name()),
            (None, _) => Ok(()),
        }
    }
}

/// Lists of outputs that trainers expect.
#[derive(Debug, Clone, Copy)]
pub struct Outputs;

impl Outputs {
    /// `planes`, `probs`, `values` in f32: what the current lc0 trainer takes.
    pub fn standard() -> Vec<Output> {
        vec![Output::Planes(Element::F32), Output::Probs, Output::Values]
    }

    /// The 5-tuple of older trainers: flat `planes`, `probs`, `winner`, `best_q`, `plies_left`.
    pub fn legacy_tuple() -> Vec<Output> {
        vec![Output::PlanesFlat, Output::Probs, Output::Winner, Output::BestQ, Output::PliesLeft]
    }

    /// Parses each text in turn. Errors: as [`Output::parse`].
    pub fn parse<S: AsRef<str>>(texts: &[S]) -> Result<Vec<Output>> {
        texts.iter().map(|text| Output::parse(text.as_ref())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back_and_others_are_refused_with_the_list() {
        for name in Output::names() {
            let output = Output::parse(name).unwrap();
            assert_eq!(Output::parse(&output.to_string()).unwrap(), output);
            assert!(!output.specs().is_empty());
        }
        let few = Output::parse("probs:sparse:64").unwrap();
        assert_eq!((few, few.to_string()), (Output::ProbsSparse(64), "probs:sparse:64".to_owned()));
        for wrong in ["probs:sparse:", "probs:sparse:1", "probs:sparse:513", "probs:sparse:+64", "probs:sparse:064"] {
            let refusal = Output::parse(wrong).unwrap_err();
            assert!(refusal.kind() == Kind::OutOfRange && refusal.detail().contains("from 2 to 512"), "{wrong}");
        }
        let more = Output::parse("planes:position:40").unwrap();
        assert_eq!((more, more.to_string()), (Output::PlanesPosition(40), "planes:position:40".to_owned()));
        assert!(Output::parse("planes:position:0").unwrap_err().detail().contains("from 1 to 448"));
        let refusal = Output::parse("planes:f64").unwrap_err();
        assert_eq!(refusal.kind(), Kind::Missing);
        assert!(refusal.detail().contains("planes:bits") && refusal.detail().contains("ids"));
        assert!(Outputs::parse(&["probs", "Probs"]).is_err());
    }
}
