//! Batches that are left out of a run, by number: an edit of the plan, as people write it.
//! Text such as `18200..18350` or `train:18200..18350`, or a pair of numbers -> a range. Knows no loader.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Batches `first..end` of an uninterrupted run, `end` not included. All others keep their numbers and their bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Form", into = "String")]
pub struct Skip {
    /// Alias of the output; absent where there is only one.
    pub output: Option<String>,
    /// The first batch that is left out.
    pub first: u64,
    /// The first batch after it that is delivered again.
    pub end: u64,
}

/// How a range is written in a configuration.
#[derive(Deserialize)]
#[serde(untagged)]
enum Form {
    Text(String),
    Pair(u64, u64),
}

impl TryFrom<Form> for Skip {
    type Error = String;

    fn try_from(form: Form) -> Result<Self, String> {
        match form {
            Form::Text(text) => text.parse(),
            Form::Pair(first, end) => checked(None, first, end),
        }
    }
}

impl FromStr for Skip {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (output, range) = match text.rsplit_once(':') {
            Some((output, range)) => (Some(output.to_owned()), range),
            None => (None, text),
        };
        let numbers = range.split_once("..").and_then(|(first, end)| Some((first.parse().ok()?, end.parse().ok()?)));
        let expected = "expected FIRST..END, such as 18200..18350 for batches 18200 to 18349, or NAME:FIRST..END";
        let (first, end) = numbers.ok_or_else(|| format!("`{text}`: {expected}"))?;
        checked(output, first, end)
    }
}

fn checked(output: Option<String>, first: u64, end: u64) -> Result<Skip, String> {
    match first < end {
        true => Ok(Skip { output, first, end }),
        false => Err(format!("{first}..{end} has no batch: the end is not included, and must be greater")),
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(output) = &self.output {
            write!(f, "{output}:")?;
        }
        write!(f, "{}..{}", self.first, self.end)
    }
}

impl From<Skip> for String {
    fn from(skip: Skip) -> String {
        skip.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_and_written_the_same() {
        for text in ["0..1", "18200..18350", "train:3..9", "a:b:3..9"] {
            assert_eq!(text.parse::<Skip>().unwrap().to_string(), text);
        }
        let pair: Vec<Skip> = serde_json::from_str("[[3, 9], \"train:3..9\"]").unwrap();
        assert_eq!(serde_json::to_string(&pair).unwrap(), "[\"3..9\",\"train:3..9\"]");
        for wrong in ["", "3", "3..", "..9", "3..x", "9..3", "3..3", "-1..3", "3..9..12"] {
            assert!(wrong.parse::<Skip>().is_err(), "{wrong}");
        }
    }
}
