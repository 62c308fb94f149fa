//! Sizes as people write them: `2GiB`, `512 MB`, `1000000`; a number of bytes inside.
//! Never rounds up: a size is an upper bound.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number of bytes, written as a number or as text with a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemorySize(pub u64);

const UNITS: [(&str, u64); 10] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("b", 1),
    ("", 1),
];

impl std::str::FromStr for MemorySize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.trim().to_ascii_lowercase();
        let digits = lower.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(lower.len());
        let (number, unit) = (&lower[..digits], lower[digits..].trim());
        let scale = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, scale)| *scale);
        let bytes = scale.and_then(|scale| match number.parse::<u64>() {
            Ok(whole) => whole.checked_mul(scale),
            Err(_) => number.parse::<f64>().ok().map(|n| n * scale as f64).filter(|n| *n < 1e18).map(|n| n as u64),
        });
        bytes
            .map(MemorySize)
            .ok_or_else(|| format!("`{text}` is no size; write bytes or a unit, such as 2GiB or 512MB"))
    }
}

impl std::fmt::Display for MemorySize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let exact = UNITS[..4].iter().rev().find(|(_, scale)| self.0 >= *scale && self.0.is_multiple_of(*scale));
        match exact {
            Some((name, scale)) => write!(f, "{}{}iB", self.0 / scale, name[..1].to_ascii_uppercase()),
            None => write!(f, "{}", self.0),
        }
    }
}

impl Serialize for MemorySize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MemorySize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Number(u64),
            Text(String),
        }
        match Form::deserialize(deserializer)? {
            Form::Number(n) => Ok(MemorySize(n)),
            Form::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_people_write_them() {
        for (text, bytes) in [("2GiB", 2 << 30), ("512 mb", 512_000_000), ("1.5kib", 1536), ("77", 77), ("8B", 8)] {
            assert_eq!(text.parse::<MemorySize>().unwrap().0, bytes, "{text}");
        }
        for text in ["", "GiB", "-1", "2 potatoes", "1e3", "99999999999TiB"] {
            assert!(text.parse::<MemorySize>().is_err(), "{text}");
        }
        // What is written must be read again to the byte, the largest numbers too.
        for bytes in [0, (1 << 53) + 1, u64::MAX, 3 << 40] {
            assert_eq!(MemorySize(bytes).to_string().parse(), Ok(MemorySize(bytes)));
        }
        assert_eq!(MemorySize(2 << 30).to_string(), "2GiB");
        assert_eq!(MemorySize(1000).to_string(), "1000");
    }
}
