//! Parts of the engine through their public face. One program, since each that is linked costs as much as its tests.

mod acceptance_queue;
mod bucket_faults;
mod chess_rules;
mod config_corpus;
mod config_faults;
mod config_forms;
mod discover_log;
mod discover_scan;
mod discover_speed;
mod discover_watch;
mod facts_heads;
mod facts_index;
mod games;
mod ledger_corpus;
mod open_files;
mod opening;
mod page_order;
mod page_vectors;
mod shuffle_quality;
mod store_conformance;
