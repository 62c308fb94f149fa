//! How many chunks came -> how many the window holds, and how many draws are allowed; and the options that say so. Pure functions
//! of numbers: what they say is the same wherever and whenever they are evaluated. Nothing here waits.

use gristmill_runtime::error::{Error, Result};

use serde::{Deserialize, Serialize};

use crate::options::options;

options! {
    /// A window that grows with the number `n` of chunks that came: all of them up to `least`, then
    /// `least * (1 + slope * ((n / least)^power - 1) / power)`, rounded down.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct WindowLawConfig {
        /// Number of chunks up to which the window has all of them; at least 1.
        batches least: u64,
        /// Chunks that the window grows by for each new chunk at `least`: above 0, at most 1.
        batches slope: f64,
        /// How the growth slows down: above 0, at most 1; at 1 it does not.
        batches power: f64,
    }
}

options! {
    /// Draws that a pool makes for each chunk that comes: a draw waits while `chunks * samples_per_insert - draws` would fall
    /// below `min_diff`, and a new file waits while one more chunk would bring it above `max_diff`.
    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct RateLimitConfig {
        /// Draws for each chunk: above 0.
        batches samples_per_insert: f64,
        /// Chunks that must have come before the first draw.
        batches min_size_to_sample: u64,
        /// What is left of the allowed draws at the least; below 0 it allows as many in advance.
        batches min_diff: f64,
        /// Allowed draws that may be left when a file is taken in; none waits when absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        batches max_diff: Option<f64>,
    }
}

impl Default for WindowLawConfig {
    /// As in KataGo's paper; `least` is for users to say.
    fn default() -> Self {
        WindowLawConfig { least: 0, slope: 0.4, power: 0.75 }
    }
}

impl Default for RateLimitConfig {
    /// A draw waits for nothing but its share; `samples_per_insert` is for users to say.
    fn default() -> Self {
        RateLimitConfig { samples_per_insert: 0.0, min_size_to_sample: 1, min_diff: 0.0, max_diff: None }
    }
}

/// How many chunks a window holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    most: u64,
    law: Option<Law>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Law {
    least: f64,
    slope: f64,
    power: f64,
}

impl From<u64> for Window {
    fn from(most: u64) -> Self {
        Window { most: most.max(1), law: None }
    }
}

impl Window {
    /// A window of at most `most` chunks that grows by a law, where there is one.
    ///
    /// Errors: `Config` with the option that is out of its range.
    pub fn new(most: u64, law: Option<&WindowLawConfig>) -> Result<Self> {
        let Some(law) = law else { return Ok(Window::from(most)) };
        let share = |name: &str, value: f64| match value > 0.0 && value <= 1.0 {
            true => Ok(()),
            false => Err(Error::config(&format!("window_law.{name}"), format!("{value}; expected above 0, at most 1"))),
        };
        share("slope", law.slope)?;
        share("power", law.power)?;
        if !(1..=most).contains(&law.least) {
            let text = format!("{}; expected at least 1 and at most `chunk_pool_size`, which is {most}", law.least);
            return Err(Error::config("window_law.least", text));
        }
        let law = Law { least: law.least as f64, slope: law.slope, power: law.power };
        Ok(Window { most, law: Some(law) })
    }

    /// The window of one lane of `lanes`, which holds at most `most` chunks.
    #[must_use]
    pub fn part(self, most: u64, lanes: u32) -> Self {
        let lanes = f64::from(lanes);
        let part = |law: Law| Law { least: law.least / lanes, ..law };
        Window { most: most.max(1), law: self.law.map(part) }
    }

    /// The number of chunks that it never exceeds.
    pub fn most(self) -> u64 {
        self.most
    }

    /// Whether its size depends on what came.
    pub fn grows(self) -> bool {
        self.law.is_some()
    }

    /// Its size after `came` chunks. It never grows by more than what comes.
    pub fn after(self, came: u64) -> u64 {
        let Some(law) = self.law else { return self.most };
        let growth = (came as f64 / law.least).max(1.0).powf(law.power) - 1.0;
        // A float becomes the nearest integer of the type, never another.
        ((law.least * (1.0 + law.slope * growth / law.power)) as u64).clamp(1, self.most)
    }
}

/// How many draws are allowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    samples_per_insert: f64,
    min_size: f64,
    min_diff: f64,
    max_diff: f64,
}

fn wrong<T>(option: &str, text: String) -> Result<T> {
    Err(Error::config(&format!("rate_limit.{option}"), text))
}

impl Limit {
    /// The limit of a pool of one lane.
    ///
    /// Errors: `Config` with the option that is out of its range, or by which neither draws nor files could go on.
    pub fn new(config: &RateLimitConfig) -> Result<Self> {
        let rate = config.samples_per_insert;
        if !(rate > 0.0 && rate.is_finite()) {
            return wrong("samples_per_insert", format!("{rate}; expected a number above 0"));
        }
        if !config.min_diff.is_finite() {
            return wrong("min_diff", format!("{}; expected a number", config.min_diff));
        }
        let (min_size, max_diff) = (config.min_size_to_sample as f64, config.max_diff.unwrap_or(f64::INFINITY));
        Limit { samples_per_insert: rate, min_size, min_diff: config.min_diff, max_diff }.part(1)
    }

    /// The part of one of `lanes`.
    ///
    /// Errors: `Config` where neither draws nor files of a lane could go on.
    pub fn part(self, lanes: u32) -> Result<Self> {
        let lanes = f64::from(lanes);
        let least = self.min_diff + lanes * (1.0 + self.samples_per_insert);
        if self.max_diff.is_nan() || self.max_diff < least {
            let text = format!(
                "{}; expected at least {least}, so that a draw or a file never waits for ever: min_diff, and for each lane 1 \
                 more and samples_per_insert",
                self.max_diff
            );
            return wrong("max_diff", text);
        }
        let [min_size, min_diff, max_diff] = [self.min_size, self.min_diff, self.max_diff].map(|all| all / lanes);
        Ok(Limit { min_size, min_diff, max_diff, ..self })
    }

    /// Whether one more draw is allowed after `came` chunks and `draws` draws.
    pub fn draws(self, came: u64, draws: u64) -> bool {
        let came = came as f64;
        came >= self.min_size && came * self.samples_per_insert - draws as f64 - 1.0 >= self.min_diff
    }

    /// Whether a file is taken in after `came` chunks and `draws` draws.
    pub fn admits(self, came: u64, draws: u64) -> bool {
        let came = came as f64;
        came < self.min_size || (came + 1.0) * self.samples_per_insert - draws as f64 <= self.max_diff
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn law(least: u64, slope: f64, power: f64) -> WindowLawConfig {
        WindowLawConfig { least, slope, power }
    }

    fn limit(
        samples_per_insert: f64,
        min_size_to_sample: u64,
        min_diff: f64,
        max_diff: Option<f64>,
    ) -> RateLimitConfig {
        RateLimitConfig { samples_per_insert, min_size_to_sample, min_diff, max_diff }
    }

    /// Windows of the law with 250 000 rows at least, growth 0.4 and exponent 0.65, computed by hand from the formula.
    #[test]
    fn a_window_grows_by_the_power_law_up_to_its_bound() {
        let window = Window::new(1_000_000, Some(&law(250_000, 0.4, 0.65))).unwrap();
        let sizes = [0, 250_000, 500_000, 1_000_000, 10_000_000, 1 << 50].map(|came| window.after(came));
        assert_eq!(sizes, [250_000, 250_000, 337_564, 474_967, 1_000_000, 1_000_000]);
        assert_eq!(Window::from(7).after(1 << 40), 7);
        let line = Window::new(1_000, Some(&law(10, 0.5, 1.0))).unwrap();
        assert_eq!([9, 10, 12, 30, 5_000].map(|came| line.after(came)), [10, 10, 11, 20, 1_000]);
    }

    proptest! {
        #[test]
        fn a_window_never_grows_by_more_than_what_came(
            (least, slope, power) in (1u64..10_000, 0.01f64..=1.0, 0.05f64..=1.0),
            (came, more, lanes) in (0u64..1 << 40, 0u64..1 << 20, 1u32..9),
        ) {
            let window = Window::new(u64::MAX >> 12, Some(&law(least, slope, power))).unwrap();
            let window = window.part(window.most() / u64::from(lanes), lanes);
            let (before, after) = (window.after(came), window.after(came + more));
            prop_assert!(before <= after && after - before <= more + 1, "{before} {after}");
        }

        #[test]
        fn a_draw_or_a_file_can_always_go_on(
            (rate, min_size, min_diff, extra) in (0.01f64..50.0, 0u64..100, -50.0f64..50.0, 0.0f64..20.0),
            (came, draws) in (0u64..10_000, 0u64..500_000),
        ) {
            let most = min_diff + 1.0 + rate + extra;
            let limit = Limit::new(&limit(rate, min_size, min_diff, Some(most))).unwrap();
            prop_assert!(limit.draws(came, draws) || limit.admits(came, draws));
        }
    }

    #[test]
    fn draws_wait_for_chunks_and_chunks_for_draws() {
        let open = Limit::new(&limit(2.0, 3, -1.0, None)).unwrap();
        let allowed = |came: u64| (0..100).take_while(|draws| open.draws(came, *draws)).count();
        assert_eq!([0, 2, 3, 10].map(allowed), [0, 0, 7, 21]);
        assert!(open.admits(1 << 40, 0));
        let both = Limit::new(&limit(2.0, 3, 0.0, Some(8.0))).unwrap();
        assert!(both.admits(2, 0) && both.admits(3, 0) && !both.admits(4, 0) && both.admits(4, 2));
    }

    #[test]
    fn what_is_out_of_range_is_refused_by_its_name() {
        for (config, name) in [
            (law(0, 0.4, 0.65), "window_law.least"),
            (law(11, 0.4, 0.65), "window_law.least"),
            (law(5, 0.0, 0.65), "window_law.slope"),
            (law(5, 1.5, 0.65), "window_law.slope"),
            (law(5, 0.5, f64::NAN), "window_law.power"),
        ] {
            let error = Window::new(10, Some(&config)).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
        for (config, name) in [
            (limit(0.0, 1, 0.0, None), "rate_limit.samples_per_insert"),
            (limit(f64::INFINITY, 1, 0.0, None), "rate_limit.samples_per_insert"),
            (limit(1.0, 1, f64::NAN, None), "rate_limit.min_diff"),
            (limit(4.0, 1, 0.0, Some(4.9)), "rate_limit.max_diff"),
        ] {
            let error = Limit::new(&config).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
        assert!(Limit::new(&limit(4.0, 1, 0.0, Some(9.0))).unwrap().part(2).is_err(), "each lane has half of it");
    }

    #[test]
    fn a_limit_at_its_least_is_accepted_and_what_is_no_number_is_not() {
        let accepted = |max_diff, lanes| {
            Limit::new(&limit(4.0, 1, -2.0, Some(max_diff))).and_then(|limit| limit.part(lanes)).is_ok()
        };
        assert!(accepted(3.0, 1) && !accepted(2.9, 1) && accepted(8.0, 2) && !accepted(7.9, 2));
        assert!(!accepted(f64::NAN, 1) && accepted(f64::INFINITY, 1));
        let part = Limit::new(&limit(2.0, 6, 2.0, Some(12.0))).unwrap().part(2).unwrap();
        assert!(!part.draws(2, 0) && part.draws(3, 4) && !part.draws(3, 5), "from 3 chunks on, 1 left over");
        assert!(part.admits(2, 0) && !part.admits(3, 1) && part.admits(3, 2), "up to 6");
    }

    #[test]
    fn defaults_are_those_that_the_options_name() {
        assert_eq!(WindowLawConfig::default(), law(0, 0.4, 0.75));
        assert_eq!(RateLimitConfig::default(), limit(0.0, 1, 0.0, None));
        assert!(Window::new(9, Some(&law(3, 1.0, 1.0))).unwrap().grows() && !Window::from(9).grows());
        assert_eq!([Window::from(0).most(), Window::from(9).most(), Window::from(9).part(0, 2).most()], [1, 9, 1]);
        let part = Window::new(100, Some(&law(10, 0.5, 1.0))).unwrap().part(50, 2);
        assert_eq!([4, 5, 15, 400].map(|came| part.after(came)), [5, 5, 10, 50]);
    }
}
