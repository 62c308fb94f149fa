//! The `pickle` target beside the `serde-pickle` crate: plain values that both read are the same values.
//! Not compared: what [`Plain`] names, values that repeat or nest more than the bounds, and values of classes.

use std::collections::{BTreeMap, BTreeSet};

use gristmill_format::container::pickle::{Id, Mapping, Node, Pickle, PickleLimits, parse_prefix};
use num_bigint::BigInt;
use serde_pickle::{DeOptions, HashableValue, Value};

/// Values that one pickle may stand for. The crate copies a value for each place that has it.
const MOST: usize = 1 << 14;

/// Deepest nesting. The crate converts and drops values by recursion.
const DEEPEST: usize = 100;

/// The same bytes, twice.
pub fn pickle(data: &[u8]) {
    let Ok((ours, used)) = parse_prefix(data, &PickleLimits { max_bytes: 1 << 20 }) else { return };
    let Some(plain) = Plain::of(&data[..used]) else { return };
    let mut left = MOST;
    let Some(own) = plain.value(&ours, ours.root(), DEEPEST, &mut left) else { return };
    let options = if plain.strings { DeOptions::new().decode_strings() } else { DeOptions::new() };
    let Ok(theirs) = serde_pickle::value_from_slice(&data[..used], options) else { return };
    assert_eq!(format!("{own:?}"), format!("{theirs:?}"), "two readers of pickles, two answers");
}

/// A pickle in which the crate follows the rules of Python. It does not for these, and such pickles are left out:
/// - `DUP`, `BUILD` and instances: a copy instead of the same value, and the state in place of the value;
/// - a value that is put into the memo other than where it was made, or under a number that is taken;
/// - lines that end with a carriage return, which belongs to the text;
/// - strings of Python 2 beyond ASCII, and with escapes: whether they are texts is an option there.
struct Plain {
    /// Whether strings of Python 2 are among the values.
    strings: bool,
}

impl Plain {
    fn of(data: &[u8]) -> Option<Plain> {
        let (mut at, mut taken, mut fresh, mut strings) = (0, BTreeSet::new(), false, false);
        let sized = |at: usize, width: usize| {
            let mut len = [0; 8];
            len[..width].copy_from_slice(data.get(at..at + width)?);
            at.checked_add(width)?.checked_add(usize::try_from(u64::from_le_bytes(len)).ok()?)
        };
        let line = |at: usize| Some(at + data.get(at..)?.iter().position(|b| *b == b'\n')? + 1);
        while at < data.len() {
            let (op, operand) = (data[at], at + 1);
            at = match op {
                0x80 | b'K' | b'q' | b'h' => operand + 1,
                0x95 | b'G' => operand + 8,
                b'M' => operand + 2,
                b'J' | b'r' | b'j' => operand + 4,
                0x8a | 0x8c | b'U' | b'C' => sized(operand, 1)?,
                0x8b | b'X' | b'T' | b'B' => sized(operand, 4)?,
                0x8d | 0x8e | 0x96 => sized(operand, 8)?,
                b'I' | b'L' | b'F' | b'V' | b'S' | b'p' | b'g' => line(operand)?,
                b'c' => line(line(operand)?)?,
                b'2' | b'b' | 0x81 | 0x92 => return None,
                _ => operand,
            };
            let operand = data.get(operand..at)?;
            if matches!(op, b'I' | b'L' | b'F' | b'V' | b'S' | b'p' | b'g' | b'c') && operand.contains(&b'\r') {
                return None;
            }
            if matches!(op, b'S' | b'T' | b'U') {
                strings = true;
                if !operand.iter().skip_while(|_| op == b'T' || op == b'U').all(u8::is_ascii)
                    || operand.contains(&b'\\')
                {
                    return None;
                }
            }
            let number = match op {
                0x94 => Some(taken.len() as u64),
                b'q' => operand.first().map(|n| u64::from(*n)),
                b'r' => Some(u64::from(u32::from_le_bytes(*operand.first_chunk()?))),
                b'p' => Some(std::str::from_utf8(operand).ok()?.trim_end().parse().ok()?),
                _ => None,
            };
            if let Some(number) = number
                && !(fresh && taken.insert(number))
            {
                return None;
            }
            fresh =
                !matches!(op, 0x94 | b'q' | b'r' | b'p' | b'h' | b'j' | b'g' | b'0' | b'1' | b'a' | b'e' | b's' | b'u')
                    && !matches!(op, 0x80 | 0x90 | 0x95 | b'(' | b'.');
        }
        Some(Plain { strings })
    }

    /// Our value as one of the crate's; `None` for what it does not have.
    fn value(&self, of: &Pickle<'_>, id: Id, depth: usize, left: &mut usize) -> Option<Value> {
        *left = left.checked_sub(1)?;
        let depth = depth.checked_sub(1)?;
        let all = |ids: &[Id], left: &mut usize| -> Option<Vec<Value>> {
            ids.iter().map(|id| self.value(of, *id, depth, left)).collect()
        };
        let keys = |values: Vec<Value>| -> Option<BTreeSet<HashableValue>> {
            values.into_iter().map(|value| value.into_hashable().ok()).collect()
        };
        Some(match of.node(id) {
            Node::None => Value::None,
            Node::Bool(value) => Value::Bool(*value),
            Node::Int(value) => Value::I64(*value),
            Node::BigInt(blob) => Value::Int(BigInt::from_signed_bytes_le(of.bytes(blob))),
            Node::Float(value) => Value::F64(*value),
            Node::Text(_) => Value::String(of.text(id)?.to_owned()),
            Node::Bytes(blob) | Node::ByteArray(blob) => Value::Bytes(of.bytes(blob).to_vec()),
            Node::List(ids) => Value::List(all(ids, left)?),
            Node::Tuple(ids) => Value::Tuple(all(ids, left)?),
            Node::Set(ids) => Value::Set(keys(all(ids, left)?)?),
            Node::FrozenSet(ids) => Value::FrozenSet(keys(all(ids, left)?)?),
            Node::Dict(Mapping::Dict, pairs) => {
                let mut dict = BTreeMap::new();
                for (key, value) in pairs {
                    let key = self.value(of, *key, depth, left)?.into_hashable().ok()?;
                    dict.insert(key, self.value(of, *value, depth, left)?);
                }
                Value::Dict(dict)
            }
            _ => return None,
        })
    }
}
