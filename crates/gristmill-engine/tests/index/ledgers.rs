//! Ledgers of runs of rows: a killed run that resumes with other ranks adds up; lost and repeated rows are named.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gristmill_engine::config::{EncoderConfig, IndexConfig, Skip};
use gristmill_engine::runtime::seed::Key;
use gristmill_engine::selection::Selection;
use gristmill_engine::{Error, IndexLoader, Next};
use gristmill_plans::verify_run::{Against, Place, RunVerification, Unfounded, VerifyRunOptions, verify_run};

use crate::fixture::{Form, open, without_checksum, write_pack};

/// Long enough for anything on a busy machine; reaching it fails the test.
const PATIENCE: Duration = Duration::from_secs(120);

/// Where everything of one run lies.
struct Run(PathBuf);

impl Run {
    fn new(folder: &Path) -> Self {
        std::fs::create_dir(folder.join("pack")).unwrap();
        write_pack(&folder.join("pack"), 40, &Form { shard_rows: Some(100), ..Form::default() });
        Run(folder.to_owned())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn rows(&self) -> Selection {
        let pack = open(&self.at("pack")).unwrap();
        pack.query("max_score > ?", &[2000.into()]).unwrap().split(0.3, 42).unwrap().0
    }

    fn loader(&self, rank: u64, world_size: u64, skip: &[&str]) -> IndexLoader {
        let config = IndexConfig {
            encoder: EncoderConfig::G2048(Default::default()),
            batch_size: 24,
            epochs: Some(3),
            seed: Some(9),
            threads: Some(1),
            rank,
            world_size,
            skip: skip.iter().map(|text| text.parse::<Skip>().unwrap()).collect(),
            ledger: Some(self.at("ledger")),
            ..IndexConfig::default()
        };
        IndexLoader::new(self.rows().input(), config).unwrap()
    }

    fn verify(&self, pack: bool) -> RunVerification {
        let against = if pack { Against::Pack(self.at("pack")) } else { Against::Nothing };
        verify_run(&VerifyRunOptions { ledgers: vec![self.at("ledger")], against, max_rows: 1000 }, &mut |_, _| ())
            .unwrap()
    }

    fn log(&self, life: u64, rank: u64) -> String {
        std::fs::read_to_string(self.at(&format!("log.{life}.{rank}"))).unwrap_or_default()
    }
}

/// Takes the given number of batches, or all.
fn take(loader: &IndexLoader, batches: usize) -> usize {
    (0..batches).take_while(|_| matches!(loader.next("", Some(PATIENCE)).unwrap(), Next::Batch(_))).count()
}

fn wait_for(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// What is killed: takes batches, saves with the other ranks now and then, and at last waits for its end.
#[test]
#[ignore = "the process that the test beside it starts and kills"]
fn victim() {
    let Ok(folder) = std::env::var("LEDGER_FOLDER") else { return };
    let run = Run(folder.into());
    let [rank, world, life, batches] = ["RANK", "WORLD", "LIFE", "BATCHES"]
        .map(|name| std::env::var(format!("LEDGER_{name}")).unwrap().parse().unwrap());
    let loader = run.loader(rank, world, &[]);
    if life > 0 {
        loader.load(&run.at("state")).unwrap();
    }
    let say = |text: &str| {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(run.at(&format!("log.{life}.{rank}")));
        std::io::Write::write_all(&mut log.unwrap(), format!("{text}\n").as_bytes()).unwrap();
    };
    for taken in 1..=batches {
        if take(&loader, 1) == 0 {
            break;
        }
        if taken % 7 == 0 {
            // All ranks write down what they have before the state that counts it is saved.
            loader.state().unwrap();
            say(&format!("at {taken}"));
            let all = || (0..world).all(|rank| run.log(life, rank).contains(&format!("at {taken}\n")));
            wait_for("the other ranks", all);
            loader.save(&run.at("state")).unwrap();
            say(&format!("saved {taken}"));
            wait_for("rank 0", || run.log(life, 0).contains(&format!("saved {taken}\n")));
        } else if taken % 3 == 0 {
            loader.state().unwrap();
        }
    }
    say("parked");
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn spawn(run: &Run, life: u64, world: u64, batches: u64) -> Vec<Child> {
    let child = |rank: u64| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["ledgers::victim", "--exact", "--ignored", "--nocapture"]).env("LEDGER_FOLDER", &run.0);
        for (name, value) in [("RANK", rank), ("WORLD", world), ("LIFE", life), ("BATCHES", batches)] {
            command.env(format!("LEDGER_{name}"), value.to_string());
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap()
    };
    (0..world).map(child).collect()
}

#[test]
fn killed_processes_and_other_ranks_add_up_to_each_row_once() {
    let folder = tempfile::tempdir().unwrap();
    let run = Run::new(folder.path());
    let key = Key::new(5, "kills");
    for (life, world) in [1, 2, 3, 1, 4, 2].into_iter().enumerate() {
        let life = life as u64;
        let batches = 8 + key.at(life).below(9);
        let mut ranks = spawn(&run, life, world, if life == 5 { 10_000 } else { batches });
        wait_for("batches", || (0..world).all(|rank| run.log(life, rank).contains("parked\n")));
        ranks.iter_mut().for_each(|rank| rank.kill().unwrap());
        for rank in &mut ranks {
            rank.wait().unwrap();
        }
    }
    let found = run.verify(true);
    assert!(found.ok, "{found:#?}");
    let output = &found.outputs[0];
    assert!(output.complete && output.discarded_batches > 0 && found.starts == 6, "{found:#?}");
    assert_eq!((output.epochs.len(), output.until), (3, output.of.unwrap()));
    assert!(output.epochs.iter().all(|epoch| epoch.whole && epoch.delivered == run.rows().rows().len()));
    assert!(run.verify(false).ok);
    // A ledger that says something else is found out.
    let path = run.at("ledger.1-of-2");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("frames\":1", "frames\":2", 1)).unwrap();
    let options = VerifyRunOptions { ledgers: vec![run.at("ledger")], against: Against::Nothing, max_rows: 1 };
    assert!(verify_run(&options, &mut |_, _| ()).unwrap_err().to_string().contains("checksum"));
}

#[test]
fn what_is_lost_repeated_or_left_out_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let run = Run::new(folder.path());
    let first = run.loader(0, 1, &[]);
    take(&first, 20);
    let state = first.state().unwrap();
    drop(first);
    // A state that was changed by hand loses batches 20 to 22.
    let ranks = [0, 1].map(|rank| run.loader(rank, 2, &["30..33"]));
    for rank in &ranks {
        rank.restore(&without_checksum(&state).replace("\"batch\":20", "\"batch\":23")).unwrap();
        assert_eq!(take(rank, 12), 12);
    }
    ranks.iter().for_each(|rank| drop(rank.state().unwrap()));
    drop(ranks);
    let found = run.verify(true);
    let output = &found.outputs[0];
    assert!(!found.ok && !output.complete && output.twice.is_empty() && output.wrong_records.is_empty(), "{found:#?}");
    assert_eq!((output.missing[0].first, output.missing[0].end, output.missing.len()), (20, 23, 1));
    assert_eq!((output.until, output.skipped.clone()), (38, vec![(30, 33)]));
    assert_eq!(output.unfounded, [Unfounded { start: 2, from: 23, last_state: Some(20) }]);
    let lookup = run.loader(0, 1, &[]).lookup().unwrap();
    let expected: Vec<u64> = (20..23)
        .flat_map(|b| (0..24).map(move |i| (b, i)))
        .map(|(b, i)| lookup.row(b, i).unwrap().unwrap().row)
        .collect();
    let places = output.rows.iter().map(|row| match &row.place {
        Place::Row(place) => place,
        Place::Frame(frame) => panic!("a row of a pack is no frame of a stream: {frame:?}"),
    });
    assert_eq!(places.clone().map(|place| place.pack_row).collect::<Vec<_>>(), expected);
    assert!(output.rows.iter().all(|row| row.fault == "missing"));
    assert!(places.clone().all(|place| place.file.contains("steps-000")));
    // Batches 10 to 12 of one rank are taken again without going back to a state.
    let again = run.loader(1, 2, &["30..33"]);
    again.seek(10).unwrap();
    take(&again, 3);
    again.state().unwrap();
    drop(again);
    let output = run.verify(true).outputs.remove(0);
    assert_eq!((output.twice[0].first, output.twice[0].end, output.twice[0].every), (10, 13, 2));
    assert_eq!(output.twice[0].rows, [1]);
    assert!(output.rows.iter().any(|row| row.fault == "twice" && row.batch == 10 && row.row % 2 == 1));
}

#[test]
fn a_ledger_is_of_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let run = Run::new(folder.path());
    let loader = run.loader(0, 1, &[]);
    assert_eq!(take(&loader, 3), 3);
    let state = loader.state().unwrap();
    loader.stop();
    match run.loader(0, 1, &[]).start() {
        Err(Error::Path { kind, message, .. }) => {
            assert!(
                kind == std::io::ErrorKind::AlreadyExists && message.contains("resume from its state"),
                "{message}"
            );
        }
        other => panic!("{other:?}"),
    }
    let other = IndexConfig { seed: Some(9), batch_size: 24, ledger: Some(run.at("ledger")), ..IndexConfig::default() };
    let encoder = EncoderConfig::G2048(Default::default());
    let all = open(&run.at("pack")).unwrap();
    let other = IndexLoader::new(all.input(), IndexConfig { encoder, ..other }).unwrap();
    assert!(other.start().unwrap_err().to_string().contains("another run"));
    let again = run.loader(0, 1, &[]);
    again.restore(&state).unwrap();
    let left = take(&again, 10_000);
    assert_eq!(left as u64, again.batches().unwrap() - 3);
    let found = run.verify(true);
    assert!(found.ok && found.outputs[0].complete && found.unproven.is_empty(), "{found:#?}");
    let wrong = VerifyRunOptions { ledgers: vec![run.at("none")], against: Against::Nothing, max_rows: 1 };
    assert!(verify_run(&wrong, &mut |_, _| ()).unwrap_err().to_string().contains("no ledger"));
}

#[test]
fn a_run_that_died_in_its_first_save_begins_again_unless_its_state_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let run = Run::new(folder.path());
    let start = |rank, world| run.loader(rank, world, &[]);
    let refused = |loader: &IndexLoader| loader.start().unwrap_err().to_string();
    // What is in the way of the state stands for a machine that crashed before the state had its name.
    let [state, missing] = ["states", "no/state.json"].map(|name| run.at(name));
    std::fs::create_dir(&state).unwrap();
    let dies = |to: &Path| {
        let loader = start(0, 1);
        assert_eq!(take(&loader, 2), 2);
        let saved = loader.save(to);
        loader.stop();
        saved
    };
    dies(&missing).unwrap_err();
    dies(&missing).unwrap_err();
    // Where a rank of another world died, its state may be on another machine.
    assert!(refused(&start(1, 2)).contains("delete the ledgers of all its ranks"));
    // One died after its state had its name, and before the ledger said so.
    dies(&state).unwrap();
    let ledger = std::fs::read_to_string(run.at("ledger")).unwrap();
    let (before, promise) = ledger.trim_end().rsplit_once('\n').unwrap();
    assert!(promise.contains(r#"{"state":"#) && before.lines().last().unwrap().contains(r#"{"saving":"#), "{ledger}");
    std::fs::write(run.at("ledger"), format!("{before}\n")).unwrap();
    assert!(refused(&start(0, 1)).contains("resume from its state"));
    let again = start(0, 1);
    again.load(&state).unwrap();
    take(&again, 1);
    again.save(&state).unwrap();
    again.stop();
    assert!(std::fs::read_to_string(run.at("ledger")).unwrap().lines().last().unwrap().contains(r#"{"state":"#));
    let found = run.verify(true);
    assert!(found.ok && found.outputs[0].unfounded.is_empty(), "{found:#?}");
    std::fs::remove_dir_all(&state).unwrap();
    assert!(refused(&start(0, 1)).contains("resume from its state"), "a state that was saved is lost");
}

#[test]
fn ranks_begin_again_where_rank_0_had_not_saved_their_state() {
    let folder = tempfile::tempdir().unwrap();
    let run = Run::new(folder.path());
    let ranks = || [0, 1].map(|rank| run.loader(rank, 2, &[]));
    let state = run.at("no/state.json");
    let [head, other] = ranks();
    for loader in [&head, &other] {
        assert_eq!(take(loader, 2), 2);
    }
    head.save(&state).unwrap_err();
    other.save(&state).unwrap();
    drop((head, other));
    let [head, other] = ranks();
    head.start().unwrap();
    other.start().unwrap();
}
