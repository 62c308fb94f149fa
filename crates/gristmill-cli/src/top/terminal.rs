//! The terminal: taken, drawn on through ratatui, read for keys, and restored however the program ends.
//! The one place besides the report that writes to it. Never reads from one that was closed.

use std::io::{self, ErrorKind, IsTerminal};
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{BeginSynchronizedUpdate, EndSynchronizedUpdate};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::attach::Heard;
use super::draw;
use super::screen::{Screen, Wish};
use crate::failure::{Failure, Result};

/// The longest that a change of the document stays unseen.
const REDRAW: Duration = Duration::from_millis(100);

/// A screen on a terminal, until it is dropped.
pub(crate) struct Live {
    terminal: DefaultTerminal,
    screen: Screen,
    drawn: Option<Instant>,
    asked: Option<Instant>,
}

impl Live {
    /// Takes the terminal for a loader at `place`.
    ///
    /// Errors: there is none.
    pub(crate) fn take(place: String) -> Result<Self> {
        if !(io::stdout().is_terminal() && io::stdin().is_terminal()) {
            return Err(Failure::Usage("the live view needs a terminal; --once looks once and prints".to_owned()));
        }
        let terminal = ratatui::try_init().map_err(|e| Failure::Failed(format!("cannot take the terminal: {e}")))?;
        Ok(Live { terminal, screen: Screen::new(place), drawn: None, asked: None })
    }

    /// Takes what was heard.
    pub(crate) fn hear(&mut self, heard: Heard) {
        self.screen.hear(heard);
    }

    /// Whether `every` has passed since this last said yes; the events to ask for follow the number given.
    pub(crate) fn wants(&mut self, every: Duration) -> Option<u64> {
        if self.asked.is_some_and(|asked| asked.elapsed() < every) {
            return None;
        }
        self.asked = Some(Instant::now());
        Some(self.screen.newest_event())
    }

    /// Draws if it is time to, and takes keys for up to `wait`.
    ///
    /// Errors: the terminal is gone.
    pub(crate) fn turn(&mut self, wait: Duration) -> Result<Wish> {
        if self.drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW) {
            self.draw()?;
        }
        rest(wait).map_err(gone)?;
        while event::poll(Duration::ZERO).map_err(gone)? {
            match event::read().map_err(gone)? {
                Event::Key(key) if key.is_press() => {
                    let wish = self.screen.press(key);
                    if wish != Wish::Stay {
                        return Ok(wish);
                    }
                    self.draw()?;
                }
                Event::Resize(..) => self.draw()?,
                _ => {}
            }
            rest(Duration::ZERO).map_err(gone)?;
        }
        Ok(Wish::Stay)
    }

    /// Draws one picture, which terminals that know how show only when it is whole.
    fn draw(&mut self) -> Result<()> {
        execute!(io::stdout(), BeginSynchronizedUpdate).map_err(gone)?;
        let drawn = self.terminal.draw(|frame| draw::draw(&mut self.screen, frame)).map(|_| ());
        execute!(io::stdout(), EndSynchronizedUpdate).and(drawn).map_err(gone)?;
        self.drawn = Some(Instant::now());
        Ok(())
    }
}

/// Waits for a key, at most as long as `wait`. Of a terminal that was closed the library for keys reads nothing, without end.
///
/// Errors: it was closed.
fn rest(wait: Duration) -> io::Result<()> {
    let stdin = io::stdin();
    let mut keys = [PollFd::new(&stdin, PollFlags::IN)];
    let wait = Timespec::try_from(wait).unwrap_or_default();
    match poll(&mut keys, Some(&wait)) {
        Ok(_) if keys[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) => Err(ErrorKind::UnexpectedEof.into()),
        // A signal may be a change of the size.
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

fn gone(e: io::Error) -> Failure {
    Failure::Failed(format!("the terminal is gone: {e}"))
}

impl Drop for Live {
    fn drop(&mut self) {
        ratatui::restore();
    }
}
