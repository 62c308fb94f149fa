//! The screen on terminals that exist in memory: every size, every state, hostile names. No process, no network.

use gristmill_engine::pipeline::{CountStatus, GaugeStatus, OutputStatus, QueueStatus, RunState, StageStatus, Status};
use gristmill_engine::runtime::events::{Event, Level};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::attach::Heard;
use super::draw;
use super::screen::{Screen, Wish};

/// What a terminal of a size shows.
fn shown(screen: &mut Screen, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw::draw(screen, frame)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(line).collect()
}

fn press(screen: &mut Screen, keys: &[KeyCode]) {
    for &code in keys {
        assert_eq!(screen.press(KeyEvent::new(code, KeyModifiers::NONE)), Wish::Stay);
    }
}

fn stage(name: &str, stream: &str, n: u64) -> StageStatus {
    StageStatus {
        name: name.into(),
        kind: "novel".into(),
        gives: "frames".into(),
        streams: vec![stream.into()],
        counts: vec![CountStatus { name: "frames".into(), total: n }],
        gauges: vec![GaugeStatus { name: "depth".into(), value: n, capacity: Some(u64::MAX) }],
        queues: vec![QueueStatus { put: n, got: n, dropped: n, waiting: n, capacity: 4, ..Default::default() }],
        ..StageStatus::default()
    }
}

/// A document at some second, with stages of the names given for each of two streams.
fn status(seconds: f64, names: &[&str]) -> Status {
    let stages = |alias: &'static str| names.iter().map(move |name| stage(&format!("{name}{alias}"), alias, 10));
    Status {
        gristmill_status: 1,
        process: 7,
        uptime_seconds: seconds,
        memory_bytes: Some(3 << 20),
        outputs: ["train", "test"].map(|alias| OutputStatus { alias: alias.into(), ..Default::default() }).to_vec(),
        stages: stages("train").chain(stages("test")).collect(),
        newest_event: seconds as u64,
        events: vec![Event { number: seconds as u64, ..Event::new(Level::Warning, "x", format!("event {seconds}")) }],
        ..Status::default()
    }
}

fn heard(documents: impl IntoIterator<Item = Status>) -> Screen {
    let mut screen = Screen::new("here:9100".into());
    documents.into_iter().for_each(|status| screen.hear(Heard::Status(Box::new(status))));
    screen
}

#[test]
fn a_120_by_40_terminal_has_the_headline_outputs_first_and_rates_over_time() {
    let mut screen = heard((1..=5).map(|second| status(f64::from(second), &["a-", "b-"])).collect::<Vec<_>>());
    let lines = shown(&mut screen, 120, 40);
    assert!(lines[1].contains("positions/s") && lines[1].contains("3.00 MiB"), "{lines:#?}");
    assert!(lines[4].starts_with(" b-test") && lines[39].contains("?  help"), "{lines:#?}");
    assert!(lines.iter().all(|line| line.chars().count() <= 120), "{lines:#?}");
}

#[test]
fn rates_over_time_are_drawn_as_far_as_there_is_room() {
    use ratatui::style::Color;
    // Each second gives a frame more than the one before, of rows that the headline counts.
    let document = |second: u64| {
        let mut document = status(second as f64, &["a-"]);
        for stage in &mut document.stages {
            (stage.gauges, stage.queues) = (Vec::new(), Vec::new());
            stage.counts[0].total = second * (second + 1) / 2;
        }
        document.outputs[0].stage = "a-train".into();
        document.outputs.truncate(1);
        document
    };
    let mut screen = heard((0..=8).map(document).collect::<Vec<_>>());
    for (width, height) in [(80, 24), (120, 40)] {
        let lines = shown(&mut screen, width, height);
        let row = lines.iter().find(|line| line.starts_with(" a-train")).unwrap();
        assert!(row.ends_with("  ▂▃▄▅▆▇██"), "{lines:#?}");
        assert!(lines[1].ends_with("  ▂▃▄▅▆▇██"), "{lines:#?}");
    }
    let long = (0..=60).map(document).collect::<Vec<_>>();
    let mut screen = heard(long);
    for width in [40, 80, 120] {
        let lines = shown(&mut screen, width, 24);
        assert!(lines.iter().all(|line| line.chars().count() <= usize::from(width)), "{lines:#?}");
    }
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    terminal.draw(|frame| draw::draw(&mut screen, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let marks = |y: u16| (0..80).filter(|x| "▁▂▃▄▅▆▇█".contains(buffer[(*x, y)].symbol())).collect::<Vec<u16>>();
    let row = (0..24).find(|y| (0..8).map(|x| buffer[(x, *y)].symbol()).collect::<String>() == " a-train").unwrap();
    for y in [1, row] {
        assert!(marks(y).len() >= 5 && marks(y).iter().all(|x| buffer[(*x, y)].fg == Color::Cyan), "line {y}");
        assert_eq!(buffer[(*marks(y).last().unwrap(), y)].symbol(), "█", "the newest is the highest, at the right");
    }
}

#[test]
fn every_size_is_drawn_in_every_state() {
    let names: Vec<String> = (0..20).map(|i| format!("stage-with-a-long-name-{i}-")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let lost = || Heard::Lost("connection refused".into());
    for keys in
        [&[][..], &[KeyCode::Char('l')], &[KeyCode::Char('l'), KeyCode::Char('l')], &[KeyCode::End, KeyCode::Char('c')]]
    {
        let mut screens = [
            heard([]),
            heard([Status::default()]),
            heard([status(1.0, &[])]),
            heard([status(1.0, &names), status(2.0, &names)]),
        ];
        for screen in &mut screens {
            press(screen, keys);
            for again in 0..2 {
                for (width, height) in
                    [(1, 1), (2, 30), (7, 3), (20, 9), (40, 12), (80, 24), (80, 1), (300, 100), (1, 50)]
                {
                    shown(screen, width, height);
                }
                if again == 0 {
                    screen.hear(lost());
                }
            }
        }
    }
}

#[test]
fn an_80_by_24_terminal_holds_title_streams_table_log_and_keys() {
    let mut screen = heard([status(1.0, &["pool-", "unpack-"]), status(2.0, &["pool-", "unpack-"])]);
    let lines = shown(&mut screen, 80, 24);
    assert!(lines[0].contains("here:9100") && lines[0].contains("up 00:00:02") && lines[0].contains("running"));
    assert!(lines[1].contains("positions/s") && lines[1].contains("3.00 MiB"), "{lines:#?}");
    assert!(lines[2].contains("all") && lines[2].contains("train") && lines[2].contains("test"));
    assert!(lines[3].contains("STAGE") && lines[3].contains("ITEMS/S") && lines[3].contains("TOTAL"));
    assert!(lines[4].starts_with(" unpack-test") && lines[4].contains("0.0") && lines[4].contains("10"), "{lines:#?}");
    assert!(lines[6].contains("└ queue") && lines[7].contains("dropped 10"), "{lines:#?}");
    assert!(
        lines[17].contains(" log ") && lines[18].contains("event 1") && lines[19].contains("event 2"),
        "{lines:#?}"
    );
    assert!(lines[23].contains("quit") && lines[23].contains("stream") && lines[23].contains("pause"));
    assert!(lines.iter().all(|line| line.chars().count() <= 80));
}

#[test]
fn keys_choose_streams_scroll_and_pause() {
    let names = ["a-", "b-", "c-", "d-", "e-"];
    let mut screen = heard([status(1.0, &names), status(2.0, &names)]);
    let rows =
        |screen: &mut Screen, name: &str| shown(screen, 80, 60).iter().filter(|line| line.contains(name)).count();
    press(&mut screen, &[KeyCode::Right]);
    assert_eq!((rows(&mut screen, "-train"), rows(&mut screen, "-test")), (5, 0));
    press(&mut screen, &[KeyCode::Tab]);
    assert_eq!((rows(&mut screen, "-train"), rows(&mut screen, "-test")), (0, 5));
    press(&mut screen, &[KeyCode::Right, KeyCode::Left, KeyCode::BackTab, KeyCode::Left]);
    let top = shown(&mut screen, 80, 24);
    assert!(top[4].contains("e-test") && top[3].contains("1-13 of 40"), "{top:#?}");
    press(&mut screen, &[KeyCode::End]);
    let end = shown(&mut screen, 80, 24);
    assert!(end[3].contains("28-40 of 40") && end[16].contains("dropped"), "{end:#?}");
    press(&mut screen, &[KeyCode::Up, KeyCode::Home, KeyCode::Char('c'), KeyCode::Char('c')]);
    assert_eq!(
        shown(&mut screen, 80, 24)[3..5],
        top[3..5].iter().map(|line| line.replace("of 40", "of 30")).collect::<Vec<_>>()
    );
    press(&mut screen, &[KeyCode::Char('p')]);
    screen.hear(Heard::Status(Box::new(Status { stages: Vec::new(), ..status(9.0, &[]) })));
    let paused = shown(&mut screen, 80, 24);
    assert!(paused[0].contains("paused") && paused[0].contains("00:00:02") && paused[4].contains("e-test"));
    assert!(paused.iter().any(|line| line.contains("event 9")), "the log continues");
    assert_eq!(screen.press(KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE)), Wish::Quit);
    assert_eq!(screen.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Wish::Interrupt);
}

#[test]
fn the_last_values_stay_when_the_loader_is_gone_and_another_run_begins_anew() {
    let mut screen = heard([status(1.0, &["a-"]), status(2.0, &["a-"])]);
    screen.hear(Heard::Lost("connection refused".into()));
    screen.hear(Heard::Lost("connection refused".into()));
    let lines = shown(&mut screen, 80, 24);
    assert!(lines[0].contains("no answer (connection refused)") && lines[4].contains("a-test"), "{lines:#?}");
    let lost = |lines: &[String]| lines.iter().filter(|line| line.contains("the connection is lost")).count();
    assert_eq!(lost(&lines), 1, "reported once");
    screen.hear(Heard::Status(Box::new(status(3.0, &["a-"]))));
    assert!(shown(&mut screen, 80, 24).iter().any(|line| line.contains("the connection is back")));
    screen.hear(Heard::Status(Box::new(Status { state: RunState::Stopped, ..status(4.0, &["a-"]) })));
    assert!(shown(&mut screen, 80, 24)[0].contains("stopped"));
    screen.hear(Heard::Lost("connection refused".into()));
    assert!(shown(&mut screen, 80, 24)[0].contains("stopped, and gone"));
    screen.hear(Heard::Status(Box::new(Status { process: 8, ..status(1.0, &["b-"]) })));
    let lines = shown(&mut screen, 80, 24);
    assert!(lines[0].contains("running") && lines[0].contains("00:00:01") && lines[4].contains("b-test"));
    assert!(lines.iter().any(|line| line.contains("another loader")) && lost(&lines) == 0, "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("event 1")), "its events count from the beginning");
    screen.hear(Heard::Status(Box::new(Status { process: 8, ..status(0.5, &["c-"]) })));
    let lines = shown(&mut screen, 80, 24);
    assert!(lines[4].contains("c-test") && lines.iter().any(|line| line.contains("another loader")), "{lines:#?}");
}

#[test]
fn help_covers_the_table_until_it_is_closed() {
    let mut screen = heard([status(1.0, &["a-"]), status(2.0, &["a-"])]);
    press(&mut screen, &[KeyCode::Char('?')]);
    let lines = shown(&mut screen, 80, 24);
    for part in ["this help, and back", "loader waits", "ITEMS/S  given in the last second", "Yellow: something was"] {
        assert!(lines.iter().any(|line| line.contains(part)), "no {part} in {lines:#?}");
    }
    assert!(
        lines[0].contains("running") && lines[23].contains("help") && lines.iter().all(|line| !line.contains("a-test"))
    );
    assert!(super::help::LINES.iter().all(|line| line.chars().count() <= 80), "it fits");
    press(&mut screen, &[KeyCode::Esc]);
    assert!(shown(&mut screen, 80, 24)[4].contains("a-test"));
}

#[test]
fn a_zero_is_red_only_where_somebody_waits() {
    use ratatui::style::Color;
    let starving = |waiting, capacity| {
        let document = |seconds| {
            let mut document = status(seconds, &["a-", "b-"]);
            for stage in &mut document.stages {
                stage.queues[0] = QueueStatus { waiting, capacity, ..QueueStatus::default() };
            }
            document.outputs[0].stage = "b-train".into();
            document
        };
        let mut screen = heard([document(1.0), document(2.0)]);
        let mut terminal = Terminal::new(TestBackend::new(80, 40)).unwrap();
        terminal.draw(|frame| draw::draw(&mut screen, frame)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let line = |y: u16| (0..80).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        let is_red = |y: u16| (0..80).any(|x| buffer[(x, y)].fg == Color::Red);
        (0..40).filter(|y| is_red(*y)).map(line).collect::<Vec<_>>()
    };
    let red = starving(0, 4);
    assert!(red.len() == 1 && red[0].starts_with(" b-train"), "{red:#?}");
    assert!(starving(4, 4).is_empty(), "nobody reads it: that is no fault");
}

#[test]
fn hostile_names_reach_no_terminal() {
    let evil = "\u{1b}[2J\u{1b}]0;title\u{7}\r\n\u{9b}31mred";
    let mut document = status(1.0, &[evil]);
    document.events[0].message = format!("{evil} {}", "very/long/".repeat(300));
    document.outputs[0].alias = evil.into();
    document.stages[0].texts.push(gristmill_engine::pipeline::TextStatus { name: evil.into(), value: evil.repeat(50) });
    let mut screen = heard([document]);
    let lines = shown(&mut screen, 80, 24).join("\n");
    let text = super::text(&screen, 80);
    for text in [lines, text] {
        assert!(text.contains("red") && text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    }
}
