//! The whole river through its public face: real (generated) games in, batches out.

mod arrivals;
mod bad_input;
mod determinism;
mod games;
mod graphs;
mod resume;
mod streams;
mod validator;
