//! Which tensors to make of a record: their names, dtypes and shapes, and the text that selects them.

use std::fmt;

use gristmill_bytes::encode::TensorSpec;
use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::Scalar;

use crate::chess::record::{PLANES, POLICY};

/// Element type of dense planes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Element {
    /// Binary32.
    F32,
    /// Binary16, rounded to nearest from the binary32 value.
    F16,
    /// The stored integer; plane 109 holds the fifty-move count itself (see [`super::MetaPlane::raw`]).
    U8,
}

impl Element {
    /// The dtype of the tensor.
    pub fn scalar(self) -> Scalar {
        match self {
            Element::F32 => Scalar::F32,
            Element::F16 => Scalar::F16,
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
    /// `probs` f32 `[1858]`: the policy bit for bit; illegal moves are -1.
    Probs,
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
}

/// The text of every output, for [`Output::parse`] and its refusals.
const NAMES: [(&str, Output); 18] = [
    ("planes", Output::Planes(Element::F32)),
    ("planes:f32", Output::Planes(Element::F32)),
    ("planes:f16", Output::Planes(Element::F16)),
    ("planes:u8", Output::Planes(Element::U8)),
    ("planes:bits", Output::PlaneBits),
    ("planes:flat", Output::PlanesFlat),
    ("probs", Output::Probs),
    ("values", Output::Values),
    ("values:4", Output::Values4),
    ("winner", Output::Winner),
    ("best_q", Output::BestQ),
    ("plies_left", Output::PliesLeft),
    ("legal", Output::Legal),
    ("ids", Output::Ids),
    ("played_idx", Output::PlayedIdx),
    ("best_idx", Output::BestIdx),
    ("opp_played_idx", Output::OppPlayedIdx),
    ("next_played_idx", Output::NextPlayedIdx),
];

impl Output {
    /// The output that `text` names, such as `planes`, `planes:bits` or `probs`.
    ///
    /// Errors: `Missing` for any other text, listing what is known.
    pub fn parse(text: &str) -> Result<Self> {
        NAMES.iter().find(|(name, _)| *name == text).map(|&(_, output)| output).ok_or_else(|| {
            let known = Output::names().collect::<Vec<_>>().join(", ");
            Error::new(Kind::Missing, format!("no chess output is called `{text}`; known are {known}"))
        })
    }

    /// Every text that [`Output::parse`] takes.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// The tensors it makes, in order: one, or two for [`Output::PlaneBits`].
    pub fn specs(self) -> Vec<TensorSpec> {
        let one = |name, dtype, shape: &[usize]| vec![TensorSpec::new(name, dtype, shape)];
        match self {
            Output::Planes(element) => one("planes", element.scalar(), &[112, 8, 8]),
            Output::PlanesFlat => one("planes", Scalar::F32, &[112, 64]),
            Output::PlaneBits => {
                vec![TensorSpec::new("planes", Scalar::U64, &[PLANES]), TensorSpec::new("meta", Scalar::U8, &[12])]
            }
            Output::Probs => one("probs", Scalar::F32, &[POLICY]),
            Output::Values => one("values", Scalar::F32, &[6, 3]),
            Output::Values4 => one("values", Scalar::F32, &[6, 4]),
            Output::Winner => one("winner", Scalar::F32, &[3]),
            Output::BestQ => one("best_q", Scalar::F32, &[3]),
            Output::PliesLeft => one("plies_left", Scalar::F32, &[]),
            Output::Legal => one("legal", Scalar::Bool, &[POLICY]),
            Output::Ids => one("ids", Scalar::U64, &[3]),
            Output::PlayedIdx => one("played_idx", Scalar::I32, &[]),
            Output::BestIdx => one("best_idx", Scalar::I32, &[]),
            Output::OppPlayedIdx => one("opp_played_idx", Scalar::I32, &[]),
            Output::NextPlayedIdx => one("next_played_idx", Scalar::I32, &[]),
        }
    }
}

impl fmt::Display for Output {
    /// The shortest text that [`Output::parse`] reads back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(_, output)| output == self).map_or("", |(name, _)| name);
        f.write_str(name)
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
        let refusal = Output::parse("planes:f64").unwrap_err();
        assert_eq!(refusal.kind(), Kind::Missing);
        assert!(refusal.detail().contains("planes:bits") && refusal.detail().contains("ids"));
        assert!(Outputs::parse(&["probs", "Probs"]).is_err());
    }
}
