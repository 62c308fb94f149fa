//! A certificate of a shuffle as text and as a page. Prints nothing and writes no file.

use std::fmt::Write;

use gristmill_plans::certificate::{Certificate, Cost, Fetching, Figure, Share, Terms};

use super::page::{self, Page, Table};

/// The text of a certificate.
pub(crate) fn text(found: &Certificate) -> String {
    let name = if found.output.is_empty() { String::new() } else { format!("output {}: ", found.output) };
    let mut out = format!("{name}{}\n", found.says);
    facts(found).iter().for_each(|(name, value)| _ = writeln!(out, "{name}: {value}"));
    for share in &found.mix {
        let _ = writeln!(out, "{}", line(share));
    }
    let _ = writeln!(out, "{:<12} {:>12} {:>12}  level", "figure", "measured", "perfect");
    for figure in &found.figures {
        let Figure { name, says, value, perfect, level, .. } = figure;
        let _ = writeln!(out, "{name:<12} {:>12} {:>12}  {level:<5} {says}", number(*value), number(*perfect));
    }
    found.advice.iter().for_each(|advice| _ = writeln!(out, "advice: {advice}"));
    out.trim_end().to_owned()
}

/// The certificates of all outputs on a page that needs nothing beside it.
pub(crate) fn html(title: &str, found: &[Certificate]) -> String {
    let title = format!("Certificate of {title}");
    let tables = found.iter().flat_map(tables).collect();
    let levels = found
        .iter()
        .map(|one| (if one.output.is_empty() { "shuffle" } else { &one.output }.to_owned(), one.says.clone()));
    page::html(&Page { title: &title, facts: levels.collect(), tables, ..Page::default() })
}

fn tables(found: &Certificate) -> Vec<Table> {
    let name = if found.output.is_empty() { String::new() } else { format!("{}: ", found.output) };
    let fact = |(name, value): (&str, String)| format!("{name}: {value}");
    let plan = Table {
        title: format!("{name}what is fed"),
        lines: Vec::new(),
        rows: facts(found).into_iter().map(fact).chain(found.mix.iter().map(line)).collect(),
    };
    let figure = |figure: &Figure| Table {
        title: format!("{name}{}: {}", figure.name, figure.level),
        lines: vec![figure.says.to_owned()],
        rows: vec![format!("measured {}, perfect {}", number(figure.value), number(figure.perfect))],
    };
    let advice = Table { title: format!("{name}what to change"), lines: Vec::new(), rows: found.advice.clone() };
    let advice = Some(advice).filter(|advice| !advice.rows.is_empty());
    [plan].into_iter().chain(advice).chain(found.figures.iter().map(figure)).collect()
}

fn line(share: &Share) -> String {
    format!(
        "pack {} ({}): {} rows, {:.1} % wanted, {:.1} % given, each row {:.2} times an epoch",
        share.source,
        share.pack.display(),
        share.rows,
        share.wanted * 100.0,
        share.realised * 100.0,
        share.uses
    )
}

fn facts(found: &Certificate) -> Vec<(&'static str, String)> {
    let plan = &found.plan;
    let mut facts = Vec::new();
    let ranks = if plan.ranks == 1 { String::new() } else { format!(", shared by {} ranks", plan.ranks) };
    facts.push(("batch", format!("{} rows{ranks}", plan.batch_rows)));
    if let Some((rows, batches)) = plan.rows.zip(plan.batches) {
        let left = plan.dropped_rows.filter(|rows| *rows > 0).map(|rows| format!(", {rows} rows dropped at its end"));
        let again = plan.repeated_rows.filter(|rows| *rows > 0).map(|rows| format!(", {rows} rows repeated"));
        let more = [left, again].into_iter().flatten().collect::<String>();
        facts.push(("epoch", format!("{rows} rows in {batches} batches{more}")));
    }
    if let Some(rows) = plan.rows_per_game {
        facts.push(("uses", format!("{rows:.1} rows of a game an epoch")));
    }
    if let Some((window, games)) = plan.window_games.zip(plan.games) {
        let uses = plan.rows_per_use.map(|rows| format!(", {rows:.1} positions a use")).unwrap_or_default();
        facts.push(("games", format!("{window} drawn from at a time, of {games}{uses}")));
    }
    if let Some(memory) = plan.memory_bytes {
        facts.push(("memory", format!("at most {}", super::bytes(memory))));
    }
    if let Some(disk) = plan.disk_bytes {
        facts.push(("files", super::bytes(disk)));
    }
    if let Some(fetching) = &found.fetching {
        facts.extend(fetched(fetching));
    }
    facts.push(("measured on", format!("{} batches, {} rows", found.sample.batches, found.sample.rows)));
    facts
}

/// What a pack in a bucket costs.
fn fetched(found: &Fetching) -> Vec<(&'static str, String)> {
    let bytes = super::bytes;
    let cost = |cost: &Cost| {
        let money = cost.money.map(|money| format!(", {money:.4} of money")).unwrap_or_default();
        format!("{} requests, {}{money}", cost.requests, bytes(cost.bytes))
    };
    let rows =
        format!("{}, of which {} are there once the pack is open", bytes(found.data_bytes), bytes(found.kept_bytes));
    let mut facts = vec![("fetching", found.says.clone()), ("rows elsewhere", rows)];
    facts.push(("metadata.db", format!("{}, which SQL fetches whole", bytes(found.metadata_bytes))));
    facts.extend(found.opening.map(|opening| ("opening", cost(&opening))));
    let changed = found.change.as_ref().and_then(|change| Some((change.epochs.as_ref()?, change.cache_limit)));
    let (epochs, given) = match (&found.epochs, changed) {
        (Some(epochs), _) => (epochs, String::new()),
        (None, Some((epochs, limit))) => (epochs, format!(", with cache_limit={limit}")),
        (None, None) => return facts,
    };
    let within = match epochs.is_sampled {
        true => format!("; a sample, requests within {:.0} %", epochs.error * 100.0),
        false => String::new(),
    };
    facts.push(("first epoch", format!("{}{given}{within}", cost(&epochs.first))));
    facts.push(("later epochs", format!("{}{given}", cost(&epochs.later))));
    facts.push(("disk", format!("{} of the cache{given}", bytes(epochs.disk_bytes))));
    let Terms { latency, bandwidth, .. } = found.terms;
    let (milliseconds, network) = (latency * 1e3, bytes(bandwidth as u64));
    let seconds = epochs.first_batch_seconds;
    facts.push((
        "first batch",
        format!("after about {seconds:.1} s, at {milliseconds} ms a request and {network} a second{given}"),
    ));
    facts
}

/// A figure with three digits, or whole.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits() {
        assert_eq!([0.0123, 12.34, 12345.6].map(number), ["0.012", "12.3", "12346"]);
    }
}
