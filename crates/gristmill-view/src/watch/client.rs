//! An address -> the status of the loader there, once or again and again. Every wait and every document has a bound;
//! a request that failed is repeated, and what answers but is no loader is said to be none.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gristmill_engine::pipeline::{STATUS_VERSION, Status};
use gristmill_engine::runtime::metrics::Clock;
use serde::Deserialize;
use serde_json::Value;

/// Longest wait for a connection, and for an answer beyond the time that it is held back.
const CONNECT: Duration = Duration::from_secs(3);
const ANSWER: Duration = Duration::from_secs(10);

/// Largest document that is read.
const MOST_BYTES: u64 = 16 << 20;

/// What a loader says of itself.
#[derive(Debug)]
pub struct Document {
    /// It, as far as this version knows it.
    pub status: Status,
    /// All of it.
    pub all: Value,
}

/// Whether a document is of another run than the one heard before it: of another process or start, or its clock went back.
pub fn is_another_run(known: &Status, next: &Status) -> bool {
    let run = |status: &Status| (status.process, status.started_unix_ms);
    run(known) != run(next) || next.uptime_seconds < known.uptime_seconds
}

/// Asks one loader.
#[derive(Clone)]
pub struct Client {
    agent: ureq::Agent,
    address: String,
    token: Option<String>,
}

impl Client {
    /// Asks the loader at `address`.
    pub fn new(address: String, token: Option<String>) -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_connect(Some(CONNECT))
            .timeout_global(Some(ANSWER))
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .max_idle_connections(0)
            .build();
        Client { agent: config.new_agent(), address, token }
    }

    /// Where the loader is.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whether it has a token for the loader.
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// The document as it is, with the events after number `after`, held back for `wait` seconds.
    ///
    /// Errors: why there is none, for people.
    pub fn document(&self, after: u64, wait: f64) -> Result<Value, String> {
        let url = format!("http://{}/status?after={after}&wait={wait}", self.address);
        // A connection is used once: what answers when a loader has stopped must not hang on an old one.
        let mut request = self.agent.get(url).header("Connection", "close");
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let mut answer = request.call().map_err(|e| match e {
            ureq::Error::Io(e) => e.to_string(),
            other => other.to_string(),
        })?;
        match answer.status().as_u16() {
            200 => {}
            401 if self.token.is_some() => return Err("the token is not the loader's".to_owned()),
            401 => return Err("it wants a token: --token-file FILE, or GRISTMILL_TOKEN".to_owned()),
            code => return Err(format!("what answers there is no gristmill loader (HTTP {code})")),
        }
        let no_document = |e: String| format!("what answers there is no gristmill loader ({e})");
        let value: Value = {
            let text = answer.body_mut().with_config().limit(MOST_BYTES).read_to_string();
            serde_json::from_str(&text.map_err(|e| no_document(e.to_string()))?)
                .map_err(|e| no_document(e.to_string()))?
        };
        match value.get("gristmill_status").and_then(Value::as_u64) {
            Some(version) if version == u64::from(STATUS_VERSION) => Ok(value),
            Some(version) => Err(format!(
                "the loader speaks version {version} of the status document, this gristmill version {STATUS_VERSION}: \
                 use the gristmill of the loader"
            )),
            None => Err(no_document("not a status document".to_owned())),
        }
    }

    /// The document as data.
    ///
    /// Errors: as [`Client::document`].
    pub fn status(&self, after: u64, wait: f64) -> Result<Document, String> {
        let all = self.document(after, wait)?;
        let status = Status::deserialize(&all);
        let status = status.map_err(|e| format!("the loader's status document cannot be read: {e}"))?;
        Ok(Document { status, all })
    }

    /// Gives each document to `hear`, one every `every` seconds, or why there is none, until `stop` is set or `hear` says no.
    /// The events of a document are those that came after the document before it.
    pub fn follow(&self, every: f64, stop: &AtomicBool, hear: &mut dyn FnMut(Result<Document, String>) -> bool) {
        let (mut after, mut wait, mut last) = (0, 0.0, None);
        while !stop.load(Ordering::Relaxed) {
            let (clock, held) = (Clock::default(), wait);
            let heard = self.status(after, wait);
            match &heard {
                Ok(Document { status, .. }) => {
                    let clock = Status { stages: Vec::new(), events: Vec::new(), ..status.clone() };
                    if last.replace(clock).is_some_and(|known| is_another_run(&known, status)) && after > 0 {
                        // Its events count from the beginning.
                        (after, wait) = (0, 0.0);
                        continue;
                    }
                    (after, wait) = (status.newest_event, every);
                }
                Err(_) => {
                    wait = 0.0;
                    std::thread::sleep(Duration::from_secs_f64(every));
                }
            }
            if !hear(heard) {
                return;
            }
            // A loader with many watchers, and what is none, may answer at once: it has its pause all the same.
            std::thread::sleep(Duration::from_secs_f64((held - clock.seconds()).max(0.0)));
        }
    }
}
