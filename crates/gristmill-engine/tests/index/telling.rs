//! What a loader of rows tells of itself, and how it ends: when it is stopped while its rows do not come, and when a task breaks off.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use gristmill_engine::config::{EncoderConfig, IndexConfig, LastBatch, Shuffle};
use gristmill_engine::pipeline::{CertificateStatus, RunState, Status};
use gristmill_engine::table::{FrameTable, IndexInput};
use gristmill_engine::{Error, IndexLoader, Next};
use gristmill_faultserver::{Network, start};
use gristmill_format::layout::Layout;

use crate::fixture::{Form, open, pack, reach, write_pack};

/// Long enough for anything on a busy machine; reaching it fails the test.
const PATIENCE: Duration = Duration::from_secs(60);

/// A table whose rows come once its gate is opened; one that breaks off panics instead.
#[derive(Debug)]
struct Gated {
    table: Arc<dyn FrameTable>,
    gate: Mutex<Gate>,
    changed: Condvar,
    breaks: bool,
}

#[derive(Debug)]
struct Gate {
    open: bool,
    /// Threads that came to it.
    came: usize,
}

impl Gated {
    fn new(input: IndexInput, breaks: bool) -> (Arc<Self>, IndexInput) {
        let table = Arc::clone(&input.table);
        let gate = Mutex::new(Gate { open: breaks, came: 0 });
        let gated = Arc::new(Gated { table, gate, changed: Condvar::new(), breaks });
        (Arc::clone(&gated), IndexInput { table: gated, ..input })
    }

    fn open(&self) {
        self.gate.lock().unwrap().open = true;
        self.changed.notify_all();
    }

    /// Waits until this number of threads wait for it.
    fn holds(&self, threads: usize) {
        let gate = self.gate.lock().unwrap();
        let (_gate, late) = self.changed.wait_timeout_while(gate, PATIENCE, |gate| gate.came < threads).unwrap();
        assert!(!late.timed_out(), "{threads} threads");
    }
}

impl FrameTable for Gated {
    fn layout(&self) -> &Layout {
        self.table.layout()
    }

    fn len(&self) -> u64 {
        self.table.len()
    }

    fn gather(&self, rows: &[u64], out: &mut [u8]) -> gristmill_format::Result<()> {
        let mut gate = self.gate.lock().unwrap();
        gate.came += 1;
        self.changed.notify_all();
        drop(self.changed.wait_while(gate, |gate| !gate.open).unwrap());
        assert!(!self.breaks, "no rows here");
        self.table.gather(rows, out)
    }

    fn want(&self, start: u64, end: u64) {
        self.table.want(start, end);
    }

    fn is_near(&self) -> bool {
        true
    }

    fn locate(&self, row: u64) -> (String, u64) {
        self.table.locate(row)
    }
}

fn config() -> IndexConfig {
    let (encoder, epochs) = (EncoderConfig::G2048(Default::default()), Some(1));
    let base =
        IndexConfig { encoder, batch_size: 300, epochs, seed: Some(9), threads: Some(3), ..IndexConfig::default() };
    IndexConfig { shuffle: Shuffle::Rows, ..base }
}

/// The code and the document that a loader serves.
fn page(address: SocketAddr) -> Option<Status> {
    let mut stream = TcpStream::connect(address).ok()?;
    write!(stream, "GET /status HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
}

#[test]
fn its_pages_and_numbers_are_its_own() {
    let (_folder, rows) = pack();
    let (train, _) = rows.split(0.3, 42).unwrap();
    let loader = IndexLoader::new(train.input(), IndexConfig { batch_size: 12, rank: 1, world_size: 3, ..config() });
    let loader = loader.unwrap();
    let certificate = |level: &str| CertificateStatus { level: level.into(), ..CertificateStatus::default() };
    loader.certified(certificate("weak"));
    loader.certified(certificate("good"));
    let address = loader.serve_metrics("127.0.0.1:0", None).unwrap();
    let before = page(address).unwrap();
    assert_eq!(
        (before.state, before.seed, &before.certificates[..]),
        (RunState::Running, 9, &[certificate("good")][..])
    );
    while let Next::Batch(_) = loader.next("", Some(PATIENCE)).unwrap() {}
    assert_eq!(page(address).unwrap().state, RunState::Ended);
    let metrics = loader.metrics();
    assert_eq!((metrics.rank, metrics.world_size), (1, 3));
    let gather = metrics.of_kind("gather").next().unwrap();
    let gauge = |name: &str| gather.gauge(name).unwrap().value;
    assert_eq!((gauge("rows_selected"), gauge("rows_of_table")), (train.rows().len(), rows.rows().len()));
    assert!(train.rows().len() < rows.rows().len());
    assert_eq!(metrics.stages.iter().map(|stage| stage.threads).collect::<Vec<_>>(), [3, 3]);
    assert!(loader.fetches(&mut || true).unwrap().is_none(), "nothing is fetched of a file of this machine");
}

#[test]
fn who_waits_for_rows_that_do_not_come_learns_of_the_stop() {
    let (_folder, rows) = pack();
    let (gate, input) = Gated::new(rows.input(), false);
    let loader = IndexLoader::new(input, config()).unwrap();
    std::thread::scope(|scope| {
        let consumer = scope.spawn(|| {
            let start = Instant::now();
            (loader.next("", Some(PATIENCE)), start.elapsed())
        });
        gate.holds(3);
        let hang = loader.stop();
        let (taken, waited) = consumer.join().unwrap();
        gate.open();
        assert!(matches!(taken, Err(Error::Stopped)), "{taken:?}");
        assert!(waited < PATIENCE / 2, "it waited for {waited:?}");
        assert_eq!(hang.len(), 3, "threads that hang are named: {hang:?}");
    });
}

#[test]
fn a_wait_for_rows_is_measured() {
    let (_folder, rows) = pack();
    let (gate, input) = Gated::new(rows.input(), false);
    let loader = IndexLoader::new(input, config()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            gate.open();
        });
        assert!(matches!(loader.next("", Some(PATIENCE)).unwrap(), Next::Batch(_)));
    });
    let waited = |loader: &IndexLoader| {
        let metrics = loader.metrics();
        metrics.of_kind("tensor_generator").next().unwrap().queue.as_ref().unwrap().consumer_wait_ns
    };
    assert!(waited(&loader) > Some(20_000_000), "{:?}", waited(&loader));
}

#[test]
fn a_task_that_breaks_off_ends_the_stream_with_an_error() {
    let (_folder, rows) = pack();
    let (_, input) = Gated::new(rows.input(), true);
    let loader = IndexLoader::new(input, config()).unwrap();
    let error = loader.next("", Some(PATIENCE)).unwrap_err().to_string();
    assert!(error.contains("a task broke off") && error.contains("no rows here"), "{error}");
    assert!(matches!(loader.next("", Some(PATIENCE)), Ok(Next::End)), "and nothing comes after it");
}

#[test]
fn how_passes_end_may_change_while_that_changes_no_batch_that_was_given() {
    let (_folder, rows) = pack();
    let of = |batch_size: usize, apart: bool| {
        let config = IndexConfig { batch_size, apart, last_batch: LastBatch::Keep, epochs: Some(2), ..config() };
        IndexLoader::new(rows.input(), config).unwrap()
    };
    let all = rows.rows().len();
    let even = (2..all).find(|size| all.is_multiple_of(*size)).map(|size| size as usize);
    let [odd, even] = [300, even.unwrap()].map(|size| (size, all / size as u64));
    assert!(!all.is_multiple_of(300) && odd.1 > 2);
    // Up to the first batch that ends differently, or anywhere where none does.
    for (size, batch, fits) in
        [(odd.0, 0, true), (odd.0, odd.1 - 1, true), (odd.0, odd.1, false), (even.0, even.1 + 1, true)]
    {
        for apart in [false, true] {
            let saved = of(size, apart);
            saved.seek(batch).unwrap();
            let taken = of(size, !apart).restore(&saved.state().unwrap());
            assert_eq!(taken.is_ok(), fits, "{size} rows, batch {batch}, apart {apart}: {taken:?}");
        }
    }
}

#[test]
fn rows_in_a_bucket_say_what_they_will_ask_for() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("rows-asked")).unwrap();
    write_pack(&folder.path().join("rows-asked"), 40, &Form::default());
    let server = start(folder.path().into(), Network { anonymous: true, ..Network::default() }).unwrap();
    reach("s3://rows-asked", &server.address);
    let loader = IndexLoader::new(open(Path::new("s3://rows-asked")).unwrap().input(), config()).unwrap();
    assert!(loader.fetches(&mut || true).unwrap().is_some());
}
