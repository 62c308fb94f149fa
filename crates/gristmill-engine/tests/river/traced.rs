//! Events of a loader as a subscriber of `tracing` writes them: lines of JSON, with levels, from all threads.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use gristmill_engine::DataLoader;
use gristmill_engine::preset::Lc0Preset;
use gristmill_generate::ChessOptions;
use serde_json::Value;
use tracing_subscriber::fmt::MakeWriter;

use super::games::{config, generate, next, options, preset};

/// What was written, of all loaders of this program.
static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());

#[derive(Clone, Copy)]
struct Kept;

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LINES.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Kept {
    type Writer = Kept;

    fn make_writer(&self) -> Kept {
        Kept
    }
}

#[test]
fn a_subscriber_writes_events_as_lines_of_json() {
    tracing_subscriber::fmt().json().with_writer(Kept).init();
    let folder = tempfile::tempdir().unwrap();
    generate(ChessOptions { games: 6, ..options(folder.path(), 6) });
    let bad = folder.path().join("training.9.gz");
    std::fs::write(&bad, b"\x1f\x8b no game").unwrap();
    let once = Lc0Preset { epochs: Some(1), ..preset(folder.path()) };
    let loader = DataLoader::new(config(&once)).unwrap();
    while next(&loader, "").is_some() {}
    loader.stop();

    let text = String::from_utf8(LINES.lock().unwrap().clone()).unwrap();
    let of_it =
        |line: &&Value| line["fields"]["details"].as_str().is_some_and(|text| text.contains(bad.to_str().unwrap()));
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found: Vec<_> = lines.iter().filter(of_it).collect();
    assert_eq!(found.len(), 1, "{text}");
    assert_eq!((&found[0]["level"], &found[0]["target"]), (&"WARN".into(), &"gristmill".into()));
    assert_eq!(found[0]["fields"]["kind"], "bad_chunk");
    assert!(found[0]["fields"]["message"].as_str().unwrap().contains("training.9.gz"));
    let details: Value = serde_json::from_str(found[0]["fields"]["details"].as_str().unwrap()).unwrap();
    assert_eq!(details["source"].as_str(), bad.to_str());
    assert!(lines.iter().any(|line| line["level"] == "INFO" && line["fields"]["kind"] == "started"));
}
