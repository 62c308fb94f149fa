//! The options for places that are not on this machine, which every command has -> how buckets are reached, and where fetched
//! bytes are kept. Asks nothing of any place.

use std::path::PathBuf;

use clap::Args;
use gristmill_engine::store::bucket::{Options, set_options};
use gristmill_engine::store::{Cache, set_cache};

/// Where these options stand in the help of a command.
const HEADING: &str = "Places that are URLs";

/// How places elsewhere are reached.
#[derive(Debug, Clone, Default, Args)]
#[group(skip)]
pub(crate) struct Elsewhere {
    /// Ask the object store at this URL (default: that of the cloud, or of AWS_ENDPOINT_URL and the like).
    #[arg(long, value_name = "URL", global = true, help_heading = HEADING)]
    endpoint: Option<String>,
    /// Sign no request: for public buckets.
    #[arg(long, global = true, help_heading = HEADING)]
    anonymous: bool,
    /// Keep what is fetched of packs in this folder (default: ~/.cache/gristmill/twins).
    #[arg(long, value_name = "DIR", global = true, help_heading = HEADING)]
    cache: Option<PathBuf>,
    /// Keep at most N bytes there, such as 500G (default: half of what is free).
    #[arg(long, value_name = "N", global = true, value_parser = bytes, help_heading = HEADING)]
    cache_limit: Option<u64>,
}

impl Elsewhere {
    /// Says how places are reached from here on.
    pub(crate) fn begin(self) {
        if self.endpoint.is_some() || self.anonymous {
            for scheme in ["s3://", "s3a://", "gs://", "az://", "abfs://", "abfss://"] {
                let (endpoint, anonymous) = (self.endpoint.clone(), self.anonymous);
                set_options(scheme, Options { endpoint, anonymous, ..Options::default() });
            }
        }
        set_cache(Cache { folder: self.cache, limit: self.cache_limit });
    }
}

/// A number of bytes: digits, and K, M, G or T for powers of 1024.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let (digits, power) = match text.find(|c: char| !c.is_ascii_digit()) {
        None => (text, 0),
        Some(at) => match "KMGT".find(&text[at..].to_ascii_uppercase()).filter(|_| text.len() == at + 1) {
            Some(place) => (&text[..at], place as u32 + 1),
            None => return Err("expected a number of bytes, such as 500000000, 500M or 2T".to_owned()),
        },
    };
    let number: u64 = digits.parse().map_err(|_| "expected a number of bytes".to_owned())?;
    1024_u64.checked_pow(power).and_then(|unit| number.checked_mul(unit)).ok_or_else(|| "too many bytes".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        assert_eq!(bytes("0"), Ok(0));
        assert_eq!(bytes("17"), Ok(17));
        assert_eq!(bytes("3k"), Ok(3072));
        assert_eq!(bytes("2T"), Ok(2 << 40));
        for wrong in ["", "K", "-1", "1.5G", "5GB", "x", "99999999T"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }
}
