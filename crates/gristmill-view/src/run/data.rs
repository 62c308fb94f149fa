//! What is known of a run -> one JSON document: the status as the loader gave it, the rates of the last second, and whether it answers.

use serde_json::{Map, Value, json};

use super::seen::Seen;
use crate::watch::headline::headline;
use crate::watch::rows::{Chips, Row, rows};

/// The document.
pub(super) fn document(seen: &Seen, address: &str) -> Value {
    let positions = headline(&seen.latest, &seen.history, None).positions;
    let mut stages = Map::new();
    for row in rows(&seen.latest, &seen.history, None, Chips::None) {
        if let Row::Stage(line) = row {
            let (busy, threads) = line.load.unzip();
            stages.insert(line.name, json!({ "per_second": line.rate, "busy": busy, "threads": threads }));
        }
    }
    let mut status = seen.all.clone();
    status.insert("events".to_owned(), json!(seen.events));
    json!({
        "address": address,
        "answers": seen.fault().is_none(),
        "fault": seen.fault(),
        "silent_seconds": seen.silent_for(),
        "positions_per_second": positions,
        "stages": stages,
        "status": status,
    })
}
