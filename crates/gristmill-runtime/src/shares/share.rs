//! `17/400` -> one of the shares of a job, counted from 1.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::error::{Error, Result};

/// Most shares of one job; each is a folder.
const MOST: u32 = 1_000_000;

/// One of the shares of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    number: u32,
    of: u32,
}

impl Share {
    /// Share `number`, from 1 on, of `of`.
    ///
    /// Errors: `Config` in `share` for a number out of range.
    pub fn new(number: u32, of: u32) -> Result<Self> {
        if of == 0 || of > MOST {
            return Err(Error::config("share", format!("{number}/{of}: a job has 1 to {MOST} shares")));
        }
        if number == 0 || number > of {
            let zero = if number == 0 { "; shares are counted from 1" } else { "" };
            return Err(Error::config("share", format!("{number}/{of}: expected a number from 1 to {of}{zero}")));
        }
        Ok(Share { number, of })
    }

    /// Its number, from 1 on.
    pub fn number(self) -> u32 {
        self.number
    }

    /// The number of shares.
    pub fn of(self) -> u32 {
        self.of
    }

    /// The name of its folder.
    pub fn name(self) -> String {
        format!("{:05}-of-{:05}", self.number, self.of)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Share {
    type Err = Error;

    /// Reads `17/400`.
    ///
    /// Errors: `Config` in `share`.
    fn from_str(text: &str) -> Result<Self> {
        let whole = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
        match text.split_once('/').map(|(number, of)| (whole(number), whole(of))) {
            Some((Some(number), Some(of))) => Share::new(number, of),
            _ => {
                let shown = text.escape_debug();
                Err(Error::config(
                    "share",
                    format!("`{shown}`: expected a share and how many there are, such as 17/400"),
                ))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(|e| match e {
            Error::Config { message, .. } => D::Error::custom(message),
            e => D::Error::custom(e),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_counted_from_one_and_nothing_else_is_taken() {
        for (text, name) in
            [("1/1", "00001-of-00001"), ("17/400", "00017-of-00400"), ("1000000/1000000", "1000000-of-1000000")]
        {
            let share: Share = text.parse().unwrap();
            assert_eq!((share.to_string().as_str(), share.name().as_str()), (text, name));
        }
        for (text, says) in [
            ("0/4", "counted from 1"),
            ("5/4", "from 1 to 4"),
            ("1/0", "1 to 1000000 shares"),
            ("1/1000001", "1 to 1000000 shares"),
            ("", "such as 17/400"),
            ("4", "such as 17/400"),
            ("+1/4", "such as 17/400"),
            ("1/4/2", "such as 17/400"),
            ("-1/4", "such as 17/400"),
            ("99999999999/4", "such as 17/400"),
        ] {
            let e = text.parse::<Share>().unwrap_err().to_string();
            assert!(e.contains(says) && e.contains("share"), "{text}: {e}");
        }
    }
}
