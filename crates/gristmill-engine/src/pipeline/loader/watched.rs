//! A running loader -> what it did, as numbers, events and pages that are served. Looks only; the stream never waits for it.

use std::net::SocketAddr;

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::events::Event;
use gristmill_runtime::runtime::period::Period;
use gristmill_runtime::sink::http::Pages;

use crate::pipeline::loader::DataLoader;
use crate::pipeline::watch::metrics::Metrics;
use crate::pipeline::watch::serve::{endpoint, failed};
use crate::pipeline::watch::status::{CertificateStatus, Status};

impl DataLoader {
    /// What the river did so far and in the last second; the last values stay after a stop. Empty in a forked child.
    pub fn metrics(&self) -> Metrics {
        self.runs_here().map(|running| running.observer.metrics()).unwrap_or_default()
    }

    /// What happened in the latest complete period of 2^`exponent` seconds, and its age in seconds (to this moment
    /// with `pending`, else to the last quarter of a second). The last values stay after a stop; empty before the
    /// start.
    ///
    /// Errors: `Config` for a period below a quarter of a second.
    pub fn bucket_metrics(&self, exponent: i32, pending: bool) -> Result<(Period, f64)> {
        let Some(running) = self.runs_here() else { return Ok(Default::default()) };
        running.observer.history().bucket(exponent, pending, running.observer.uptime())
    }

    /// What happened in the last `seconds`, infinite for everything since the start, and the seconds that this
    /// covers: up to this moment with `pending`, else to the last quarter of a second. The last values stay after
    /// a stop; empty before the start.
    ///
    /// Errors: `Config` for a duration that is negative or no number.
    pub fn aggregate_metrics(&self, seconds: f64, pending: bool) -> Result<(Period, f64)> {
        let Some(running) = self.runs_here() else { return Ok(Default::default()) };
        if pending {
            running.observer.sample();
        }
        running.observer.history().ending_now(seconds, pending, running.observer.uptime())
    }

    /// Everything a view shows, with the events after number `after`; the last values stay after a stop. Empty before
    /// the start and in a forked child.
    pub fn status(&self, after: u64) -> Status {
        self.runs_here().map(|running| running.observer.status(after)).unwrap_or_default()
    }

    /// Keeps what a certificate says of an output; [`DataLoader::status`] has it from the start on.
    pub fn certified(&self, certificate: CertificateStatus) {
        self.certified.keep(certificate);
    }

    /// What happened after event number `after`; the same stays after a stop. Nothing before the start and in a forked child.
    pub fn events(&self, after: u64) -> Vec<Event> {
        self.runs_here().map(|running| running.observer.events.since(after)).unwrap_or_default()
    }

    /// Number of the newest event; 0 before the first.
    pub fn newest_event(&self) -> u64 {
        self.runs_here().map_or(0, |running| running.observer.events.newest())
    }

    /// Serves `/metrics` (Prometheus text) and `/status` (docs/format/status.md) at `address`, such as
    /// `127.0.0.1:9100`, until the loader stops; starts it. With a token every reader has to bring it; an address that
    /// other machines can reach needs one. Returns where it listens.
    ///
    /// Errors: `Config` for an address that cannot be bound or a token that is missing or too simple, and as
    /// [`DataLoader::start`].
    pub fn serve_metrics(&self, address: &str, token: Option<&str>) -> Result<SocketAddr> {
        let endpoint = endpoint(address, token)?;
        let running = self.running(None)?.ok_or(Error::Stopped)?;
        let bound = endpoint.address();
        let (stop, observer) = (running.scheduler.stop_flag(), running.observer.clone());
        let serve = move || {
            let status = |after| serde_json::to_string(&observer.status(after)).unwrap_or_default();
            endpoint.serve(&stop, &Pages { metrics: &|| observer.metrics().prometheus(), status: &status });
        };
        running.scheduler.spawn("metrics-http", serve).map_err(|e| failed(address, &e))?;
        Ok(bound)
    }
}
