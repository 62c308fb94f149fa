//! Commands that need Python: their words reach the interpreter as they are, its exit code comes back, and where there is no
//! Python, or none with the package, that is what is said. The package itself is tested with pytest.
use crate::command::{Ran, ended, gristmill, run};

/// Tells its words and ends with 3.
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/python");

fn with(python: &str, without_gristmill: &str, words: &[&str]) -> Ran {
    ended(gristmill(words).env("GRISTMILL_PYTHON", python).env("WITHOUT_GRISTMILL", without_gristmill))
}

#[test]
fn words_and_exit_codes_go_through() {
    let ran = with(PYTHON, "0", &["generate", "random", "--env", "A b-v0", "--unknown", "out"]);
    assert_eq!((ran.code, ran.out.as_str()), (3, "-m|gristmill|generate|random|--env|A b-v0|--unknown|out|"));
    let ran = run(&["convert", "--python", PYTHON, "a", "b", "--to", "minari-arrow", "--help"]);
    assert_eq!((ran.code, ran.out.as_str()), (3, "-m|gristmill|convert|a|b|--to|minari-arrow|--help|"));
}

#[test]
fn what_is_missing_is_said() {
    let ran = with(PYTHON, "1", &["generate", "random", "--env", "CartPole-v1"]);
    assert!(ran.code == 1 && ran.err.contains("pip install gristmill"), "{ran:?}");
    let ran = with("/no/where/python", "0", &["convert", "a", "b", "--to", "parquet"]);
    assert!(ran.code == 1 && ran.err.contains("cannot be run") && ran.err.contains("GRISTMILL_PYTHON"), "{ran:?}");
    assert_eq!(run(&["convert", "a", "b", "--to", "minari-hdf5", "--python"]).code, 2);
    assert!(run(&["generate", "--help"]).ok().out.contains("random"));
}
