//! `top`: attaches to a running loader and shows it, or looks once and prints.

use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use gristmill_engine::runtime::scheduler::Scheduler;
use gristmill_view::watch::client::Client;

use crate::args::Top;
use crate::args::address;
use crate::failure::{Failure, Result};
use crate::report;
use crate::stopping;
use crate::top;
use crate::top::attach::{Heard, watch as hear};
use crate::top::screen::{Screen, Wish};
use crate::top::terminal::Live;

/// How long the view waits for a key before it looks for news.
const TURN: Duration = Duration::from_millis(50);

/// Seconds between the two documents that a look at rates takes.
const LOOK: f64 = 1.0;

/// Columns of the printed table.
const WIDTH: usize = 100;

pub(crate) fn run(args: &Top) -> Result<()> {
    let client = Client::new(args.address.clone(), address::token(args.token_file.as_ref())?);
    if args.once { once(args, &client) } else { watch(args, client) }
}

fn once(args: &Top, client: &Client) -> Result<()> {
    let failed = |why: String| Failure::Failed(format!("no status of the loader at {}: {why}", args.address));
    if args.json {
        return Ok(report::json(&client.document(0, 0.0).map_err(failed)?)?);
    }
    let mut screen = Screen::new(args.address.clone());
    for wait in [0.0, LOOK] {
        let status = client.status(0, wait).map_err(failed)?;
        screen.hear(Heard::Status(Box::new(status.status)));
    }
    Ok(report::text_out(&top::text(&screen, WIDTH))?)
}

fn watch(args: &Top, client: Client) -> Result<()> {
    let ending = stopping::flag()?;
    let mut live = Live::take(args.address.clone())?;
    let scheduler = Scheduler::new();
    let (stop, (listener, heard)) = (scheduler.stop_flag(), mpsc::channel());
    let asking = move || hear(&client, &stop, &listener);
    scheduler.spawn("top", asking).map_err(|e| Failure::Failed(format!("no thread could be started: {e}")))?;
    loop {
        heard.try_iter().for_each(|heard| live.hear(heard));
        match live.turn(TURN)? {
            Wish::Quit => return Ok(()),
            Wish::Interrupt => return Err(Failure::Stopped(None)),
            Wish::Stay if ending.load(Ordering::Relaxed) => return Err(Failure::Stopped(None)),
            Wish::Stay => {}
        }
    }
}
