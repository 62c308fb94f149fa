//! The real sample file, where it is at hand: `GRISTMILL_SHARED`, else `shared` beside the repository.

#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::path::{Path, PathBuf};

use crate::command::{run, text};

fn sample() -> Option<PathBuf> {
    let shared = match std::env::var_os("GRISTMILL_SHARED") {
        Some(shared) => PathBuf::from(shared),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
    };
    let file = shared.join("data/lc0/lc0-data-sample.tar");
    if file.exists() {
        return Some(file);
    }
    println!("skipped: no real sample at {}", file.display());
    None
}

#[test]
fn real_games_are_inspected_verified_and_counted() {
    let Some(sample) = sample() else { return };
    let seen = run(&["inspect", text(&sample), "--chunk", "1", "--frame", "20", "--json"]).ok().json();
    assert_eq!((seen["format"].as_str(), seen["key"].as_str()), (Some("lc0.tar"), Some("lc0-data-sample.tar")));
    assert_eq!((seen["chunks"].as_u64(), seen["frames"].as_u64()), (Some(4), Some(324)));
    assert_eq!(seen["frame"]["fen"], "r2qk2r/5ppp/p1pbpnb1/2pp4/3P4/2NBP2P/PPP2PP1/R1BQ1RK1 w kq - 4 1");
    let checked = run(&["verify", text(&sample), "--json"]).ok().json();
    assert_eq!((checked["ok"].as_bool(), checked["checked"].as_u64()), (Some(true), Some(324)));
    let stats = run(&["stats", text(&sample), "--json"]).ok().json();
    let results = &stats["results"];
    assert_eq!((results["white"].as_u64(), results["draw"].as_u64()), (Some(2), Some(2)));
    assert_eq!((stats["length"]["min"].as_u64(), stats["length"]["max"].as_u64()), (Some(26), Some(133)));
    assert_eq!(stats["adjudicated"], 4);
}
