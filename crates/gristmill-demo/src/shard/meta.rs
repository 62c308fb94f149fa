//! The metadata member of a shard, a pickle or JSON -> what the demonstrations are of: configuration, spaces, colours.

use gristmill_bytes::container::pickle::{Class, Node, PickleLimits, parse};
use gristmill_bytes::error::{Error, Kind, Result};

use super::from_json::metadata_from_json;
use crate::json::json;
use crate::space::Space;

/// What a shard says about itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ShardMeta {
    /// Configuration of the environment, as JSON.
    pub env_cfg: String,
    /// Space of the observations.
    pub observation_space: Space,
    /// Space of the actions.
    pub action_space: Space,
    /// `RGB`, `GRAY`, or nothing where none is given.
    pub color_space: String,
    /// The pickle itself, or the one that the JSON was made of.
    pub pickle: Vec<u8>,
}

impl ShardMeta {
    /// Reads a metadata pickle, or the JSON that stands in its place in a shard without pickles.
    ///
    /// Errors: what the unpickler says; `Corrupt` for JSON that is no metadata; `Missing` for a key that is not there, `Unsupported` for spaces that are none.
    pub fn parse(bytes: &[u8], max: usize) -> Result<ShardMeta> {
        if bytes.first() == Some(&b'{') {
            return ShardMeta::parse(&metadata_from_json(bytes)?, max);
        }
        let pickle = parse(bytes, &PickleLimits { max_bytes: max.max(1 << 20) })?;
        let root = pickle.root();
        let get = |key: &str| {
            let detail = || format!("the metadata has no `{key}`");
            pickle.get(root, key).ok_or_else(|| Error::new(Kind::Missing, detail()))
        };
        let named = |key: &str| {
            let named = |e: Error| Error::new(e.kind(), format!("`{key}`: {}", e.detail()));
            Space::of_pickle(&pickle, get(key)?).map_err(named)
        };
        let color_space = pickle.get(root, "color_space").map(|id| match pickle.node(id) {
            Node::Object(object) if object.class == Class::ColorSpace => {
                object.args.first().and_then(|value| pickle.text(*value)).unwrap_or_default().to_owned()
            }
            _ => pickle.text(id).unwrap_or_default().to_owned(),
        });
        Ok(ShardMeta {
            env_cfg: json(&pickle, get("env_cfg")?).to_string(),
            observation_space: named("observation_space")?,
            action_space: named("action_space")?,
            color_space: color_space.unwrap_or_default(),
            pickle: bytes.to_vec(),
        })
    }

    /// Names and values, for people.
    pub fn about(&self) -> Vec<(&'static str, String)> {
        vec![
            ("env_cfg", self.env_cfg.clone()),
            ("observation_space", self.observation_space.to_string()),
            ("action_space", self.action_space.to_string()),
            ("color_space", self.color_space.clone()),
        ]
    }

    /// Whether it may stand where it does: first in its shard, or where another one began that says the same.
    ///
    /// Errors: `Corrupt` after `frames` frames without metadata, and after metadata that differ.
    pub(super) fn follows(&self, first: Option<&ShardMeta>, frames: usize) -> Result<()> {
        match first {
            None if frames > 0 => {
                let detail = "the metadata must be the first member; frames come before it";
                Err(Error::new(Kind::Corrupt, detail))
            }
            None => Ok(()),
            Some(first) => first.mixes_with(self).map_err(|e| {
                Error::new(Kind::Corrupt, format!("a second metadata contradicts the first: {}", e.detail()))
            }),
        }
    }

    /// Whether data of both can be mixed.
    ///
    /// Errors: `OutOfRange` naming what differs, and both values.
    pub fn mixes_with(&self, other: &ShardMeta) -> Result<()> {
        let differ = |what: &str, one: String, two: String| {
            Err(Error::new(Kind::OutOfRange, format!("the {what} differ: {one} and {two}")))
        };
        if self.color_space != other.color_space {
            return differ("colour spaces", self.color_space.clone(), other.color_space.clone());
        }
        if !self.observation_space.matches(&other.observation_space) {
            return differ(
                "observation spaces",
                self.observation_space.to_string(),
                other.observation_space.to_string(),
            );
        }
        if !self.action_space.matches(&other.action_space) {
            return differ("action spaces", self.action_space.to_string(), other.action_space.to_string());
        }
        Ok(())
    }
}
