//! What was waited for -> what limits, in a sentence or two: what one more thread, memory or a compact form would bring.
//! Says no more than was measured: each factor is what is left if the waits go that the change could take away.

use crate::pipeline::watch::metrics::Metrics;
use crate::pipeline::watch::waits::{TRAINER, Waits};

impl Metrics {
    /// What limits this loader on a machine of `cores` cores, since the first batch was wanted, and what would help.
    pub fn explain(&self, cores: u64) -> String {
        let Waits { stall_since_start: stall, limited_by_since_start: cause, limited_by: now, .. } = &self.waits;
        let whole: f64 = self.waits.waits.iter().map(|waited| waited.seconds).sum();
        if cause.is_empty() {
            return "Nothing limits so far: no batch was wanted yet. Take some, then ask again.".to_owned();
        }
        let share = 100.0 * stall;
        let lead = format!("the trainer waited for the loader in {share:.0} % of the time");
        let said = if cause == TRAINER {
            format!(
                "The trainer limits: {lead}. One more thread, more memory or a more compact form of the data would bring nothing."
            )
        } else {
            let seconds = self.waits.seconds(cause);
            let of = if share > 0.0 { 100.0 * seconds / (stall * whole) } else { 0.0 };
            self.advise(cause, &format!("{lead}, and in {of:.0} % of that"), (whole, seconds), cores)
        };
        if now.is_empty() || now == cause { said } else { format!("{said} In the last second the limit was: {now}.") }
    }

    fn advise(&self, cause: &str, lead: &str, (whole, seconds): (f64, f64), cores: u64) -> String {
        let threads = |kind: &str| self.of_kind(kind).map(|stage| stage.threads).max().unwrap_or(0).max(1);
        let (workers, readers) =
            (threads("tensor_generator"), threads("shuffling_chunk_pool").max(threads("simple_chunk_extractor")));
        let stream = self.of_kind("gather").next().is_none();
        let times = |saved: f64| format!("{:.1} times as many batches", whole / (whole - saved).max(whole / 100.0));
        let thread = if workers < cores {
            let more = times(seconds / (workers + 1) as f64);
            format!("One more thread ({workers} work, and there are {cores} cores) would bring up to {more}")
        } else {
            format!("One more thread would bring nothing ({workers} work, and there are {cores} cores)")
        };
        let all = times(seconds);
        match cause {
            "storage" if stream => {
                let more = times(seconds / (readers + 1) as f64);
                format!(
                    "Storage limits: {lead} for stored bytes. One more reading thread (`io_threads` is {readers}) would bring up to \
                     {more}; memory that keeps the files, or a form that is read in fewer bytes (`gristmill pack`), up to {all}."
                )
            }
            "storage" => format!(
                "Storage limits: {lead} for stored bytes. One more thread would bring nothing; memory that keeps the rows, or a \
                 place that is nearer, up to {all}."
            ),
            "gather" => format!(
                "Reading rows together limits: {lead} for it. {thread}; rows that are shuffled in blocks, or lie in memory, up to {all}."
            ),
            "decode" => format!(
                "Decoding limits: {lead} for chunks to be decoded. {thread}; a pack (`gristmill pack`), whose rows need no decoding, \
                 up to {all}; more memory nothing."
            ),
            "copy" => format!(
                "Copying limits: {lead} for rows on their way through the reservoir. {thread}; a smaller reservoir, which stays in \
                 the processor's caches, up to {all}."
            ),
            "encode" => format!(
                "Encoding limits: {lead} for tensors to be written. {thread}; fewer tensors, or narrower types of them, up to \
                 {all}; more memory nothing."
            ),
            "core" => format!(
                "The machine limits: {lead} the loader's threads were ready to run, and other threads had the cores. One more \
                 thread would bring nothing; cores of its own up to {all}; a more compact form needs them for less time."
            ),
            "pool" => format!(
                "The pool is not filled: {lead} for the first scan, the first game, or a full reservoir. It passes by itself; a \
                 smaller reservoir begins sooner, and one more thread or a more compact form fills it sooner."
            ),
            "arrivals" => format!(
                "New games limit: {lead} for them, since `rate_limit` of the pool allows no more draws of those that came. One more \
                 thread would bring nothing; a higher `samples_per_insert` up to {all}, with more uses of each game."
            ),
            _ => format!(
                "Handing over limits: {lead} for batches that were ready. One more thread would bring nothing; larger batches, \
                 which are handed over less often, up to {all}."
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::watch::metrics::row;
    use crate::pipeline::watch::stall::{CAUSES, Totals};

    fn limited(cause: usize, threads: u64) -> Metrics {
        let mut totals = Totals::default();
        (totals[0], totals[1 + cause]) = (5_000_000_000, 15_000_000_000);
        let mut tensors = row("tensors", "tensor_generator", Vec::new(), Vec::new());
        tensors.threads = threads;
        Metrics { stages: vec![tensors], waits: Waits::of(&totals, &[]), ..Metrics::default() }
    }

    #[test]
    fn each_cause_is_said_with_what_would_help() {
        assert!(Metrics::default().explain(2).contains("no batch was wanted"));
        for (i, (_, name)) in CAUSES.iter().enumerate() {
            let text = limited(i, 2).explain(4);
            assert!(text.contains("75 %") && text.contains("100 %") && text.contains("thread"), "{name}: {text}");
            assert!(text.contains("4.0 times") || *name == "pool", "{name}: {text}");
        }
        let decode = limited(2, 2);
        assert!(
            decode.explain(4).contains("One more thread (2 work, and there are 4 cores) would bring up to 1.3 times")
        );
        assert!(decode.explain(2).contains("One more thread would bring nothing"));
    }

    #[test]
    fn a_trainer_that_limits_is_said_and_what_limits_now() {
        let mut totals = Totals::default();
        totals[0] = 1_000_000_000;
        let mut growth = [0.0; 9];
        growth[1] = 1e9;
        let found = Metrics { waits: Waits::of(&totals, &growth), ..Metrics::default() };
        let text = found.explain(2);
        assert!(
            text.starts_with("The trainer limits") && text.ends_with("In the last second the limit was: storage."),
            "{text}"
        );
    }
}
