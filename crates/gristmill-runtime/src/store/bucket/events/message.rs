//! The text of one message of a queue -> the objects of buckets that it names: events of S3, bare or in envelopes of SNS or
//! EventBridge. Asks nothing; a text of any kind is events or a sentence that says why it is none.

use serde_json::Value;

/// How many envelopes may lie in each other.
const DEEPEST: usize = 3;

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// An object was written, or can be read again.
    Written {
        /// The name of its bucket.
        bucket: String,
        /// Its key as the bucket has it.
        key: String,
    },
    /// An object was deleted.
    Deleted {
        /// The name of its bucket.
        bucket: String,
        /// Its key as the bucket has it.
        key: String,
    },
    /// Something else: a test of the queue, a change of tags, a message of another service.
    Other,
}

/// The events of a message, and why a part of it cannot be read, where that is so.
pub(super) fn events(text: &str) -> (Vec<Event>, Option<String>) {
    let mut events = Vec::new();
    let unreadable = unwrapped(text, 0, &mut events).err();
    (events, unreadable)
}

fn unwrapped(text: &str, depth: usize, events: &mut Vec<Event>) -> Result<(), String> {
    let message: Value = serde_json::from_str(text).map_err(|e| format!("it is no JSON: {e}"))?;
    let text_of = |name: &str| message.get(name).and_then(Value::as_str);
    if let Some(records) = message.get("Records").and_then(Value::as_array) {
        let mut unreadable = Ok(());
        for (number, record) in records.iter().enumerate() {
            match of_record(record) {
                Ok(event) => events.push(event),
                Err(why) => unreadable = Err(format!("`Records[{number}]`: {why}")),
            }
        }
        return unreadable;
    }
    if text_of("Event") == Some("s3:TestEvent") {
        events.push(Event::Other);
        return Ok(());
    }
    if let (Some(kind), Some(detail)) = (text_of("detail-type"), message.get("detail")) {
        if text_of("source") != Some("aws.s3") {
            events.push(Event::Other);
            return Ok(());
        }
        // EventBridge has keys as they are.
        let object = || Ok::<_, String>((string(detail, &["bucket", "name"])?, string(detail, &["object", "key"])?));
        let (bucket, key) = object().map_err(|why| format!("`detail`: {why}"))?;
        events.push(match kind {
            "Object Created" | "Object Restore Completed" => Event::Written { bucket, key },
            "Object Deleted" => Event::Deleted { bucket, key },
            _ => Event::Other,
        });
        return Ok(());
    }
    match (text_of("Type"), text_of("Message")) {
        (Some("Notification"), Some(_)) if depth == DEEPEST => Err(format!("more than {DEEPEST} envelopes")),
        (Some("Notification"), Some(inner)) => {
            unwrapped(inner, depth + 1, events).map_err(|why| format!("`Message` in the envelope: {why}"))
        }
        _ => Err("neither an event of S3, nor an envelope of SNS or EventBridge with one".to_owned()),
    }
}

/// One record of a notification of S3, or of a service that speaks its language.
fn of_record(record: &Value) -> Result<Event, String> {
    let name = string(record, &["eventName"])?;
    let name = name.strip_prefix("s3:").unwrap_or(&name);
    let bucket = string(record, &["s3", "bucket", "name"])?;
    let key = decoded(&string(record, &["s3", "object", "key"])?)?;
    Ok(match name.split(':').next() {
        Some("ObjectCreated") => Event::Written { bucket, key },
        Some("ObjectRestore") if name.ends_with(":Completed") => Event::Written { bucket, key },
        Some("ObjectRemoved" | "LifecycleExpiration") => Event::Deleted { bucket, key },
        _ => Event::Other,
    })
}

fn string(value: &Value, path: &[&str]) -> Result<String, String> {
    let found = path.iter().try_fold(value, |value, name| value.get(name)).and_then(Value::as_str);
    found.map(str::to_owned).ok_or_else(|| format!("no text at `{}`", path.join(".")))
}

/// The key that an encoded one stands for, as forms on web pages encode: `+` is a space, `%XX` a byte.
fn decoded(key: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(key.len());
    let mut left = key.bytes();
    while let Some(byte) = left.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
                let (Some(high), Some(low)) = (digit(left.next()), digit(left.next())) else {
                    return Err(format!("the key {key:?} has a % without two hexadecimal digits"));
                };
                (high * 16 + low) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| format!("the key {key:?} stands for bytes that are no UTF-8"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn record(name: &str, key: &str) -> Value {
        json!({"eventSource": "aws:s3", "eventName": name, "s3": {"bucket": {"name": "b"}, "object": {"key": key}}})
    }

    fn written(key: &str) -> Event {
        Event::Written { bucket: "b".into(), key: key.into() }
    }

    fn read(message: &Value) -> (Vec<Event>, Option<String>) {
        events(&message.to_string())
    }

    #[test]
    fn keys_are_decoded_in_records_and_taken_as_they_are_from_event_bridge() {
        let records = [
            record("ObjectCreated:Put", "games/a+b%2Bc%25/%C3%A9.gz"),
            record("s3:ObjectCreated:CompleteMultipartUpload", "x.gz"),
            record("ObjectRemoved:Delete", "y.gz"),
            record("ObjectTagging:Put", "z.gz"),
        ];
        let deleted = Event::Deleted { bucket: "b".into(), key: "y.gz".into() };
        let expected = vec![written("games/a b+c%/é.gz"), written("x.gz"), deleted, Event::Other];
        assert_eq!(read(&json!({"Records": records})), (expected, None));
        let bridged = |kind: &str, source: &str| {
            let detail = json!({"bucket": {"name": "b"}, "object": {"key": "a+b%20.gz"}});
            read(&json!({"version": "0", "detail-type": kind, "source": source, "detail": detail}))
        };
        assert_eq!(bridged("Object Created", "aws.s3"), (vec![written("a+b%20.gz")], None));
        assert_eq!(bridged("Object Tags Added", "aws.s3"), (vec![Event::Other], None));
        assert_eq!(bridged("Object Created", "aws.ec2"), (vec![Event::Other], None));
    }

    #[test]
    fn envelopes_are_opened_to_a_depth_and_tests_are_nothing() {
        let mut text = json!({"Records": [record("ObjectCreated:Put", "k")]}).to_string();
        for _ in 0..DEEPEST {
            text = json!({"Type": "Notification", "Message": text}).to_string();
        }
        assert_eq!(events(&text), (vec![written("k")], None));
        let deeper = json!({"Type": "Notification", "Message": text});
        assert!(read(&deeper).1.unwrap().contains("more than 3 envelopes"));
        let test = json!({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "b"});
        assert_eq!(read(&test), (vec![Event::Other], None));
    }

    #[test]
    fn what_cannot_be_read_says_where_and_the_rest_counts() {
        let records = [record("ObjectCreated:Put", "good"), record("ObjectCreated:Put", "50%"), json!({"s3": 7})];
        let (events, why) = read(&json!({"Records": records}));
        assert_eq!(events, [written("good")]);
        assert!(why.unwrap().contains("`Records[2]`: no text at `eventName`"));
        let cases = [
            (json!({"Records": [record("ObjectCreated:Put", "%ff")]}), "no UTF-8"),
            (json!({"Records": [record("ObjectCreated:Put", "%4")]}), "without two hexadecimal digits"),
            (json!({"Records": "none"}), "neither an event of S3"),
            (json!([1]), "neither an event of S3"),
            (json!({"Type": "Notification", "Message": "hello"}), "`Message` in the envelope: it is no JSON"),
            (json!({"detail-type": "Object Created", "source": "aws.s3", "detail": {}}), "no text at `bucket.name`"),
        ];
        for (message, expected) in cases {
            let (events, why) = read(&message);
            assert!(events.is_empty() && why.clone().unwrap().contains(expected), "{message}: {why:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in ".{0,200}", key in "[%+0-9a-fA-Fxé]{0,40}") {
            let _ = events(&text);
            let _ = read(&json!({"Records": [record("ObjectCreated:Put", &key)]}));
        }
    }
}
