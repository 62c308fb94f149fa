//! What may happen in one place only: threads, clocks, random generators, printing, `unsafe`.
//! A place is added here with its reason, or the code moves to the place.

use crate::repository::{SourceFile, report, rust};

/// A thing, the words that give it away, and the files (or folders) where it may be, each for the reason beside it.
struct Place {
    law: &'static str,
    under: &'static str,
    words: &'static [&'static str],
    allowed: &'static [(&'static str, &'static str)],
    advice: &'static str,
}

/// A crate of bytes in, bytes out.
const fn pure(under: &'static str) -> Place {
    Place {
        law: "Containers and formats are pure: no files, sockets, threads, environment or processes.",
        under,
        words: &["std::fs", "std::net", "std::thread", "std::env", "std::process", "std::time", "fs::", "File::open"],
        allowed: &[],
        advice: "take bytes, `Read` or `ReadAt`; the engine's stores open things",
    }
}

const PLACES: [Place; 9] = [
    Place {
        law: "Threads are started in one file.",
        under: "crates/",
        words: &["thread::spawn", "thread::scope", "thread::Builder", "rayon::"],
        allowed: &[
            ("gristmill-runtime/src/runtime/scheduler.rs", "the one that names, counts and joins them"),
            ("gristmill-runtime/src/store/bucket/net.rs", "the one that runs requests, as long as the process lives"),
            ("gristmill-sim/src/run/turns.rs", "ranks of one simulated process, of which one runs at a time"),
        ],
        advice: "take a `spawn` closure, or be a task of the scheduler",
    },
    Place {
        law: "Only requests to buckets run asynchronously.",
        under: "crates/",
        words: &["tokio::", "futures_util::", "async fn", "async move", ".await?"],
        allowed: &[("gristmill-runtime/src/store/bucket/", "one thread runs all requests; readers wait for it")],
        advice: "ask a store from a reader; be a task of the scheduler",
    },
    Place {
        law: "Random numbers come from one file.",
        under: "crates/",
        words: &["RandomState", "DefaultHasher", "rand::", "getrandom", "fastrand"],
        allowed: &[("gristmill-runtime/src/runtime/seed.rs", "keys, Philox, and the one draw of a root seed")],
        advice: "derive a `Key` and draw from it",
    },
    Place {
        law: "The clock is read where time is the subject, never where order is decided.",
        under: "crates/",
        words: &["Instant::now", "SystemTime", "UNIX_EPOCH", ".elapsed("],
        allowed: &[
            ("gristmill-runtime/src/runtime/metrics.rs", "rates and loads"),
            ("gristmill-runtime/src/store/", "modification times of files"),
            ("gristmill-jobs/src/meter.rs", "what feed and bench report"),
            ("gristmill-jobs/src/shares/attempt.rs", "how old a lease is, for people"),
            ("gristmill-engine/src/pipeline/loader/mod.rs", "how long the consumer wants to wait"),
            ("gristmill-runtime/src/runtime/scheduler.rs", "what time it is, where no simulated world says it"),
            ("gristmill-cli/src/report.rs", "how often progress is shown"),
            ("gristmill-cli/src/top/terminal.rs", "how often the live view is drawn"),
            ("gristmill-python/src/loader.rs", "timeouts of Python calls, between looks for Ctrl-C"),
        ],
        advice: "take the time as an argument, or measure with `runtime::metrics`",
    },
    Place {
        law: "Text is printed in one file, and a terminal is drawn on from one other.",
        under: "crates/",
        words: &[
            "println!",
            "eprintln!",
            "print!(",
            "eprint!(",
            "io::stdout",
            "io::stderr",
            "dbg!",
            "ratatui::init",
            "ratatui::try_init",
            "ratatui::run",
            "DefaultTerminal",
            "CrosstermBackend",
            "crossterm::execute",
            "crossterm::terminal",
        ],
        allowed: &[
            ("gristmill-sim/src/main.rs", "the line that `make sim` ends with"),
            ("gristmill-cli/build.rs", "what Cargo hears from a build script"),
            ("gristmill-cli/src/report.rs", "the file that prints"),
            ("gristmill-cli/src/top/terminal.rs", "the live view takes the terminal there, and gives it back"),
        ],
        advice: "return data; the command line's report turns it into text, `top/draw.rs` into cells",
    },
    pure("crates/gristmill-bytes/"),
    pure("crates/gristmill-demo/"),
    pure("crates/gristmill-format/"),
    Place {
        law: "`unsafe` lives in named files.",
        under: "",
        words: &["unsafe ", "unsafe{", "allow(unsafe_code"],
        allowed: &[
            ("gristmill-bytes/src/container/gzip.rs", "calls libdeflate"),
            ("gristmill-format/src/chess/encode/simd.rs", "vector stores"),
            ("gristmill-format/benches/inflate.rs", "measures libdeflate bare"),
            ("gristmill-engine/benches/hanse.rs", "measures stock zlib"),
            ("gristmill-engine/benches/passes.rs", "measures stock zlib"),
            ("gristmill-runtime/src/runtime/cores.rs", "tells the system that a thread gives way"),
            ("gristmill-runtime/src/runtime/pages.rs", "is an allocator, which gives large blocks back"),
            ("gristmill-runtime/src/runtime/arena.rs", "slots that tasks share"),
            ("gristmill-runtime/src/runtime/pinned.rs", "calls the driver of a GPU"),
            ("gristmill-runtime/src/runtime/sheet.rs", "batches that tasks share"),
            ("gristmill-packs/src/marks/frames.rs", "implements virtual tables of SQLite"),
            ("gristmill-runtime/src/store/held.rs", "maps files of rows"),
            ("gristmill-runtime/src/tablebase/map.rs", "maps tables, which are larger than memory"),
            ("gristmill-c/src/lib.rs", "reads pointers of C programs"),
            ("gristmill-sim/src/crash/trace.rs", "traces system calls of a process"),
            ("gristmill-python/src/array.rs", "arrays over our memory, DLPack"),
            ("models/src/runtime.rs", "stands for the driver of a GPU"),
            ("bench/syzygy/src/main.rs", "maps tables for another prober"),
        ],
        advice: "find a safe way, or argue for another named file in ARCHITECTURE.md",
    },
];

impl Place {
    fn binds(&self, file: &SourceFile) -> bool {
        let tests_bound = self.words[0].starts_with("unsafe");
        let below = file.path.trim_start_matches("crates/");
        let free =
            self.allowed.iter().any(|(place, _)| below == *place || place.ends_with('/') && below.starts_with(place));
        !free && (tests_bound || !file.is_test()) && !below.starts_with("gristmill-engine/tests/architecture/")
    }
}

#[test]
fn what_belongs_in_one_place_stays_there() {
    let mut breaches = Vec::new();
    for place in &PLACES {
        let files = rust(place.under).filter(|file| place.binds(file));
        for (file, line, text) in files.flat_map(|file| file.code().map(move |(line, text)| (file, line, text))) {
            if let Some(word) = place.words.iter().find(|word| holds(text, word)) {
                breaches.push(format!("{} {}:{line}: `{}`: {}", place.law, file.path, word.trim(), place.advice));
            }
        }
    }
    report("Some things happen in one place only.", breaches);
}

/// Whether a line holds a word that does not continue another one (`operand::` is no `rand::`).
fn holds(text: &str, word: &str) -> bool {
    let continues = |at: usize| text[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_');
    let glued = word.starts_with(char::is_alphanumeric);
    text.match_indices(word).any(|(at, _)| !(glued && continues(at)))
}

#[test]
fn the_places_exist() {
    let gone = |path: &str| rust("").all(|file| !file.path.trim_start_matches("crates/").starts_with(path));
    let places = PLACES.iter().flat_map(|place| place.allowed);
    let breaches =
        places.filter(|(path, _)| gone(path)).map(|(path, why)| format!("{path} ({why}): strike it from PLACES"));
    report("A place that is allowed something is there.", breaches.collect());
}
