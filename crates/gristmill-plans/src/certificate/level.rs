//! A word for the quality of a shuffle <-> its level; levels compare. Judges nothing by itself.

use std::fmt;
use std::str::FromStr;

use gristmill_engine::error::Error;
use serde::{Deserialize, Serialize};

/// How close a shuffle comes to a perfect one; worse levels are smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Batches are about as alike as rows in the order of the data.
    None,
    /// Batches repeat games or classes so much that training suffers.
    Weak,
    /// Batches differ from those of a perfect shuffle, by little that training notices.
    Fair,
    /// No figure tells it from a perfect shuffle, or by less than matters.
    Good,
}

impl Level {
    /// All levels, from the worst on.
    pub const ALL: [Level; 4] = [Level::None, Level::Weak, Level::Fair, Level::Good];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Level::None => "none",
            Level::Weak => "weak",
            Level::Fair => "fair",
            Level::Good => "good",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Level {
    type Err = Error;

    /// Errors: `Config` in `require` for another word.
    fn from_str(text: &str) -> Result<Self, Error> {
        Level::ALL.into_iter().find(|level| level.name() == text).ok_or_else(|| {
            Error::config("require", format!("`{text}` is no level; expected one of: none, weak, fair, good"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_names_and_compare() {
        assert!(Level::ALL.is_sorted());
        for level in Level::ALL {
            assert_eq!(level.name().parse::<Level>().unwrap(), level);
            assert_eq!(serde_json::to_string(&level).unwrap(), format!("\"{level}\""));
        }
        let error = "perfect".parse::<Level>().unwrap_err().to_string();
        assert!(error.contains("`perfect`") && error.contains("none, weak, fair, good"), "{error}");
    }
}
