//! A name -> an empty bucket of that name, on a server of this process. Twins and options are those of the whole process, so they are set
//! once and for all tests.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gristmill_engine::store::bucket::{Options, set_options};
use gristmill_engine::store::{Cache, set_cache};
use gristmill_faultserver::{Network, Running, start};

/// The URL of a new bucket.
pub(crate) fn bucket(name: &str) -> PathBuf {
    static SERVER: OnceLock<(PathBuf, Running)> = OnceLock::new();
    let (folder, server) = SERVER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap().keep();
        set_cache(Cache { folder: Some(folder.join("twins")), limit: None });
        let server = start(folder.clone(), Network { anonymous: true, ..Network::default() }).unwrap();
        (folder, server)
    });
    std::fs::create_dir(folder.join(name)).unwrap();
    let url = format!("s3://{name}");
    set_options(&url, Options { endpoint: Some(server.address.clone()), anonymous: true, ..Options::default() });
    Path::new(&url).to_owned()
}
