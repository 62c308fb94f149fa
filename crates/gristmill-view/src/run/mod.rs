//! A running loader elsewhere -> the page of its run, and the same as data. One thread listens to the loader once a second;
//! readers of the pages never reach the loader.

mod data;
mod page;
mod seen;
mod stages;
mod told;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gristmill_engine::runtime::scheduler::Scheduler;
use gristmill_engine::sink::desk::Answer;

use crate::html::{self, Frame};
use crate::pages::{Fault, Result, html_answer, json};
use crate::url::Asked;
use crate::watch::client::Client;
use seen::Seen;

/// Seconds between two documents.
const EVERY: f64 = 1.0;

/// Seconds after which a page without scripts loads itself again.
const AGAIN: u32 = 5;

/// A loader, and what was heard of it.
pub(crate) struct Run {
    address: String,
    seen: Arc<Mutex<Seen>>,
    /// Its thread ends when this is dropped.
    _listens: Scheduler,
}

impl Run {
    /// Hears a loader once, and from then on again and again.
    ///
    /// Errors: why nothing was heard, for people.
    pub(crate) fn attach(client: Client) -> Result<Self, String> {
        let address = client.address().to_owned();
        let mut seen = Seen::default();
        seen.hear(client.status(0, 0.0));
        if let Some(why) = seen.fault() {
            return Err(why.to_owned());
        }
        let (seen, scheduler) = (Arc::new(Mutex::new(seen)), Scheduler::new());
        let (stop, own) = (scheduler.stop_flag(), Arc::clone(&seen));
        let listen = move || {
            client.follow(EVERY, &stop, &mut |heard| {
                own.lock().unwrap_or_else(PoisonError::into_inner).hear(heard);
                true
            });
        };
        scheduler.spawn("view-run", listen).map_err(|e| format!("no thread could be started: {e}"))?;
        Ok(Run { address, seen, _listens: scheduler })
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer to a request, whose path is `path` below the site that begins at `root`.
    pub(crate) fn answer(&self, root: &str, path: &[&str], asked: &Asked) -> Result<Answer> {
        let seen = self.seen();
        match path {
            [] => {
                let body = page::whole(&seen, &self.address, root, asked);
                let title = format!("{} · {}", page::state(&seen), self.address);
                let way = [(self.address.clone(), root.to_owned())];
                let frame = Frame { root, title: &title, way: &way, again: Some(AGAIN) };
                Ok(html_answer(200, html::page(&frame, &body)))
            }
            ["run"] => Ok(html_answer(200, page::part(&seen, &self.address, root, asked))),
            ["run.json"] => json(&data::document(&seen, &self.address)),
            _ => Err(Fault::new(404, "there is no such page; the first page is that of the run")),
        }
    }
}
