//! What records are: JSON <-> their layout, which fields say who a game is, columns from fields, names of facts.
//! Made once for a file or pack and checked then, so that nothing that follows from it can fail later.

use std::collections::HashSet;
use std::sync::Arc;

use gristmill_bytes::error::{Error, Kind, Result};
use gristmill_bytes::layout::{DType, Field, Layout, Order, Scalar};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

/// Longest text of a schema, and of the facts of a game.
pub const MOST_TEXT: usize = 1 << 20;

/// Largest record.
pub const MOST_RECORD: usize = 64 << 20;

/// Most columns and facts together.
const MOST_COLUMNS: usize = 256;

/// Longest name of a column or fact.
const MOST_NAME: usize = 63;

/// Columns that packs have by themselves.
const TAKEN: [&str; 12] = [
    "id",
    "file",
    "chunk",
    "first_frame",
    "frames",
    "source",
    "stored_bytes",
    "content_xxh3",
    "key_xxh3",
    "mirrored",
    "frame",
    "game_id",
];

/// How a column follows from a field of the rows of a game.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// Its value in the first row.
    First,
    /// Its value in the last row.
    Last,
    /// The lowest.
    Min,
    /// The highest.
    Max,
    /// The sum of all.
    Sum,
    /// The mean of all.
    Mean,
}

/// What a fact is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sort {
    /// A whole number, or a truth value.
    Int,
    /// A number.
    Real,
    /// Text.
    Text,
}

/// A value of a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Fact {
    /// Unknown.
    Null,
    /// A truth value.
    Truth(bool),
    /// A whole number.
    Whole(i64),
    /// A number.
    Real(f64),
    /// Text.
    Text(String),
}

/// The schema as it is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    layout: String,
    #[serde(default)]
    identity: Vec<String>,
    #[serde(default)]
    columns: Vec<(String, How, String)>,
    #[serde(default)]
    facts: Vec<(String, Sort)>,
}

/// A column that follows from a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Source {
    how: How,
    scalar: Scalar,
    offset: usize,
}

/// What the records of a file or pack are.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    layout: Arc<Layout>,
    /// First byte and bytes of the fields that say who a game is.
    identity: Vec<(usize, usize)>,
    sources: Vec<Source>,
    written: Written,
    text: String,
}

impl Schema {
    /// Reads and checks a schema.
    ///
    /// Errors: `TooLarge`; `Corrupt` where the text is no such JSON, or repeats a name, leaves one empty or takes one of the pack;
    /// `Missing` where it names a field that the layout lacks; `Unsupported` where a field or column has a type that records lack.
    pub fn parse(text: &str) -> Result<Self> {
        if text.len() > MOST_TEXT {
            let detail = format!("a schema of {} bytes; the bound is {MOST_TEXT}", text.len());
            return Err(Error::new(Kind::TooLarge, detail));
        }
        let written: Written = serde_json::from_str(text)
            .map_err(|e| Error::new(Kind::Corrupt, format!("this is no schema of records: {e}")))?;
        let layout = Layout::parse_descr(&written.layout)?;
        if layout.size() > MOST_RECORD || layout.fields().is_empty() {
            let detail = format!("records of {} bytes; expected fields, and at most {MOST_RECORD}", layout.size());
            return Err(Error::new(Kind::TooLarge, detail));
        }
        layout.fields().iter().try_for_each(plain)?;
        let identity =
            written.identity.iter().map(|name| named(&layout, name).map(|field| (field.offset, field.bytes())));
        let identity = identity.collect::<Result<_>>()?;
        let sources = written.columns.iter().map(|(name, how, field)| source(&layout, name, *how, field));
        let sources = sources.collect::<Result<_>>()?;
        check_names(written.columns.iter().map(|(name, ..)| name).chain(written.facts.iter().map(|(name, _)| name)))?;
        let text = serde_json::to_string(&written).map_err(|e| Error::new(Kind::Corrupt, e.to_string()))?;
        Ok(Schema { layout: Arc::new(layout), identity, sources, written, text })
    }

    /// The schema as JSON: the same text for the same records.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The fields of a record.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Names of the columns and facts, in the order of [`Schema::values`].
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let columns = self.written.columns.iter().map(|(name, ..)| &**name);
        columns.chain(self.written.facts.iter().map(|(name, _)| &**name))
    }

    /// The SQL type of each, in the same order.
    pub fn types(&self) -> impl Iterator<Item = &'static str> {
        let columns =
            self.sources.iter().map(|source| if source.is_whole() && source.how != How::Mean { "INT" } else { "REAL" });
        columns.chain(self.written.facts.iter().map(|(_, sort)| sort.sql()))
    }

    /// Reads the facts of a game: JSON, a list with a value for each name. No text stands for unknown facts.
    ///
    /// Errors: `Corrupt`, `WrongSize`, `TooLarge`.
    pub fn facts(&self, text: &str) -> Result<Vec<Fact>> {
        let many = self.written.facts.len();
        if text.is_empty() {
            return Ok(vec![Fact::Null; many]);
        }
        if text.len() > MOST_TEXT {
            return Err(Error::new(Kind::TooLarge, format!("facts of {} bytes; the bound is {MOST_TEXT}", text.len())));
        }
        let facts: Vec<Fact> =
            serde_json::from_str(text).map_err(|e| Error::new(Kind::Corrupt, format!("facts of a game: {e}")))?;
        if facts.len() != many {
            let detail = format!("{} facts of a game, expected {many}", facts.len());
            return Err(Error::new(Kind::WrongSize, detail));
        }
        facts.into_iter().zip(&self.written.facts).map(|(fact, (name, sort))| sort.fact(name, fact)).collect()
    }

    /// What the columns are of a game of these records and facts.
    ///
    /// Errors: as [`Schema::facts`].
    pub fn values(&self, records: &[u8], facts: &str) -> Result<Vec<Fact>> {
        let facts = self.facts(facts)?;
        let size = self.layout.size();
        Ok(self.sources.iter().map(|source| source.of(records, size)).chain(facts).collect())
    }

    /// Who the game of these records is: XXH3-128 of the fields that say so, row by row, or of all that there is.
    pub fn key(&self, records: &[u8]) -> u128 {
        let mut hash = Xxh3::new();
        if self.identity.is_empty() {
            hash.update(records);
        }
        for record in records.chunks_exact(self.layout.size()).filter(|_| !self.identity.is_empty()) {
            self.identity.iter().for_each(|(offset, bytes)| hash.update(&record[*offset..][..*bytes]));
        }
        hash.digest128()
    }

    /// How many records these bytes are.
    ///
    /// Errors: `Empty`; `WrongSize` for a part of a record; `TooLarge`.
    pub fn count(&self, records: &[u8]) -> Result<u32> {
        let size = self.layout.size();
        if records.is_empty() {
            return Err(Error::new(Kind::Empty, "a game without rows"));
        }
        if !records.len().is_multiple_of(size) {
            let detail = format!("{} bytes, expected records of {size}", records.len());
            return Err(Error::new(Kind::WrongSize, detail));
        }
        u32::try_from(records.len() / size).map_err(|_| Error::new(Kind::TooLarge, "more rows than 32 bits count"))
    }

    /// That a game said the same of its records.
    ///
    /// Errors: `WrongSize`, with both.
    pub fn agree(&self, other: &Schema) -> Result<()> {
        if self.text == other.text {
            return Ok(());
        }
        let differ = if self.layout == other.layout {
            (&self.text, &other.text)
        } else {
            (&self.written.layout, &other.written.layout)
        };
        let detail = format!("records of {}, those before are of {}; pack them apart", differ.1, differ.0);
        Err(Error::new(Kind::WrongSize, detail))
    }
}

impl Sort {
    fn sql(self) -> &'static str {
        match self {
            Sort::Int => "INT",
            Sort::Real => "REAL",
            Sort::Text => "TEXT",
        }
    }

    /// A fact of this sort.
    fn fact(self, name: &str, fact: Fact) -> Result<Fact> {
        match (self, fact) {
            (_, Fact::Null) => Ok(Fact::Null),
            (Sort::Int, Fact::Truth(truth)) => Ok(Fact::Whole(truth.into())),
            (Sort::Real, Fact::Whole(whole)) => Ok(Fact::Real(whole as f64)),
            (Sort::Int, fact @ Fact::Whole(_))
            | (Sort::Real, fact @ Fact::Real(_))
            | (Sort::Text, fact @ Fact::Text(_)) => Ok(fact),
            (sort, other) => {
                let expected = sort.sql().to_ascii_lowercase();
                Err(Error::new(Kind::Unfit, format!("fact `{name}` is {other:?}, expected {expected} or nothing")))
            }
        }
    }
}

/// That a field is of numbers, texts or bytes that lie as this machine has them.
fn plain(field: &Field) -> Result<()> {
    let refuse = |what: &str| {
        let detail = format!("field `{}` is {what}; records have little-endian numbers, texts and bytes", field.name);
        Err(Error::new(Kind::Unsupported, detail))
    };
    match field.dtype {
        DType::Record(_) => refuse("a record itself"),
        DType::Scalar(_, Order::Big) => refuse("big-endian"),
        DType::Scalar(..) if field.bytes() == 0 => refuse("empty"),
        DType::Scalar(..) => Ok(()),
    }
}

fn named<'a>(layout: &'a Layout, name: &str) -> Result<&'a Field> {
    layout.field(name).ok_or_else(|| {
        let there: Vec<&str> = layout.fields().iter().map(|field| &*field.name).collect();
        Error::new(
            Kind::Missing,
            format!("there is no field `{}`; there are {}", name.escape_debug(), there.join(", ")),
        )
    })
}

fn source(layout: &Layout, name: &str, how: How, field: &str) -> Result<Source> {
    let field = named(layout, field)?;
    match field.dtype {
        DType::Scalar(scalar, _) if field.shape.is_empty() && scalar.number(&vec![0; scalar.size()]).is_some() => {
            Ok(Source { how, scalar, offset: field.offset })
        }
        _ => {
            let detail =
                format!("column `{name}`: field `{}` is not one number; only such fields make columns", field.name);
            Err(Error::new(Kind::Unsupported, detail))
        }
    }
}

/// That names are such as SQL has without quotes, each once, and none that packs have themselves.
fn check_names<'a>(names: impl Iterator<Item = &'a String>) -> Result<()> {
    let mut seen: HashSet<String> = TAKEN.iter().map(|name| (*name).to_owned()).collect();
    for name in names {
        let first = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        let word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let refuse = |what: &str| Error::new(Kind::Corrupt, format!("column `{}` {what}", name.escape_debug()));
        if !first || !word || name.len() > MOST_NAME {
            return Err(refuse("is no name of letters, digits and _, of 63 at most"));
        }
        if !seen.insert(name.to_ascii_lowercase()) {
            return Err(refuse("is there already: every pack has it, or it is named twice"));
        }
        if seen.len() > TAKEN.len() + MOST_COLUMNS {
            return Err(refuse(&format!("is one too many; a pack has at most {MOST_COLUMNS} of its own")));
        }
    }
    Ok(())
}

impl Source {
    fn of(self, records: &[u8], size: usize) -> Fact {
        let bytes = |record: &[u8]| -> [u8; 8] {
            let (mut wide, found) = ([0; 8], &record[self.offset..][..self.scalar.size()]);
            wide[..found.len()].copy_from_slice(found);
            if self.is_signed() && found.last().is_some_and(|byte| *byte >= 0x80) {
                wide[found.len()..].fill(0xff);
            }
            wide
        };
        let rows = records.chunks_exact(size);
        let (mut first, mut last) = (rows.clone(), rows.clone());
        match self.how {
            How::First => first.next().map_or(Fact::Null, |record| self.fact(record, bytes)),
            How::Last => last.next_back().map_or(Fact::Null, |record| self.fact(record, bytes)),
            How::Mean => {
                let (sum, many) = (rows.clone().map(|record| self.real(record)).sum::<f64>(), rows.len());
                real(sum / many as f64)
            }
            how if self.is_whole() => {
                let whole = rows.map(|record| self.whole(bytes(record)));
                let found = match how {
                    How::Min => whole.min(),
                    How::Max => whole.max(),
                    _ => Some(whole.sum()),
                };
                found.map_or(Fact::Null, number)
            }
            how => {
                let numbers = rows.map(|record| self.real(record));
                real(match how {
                    How::Min => numbers.fold(f64::INFINITY, f64::min),
                    How::Max => numbers.fold(f64::NEG_INFINITY, f64::max),
                    _ => numbers.sum(),
                })
            }
        }
    }

    fn is_signed(self) -> bool {
        matches!(self.scalar, Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64)
    }

    fn is_whole(self) -> bool {
        !matches!(self.scalar, Scalar::F16 | Scalar::F32 | Scalar::F64)
    }

    fn whole(self, wide: [u8; 8]) -> i128 {
        if self.is_signed() { i64::from_le_bytes(wide).into() } else { u64::from_le_bytes(wide).into() }
    }

    fn real(self, record: &[u8]) -> f64 {
        self.scalar.number(&record[self.offset..][..self.scalar.size()]).unwrap_or(f64::NAN)
    }

    fn fact(self, record: &[u8], bytes: impl Fn(&[u8]) -> [u8; 8]) -> Fact {
        if self.is_whole() { number(self.whole(bytes(record))) } else { real(self.real(record)) }
    }
}

/// A whole number, as SQL has it: of more than 63 bits as near as can be.
fn number(whole: i128) -> Fact {
    i64::try_from(whole).map_or(Fact::Real(whole as f64), Fact::Whole)
}

/// A number; what is none is unknown.
fn real(number: f64) -> Fact {
    if number.is_nan() { Fact::Null } else { Fact::Real(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"layout": "[('board', '|i1', (3,)), ('value', '<f4'), ('n', '<u8')]", "identity": ["board"],
        "columns": [["first", "first", "n"], ["result", "last", "value"], ["all", "sum", "n"], ["best", "max", "value"],
        ["least", "min", "value"], ["mean", "mean", "n"]], "facts": [["elo", "int"], ["who", "text"]]}"#;

    fn record(board: [u8; 3], value: f32, n: u64) -> Vec<u8> {
        [&board[..], &value.to_le_bytes(), &n.to_le_bytes()].concat()
    }

    #[test]
    fn columns_follow_from_rows_and_facts() {
        let schema = Schema::parse(TEXT).unwrap();
        assert_eq!(Schema::parse(schema.text()).unwrap(), schema);
        let records = [record([1, 2, 3], -0.5, 7), record([4, 5, 6], 1.0, u64::MAX)].concat();
        let values = schema.values(&records, r#"[2000, "a \"b\""]"#).unwrap();
        let all = u64::MAX as f64;
        let expected = [
            Fact::Whole(7),
            Fact::Real(1.0),
            Fact::Real(all),
            Fact::Real(1.0),
            Fact::Real(-0.5),
            Fact::Real(all / 2.0),
            Fact::Whole(2000),
            Fact::Text("a \"b\"".to_owned()),
        ];
        assert_eq!(values, expected);
        assert_eq!(schema.names().collect::<Vec<_>>().join(" "), "first result all best least mean elo who");
        assert_eq!(schema.values(&records, "").unwrap()[6..], [Fact::Null, Fact::Null]);
        let same = [record([1, 2, 3], 9.0, 1), record([4, 5, 6], 8.0, 2)].concat();
        assert!(schema.key(&records) == schema.key(&same) && schema.key(&records) != schema.key(&records[..15]));
        assert_eq!(schema.count(&records[..14]).unwrap_err().kind(), Kind::WrongSize);
        assert_eq!(schema.facts("[1]").unwrap_err().kind(), Kind::WrongSize);
        let said = schema.facts("[1.5, null]").unwrap_err().to_string();
        assert!(said.contains("fact `elo` is Real(1.5), expected int"), "{said}");
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let with = |from: &str, to: &str| Schema::parse(&TEXT.replace(from, to)).unwrap_err().to_string();
        for (from, to, says) in [
            ("\"identity\": [\"board\"]", "\"identity\": [\"bord\"]", "`bord`; there are board, value, n"),
            ("[\"first\", \"first\", \"n\"]", "[\"first\", \"first\", \"board\"]", "`board` is not one number"),
            ("\"who\"", "\"ELO\"", "`ELO` is there already"),
            ("\"who\"", "\"frames\"", "`frames` is there already"),
            ("\"who\"", "\"a b\"", "is no name of letters"),
            ("'<u8'", "'>u8'", "`n` is big-endian"),
            ("'<u8'", "'|O'", "`|O`"),
            ("\"facts\"", "\"fact\"", "unknown field `fact`"),
        ] {
            let said = with(from, to);
            assert!(said.contains(says), "{said}");
        }
    }
}
