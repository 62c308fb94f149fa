//! A pack in a bucket, and the plan of its rows -> what an epoch costs beforehand: requests, bytes, disk, time to the first batch, and
//! money at prices that are given. Numbers that cannot be true are left out: those of a loader that would be refused.

use std::path::Path;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::names::METADATA;
use gristmill_engine::pipeline::Fetches;
use gristmill_engine::store::{Asked, Fit, HeldFile, files};
use serde::Serialize;

/// The fields of [`Terms`] in order.
pub type Said = (f64, f64, Option<f64>, Option<f64>);

/// What is assumed of the network and of prices.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Terms {
    /// Seconds until a request begins to be answered.
    pub latency: f64,
    /// Bytes a second of all answers together.
    pub bandwidth: f64,
    /// Money for 1000 requests; no money is said without a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_get: Option<f64>,
    /// Money for 1e9 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_gb: Option<f64>,
}

impl From<Said> for Terms {
    fn from((latency, bandwidth, price_get, price_gb): Said) -> Self {
        Terms { latency, bandwidth, price_get, price_gb }
    }
}

impl Default for Terms {
    fn default() -> Self {
        Terms { latency: 0.05, bandwidth: 100e6, price_get: None, price_gb: None }
    }
}

/// What it costs to feed a pack that lies in a bucket, to one rank on a machine of its own (docs/guide/buckets.md).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fetching {
    /// In a sentence.
    pub says: String,
    /// Bytes of the files that rows are read from.
    pub data_bytes: u64,
    /// Bytes of them that are there once the pack is open: what opening fetches, and what the cache of this machine has.
    pub kept_bytes: u64,
    /// Bytes of `metadata.db`.
    pub metadata_bytes: u64,
    /// What opening the pack fetches now; absent for a loader, whose pack is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opening: Option<Cost>,
    /// Bytes that the cache may take.
    pub cache_limit: u64,
    /// Bytes of them that other files in use take or will take.
    pub cache_others: u64,
    /// Whether the cache holds the pack.
    pub holds: bool,
    /// Bytes that the cache keeps of a pack that it does not hold. Absent if it holds the pack, and if it has less than 1 MiB of room: a
    /// loader then refuses to open the pack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_part: Option<u64>,
    /// What epochs cost. Absent if a loader refuses to open the pack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epochs: Option<Epochs>,
    /// The smallest change with which the cache holds the pack. Absent if it holds the pack now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// What was assumed.
    pub terms: Terms,
}

/// A smallest change, and what epochs cost with it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// Bytes that the cache has to be allowed.
    pub cache_limit: u64,
    /// What epochs cost after the change. Present if a loader refuses to open the pack without the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epochs: Option<Epochs>,
}

/// What epochs cost, from what is in the cache now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Epochs {
    /// The first.
    pub first: Cost,
    /// Each later one, as the second.
    pub later: Cost,
    /// By which part of them the requests of the first may be wrong: 0 where the epoch was walked whole.
    pub error: f64,
    /// Whether the epoch was too long to be walked whole, so that bytes of dropped rows count, too.
    pub is_sampled: bool,
    /// Bytes of the disk that the pack takes in the cache after the first.
    pub disk_bytes: u64,
    /// Seconds from the opening of the pack, or from the start of a loader, to its first batch, about.
    pub first_batch_seconds: f64,
}

/// Requests to a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cost {
    /// Requests, each counted once.
    pub requests: u64,
    /// Bytes that come.
    pub bytes: u64,
    /// What they cost, where a price was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub money: Option<f64>,
}

impl Terms {
    /// Refuses what no network and no price can be.
    ///
    /// Errors: `Config` with the field.
    pub fn check(&self) -> Result<()> {
        let prices = [("price_get", self.price_get), ("price_gb", self.price_gb)];
        let all = [("latency", Some(self.latency)), ("bandwidth", Some(self.bandwidth))].into_iter().chain(prices);
        for (name, value) in all {
            let is_one = |value: f64| value.is_finite() && value >= 0.0 && (name != "bandwidth" || value > 0.0);
            if let Some(value) = value.filter(|value| !is_one(*value)) {
                return Err(Error::config(name, format!("expected a positive number, found {value}")));
            }
        }
        Ok(())
    }

    fn cost(&self, requests: u64, bytes: u64) -> Cost {
        let priced = self.price_get.is_some() || self.price_gb.is_some();
        let money =
            self.price_get.unwrap_or(0.0) * requests as f64 / 1e3 + self.price_gb.unwrap_or(0.0) * bytes as f64 / 1e9;
        Cost { requests, bytes, money: priced.then_some(money) }
    }

    fn seconds(&self, turns: u64, bytes: u64) -> f64 {
        turns as f64 * self.latency + bytes as f64 / self.bandwidth
    }
}

/// Bytes of the database of a pack; 0 where it has none.
///
/// Errors: what keeps its place from saying so.
pub(super) fn metadata_bytes(folder: &Path) -> Result<u64> {
    Ok(files::len(&folder.join(METADATA))?.unwrap_or(0))
}

/// What is known of a pack beside its plan.
pub(super) struct Known<'a> {
    /// Its files, whether rows are read from them or not.
    pub(super) files: &'a [&'a HeldFile],
    pub(super) metadata_bytes: u64,
    /// What was asked of stores while it was opened, by name; none of one that is open.
    pub(super) opening: Option<Vec<(&'static str, u64)>>,
    pub(super) ranks: u64,
}

/// What an epoch costs.
///
/// Errors: `Io` where there is no cache.
pub(super) fn of(fetches: &Fetches, known: &Known<'_>, terms: Terms) -> Result<Fetching> {
    let fit = Fit::of(known.files)?;
    let opening = known.opening.as_ref().map(|counted| {
        let of = |name: &str| counted.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| *count);
        terms.cost(of("store_requests"), of("store_bytes"))
    });
    let part = fetches.part;
    let holds = part.is_none() && (known.opening.is_none() || fit.holds());
    let epochs = epochs(fetches, opening, terms);
    let says = says(&epochs, &fit, (holds, part), fetches.kept_bytes, known.ranks);
    let cache_limit = fit.others.saturating_add(fit.needed);
    let (epochs, change) = match () {
        () if holds => (Some(epochs), None),
        () if part.is_some() => (Some(epochs), Some(Change { cache_limit, epochs: None })),
        () => (None, Some(Change { cache_limit, epochs: Some(epochs) })),
    };
    Ok(Fetching {
        says,
        data_bytes: fetches.data_bytes,
        kept_bytes: fetches.kept_bytes,
        metadata_bytes: known.metadata_bytes,
        opening,
        cache_limit: fit.limit,
        cache_others: fit.others,
        holds,
        cache_part: part,
        epochs,
        change,
        terms,
    })
}

fn epochs(fetches: &Fetches, opening: Option<Cost>, terms: Terms) -> Epochs {
    let cost = |asked: Asked| terms.cost(asked.requests, asked.bytes);
    let first = fetches.first_batch;
    // What opens a pack asks one thing after the other.
    let opened = opening.map_or(0.0, |cost| terms.seconds(cost.requests, cost.bytes));
    Epochs {
        first: cost(fetches.first_pass),
        later: cost(fetches.later_pass),
        error: fetches.error,
        is_sampled: fetches.is_sampled,
        disk_bytes: fetches.disk_bytes,
        first_batch_seconds: opened + terms.seconds(first.turns, first.bytes),
    }
}

fn says(epochs: &Epochs, fit: &Fit, (holds, part): (bool, Option<u64>), kept: u64, ranks: u64) -> String {
    let about = if epochs.is_sampled { "about " } else { "" };
    let asked = |cost: &Cost| format!("{} bytes in {about}{} requests", cost.bytes, cost.requests);
    let first = match (epochs.first.requests, kept > 0) {
        (0, _) => "the first epoch fetches nothing more".to_owned(),
        (_, true) => format!("the first epoch fetches what is not there yet, {}", asked(&epochs.first)),
        (_, false) => format!("the first epoch fetches every byte that it needs once, {}", asked(&epochs.first)),
    };
    let later = match epochs.later.requests {
        0 => "later ones fetch nothing".to_owned(),
        _ => format!("the second one {}", asked(&epochs.later)),
    };
    let each =
        if ranks > 1 { format!("; so does each of {ranks} ranks on a machine of its own") } else { String::new() };
    if holds {
        return format!("the cache holds the pack: {first}, {later}{each}");
    }
    if let Some(part) = part {
        return format!(
            "the cache keeps {part} bytes of the pack, which takes {}, and frees the blocks that are needed last: the first epoch fetches \
             {}, {later}{each}. With cache_limit={} the cache holds the pack",
            fit.needed,
            asked(&epochs.first),
            fit.others.saturating_add(fit.needed),
        );
    }
    let beside =
        if fit.others > 0 { format!(", of which other files in use take {}", fit.others) } else { String::new() };
    format!(
        "the cache does not hold the pack: it may take {} bytes{beside}, the pack takes {}, and a loader refuses to open it, \
         whatever the order of its rows. With cache_limit={} {first}, {later}{each}",
        fit.limit,
        fit.needed,
        fit.others.saturating_add(fit.needed),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetches() -> Fetches {
        Fetches {
            data_bytes: 5_000_000,
            kept_bytes: 0,
            disk_bytes: 5_000_100,
            first_batch: Asked { requests: 3, bytes: 1_000_000, turns: 2 },
            first_pass: Asked { requests: 2000, bytes: 5_000_000, turns: 100 },
            later_pass: Asked::default(),
            error: 0.05,
            is_sampled: false,
            part: None,
        }
    }

    #[test]
    fn money_and_seconds_are_arithmetic_on_what_was_given() {
        let terms = Terms { latency: 0.1, bandwidth: 1e6, price_get: Some(0.5), price_gb: Some(100.0) };
        let opening = terms.cost(4, 500_000);
        let found = epochs(&fetches(), Some(opening), terms);
        assert_eq!(found.first.money, Some(1.5));
        assert_eq!(found.first_batch_seconds, 4.0 * 0.1 + 0.5 + 2.0 * 0.1 + 1.0);
        assert_eq!(epochs(&fetches(), None, Terms::default()).first.money, None, "no price is baked in");
    }

    #[test]
    fn a_cache_that_is_too_small_is_said_with_what_would_do() {
        let fit = Fit { limit: 1000, others: 10, needed: 5_000_000 };
        let found = epochs(&fetches(), None, Terms::default());
        let text = says(&found, &fit, (false, None), 0, 1);
        assert!(text.contains("refuses to open it") && text.contains("cache_limit=5000010"), "{text}");
        let text = says(&found, &fit, (false, Some(1_000_000)), 0, 1);
        assert!(text.contains("keeps 1000000 bytes") && text.contains("cache_limit=5000010"), "{text}");
        let text = says(&found, &fit, (true, None), 0, 4);
        assert!(text.contains("every byte that it needs once, 5000000 bytes in 2000 requests"), "{text}");
        assert!(text.contains("later ones fetch nothing") && text.contains("each of 4 ranks"), "{text}");
    }

    #[test]
    fn what_is_no_price_is_refused_by_name() {
        for terms in [
            Terms { price_get: Some(-1.0), ..Terms::default() },
            Terms { price_gb: Some(f64::NAN), ..Terms::default() },
            Terms { bandwidth: 0.0, ..Terms::default() },
            Terms { latency: f64::INFINITY, ..Terms::default() },
        ] {
            assert!(terms.check().is_err(), "{terms:?}");
        }
        assert!(Terms::default().check().is_ok());
    }
}
