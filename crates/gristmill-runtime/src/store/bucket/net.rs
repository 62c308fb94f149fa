//! Futures of a network -> their results: one thread of this process runs all of them, and readers wait for it.
//! Never used by a task of a worker; knows no store.

use std::io;
use std::sync::{Mutex, PoisonError, mpsc};

use tokio::runtime::{Builder, Handle};

use crate::runtime::cores::give_way;

/// The thread that runs futures, and the process that it is of: a fork has none.
static NET: Mutex<Option<(u32, Handle)>> = Mutex::new(None);

/// Waits until a future ends, and gives what it gave.
///
/// Errors: those of starting a thread.
pub(super) fn wait<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> io::Result<T> {
    let (send, receive) = mpsc::sync_channel(1);
    start(async move {
        // Who waits is there until this was sent.
        let _ = send.send(future.await);
    })?;
    receive.recv().map_err(|_| io::Error::other("a request to a network ended without an answer"))
}

/// Starts a future, and waits for nothing.
///
/// Errors: those of starting a thread.
pub(super) fn start(future: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
    handle()?.spawn(future);
    Ok(())
}

/// The way to the thread, which starts where there is none in this process.
fn handle() -> io::Result<Handle> {
    let mut net = NET.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((of, handle)) = &*net
        && *of == process
    {
        return Ok(handle.clone());
    }
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    let handle = runtime.handle().clone();
    std::thread::Builder::new().name("gristmill-net".into()).spawn(move || {
        give_way();
        runtime.block_on(std::future::pending::<()>());
    })?;
    *net = Some((process, handle.clone()));
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn several_threads_wait_at_once_and_a_panic_is_an_error() {
        let waiting = |n: u64| {
            std::thread::spawn(move || {
                wait(async move {
                    tokio::time::sleep(Duration::from_millis(n)).await;
                    n
                })
            })
        };
        let all: Vec<_> = [30, 20, 10].map(waiting).into_iter().map(|thread| thread.join().unwrap().unwrap()).collect();
        assert_eq!(all, [30, 20, 10]);
        let e = wait(async { panic!("no") }).map(|(): ()| ()).unwrap_err();
        assert!(e.to_string().contains("without an answer"), "{e}");
        assert_eq!(wait(async { 7 }).unwrap(), 7, "the thread goes on");
    }
}
