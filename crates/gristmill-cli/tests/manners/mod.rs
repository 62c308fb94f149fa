//! What holds for every command: shared options, dry runs, failures as JSON, exit codes, old spellings, Ctrl-C.

mod dry;
mod ending;
mod failing;
mod options;
