//! The memory that a loader promises is what the whole process keeps, measured at its peak.

use crate::command::{generate, run, text};

const FRAME: u64 = 8448;
const BATCH: u64 = 1024 * 36_176;

/// Peak resident bytes of a run that fills its reservoir and goes on for a while.
fn peak(more: &[&str]) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path(), "300", &[]);
    let words = ["feed", text(folder.path()), "--seed", "1", "--batches", "60", "--json"];
    run(&[&words[..], more].concat()).ok().json()["peak_rss"].as_u64().unwrap()
}

#[test]
fn a_memory_bound_is_kept() {
    for mib in [350, 600] {
        let found = peak(&["--memory", &format!("{mib}MiB")]);
        assert!(found <= mib << 20, "{} MiB of {mib}", found >> 20);
        // The size of the reservoir is chosen for whole frames, since frames may not fold; these do, to a quarter.
        assert!(found >= (mib << 20) / 4, "{} MiB of {mib}: the bound is made use of", found >> 20);
    }
}

#[test]
fn without_a_bound_it_is_the_reservoir_four_batches_and_a_hundred_megabytes() {
    let frames = 20_000;
    let found = peak(&["--reservoir", &frames.to_string()]);
    assert!(found <= frames * FRAME + 4 * BATCH + 100_000_000, "{} MiB", found >> 20);
}

#[test]
fn a_bound_that_cannot_be_kept_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    generate(folder.path(), "2", &[]);
    let refused = run(&["feed", text(folder.path()), "--memory", "64MiB", "--batches", "1"]);
    assert_ne!(refused.code, 0);
    assert!(refused.err.contains("MiB are needed"), "{}", refused.err);
}
