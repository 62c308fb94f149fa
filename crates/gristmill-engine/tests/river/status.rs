//! What a loader tells other processes: the status document, its events, and who may read it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use gristmill_engine::config::{BadChunks, DataLoaderConfig};
use gristmill_engine::pipeline::{CertificateStatus, LedgerStatus, RunState, STATUS_VERSION, StageStatus, Status};
use gristmill_engine::preset::{Lc0Preset, Weighted};
use gristmill_engine::{ControlRequest, DataLoader, Error};

use super::games::{
    all_ids, config, generate, loader, mixed, next, nobody_listens, options, preset, single, with_cache,
};

/// Looks until `found` says so.
fn wait_for(loader: &DataLoader, found: impl Fn(&Status) -> bool) -> Status {
    let start = Instant::now();
    loop {
        let status = loader.status(0);
        if found(&status) {
            return status;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{status:#?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn told<'a>(status: &'a Status, kind: &str) -> Vec<&'a gristmill_engine::runtime::events::Event> {
    status.events.iter().filter(|event| event.kind == kind).collect()
}

/// Code and body of an answer, if there is one.
fn ask(address: SocketAddr, path: &str, token: Option<&str>) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    write!(stream, "GET {path} HTTP/1.0\r\n{token}\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

fn spoilt(bad: &[u64]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    generate(options(folder.path(), 8));
    for n in bad {
        std::fs::write(folder.path().join(format!("training.{n}.gz")), b"\x1f\x8b\x08 rubbish").unwrap();
    }
    folder
}

fn pass(folder: &Path) -> Lc0Preset {
    Lc0Preset { epochs: Some(1), reservoir: None, sampling_rate: None, ..preset(folder) }
}

#[test]
fn the_document_has_every_stage_with_edges_totals_and_streams() {
    let directories = ["v7", "tars"].map(|name| Weighted { directory: mixed().join(name), weight: 1.0 }).to_vec();
    let split = vec![("train".to_owned(), 3), ("test".to_owned(), 1)];
    let loader = loader(&Lc0Preset { directories, split, ..preset(mixed()) });
    assert_eq!(loader.status(0), Status::default(), "nothing runs yet");
    (0..5).for_each(|_| drop(next(&loader, "train")));
    let status =
        wait_for(&loader, |status| status.stages.iter().all(|stage| stage.gives != "frames" || given(stage) > 0));
    assert_eq!((status.gristmill_status, status.seed, status.state), (STATUS_VERSION, 11, RunState::Running));
    assert_eq!(status.process, std::process::id());
    let config = loader.config();
    assert_eq!(status.stages.len(), config.stage.len());
    for stage in &status.stages {
        let own = config.stage.iter().find(|own| own.name == stage.name).unwrap();
        assert_eq!(own.kind().unwrap().name(), stage.kind);
        assert_eq!(own.input.len(), stage.inputs.len());
    }
    let of = |name: &str| status.stages.iter().find(|stage| stage.name == name).unwrap();
    let generator = of(&status.outputs[0].stage);
    assert_eq!((status.outputs[0].alias.as_str(), generator.streams.as_slice()), ("train", &["train".to_owned()][..]));
    assert!(given(generator) >= 5 && generator.queues[0].got == 5, "{generator:?}");
    assert!(generator.loads[0].load_seconds > 0.0 && generator.loads[0].total_seconds > 0.0);
    let pool = status.stages.iter().find(|stage| stage.kind == "shuffling_chunk_pool").unwrap();
    assert!(pool.queues[0].put >= pool.queues[0].waiting && given(pool) == pool.queues[0].put);
    let text = serde_json::to_string(&status).unwrap();
    assert_eq!(serde_json::from_str::<Status>(&text).unwrap(), status);
}

#[test]
fn the_page_names_every_field_and_every_kind_of_event() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/format/status.md")).unwrap();
    let folder = spoilt(&[3]);
    let ledger = Some(folder.path().join("ledger"));
    let loader = DataLoader::new(DataLoaderConfig { ledger, ..config(&pass(folder.path())) }).unwrap();
    loader.certified(certificate("good"));
    all_ids(&loader, "");
    let status = wait_for(&loader, |status| status.state == RunState::Ended && !told(status, "scanned").is_empty());
    let mut open = vec![serde_json::to_value(&status).unwrap()];
    let mut words: Vec<String> = status.events.iter().map(|event| event.kind.to_string()).collect();
    while let Some(value) = open.pop() {
        match value {
            serde_json::Value::Object(fields) => {
                for (name, value) in fields {
                    words.push(name.clone());
                    open.extend((name != "by_kind").then_some(value));
                }
            }
            serde_json::Value::Array(values) => open.extend(values),
            _ => {}
        }
    }
    for word in words.iter().filter(|word| *word != "files" && *word != "seed") {
        assert!(page.contains(&format!("`{word}`")), "`{word}` is not on the page");
    }
    assert!(page.contains(&format!("version of the document: {STATUS_VERSION}")));
}

fn certificate(level: &str) -> CertificateStatus {
    CertificateStatus { level: level.into(), says: format!("{level}: for a reason"), ..CertificateStatus::default() }
}

#[test]
fn a_ledger_that_is_gone_and_the_last_certificate_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    let config = DataLoaderConfig { ledger: Some(path.clone()), ..config(&preset(mixed())) };
    let loader = DataLoader::new(config).unwrap();
    loader.certified(certificate("weak"));
    (0..3).for_each(|_| drop(next(&loader, "")));
    loader.certified(certificate("good"));
    let status = loader.status(0);
    let ledger = LedgerStatus { path: path.display().to_string(), batches: 3, fault: None };
    assert_eq!((status.ledger.as_ref(), &status.certificates[..]), (Some(&ledger), &[certificate("good")][..]));
    loader.state().unwrap();
    assert_eq!(loader.status(0).ledger, Some(ledger.clone()), "a state notes no batch");
    drop(next(&loader, ""));
    loader.stop();
    std::fs::rename(&path, folder.path().join("elsewhere")).unwrap();
    let error = loader.state().unwrap_err();
    assert_eq!(loader.status(0).ledger, Some(LedgerStatus { batches: 4, fault: Some(error.to_string()), ..ledger }));
    std::fs::rename(folder.path().join("elsewhere"), &path).unwrap();
    loader.state().unwrap();
    assert_eq!(loader.status(0).ledger.unwrap().fault, None, "it can be written again");
}

fn given(stage: &StageStatus) -> u64 {
    stage.counts.iter().find(|count| count.name == stage.gives).map_or(0, |count| count.total)
}

#[test]
fn anchors_and_caches_are_told() {
    let loader = DataLoader::new(with_cache(config(&single(mixed())), 100, 2)).unwrap();
    next(&loader, "");
    loader.control(&ControlRequest::SetChunkAnchor("training.7.gz".into())).unwrap();
    loader.control(&ControlRequest::QueryChunkAnchor).unwrap();
    loader.control(&ControlRequest::ResetChunkAnchor).unwrap();
    let status = loader.status(0);
    let anchors = told(&status, "anchor");
    assert_eq!(anchors.len(), 2, "a question is no event: {anchors:?}");
    assert!(anchors[0].stage.as_deref() == Some("pool") && anchors[0].message.contains("training.7.gz"));
    let place = |name: &str| status.stages.iter().position(|stage| stage.name == name).unwrap();
    assert!(["files", "load", "pool", "unpack", "both", "tensors"].map(place).is_sorted(), "flow order");
    let pool = &status.stages[place("pool")];
    assert_eq!(pool.inputs.len(), 2, "the way back is an edge like any other");
    assert!(pool.texts.iter().any(|text| text.name == "anchor" && !text.value.is_empty()), "{:?}", pool.texts);
    for name in ["cached_positions", "chunks_since_anchor"] {
        assert!(pool.gauges.iter().any(|gauge| gauge.name == name), "{name}");
    }
}

#[test]
fn a_run_is_told_from_start_to_stop() {
    let folder = spoilt(&[3]);
    let loader = loader(&pass(folder.path()));
    all_ids(&loader, "");
    let status = wait_for(&loader, |status| status.state == RunState::Ended && !told(status, "scanned").is_empty());
    assert_eq!(told(&status, "started").len(), 1);
    assert!(told(&status, "scanned")[0].message.contains("8 files"));
    let bad = told(&status, "bad_chunk");
    assert_eq!(bad.len(), 1);
    assert!(bad[0].details["source"].as_str().unwrap().ends_with("training.3.gz"), "{bad:?}");
    assert!(bad[0].details.contains_key("kind") && bad[0].message.contains("training.3.gz"));
    assert!(told(&status, "ended")[0].stage.is_some() && status.outputs[0].ended);
    assert!(status.events.is_sorted_by_key(|event| event.number));
    let newest = status.newest_event;
    loader.stop();
    loader.stop();
    let after = loader.status(newest);
    assert_eq!((after.state, after.events.len()), (RunState::Stopped, 1), "{:?}", after.events);
    assert_eq!((&*after.events[0].kind, after.events[0].number), ("stopped", newest + 1));
    assert_eq!(given(&after.stages[0]), given(&status.stages[0]), "the last values stay");
}

#[test]
fn arrivals_quarantine_and_trouble_are_told() {
    let folder = spoilt(&[2]);
    let report = tempfile::NamedTempFile::new().unwrap();
    let quarantine = Lc0Preset {
        bad_chunks: BadChunks::Quarantine,
        quarantine: Some(report.path().to_owned()),
        watch: Some(true),
        ..preset(folder.path())
    };
    let running = loader(&quarantine);
    wait_for(&running, |status| {
        next(&running, "");
        !told(status, "quarantined").is_empty() && !told(status, "scanned").is_empty()
    });
    std::fs::write(folder.path().join("training.900.gz"), std::fs::read(folder.path().join("training.1.gz")).unwrap())
        .unwrap();
    generate(gristmill_generate::ChessOptions { first: 50, ..options(folder.path(), 2) });
    wait_for(&running, |status| {
        next(&running, "");
        told(status, "arrived").iter().map(|event| event.details["files"].as_u64().unwrap()).sum::<u64>() >= 2
    });
    let full = loader(&Lc0Preset { quarantine: Some("/dev/full".into()), ..quarantine });
    let status = wait_for(&full, |status| {
        next(&full, "");
        !told(status, "report_fault").is_empty()
    });
    assert!(told(&status, "quarantined").is_empty() && told(&status, "bad_chunk").len() == 1);
    let hopeless = spoilt(&[1, 2, 3, 4, 5, 6, 7, 8]);
    let failing = loader(&preset(hopeless.path()));
    assert!(failing.next("", None).is_err());
    let failed = failing.status(0);
    let failed = told(&failed, "failed");
    assert!(failed[0].stage.as_deref() == Some("pool") && failed[0].message.contains("all 8"), "{failed:?}");
}

/// Whether a reader that asks again and again saw the stop; it may have been between two questions.
fn stop_is_seen() -> bool {
    let loader = loader(&preset(mixed()));
    let address = loader.serve_metrics("127.0.0.1:0", None).unwrap();
    let page = |path: &str| serde_json::from_str::<Status>(&ask(address, path, None)?.1).ok();
    assert_eq!(page("/status").unwrap().state, RunState::Running);
    assert!(ask(address, "/metrics", None).unwrap().1.contains("gristmill_rows_total"));
    let seen = std::thread::scope(|scope| {
        let answers = || std::iter::from_fn(|| page("/status?after=0&wait=2"));
        let watcher = scope.spawn(move || answers().find(|found| found.state == RunState::Stopped));
        next(&loader, "");
        assert_eq!(loader.stop(), Vec::<String>::new());
        watcher.join().unwrap()
    });
    nobody_listens(address);
    seen.inspect(|last| assert_eq!(told(last, "stopped").len(), 1)).is_some()
}

#[test]
fn the_pages_are_served_until_the_stop_and_a_watcher_learns_of_it() {
    assert!((0..50).any(|_| stop_is_seen()));
}

#[test]
fn what_other_machines_can_reach_needs_a_token() {
    let refusal = |error: Error| match error {
        Error::Config { stage: None, field, message, .. } => (field.unwrap(), message),
        other => panic!("{other}"),
    };
    let loader = loader(&preset(mixed()));
    let (field, message) = refusal(loader.serve_metrics("0.0.0.0:0", None).unwrap_err());
    assert!(field == "token" && message.contains("127.0.0.1"), "{message}");
    let (field, message) = refusal(loader.serve_metrics("127.0.0.1:0", Some("easy")).unwrap_err());
    assert!(field == "token" && message.contains("16") && !message.contains("easy"), "{message}");
    assert_eq!(loader.status(0), Status::default(), "a refusal starts nothing");
    let address = loader.serve_metrics("0.0.0.0:0", Some("a-token-of-20-letters")).unwrap();
    let here = SocketAddr::from(([127, 0, 0, 1], address.port()));
    for page in ["/status", "/metrics"] {
        let code = |token| ask(here, page, token).unwrap().0;
        assert_eq!(code(None), 401);
        assert_eq!(code(Some("another-of-20-letters")), 401);
        assert_eq!(code(Some("a-token-of-20-letters")), 200);
    }
}
