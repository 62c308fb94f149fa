//! The name of a number -> how it is exported: its family, its unit, and what it says of itself in a line. Counts nothing,
//! and knows no stage by name.

use std::borrow::Cow;

/// What a number is of.
#[derive(Debug, Clone)]
pub struct Quantity {
    /// Its name among the families, without unit.
    pub name: &'static str,
    /// In what it is exported, where that is part of the name.
    pub unit: Option<&'static str>,
    /// What a number is divided by.
    pub scale: f64,
    /// What it means, in a line.
    pub help: Cow<'static, str>,
}

/// A family that a loader may export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FamilyOf {
    /// The name of its series, as a query has it. A `*` stands for the name of a rule.
    pub series: String,
    /// `counter`, `gauge` or `info`.
    pub kind: &'static str,
    /// What it means, in a line.
    pub help: Cow<'static, str>,
}

/// Whether a number only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grows {
    Yes,
    No,
}
use Grows::{No, Yes};

/// What each number of a stage means, by the name that it has there: with `_ns` after it nanoseconds.
const MEANT: &[(&str, Grows, &str)] = &[
    ("batches", Yes, "Batches that the stage gave"),
    ("blunders", Yes, "Moves that a rescorer took for blunders"),
    ("busy_ns", Yes, "Thread-seconds that were spent in the stage"),
    ("bytes_held", No, "Bytes of files that are held for saved states"),
    ("cache_hits", Yes, "Draws whose position the position cache had"),
    ("cache_misses", Yes, "Draws whose position the position cache lacked"),
    ("cached_positions", No, "Positions in the position cache now"),
    ("cached_positions_capacity", No, "Positions that the position cache may hold"),
    ("caching_ns", Yes, "Thread-seconds that the position cache took"),
    (
        "chunk_source_not_found",
        Yes,
        "Chunks that left the pool before what the position cache kept of them could be used",
    ),
    ("chunk_sources", No, "Files that have chunks in the window of the pool"),
    ("chunks", Yes, "Chunks that the stage gave"),
    ("chunks_capacity", No, "Chunks that the window of the pool may hold"),
    ("chunks_current", No, "Chunks in the window of the pool now"),
    ("chunks_decoding", No, "Chunks that are being decoded now"),
    ("chunks_since_anchor", No, "Chunks that came after the anchor of the pool"),
    ("chunks_total", No, "Chunks of all files that the pool was given"),
    ("consumer_wait_ns", Yes, "Seconds that the consumer waited for a batch of the stage"),
    ("corrupt_tables", Yes, "Answers of a tablebase that a rescorer did not get because a table is damaged"),
    ("draws_total", No, "Draws of the pool so far, those of earlier runs of a saved state among them"),
    ("dropped", Yes, "Chunks that the stage left out because they are bad"),
    ("dropped_cache_positions", Yes, "Positions that were decoded ahead and found no room in the position cache"),
    ("duplicate_files", Yes, "Files left out because the same bytes were counted already"),
    ("duplicates", Yes, "Frames left out because their position came just before"),
    ("epoch", No, "Which pass over the data the loader is in, from 0"),
    (
        "events_ignored",
        Yes,
        "Events of the queue that name nothing the stage looks for: other buckets, folders, kinds of events",
    ),
    ("events_received", Yes, "Events that came from the queue, repeated ones each time"),
    ("events_unreadable", Yes, "Messages of the queue that cannot be read, and stay there"),
    ("faults", Yes, "Files and folders that could not be read, watched, opened or indexed"),
    ("files", No, "Files that the stage has found"),
    ("files_held", No, "Files that are held for saved states"),
    ("files_needed", No, "Files that may still be needed"),
    ("frames", Yes, "Frames that the stage gave"),
    ("frames_converted", Yes, "Frames that a rescorer wrote in another input format"),
    ("frames_deblundered", Yes, "Frames whose result or plies left a rescorer changed because of a blunder"),
    ("frames_decoded", Yes, "Frames of the chunks that were decoded, whether they are used or not"),
    ("frames_dropped", Yes, "Frames that a rescorer left out because they were flagged for deletion"),
    ("frames_to_v7", Yes, "Frames that a rescorer made V7"),
    ("hanse_accepted_permille", No, "Share of the draws that Hanse sampling accepted, from 0 to 1"),
    ("hanse_cache_hits", Yes, "Draws of Hanse sampling whose weight was known"),
    ("hanse_cache_misses", Yes, "Draws of Hanse sampling whose game had to be decoded to weigh it"),
    ("hanse_rejected", Yes, "Draws that Hanse sampling rejected"),
    ("mismatched_use_counts", Yes, "Draws that came too early for what the position cache kept of their chunk"),
    ("missing_tables", Yes, "Answers of a tablebase that a rescorer did not get because a table is missing"),
    ("newly_cached", Yes, "Positions that were put into the position cache"),
    ("plies_left_by_tablebase", Yes, "Frames whose plies left a tablebase changed"),
    ("plies_left_filled", Yes, "Frames of old data that a rescorer gave plies left"),
    ("policies_boosted", Yes, "Frames whose policy a rescorer changed to give more to the moves that win fastest"),
    ("policies_reshaped", Yes, "Frames whose policy a rescorer reshaped"),
    ("policies_substituted", Yes, "Frames whose policy a rescorer replaced by one of another game"),
    ("positions_seen", No, "Positions in the window in which duplicates are looked for now"),
    ("probes", Yes, "Positions that a tablebase answered for"),
    ("queue_capacity", No, "Items that may wait in the queue after the stage"),
    ("queue_dropped", Yes, "Items that the queue after the stage dropped"),
    ("queue_got", Yes, "Items that were taken from the queue after the stage"),
    ("queue_put", Yes, "Items that were put into the queue after the stage"),
    ("queue_waiting", No, "Items that wait in the queue after the stage now"),
    ("refused_by_*", Yes, "Games that validation refused, by the rule that they broke first"),
    ("reservoir", No, "Frames in the reservoir now"),
    ("reservoir_capacity", No, "Frames that the reservoir may hold"),
    ("reshuffles", Yes, "Passes over the window that were begun after the first"),
    ("results_by_tablebase", Yes, "Frames whose result a tablebase changed"),
    ("reuse_permille", No, "Draws for each chunk that came: how often a game is used"),
    ("rows", Yes, "Rows that the stage gave"),
    ("rows_of_table", No, "Rows of the pack"),
    ("rows_selected", No, "Rows of the selection that is fed"),
    ("skipped_files", Yes, "Files of no known format"),
    ("source_ingestion_ns", Yes, "Thread-seconds that new files took to be looked into"),
    ("sources", Yes, "Files that the stage gave, or took into its pool"),
    ("store_bytes", Yes, "Bytes that came from the bucket or server"),
    ("store_failures", Yes, "Requests to the bucket or server that were given up"),
    ("store_hedges", Yes, "Second requests to the bucket or server beside slow ones"),
    ("store_requests", Yes, "Requests to the bucket or server, each counted once"),
    ("store_retries", Yes, "Tries of requests to the bucket or server after the first"),
    ("stored_bytes", Yes, "Bytes that were read, as they are stored"),
];

/// What holds for the whole loader, by the name of its family, with its unit and kind.
pub(super) const BUILD: (&str, &str) = ("build", "What runs: the version of gristmill");
/// See `BUILD`.
pub(super) const UPTIME: (&str, &str) = ("uptime", "Seconds since the start");
/// See `BUILD`.
pub(super) const RANK: (&str, &str) = ("rank", "Which of the ranks that share each batch this is, from 0");
/// See `BUILD`.
pub(super) const WORLD_SIZE: (&str, &str) = ("world_size", "How many ranks share each batch");
/// See `BUILD`.
pub(super) const IO_WAITING: (&str, &str) = ("io_waiting", "Files that cannot be read now");
/// See `BUILD`.
pub(super) const BAD_CHUNKS: (&str, &str) =
    ("bad_chunks", "Chunks found bad since the start, by what is wrong with them");
/// See `BUILD`.
pub(super) const IO_ERRORS: (&str, &str) = ("io_errors", "Errors of reading files since the start, each try counted");
/// See `BUILD`.
pub(super) const STALL: (&str, &str) =
    ("stall", "Share of the last second in which the consumer waited for a batch, from 0 to 1");
/// See `BUILD`.
pub(super) const WAITED: (&str, &str) =
    ("waited", "Seconds that the consumer took for itself (cause trainer), or waited for what a batch lacked");

impl Quantity {
    /// What the number of this name is of.
    pub fn of(name: &'static str) -> Self {
        let help = match name.strip_prefix("refused_by_") {
            Some(rule) => Cow::Owned(format!("Games that validation refused, by the rule {rule} first")),
            None => MEANT
                .iter()
                .find(|(known, ..)| *known == name)
                .map_or(Cow::Borrowed(name), |(_, _, help)| Cow::Borrowed(help)),
        };
        let of = |name, unit, scale| Quantity { name, unit, scale, help };
        match name {
            "stored_bytes" => of("stored", Some("bytes"), 1.0),
            "bytes_held" => of("held", Some("bytes"), 1.0),
            "store_bytes" => of("store", Some("bytes"), 1.0),
            "hanse_accepted_permille" => of("hanse_accepted", Some("ratio"), 1e3),
            // A gauge must not be called as a counter is.
            "chunks_total" => of("chunks_known", None, 1.0),
            _ => match name.strip_suffix("_ns") {
                Some(stem) => of(stem, Some("seconds"), 1e9),
                None => of(name, None, 1.0),
            },
        }
    }
}

/// Every family that any loader exports, in order of the names.
pub fn families() -> Vec<FamilyOf> {
    let series = |name: &str, unit: Option<&str>, end: &str| {
        let unit = unit.map(|unit| format!("_{unit}")).unwrap_or_default();
        format!("gristmill_{name}{unit}{end}")
    };
    let whole = [
        (BUILD, None, "info"),
        (UPTIME, Some("seconds"), "gauge"),
        (RANK, None, "gauge"),
        (WORLD_SIZE, None, "gauge"),
        (IO_WAITING, None, "gauge"),
        (BAD_CHUNKS, None, "counter"),
        (IO_ERRORS, None, "counter"),
        (STALL, Some("ratio"), "gauge"),
        (WAITED, Some("seconds"), "counter"),
    ];
    let end = |kind| match kind {
        "counter" => "_total",
        "info" => "_info",
        _ => "",
    };
    let mut found: Vec<_> = whole
        .into_iter()
        .map(|((name, help), unit, kind)| FamilyOf { series: series(name, unit, end(kind)), kind, help: help.into() })
        .collect();
    found.extend(MEANT.iter().map(|(name, grows, help)| {
        let Quantity { name, unit, .. } = Quantity::of(name);
        let kind = if *grows == Yes { "counter" } else { "gauge" };
        FamilyOf { series: series(name, unit, end(kind)), kind, help: Cow::Borrowed(*help) }
    }));
    found.sort_by(|one, other| one.series.cmp(&other.series));
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_family_has_its_own_help_in_one_line() {
        let all = families();
        let names: BTreeSet<_> = all.iter().map(|family| &family.series).collect();
        let helps: BTreeSet<_> = all.iter().map(|family| &family.help).collect();
        assert_eq!((names.len(), helps.len()), (all.len(), all.len()));
        for FamilyOf { series, help, .. } in &all {
            assert!(help.len() > 10 && !help.contains('\n') && !help.ends_with('.'), "{series}: {help}");
        }
        assert!(MEANT.is_sorted_by_key(|(name, ..)| *name), "one sees at once where a name belongs");
    }

    #[test]
    fn a_rule_is_named_in_its_help() {
        assert_eq!(Quantity::of("refused_by_nan").help, "Games that validation refused, by the rule nan first");
        assert!(families().iter().any(|family| family.series == "gristmill_refused_by_*_total"));
    }
}
