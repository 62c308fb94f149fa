//! A screen -> lines of styled text, and their places in a terminal of any size. Draws what it is given: reads nothing,
//! decides nothing, and lets no control character of a file's name through.

use gristmill_engine::pipeline::RunState;
use gristmill_engine::runtime::events::{Event, Level};
use gristmill_view::watch::headline::{self, Waits};
use gristmill_view::watch::numbers;
use gristmill_view::watch::rows::{self, Chip, Row};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, Wrap};

use super::help;
use super::screen::{Link, LogSize, Screen};

const KEYS: [(&str, &str); 7] =
    [("?", "help"), ("q", "quit"), ("←→", "stream"), ("↑↓", "scroll"), ("c", "chips"), ("l", "log"), ("p", "pause")];

/// Widths of the columns between the name and the bar.
const LOAD: usize = 10;
const RATE: usize = 9;
const TOTAL: usize = 14;

/// Cells of a bar, and of the numbers beside it.
const BAR: usize = 10;
const FILL: usize = 13;

/// Draws everything.
pub(super) fn draw(screen: &mut Screen, frame: &mut Frame<'_>) {
    let area = frame.area();
    let streams = streams(screen);
    let log_height = match screen.log_size {
        _ if area.height < 10 => 0,
        LogSize::Some => (area.height / 4).clamp(3, 12),
        LogSize::Most => area.height - 6,
        LogSize::None => 0,
    };
    let heights = [1, u16::from(screen.latest.is_some()), u16::from(streams.is_some()), 1].map(Constraint::Length);
    let [title, summary, switch, head, table, log, keys] = Layout::vertical(heights.into_iter().chain([
        Constraint::Fill(1),
        Constraint::Length(log_height),
        Constraint::Length(1),
    ]))
    .areas(area);
    frame.render_widget(self::title(screen), title);
    frame.render_widget(self::summary(screen, usize::from(area.width)).unwrap_or_default(), summary);
    frame.render_widget(streams.unwrap_or_default(), switch);
    if screen.help {
        let lines = help::LINES.into_iter().map(Line::from).collect::<Vec<_>>();
        frame.render_widget(Paragraph::new(lines), head.union(table).union(log));
    } else {
        draw_table(screen, frame, head, table);
        draw_log(screen, frame, log);
    }
    frame.render_widget(self::keys(), keys);
}

/// The title and the whole table as plain text, for those who look once.
pub(crate) fn text(screen: &Screen, width: usize) -> String {
    let mut lines = vec![title(screen)];
    lines.extend(summary(screen, width));
    lines.extend(streams(screen));
    lines.push(header(width));
    lines.extend(table(screen, width).unwrap_or_default());
    let plain = |line: &Line<'_>| {
        let text: String =
            line.spans.iter().flat_map(|span| span.content.chars()).filter(|c| !c.is_control()).collect();
        text.trim_end().to_owned()
    };
    lines.iter().map(plain).collect::<Vec<_>>().join("\n")
}

fn title(screen: &Screen) -> Line<'static> {
    let mut spans = vec![" gristmill top ".bold(), Span::raw(format!(" {}", screen.place))];
    let mut add = |span: Span<'static>| spans.extend([Span::raw("  "), span]);
    let Some(status) = &screen.latest else {
        add(match &screen.link {
            Link::Down(_) => "no answer".red().bold(),
            _ => "calling".yellow(),
        });
        return Line::from(spans);
    };
    add(Span::raw(format!("up {}", numbers::time(status.uptime_seconds))));
    add(match (&screen.link, status.state) {
        (Link::Down(_), RunState::Stopped) => "stopped, and gone".yellow(),
        (Link::Down(why), _) => format!("no answer ({why})").red().bold(),
        (_, RunState::Running) if screen.paused => "paused".yellow(),
        (_, RunState::Running) => "running".green(),
        (_, RunState::Ended) => "ended".yellow(),
        (_, RunState::Stopped) => "stopped".yellow(),
        (_, RunState::Other) => "in a state of its own".yellow(),
    });
    add(Span::raw(format!("seed {}", status.seed)));
    let (bad, quarantined) = (status.bad_chunks.chunks, status.bad_chunks.quarantined);
    if bad > quarantined {
        let plural = if bad == 1 { "" } else { "s" };
        add(format!("{} bad chunk{plural}", numbers::total(bad)).yellow());
    }
    if quarantined > 0 {
        add(format!("{} quarantined", numbers::total(quarantined)).yellow());
    }
    if status.bad_chunks.report_fault.is_some() {
        add("quarantine report fails".red());
    }
    Line::from(spans)
}

/// How the loader does: what flows, what it takes, who waits, and the rate over time where there is room.
fn summary(screen: &Screen, width: usize) -> Option<Line<'static>> {
    let status = screen.latest.as_ref()?;
    let found = headline::headline(status, &screen.history, screen.alias());
    let color = match &found.waits {
        Waits::Trainer(..) => Color::Yellow,
        Waits::Loader | Waits::Nobody => Color::Green,
        Waits::Over => Color::Reset,
    };
    let text = cut(&found.text(crate::report::bytes), width.saturating_sub(2));
    let room = width.saturating_sub(Span::raw(text.as_str()).width() + 4);
    let trail = if room >= 5 { numbers::sparkline(&found.trail, room) } else { String::new() };
    Some(Line::from(vec![Span::raw(" "), Span::styled(text, color).bold(), Span::raw("  "), trail.cyan()]))
}

/// The outputs to choose from, where there are several.
fn streams(screen: &Screen) -> Option<Line<'static>> {
    let status = screen.latest.as_ref().filter(|status| status.outputs.len() > 1)?;
    let mut spans = vec![Span::raw(" stream ")];
    let names = status.outputs.iter().map(|output| (output.alias.as_str(), output.ended));
    for (i, (name, ended)) in std::iter::once(("all", false)).chain(names).enumerate() {
        let name = if name.is_empty() { "(unnamed)" } else { name };
        let span = Span::raw(format!(" {name}{} ", if ended { " (ended)" } else { "" }));
        spans.push(if i == screen.stream { span.reversed().bold() } else { span });
        spans.push(Span::raw(" "));
    }
    Some(Line::from(spans))
}

fn name_width(width: usize) -> usize {
    width.saturating_sub(1 + LOAD + RATE + TOTAL + 2 + BAR + 1 + FILL).clamp(10, 32)
}

fn header(width: usize) -> Line<'static> {
    let name = name_width(width);
    let text = format!(" {:name$}{:>LOAD$}{:>RATE$}{:>TOTAL$}  FILL", "STAGE", "LOAD", "ITEMS/S", "TOTAL");
    Line::from(text.bold())
}

fn draw_table(screen: &mut Screen, frame: &mut Frame<'_>, head: Rect, area: Rect) {
    let width = usize::from(area.width);
    let lines = match table(screen, width) {
        Ok(lines) => lines,
        Err(why) => {
            let text = why.into_iter().map(Line::from).collect::<Vec<_>>();
            frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area.union(head));
            return;
        }
    };
    let height = usize::from(area.height);
    screen.scroll = screen.scroll.min(lines.len().saturating_sub(height));
    frame.render_widget(header(width), head);
    if lines.len() > height {
        let last = lines.len().min(screen.scroll + height);
        let text = format!("{}-{last} of {} ", screen.scroll + 1, lines.len());
        frame.render_widget(Line::from(text.dim()).right_aligned(), head);
    }
    let shown = lines.into_iter().skip(screen.scroll).take(height).collect::<Vec<_>>();
    let style = if screen.is_live() { Style::new() } else { Style::new().dim() };
    frame.render_widget(Paragraph::new(shown).style(style), area);
}

/// The lines of the table, or what to say where there is none.
fn table(screen: &Screen, width: usize) -> Result<Vec<Line<'static>>, Vec<String>> {
    let Some(status) = &screen.latest else { return Err(nothing_yet(screen)) };
    if status.stages.is_empty() {
        return Err(vec![String::new(), "  The loader publishes no stages.".to_owned()]);
    }
    let found = rows::rows(status, &screen.history, screen.alias(), screen.chips);
    Ok(found.iter().flat_map(|row| row_lines(row, width)).collect())
}

fn nothing_yet(screen: &Screen) -> Vec<String> {
    let place = &screen.place;
    match &screen.link {
        Link::Down(why) => vec![
            String::new(),
            format!("  No loader answers at {place}: {why}."),
            String::new(),
            format!("  A loader answers if it serves metrics: gristmill feed ... --metrics {place}"),
            format!("  or, in Python, loader.serve_metrics(\"{place}\")."),
            String::new(),
            "  Trying again.".to_owned(),
        ],
        _ => vec![String::new(), format!("  Asking {place} ...")],
    }
}

fn row_lines(row: &Row, width: usize) -> Vec<Line<'static>> {
    match row {
        Row::Stage(line) => vec![columns(line, "", width)],
        Row::Queue(line) => [Some(columns(line, "  └ ", width)), drops(line)].into_iter().flatten().collect(),
        Row::Chips(chips) => chip_lines(chips, width),
    }
}

fn columns(line: &rows::Line, indent: &str, width: usize) -> Line<'static> {
    let name = name_width(width);
    let own = cut(&format!("{indent}{}", line.name), name);
    let pad = name - Span::raw(own.as_str()).width().min(name);
    let load = line.load.map_or(numbers::UNKNOWN.to_owned(), |(busy, all)| format!("{busy:.2}/{all:.1}"));
    let rate = format!("{:>RATE$}", numbers::rate(line.rate));
    let total = line.total.map_or(numbers::UNKNOWN.to_owned(), numbers::total);
    let mut spans = vec![
        Span::raw(format!(" {own}{:pad$}", "")),
        Span::raw(if indent.is_empty() { format!("{load:>LOAD$}") } else { " ".repeat(LOAD) }),
        // What would be shown as zero is zero to people; it is a fault only where somebody waits.
        if line.awaited && line.rate.is_some_and(|rate| rate < 0.05) { rate.red() } else { Span::raw(rate) },
        Span::raw(format!("{total:>TOTAL$}")),
    ];
    if let Some((value, capacity)) = line.fill {
        spans.push(Span::raw("  "));
        spans.extend(bar(value, capacity));
        spans.push(Span::raw(format!(" {}/{}", numbers::brief(value), numbers::brief(capacity))));
    } else if indent.is_empty() {
        spans.extend([Span::raw("  "), numbers::sparkline(&line.trail, BAR + FILL).cyan()]);
    }
    Line::from(spans)
}

/// What a queue dropped, where it did.
fn drops(line: &rows::Line) -> Option<Line<'static>> {
    let (dropped, per_second) = line.dropped;
    let now = if per_second > 0.0 { format!(" ({}/s)", numbers::short(per_second)) } else { String::new() };
    (dropped > 0).then(|| Line::from(format!("     dropped {}{now}", numbers::total(dropped)).yellow()))
}

/// How full something is, to an eighth of a cell.
fn bar(value: u64, capacity: u64) -> [Span<'static>; 2] {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let share = (value as f64 / capacity.max(1) as f64).clamp(0.0, 1.0);
    let eighths = (share * (BAR * 8) as f64).floor() as usize;
    let full = "█".repeat(eighths / 8) + EIGHTHS[eighths % 8];
    let rest = BAR - eighths.div_ceil(8);
    [full.cyan(), "·".repeat(rest).dark_gray()]
}

fn chip_lines(chips: &[Chip], width: usize) -> Vec<Line<'static>> {
    const INDENT: usize = 3;
    let room = width.saturating_sub(INDENT + 1).max(10);
    let mut lines: Vec<(usize, Vec<Span<'static>>)> = Vec::new();
    for chip in chips {
        let value = cut(&chip.value, room.saturating_sub(Span::raw(chip.name.as_str()).width() + 1).max(8));
        let spans = [format!("{} ", chip.name).dark_gray(), Span::raw(value)];
        let len = spans.iter().map(Span::width).sum::<usize>();
        match lines.last_mut() {
            Some((used, line)) if *used + 3 + len <= room => {
                *used += 3 + len;
                line.extend([Span::raw("   ")].into_iter().chain(spans));
            }
            _ => lines.push((len, [Span::raw(" ".repeat(INDENT))].into_iter().chain(spans).collect())),
        }
    }
    lines.into_iter().map(|(_, spans)| Line::from(spans)).collect()
}

/// A text of at most `room` cells: what is too long loses its middle, since names differ at both ends.
fn cut(text: &str, room: usize) -> String {
    let wide = |text: &str| Span::raw(text).width();
    if wide(text) <= room {
        return text.to_owned();
    }
    let half = room.saturating_sub(1);
    let fitting = |chars: &mut dyn Iterator<Item = char>, most: usize| {
        let mut part = String::new();
        for c in chars {
            part.push(c);
            if wide(&part) > most {
                part.pop();
                break;
            }
        }
        part
    };
    let head = fitting(&mut text.chars(), half - half / 2);
    let tail: String = fitting(&mut text.chars().rev(), half / 2).chars().rev().collect();
    format!("{head}…{tail}")
}

fn draw_log(screen: &Screen, frame: &mut Frame<'_>, area: Rect) {
    let block = Block::new().borders(Borders::TOP).border_style(Style::new().dark_gray()).title(" log ");
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let height = usize::from(inner.height);
    let mut lines: Vec<Line<'static>> = Vec::new();
    for event in screen.log.iter().rev().take(height) {
        let mut more = event_lines(event, usize::from(inner.width));
        more.append(&mut lines);
        lines = more;
    }
    let over = lines.len().saturating_sub(height);
    frame.render_widget(Paragraph::new(lines.split_off(over)), inner);
}

/// An event, in as many lines as it takes.
fn event_lines(event: &Event, width: usize) -> Vec<Line<'static>> {
    let time = format!(" {} ", numbers::time(event.seconds));
    let indent = time.len();
    let stage = event.stage.as_ref().map(|stage| format!("{stage}: ")).unwrap_or_default();
    let color = match event.level {
        Level::Info => Color::Reset,
        Level::Warning => Color::Yellow,
        Level::Error => Color::Red,
    };
    let text = format!("{stage}{}", event.message);
    let parts = wrapped(&text, width.saturating_sub(indent).max(20));
    let line = |(i, part): (usize, String)| {
        let front = if i == 0 { time.clone().dark_gray() } else { Span::raw(" ".repeat(indent)) };
        Line::from(vec![front, Span::styled(part, color)])
    };
    parts.into_iter().enumerate().map(line).collect()
}

/// Text in lines of at most `width` cells, broken between words where one is near.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_inclusive([' ', '/']) {
        let last = lines.last_mut().map_or(0, |line| Span::raw(line.as_str()).width());
        if last > 0 && last + Span::raw(word.trim_end()).width() > width {
            lines.push(String::new());
        }
        for c in word.chars() {
            let Some(line) = lines.last_mut() else { break };
            if Span::raw(line.as_str()).width() >= width && c != ' ' {
                lines.push(c.to_string());
            } else {
                line.push(c);
            }
        }
    }
    lines
}

fn keys() -> Line<'static> {
    let each =
        |(key, does): (&'static str, &'static str)| [format!(" {key} ").reversed(), Span::raw(format!(" {does}  "))];
    Line::from(KEYS.into_iter().flat_map(each).collect::<Vec<_>>())
}
