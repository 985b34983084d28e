//! The tasks of a gateway and what was asked of it.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard},
};

use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::callbacks::Callback;

/// Which vocabulary an answer uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vocabulary {
    /// Lowercase states and `kind`.
    V03,
    /// `TASK_STATE_*` and one wrapping key.
    V1,
}

impl Vocabulary {
    pub fn state(self, state: &str) -> String {
        match self {
            Self::V03 => state.to_owned(),
            Self::V1 => format!("TASK_STATE_{}", state.to_uppercase().replace('-', "_")),
        }
    }
}

/// One JSON-RPC request that arrived.
#[derive(Debug, Clone)]
pub struct Call {
    pub method: String,
    pub version: Option<String>,
    pub accept: Option<String>,
    pub last_event_id: Option<String>,
    /// The owner whose token came with it; none for a refused one.
    pub owner: Option<String>,
    pub params: Value,
}

/// What subscribers are told.
#[derive(Debug, Clone)]
pub enum Change {
    /// One event as it was when it happened, in both vocabularies.
    Event { old: Value, new: Value, last: bool },
    /// The connection breaks though the task goes on.
    Cut,
}

pub struct Entry {
    pub id: String,
    pub owner: String,
    pub context: String,
    pub state: String,
    pub said: Option<String>,
    pub reply: Option<String>,
    pub stamp: u64,
    pub changes: broadcast::Sender<Change>,
    pub callbacks: Vec<Callback>,
}

impl Entry {
    pub fn is_terminal(&self) -> bool {
        matches!(self.state.as_str(), "completed" | "failed" | "canceled" | "rejected")
    }

    /// A made-up clock that runs one second a change, so that fixtures repeat.
    pub fn timestamp(&self) -> String {
        format!("2026-09-12T09:{:02}:{:02}.000Z", self.stamp / 60 % 60, self.stamp % 60)
    }

    pub fn status(&self, vocabulary: Vocabulary) -> Value {
        let mut status = json!({"state": vocabulary.state(&self.state), "timestamp": self.timestamp()});
        if let Some(said) = &self.said {
            let id = format!("{}-said-{}", self.id, self.stamp);
            status["message"] = match vocabulary {
                Vocabulary::V03 => json!({"kind": "message", "role": "agent", "messageId": id,
                    "parts": [{"kind": "text", "text": said}]}),
                Vocabulary::V1 => json!({"role": "ROLE_AGENT", "messageId": id, "parts": [{"text": said}]}),
            };
        }
        status
    }

    pub fn artifact(&self, vocabulary: Vocabulary) -> Option<Value> {
        let text = self.reply.as_ref()?;
        let part = match vocabulary {
            Vocabulary::V03 => json!({"kind": "text", "text": text}),
            Vocabulary::V1 => json!({"text": text}),
        };
        Some(json!({"artifactId": format!("{}-reply", self.id), "name": "reply", "parts": [part]}))
    }

    /// The task as GetTask returns it.
    pub fn task(&self, vocabulary: Vocabulary) -> Value {
        let mut task = json!({"id": self.id, "contextId": self.context, "status": self.status(vocabulary)});
        if vocabulary == Vocabulary::V03 {
            task["kind"] = json!("task");
        }
        if let Some(artifact) = self.artifact(vocabulary) {
            task["artifacts"] = json!([artifact]);
        }
        task
    }

    /// The first event of a stream.
    pub fn snapshot_event(&self, vocabulary: Vocabulary) -> Value {
        match vocabulary {
            Vocabulary::V03 => self.task(vocabulary),
            Vocabulary::V1 => json!({"task": self.task(vocabulary)}),
        }
    }

    /// Tells subscribers the state.
    pub fn tell_status(&self) {
        let last = self.is_terminal();
        let mut old = self.update(json!({"status": self.status(Vocabulary::V03)}));
        old["kind"] = json!("status-update");
        old["final"] = json!(last);
        let new = json!({"statusUpdate": self.update(json!({"status": self.status(Vocabulary::V1)}))});
        self.tell(Change::Event { old, new, last });
    }

    /// Tells subscribers the reply, if there is one.
    pub fn tell_artifact(&self) {
        let (Some(old), Some(new)) = (self.artifact(Vocabulary::V03), self.artifact(Vocabulary::V1)) else {
            return;
        };
        let mut old = self.update(json!({"artifact": old}));
        old["kind"] = json!("artifact-update");
        let new = json!({"artifactUpdate": self.update(json!({"artifact": new}))});
        self.tell(Change::Event { old, new, last: false });
    }

    pub fn tell(&self, change: Change) {
        // An error means that nobody is listening.
        let _ = self.changes.send(change);
    }

    fn update(&self, mut event: Value) -> Value {
        event["taskId"] = json!(self.id);
        event["contextId"] = json!(self.context);
        event
    }
}

/// Everything one gateway remembers.
#[derive(Default)]
pub struct Ledger {
    inner: Mutex<Inner>,
}

#[derive(Default)]
pub struct Inner {
    /// Accepted bearer tokens and whose they are.
    pub tokens: HashMap<String, String>,
    pub tasks: HashMap<String, Entry>,
    /// Message ids in the order of their arrival.
    pub messages: Vec<String>,
    pub calls: Vec<Call>,
    pub open_streams: usize,
    clock: u64,
}

impl Ledger {
    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("nobody panics while holding the ledger")
    }
}

impl Inner {
    /// Starts a task for `owner` in state `submitted`.
    pub fn open(&mut self, owner: &str, context: Option<&str>) -> &mut Entry {
        let id = uuid::Uuid::new_v4().to_string();
        self.clock += 1;
        let entry = Entry {
            id: id.clone(),
            owner: owner.to_owned(),
            context: context.map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned),
            state: "submitted".to_owned(),
            said: None,
            reply: None,
            stamp: self.clock,
            changes: broadcast::Sender::new(256),
            callbacks: Vec::new(),
        };
        self.tasks.entry(id).or_insert(entry)
    }

    /// The task of that owner; somebody else's looks like none at all.
    pub fn owned(&mut self, owner: &str, id: &str) -> Option<&mut Entry> {
        self.tasks.get_mut(id).filter(|entry| entry.owner == owner)
    }

    /// Moves a task on. The caller tells its subscribers.
    pub fn advance(&mut self, id: &str, state: &str, said: Option<&str>) -> &mut Entry {
        self.clock += 1;
        let clock = self.clock;
        let entry = self.tasks.get_mut(id).unwrap_or_else(|| panic!("the gateway has no task {id}"));
        assert!(!entry.is_terminal(), "a terminal task does not move: {id}");
        entry.state = state.to_owned();
        entry.said = said.map(str::to_owned);
        entry.stamp = clock;
        entry
    }
}
