//! Requests and metrics as the serialized messages of the lc0 interface, and replies back.
//! Translates only: what a request does is the loader's business.

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::period::Period;
use gristmill_stages::config::proto::schema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::pipeline::draw::anchors::{ControlReply, ControlRequest};

const METRICS: &str = "lczero.DataLoaderMetricsProto";
const REQUEST: &str = "lczero.training.StageControlRequest";
const RESPONSE: &str = "lczero.training.StageControlResponse";

/// A period as a serialized `lczero.DataLoaderMetricsProto`.
///
/// Errors: `Config` when the message cannot hold it.
pub fn period_message(period: &Period) -> Result<Vec<u8>> {
    written(METRICS, period)
}

impl ControlRequest {
    /// Reads a serialized `lczero.training.StageControlRequest`; `None` for one without a request to any stage.
    ///
    /// Errors: `Config` for bytes that are no such message.
    pub fn from_message(bytes: &[u8]) -> Result<Option<Self>> {
        let refused = |e: String| Error::config("request", e);
        let fields = schema::decode(&schema::message(REQUEST).map_err(refused)?, bytes).map_err(refused)?;
        let Some(Value::Object(pool)) = fields.get("chunk_pool_request") else { return Ok(None) };
        let reset = pool.get("reset_chunk_anchor").and_then(Value::as_bool).unwrap_or_default();
        let set = pool.get("set_chunk_anchor").and_then(Value::as_str);
        Ok(Some(match set {
            _ if reset => ControlRequest::ResetChunkAnchor,
            Some(key) => ControlRequest::SetChunkAnchor(key.to_owned()),
            None => ControlRequest::QueryChunkAnchor,
        }))
    }
}

impl ControlReply {
    /// As a serialized `lczero.training.StageControlResponse`; a count beyond the message's 32 bits is its largest.
    ///
    /// Errors: `Config` when the message cannot hold it.
    pub fn to_message(&self) -> Result<Vec<u8>> {
        let since = i32::try_from(self.chunks_since_anchor).unwrap_or(i32::MAX);
        let pool = json!({"chunk_anchor": self.chunk_anchor, "chunks_since_anchor": since});
        written(RESPONSE, &json!({"chunk_pool_response": pool}))
    }
}

fn written(name: &str, value: &impl Serialize) -> Result<Vec<u8>> {
    let refused = |e: String| Error::config("message", e);
    let fields = match serde_json::to_value(value).map_err(|e| refused(e.to_string()))? {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    schema::encode(&schema::message(name).map_err(refused)?, &fields).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_published_numbers() {
        for (bytes, expected) in [
            (&b""[..], None),
            (b"\x0a\x00", Some(ControlRequest::QueryChunkAnchor)),
            (b"\x0a\x02\x08\x01", Some(ControlRequest::ResetChunkAnchor)),
            (b"\x0a\x02\x08\x00", Some(ControlRequest::QueryChunkAnchor)),
            (b"\x0a\x04\x12\x02k1", Some(ControlRequest::SetChunkAnchor("k1".into()))),
            (b"\x0a\x02\x12\x00", Some(ControlRequest::SetChunkAnchor(String::new()))),
            (b"\x0a\x06\x12\x02k1\x08\x01", Some(ControlRequest::ResetChunkAnchor)),
        ] {
            assert_eq!(ControlRequest::from_message(bytes).unwrap(), expected, "{bytes:?}");
        }
        for bytes in [&b"\x12\x00"[..], b"\x0a\x05", b"\x0a\x02\x18\x01"] {
            let error = ControlRequest::from_message(bytes).unwrap_err().to_string();
            assert!(error.contains("StageControlRequest"), "{error}");
        }
    }

    #[test]
    fn replies_have_the_published_numbers() {
        let reply = |since| {
            let reply = ControlReply { stage: "pool".into(), chunk_anchor: "k".into(), chunks_since_anchor: since };
            reply.to_message().unwrap()
        };
        assert_eq!(reply(300), b"\x0a\x06\x0a\x01k\x10\xac\x02");
        assert_eq!(reply(0), b"\x0a\x05\x0a\x01k\x10\x00");
        assert_eq!(reply(u64::MAX), b"\x0a\x09\x0a\x01k\x10\xff\xff\xff\xff\x07");
    }
}
