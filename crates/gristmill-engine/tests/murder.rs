//! A feeding process is killed at random moments while games come and leave, and goes on from its last state and journal:
//! every row of every batch that it ever gave is that of the uninterrupted run. `GRISTMILL_KILLS` says how often.

#![allow(clippy::print_stdout, reason = "says how much happened")]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gristmill_engine::config::{DataLoaderConfig, Lc0Preset, Weighted, lc0};
use gristmill_engine::job::generate::{ChessGenerator, ChessOptions};
use gristmill_engine::runtime::seed::Key;
use gristmill_engine::{Batch, DataLoader, Missing, Next};
use gristmill_format::chess::Version;
use xxhash_rust::xxh3::xxh3_64;

/// Long enough for anything on a busy machine; reaching it fails the test.
const PATIENCE: Duration = Duration::from_secs(120);

/// Games of the window, which all are there at first.
const POOL: u64 = 30;

/// Batches between two saved states.
const SAVED_EVERY: u64 = 5;

/// Files that have left the window, and so many after them, before one leaves the disk.
const MARGIN: usize = 10;

/// Where everything of one run lies, and how it is fed.
#[derive(Debug, Clone)]
struct Run {
    folder: PathBuf,
    lanes: Option<u32>,
}

impl Run {
    fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn config(&self, games: &Path, rank: u32, world: u32) -> DataLoaderConfig {
        let options = Lc0Preset {
            directories: vec![Weighted { directory: games.to_owned(), weight: 1.0 }],
            pool: POOL,
            reservoir: Some(60),
            batch_size: 16,
            sampling_rate: Some(0.25),
            seed: Some(11),
            threads: Some(2),
            tensors: ["planes:bits", "probs", "values"].map(String::from).to_vec(),
            index: Some("off".into()),
            journal: Some(self.at("journal")),
            lanes: self.lanes,
            rank: Some(rank),
            world_size: Some(world),
            ..Lc0Preset::default()
        };
        lc0(&options).unwrap()
    }

    fn log(&self, life: u64, rank: u32) -> PathBuf {
        self.at(&format!("log.{life}.{rank}"))
    }

    fn lines(&self, life: u64, rank: u32) -> Vec<String> {
        let text = std::fs::read_to_string(self.log(life, rank)).unwrap_or_default();
        // A killed process may leave half a line.
        text.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(|line| line.trim_end().to_owned()).collect()
    }
}

fn number(name: &str) -> u32 {
    std::env::var(name).unwrap().parse().unwrap()
}

fn rows(batch: &Batch) -> Vec<u64> {
    let row = |i: usize| {
        let bytes = batch.columns.iter().flat_map(|column| {
            let row = column.bytes().len() / batch.rows;
            column.bytes()[i * row..][..row].iter().copied()
        });
        xxh3_64(&bytes.collect::<Vec<u8>>())
    };
    (0..batch.rows).map(row).collect()
}

/// What is killed: feeds, logs each batch, and saves its state now and then.
#[test]
#[ignore = "the process that the tests beside it start and kill"]
fn victim() {
    let Ok(folder) = std::env::var("MURDER_FOLDER") else { return };
    let lanes = Some(number("MURDER_LANES")).filter(|lanes| *lanes > 1);
    let run = Run { folder: folder.into(), lanes };
    let [rank, world, life, until] = ["RANK", "WORLD", "LIFE", "UNTIL"].map(|name| number(&format!("MURDER_{name}")));
    let loader = DataLoader::new(run.config(&run.at("games"), rank, world)).unwrap();
    let state = run.at("state");
    if life > 0 {
        loader.load(&state, Missing::Refuse).unwrap();
    }
    if let Err(error) = loader.start() {
        std::fs::write(run.at("refused"), error.to_string()).unwrap();
        return;
    }
    let mut log = std::fs::OpenOptions::new().create(true).append(true).open(run.log(life.into(), rank)).unwrap();
    let mut saved = None;
    loop {
        let Next::Batch(batch) = loader.next("", Some(PATIENCE)).unwrap() else { panic!("{:#?}", loader.metrics()) };
        let hashes: Vec<String> = rows(&batch).iter().map(u64::to_string).collect();
        log.write_all(format!("batch {} {}\n", batch.number, hashes.join(" ")).as_bytes()).unwrap();
        let step = batch.number + 1;
        if step.is_multiple_of(SAVED_EVERY) {
            // Ranks stay together, as those do that train together.
            let before = saved.map(|step: u64| format!("saved {step}"));
            let together = |rank| before.as_ref().is_none_or(|saved| run.lines(life.into(), rank).contains(saved));
            wait_for("the other ranks", || (0..world).all(together));
            loader.save(&state).unwrap();
            log.write_all(format!("saved {step}\n").as_bytes()).unwrap();
            saved = Some(step);
        }
        if step >= u64::from(until) {
            return;
        }
    }
}

fn wait_for(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Games that are there, to come, and gone.
struct Games {
    all: Vec<PathBuf>,
    live: PathBuf,
    /// So many came, and the first so many have left the disk.
    came: usize,
    left: usize,
}

impl Games {
    fn come(&mut self, games: usize) {
        for path in &self.all[self.came..self.came + games] {
            std::fs::hard_link(path, self.live.join(path.file_name().unwrap())).unwrap();
        }
        self.came += games;
    }

    fn leave(&mut self) {
        while self.left + POOL as usize + MARGIN < self.came {
            // One that was needed and put back may be gone already.
            let _ = std::fs::remove_file(self.live.join(self.all[self.left].file_name().unwrap()));
            self.left += 1;
        }
    }

    /// Puts back what a refusal names; how many.
    fn put_back(&self, refused: &str) -> usize {
        let named = |path: &&PathBuf| refused.contains(&format!("`{}`", path.file_name().unwrap().to_str().unwrap()));
        let named: Vec<&PathBuf> = self.all[..self.left].iter().filter(named).collect();
        named.iter().for_each(|path| std::fs::hard_link(path, self.live.join(path.file_name().unwrap())).unwrap());
        named.len()
    }
}

fn spawn(run: &Run, life: u64, worlds: u32, until: u64) -> Vec<Child> {
    let child = |rank: u32| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["victim", "--exact", "--ignored", "--nocapture"]).env("MURDER_FOLDER", &run.folder);
        command.env("MURDER_LANES", run.lanes.unwrap_or(1).to_string());
        for (name, value) in [("RANK", rank.into()), ("WORLD", worlds.into()), ("LIFE", life), ("UNTIL", until)] {
            command.env(format!("MURDER_{name}"), value.to_string());
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap()
    };
    (0..worlds).map(child).collect()
}

/// Kills a run over and over; `worlds` are the numbers of ranks of its lives in turn.
fn murder(seed: u64, lanes: Option<u32>, worlds: &[u32], leaves: bool) {
    let kills: u64 = std::env::var("GRISTMILL_KILLS").map_or(20, |kills| kills.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let run = Run { folder: folder.path().to_owned(), lanes };
    let all = run.at("all");
    let options = ChessOptions {
        folder: all.clone(),
        games: POOL + 4 * (kills + 1),
        first: 1,
        seed: 7,
        plies_max: 30,
        version: Version::V6,
        games_per_tar: None,
    };
    let mut generator = ChessGenerator::new(options.clone()).unwrap();
    while generator.write_next().unwrap().is_some() {}
    let game = |i| all.join(format!("training.{i}.gz"));
    let live = run.at("games");
    std::fs::create_dir(&live).unwrap();
    if lanes.is_some() {
        std::fs::create_dir(run.at("state")).unwrap();
    }
    let mut games = Games { all: (1..=options.games).map(game).collect(), live, came: 0, left: 0 };
    games.come(POOL as usize);
    let (key, mut refusals) = (Key::new(seed, "murder"), 0);
    let mut farthest = 0;
    for life in 0..=kills {
        let mut draws = key.at(life);
        let (world, last) = (worlds[life as usize % worlds.len()], life == kills);
        let until = if last { farthest + 40 } else { u64::from(u32::MAX) };
        let seen = |run: &Run| (0..world).map(|rank| run.lines(life, rank).len() as u64).min().unwrap();
        let mut ranks = spawn(&run, life, world, until);
        if life == 0 {
            // All ranks find the same games first, and there is a state to go on from.
            wait_for("first batches", || seen(&run) > SAVED_EVERY);
        }
        let (first, then) = (draws.below(4) as usize, draws.below(60));
        games.come(first);
        if last {
            loop {
                ranks.iter_mut().for_each(|rank| assert!(rank.wait().unwrap().success()));
                if !mend(&run, &games) {
                    break;
                }
                refusals += 1;
                ranks = spawn(&run, life, world, until);
            }
        } else if then < 10 {
            // Amid the start.
            std::thread::sleep(Duration::from_millis(4 * then));
        } else {
            let mut start = Instant::now();
            while seen(&run) < then {
                assert!(start.elapsed() < PATIENCE, "{then} batches in life {life}");
                if ranks.iter_mut().any(|rank| rank.try_wait().unwrap().is_some()) {
                    // What it needs has left the disk.
                    ranks.iter_mut().for_each(|rank| drop(rank.kill()));
                    ranks.iter_mut().for_each(|rank| drop(rank.wait()));
                    assert!(mend(&run, &games), "a rank ended by itself in life {life}");
                    refusals += 1;
                    ranks = spawn(&run, life, world, until);
                    start = Instant::now();
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            games.come(draws.below(2) as usize);
        }
        ranks.iter_mut().for_each(|rank| drop(rank.kill()));
        ranks.iter_mut().for_each(|rank| drop(rank.wait()));
        mend(&run, &games);
        farthest =
            (0..world).flat_map(|rank| run.lines(life, rank)).filter_map(|l| batch_of(&l)).fold(farthest, u64::max);
        if leaves {
            games.leave();
        }
    }
    if leaves {
        assert!(games.left > 0, "none has left the disk");
        println!("{} games left the disk, {refusals} starts were refused until some were back", games.left);
    }
    compare(&run, kills, worlds, &all);
}

fn batch_of(line: &str) -> Option<u64> {
    line.strip_prefix("batch ")?.split(' ').next()?.parse().ok()
}

/// Puts back what a refused start named; whether there was one.
fn mend(run: &Run, games: &Games) -> bool {
    let Ok(refused) = std::fs::read_to_string(run.at("refused")) else { return false };
    std::fs::remove_file(run.at("refused")).unwrap();
    // Empty where it was killed while it wrote this.
    assert!(refused.is_empty() || games.put_back(&refused) > 0, "{refused}");
    !refused.is_empty()
}

/// A batch as one process gave it.
struct Given {
    life: u64,
    rank: usize,
    world: usize,
    rows: Vec<u64>,
}

/// Every batch of every life against the same run without an end to it.
fn compare(run: &Run, kills: u64, worlds: &[u32], all: &Path) {
    let mut given: BTreeMap<u64, Vec<Given>> = BTreeMap::new();
    for life in 0..=kills {
        let world = worlds[life as usize % worlds.len()];
        for rank in 0..world {
            for line in run.lines(life, rank).iter().filter(|line| line.starts_with("batch ")) {
                let numbers: Vec<u64> = line.split(' ').skip(1).map(|text| text.parse().unwrap()).collect();
                let one = Given { life, rank: rank as usize, world: world as usize, rows: numbers[1..].to_vec() };
                given.entry(numbers[0]).or_default().push(one);
            }
        }
    }
    let config = DataLoaderConfig { replay: true, ..run.config(all, 0, 1) };
    let whole = DataLoader::new(config).unwrap();
    let last = *given.keys().last().unwrap();
    assert!(given.keys().copied().eq(0..=last), "no batch is left out");
    let mut again = 0;
    for (number, batches) in given {
        let Next::Batch(batch) = whole.next("", Some(PATIENCE)).unwrap() else { panic!("batch {number}") };
        let expected = rows(&batch);
        assert_eq!(batch.number, number);
        again += batches.len() - 1;
        for Given { life, rank, world, rows } in batches {
            let own: Vec<u64> = expected.iter().copied().skip(rank).step_by(world).collect();
            assert_eq!(rows, own, "batch {number} in life {life}, rank {rank} of {world}");
        }
    }
    assert!(again > 0, "some batches were given again");
}

#[test]
fn killed_while_games_come_and_leave_the_window() {
    murder(1, None, &[1], false);
}

#[test]
fn killed_while_games_leave_the_disk() {
    murder(2, None, &[1], true);
}

#[test]
fn killed_and_continued_by_other_numbers_of_ranks() {
    murder(3, Some(4), &[1, 2, 4], false);
}
