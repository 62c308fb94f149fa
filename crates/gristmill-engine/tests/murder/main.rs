//! A feeding process is killed at random moments while games come, leave, move and are written again, and resumes from its last
//! state and journal: every row of every batch that it ever gave is that of the uninterrupted run, but for games that are
//! skipped because they have left the disk. `GRISTMILL_KILLS` says how often, `GRISTMILL_SEED` varies what happens.

#![allow(clippy::print_stdout, reason = "says how much happened")]

mod buckets;
mod compare;
mod games;

use std::collections::BTreeSet;
use std::io::Write;
use std::iter::{once, repeat};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gristmill_engine::config::{DataLoaderConfig, MemorySize};
use gristmill_engine::preset::{Lc0Preset, Weighted, lc0};
use gristmill_engine::runtime::seed::Key;
use gristmill_engine::{Batch, DataLoader, Error, Missing, Next};
use gristmill_format::chess::Version;
use gristmill_format::container::tar::TarWriter;
use gristmill_format::container::zstd;
use gristmill_generate::{ChessGenerator, ChessOptions};
use xxhash_rust::xxh3::xxh3_64;

use compare::{compare, compare_without};
use games::Games;

/// Long enough for anything on a busy machine; reaching it fails the test.
const PATIENCE: Duration = Duration::from_secs(120);

/// Games of the window, which all are there at first.
const POOL: u64 = 30;

/// Batches between two saved states.
const SAVED_EVERY: u64 = 5;

/// A file leaves the disk only after this many later files have left the window, too.
const MARGIN: usize = 10;

/// What becomes of games on the disk, and of the states that need them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Disk {
    /// They stay.
    Keeps,
    /// They leave some time after the window; a start that needs one is refused until it is back.
    Refuses,
    /// They leave at any time, and are done without.
    Skips,
    /// They leave at any time, and are held elsewhere.
    Spills,
    /// They stay, and are objects of a bucket, of which now and then a request fails.
    Bucket,
}

impl Disk {
    const ALL: [Disk; 5] = [Disk::Keeps, Disk::Refuses, Disk::Skips, Disk::Spills, Disk::Bucket];

    fn missing(self) -> Missing {
        match self {
            Disk::Keeps | Disk::Refuses | Disk::Bucket => Missing::Refuse,
            Disk::Skips => Missing::Skip,
            Disk::Spills => Missing::Spill,
        }
    }
}

/// Where everything of one run lies, and how it is fed.
#[derive(Debug, Clone)]
struct Run {
    folder: PathBuf,
    lanes: Option<u32>,
    disk: Disk,
    /// Whether each game is a packed tar, which is read whole.
    solid: bool,
}

impl Run {
    fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn config(&self, games: &Path, rank: u32, world: u32) -> DataLoaderConfig {
        let options = Lc0Preset {
            directories: vec![Weighted { directory: games.to_owned(), weight: 1.0 }],
            pool: POOL,
            // Rows that leave a reservoir with their game would make all that follow others.
            reservoir: Some(if self.disk == Disk::Skips { 0 } else { 60 }),
            batch_size: 16,
            sampling_rate: Some(0.25),
            seed: Some(11),
            threads: Some(2),
            tensors: ["planes:bits", "probs", "values"].map(String::from).to_vec(),
            index: Some("off".into()),
            max_solid_bytes: self.solid.then_some(MemorySize(4 << 20)),
            journal: Some(self.at("journal")),
            spill: (self.disk == Disk::Spills).then(|| self.at("spill")),
            lanes: self.lanes,
            rank: Some(rank),
            world_size: Some(world),
            ..Lc0Preset::default()
        };
        let mut config = lc0(&options).unwrap();
        if self.disk == Disk::Bucket {
            // Nothing but lists tells of new objects.
            let providers = config.stage.iter_mut().filter_map(|stage| stage.file_path_provider.as_mut());
            providers.for_each(|provider| provider.rescan_seconds = 0.1);
        }
        config
    }

    /// Where processes find the games.
    fn games(&self) -> PathBuf {
        if self.disk == Disk::Bucket { buckets::url("games") } else { self.at("games") }
    }

    /// Where the games lie on this machine.
    fn live(&self) -> PathBuf {
        if self.disk == Disk::Bucket { buckets::folder(&self.folder, "games") } else { self.at("games") }
    }

    /// Names of the games that the journals tell of: what was taken in, and so is held.
    fn told(&self) -> BTreeSet<String> {
        let files = std::fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap().path());
        let journals = files.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("journal"));
        let text: String = journals.map(|path| std::fs::read_to_string(path).unwrap()).collect();
        text.split("\"name\":\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
    }

    /// Names of the files that are held elsewhere.
    fn spilled(&self) -> BTreeSet<String> {
        let mut files: Vec<PathBuf> = vec![self.at("spill")];
        let (mut at, mut names) = (0, BTreeSet::new());
        while let Some(file) = files.get(at) {
            names.extend(file.is_file().then(|| file.file_name().unwrap().to_str().unwrap().to_owned()));
            let below = std::fs::read_dir(file).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
            files.extend::<Vec<PathBuf>>(below);
            at += 1;
        }
        names
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
        let told = batch.columns.iter().filter(|column| column.name() != "ids");
        let parts = told.map(|column| {
            let row = column.bytes().len() / batch.rows;
            &column.bytes()[i * row..][..row]
        });
        xxh3_64(&parts.collect::<Vec<&[u8]>>().concat())
    };
    (0..batch.rows).map(row).collect()
}

/// What is killed: feeds, logs each batch, and saves its state now and then.
#[test]
#[ignore = "the process that the tests beside it start and kill"]
fn victim() {
    let Ok(folder) = std::env::var("MURDER_FOLDER") else { return };
    let lanes = Some(number("MURDER_LANES")).filter(|lanes| *lanes > 1);
    let disk = Disk::ALL[number("MURDER_DISK") as usize];
    let run = Run { folder: folder.into(), lanes, disk, solid: number("MURDER_SOLID") > 0 };
    let [rank, world, life, until] = ["RANK", "WORLD", "LIFE", "UNTIL"].map(|name| number(&format!("MURDER_{name}")));
    buckets::reach();
    let loader = DataLoader::new(run.config(&run.games(), rank, world)).unwrap();
    let state = run.at("state");
    match loader.load(&state, disk.missing()) {
        Err(Error::Path { kind: std::io::ErrorKind::NotFound, .. }) => {}
        // Killed before all ranks had saved for the first time.
        Err(Error::State(text)) if text.contains("no saved step") || text.contains("lacks rank") => {}
        loaded => loaded.unwrap(),
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

fn spawn(run: &Run, life: u64, (worlds, until): (u32, u64), endpoint: Option<&str>) -> Vec<Child> {
    let child = |rank: u32| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["victim", "--exact", "--ignored", "--nocapture"]).env("MURDER_FOLDER", &run.folder);
        command.env("MURDER_LANES", run.lanes.unwrap_or(1).to_string());
        command.env("MURDER_DISK", (run.disk as u8).to_string());
        command.env("MURDER_SOLID", u8::from(run.solid).to_string());
        command.envs(endpoint.map(|endpoint| (buckets::ENDPOINT, endpoint)));
        for (name, value) in [("RANK", rank.into()), ("WORLD", worlds.into()), ("LIFE", life), ("UNTIL", until)] {
            command.env(format!("MURDER_{name}"), value.to_string());
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap()
    };
    (0..worlds).map(child).collect()
}

/// Makes a packed tar of a game.
fn pack(game: &Path) {
    let mut tar = TarWriter::new(Vec::new());
    tar.append(game.file_name().unwrap().to_str().unwrap(), &std::fs::read(game).unwrap()).unwrap();
    std::fs::write(game.with_extension("tar.zst"), zstd::compress(1, &tar.finish().unwrap()).unwrap()).unwrap();
    std::fs::remove_file(game).unwrap();
}

/// Kills a run over and over; `worlds` are the numbers of ranks of its lives in turn.
fn murder(seed: u64, lanes: Option<u32>, worlds: &[u32], disk: Disk, solid: bool) {
    let kills: u64 = std::env::var("GRISTMILL_KILLS").map_or(20, |kills| kills.parse().unwrap());
    let seed = std::env::var("GRISTMILL_SEED").map_or(seed, |more| seed + 1000 * more.parse::<u64>().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let run = Run { folder: folder.path().to_owned(), lanes, disk, solid };
    // Of a run that fails, everything stays to be looked into.
    let kept = folder.keep();
    println!("{disk:?}, seed {seed}: {}", kept.display());
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
    if solid {
        (1..=options.games).for_each(|i| pack(&game(i)));
    }
    let game = |i| game(i).with_extension(if solid { "tar.zst" } else { "gz" });
    if lanes.is_some() {
        std::fs::create_dir(run.at("state")).unwrap();
    }
    let mut games = Games::new((1..=options.games).map(game).collect(), run.live());
    let server = (disk == Disk::Bucket).then(|| buckets::serve(&run.folder));
    let endpoint = server.as_ref().map(|server| server.address.as_str());
    games.come(POOL as usize);
    let (key, mut refusals) = (Key::new(seed, "murder"), 0);
    let (mut farthest, mut spilled) = (0, BTreeSet::new());
    for life in 0..=kills {
        let mut draws = key.at(life);
        let (world, last) = (worlds[life as usize % worlds.len()], life == kills);
        let until = if last { farthest + 40 } else { u64::from(u32::MAX) };
        let seen = |run: &Run| (0..world).map(|rank| run.lines(life, rank).len() as u64).min().unwrap();
        let mut ranks = spawn(&run, life, (world, until), endpoint);
        if life == 0 && (disk != Disk::Keeps || lanes.is_some()) {
            // All ranks find the same games first; those of the window were taken in, and there is a state to resume from.
            wait_for("first batches", || seen(&run) > SAVED_EVERY);
        }
        let (first, then) = (draws.below(4) as usize, draws.below(60));
        games.come(first);
        let (now, later) = (draws.below(2), draws.below(2));
        if matches!(disk, Disk::Skips | Disk::Spills) {
            (0..now).for_each(|_| games.lose(&run, &mut draws));
        }
        if matches!(disk, Disk::Keeps | Disk::Spills | Disk::Bucket) {
            (0..draws.below(3)).for_each(|_| games.rewrite(&mut draws));
        }
        if matches!(disk, Disk::Keeps | Disk::Spills) {
            (0..draws.below(3)).for_each(|_| games.relocate(&mut draws));
        }
        if let Some(server) = &server {
            buckets::fail(server, &mut draws);
        }
        if last {
            for changing in once(true).chain(repeat(false)) {
                ranks.iter_mut().for_each(|rank| assert!(rank.wait().unwrap().success()));
                if !mend(&run, &games, changing) {
                    break;
                }
                refusals += 1;
                ranks = spawn(&run, life, (world, until), endpoint);
            }
        } else if then < 10 {
            // Amid the start.
            std::thread::sleep(Duration::from_millis(4 * then));
        } else {
            let (mut start, mut changing) = (Instant::now(), true);
            while seen(&run) < then {
                assert!(start.elapsed() < PATIENCE, "{then} batches in life {life}");
                if ranks.iter_mut().any(|rank| rank.try_wait().unwrap().is_some()) {
                    // What it needs has left the disk.
                    ranks.iter_mut().for_each(|rank| drop(rank.kill()));
                    ranks.iter_mut().for_each(|rank| drop(rank.wait()));
                    assert!(mend(&run, &games, changing), "a rank ended by itself in life {life}");
                    (refusals, changing) = (refusals + 1, false);
                    ranks = spawn(&run, life, (world, until), endpoint);
                    start = Instant::now();
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            games.come(draws.below(2) as usize);
            if matches!(disk, Disk::Skips | Disk::Spills) {
                (0..later).for_each(|_| games.lose(&run, &mut draws));
            }
        }
        ranks.iter_mut().for_each(|rank| drop(rank.kill()));
        ranks.iter_mut().for_each(|rank| drop(rank.wait()));
        mend(&run, &games, true);
        farthest =
            (0..world).flat_map(|rank| run.lines(life, rank)).filter_map(|l| batch_of(&l)).fold(farthest, u64::max);
        if disk == Disk::Refuses {
            games.leave();
        }
        spilled.extend(run.spilled());
    }
    let Games { came, left, rewritten, moved, lost, .. } = games;
    println!("{kills} kills, {disk:?}: {came} games came, {rewritten} were written again, {moved} moved");
    let (rewrites, moves) =
        (matches!(disk, Disk::Keeps | Disk::Spills | Disk::Bucket), matches!(disk, Disk::Keeps | Disk::Spills));
    let few = |changes: usize| changes as u64 <= kills / 4;
    assert!(!(rewrites && few(rewritten) || moves && few(moved)), "too few changes to show anything");
    match disk {
        Disk::Keeps | Disk::Bucket => {
            assert!(run.lines(kills, 0).iter().find_map(|line| batch_of(line)).unwrap() > 0, "it never went on")
        }
        Disk::Refuses => {
            assert!(left > 0, "none has left the disk");
            println!("{} games left the disk, {refusals} starts were refused until some were back", left);
        }
        Disk::Skips | Disk::Spills => {
            if disk == Disk::Spills {
                assert!(spilled.len() as u64 > kills / 4, "{} were held", spilled.len());
                println!("{} files were held elsewhere", spilled.len());
            }
            assert!(lost.len() as u64 > kills / 4, "{} have left the disk", lost.len());
            println!("{} games left the disk while the window had them", lost.len());
        }
    }
    match disk {
        Disk::Skips => compare_without(&run, kills, &all, &lost),
        _ => compare(&run, kills, worlds, &all),
    }
    std::fs::remove_dir_all(kept).unwrap();
}

fn batch_of(line: &str) -> Option<u64> {
    line.strip_prefix("batch ")?.split(' ').next()?.parse().ok()
}

/// Puts back what a refused start named; whether there was one. A start that games changed beside may have met one that was
/// written again between its listing and its opening, or before it had seen that the game does not grow: the next start finds that one.
fn mend(run: &Run, games: &Games, changing: bool) -> bool {
    let Ok(refused) = std::fs::read_to_string(run.at("refused")) else { return false };
    std::fs::remove_file(run.at("refused")).unwrap();
    let overtaken = changing && (refused.contains("it was written over since") || games.are_there(&refused));
    // Empty where it was killed while it wrote this.
    assert!(refused.is_empty() || overtaken || games.put_back(&refused) > 0, "{refused}");
    !refused.is_empty()
}

#[test]
fn killed_while_games_come_and_leave_the_window() {
    murder(1, None, &[1], Disk::Keeps, false);
}

#[test]
fn killed_while_games_leave_the_disk_and_are_put_back() {
    murder(2, None, &[1], Disk::Refuses, false);
}

#[test]
fn killed_and_continued_by_other_numbers_of_ranks() {
    murder(3, Some(4), &[1, 2, 4], Disk::Keeps, false);
}

#[test]
fn killed_while_games_of_the_window_leave_the_disk_and_are_skipped() {
    murder(4, None, &[1], Disk::Skips, false);
}

#[test]
fn killed_while_games_of_the_window_leave_the_disk_and_are_held() {
    murder(5, Some(4), &[1, 2], Disk::Spills, false);
}

#[test]
fn killed_while_games_that_are_read_whole_come_and_move_and_are_written_again() {
    murder(6, None, &[1], Disk::Keeps, true);
}

#[test]
fn killed_while_games_that_are_read_whole_leave_the_disk_and_are_held() {
    murder(7, Some(4), &[1, 2], Disk::Spills, true);
}

#[test]
fn killed_while_games_come_into_a_bucket() {
    murder(8, None, &[1], Disk::Bucket, false);
}
