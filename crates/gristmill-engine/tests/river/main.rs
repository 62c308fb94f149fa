//! The whole river through its public face: real (generated) games in, batches out.

mod anchors;
mod arrivals;
mod bad_input;
mod beginning;
mod cache;
#[path = "../resumed/damage.rs"]
mod damage;
mod damaged_journals;
mod damaged_states;
mod determinism;
mod encoders;
mod folded;
mod games;
mod graphs;
mod hanse;
mod held;
mod lanes;
mod ledgers;
mod logs;
mod needed;
mod outages;
mod packs;
mod progress;
mod rescoring;
mod resume;
mod rot;
mod seeing;
mod sides;
mod skip;
mod speed;
mod status;
mod stopping;
mod streams;
mod tars;
mod validator;
mod versions;
