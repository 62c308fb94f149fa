//! An address and a token -> a listening endpoint, or a refusal that says what to change. Serves nothing itself.

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::sink::http::{Endpoint, Refusal};
use gristmill_runtime::sink::token::Token;

/// What is wrong with listening at `address`.
pub(in crate::pipeline) fn failed(address: &str, e: &std::io::Error) -> Error {
    Error::config("metrics", format!("cannot listen on {address}: {e}"))
}

/// An endpoint at `address`; one that other machines can reach needs a token.
///
/// Errors: `Config` for an address that cannot be bound, a token that is missing or too simple.
pub(in crate::pipeline) fn endpoint(address: &str, token: Option<&str>) -> Result<Endpoint> {
    let token = token.map(Token::new).transpose().map_err(|e| Error::config("token", e))?;
    Endpoint::bind(address, token).map_err(|refusal| match refusal {
        Refusal::Address(e) => failed(address, &e),
        Refusal::Open(bound) => {
            let text = format!("{bound} can be reached from other machines: give a token, or listen on 127.0.0.1");
            Error::config("token", text)
        }
    })
}
