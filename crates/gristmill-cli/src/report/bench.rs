//! A benchmark as text and as a page: the machine, the runs, each stage beside its limit, queues. Prints nothing.

use std::fmt::Write;

use gristmill_jobs::bench::{Bench, Depth, Machine, Run, Stage};

use super::flow::{TOO_FEW, lacked};
use super::page::{self, Figure, Page, Table, bars, curve};

/// The text of a benchmark, in lines of at most 80 columns where names are short.
pub(crate) fn text(found: &Bench) -> String {
    if is_short(found) {
        return format!(
            "too short to measure: a run of at most {TOO_FEW} batches; --batches says how many, and the data must have them"
        );
    }
    let mut out = String::new();
    machine(&found.machine).iter().for_each(|(name, value)| _ = writeln!(out, "{name:<9}{value}"));
    out.push_str("\nthreads  positions/s  speedup  us/position  cores busy  held up  first batch\n");
    for run in &found.runs {
        let [threads, rate, speedup, us, busy, held, first] = cells(run);
        let _ = writeln!(out, "{threads:>7}  {rate:>11}  {speedup:>7}  {us:>11}  {busy:>10}  {held:>7}  {first:>11}");
    }
    out.push_str("\nstage            work       us/position  limit            floor us   share\n");
    for stage in &found.stages {
        let [name, work, us, limit, floor, share] = row(stage);
        let _ = writeln!(out, "{name:<16} {work:<9}  {us:>11}  {limit:<15}  {floor:>8}  {share:>6}");
    }
    out.push_str("\nqueue after      threads   full  empty   mean  room\n");
    for (threads, depth) in depths(found) {
        let Depth { stage, capacity, mean, full, empty, .. } = depth;
        let (full, empty) = (100.0 * full, 100.0 * empty);
        let _ = writeln!(out, "{stage:<16} {threads:>7}  {full:>3.0} %  {empty:>3.0} %  {mean:>5.1}  {capacity:>4}");
    }
    out.push('\n');
    for line in sentences(found) {
        out.push_str(&wrapped(&line, 80));
    }
    out.trim_end().to_owned()
}

/// The same on a page that needs nothing beside it.
pub(crate) fn html(title: &str, found: &Bench) -> String {
    let title = format!("Bench of {title}");
    let facts = machine(&found.machine).into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let stages = Table {
        title: "stages".into(),
        lines: sentences(found),
        rows: found.stages.iter().map(|stage| stage.says.clone()).collect(),
    };
    let mut figures = vec![of_stages(&found.stages), of_machine(&found.machine), of_runs(&found.runs)];
    figures.extend(depths(found).map(|(threads, depth)| of_depth(threads, depth)));
    page::html(&Page { title: &title, facts, tables: vec![stages], figures, ..Page::default() })
}

fn is_short(found: &Bench) -> bool {
    found.runs.iter().any(|run| run.fed.batches <= TOO_FEW)
}

/// What the machine can do: names and values.
fn machine(found: &Machine) -> Vec<(&'static str, String)> {
    let mut all = vec![
        ("cores", format!("{}, of which {:.1} were had", found.cores, found.cores_had)),
        (
            "copy",
            format!(
                "{} on one thread, {} on all",
                rate(found.copy.bytes_per_second),
                rate(found.copy_all.bytes_per_second)
            ),
        ),
        ("fill", rate(found.fill.bytes_per_second)),
    ];
    if let Some(gather) = found.gather {
        let (rows, bytes) = (gather.rows_per_second / 1e6, gather.row_bytes);
        all.push(("gather", format!("{rows:.1} million rows/s of {bytes} bytes")));
    }
    if let Some(inflate) = found.inflate {
        all.push(("inflate", format!("{} of {}", rate(inflate.bytes_per_second), inflate.form)));
    }
    match &found.storage {
        Some(storage) => {
            let of = |bytes, reads: f64| format!("{}, {reads:.0} reads/s", rate(bytes));
            let disk = of(storage.bytes_per_second, storage.reads_per_second);
            all.push(("disk", if storage.cold { disk } else { "not measured: memory keeps the files".to_owned() }));
            all.push((
                "memory",
                of(storage.cached_bytes_per_second, storage.cached_reads_per_second) + " of files that it keeps",
            ));
        }
        None => all.push(("disk", "not measured: the data are no files of this machine".to_owned())),
    }
    all
}

fn number(x: Option<f64>, decimals: usize) -> String {
    x.map_or("-".to_owned(), |x| format!("{x:.decimals$}"))
}

fn percent(x: Option<f64>) -> String {
    x.map_or("-".to_owned(), |x| format!("{:.0} %", 100.0 * x))
}

/// The numbers of a run.
fn cells(run: &Run) -> [String; 7] {
    let fed = &run.fed;
    [
        run.threads.to_string(),
        number(fed.frames_per_second, 0),
        number(run.speedup, 2),
        number(fed.cpu_us_per_frame, 2),
        number(run.cores_busy, 2),
        percent(run.held_up),
        fed.first_batch_seconds.map_or("-".to_owned(), |seconds| format!("{seconds:.2} s")),
    ]
}

/// The numbers of a stage.
fn row(stage: &Stage) -> [String; 6] {
    [
        stage.stage.clone(),
        stage.work.to_owned(),
        format!("{:.3}", stage.us),
        stage.limit.unwrap_or("-").to_owned(),
        number(stage.floor_us, 3),
        percent(stage.share),
    ]
}

/// The queues of the first run and of the last, with their threads.
fn depths(found: &Bench) -> impl Iterator<Item = (usize, &Depth)> {
    let last = found.runs.iter().skip(1).last();
    let runs = found.runs.first().into_iter().chain(last);
    runs.flat_map(|run| run.queues.iter().map(|depth| (run.threads, depth)))
}

/// What stands below the tables, a sentence a line.
fn sentences(found: &Bench) -> Vec<String> {
    let mut all = Vec::new();
    if let Some((encode, ceiling)) = found.encode_us.zip(found.ceiling) {
        let inflate = found.inflate_us.map(|us| format!("inflating alone {us:.2} us, ")).unwrap_or_default();
        all.push(format!("{inflate}encoding alone {encode:.2} us: at most {ceiling:.0} positions/s on one thread"));
    }
    if let Some(share) = found.of_ceiling {
        all.push(format!("one thread reaches {:.0} % of that", share * 100.0));
    }
    if let Some(share) = found.of_ceiling_cpu {
        all.push(format!("these two are {:.0} % of its processor time", share * 100.0));
    }
    if let Some(bytes) = found.bytes_per_frame {
        all.push(format!("{bytes:.0} bytes of tensors a position"));
    }
    all.push(format!("bottleneck: {}", lacked(&found.bottleneck)));
    all.push(found.explains.clone());
    all.extend(found.warnings.iter().map(|warning| format!("warning: {warning}")));
    all
}

/// Bytes a second for people.
fn rate(bytes: f64) -> String {
    match bytes {
        bytes if bytes >= 1e9 => format!("{:.1} GB/s", bytes / 1e9),
        bytes if bytes >= 1e6 => format!("{:.0} MB/s", bytes / 1e6),
        bytes => format!("{:.0} kB/s", bytes / 1e3),
    }
}

/// Words in lines of at most `width` columns; a longer word has a line of its own.
fn wrapped(text: &str, width: usize) -> String {
    let (mut out, mut column) = (String::new(), 0);
    for word in text.split_whitespace() {
        let len = word.chars().count();
        if column > 0 && column + 1 + len > width {
            out.push('\n');
            column = 0;
        }
        if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += len;
    }
    out + "\n"
}

fn of_stages(stages: &[Stage]) -> Figure {
    let bars: Vec<bars::Bar> = stages
        .iter()
        .map(|stage| bars::Bar {
            label: format!("{} ({})", stage.stage, stage.work),
            whole: stage.us,
            part: stage.floor_us,
            says: format!(
                "{:.3} us{}",
                stage.us,
                stage.share.map(|s| format!(", {:.0} %", s * 100.0)).unwrap_or_default()
            ),
        })
        .collect();
    Figure {
        title: "microseconds a position, and its limit".into(),
        lines: vec!["dark: what the limit alone takes here; light: what the stage takes".into()],
        svg: bars::svg(&bars),
        head: ["stage", "work", "us/position", "limit", "floor us", "share"].map(str::to_owned).to_vec(),
        rows: stages.iter().map(|stage| row(stage).to_vec()).collect(),
    }
}

fn of_machine(found: &Machine) -> Figure {
    let mut all = vec![
        ("copy", found.copy.bytes_per_second),
        ("copy, all cores", found.copy_all.bytes_per_second),
        ("fill", found.fill.bytes_per_second),
    ];
    all.extend(found.gather.map(|gather| ("gather", gather.rows_per_second * gather.row_bytes as f64)));
    all.extend(found.inflate.map(|inflate| ("inflate", inflate.bytes_per_second)));
    if let Some(storage) = &found.storage {
        all.extend(storage.cold.then_some(("files, from the disk", storage.bytes_per_second)));
        all.push(("files, from memory", storage.cached_bytes_per_second));
    }
    let bar = |(name, bytes): &(&str, f64)| bars::Bar {
        label: (*name).to_owned(),
        whole: *bytes,
        part: Some(*bytes),
        says: rate(*bytes),
    };
    Figure {
        title: "this machine, bytes a second".into(),
        lines: vec![format!("{} cores, of which {:.1} were had", found.cores, found.cores_had)],
        svg: bars::svg(&all.iter().map(bar).collect::<Vec<_>>()),
        head: ["limit", "bytes a second"].map(str::to_owned).to_vec(),
        rows: all.iter().map(|(name, bytes)| vec![(*name).to_owned(), format!("{bytes:.0}")]).collect(),
    }
}

fn of_runs(runs: &[Run]) -> Figure {
    let points: Vec<(f64, f64)> =
        runs.iter().filter_map(|run| Some((run.threads as f64, run.fed.frames_per_second?))).collect();
    Figure {
        title: "positions a second, by threads".into(),
        lines: vec!["dashed: as many times the first run as there are threads".into()],
        svg: curve::svg(&points),
        head: ["threads", "positions/s", "speedup", "us/position", "cores busy", "held up", "first batch"]
            .map(str::to_owned)
            .to_vec(),
        rows: runs.iter().map(|run| cells(run).to_vec()).collect(),
    }
}

fn of_depth(threads: usize, depth: &Depth) -> Figure {
    let bars = depth.depths.len().max(1) as u64;
    let each = (depth.capacity + 1).div_ceil(bars).max(1);
    let label = |i: u64| match each {
        1 => i.to_string(),
        each => format!("{} to {}", i * each, ((i + 1) * each - 1).min(depth.capacity)),
    };
    let all: Vec<(String, f64)> = (0..).map(label).zip(depth.depths.iter().copied()).collect();
    let bar = |(label, share): &(String, f64)| bars::Bar {
        label: label.clone(),
        whole: *share,
        part: Some(*share),
        says: format!("{:.1} %", share * 100.0),
    };
    let of = if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") };
    Figure {
        title: format!("queue after {}, {of}", depth.stage),
        lines: vec![format!(
            "share of time by how many wait there; {:.0} % empty, {:.0} % full",
            depth.empty * 100.0,
            depth.full * 100.0
        )],
        svg: bars::svg(&all.iter().map(bar).collect::<Vec<_>>()),
        head: ["waiting", "share of time"].map(str::to_owned).to_vec(),
        rows: all.iter().map(|(label, share)| vec![label.clone(), format!("{:.1} %", share * 100.0)]).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_where_they_should() {
        assert_eq!(wrapped("one two three", 7), "one two\nthree\n");
        assert_eq!(wrapped("wordwordword a b", 4), "wordwordword\na b\n");
        assert_eq!(wrapped("", 4), "\n");
    }

    #[test]
    fn rates_are_in_the_unit_that_people_use() {
        assert_eq!([2.34e10, 5.6e6, 7000.0].map(rate), ["23.4 GB/s", "6 MB/s", "7 kB/s"]);
    }
}
