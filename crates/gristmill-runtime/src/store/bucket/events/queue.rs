//! A queue of SQS, by its name -> its messages, received by long polling and deleted when they are done with.
//! Reached and signed by the client of buckets, with what the bucket's user says; prints no credentials.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use object_store::Error as Refusal;
use object_store::aws::AwsAuthorizer;
use object_store::client::{HttpRequest, HttpResponse};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use serde_json::{Value, json};

use super::super::Options;
use super::super::asking::innermost;
use super::super::clouds::{self, Account};

/// Messages that one request gives at most, and how long it waits for the first.
const MOST: usize = 10;
/// See `MOST`.
const WAIT: Duration = Duration::from_secs(20);

/// How long an answer may take beyond the time that it was asked to wait.
const TRY: Duration = Duration::from_secs(10);

/// Longest answer. Ten messages have a megabyte together, and each of its bytes takes at most six in JSON.
const LONGEST: usize = 16 << 20;

/// One message.
#[derive(Debug)]
pub(super) struct Message {
    /// Its number, the same each time that it comes.
    pub(super) id: String,
    /// What deletes it.
    pub(super) receipt: String,
    /// Its text.
    pub(super) body: String,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refused {
    /// The service refuses, until somebody changes something.
    Wrong(String),
    /// It may answer the next time.
    Passing(String),
}

impl Refused {
    /// What was said.
    pub(super) fn said(&self) -> &str {
        match self {
            Refused::Wrong(said) | Refused::Passing(said) => said,
        }
    }
}

/// A queue.
pub(super) struct Queue {
    name: String,
    account: Account,
    /// What the service calls it, once it was asked.
    url: OnceLock<String>,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Queue {
    /// A queue of the account and the region that a bucket is read with. Asks nothing.
    ///
    /// Errors: those of the client.
    pub(super) fn new(name: &str, bucket: &str, options: &Options) -> Result<Self, Refusal> {
        let account = clouds::account("sqs", bucket, options)?;
        Ok(Queue { name: name.to_owned(), account, url: OnceLock::new() })
    }

    /// Asks what the service calls the queue, unless that is known.
    pub(super) async fn find(&self) -> Result<&str, Refused> {
        if let Some(url) = self.url.get() {
            return Ok(url);
        }
        let answer = self.ask("GetQueueUrl", &json!({"QueueName": self.name}), Duration::ZERO).await?;
        let url = answer.get("QueueUrl").and_then(Value::as_str);
        let url = url.ok_or_else(|| self.passing("an answer to GetQueueUrl without `QueueUrl`"))?;
        Ok(self.url.get_or_init(|| url.to_owned()))
    }

    /// The next messages; waits for the first a while, and gives none where none came.
    pub(super) async fn receive(&self) -> Result<Vec<Message>, Refused> {
        let url = self.find().await?;
        let wish = json!({"QueueUrl": url, "MaxNumberOfMessages": MOST, "WaitTimeSeconds": WAIT.as_secs()});
        let answer = self.ask("ReceiveMessage", &wish, WAIT).await?;
        let messages = answer.get("Messages").and_then(Value::as_array);
        let message = |message: &Value| {
            let text = |name: &str| message.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            Message { id: text("MessageId"), receipt: text("ReceiptHandle"), body: text("Body") }
        };
        Ok(messages.into_iter().flatten().take(MOST).map(message).collect())
    }

    /// Deletes messages by their receipts, at most as many as were received at once. Those that are gone already do not matter.
    pub(super) async fn delete(&self, receipts: &[String]) -> Result<(), Refused> {
        if receipts.is_empty() {
            return Ok(());
        }
        let url = self.find().await?;
        let entry = |(number, receipt): (usize, &String)| json!({"Id": number.to_string(), "ReceiptHandle": receipt});
        let entries: Vec<Value> = receipts.iter().enumerate().map(entry).collect();
        self.ask("DeleteMessageBatch", &json!({"QueueUrl": url, "Entries": entries}), Duration::ZERO).await?;
        Ok(())
    }

    async fn ask(&self, action: &str, wish: &Value, wait: Duration) -> Result<Value, Refused> {
        match tokio::time::timeout(wait + TRY, self.asked(action, wish)).await {
            Ok(answer) => answer,
            Err(_) => Err(self.passing(&format!("no answer to {action} within {} s", (wait + TRY).as_secs()))),
        }
    }

    async fn asked(&self, action: &str, wish: &Value) -> Result<Value, Refused> {
        let Account { region, endpoint, credentials, client } = &self.account;
        let refused = |e: &dyn std::error::Error| self.passing(&innermost(e));
        let mut request = HttpRequest::new(Bytes::from(wish.to_string()).into());
        *request.method_mut() = Method::POST;
        *request.uri_mut() = endpoint.parse().map_err(|e| Refused::Wrong(format!("{endpoint}: no URL: {e}")))?;
        let target = HeaderValue::from_str(&format!("AmazonSQS.{action}")).map_err(|e| refused(&e))?;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-amz-json-1.0"));
        request.headers_mut().insert("x-amz-target", target);
        if let Some(credentials) = credentials {
            let credential = credentials.get_credential().await.map_err(|e| refused(&e))?;
            AwsAuthorizer::new(&credential, "sqs", region)
                .try_authorize(&mut request, None)
                .map_err(|e| refused(&e))?;
        }
        let answer: HttpResponse = client.execute(request).await.map_err(|e| refused(&e))?;
        let status = answer.status();
        let (mut stream, mut bytes) = (answer.into_body().bytes_stream(), Vec::new());
        while let Some(some) = stream.next().await {
            bytes.extend_from_slice(&some.map_err(|e| refused(&e))?);
            if bytes.len() > LONGEST {
                return Err(self.passing(&format!("an answer to {action} of more than {LONGEST} bytes")));
            }
        }
        let answer = serde_json::from_slice::<Value>(&bytes);
        if status.is_success() {
            return match answer {
                Ok(answer) => Ok(answer),
                // An answer that says nothing may be empty.
                Err(_) if bytes.is_empty() => Ok(Value::Null),
                Err(e) => Err(self.passing(&format!("an answer to {action} that is no JSON: {e}"))),
            };
        }
        Err(self.refusal(status.as_u16(), &answer.unwrap_or(Value::Null)))
    }

    /// What the service says, and what to do.
    fn refusal(&self, status: u16, answer: &Value) -> Refused {
        let text = |names: [&str; 2]| names.iter().find_map(|name| answer.get(name)).and_then(Value::as_str);
        let code = text(["__type", "code"]).unwrap_or_default();
        let code = code.rsplit('#').next().unwrap_or_default();
        let said: String = text(["message", "Message"]).unwrap_or_default().chars().take(300).collect();
        let said = match (code, said.as_str()) {
            ("", "") => format!("status {status}"),
            ("", said) => format!("status {status}: {said}"),
            (code, said) => format!("{code} (status {status}): {said}"),
        };
        if status >= 500 || [408, 429].contains(&status) || code.contains("Throttl") {
            return self.passing(&said);
        }
        let to_do = match code {
            "QueueDoesNotExist" | "NonExistentQueue" => {
                "no queue has this name there; make it, or name the one that the bucket sends its events to"
            }
            _ if code.contains("Expired") => "the credentials have run out; log in again or set new ones",
            _ if status == 403 || code.contains("Denied") => {
                "it takes the rights sqs:GetQueueUrl, sqs:ReceiveMessage and sqs:DeleteMessage on the queue, and kms:Decrypt on \
                 the key of an encrypted one"
            }
            _ => "see what the service says of it",
        };
        Refused::Wrong(format!("{}: {said}; {to_do}", self.place()))
    }

    fn passing(&self, said: &str) -> Refused {
        Refused::Passing(format!("{}: {said}", self.place()))
    }

    fn place(&self) -> String {
        format!("sqs://{} in {}, at {}", self.name, self.account.region, self.account.endpoint)
    }
}
