//! `syzygy-bench agree|speed FOLDER [POSITIONS]`: our prober beside shakmaty-syzygy (and pyrrhic-rs where it answers).
//! Random legal positions of three and four men from a fixed seed, and to agree also all of three men; exits with 1 when
//! one value differs.

mod positions;
mod pyrrhic;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use gristmill_format::chess::syzygy::{Material, Table, TableKind, Tables};
use memmap2::Mmap;
use shakmaty::Chess;

use positions::Position;
use pyrrhic::Pyrrhic;

type Other = shakmaty_syzygy::Tablebase<Chess>;

type Ours = Tables<Mmap>;

fn ours(folder: &Path) -> Ours {
    let files = std::fs::read_dir(folder).expect("a folder of tables").map(|entry| entry.expect("an entry").path());
    Tables::new(files.filter_map(|path| {
        let extension = path.extension()?.to_str()?;
        let kind = TableKind::ALL.into_iter().find(|kind| kind.extension() == extension)?;
        let file = std::fs::File::open(&path).expect("a table");
        // SAFETY: the tables are not changed while this program runs.
        #[allow(unsafe_code)]
        let bytes = unsafe { Mmap::map(&file) }.expect("a table");
        Some(Table::read(kind, Material::parse(path.file_stem()?.to_str()?)?, bytes).expect("a sound table"))
    }))
}

fn other(folder: &Path) -> Other {
    // SAFETY: the tables are not changed while this program runs.
    #[allow(unsafe_code)]
    let mut tables = unsafe { Other::with_mmap_filesystem() };
    tables.add_directory(folder).expect("a folder of tables");
    tables
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (Some(mode), Some(folder)) = (words.first(), words.get(1).map(PathBuf::from)) else {
        eprintln!("usage: syzygy-bench agree|speed FOLDER [POSITIONS]");
        return ExitCode::from(2);
    };
    if !folder.join("KQvK.rtbw").exists() {
        println!("skipped: no tables in {}; run `make tables`", folder.display());
        return ExitCode::SUCCESS;
    }
    let count = words.get(2).map_or(100_000, |n| n.parse().expect("a number of positions"));
    let ours = ours(&folder);
    assert!(ours.coverage().is_complete(), "{}", ours.coverage());
    let list = positions::random(count);
    let other = other(&folder);
    match mode.as_str() {
        "agree" => {
            let some = agree("random positions of 3 and 4 men", &ours, &other, list.into_iter());
            let all = agree("positions of 3 men, which are all", &ours, &other, positions::three_men());
            if some && all { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        _ => {
            speed(&ours, &other, &Pyrrhic::open(&folder), &list);
            ExitCode::SUCCESS
        }
    }
}

/// Whether value and plies are the same for every position; says how many were compared, and which differ.
fn agree(what: &str, ours: &Ours, other: &Other, list: impl Iterator<Item = Position>) -> bool {
    let (mut count, mut differing) = (0, 0);
    for Position { board, chess } in list {
        count += 1;
        let wdl = other.probe_wdl_after_zeroing(&chess).map(i32::from);
        let dtz = other.probe_dtz(&chess).map(|plies| i32::from(plies.ignore_rounding()));
        let (our_wdl, our_dtz) = (ours.wdl(&board).map(|wdl| wdl.number()), ours.dtz(&board));
        if our_wdl.as_ref().ok() != wdl.as_ref().ok() || our_dtz.as_ref().ok() != dtz.as_ref().ok() {
            differing += 1;
            println!("{board}: {our_wdl:?} {our_dtz:?}, the other says {wdl:?} {dtz:?}");
        }
    }
    println!("{count} {what}, compared with shakmaty-syzygy in value and plies: {differing} differ");
    differing == 0
}

/// CPU time of this thread, which other programs do not lengthen.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// The least CPU time of some rounds that take turns, so that a busy machine disturbs all alike.
fn least<const N: usize>(rounds: usize, runs: [&dyn Fn() -> i64; N]) -> [Duration; N] {
    let mut least = [Duration::MAX; N];
    let mut sums = [0; N];
    for _ in 0..rounds {
        for (i, run) in runs.iter().enumerate() {
            let start = cpu_time();
            sums[i] = run();
            least[i] = least[i].min(cpu_time() - start);
        }
    }
    assert!(sums.iter().all(|sum| *sum == sums[0]), "the probers disagree: {sums:?}");
    least
}

fn speed(ours: &Ours, other: &Other, pyrrhic: &Pyrrhic, list: &[Position]) {
    let sum = |values: &mut dyn Iterator<Item = i32>| values.map(i64::from).sum::<i64>();
    let rate = |time: Duration, count: usize| count as f64 / time.as_secs_f64();
    let wdl = least(
        7,
        [
            &|| sum(&mut list.iter().map(|p| ours.wdl(&p.board).expect("covered").number())),
            &|| sum(&mut list.iter().map(|p| other.probe_wdl_after_zeroing(&p.chess).expect("covered").into())),
            &|| sum(&mut list.iter().map(|p| pyrrhic.wdl(&p.board))),
        ],
    );
    println!(
        "WDL probes of {} random positions of 3 and 4 men, one thread, least of 7 rounds (goal: 1.5):",
        list.len()
    );
    for (name, time) in ["gristmill", "shakmaty-syzygy (mmap)", "pyrrhic-rs"].into_iter().zip(wdl) {
        let ratio = wdl[1].as_secs_f64() / time.as_secs_f64();
        println!("  {name:24} {:>10.0}/s  {ratio:.2} of shakmaty-syzygy", rate(time, list.len()));
    }
    let some = &list[..list.len() / 10];
    let dtz = least(
        5,
        [&|| sum(&mut some.iter().map(|p| ours.dtz(&p.board).expect("covered"))), &|| {
            sum(&mut some.iter().map(|p| other.probe_dtz(&p.chess).expect("covered").ignore_rounding().into()))
        }],
    );
    println!("DTZ probes of {} of them:", some.len());
    for (name, time) in ["gristmill", "shakmaty-syzygy (mmap)"].into_iter().zip(dtz) {
        let ratio = dtz[1].as_secs_f64() / time.as_secs_f64();
        println!("  {name:24} {:>10.0}/s  {ratio:.2} of shakmaty-syzygy", rate(time, some.len()));
    }
}
