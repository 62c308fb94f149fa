//! What a running loader did -> numbers and events for people and other processes. Changes no batch.

pub(in crate::pipeline) mod certified;
pub(in crate::pipeline) mod counted;
mod explain;
mod exported;
pub(in crate::pipeline) mod history;
pub(in crate::pipeline) mod lane_metrics;
pub(in crate::pipeline) mod message;
pub(in crate::pipeline) mod metrics;
pub(in crate::pipeline) mod notices;
pub(in crate::pipeline) mod serve;
pub(in crate::pipeline) mod stall;
pub(in crate::pipeline) mod status;
pub(in crate::pipeline) mod waits;
