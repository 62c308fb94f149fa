//! A real terminal (a pty) with the real binary in it: its bytes are read as a terminal reads them, cell by cell.
//! Waits for what is to be seen, and fails with the whole screen when it does not come.
#![allow(unreachable_pub)]

use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// Long enough for anything on a busy machine; reaching it fails the test.
const PATIENCE: Duration = Duration::from_secs(30);

/// A program says with these when it begins to draw, and when the picture is whole.
const DRAWING: &[u8] = b"\x1b[?2026h";
const DRAWN: &[u8] = b"\x1b[?2026l";

/// A terminal with a program in it.
pub struct Terminal {
    master: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    output: Receiver<Vec<u8>>,
    /// Bytes of a picture that is not whole yet.
    unfinished: Vec<u8>,
    parser: vt100::Parser,
}

fn size(columns: u16, rows: u16) -> PtySize {
    PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }
}

/// `gristmill` with these words and variables on a terminal of 80 columns and 24 rows.
fn started(words: &[&str], variables: &[(&str, &str)]) -> (Box<dyn MasterPty + Send>, Box<dyn Child + Send + Sync>) {
    let pair = native_pty_system().openpty(size(80, 24)).unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_gristmill"));
    command.args(words);
    command.env("TERM", "xterm-256color");
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command.env_remove("NO_COLOR");
    command.env_remove("GRISTMILL_TOKEN");
    variables.iter().for_each(|(name, value)| command.env(name, value));
    let child = pair.slave.spawn_command(command).unwrap();
    (pair.master, child)
}

/// Runs `gristmill` with these words on a terminal that is closed once something was drawn on it. Returns whether it ended then.
pub fn ends_with_its_terminal(words: &[&str]) -> bool {
    let (master, mut child) = started(words, &[]);
    let mut reader = master.try_clone_reader().unwrap();
    let (mut seen, mut bytes) = (Vec::new(), [0; 4096]);
    while !seen.windows(DRAWN.len()).any(|window| window == DRAWN) {
        let n = reader.read(&mut bytes).unwrap();
        assert!(n > 0, "it ended before it drew: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&bytes[..n]);
    }
    drop((reader, master));
    let start = Instant::now();
    while start.elapsed() < PATIENCE && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let ended = child.try_wait().unwrap().is_some();
    let _ = child.kill();
    ended
}

impl Terminal {
    /// Runs `gristmill` with these words on a terminal of 80 columns and 24 rows.
    pub fn run(words: &[&str]) -> Self {
        Self::run_with(words, &[])
    }

    /// The same, with variables set.
    pub fn run_with(words: &[&str], variables: &[(&str, &str)]) -> Self {
        let (master, child) = started(words, variables);
        let mut reader = master.try_clone_reader().unwrap();
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = reader.read(&mut bytes) {
                if sender.send(bytes[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
        let keys = master.take_writer().unwrap();
        Terminal { master, keys, child, output, unfinished: Vec::new(), parser: vt100::Parser::new(24, 80, 0) }
    }

    /// Types.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Makes the terminal another size.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.parser.screen_mut().set_size(rows, columns);
        self.master.resize(size(columns, rows)).unwrap();
    }

    /// The lines that are seen now.
    pub fn lines(&self) -> Vec<String> {
        let (_, columns) = self.parser.screen().size();
        self.parser.screen().rows(0, columns).map(|line| line.trim_end().to_owned()).collect()
    }

    /// What is seen now.
    pub fn screen(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    /// Takes what was written, up to the last picture that is whole: half of one is nothing that a person sees.
    fn take(&mut self, bytes: &[u8]) {
        self.unfinished.extend_from_slice(bytes);
        let last = |mark: &[u8]| self.unfinished.windows(mark.len()).rposition(|window| window == mark);
        let escape = self.unfinished.iter().rposition(|&byte| byte == 0x1b);
        let cut = escape.filter(|&at| DRAWING.starts_with(&self.unfinished[at..]));
        let whole = match (last(DRAWING), last(DRAWN)) {
            (Some(drawing), drawn) if drawn.is_none_or(|drawn| drawn < drawing) => drawing,
            _ => cut.unwrap_or(self.unfinished.len()),
        };
        self.parser.process(&self.unfinished[..whole]);
        self.unfinished.drain(..whole);
    }

    /// Reads on until the screen is as wanted.
    pub fn wait(&mut self, what: &str, seen: impl Fn(&[String], &vt100::Screen) -> bool) -> Vec<String> {
        let start = Instant::now();
        loop {
            let lines = self.lines();
            if seen(&lines, self.parser.screen()) {
                return lines;
            }
            assert!(start.elapsed() < PATIENCE, "never seen: {what}\n{}", lines.join("\n"));
            match self.output.recv_timeout(Duration::from_millis(200)) {
                Ok(bytes) => self.take(&bytes),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let lines = self.lines();
                    assert!(seen(&lines, self.parser.screen()), "it ended before: {what}\n{}", lines.join("\n"));
                    return lines;
                }
            }
        }
    }

    /// Reads on until a line has all these parts.
    pub fn wait_line(&mut self, parts: &[&str]) -> Vec<String> {
        self.wait(&format!("{parts:?}"), |lines, _| {
            lines.iter().any(|line| parts.iter().all(|part| line.contains(part)))
        })
    }

    /// The process that runs in it.
    pub fn process(&self) -> u32 {
        self.child.process_id().unwrap()
    }

    /// Waits for the end: the exit code and what is left on the terminal.
    pub fn end(&mut self) -> (u32, Vec<String>) {
        while let Ok(bytes) = self.output.recv_timeout(PATIENCE) {
            self.take(&bytes);
        }
        self.parser.process(&self.unfinished);
        (self.child.wait().unwrap().exit_code(), self.lines())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}
