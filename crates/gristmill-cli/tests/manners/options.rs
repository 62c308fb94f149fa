//! The options of every command, as the help of each shows them, and what they do.

use crate::command::{generate, run, text};

/// The commands that run something, as the help of the program and of its groups lists them.
fn commands() -> Vec<Vec<String>> {
    let names = |help: &str, heading: &str| -> Vec<String> {
        let lines = help.lines().skip_while(|line| !line.starts_with(heading)).skip(1);
        lines
            .take_while(|line| !line.starts_with("Options:"))
            .filter_map(|line| line.strip_prefix("  ")?.split(' ').next().map(str::to_owned))
            .filter(|name| !name.is_empty() && name != "help")
            .collect()
    };
    let mut found = Vec::new();
    for name in names(&run(&["--help"]).ok().out, "Look at data:") {
        match name.as_str() {
            "generate" | "ray" | "tokenizer" => {
                let help = run(&[&name, "--help"]).ok().out;
                found.extend(names(&help, "Commands:").into_iter().map(|kind| vec![name.clone(), kind]));
            }
            _ => found.push(vec![name]),
        }
    }
    found
}

#[test]
fn every_command_shows_the_shared_options() {
    let help = run(&["--help"]).ok().out;
    for heading in ["Look at data:", "Make data:", "Feed a trainer:", "Trace rows:", "Set up a shell:"] {
        assert!(help.lines().any(|line| line == heading), "no `{heading}` in {help}");
    }
    assert!(help.starts_with("Game records in, shuffled training batches out"));
    let commands = commands();
    assert!(commands.len() > 22, "{commands:?}");
    // What these do is for Python; that it answers is tested there.
    let handed = [
        vec!["install-lczero".to_owned()],
        vec!["describe".to_owned()],
        vec!["generate".to_owned(), "random".to_owned()],
    ];
    let is_handed = |words: &Vec<String>| words[0] == "ray" || handed.contains(words);
    for words in commands.into_iter().filter(|words| !is_handed(words)) {
        let mut said: Vec<&str> = words.iter().map(String::as_str).collect();
        said.push("--help");
        let help = run(&said).ok().out;
        for option in ["--json", "-q, --quiet", "-v, --verbose", "-j, --threads", "--color", "Example"] {
            assert!(help.contains(option), "no `{option}` in the help of {words:?}: {help}");
        }
        for old in ["--workers", "--input", "--replace"] {
            assert!(!help.contains(old), "`{old}` in the help of {words:?}");
        }
    }
}

#[test]
fn quiet_verbose_and_colour_are_heard_before_and_behind_the_command() {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path(), "12", &[]);
    let games = text(folder.path());
    let said = run(&["stats", games, "-v"]).ok().err;
    assert!(said.contains("s of processor time"), "{said}");
    for words in [&["-q", "verify", games][..], &["verify", games, "--quiet"]] {
        let ran = run(words).ok();
        assert!(ran.err.is_empty() && ran.out.contains("ok: "), "{ran:?}");
    }
    assert_eq!(run(&["--json", "stats", games, "-j", "1"]).ok().json()["chunks"], 12);
    assert_eq!(run(&["stats", games, "-q", "-v"]).code, 2);
    let red = run(&["stats", "/no/such/place", "--color", "always"]);
    assert!(red.err.starts_with("\u{1b}[1;31mgristmill:\u{1b}[0m "), "{red:?}");
    let plain = run(&["stats", "/no/such/place", "--color=never"]);
    assert!(plain.err.starts_with("gristmill: "), "{plain:?}");
    assert!(run(&["--color", "always", "stats", "--help"]).ok().out.contains("\u{1b}["));
    assert!(!run(&["stats", "--help"]).ok().out.contains('\u{1b}'));
}

#[test]
fn old_spellings_are_understood() {
    let folder = tempfile::tempdir().unwrap();
    let [games, one, two, both, logs, steps] =
        ["games", "one", "two", "both", "logs", "steps"].map(|name| folder.path().join(name));
    generate(&games, "2", &[]);
    run(&["generate", "2048", text(&logs), "--games", "2", "--seed", "1", "--moves-max", "20", "--workers", "1"]).ok();
    let [games, one, two, both, logs, steps] = [&games, &one, &two, &both, &logs, &steps].map(|path| text(path));
    run(&["pack", "--input", games, "--output", one, "--workers", "1"]).ok();
    run(&["pack", games, "--output", two]).ok();
    run(&["merge", "--left", one, "--right", two, "--output", both]).ok();
    run(&["pack", logs, steps, "-j", "1"]).ok();
    run(&["values", steps, "--output", both, "--workers", "1", "--dry-run"]).ok();
    run(&["mark", one, "late", "--rule", "plies_left < 5"]).ok();
    run(&["mark", one, "late", "--rule", "plies_left < 9", "--replace"]).ok();
    run(&["dedup", one, "--mark", "late", "--replace", "--workers", "2"]).ok();
    run(&["verify", one, "--workers", "1"]).ok();
    let abandoned = run(&["pack", "--output", one, "--abandon"]).ok();
    assert!(abandoned.out.contains("no job left anything here"), "{abandoned:?}");
    run(&["pack", one, "--abandon", "--dry-run"]).ok();
    for words in [&["pack", games][..], &["pack", games, one, two], &["pack", games, one, "--abandon"], &["pack"]] {
        let ran = run(words);
        assert!(ran.code == 2 && ran.err.contains("gristmill pack IN OUT"), "{words:?}: {ran:?}");
    }
}

#[test]
fn a_port_is_an_address_and_few_batches_are_no_rate() {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path(), "12", &[]);
    let small = ["--batch-size", "8", "--reservoir", "64", "--seed", "1", "--epochs", "1"];
    let feed = |more: &[&str]| run(&[&["feed", text(folder.path())][..], &small, more].concat()).ok();
    let ran = feed(&["--batches", "3", "--metrics", "0"]);
    assert!(ran.err.contains("metrics at http://127.0.0.1:"), "{ran:?}");
    assert!(ran.out.contains("too short to measure") && !ran.out.contains("positions/s"), "{ran:?}");
    assert!(feed(&["--batches", "4"]).out.contains("positions/s"));
    let bench = run(&[&["bench", text(folder.path()), "--batches", "3", "-j", "1"][..], &small].concat()).ok();
    assert!(bench.out.contains("too short to measure") && !bench.out.contains("ceiling"), "{bench:?}");
}
