//! A directory -> an S3 server on loopback whose buckets are its folders, and which fails as it is ordered to. For tests and benches.
//! Runs on a thread of its own until the process ends.

mod faults;
mod objects;
mod server;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use tokio::net::TcpListener;

use faults::Faults;
use objects::Objects;
use server::Server;

/// How requests reach the server.
#[derive(Debug, Clone, Copy, Default)]
pub struct Network {
    /// Whether requests are not signed; else the key is `test` and the secret `testtest`.
    pub anonymous: bool,
    /// How long each request takes before it begins to be answered.
    pub latency: Duration,
    /// Bytes a second of each answer; 0 for no bound.
    pub rate: u64,
}

/// A server that runs.
#[derive(Debug)]
pub struct Running {
    /// Its URL.
    pub address: String,
    faults: Arc<Faults>,
}

impl Running {
    /// Carries out an order in JSON, and gives the answer to it: `{"fail": {"operation": "get", "times": 1, "fault": "slow_down"}}`,
    /// `"mend"`, `{"counts": true}`.
    pub fn obey(&self, order: &str) -> String {
        match serde_json::from_str(order) {
            Ok(order) => self.faults.obey(order),
            Err(e) => format!("not an order: {e}"),
        }
    }
}

/// Starts a server over a directory.
///
/// Errors: those of sockets and threads.
pub fn start(folder: PathBuf, network: Network) -> io::Result<Running> {
    let faults = Arc::new(Faults::new(network.latency, network.rate));
    let mut builder = S3ServiceBuilder::new(Server::new(Objects::new(folder), Arc::clone(&faults)));
    if !network.anonymous {
        builder.set_auth(SimpleAuth::from_single("test", "testtest"));
    }
    let service = builder.build();
    let (send, receive) = mpsc::sync_channel(1);
    std::thread::Builder::new().name("faultserver".into()).spawn(move || {
        let served = serve(service, &send);
        if let Err(e) = served {
            let _ = send.send(Err(e));
        }
    })?;
    let address = receive.recv().map_err(io::Error::other)??;
    Ok(Running { address, faults })
}

/// Answers connections for ever, once it has said where.
fn serve(service: S3Service, address: &mpsc::SyncSender<io::Result<String>>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    runtime.block_on(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let _ = address.send(Ok(format!("http://{}", listener.local_addr()?)));
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let service = service.clone();
            tokio::spawn(async move {
                // A client that leaves in the middle is no fault of the server.
                let _ = Builder::new(TokioExecutor::new())
                    .http1_only()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    })
}
