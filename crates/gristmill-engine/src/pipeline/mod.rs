//! The only rooms that name every stage: a config becomes a checked graph, the graph a plan, the plan running chains.
//!
//! | room | does |
//! |---|---|
//! | `plan` | resolves names, refuses wrong graphs, lowers a graph to one chain per output, adds up its memory |
//! | `draw` | gives sources ids that last, admits and draws their chunks, says which are bad |
//! | `chain` | the tasks that threads run, and rows to slots and batches, serially |
//! | `resume` | where a loader stands, as data, on disk, and back |
//! | `watch` | what each stage did, for people and other processes |
//! | `ledger` | what was delivered, batch by batch |
//! | `loader` | starts logs, chains and threads; the shell that people hold |
//! | `index` | the other way to feed: rows of a table by number |
//! | `engine` | the calls that both ways answer |

mod chain;
mod draw;
mod engine;
mod index;
pub mod ledger;
mod loader;
pub(crate) mod plan;
mod resume;
mod watch;

pub use draw::anchors::{ControlReply, ControlRequest};
pub use draw::outage::IoErrorCounts;
pub use draw::verdict::BadChunkCounts;
pub use engine::{Engine, Sighted};
pub use index::{Fetches, IndexLoader, Lookup, PlacedRow, RowEncoder, Standing, Turn};
pub use loader::output::{Batch, Column};
pub use loader::{DataLoader, Next, Origin, Output, SeenBatch, Sight, SightOptions};
pub use plan::acceptance;
pub use plan::budget::promise;
pub use plan::sight::Reads;
pub use resume::needed::OldestNeeded;
pub use resume::parts::merge_states;
pub use resume::saved::{SavedStep, read as read_state, steps as saved_steps};
pub use resume::state::differences;
pub use resume::vanished::{Missing, Vanished};
pub use watch::counted::Counted;
pub use watch::message::period_message;
pub use watch::metrics::{Gauge, Metrics, QueueMetrics, StageMetrics, Tally};
pub use watch::status::{
    BadChunksStatus, CertificateStatus, CountStatus, GaugeStatus, InputStatus, IoErrorsStatus, LedgerStatus,
    LoadStatus, OutputStatus, QueueStatus, RunState, STATUS_VERSION, StageStatus, Status, TextStatus,
};
pub use watch::waits::{OutputWaits, Waited, Waits};
