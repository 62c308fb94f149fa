//! What flows through a loader, as text: the line of the moment, the summary. Prints nothing.

use std::fmt::Write;

use gristmill_engine::pipeline::{IoErrorCounts, Metrics};
use gristmill_jobs::feed::{Ended, Fed};

/// The message while files cannot be read.
pub(crate) fn waiting(out: &IoErrorCounts) -> String {
    let why = out.latest.first().map_or("", String::as_str);
    format!("{} files cannot be read now, and the stream waits for them: {why}", out.waiting)
}

/// The line of the moment: batches, rate, and how full the pools and reservoirs are.
pub(crate) fn now(fed: &Fed, metrics: &Metrics) -> String {
    let mut out = format!("{} batches, {}", fed.batches, rate(fed));
    for stage in &metrics.stages {
        for gauge in &stage.gauges {
            if let Some(capacity) = gauge.capacity {
                let _ = write!(out, ", {} {} {}/{capacity}", stage.name, gauge.name, gauge.value);
            }
        }
    }
    if metrics.bad_chunks.chunks > 0 {
        let _ = write!(out, ", {} bad chunks", metrics.bad_chunks.chunks);
    }
    if metrics.io_errors.waiting > 0 {
        let _ = write!(out, ", {}", waiting(&metrics.io_errors));
    }
    out
}

/// Batches too few for a rate: what the machine did besides would be most of it.
pub(super) const TOO_FEW: u64 = 3;

fn rate(fed: &Fed) -> String {
    match fed.frames_per_second {
        Some(rate) if fed.batches > TOO_FEW => format!("{rate:.0} positions/s"),
        _ => "too short to measure".to_owned(),
    }
}

/// The summary of a run.
pub(crate) fn summary(fed: &Fed) -> String {
    let ended = match fed.ended {
        Ended::Batches => "as many as --batches",
        Ended::End => "the end of the stream",
        Ended::Time => "the time was over",
        Ended::Stopped => "stopped",
    };
    let mut out = format!("{} batches, {} positions in {:.1} s ({ended})\n", fed.batches, fed.frames, fed.seconds);
    let _ = write!(out, "{}", rate(fed));
    if let Some(us) = fed.cpu_us_per_frame.filter(|_| fed.batches > TOO_FEW) {
        let _ = write!(out, ", {us:.2} us of processor time each");
    }
    if let Some(bytes) = fed.bytes_per_frame {
        let _ = write!(out, ", {bytes:.0} bytes each");
    }
    if let Some(seconds) = fed.first_batch_seconds {
        let _ = write!(out, ", first batch after {seconds:.2} s");
    }
    if !fed.limited_by.is_empty() {
        let waited = 100.0 * fed.stall;
        let _ = write!(out, "\nwaited {waited:.0} % of the time for the loader, limit: {}", lacked(&fed.limited_by));
    }
    out.push('\n');
    if let Some(peak) = fed.peak_rss {
        let _ = write!(out, "peak memory {}, ", super::bytes(peak));
    }
    let _ = write!(out, "{} bad chunks, {} dropped", fed.bad_chunks, fed.dropped);
    if let Some(seed) = fed.seed {
        let _ = write!(out, ", seed {seed}");
    }
    out
}

/// What a batch lacked, in words.
pub(super) fn lacked(cause: &str) -> String {
    let words = match cause {
        "storage" => "waiting for stored bytes",
        "gather" => "reading rows together",
        "decode" => "decoding the games",
        "copy" => "copying rows into the reservoir",
        "encode" => "writing the tensors",
        "handoff" => "handing batches over",
        "core" => "no core: other programs had them",
        "pool" => "too few games so far, or a reservoir that is not full",
        "arrivals" => "no new games: rate_limit allows no more draws of those that came",
        "trainer" => "taking the batches",
        _ => return "too short to measure".to_owned(),
    };
    format!("{words} ({cause})")
}
