//! Orders of a test -> what goes wrong with which request, how often, and counts of what was asked.
//! Nothing is random: the same orders and requests fail in the same way.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;

/// What goes wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fault {
    /// 500.
    InternalError,
    /// 503.
    SlowDown,
    /// 403.
    AccessDenied,
    /// 400, as of credentials that ran out.
    ExpiredToken,
    /// The connection ends after this many bytes of the body.
    Drop(u64),
    /// The answer comes after this many milliseconds.
    Stall(u64),
    /// The answer is another range, and says so: as many bytes, this much later.
    Shifted(u64),
    /// The bytes are not those of the object, at the right length.
    Garbled,
    /// A list lacks what was written in the last seconds, as many as said.
    Stale(u64),
}

/// Which requests fail, and how.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    /// `get`, `head`, `list`, `put`, `delete`; empty for any.
    #[serde(default)]
    operation: String,
    /// A part of the key; empty for any.
    #[serde(default)]
    key: String,
    /// How many of those requests pass before.
    #[serde(default)]
    after: u64,
    /// How many fail.
    #[serde(default = "all")]
    times: u64,
    /// How.
    fault: Fault,
}

fn all() -> u64 {
    u64::MAX
}

/// What a test says to the server.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// From now on these requests fail, too.
    Fail(Rule),
    /// No request fails any more.
    Mend,
    /// Requests of each kind so far, and the bytes of their answers; `true` begins again from zero.
    Counts(bool),
}

/// What fails, what was asked, and how slow the network is.
#[derive(Debug)]
pub(crate) struct Faults {
    pub(crate) latency: Duration,
    /// Bytes a second of each answer; 0 for no bound.
    pub(crate) rate: u64,
    rules: Mutex<Vec<Rule>>,
    counts: Mutex<BTreeMap<&'static str, u64>>,
}

impl Faults {
    pub(crate) fn new(latency: Duration, rate: u64) -> Self {
        Faults { latency, rate, rules: Mutex::default(), counts: Mutex::default() }
    }

    /// Counts a request, and says what goes wrong with it.
    pub(crate) fn of(&self, operation: &'static str, key: &str) -> Option<Fault> {
        self.count(operation, 1);
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        for rule in rules.iter_mut() {
            if !rule.operation.is_empty() && rule.operation != operation || !key.contains(&rule.key) {
                continue;
            }
            if rule.after > 0 {
                rule.after -= 1;
            } else if rule.times > 0 {
                rule.times -= 1;
                return Some(rule.fault);
            }
        }
        None
    }

    pub(crate) fn count(&self, what: &'static str, n: u64) {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner).entry(what).or_default() += n;
    }

    pub(crate) fn obey(&self, order: Order) -> String {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        match order {
            Order::Fail(rule) => rules.push(rule),
            Order::Mend => rules.clear(),
            Order::Counts(reset) => {
                let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
                let text = serde_json::json!(*counts).to_string();
                if reset {
                    counts.clear();
                }
                return text;
            }
        }
        "ok".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_count_what_passes_and_what_fails() {
        let faults = Faults::new(Duration::ZERO, 0);
        let order = |text: &str| faults.obey(serde_json::from_str(text).unwrap());
        order(r#"{"fail": {"operation": "get", "key": "tar", "after": 1, "times": 2, "fault": {"drop": 10}}}"#);
        let got: Vec<_> = ["a.tar", "b.gz", "a.tar", "a.tar", "a.tar"].map(|key| faults.of("get", key)).to_vec();
        assert_eq!(got, [None, None, Some(Fault::Drop(10)), Some(Fault::Drop(10)), None]);
        assert_eq!(order(r#"{"counts": true}"#), r#"{"get":5}"#);
        order(r#"{"fail": {"fault": "slow_down"}}"#);
        assert_eq!(faults.of("list", ""), Some(Fault::SlowDown));
        order(r#""mend""#);
        assert_eq!(faults.of("list", ""), None);
        assert!(serde_json::from_str::<Order>(r#"{"fail": {"fault": "x"}}"#).is_err());
    }
}
