//! The files of a log -> draws and tickets: what is drawn, from which source, for which side and lane. Decodes nothing.

pub(in crate::pipeline) mod anchors;
pub(in crate::pipeline) mod barren;
pub(in crate::pipeline) mod branch;
pub(in crate::pipeline) mod deal;
pub(in crate::pipeline) mod decide;
pub(in crate::pipeline) mod drawer;
pub(in crate::pipeline) mod event;
pub(in crate::pipeline) mod found;
pub(in crate::pipeline) mod left;
pub(in crate::pipeline) mod numbering;
pub(in crate::pipeline) mod outage;
pub(in crate::pipeline) mod passes;
pub(in crate::pipeline) mod recorded;
pub(in crate::pipeline) mod roster;
pub(in crate::pipeline) mod verdict;
