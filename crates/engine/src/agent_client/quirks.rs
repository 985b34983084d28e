//! What was learnt about one agent by talking to it.
//!
//! Kept as JSON on the agent's row by the caller; an unknown member of a newer version is dropped, a
//! missing one has its default. Quirks change how we ask, never what an answer means.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Quirks {
    /// HTTP+JSON servers take POST, GET or both on `:subscribe` (A2A #1574). Unset until seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscribe_verb: Option<SubscribeVerb>,
    /// A reattached stream starts without the task. Such SDKs apply every event once per subscriber to
    /// the stored task, so subscribing again damages it: poll after a cut instead.
    pub reattach_without_task: bool,
    /// A reattached stream was seen to start with the task, as it should.
    pub reattach_proven: bool,
    /// Subscribing is not offered, whatever the card says: poll.
    pub streaming_refused: bool,
    /// ListTasks is not offered.
    pub list_refused: bool,
    /// Push notifications are not offered, whatever the card says. Tried again by hand only.
    pub push_refused: bool,
    /// A callback to an address of this machine was refused: it is given the public one.
    pub loopback_callbacks_refused: bool,
    /// States were seen in the other dialect's words. Read all the same.
    pub mixed_vocabulary: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum SubscribeVerb {
    Post,
    Get,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quirks_of_an_older_or_newer_version_are_read() {
        let read: Quirks =
            serde_json::from_str(r#"{"subscribe_verb":"GET","from_tomorrow":[1],"list_refused":true}"#)
                .unwrap();
        assert_eq!(read.subscribe_verb, Some(SubscribeVerb::Get));
        assert!(read.list_refused && !read.streaming_refused);
        assert_eq!(serde_json::from_str::<Quirks>("{}").unwrap(), Quirks::default());
    }
}
