//! The only rooms that name every stage: a config becomes a checked graph, the graph a plan, the plan running chains.
//!
//! | file | does |
//! |---|---|
//! | `graph` | resolves names, refuses wrong graphs |
//! | `plan` | lowers a graph to one chain per output |
//! | `acceptance` | how a plan accepts draws, weighs and caches |
//! | `ranks` | deals a chain to lanes, and lanes to ranks |
//! | `budget` | adds up the memory a plan can take |
//! | `roster` | gives sources ids that last, keeps the journal |
//! | `found` | which file of a scan is which of an earlier run |
//! | `deal` | chunks of a source for sides and lanes |
//! | `drawer`, `branch` | admissions and draws; tickets in flight |
//! | `decide` | which draws become tickets |
//! | `anchors` | chunk anchors of the pools, and how they are controlled |
//! | `line` | a lane: its join and its steps over rows, as a list |
//! | `fold` | rows to slots and batches, serially |
//! | `chain` | the tasks that threads run |
//! | `conform` | records of any layout into slots |
//! | `state` | where a loader stands, as data |
//! | `restore` | where a chain stands, and back |
//! | `saved` | states on disk |
//! | `sight` | streams that are only planned |
//! | `skip` | which batches are left out |
//! | `parts` | states of several ranks into one |
//! | `journals` | what the journals of all ranks tell |
//! | `needed` | the oldest file that a state may need |
//! | `vanished` | files that a state needs and that are gone |
//! | `recall` | what an earlier run left: a state, a journal |
//! | `flow` | stages in flow order with their edges, for views |
//! | `metrics` | what each stage did, as data |
//! | `counted` | the same of a loader without threads of its own |
//! | `lane_metrics` | the rows of several lanes as one |
//! | `history` | the same by period, as lc0 names it |
//! | `message` | requests, replies and metrics as messages of the lc0 interface |
//! | `status` | all of it as one document for other processes |
//! | `notices` | what the logs found and what was started, as events |
//! | `outage` | files that cannot be read now |
//! | `verdict` | what is known of bad chunks |
//! | `output` | batches and columns |
//! | `ledger` | what was delivered, batch by batch |
//! | `launch` | logs, chains and threads of a start |
//! | `index` | the other way to feed: rows of a table by number |
//! | `loader` | the shell that people hold |

pub mod acceptance;
mod anchors;
mod barren;
mod branch;
pub(crate) mod budget;
mod chain;
mod conform;
mod counted;
mod deal;
mod decide;
mod drawer;
pub(crate) mod encoder;
mod flow;
mod fold;
mod found;
mod graph;
mod history;
mod index;
mod journals;
mod lane_metrics;
mod launch;
pub mod ledger;
mod left;
mod line;
mod loader;
mod message;
mod metrics;
mod needed;
mod notices;
mod numbering;
mod outage;
mod output;
mod parts;
mod passes;
mod plan;
mod ranks;
mod recall;
mod restore;
mod roster;
mod saved;
mod serve;
mod sight;
mod skip;
mod state;
mod status;
mod vanished;
mod verdict;

pub use anchors::{ControlReply, ControlRequest};
pub use budget::promise;
pub use counted::Counted;
pub use index::{IndexLoader, Lookup, PlacedRow, RowEncoder, Standing};
pub use loader::{DataLoader, Next, Origin, Output, SeenBatch, Sight, SightOptions};
pub use metrics::{Gauge, Metrics, QueueMetrics, StageMetrics, Tally};
pub use needed::OldestNeeded;
pub use outage::IoErrorCounts;
pub use output::{Batch, Column};
pub use parts::merge_states;
pub use saved::read as read_state;
pub use sight::Reads;
pub use state::differences;
pub use status::{
    BadChunksStatus, CountStatus, GaugeStatus, InputStatus, IoErrorsStatus, LoadStatus, OutputStatus, QueueStatus,
    RunState, STATUS_VERSION, StageStatus, Status, TextStatus,
};
pub use vanished::{Missing, Vanished};
pub use verdict::BadChunkCounts;
