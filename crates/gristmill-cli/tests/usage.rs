//! Words that make no sense are refused with exit code 2 and advice; help and version are there for every command.

use crate::command::run;

#[test]
fn unknown_words_are_refused() {
    for words in [
        &["mill"][..],
        &[],
        &["inspect"],
        &["inspect", "x", "--colour"],
        &["verify", "x", "--max-faults", "many"],
        &["generate", "chess", "x"],
        &["generate", "chess", "x", "--games", "0"],
        &["generate", "chess", "x", "--games", "1", "--version", "5"],
        &["generate", "chess", "x", "--games", "1", "--games-per-tar", "5"],
        &["generate", "chess", "x", "--games", "1", "--interval", "nan"],
        &["generate", "chess", "x", "--games", "5", "--tar", "--first", "3"],
        &["generate", "go", "x"],
    ] {
        let ran = run(words);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{words:?}: {ran:?}");
        assert!(!ran.err.is_empty());
    }
}

#[test]
fn near_misses_get_advice() {
    assert!(run(&["verifi", "x"]).err.contains("verify"));
    assert!(run(&["inspect", "x", "--jsn"]).err.contains("--json"));
}

#[test]
fn every_command_has_help() {
    for words in [&["--help"][..], &["generate", "--help"], &["generate", "chess", "--help"], &["inspect", "--help"]] {
        let ran = run(words).ok();
        assert!(ran.out.contains("Usage:"), "{ran:?}");
    }
    for command in ["verify", "stats"] {
        assert!(run(&[command, "--help"]).ok().out.contains("--json"));
    }
    let version = run(&["--version"]).ok();
    let own = concat!("gristmill ", env!("CARGO_PKG_VERSION"), " (");
    assert!(version.out.starts_with(own), "{}", version.out);
    let (commit, target) =
        version.out.trim().trim_end_matches(')').split_once('(').unwrap().1.split_once(", ").unwrap();
    assert!(!commit.is_empty() && target.contains(std::env::consts::ARCH), "{}", version.out);
}
