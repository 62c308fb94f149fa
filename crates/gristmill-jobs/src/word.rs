//! The names of rules, kinds and moves in a document -> the same names for the life of the process, as the jobs have them. Takes a
//! bounded number of names: a document with more was not written here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// A name that the program knows.
pub(crate) type Word = &'static str;

/// Most names, and most bytes of one: some ten times as many as there are.
const MOST: usize = 4096;
const LONGEST: usize = 128;

static WORDS: Mutex<BTreeSet<Word>> = Mutex::new(BTreeSet::new());

/// The word of these letters.
fn known<E: Error>(text: &str) -> Result<Word, E> {
    let mut words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(word) = words.get(text) {
        return Ok(word);
    }
    if text.len() > LONGEST || words.len() == MOST {
        return Err(E::custom(format_args!("more than {MOST} names, or one of more than {LONGEST} bytes")));
    }
    let word: Word = Box::leak(text.to_owned().into_boxed_str());
    words.insert(word);
    Ok(word)
}

/// Reads a word.
pub(crate) fn one<'de, D: Deserializer<'de>>(from: D) -> Result<Word, D::Error> {
    known(&String::deserialize(from)?)
}

/// Reads a word, or none.
pub(crate) fn some<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Word>, D::Error> {
    Option::<String>::deserialize(from)?.map(|text| known(&text)).transpose()
}

/// Reads a map from words.
pub(crate) fn map<'de, D: Deserializer<'de>, V: Deserialize<'de>>(from: D) -> Result<BTreeMap<Word, V>, D::Error> {
    let all = BTreeMap::<String, V>::deserialize(from)?;
    all.into_iter().map(|(text, value)| Ok((known(&text)?, value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_kept_once_and_a_long_one_is_refused() {
        let read = |text: &str| map::<_, u64>(&mut serde_json::Deserializer::from_str(text));
        let (one, two) = (read(r#"{"castling": 1}"#).unwrap(), read(r#"{"castling": 2}"#).unwrap());
        assert_eq!(one.keys().next().unwrap().as_ptr(), two.keys().next().unwrap().as_ptr());
        assert!(read(&format!(r#"{{"{}": 1}}"#, "x".repeat(LONGEST + 1))).is_err());
    }
}
