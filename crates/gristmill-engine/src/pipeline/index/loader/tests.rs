//! A loader of rows in a process that did not make it -> a refusal by every call.

use gristmill_stages::config::EncoderConfig;

use super::*;
use crate::pipeline::index::noted::tests::input;

#[test]
fn a_child_of_a_fork_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (encoder, tensors) = (EncoderConfig::Fields, vec!["bytes".to_owned()]);
    let config = IndexConfig { encoder, tensors, batch_size: 4, ..IndexConfig::default() };
    let mut loader = IndexLoader::new(input(folder.path()), config).unwrap();
    loader.seek(1).unwrap();
    loader.made_in = std::process::id() + 1;
    let used_in = std::process::id();
    for refused in [loader.seek(2), loader.start(), loader.lookup().map(drop)] {
        assert!(matches!(refused, Err(Error::Forked { used_in: found, .. }) if found == used_in), "{refused:?}");
    }
}
