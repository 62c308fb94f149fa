//! The laws of the repository that a compiler cannot see: who may know whom, what may happen where, how files look.
//! Reads the sources as text and the manifests as data; needs no tool beyond `cargo test`. ARCHITECTURE.md explains each law.

mod arrows;
mod kinds;
mod naming;
mod papers;
mod places;
mod repository;
mod rooms;
mod rooms_of;
mod wording;
