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
        Kind::String if ["memory", "max_chunk_bytes"].contains(&field.name()) => Value::String(
            ["2GiB".to_owned(), "1.5 kb".to_owned(), (draw >> 1).to_string()][(draw % 3) as usize].clone(),
        ),
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

/// Every kind and field that a config can have has a place in protobuf.
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
