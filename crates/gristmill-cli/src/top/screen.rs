//! What is heard and which keys are pressed -> what is shown. Keeps the last values when the loader is gone.
//! Reads no clock and no terminal.

use std::collections::VecDeque;

use gristmill_engine::pipeline::{RunState, Status};
use gristmill_engine::runtime::events::{Event, Level};
use gristmill_view::watch::client::is_another_run;
use gristmill_view::watch::history::History;
use gristmill_view::watch::rows::Chips;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::attach::Heard;

/// Events that are kept for the log.
const KEPT: usize = 1000;

/// How the loader is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Link {
    /// Nothing was heard yet.
    Calling,
    /// It answers.
    Up,
    /// It does not answer, for this reason.
    Down(String),
}

/// How much of the screen the log takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum LogSize {
    #[default]
    Some,
    Most,
    None,
}

/// What a key asks of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Nothing beyond another screen.
    Stay,
    /// To end.
    Quit,
    /// To end as interrupted.
    Interrupt,
}

/// All that is shown.
#[derive(Debug)]
pub(crate) struct Screen {
    /// Where the loader is, for the title.
    pub(super) place: String,
    pub(super) link: Link,
    pub(super) latest: Option<Status>,
    pub(super) history: History,
    pub(super) log: VecDeque<Event>,
    /// Number of the output that is shown, from 1; 0 for all.
    pub(super) stream: usize,
    /// First row of the table that is shown.
    pub(super) scroll: usize,
    pub(super) chips: Chips,
    pub(super) log_size: LogSize,
    pub(super) paused: bool,
    /// Whether the help is shown.
    pub(super) help: bool,
}

impl Screen {
    /// A screen for the loader at `place`.
    pub(crate) fn new(place: String) -> Self {
        Screen {
            place,
            link: Link::Calling,
            latest: None,
            history: History::default(),
            log: VecDeque::new(),
            stream: 0,
            scroll: 0,
            chips: Chips::default(),
            log_size: LogSize::default(),
            paused: false,
            help: false,
        }
    }

    /// Number of the newest event that was heard.
    pub(crate) fn newest_event(&self) -> u64 {
        self.latest.as_ref().map_or(0, |status| status.newest_event)
    }

    /// Takes what the loader reported. While it is paused, only the log and the state of the connection change.
    pub(crate) fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Status(status) => self.hear_status(*status),
            Heard::Lost(why) => {
                if self.link == Link::Up {
                    self.say(Level::Warning, format!("the connection is lost: {why}"));
                }
                self.link = Link::Down(why);
            }
        }
    }

    fn hear_status(&mut self, mut status: Status) {
        // A loader of this process that has not started has no document yet.
        if status.gristmill_status == 0 {
            return;
        }
        let known = self.latest.as_ref();
        if known.is_some_and(|known| is_another_run(known, &status)) {
            *self = Screen {
                chips: self.chips,
                log_size: self.log_size,
                stream: self.stream,
                help: self.help,
                ..Screen::new(std::mem::take(&mut self.place))
            };
            self.say(Level::Info, "another loader answers now".to_owned());
        } else if matches!(self.link, Link::Down(_)) && known.is_some() {
            self.say(Level::Info, "the connection is back".to_owned());
        }
        self.link = Link::Up;
        let newest = self.newest_event();
        for event in std::mem::take(&mut status.events) {
            if event.number > newest {
                self.note(event);
            }
        }
        if self.stream > status.outputs.len() {
            self.stream = 0;
        }
        if let Some(shown) = self.latest.as_mut().filter(|_| self.paused) {
            (shown.newest_event, shown.state) = (status.newest_event, status.state);
            return;
        }
        self.history.add(&status);
        self.latest = Some(status);
    }

    fn note(&mut self, event: Event) {
        if self.log.len() == KEPT {
            self.log.pop_front();
        }
        self.log.push_back(event);
    }

    /// Writes something of the view itself into the log.
    fn say(&mut self, level: Level, message: String) {
        let seconds = self.latest.as_ref().map_or(0.0, |status| status.uptime_seconds);
        self.note(Event { seconds, ..Event::new(level, "view", message) });
    }

    /// The alias that is shown; `None` for all.
    pub(super) fn alias(&self) -> Option<&str> {
        let output = self.stream.checked_sub(1)?;
        Some(self.latest.as_ref()?.outputs.get(output)?.alias.as_str())
    }

    /// Whether what is shown is what the loader is now.
    pub(super) fn is_live(&self) -> bool {
        let running = self.latest.as_ref().is_some_and(|status| status.state != RunState::Stopped);
        self.link == Link::Up && running && !self.paused
    }

    /// Takes a key.
    pub(crate) fn press(&mut self, key: KeyEvent) -> Wish {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let streams = match self.latest.as_ref().map_or(0, |status| status.outputs.len()) {
            0 | 1 => 1,
            outputs => outputs + 1,
        };
        match key.code {
            KeyCode::Char('c') if control => return Wish::Interrupt,
            KeyCode::Char('?') | KeyCode::Char('h') => self.help = !self.help,
            KeyCode::Esc if self.help => self.help = false,
            KeyCode::Char('q') | KeyCode::Esc => return Wish::Quit,
            KeyCode::Right | KeyCode::Tab => (self.stream, self.scroll) = ((self.stream + 1) % streams, 0),
            KeyCode::Left | KeyCode::BackTab => {
                (self.stream, self.scroll) = ((self.stream + streams - 1) % streams, 0);
            }
            KeyCode::Down => self.scroll = self.scroll.saturating_add(1),
            KeyCode::Up => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::PageDown => self.scroll = self.scroll.saturating_add(10),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(10),
            KeyCode::Home => self.scroll = 0,
            KeyCode::End => self.scroll = usize::MAX,
            KeyCode::Char('c') => self.chips = self.chips.next(),
            KeyCode::Char('p') | KeyCode::Char(' ') => self.paused = !self.paused,
            KeyCode::Char('l') => {
                self.log_size = match self.log_size {
                    LogSize::Some => LogSize::Most,
                    LogSize::Most => LogSize::None,
                    LogSize::None => LogSize::Some,
                };
            }
            _ => {}
        }
        Wish::Stay
    }
}
