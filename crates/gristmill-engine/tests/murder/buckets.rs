//! A bucket for runs that are killed, on a server of this process that outlives them; and a loader of a pack there, killed over and
//! over: every batch that any of its lives gave is that of the pack on a disk.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_engine::chunks::open::ChunkPack;
use gristmill_engine::config::IndexConfig;
use gristmill_engine::runtime::seed::{Draws, Key};
use gristmill_engine::selection::Selection;
use gristmill_engine::store::bucket::{Options, set_options};
use gristmill_engine::store::{Cache, Residence, set_cache};
use gristmill_engine::{IndexLoader, Next};
use gristmill_faultserver::{Network, Running, start};
use gristmill_format::chess::Version;
use gristmill_generate::{ChessGenerator, ChessOptions};
use gristmill_jobs::pack::{PackOptions, pack};

use super::{PATIENCE, batch_of, rows};

/// Says to a process where the server is.
pub(super) const ENDPOINT: &str = "MURDER_ENDPOINT";

/// The bucket, and its scheme.
const BUCKET: &str = "s3://murder";

/// Batches between two saved states.
const SAVED_EVERY: u64 = 5;

/// The URL of a folder of the bucket.
pub(super) fn url(name: &str) -> PathBuf {
    Path::new(BUCKET).join(name)
}

/// Where that folder lies on this machine, below the one of a run.
pub(super) fn folder(run: &Path, name: &str) -> PathBuf {
    run.join("buckets/murder").join(name)
}

/// Starts the server of a run.
pub(super) fn serve(run: &Path) -> Running {
    let network = Network { anonymous: true, ..Network::default() };
    start(run.join("buckets"), network).unwrap()
}

/// Says to this process how the bucket is reached, if there is one.
pub(super) fn reach() {
    if let Ok(endpoint) = std::env::var(ENDPOINT) {
        set_options(BUCKET, Options { endpoint: Some(endpoint), anonymous: true, ..Options::default() });
    }
}

/// A few of the next requests fail.
pub(super) fn fail(server: &Running, draws: &mut Draws) {
    let fault = [r#""slow_down""#, r#""internal_error""#, r#"{"drop": 100}"#, r#"{"stall": 30}"#];
    let (fault, after) = (fault[draws.below(4) as usize], draws.below(40));
    // Those before are over, or they would add up to a store that is away.
    assert_eq!(server.obey("\"mend\""), "ok");
    let order = format!(r#"{{"fail": {{"operation": "get", "after": {after}, "times": 2, "fault": {fault}}}}}"#);
    assert_eq!(server.obey(&order), "ok");
}

/// A loader of the rows of a pack.
fn loader(pack: &Path) -> IndexLoader {
    let input = Selection::all(Arc::new(ChunkPack::open(pack, Residence::Mapped).unwrap())).input();
    let config =
        IndexConfig { batch_size: 32, seed: Some(11), threads: Some(2), epochs: None, ..IndexConfig::default() };
    IndexLoader::new(input, config).unwrap()
}

/// What is killed: feeds the pack, logs each batch, and saves its state now and then.
#[test]
#[ignore = "the process that the test below starts and kills"]
fn victim_of_a_pack() {
    let Ok(folder) = std::env::var("MURDER_PACK") else { return };
    let folder = Path::new(&folder);
    reach();
    set_cache(Cache { folder: Some(folder.join("twins")), limit: None });
    let (loader, state) = (loader(&url("pack")), folder.join("state"));
    if state.exists() {
        loader.load(&state).unwrap();
    }
    let mut log = std::fs::OpenOptions::new().create(true).append(true).open(folder.join("log")).unwrap();
    // A life that was killed may have left half a line.
    log.write_all(b"\n").unwrap();
    loop {
        let Next::Batch(batch) = loader.next("", Some(PATIENCE)).unwrap() else { panic!("no batch") };
        let hashes: Vec<String> = rows(&batch).iter().map(u64::to_string).collect();
        log.write_all(format!("batch {} {} .\n", batch.number, hashes.join(" ")).as_bytes()).unwrap();
        if (batch.number + 1).is_multiple_of(SAVED_EVERY) {
            loader.save(&state).unwrap();
        }
    }
}

#[test]
fn killed_while_a_pack_is_fed_from_a_bucket() {
    let kills: u64 = std::env::var("GRISTMILL_KILLS").map_or(20, |kills| kills.parse().unwrap());
    let kept = tempfile::tempdir().unwrap().keep();
    println!("a pack in a bucket: {}", kept.display());
    let games = kept.join("all");
    let options = ChessOptions {
        folder: games.clone(),
        games: 60,
        first: 1,
        seed: 7,
        plies_max: 60,
        version: Version::V6,
        games_per_tar: None,
    };
    let mut generator = ChessGenerator::new(options).unwrap();
    while generator.write_next().unwrap().is_some() {}
    let there = folder(&kept, "pack");
    std::fs::create_dir_all(there.parent().unwrap()).unwrap();
    pack(&PackOptions::new(&games, &there), &mut |_| ()).unwrap();
    let server = serve(&kept);
    let lines = || {
        let text = std::fs::read_to_string(kept.join("log")).unwrap_or_default();
        let whole = |line: &&str| line.starts_with("batch ") && line.ends_with(" .");
        text.lines().filter(whole).map(str::to_owned).collect::<Vec<String>>()
    };
    let key = Key::new(9, "murder of a pack");
    for life in 0..=kills {
        let mut draws = key.at(life);
        fail(&server, &mut draws);
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["buckets::victim_of_a_pack", "--exact", "--ignored", "--nocapture"]);
        command.env("MURDER_PACK", &kept).env(ENDPOINT, &server.address);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap();
        let (more, then, began) = (draws.below(20), draws.below(40), Instant::now());
        let wanted = lines().len() + if life == kills { 40 } else { more as usize };
        while lines().len() < wanted {
            assert!(began.elapsed() < PATIENCE, "{wanted} batches in life {life}");
            assert!(child.try_wait().unwrap().is_none(), "life {life} ended by itself");
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(Duration::from_millis(then));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let whole = loader(&there);
    let mut expected: BTreeMap<u64, String> = BTreeMap::new();
    let (lines, mut again, mut last) = (lines(), 0, None);
    for line in &lines {
        let number = batch_of(line).unwrap();
        while expected.len() as u64 <= number {
            let Next::Batch(batch) = whole.next("", Some(PATIENCE)).unwrap() else { panic!("batch {number}") };
            let hashes: Vec<String> = rows(&batch).iter().map(u64::to_string).collect();
            expected.insert(batch.number, format!("batch {} {} .", batch.number, hashes.join(" ")));
        }
        assert_eq!(*line, expected[&number]);
        again += u64::from(last.is_some_and(|last| number <= last));
        last = last.max(Some(number));
    }
    println!("{kills} kills: {} batches, {again} of them again", lines.len());
    assert!(kills < 10 || again > 0, "some batches were given again");
    assert!(expected.len() > 40, "it never went on");
    std::fs::remove_dir_all(kept).unwrap();
}
