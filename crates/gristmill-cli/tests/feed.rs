//! `feed` on generated games: counts, determinism, configurations, bad games, stopping.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::command::{generate, gristmill, run, text};

/// The `.npy` files of a folder by name, with their bytes.
fn arrays(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap())
        .map(|e| (e.file_name().into_string().unwrap(), fs::read(e.path()).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn one_epoch_gives_every_position_once() {
    let folder = tempfile::tempdir().unwrap();
    let frames = generate(folder.path(), "10", &[])["frames"].as_u64().unwrap();
    let fed = run(&["feed", text(folder.path()), "--epochs", "1", "--batch-size", "32", "--seed", "8", "--json"]);
    let fed = fed.ok().json();
    assert_eq!((fed["frames"].as_u64(), fed["batches"].as_u64()), (Some(frames), Some(frames.div_ceil(32))));
    assert_eq!((fed["seed"].as_u64(), fed["ended"].as_str()), (Some(8), Some("end")));
    assert_eq!((fed["bad_chunks"].as_u64(), fed["dropped"].as_u64()), (Some(0), Some(0)));
    assert_eq!(fed["bytes"].as_u64(), Some(frames * 36_176));
    for name in ["frames_per_second", "cpu_us_per_frame", "peak_rss"] {
        assert!(fed[name].as_f64().unwrap() > 0.0, "{name}: {fed}");
    }
    let dropped =
        ["feed", text(folder.path()), "--epochs", "1", "--batch-size", "32", "--last-batch", "drop", "--json"];
    assert_eq!(run(&dropped).ok().json()["frames"].as_u64(), Some(frames / 32 * 32));
}

#[test]
fn threads_change_no_batch_and_seeds_do() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    generate(&a, "8", &[]);
    generate(&b, "4", &["--tar", "--first", "1", "--version", "7"]);
    let batches = |seed: &str, threads: &str| {
        let out = folder.path().join(format!("out-{seed}-{threads}"));
        let (first, second) = (format!("{}:0.7", text(&a)), format!("{}:0.3", text(&b)));
        let words = ["feed", &first, &second, "--batches", "12", "--batch-size", "16", "--reservoir", "100", "--pool"];
        let more =
            ["9", "--tensors", "planes:bits,probs,ids", "--seed", seed, "--threads", threads, "--out", text(&out)];
        run(&[&words[..], &more[..], &["--json"]].concat()).ok();
        arrays(&out)
    };
    let one = batches("1", "1");
    assert_eq!(one.len(), 12 * 4, "planes, their meta bytes, probs and ids of twelve batches");
    assert_eq!(one, batches("1", "2"));
    assert_ne!(one, batches("2", "1"));
}

#[test]
fn a_printed_configuration_runs_as_the_options_did() {
    let folder = tempfile::tempdir().unwrap();
    let games = folder.path().join("games");
    generate(&games, "6", &[]);
    let options = ["feed", text(&games), "--batch-size", "8", "--reservoir", "50", "--seed", "4"];
    let printed = run(&[&options[..], &["--dry-run"]].concat()).ok();
    let file = folder.path().join("loader.toml");
    fs::write(&file, &printed.out).unwrap();
    let (x, y) = (folder.path().join("x"), folder.path().join("y"));
    run(&[&options[..], &["--batches", "5", "--out", text(&x)]].concat()).ok();
    run(&["feed", text(&file), "--batches", "5", "--out", text(&y)]).ok();
    assert_eq!(arrays(&x), arrays(&y));
    let refused = run(&["feed", text(&file), "--pool", "5"]);
    assert!(refused.code == 2 && refused.err.contains("--pool"), "{refused:?}");
    fs::write(&file, printed.out.replace("batch_size", "batch_sise")).unwrap();
    let refused = run(&["feed", text(&file), "--batches", "1"]);
    assert!(refused.code == 2 && refused.err.contains("batch_size"), "{refused:?}");
}

#[test]
fn ranks_share_the_batches_of_a_stream() {
    let folder = tempfile::tempdir().unwrap();
    let games = folder.path().join("games");
    generate(&games, "12", &[]);
    let options = ["feed", text(&games), "--batch-size", "8", "--reservoir", "40", "--seed", "4", "--batches", "3"];
    let fed = |more: &[&str]| -> serde_json::Value {
        let printed = run(&[&options[..], more, &["--lanes", "2", "--json"]].concat()).ok();
        serde_json::from_str(&printed.out).unwrap()
    };
    let frames = |more: &[&str]| fed(more)["frames"].as_u64().unwrap();
    assert_eq!(frames(&[]), 24);
    assert_eq!(frames(&["--rank", "1", "--world-size", "2"]), 12);
    let refused = run(&[&options[..], &["--lanes", "2", "--rank", "0", "--world-size", "3"]].concat());
    assert!(refused.code == 2 && refused.err.contains("expected one of 1, 2"), "{refused:?}");
}

#[test]
fn a_training_configuration_of_lc0_runs_and_its_faults_have_a_place() {
    let folder = tempfile::tempdir().unwrap();
    let games = folder.path().join("games");
    generate(&games, "6", &[]);
    let graph = format!(
        "name: 'net'\ntraining {{ steps: 3 }}\ndata_loader {{\n  seed: 4\n\
           stage {{ name: 'files' file_path_provider {{ directory: '{}' }} }}\n\
           stage {{ name: 'load' input: 'files' chunk_source_loader {{}} }}\n\
           stage {{ name: 'pool' input: 'load' shuffling_chunk_pool {{}} }}\n\
           stage {{ name: 'unpack' input: 'pool' chunk_unpacker {{ position_sampling_rate: 0.5 }} }}\n\
           stage {{ name: 'tensors' input: 'unpack' tensor_generator {{ batch_size: 8 }} }}\n  output: 'tensors'\n}}\n",
        text(&games)
    );
    let file = folder.path().join("training.textproto");
    fs::write(&file, &graph).unwrap();
    let (x, y, toml) = (folder.path().join("x"), folder.path().join("y"), folder.path().join("loader.toml"));
    run(&["feed", text(&file), "--batches", "5", "--out", text(&x)]).ok();
    // The same in TOML, as printed.
    fs::write(&toml, run(&["feed", text(&file), "--dry-run"]).ok().out).unwrap();
    run(&["feed", text(&toml), "--batches", "5", "--out", text(&y)]).ok();
    assert_eq!(arrays(&x), arrays(&y));
    for (from, to, says) in [
        ("batch_size", "batch_sise", "line 9, column 60: stage `tensors`, field `batch_sise`"),
        (
            "input: 'pool'",
            "input: 'pol'",
            "stage `unpack`, field `input`: no stage is called `pol`; did you mean `pool`?",
        ),
        ("chunk_source_loader {}", "", "line 6, column 1: stage `load`"),
        ("output: 'tensors'\n}", "output: 'tensors'\n", "ends where `}` should"),
        ("data_loader", "loader", "there is no `data_loader"),
    ] {
        assert!(graph.contains(from));
        fs::write(&file, graph.replacen(from, to, 1)).unwrap();
        let refused = run(&["feed", text(&file), "--batches", "1"]);
        assert!(refused.code == 2 && refused.err.contains(says), "no `{says}` in {}", refused.err);
        assert!(refused.err.contains("training.textproto"), "{}", refused.err);
    }
}

#[test]
fn a_configuration_that_cannot_run_here_is_shown_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let games = folder.path().join("games");
    generate(&games, "4", &[]);
    let graph = format!(
        "stage {{ name: 'files' file_path_provider {{ directory: '{}' }} }}\n\
         stage {{ name: 'load' input: 'files' chunk_source_loader {{}} }}\n\
         stage {{ name: 'pool' input: 'load' shuffling_chunk_pool {{}} }}\n\
         stage {{ name: 'mend' input: 'pool' chunk_rescorer {{ syzygy_paths: '/no/such/tables' }} }}\n\
         stage {{ name: 'unpack' input: 'mend' chunk_unpacker {{ position_sampling_rate: 0.5 }} }}\n\
         stage {{ name: 'tensors' input: 'unpack' tensor_generator {{ batch_size: 8 }} }}\noutput: 'tensors'\n",
        text(&games)
    );
    let (file, over) = (folder.path().join("training.textproto"), folder.path().join("over.toml"));
    fs::write(&file, &graph).unwrap();
    let says = "training.textproto: line 4, column 53: stage `mend`, field `syzygy_paths`: /no/such/tables: ";
    let shown = run(&["feed", text(&file), "--dry-run"]);
    assert!(shown.code == 2 && shown.err.contains(says) && shown.err.contains("allow_missing_tables"), "{shown:?}");
    assert!(shown.out.contains("syzygy_paths = \"/no/such/tables\""), "{shown:?}");
    assert_eq!(run(&["feed", text(&file), "--dry-run", "--json"]).json()["output"][0], "tensors");
    let refused = run(&["feed", text(&file), "--batches", "1"]);
    assert!(refused.code == 2 && refused.err.contains(says) && refused.out.is_empty(), "{refused:?}");
    // An overlay reaches what the file does not say.
    fs::write(&over, "seed = 7\n[[stage]]\nname = \"mend\"\nchunk_rescorer = { allow_missing_tables = true }\n")
        .unwrap();
    let fed = run(&["feed", text(&file), "--overlay", text(&over), "--batches", "2", "--json"]).ok();
    assert_eq!(fed.json()["seed"], 7);
    assert!(fed.err.contains("stage `mend`: /no/such/tables"), "{}", fed.err);
    fs::write(&over, "sead = 7\n").unwrap();
    let refused = run(&["feed", text(&file), "--overlay", text(&over), "--dry-run"]);
    assert!(refused.code == 2 && refused.err.contains("over.toml: line 1, column 1: `sead`"), "{refused:?}");
}

#[test]
fn splits_are_outputs_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let frames = generate(folder.path(), "12", &[])["frames"].as_u64().unwrap();
    let words = ["feed", text(folder.path()), "--epochs", "1", "--split", "train:3,test:1", "--json"];
    let both = run(&words).ok().json()["frames"].as_u64().unwrap();
    assert_eq!(both, frames);
    let one = |alias: &str| run(&[&words[..], &["--output", alias]].concat()).ok().json()["frames"].as_u64().unwrap();
    let (train, test) = (one("train"), one("test"));
    assert!(train > 0 && test > 0 && train + test == frames, "{train} and {test} of {frames}");
    assert_eq!(run(&[&words[..], &["--output", "trein"]].concat()).code, 1);
}

#[test]
fn bad_games_are_counted_reported_or_raised() {
    let folder = tempfile::tempdir().unwrap();
    let games = folder.path().join("games");
    let frames = generate(&games, "5", &[])["frames"].as_u64().unwrap();
    fs::write(games.join("training.3000.gz"), b"\x1f\x8b\x08 rubbish").unwrap();
    let words = ["feed", text(&games), "--epochs", "1", "--json", "--bad-chunks"];
    let skipped = run(&[&words[..], &["skip"]].concat()).ok().json();
    assert_eq!((skipped["bad_chunks"].as_u64(), skipped["frames"].as_u64()), (Some(1), Some(frames)));
    let report = folder.path().join("bad.jsonl");
    run(&[&words[..], &["quarantine", "--quarantine", text(&report)]].concat()).ok();
    assert!(fs::read_to_string(&report).unwrap().contains("training.3000.gz"));
    let raised = run(&[&words[..], &["raise"]].concat());
    assert!(raised.code == 1 && raised.err.contains("training.3000.gz"), "{raised:?}");
}

#[test]
fn an_interrupt_ends_with_a_summary() {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path(), "3", &[]);
    let mut child = gristmill(&["feed", text(folder.path()), "--batch-size", "8", "--reservoir", "20", "--out"])
        .args([text(&folder.path().join("out")), "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // The first batch on disk says that it runs.
    while !folder.path().join("out/batch-000000-planes.npy").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was interrupted");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let fed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(fed["ended"], "stopped");
    assert!(fed["batches"].as_u64().unwrap() > 0);
}

#[test]
fn metrics_are_served_while_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path(), "3", &[]);
    let mut child =
        gristmill(&["feed", text(folder.path()), "--reservoir", "20", "--metrics", "127.0.0.1:0", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("metrics at http://").and_then(|rest| rest.strip_suffix("/metrics"));
    let mut stream = TcpStream::connect(address.unwrap()).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("200") && answer.contains("gristmill_rows_total"), "{answer}");
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.iter().filter(|b| **b == b'\n').count()), (Some(130), 1));
}

#[test]
fn what_cannot_run_is_refused_with_the_field() {
    let folder = tempfile::tempdir().unwrap();
    let here = text(folder.path());
    for (words, code, part) in [
        (&["feed", here, "--tensors", "plains"][..], 2, "plains"),
        (&["feed", here, "--memory", "1KiB"], 2, "memory"),
        (&["feed", here, "--memory", "much"], 2, "much"),
        (&["feed", here, "--batch-size", "0"], 2, "batch_size"),
        (&["feed", here, "--sampling-rate", "2"], 2, "position_sampling_rate"),
        (&["feed", here, "--metrics", "here"], 2, "metrics"),
        (&["feed", here, "--replay"], 2, "--journal"),
        (&["feed", here, "--epochs", "1"], 1, "no games of chess"),
        (&["feed", "no/such/folder", "--batches", "1"], 1, "no/such/folder"),
        (&["feed", "no/such.toml", "--batches", "1"], 1, "no/such.toml"),
    ] {
        let ran = run(words);
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{words:?}: {ran:?}");
        assert!(ran.err.contains(part), "no `{part}` in {}", ran.err);
    }
}
