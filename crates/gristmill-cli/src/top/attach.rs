//! Documents of a loader -> messages to the screen. Runs in a thread of its own, so that no key waits for the network.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;

use gristmill_engine::pipeline::Status;
use gristmill_view::watch::client::Client;

/// Seconds between two documents.
pub(crate) const EVERY: f64 = 0.5;

/// What is heard from a loader.
#[derive(Debug)]
pub(crate) enum Heard {
    /// How it is.
    Status(Box<Status>),
    /// Nothing, and why.
    Lost(String),
}

/// Sends each status to the listener until `stop` is set or the listener has gone.
pub(crate) fn watch(client: &Client, stop: &AtomicBool, listener: &Sender<Heard>) {
    client.follow(EVERY, stop, &mut |document| {
        let heard = match document {
            Ok(document) => Heard::Status(Box::new(document.status)),
            Err(why) => Heard::Lost(why),
        };
        listener.send(heard).is_ok()
    });
}
