//! Records of anybody's game: fixed-size fields, a layout that travels with them, facts of each game -> chunks of any kind of pack.
//! Every byte is written out in `docs/format/records.md`, which a test compares with this code.

pub mod log;
pub mod pack;
pub mod schema;

pub use log::RecordFile;
pub use schema::{Fact, Schema};

/// What sources of such records say that their frames are of.
pub const KIND: &str = "records";

/// By what name a chunk says its schema, and its facts as JSON.
pub const SCHEMA: &str = "schema";
/// See [`SCHEMA`].
pub const FACTS: &str = "facts";
