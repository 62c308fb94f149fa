//! The whole river through its public face: real (generated) games in, batches out.

mod anchors;
mod arrivals;
mod bad_input;
mod beginning;
mod cache;
mod determinism;
mod encoders;
mod games;
mod graphs;
mod hanse;
mod held;
mod lanes;
mod ledgers;
mod logs;
mod needed;
mod packs;
mod rescoring;
mod resume;
mod seeing;
mod sides;
mod skip;
mod speed;
mod status;
mod stopping;
mod streams;
mod validator;
