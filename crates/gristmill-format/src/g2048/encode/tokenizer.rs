//! The artifact `tokenizer.json`, version 2 ("advantage"), <-> its bins; and the classes of one row.
//! Knows names of valuations, never their ids: those belong to a pack.

use gristmill_bytes::error::{Error, Kind, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::bins::Bins;

/// What the artifact calls itself.
const TYPE: &str = "macroxue_ev_advantage_v2";

/// The version that is read and written.
const VERSION: u32 = 2;

/// Most bins: classes are `bins + 3` and fit 16 bits.
pub const MAX_BINS: usize = 65_533;

/// A tuple valuation at most so large is a failure, and a difference at most so large a tie.
pub const ZERO_TOLERANCE: f64 = 1e-9;

/// Class of a branch that is not legal.
pub(super) const ILLEGAL: u16 = 0;

/// Class of a branch that loses.
pub(super) const FAILURE: u16 = 1;

/// The three kinds of valuation that the tokenizer knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Valuation {
    /// Heuristic search: thousandths of a score, relative to `board_eval`.
    Search,
    /// Table of ten cells: a probability.
    Tuple10,
    /// Table of eleven cells: a probability.
    Tuple11,
}

impl Valuation {
    /// All, in the order of the artifact.
    pub const ALL: [Valuation; 3] = [Valuation::Search, Valuation::Tuple10, Valuation::Tuple11];

    /// Its name in packs and in the artifact.
    pub fn name(self) -> &'static str {
        match self {
            Valuation::Search => "search",
            Valuation::Tuple10 => "tuple10",
            Valuation::Tuple11 => "tuple11",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Valuation::ALL.into_iter().find(|valuation| valuation.name() == name)
    }
}

/// The part of a step row that its classes depend on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Branches {
    /// Values of up, down, left, right.
    pub values: [f32; 4],
    /// Bit i: branch i has a value.
    pub legal: u8,
    /// The move that was made, 0..=3.
    pub chosen: u8,
    /// The heuristic's value of the board; only search rows need it.
    pub board_eval: Option<i32>,
}

/// A tokenizer of version 2.
#[derive(Debug, Clone, PartialEq)]
pub struct Tokenizer {
    /// By [`Valuation`]; none of kinds that it was not fitted to.
    bins: [Option<Bins>; 3],
    failure_cutoff: f64,
    metadata: Map<String, Value>,
}

#[derive(Serialize, Deserialize)]
struct Artifact {
    tokenizer_type: String,
    version: u32,
    num_bins: usize,
    vocab_order: Vec<String>,
    valuation_types: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    search: Option<SearchPart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tuple10: Option<TuplePart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tuple11: Option<TuplePart>,
    #[serde(default)]
    metadata: Map<String, Value>,
}

#[derive(Serialize, Deserialize)]
struct SearchPart {
    bin_edges: Vec<f64>,
    failure_cutoff: i64,
}

#[derive(Serialize, Deserialize)]
struct TuplePart {
    bin_edges: Vec<f64>,
}

fn refuse(detail: impl Into<String>) -> Error {
    Error::new(Kind::Corrupt, format!("tokenizer: {}", detail.into()))
}

fn vocabulary(bins: usize) -> Vec<String> {
    let middle = (0..bins).map(|i| format!("BIN_{i}"));
    ["ILLEGAL", "FAILURE"].map(String::from).into_iter().chain(middle).chain(["WINNER".to_owned()]).collect()
}

impl Tokenizer {
    /// A tokenizer from edges in the order of [`Valuation::ALL`], each of the same number; none for a kind that it was not
    /// fitted to.
    ///
    /// Errors: `Corrupt` for edges that are not 2 to [`MAX_BINS`] + 1 strictly increasing numbers, or differ in number, and
    /// where there are none at all.
    pub fn new(edges: [Vec<f64>; 3], failure_cutoff: i64, metadata: Map<String, Value>) -> Result<Self> {
        let count = edges.iter().map(Vec::len).find(|count| *count > 0);
        let count = count.ok_or_else(|| refuse("there are no edges of any kind of valuation"))?;
        let [search, tuple10, tuple11] = edges;
        let part = |valuation: Valuation, edges: Vec<f64>| {
            let found = edges.len();
            if found == 0 {
                return Ok(None);
            }
            if found != count || found > MAX_BINS + 1 {
                let name = valuation.name();
                return Err(refuse(format!("{found} edges for `{name}`, expected {count}, at most {}", MAX_BINS + 1)));
            }
            let text = format!("the edges of `{}` are not at least two strictly increasing numbers", valuation.name());
            Bins::new(edges).map(Some).ok_or_else(|| refuse(text))
        };
        let bins =
            [part(Valuation::Search, search)?, part(Valuation::Tuple10, tuple10)?, part(Valuation::Tuple11, tuple11)?];
        Ok(Tokenizer { bins, failure_cutoff: failure_cutoff as f64, metadata })
    }

    /// Reads `tokenizer.json`.
    ///
    /// Errors: `Corrupt` for JSON or edges that are wrong; `UnknownVersion` for another kind of tokenizer.
    pub fn from_json(text: &str) -> Result<Self> {
        let value: Value = serde_json::from_str(text).map_err(|e| refuse(e.to_string()))?;
        let found = value.get("tokenizer_type").and_then(Value::as_str);
        if found != Some(TYPE) {
            let found = found.unwrap_or("none");
            let detail =
                format!("tokenizer: tokenizer_type `{found}`, expected `{TYPE}`; fit one with `tokenizer fit`");
            return Err(Error::new(Kind::UnknownVersion, detail));
        }
        let artifact: Artifact = serde_json::from_value(value).map_err(|e| refuse(e.to_string()))?;
        if artifact.version != VERSION {
            let detail = format!("tokenizer: version {}, expected {VERSION}", artifact.version);
            return Err(Error::new(Kind::UnknownVersion, detail));
        }
        let failure_cutoff = artifact.search.as_ref().map_or(0, |search| search.failure_cutoff);
        let tuple = |part: Option<TuplePart>| part.map(|part| part.bin_edges);
        let parts = [artifact.search.map(|search| search.bin_edges), tuple(artifact.tuple10), tuple(artifact.tuple11)];
        for (valuation, edges) in Valuation::ALL.iter().zip(&parts) {
            let name = valuation.name();
            if artifact.valuation_types.iter().any(|listed| listed == name) != edges.is_some() {
                return Err(refuse(format!(
                    "`{name}` is either listed in valuation_types or has edges, expected both or none"
                )));
            }
            let found = edges.as_ref().map_or(0, Vec::len);
            if edges.is_some() && found != artifact.num_bins.saturating_add(1) {
                return Err(refuse(format!(
                    "{found} edges of `{name}` for {} bins, expected one more",
                    artifact.num_bins
                )));
            }
        }
        let tokenizer = Tokenizer::new(parts.map(Option::unwrap_or_default), failure_cutoff, artifact.metadata)?;
        if artifact.vocab_order != vocabulary(tokenizer.num_bins()) {
            return Err(refuse("vocab_order is not ILLEGAL, FAILURE, BIN_0 …, WINNER"));
        }
        Ok(tokenizer)
    }

    /// Writes `tokenizer.json` with `indent` spaces, all on one line for 0.
    pub fn to_json(&self, indent: usize) -> String {
        let edges = |valuation: Valuation| self.bins(valuation).map(|bins| bins.edges().to_vec());
        let tuple = |valuation: Valuation| edges(valuation).map(|bin_edges| TuplePart { bin_edges });
        let fitted = Valuation::ALL.into_iter().filter(|valuation| self.bins(*valuation).is_some());
        let artifact = Artifact {
            tokenizer_type: TYPE.to_owned(),
            version: VERSION,
            num_bins: self.num_bins(),
            vocab_order: vocabulary(self.num_bins()),
            valuation_types: fitted.map(|valuation| valuation.name().to_owned()).collect(),
            search: edges(Valuation::Search)
                .map(|bin_edges| SearchPart { bin_edges, failure_cutoff: self.failure_cutoff as i64 }),
            tuple10: tuple(Valuation::Tuple10),
            tuple11: tuple(Valuation::Tuple11),
            metadata: self.metadata.clone(),
        };
        let mut out = Vec::new();
        let spaces = " ".repeat(indent);
        let formatter = serde_json::ser::PrettyFormatter::with_indent(spaces.as_bytes());
        let written = match indent {
            0 => serde_json::to_writer(&mut out, &artifact),
            _ => artifact.serialize(&mut serde_json::Serializer::with_formatter(&mut out, formatter)),
        };
        written.ok().and_then(|()| String::from_utf8(out).ok()).unwrap_or_default()
    }

    /// Bins of each kind.
    pub fn num_bins(&self) -> usize {
        self.bins.iter().flatten().next().map_or(0, Bins::count)
    }

    /// Classes: illegal, failure, the bins, winner.
    pub fn num_classes(&self) -> usize {
        self.num_bins() + 3
    }

    /// The bins of one kind of valuation; none where it was not fitted to it.
    pub fn bins(&self, valuation: Valuation) -> Option<&Bins> {
        self.bins[valuation as usize].as_ref()
    }

    /// Search branches below this advantage over `board_eval` are failures.
    pub fn failure_cutoff(&self) -> f64 {
        self.failure_cutoff
    }

    /// The classes of the four branches of a row.
    ///
    /// Errors: `OutOfRange` for a move above 3, a move that is not legal, a legal branch without a finite value;
    /// `Missing` for a search row without `board_eval`, and for a kind of valuation that it was not fitted to.
    pub fn classes(&self, valuation: Valuation, row: &Branches) -> Result<[u16; 4]> {
        if row.chosen > 3 || row.legal >> row.chosen & 1 == 0 {
            return Err(unusable_move(row));
        }
        let values = row.values.map(f64::from);
        let finite = (0..4).fold(0, |set, i| set | u8::from(values[i].is_finite()) << i);
        if row.legal & 15 & !finite != 0 {
            let detail = format!("branch values {:?}, legal {:#06b}: a legal one is not finite", row.values, row.legal);
            return Err(Error::new(Kind::OutOfRange, detail));
        }
        let Some(bins) = self.bins(valuation) else {
            let detail = format!("the tokenizer was not fitted to `{}`", valuation.name());
            return Err(Error::new(Kind::Missing, detail));
        };
        match valuation {
            Valuation::Search => {
                let Some(eval) = row.board_eval else {
                    return Err(Error::new(Kind::Missing, "a search row needs its `board_eval`"));
                };
                Ok(self.search(bins, values, row, f64::from(eval)))
            }
            _ => Ok(self.tuple(bins, values, row)),
        }
    }

    fn search(&self, bins: &Bins, values: [f64; 4], row: &Branches, eval: f64) -> [u16; 4] {
        let advantages = values.map(|value| round(value * 1000.0) - eval);
        let best = advantages[usize::from(row.chosen)];
        self.assemble(bins, row, |i| {
            let difference = advantages[i] - best;
            let illegal = row.legal >> i & 1 == 0;
            Branch { difference, tie: difference.abs() <= 0.5, failure: advantages[i] < self.failure_cutoff, illegal }
        })
    }

    /// Branches that are not legal are ties here, as the reference has it.
    fn tuple(&self, bins: &Bins, values: [f64; 4], row: &Branches) -> [u16; 4] {
        let best = values[usize::from(row.chosen)];
        self.assemble(bins, row, |i| {
            let difference = values[i] - best;
            let tie = difference.abs() <= ZERO_TOLERANCE || row.legal >> i & 1 == 0;
            Branch { difference, tie, failure: values[i] <= ZERO_TOLERANCE, illegal: false }
        })
    }

    fn assemble(&self, bins: &Bins, row: &Branches, branch: impl Fn(usize) -> Branch) -> [u16; 4] {
        let zero = 1 + bins.count() as u16;
        // All are found and one is picked: a processor guesses badly which it will be.
        std::array::from_fn(|i| {
            let branch = branch(i);
            let mut class = 2 + bins.bin(branch.difference);
            class = if branch.failure { FAILURE } else { class };
            class = if branch.tie { zero } else { class };
            class = if branch.illegal { ILLEGAL } else { class };
            if i == usize::from(row.chosen) { zero + 1 } else { class }
        })
    }
}

struct Branch {
    difference: f64,
    tie: bool,
    failure: bool,
    illegal: bool,
}

/// To the nearest whole number, halves to the even one, as NumPy's `rint`. Exact for every finite number.
pub(super) fn round(value: f64) -> f64 {
    const WHOLE_FROM: f64 = (1u64 << 52) as f64;
    let magic = WHOLE_FROM.copysign(value);
    if value.abs() < WHOLE_FROM { (value + magic) - magic } else { value }
}

fn unusable_move(row: &Branches) -> Error {
    let detail = match row.chosen {
        0..=3 => format!("move {} is not legal by `ev_legal` {:#06b}", row.chosen, row.legal),
        other => format!("move {other}, expected 0 (up) to 3 (right)"),
    };
    Error::new(Kind::OutOfRange, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_to_even_at_every_size() {
        for value in
            [0.5, 1.5, 2.5, -0.5, -1.5, 62.5, 1e15 + 0.5, 4.5e15, -4.503_599_627_370_495_5e15, 1e300, 0.0, -7.2]
        {
            assert_eq!(round(value), value.round_ties_even(), "{value}");
        }
    }

    fn spec() -> Tokenizer {
        let edges = [
            vec![-5000.0, -1000.0, -200.0, -20.0, 0.0],
            vec![-2.0, -1.0, -0.2, -0.05, 0.0],
            vec![-2.5, -1.5, -0.4, -0.05, 0.0],
        ];
        Tokenizer::new(edges, -1500, Map::new()).unwrap()
    }

    #[test]
    fn artifacts_round_trip_and_wrong_ones_are_refused() {
        let text = spec().to_json(2);
        assert_eq!(Tokenizer::from_json(&text).unwrap(), spec());
        assert_eq!(Tokenizer::from_json(&spec().to_json(0)).unwrap(), spec());
        for (from, to) in [
            ("advantage_v2", "advantage_v3"),
            ("\"version\": 2", "\"version\": 3"),
            ("\"num_bins\": 4", "\"num_bins\": 5"),
            ("\"num_bins\": 4", "\"num_bins\": 18446744073709551615"),
            ("-1000.0", "-6000.0"),
            ("-2.5,", ""),
            ("\"BIN_1\"", "\"BIN_2\""),
            ("\"tuple11\": {", "\"tuple12\": {"),
            ("\"search\",", ""),
        ] {
            assert_ne!(text.replace(from, to), text, "{from}");
            Tokenizer::from_json(&text.replace(from, to)).expect_err(to);
        }
    }

    #[test]
    fn kinds_that_were_not_fitted_are_left_out_of_the_artifact_and_refused() {
        let edges = vec![-2.0, -1.0, -0.2, -0.05, 0.0];
        let some = Tokenizer::new([vec![], edges.clone(), vec![]], -1500, Map::new()).unwrap();
        let text = some.to_json(0);
        assert!(text.contains(r#""valuation_types":["tuple10"],"tuple10":{"#), "{text}");
        let read = Tokenizer::from_json(&text).unwrap();
        assert_eq!((read.num_bins(), read.to_json(0)), (4, text));
        let row = Branches { values: [1.0, 0.2, 0.0, 0.0], legal: 0b0111, chosen: 0, board_eval: Some(0) };
        assert_eq!(read.classes(Valuation::Tuple10, &row).unwrap(), [6, 3, 1, 5]);
        for kind in [Valuation::Search, Valuation::Tuple11] {
            let e = read.classes(kind, &row).unwrap_err();
            assert!(e.kind() == Kind::Missing && e.detail().contains(kind.name()), "{e}");
        }
        assert!(Tokenizer::new([vec![], vec![], vec![]], 0, Map::new()).is_err());
    }

    /// Acceptance case 5 of spec 7, and what it does not say: values that are not finite.
    #[test]
    fn rows_become_the_classes_of_the_acceptance_list() {
        let row = |values, legal, chosen, board_eval| Branches { values, legal, chosen, board_eval };
        let spec = spec();
        let tuple = row([1.0, 0.2, 0.0, 0.0], 0b0111, 0, None);
        assert_eq!(spec.classes(Valuation::Tuple10, &tuple).unwrap(), [6, 3, 1, 5]);
        let search = row([0.9, 0.8, 0.6, 0.95], 15, 3, Some(500));
        assert_eq!(spec.classes(Valuation::Search, &search).unwrap(), [4, 4, 3, 6]);
        let without = Branches { board_eval: None, ..search };
        assert_eq!(spec.classes(Valuation::Search, &without).unwrap_err().kind(), Kind::Missing);
        let failing = row([0.407, 0.5, 0.469, -74.284], 15, 1, Some(500));
        assert_eq!(spec.classes(Valuation::Search, &failing).unwrap(), [4, 6, 4, 1]);
        for value in [f32::NAN, f32::INFINITY] {
            let wild = Branches { values: [0.9, value, 0.6, 0.95], ..search };
            assert_eq!(spec.classes(Valuation::Search, &wild).unwrap_err().kind(), Kind::OutOfRange);
        }
        // Whatever stands where a branch is not legal.
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, -0.0] {
            for (kind, expected) in [(Valuation::Search, [4, 0, 3, 6]), (Valuation::Tuple10, [4, 5, 3, 6])] {
                let unsaid = Branches { values: [0.9, value, 0.6, 0.95], legal: 0b1101, ..search };
                assert_eq!(spec.classes(kind, &unsaid).unwrap(), expected, "{kind:?}, {value}");
            }
        }
    }
}
