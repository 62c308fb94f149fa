//! Any config, in any of its forms, is the same config in every other: TOML, JSON, protobuf text, protobuf bytes.
//! Configs are drawn from the descriptors themselves, so that a new field is covered by being there.

use gristmill_engine::config::DataLoaderConfig;
use gristmill_engine::config::proto::DESCRIPTORS;
use proptest::prelude::*;
use prost_reflect::prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, Value};

fn loader() -> MessageDescriptor {
    let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
    pool.get_message_by_name("lczero.training.DataLoaderConfig").unwrap()
}

/// Draws of a case, then zeros.
struct Draws(std::vec::IntoIter<u64>);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0.next().unwrap_or_default()
    }

    fn text(&mut self) -> String {
        const TEXTS: [&str; 8] =
            ["", "a", "pool.train", "\"quoted\" '", "é\u{1F600}", "line\nbreak\t\\", "# no", "{x: 1}"];
        let draw = self.next();
        TEXTS[(draw % 8) as usize].repeat((draw >> 3) as usize % 3)
    }
}

/// A message with some of its fields set, `n` in each list.
fn message(desc: &MessageDescriptor, draws: &mut Draws) -> DynamicMessage {
    let mut message = DynamicMessage::new(desc.clone());
    for field in desc.fields() {
        match draws.next() % 3 {
            0 => {}
            n if field.is_list() => {
                let values = (0..n).map(|_| value(&field, draws)).collect();
                message.set_field(&field, Value::List(values));
            }
            _ => message.set_field(&field, value(&field, draws)),
        }
    }
    message
}

fn value(field: &FieldDescriptor, draws: &mut Draws) -> Value {
    let draw = draws.next();
    match field.kind() {
        Kind::Bool => Value::Bool(draw % 2 == 1),
        Kind::Int32 => Value::I32(draw as i32),
        Kind::Uint32 => Value::U32(draw as u32),
        // TOML has no larger integers.
        Kind::Uint64 => Value::U64(draw >> 1),
        Kind::Float => Value::F32(Some(f32::from_bits(draw as u32)).filter(|x| x.is_finite()).unwrap_or(-0.1)),
        Kind::Double => Value::F64(Some(f64::from_bits(draw)).filter(|x| x.is_finite()).unwrap_or(1e-300)),
        Kind::String if field.name() == "skip" => {
            let end = draw.max(1);
            Value::String([format!("{}..{end}", end - 1), format!("train:0..{end}")][(draw % 2) as usize].clone())
        }
        Kind::String if ["memory", "max_chunk_bytes", "max_solid_bytes", "spill_limit"].contains(&field.name()) => {
            Value::String(
                ["2GiB".to_owned(), "1.5 kb".to_owned(), (draw >> 1).to_string()][(draw % 3) as usize].clone(),
            )
        }
        Kind::String if field.name() == "json" => Value::String("\"chess\"".into()),
        Kind::String => Value::String(draws.text()),
        Kind::Enum(values) => {
            let values: Vec<i32> = values.values().map(|value| value.number()).collect();
            Value::EnumNumber(values[draw as usize % values.len()])
        }
        Kind::Message(desc) if desc.name() == "Json" => {
            let mut holder = DynamicMessage::new(desc);
            holder.set_field_by_name("json", Value::String("\"chess\"".into()));
            Value::Message(holder)
        }
        Kind::Message(desc) => Value::Message(message(&desc, draws)),
        other => panic!("no draw for {other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_form_holds_the_same_config(draws in prop::collection::vec(any::<u64>(), 0..400)) {
        let bytes = message(&loader(), &mut Draws(draws.into_iter())).encode_to_vec();
        let config = DataLoaderConfig::from_proto_bytes(&bytes).unwrap();
        prop_assert_eq!(&DataLoaderConfig::from_proto_bytes(&config.to_proto_bytes().unwrap()).unwrap(), &config);
        let text = config.to_textproto().unwrap();
        prop_assert_eq!(&DataLoaderConfig::from_textproto(&text).unwrap(), &config, "{}", text);
        prop_assert_eq!(&DataLoaderConfig::from_toml(&config.to_toml().unwrap()).unwrap(), &config);
        prop_assert_eq!(&DataLoaderConfig::from_json(&config.to_json()).unwrap(), &config);
    }

    #[test]
    fn no_bytes_and_no_text_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[a-z_{}<>:\\[\\]\"'#\\n 0-9.-]{0,80}") {
        let _ = DataLoaderConfig::from_proto_bytes(&bytes);
        let _ = DataLoaderConfig::from_textproto(&text);
        let _ = DataLoaderConfig::from_textproto(&format!("data_loader {{ stage {{ {text} }} }}"));
    }
}

/// What absence means in a message of the interface, in the descriptors and in what is read; threads
/// are left to the engine.
#[test]
fn absent_fields_of_the_interface_mean_what_they_are_published_to_mean() {
    let stage = loader().get_field_by_name("stage").unwrap().kind().as_message().unwrap().clone();
    for (kind, published) in [
        ("chunk_source_loader", r#"{"threads": 1, "frame_format": "V6TrainingData"}"#),
        (
            "shuffling_chunk_pool",
            r#"{"chunk_pool_size": 100000, "source_ingestion_threads": 1, "chunk_loading_threads": 4,
                "hanse_sampling_gamma": 1.0, "caching_threads": 1}"#,
        ),
        (
            "chunk_rescorer",
            r#"{"threads": 1, "syzygy_paths": "", "dist_temp": 1.0, "dist_offset": 0.0, "dtz_boost": 0.0,
                "new_input_format": -1, "st_q_theta": 0.8333333333}"#,
        ),
        ("chunk_unpacker", r#"{"threads": 1}"#),
        ("shuffling_frame_sampler", r#"{"threads": 1, "reservoir_size_per_thread": 1000000}"#),
        ("tensor_generator", r#"{"threads": 1, "batch_size": 1024}"#),
        ("file_path_provider", r#"{"directory": ""}"#),
        ("chunk_source_splitter", "{}"),
        ("simple_chunk_extractor", "{}"),
        ("join_positions", "{}"),
    ] {
        let desc = stage.get_field_by_name(kind).unwrap().kind().as_message().unwrap().clone();
        let config = DataLoaderConfig::from_textproto(&format!("stage {{ name: 's' {kind} {{ }} }}")).unwrap();
        let read: serde_json::Value = serde_json::from_str(&config.to_json()).unwrap();
        let read = &read["stage"][0][kind];
        let published: serde_json::Map<String, serde_json::Value> = serde_json::from_str(published).unwrap();
        for (field, value) in &published {
            let declared = match desc.get_field_by_name(field).unwrap().default_value() {
                Value::EnumNumber(0) => "V6TrainingData".into(),
                Value::String(text) => text.into(),
                Value::F32(number) => serde_json::json!((f64::from(number) * 1e7).round() / 1e7),
                Value::F64(number) => number.into(),
                Value::I32(number) => number.into(),
                Value::U64(number) => number.into(),
                other => panic!("{kind}.{field}: {other:?}"),
            };
            let same = |found: &serde_json::Value| match (found.as_f64(), value.as_f64()) {
                (Some(found), Some(value)) => (found - value).abs() < 1e-7,
                _ => found == value,
            };
            assert!(same(&declared), "{kind}.{field} is declared as {declared}");
            assert!(
                read[field].is_null() && field.ends_with("threads") || same(&read[field]),
                "{kind}.{field}: {read}"
            );
        }
        // Whatever else the interface has is unset.
        let others = desc.fields().filter(|field| field.number() < 1000 && !published.contains_key(field.name()));
        for field in others.filter(|field| !field.is_list() && !matches!(field.kind(), Kind::Message(_))) {
            assert!(read[field.name()].is_null(), "{kind}.{}: {read}", field.name());
        }
        for queue in ["output"].iter().filter_map(|name| read[name].as_object()) {
            assert!(queue["queue_capacity"] == 4 && queue["overflow_behavior"] == "BLOCK" && queue["name"] == "");
        }
    }
}

/// Stages that lc0's messages have no field for; text-protobuf refuses them by name.
const NO_MESSAGE: [&str; 1] = ["dedup_window"];

/// Every kind and field that a config can have has a place in protobuf, but for the stages above.
#[test]
fn every_field_of_a_config_has_a_place_in_protobuf() {
    let known = |json: &str| -> Vec<String> {
        let refused = DataLoaderConfig::from_json(json).unwrap_err().to_string();
        let listed = refused.split("expected").nth(1).unwrap().split("; did you mean").next().unwrap();
        listed.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    let names = |desc: &MessageDescriptor| desc.fields().map(|field| field.name().to_owned()).collect::<Vec<_>>();
    let inner = |desc: &MessageDescriptor, field: &str| match desc.get_field_by_name(field).unwrap().kind() {
        Kind::Message(desc) => desc,
        other => panic!("{field} is {other:?}"),
    };
    let same = |json: &str, desc: &MessageDescriptor| {
        let (mut ours, mut theirs) = (known(json), names(desc));
        ours.retain(|name| !NO_MESSAGE.contains(&name.as_str()));
        ours.sort();
        theirs.sort();
        assert_eq!(ours, theirs, "in {}", desc.full_name());
        ours
    };
    let (loader, zz) = (loader(), r#"{"zz": 1}"#);
    same(zz, &loader);
    let stage = inner(&loader, "stage");
    for kind in same(&format!(r#"{{"stage": [{zz}]}}"#), &stage) {
        if ["name", "input"].contains(&kind.as_str()) {
            continue;
        }
        let desc = inner(&stage, &kind);
        for field in same(&format!(r#"{{"stage": [{{"{kind}": {zz}}}]}}"#), &desc) {
            let field = desc.get_field_by_name(&field).unwrap();
            if let (Kind::Message(inner), name) = (field.kind(), field.name())
                && inner.name() != "Json"
            {
                let value = if field.is_list() { format!("[{zz}]") } else { zz.to_owned() };
                same(&format!(r#"{{"stage": [{{"{kind}": {{"{name}": {value}}}}}]}}"#), &inner);
            }
        }
    }
}
