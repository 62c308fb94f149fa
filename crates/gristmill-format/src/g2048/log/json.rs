//! A line of a log as JSON in general -> a step: keys in any order, absent, null, unknown or in exponent notation.
//! Strict where the format is: what is refused here is refused with the column.

use std::borrow::Cow;
use std::fmt;

use gristmill_bytes::error::{Error, Kind, Result};
use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::line::Step;
use crate::g2048::board::CELLS;
use crate::g2048::moves::Move;

/// Parses one line without its end; `None` where it is blank.
///
/// Errors, with the column: `Corrupt` for bytes that are no UTF-8 or no JSON, a key that is missing, doubled or of
/// the wrong type, a move by another name, a board that has not sixteen ranks of 0 to 255.
pub fn parse_json(line: &[u8]) -> Result<Option<Step<'static>>> {
    let text = std::str::from_utf8(line)
        .map_err(|e| Error::new(Kind::Corrupt, "the line is not UTF-8").at_line(1, e.valid_up_to() as u64 + 1))?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    if text.starts_with('\u{feff}') {
        let detail = "the line starts with a byte-order mark; remove its three bytes";
        return Err(Error::new(Kind::Corrupt, detail).at_line(1, 1));
    }
    serde_json::from_str::<Step<'static>>(text).map(Some).map_err(|e| refused(&e, "a step"))
}

/// Our error for what the JSON parser says about one line or document.
pub(super) fn refused(e: &serde_json::Error, what: &str) -> Error {
    let text = e.to_string();
    let why = text.rfind(" at line ").map_or(text.as_str(), |end| &text[..end]);
    Error::new(Kind::Corrupt, format!("not {what}: {why}")).at_line(e.line().max(1) as u64, e.column().max(1) as u64)
}

enum Key {
    Seed,
    StepIndex,
    MaxRank,
    Move,
    ValuationType,
    Board,
    BranchEvs,
    Other,
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct KeyVisitor;
        impl Visitor<'_> for KeyVisitor {
            type Value = Key;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> std::result::Result<Key, E> {
                Ok(match name {
                    "seed" => Key::Seed,
                    "step_index" => Key::StepIndex,
                    "max_rank" => Key::MaxRank,
                    "move" => Key::Move,
                    "valuation_type" => Key::ValuationType,
                    "board" => Key::Board,
                    "branch_evs" => Key::BranchEvs,
                    _ => Key::Other,
                })
            }
        }
        deserializer.deserialize_identifier(KeyVisitor)
    }
}

/// Takes the value of a key that may come once.
pub(super) fn once<'de, T: Deserialize<'de>, M: MapAccess<'de>>(
    slot: &mut Option<T>,
    name: &'static str,
    map: &mut M,
) -> std::result::Result<(), M::Error> {
    if slot.is_some() {
        return Err(de::Error::duplicate_field(name));
    }
    *slot = Some(map.next_value()?);
    Ok(())
}

impl<'de> Deserialize<'de> for Step<'static> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct StepVisitor;
        impl<'de> Visitor<'de> for StepVisitor {
            type Value = Step<'static>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> std::result::Result<Self::Value, M::Error> {
                let (mut seed, mut step_index, mut max_rank) = (None, None, None);
                let (mut mv, mut valuation, mut board, mut branches) = (None, None, None, None);
                while let Some(key) = map.next_key()? {
                    match key {
                        Key::Seed => once::<Option<u64>, _>(&mut seed, "seed", &mut map)?,
                        Key::StepIndex => once::<Option<u32>, _>(&mut step_index, "step_index", &mut map)?,
                        Key::MaxRank => once::<Option<u8>, _>(&mut max_rank, "max_rank", &mut map)?,
                        Key::Move => once::<LoggedMove, _>(&mut mv, "move", &mut map)?,
                        Key::ValuationType => {
                            once::<Option<String>, _>(&mut valuation, "valuation_type", &mut map)?;
                        }
                        Key::Board => once::<Ranks, _>(&mut board, "board", &mut map)?,
                        Key::BranchEvs => once::<Branches, _>(&mut branches, "branch_evs", &mut map)?,
                        Key::Other => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                let branches = branches.unwrap_or_default();
                Ok(Step {
                    seed: seed.flatten(),
                    step_index: step_index.flatten(),
                    max_rank: max_rank.flatten(),
                    mv: mv.ok_or_else(|| de::Error::missing_field("move"))?.0,
                    valuation: valuation.flatten().map(Cow::Owned),
                    ranks: board.ok_or_else(|| de::Error::missing_field("board"))?.0,
                    evs: branches.evs,
                    legal: branches.legal,
                    unknown_branch: branches.unknown,
                })
            }
        }
        deserializer.deserialize_map(StepVisitor)
    }
}

struct LoggedMove(Move);

impl<'de> Deserialize<'de> for LoggedMove {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct MoveVisitor;
        impl Visitor<'_> for MoveVisitor {
            type Value = LoggedMove;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`up`, `down`, `left` or `right`")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> std::result::Result<LoggedMove, E> {
                Move::from_name(name).map(LoggedMove).ok_or_else(|| E::invalid_value(de::Unexpected::Str(name), &self))
            }
        }
        deserializer.deserialize_str(MoveVisitor)
    }
}

struct Ranks([u8; CELLS]);

impl<'de> Deserialize<'de> for Ranks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct RanksVisitor;
        impl<'de> Visitor<'de> for RanksVisitor {
            type Value = Ranks;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a board of exactly 16 ranks")
            }

            fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> std::result::Result<Ranks, S::Error> {
                let mut ranks = [0; CELLS];
                for (cell, rank) in ranks.iter_mut().enumerate() {
                    *rank = seq.next_element()?.ok_or_else(|| de::Error::invalid_length(cell, &self))?;
                }
                match seq.next_element::<IgnoredAny>()? {
                    None => Ok(Ranks(ranks)),
                    Some(_) => Err(de::Error::invalid_length(CELLS + 1, &self)),
                }
            }
        }
        deserializer.deserialize_seq(RanksVisitor)
    }
}

/// What stands in `branch_evs`; nothing at all where the key is absent.
#[derive(Default)]
struct Branches {
    evs: [f32; 4],
    legal: u8,
    unknown: bool,
}

impl Branches {
    /// A later value of the same key replaces an earlier one, null included.
    fn set(&mut self, mv: Move, ev: Option<f64>) {
        let bit = 1 << mv.index();
        self.evs[mv.index()] = ev.unwrap_or(0.0) as f32;
        self.legal = if ev.is_some() { self.legal | bit } else { self.legal & !bit };
    }
}

struct BranchKey(Option<Move>);

impl<'de> Deserialize<'de> for BranchKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct BranchKeyVisitor;
        impl Visitor<'_> for BranchKeyVisitor {
            type Value = BranchKey;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a move")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> std::result::Result<BranchKey, E> {
                Ok(BranchKey(Move::from_name(name)))
            }
        }
        deserializer.deserialize_identifier(BranchKeyVisitor)
    }
}

impl<'de> Deserialize<'de> for Branches {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct BranchesVisitor;
        impl<'de> Visitor<'de> for BranchesVisitor {
            type Value = Branches;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of EVs")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> std::result::Result<Branches, M::Error> {
                let mut branches = Branches::default();
                while let Some(BranchKey(key)) = map.next_key()? {
                    match key {
                        Some(mv) => branches.set(mv, map.next_value()?),
                        None => {
                            branches.unknown = true;
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(branches)
            }
        }
        deserializer.deserialize_map(BranchesVisitor)
    }
}
