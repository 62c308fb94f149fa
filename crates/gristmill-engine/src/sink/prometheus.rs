//! A metrics snapshot -> Prometheus text, and the endpoint that serves it at `/metrics`.
//! Answers one request at a time from a snapshot; a scraper that hangs holds up nothing but the next scrape.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tiny_http::{Header, Response, Server};

/// How often the server looks whether it is to end.
const POLL: Duration = Duration::from_millis(100);

/// What the text content is called.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StageLabels {
    stage: String,
    kind: &'static str,
    name: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: String,
}

/// One number of one stage, as a snapshot lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Name of the stage.
    pub stage: String,
    /// Kind of the stage.
    pub kind: &'static str,
    /// Name of the number.
    pub name: &'static str,
    /// The number.
    pub value: u64,
    /// Whether it only grows.
    pub grows: bool,
}

/// A snapshot as OpenMetrics text: `gristmill_stage_total` for what grows, `gristmill_stage_value` for what does not
/// (labels stage, kind, name), and `gristmill_bad_chunks_total` by kind.
pub fn text(samples: &[Sample], bad_chunks: &[(String, u64)]) -> String {
    let mut registry = Registry::with_prefix("gristmill");
    let totals = Family::<StageLabels, Counter<u64, AtomicU64>>::default();
    let values = Family::<StageLabels, Gauge<i64, std::sync::atomic::AtomicI64>>::default();
    let bad = Family::<KindLabels, Counter<u64, AtomicU64>>::default();
    for sample in samples {
        let labels = StageLabels { stage: sample.stage.clone(), kind: sample.kind, name: sample.name };
        if sample.grows {
            totals.get_or_create(&labels).inc_by(sample.value);
        } else {
            values.get_or_create(&labels).set(i64::try_from(sample.value).unwrap_or(i64::MAX));
        }
    }
    for (kind, count) in bad_chunks {
        bad.get_or_create(&KindLabels { kind: kind.clone() }).inc_by(*count);
    }
    registry.register("stage", "What each stage did since the start", totals);
    registry.register("stage_value", "What each stage holds now", values);
    registry.register("bad_chunks", "Chunks found bad since the start", bad);
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = encode(&mut text, &registry);
    text
}

/// A bound endpoint that is not serving yet.
pub struct Endpoint(Server);

impl Endpoint {
    /// Binds `address`, such as `127.0.0.1:9100`; port 0 takes any free one.
    ///
    /// Errors: the address is wrong, in use or not allowed.
    pub fn bind(address: &str) -> std::io::Result<Self> {
        Server::http(address).map(Endpoint).map_err(|e| match e.downcast::<std::io::Error>() {
            Ok(e) => *e,
            Err(e) => std::io::Error::new(std::io::ErrorKind::InvalidInput, e.to_string()),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.0.server_addr().to_ip()
    }

    /// Answers requests with what `text` gives, until `stop` is set.
    pub fn serve(self, stop: &AtomicBool, text: impl Fn() -> String) {
        let kind = Header::from_bytes("Content-Type", CONTENT_TYPE);
        while !stop.load(Ordering::Relaxed) {
            let Ok(Some(request)) = self.0.recv_timeout(POLL) else { continue };
            let found = matches!(request.url().split('?').next(), Some("/metrics" | "/"));
            let body = if found { text() } else { "see /metrics\n".to_owned() };
            let mut response = Response::from_string(body).with_status_code(if found { 200 } else { 404 });
            if let (true, Ok(kind)) = (found, &kind) {
                response.add_header(kind.clone());
            }
            // The scraper went away: its loss.
            let _ = request.respond(response);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    fn samples() -> Vec<Sample> {
        let sample = |name, value, grows| Sample { stage: "po\"ol".into(), kind: "pool", name, value, grows };
        vec![sample("draws", 7, true), sample("chunks_current", 40, false)]
    }

    #[test]
    fn the_text_is_what_a_scraper_expects() {
        let text = text(&samples(), &[("truncated".into(), 2)]);
        for line in [
            r#"gristmill_stage_total{stage="po\"ol",kind="pool",name="draws"} 7"#,
            r#"gristmill_stage_value{stage="po\"ol",kind="pool",name="chunks_current"} 40"#,
            r#"gristmill_bad_chunks_total{kind="truncated"} 2"#,
            "# TYPE gristmill_stage counter",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
        }
    }

    #[test]
    fn the_endpoint_answers_and_ends() {
        let endpoint = Endpoint::bind("127.0.0.1:0").unwrap();
        let address = endpoint.address().unwrap();
        assert!(Endpoint::bind(&address.to_string()).is_err(), "the address is in use");
        let stop = AtomicBool::new(false);
        let ask = |path: &str| {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        std::thread::scope(|scope| {
            scope.spawn(|| endpoint.serve(&stop, || text(&samples(), &[])));
            let answer = ask("/metrics");
            assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("openmetrics") && answer.contains("# EOF"));
            assert!(ask("/elsewhere").starts_with("HTTP/1.1 404"));
            stop.store(true, Ordering::Relaxed);
        });
    }
}
