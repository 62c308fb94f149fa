//! Which faults met which states of the chain and of its stages: counted, merged and named. Decides nothing.

use gristmill_engine::pipeline::{Metrics, StageMetrics};

/// What the store did against the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A file could not be read: a fault of the disk.
    Broken,
    /// A file could not be read: permission was lost.
    Forbidden,
    /// The folder was away.
    Away,
    /// An open or a read was refused for the moment, as of a server with too much to do.
    Throttled,
    /// The clock of the machine stood before the times of files.
    ClockBack,
    /// Fewer bytes came than were asked for.
    Short,
    /// A listing was one of before.
    Stale,
    /// A listing had files twice.
    Repeated,
    /// Notices were lost.
    HintsLost,
    /// Notices came twice.
    HintsDoubled,
    /// A file arrived.
    Arrived,
    /// A file arrived in two parts.
    Grew,
    /// A file was replaced by another of the same size, and in some worlds of the same time.
    Replaced,
    /// A file vanished.
    Vanished,
    /// A file was renamed.
    Renamed,
    /// The process ended without a word.
    Crashed,
    /// The loader was stopped.
    Stopped,
    /// The consumer took nothing for a while.
    Stalled,
}

/// Every fault.
pub const FAULTS: [Fault; 18] = [
    Fault::Broken,
    Fault::Forbidden,
    Fault::Away,
    Fault::Throttled,
    Fault::ClockBack,
    Fault::Short,
    Fault::Stale,
    Fault::Repeated,
    Fault::HintsLost,
    Fault::HintsDoubled,
    Fault::Arrived,
    Fault::Grew,
    Fault::Replaced,
    Fault::Vanished,
    Fault::Renamed,
    Fault::Crashed,
    Fault::Stopped,
    Fault::Stalled,
];

/// Where the chain was, or what a stage of it held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum State {
    /// Nothing was found so far.
    #[default]
    Scanning,
    /// The scan was in, no batch was given.
    Filling,
    /// Batches were given.
    Running,
    /// As before, and a state had been put back.
    Resumed,
    /// The window had no chunk.
    WindowEmpty,
    /// It had some chunks.
    WindowPart,
    /// It had as many as it takes.
    WindowFull,
    /// No draw waited for a worker.
    DrawsNone,
    /// Some draws did.
    DrawsSome,
    /// As many as may.
    DrawsFull,
    /// The reservoir had no row.
    ReservoirEmpty,
    /// It had some rows.
    ReservoirPart,
    /// It had as many as it takes.
    ReservoirFull,
    /// No batch waited for the consumer.
    BatchesNone,
    /// Some batches did.
    BatchesSome,
    /// As many as may.
    BatchesFull,
}

use State::{
    BatchesFull, BatchesNone, BatchesSome, DrawsFull, DrawsNone, DrawsSome, Filling, ReservoirEmpty, ReservoirFull,
    ReservoirPart, Resumed, Running, Scanning, WindowEmpty, WindowFull, WindowPart,
};

/// Every state, those of the whole chain first.
pub const STATES: [State; 16] = [
    Scanning,
    Filling,
    Running,
    Resumed,
    WindowEmpty,
    WindowPart,
    WindowFull,
    DrawsNone,
    DrawsSome,
    DrawsFull,
    ReservoirEmpty,
    ReservoirPart,
    ReservoirFull,
    BatchesNone,
    BatchesSome,
    BatchesFull,
];

impl State {
    /// Whether it is one of the whole chain, of which there is one at a time.
    pub fn is_of_chain(self) -> bool {
        self <= Resumed
    }

    /// What the stages of a loader hold, by its metrics.
    pub fn of_stages(metrics: &Metrics) -> Vec<State> {
        let degree = |held: u64, room: u64, [none, some, full]: [State; 3]| match held {
            0 => none,
            held if held < room => some,
            _ => full,
        };
        let mut states = Vec::new();
        for stage in &metrics.stages {
            let gauge = |name: &str| stage.gauge(name).map(|gauge| (gauge.value, gauge.capacity.unwrap_or(u64::MAX)));
            let degrees = [
                (gauge("chunks_current"), [WindowEmpty, WindowPart, WindowFull]),
                (gauge("reservoir"), [ReservoirEmpty, ReservoirPart, ReservoirFull]),
                (stage.queue.as_ref().map(|queue| (queue.waiting, queue.capacity)), queue_of(stage)),
            ];
            let of_degrees =
                degrees.into_iter().filter_map(|(held, of)| held.map(|(held, room)| degree(held, room, of)));
            states.extend(of_degrees);
        }
        states
    }
}

/// The states of the queue that a stage fills.
fn queue_of(stage: &StageMetrics) -> [State; 3] {
    match stage.kind {
        "tensor_generator" => [BatchesNone, BatchesSome, BatchesFull],
        _ => [DrawsNone, DrawsSome, DrawsFull],
    }
}

/// A fault, and the state that it met.
pub type Pair = (Fault, State);

/// Every pair that a world of a stream can meet.
pub fn pairs() -> impl Iterator<Item = Pair> {
    FAULTS
        .into_iter()
        .flat_map(|fault| STATES.into_iter().map(move |state| (fault, state)))
        .filter(|pair| can_be(*pair))
}

/// Every pair that a world of rows can meet: what its consumer and processes do, and rows that cannot be read.
pub fn pairs_of_rows() -> impl Iterator<Item = Pair> {
    let states = [Filling, Running, Resumed, BatchesNone, BatchesSome, BatchesFull];
    [Fault::Broken, Fault::Crashed, Fault::Stopped, Fault::Stalled]
        .into_iter()
        .flat_map(move |fault| states.into_iter().map(move |state| (fault, state)))
}

/// Whether a fault can meet a state. The scan is over once a file is opened, and only a first listing, of each process, asks for the clock.
fn can_be((fault, state): Pair) -> bool {
    match fault {
        Fault::Broken | Fault::Forbidden | Fault::Throttled | Fault::Short => state != Scanning,
        Fault::ClockBack => {
            matches!(state, Scanning | Resumed | WindowEmpty | DrawsNone | ReservoirEmpty | BatchesNone)
        }
        _ => true,
    }
}

/// How often each fault met each state. It takes no memory of its own, so that a run can be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage([[u64; STATES.len()]; FAULTS.len()]);

impl Default for Coverage {
    fn default() -> Self {
        Coverage([[0; STATES.len()]; FAULTS.len()])
    }
}

impl Coverage {
    /// A fault met a state.
    pub fn met(&mut self, fault: Fault, state: State) {
        self.0[fault as usize][state as usize] += 1;
    }

    /// Adds what another run met.
    pub fn merge(&mut self, other: &Coverage) {
        for (own, more) in self.0.iter_mut().flatten().zip(other.0.iter().flatten()) {
            *own += more;
        }
    }

    /// How often a fault met any state of the chain.
    pub fn of(&self, fault: Fault) -> u64 {
        STATES.into_iter().filter(|state| state.is_of_chain()).map(|state| self.times((fault, state))).sum()
    }

    /// How often a pair was met.
    pub fn times(&self, (fault, state): Pair) -> u64 {
        self.0[fault as usize][state as usize]
    }

    /// Those of these pairs that were not met.
    pub fn unmet(&self, pairs: impl Iterator<Item = Pair>) -> Vec<Pair> {
        pairs.filter(|pair| self.times(*pair) == 0).collect()
    }
}
