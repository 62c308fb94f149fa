//! Words of `view`. Nothing is opened here.

use std::path::PathBuf;

use clap::Args;

use super::address;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  gristmill view packed\n  gristmill view games --no-browser\n  \
gristmill view 9100                            (a running loader, as `gristmill top` takes it)\n  \
gristmill view packed --addr 0.0.0.0:8642      (other machines then need the token in the printed address)")]
pub(crate) struct View {
    /// Path or URL of a pack, a file of games, or a folder of both; or the address of a running loader: PORT, HOST:PORT or
    /// http://HOST:PORT.
    pub(crate) path: PathBuf,
    /// Where to listen: PORT of this machine, or HOST:PORT; port 0 is any free one [default: 8642, or a free one where that is
    /// taken].
    #[arg(long, value_name = "HOST:PORT", value_parser = address::parse)]
    pub(crate) addr: Option<String>,
    /// File with the token of the loader [default: GRISTMILL_TOKEN].
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Folders of Syzygy tables, between commas: pages of chess say who wins.
    #[arg(long, value_name = "DIRS")]
    pub(crate) syzygy: Option<String>,
    /// A saved state of a run over the pack: pages of games say in which batches each was or will be fed.
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// Print the address, and open no browser.
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Print the address as one line of JSON, and open no browser.
    #[arg(long)]
    pub(crate) json: bool,
}
