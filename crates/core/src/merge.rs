//! How what arrives changes what is known of a task.
//!
//! Two sources change a task: frames of a stream, and answers to GetTask. (A callback never does: it
//! makes the task due for a read.) Order comes from us: the start of our request for a read, the
//! arrival for a frame. Senders' timestamps are shown, never compared.
//!
//! - A final state stays. A read or frame that takes it back is noted and changes nothing.
//! - A terminal state from a stream is shown at once and *settled* by the first GetTask after it,
//!   which also replaces what was pieced together. Another terminal state comes by GetTask alone.
//! - A read replaces, unless frames arrived after it was asked: then they are newer and stay, and the
//!   read adds what they lack.
//! - History that a read no longer reaches back to is kept; it is capped, and so is the text of artifacts:
//!   no peer fills memory or disk.
//! - Artifacts go by id; `append` extends, otherwise they are replaced. A chunk whose beginning was
//!   never seen is kept and the task read.

use crate::ids::ArtifactId;
use crate::oddity::Oddity;
use crate::state::TaskState;
use crate::task::{Artifact, ArtifactUpdate, Message, Part, PartContent, StreamEvent, Task, TaskStatus};

/// Messages kept of one task. What a stream says beyond is in the timeline only.
pub const HISTORY_MAX: usize = 1_000;
/// Octets of artifact content kept of one task: as much as one answer to GetTask may have.
pub const CONTENT_MAX: usize = 16 << 20;

/// Position in our own order of things: taken from one counter at the start of a read and at the
/// arrival of a frame.
pub type Order = u64;

/// All that is known of one task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRecord {
    pub task: Task,
    /// The state is terminal and GetTask said so.
    pub settled: bool,
    /// Artifacts whose beginning was never seen.
    pub incomplete: Vec<ArtifactId>,
    newest_read: Option<Order>,
    newest_frame: Option<Order>,
    /// Octets of the artifacts' content, kept along so that a chunk need not count them all.
    content: usize,
    /// Octets of the messages in the history, kept along as well.
    said: usize,
}

/// What came of one frame or read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// What is different now, in the order it happened. Empty: nothing new.
    pub changes: Vec<TaskChange>,
    pub oddities: Vec<Oddity>,
    /// The task should be read (again).
    pub wants_read: bool,
    /// A read that was overtaken: nothing of it was used.
    pub stale: bool,
}

/// One difference, as the store writes it and the timeline shows it.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskChange {
    /// The state, its message or its timestamp. `from` and `to` are equal where only the message is new.
    Status {
        from: TaskState,
        to: TaskState,
    },
    /// The artifact at this index is new or replaced.
    ArtifactReplaced {
        index: usize,
    },
    /// The artifact at `index` gained the parts from `from_part` on.
    ArtifactExtended {
        index: usize,
        from_part: usize,
    },
    /// Artifacts that the agent no longer shows, as a whole list replaced.
    ArtifactsReplaced,
    /// Messages from this index on are new.
    HistoryExtended {
        from: usize,
    },
    HistoryReplaced,
    /// Context, metadata, the sender's clock: stored, not shown as news.
    Details,
    /// GetTask confirmed the terminal state.
    Settled,
}

impl TaskRecord {
    /// A record of a task as first seen, by a read or in an answer to a send.
    pub fn new(task: Task, order: Order) -> Self {
        let settled = task.status.state.is_terminal();
        Self { newest_read: Some(order), ..Self::restored(task, settled, Vec::new()) }
    }

    /// A record taken from the store: whatever was asked or heard before has been lost with the process.
    pub fn restored(task: Task, settled: bool, incomplete: Vec<ArtifactId>) -> Self {
        let (content, said) = (content_of(&task.artifacts), said_in(&task.history));
        Self { task, settled, incomplete, newest_read: None, newest_frame: None, content, said }
    }

    /// What artifacts and history take in memory, roughly, in octets. Costs nothing to ask.
    pub fn octets(&self) -> usize {
        self.content + self.said
    }

    pub fn state(&self) -> TaskState {
        self.task.status.state
    }

    /// Applies an answer to GetTask that was asked for at `started`. The caller has checked that the
    /// answer is about this task.
    pub fn apply_read(&mut self, answer: Task, started: Order) -> Outcome {
        let mut outcome = Outcome::default();
        if self.newest_read.is_some_and(|newest| newest >= started) {
            outcome.stale = true;
            return outcome;
        }
        self.newest_read = Some(started);
        let (was, says) = (self.state(), answer.status.state);
        if was.is_terminal() && !says.is_terminal() {
            outcome.oddities.push(Oddity::Regression { from: was, to: says });
            outcome.wants_read = !self.settled;
            return outcome;
        }
        if was.is_terminal() && was != says {
            outcome.oddities.push(Oddity::TerminalChanged { from: was, to: says });
        }
        if says.is_terminal() {
            self.replace(answer, &mut outcome);
            self.incomplete.clear();
            if !self.settled {
                self.settled = true;
                outcome.changes.push(TaskChange::Settled);
            }
            return outcome;
        }
        if self.newest_frame.is_some_and(|newest| newest > started) {
            self.add_what_is_missing(answer, &mut outcome);
        } else {
            self.replace(answer, &mut outcome);
            self.incomplete.clear();
        }
        outcome
    }

    /// Applies a stream's event that arrived at `arrived`. The caller has checked that it is about this
    /// task.
    pub fn apply_event(&mut self, event: StreamEvent, arrived: Order) -> Outcome {
        let mut outcome = Outcome::default();
        let was = self.state();
        if was.is_terminal() {
            self.judge_after_terminal(&event, &mut outcome);
            return outcome;
        }
        self.newest_frame = Some(arrived);
        match event {
            StreamEvent::Task(task) => {
                self.replace(task, &mut outcome);
                self.incomplete.clear();
            }
            StreamEvent::Status(update) => {
                if self.task.context_id.is_none() && update.context_id.is_some() {
                    self.task.context_id = update.context_id;
                    outcome.changes.push(TaskChange::Details);
                }
                self.set_status(update.status, &mut outcome);
            }
            StreamEvent::Artifact(update) => self.apply_artifact(update, &mut outcome),
            StreamEvent::Message(message) => self.add_message(message, &mut outcome),
        }
        if self.state().is_terminal() {
            outcome.wants_read = true;
        }
        outcome
    }

    fn judge_after_terminal(&self, event: &StreamEvent, outcome: &mut Outcome) {
        let was = self.state();
        let said = match event {
            StreamEvent::Task(task) => Some(task.status.state),
            StreamEvent::Status(update) => Some(update.status.state),
            StreamEvent::Message(_) | StreamEvent::Artifact(_) => None,
        };
        match said {
            // A repeat of what is known.
            Some(said) if said == was => {}
            Some(_) | None => outcome.oddities.push(Oddity::AfterTerminal { state: was }),
        }
        outcome.wants_read = !self.settled;
    }

    fn set_status(&mut self, status: TaskStatus, outcome: &mut Outcome) {
        if self.task.status == status {
            return;
        }
        let from = self.state();
        let to = status.state;
        let superseded = std::mem::replace(&mut self.task.status, status);
        let visible = from != to || superseded.message != self.task.status.message;
        // The message of a superseded status becomes history, as the SDKs keep it.
        if let Some(message) = superseded.message {
            let now = self.task.status.message.as_ref();
            if now.is_none_or(|now| now.message_id != message.message_id) {
                self.add_message(message, outcome);
            }
        }
        // Only the word's spelling or the sender's clock: kept, but no event of the timeline.
        outcome.changes.push(if visible { TaskChange::Status { from, to } } else { TaskChange::Details });
    }

    fn apply_artifact(&mut self, update: ArtifactUpdate, outcome: &mut Outcome) {
        let ArtifactUpdate { artifact, append, .. } = update;
        let arriving = octets(&artifact.parts);
        if self.content + arriving > CONTENT_MAX {
            if !self.incomplete.contains(&artifact.artifact_id) {
                self.incomplete.push(artifact.artifact_id);
                outcome.oddities.push(Oddity::TooMuchContent);
            }
            return;
        }
        self.content += arriving;
        let known = self.task.artifacts.iter().position(|item| item.artifact_id == artifact.artifact_id);
        match (known, append) {
            (Some(index), true) => {
                let mine = &mut self.task.artifacts[index];
                let from_part = mine.parts.len();
                mine.parts.extend(artifact.parts);
                mine.metadata.extend(artifact.metadata);
                mine.name = mine.name.take().or(artifact.name);
                outcome.changes.push(TaskChange::ArtifactExtended { index, from_part });
            }
            (Some(index), false) => {
                self.incomplete.retain(|id| *id != artifact.artifact_id);
                self.content -= octets(&self.task.artifacts[index].parts);
                if self.task.artifacts[index] != artifact {
                    self.task.artifacts[index] = artifact;
                    outcome.changes.push(TaskChange::ArtifactReplaced { index });
                }
            }
            (None, append) => {
                if append {
                    outcome.oddities.push(Oddity::AppendWithoutStart);
                    outcome.wants_read = true;
                    self.incomplete.push(artifact.artifact_id.clone());
                }
                self.task.artifacts.push(artifact);
                outcome.changes.push(TaskChange::ArtifactReplaced { index: self.task.artifacts.len() - 1 });
            }
        }
    }

    fn add_message(&mut self, message: Message, outcome: &mut Outcome) {
        let known = !message.message_id.as_str().is_empty()
            && self.task.history.iter().rev().any(|item| item.message_id == message.message_id);
        if !known && self.task.history.len() < HISTORY_MAX {
            self.said += said_by(&message);
            self.task.history.push(message);
            outcome.changes.push(TaskChange::HistoryExtended { from: self.task.history.len() - 1 });
        }
    }

    /// Takes the answer for what is. An empty history is not believed: some servers leave it out.
    fn replace(&mut self, answer: Task, outcome: &mut Outcome) {
        let Task { id: _, context_id, status, artifacts, history, metadata, extra } = answer;
        let history = self.with_what_came_before(history);
        if !history.is_empty() && self.task.history != history {
            let grown =
                history.len() > self.task.history.len() && history.starts_with(self.task.history.as_slice());
            let from = self.task.history.len();
            self.said = said_in(&history);
            self.task.history = history;
            outcome.changes.push(if grown {
                TaskChange::HistoryExtended { from }
            } else {
                TaskChange::HistoryReplaced
            });
        }
        self.replace_artifacts(artifacts, outcome);
        if self.task.context_id != context_id && context_id.is_some() {
            self.task.context_id = context_id;
            outcome.changes.push(TaskChange::Details);
        }
        if self.task.metadata != metadata || self.task.extra != extra {
            self.task.metadata = metadata;
            self.task.extra = extra;
            outcome.changes.push(TaskChange::Details);
        }
        self.set_status(status, outcome);
    }

    /// A read gives the last messages only: those known from before its first one stay.
    fn with_what_came_before(&self, mut history: Vec<Message>) -> Vec<Message> {
        let before =
            history.first().filter(|first| !first.message_id.as_str().is_empty()).and_then(|first| {
                self.task.history.iter().position(|message| message.message_id == first.message_id)
            });
        if let Some(before) = before.filter(|before| *before > 0) {
            // What the answer places itself is where the answer says.
            let placed: std::collections::HashSet<&str> =
                history.iter().map(|message| message.message_id.as_str()).collect();
            let earlier = self.task.history.iter().take(before);
            let mut whole: Vec<Message> =
                earlier.filter(|message| !placed.contains(message.message_id.as_str())).cloned().collect();
            whole.append(&mut history);
            history = whole;
        }
        let excess = history.len().saturating_sub(HISTORY_MAX);
        history.drain(..excess);
        history
    }

    fn replace_artifacts(&mut self, artifacts: Vec<Artifact>, outcome: &mut Outcome) {
        if self.task.artifacts == artifacts {
            return;
        }
        self.content = content_of(&artifacts);
        let same_ids = self.task.artifacts.len() <= artifacts.len()
            && self
                .task
                .artifacts
                .iter()
                .zip(&artifacts)
                .all(|(mine, theirs)| mine.artifact_id == theirs.artifact_id);
        if !same_ids {
            self.task.artifacts = artifacts;
            outcome.changes.push(TaskChange::ArtifactsReplaced);
            return;
        }
        for (index, theirs) in artifacts.into_iter().enumerate() {
            match self.task.artifacts.get_mut(index) {
                Some(mine) if *mine == theirs => {}
                Some(mine) => {
                    *mine = theirs;
                    outcome.changes.push(TaskChange::ArtifactReplaced { index });
                }
                None => {
                    self.task.artifacts.push(theirs);
                    outcome.changes.push(TaskChange::ArtifactReplaced { index });
                }
            }
        }
    }

    /// The read was overtaken by frames: they are newer, so only what they lack is taken.
    fn add_what_is_missing(&mut self, answer: Task, outcome: &mut Outcome) {
        for artifact in answer.artifacts {
            let known = self.task.artifacts.iter().position(|item| item.artifact_id == artifact.artifact_id);
            match known {
                None => {
                    self.content += octets(&artifact.parts);
                    self.task.artifacts.push(artifact);
                    let index = self.task.artifacts.len() - 1;
                    outcome.changes.push(TaskChange::ArtifactReplaced { index });
                }
                // The read may hold the beginning that we lack but not the newest chunk: read once more.
                Some(_) if self.incomplete.contains(&artifact.artifact_id) => outcome.wants_read = true,
                Some(_) => {}
            }
        }
        for message in answer.history {
            self.add_message(message, outcome);
        }
        if self.task.context_id.is_none() && answer.context_id.is_some() {
            self.task.context_id = answer.context_id;
            outcome.changes.push(TaskChange::Details);
        }
    }
}

fn content_of(artifacts: &[Artifact]) -> usize {
    artifacts.iter().map(|artifact| octets(&artifact.parts)).sum()
}

fn said_in(history: &[Message]) -> usize {
    history.iter().map(said_by).sum()
}

/// The text of a message, and a little for its ids.
fn said_by(message: &Message) -> usize {
    octets(&message.parts) + 256
}

/// What a part takes, roughly: its text, or its JSON, and a little for the rest.
fn octets(parts: &[Part]) -> usize {
    parts
        .iter()
        .map(|part| match &part.content {
            PartContent::Text(text) | PartContent::Raw(text) | PartContent::Url(text) => text.len() + 64,
            PartContent::Data(value) | PartContent::Unknown(value) => value.to_string().len() + 64,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::dialect::read;

    fn task(value: Value) -> Task {
        read::task(value).unwrap()
    }

    fn event(value: Value) -> StreamEvent {
        read::stream_event(value).unwrap()
    }

    fn bare(state: &str) -> Task {
        task(json!({"id":"t","contextId":"c","status":{"state":state}}))
    }

    fn status(state: &str) -> StreamEvent {
        event(json!({"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":state}}}))
    }

    fn chunk(id: &str, append: bool, text: &str) -> StreamEvent {
        event(json!({"artifactUpdate":{"taskId":"t","append":append,
            "artifact":{"artifactId":id,"parts":[{"text":text}]}}}))
    }

    fn working() -> TaskRecord {
        TaskRecord::new(bare("working"), 1)
    }

    #[test]
    fn chunks_are_joined_replaced_and_never_doubled() {
        let mut record = working();
        for (order, (append, text)) in
            [(false, "Hel"), (true, "lo "), (true, "world")].into_iter().enumerate()
        {
            record.apply_event(chunk("a-1", append, text), 2 + order as Order);
        }
        assert_eq!(record.task.artifacts[0].text(), "Hello world");
        record.apply_event(chunk("a-1", false, "Hi"), 9);
        assert_eq!(record.task.artifacts[0].text(), "Hi");
    }

    #[test]
    fn a_chunk_without_a_beginning_is_kept_marked_and_read() {
        let mut record = working();
        let outcome = record.apply_event(chunk("a-2", true, "tail"), 2);
        assert!(outcome.wants_read);
        assert_eq!(record.incomplete, vec![ArtifactId::new("a-2")]);
        assert_eq!(record.task.artifacts[0].text(), "tail");
        let whole = task(json!({"id":"t","status":{"state":"working"},
            "artifacts":[{"artifactId":"a-2","parts":[{"text":"head and tail"}]}]}));
        record.apply_read(whole, 3);
        assert!(record.incomplete.is_empty(), "the read brought the whole artifact");
        assert_eq!(record.task.artifacts[0].text(), "head and tail");
    }

    #[test]
    fn a_chunk_after_a_snapshot_extends_it() {
        let mut record = working();
        record.apply_event(
            event(json!({"task":{"id":"t","status":{"state":"working"},
                "artifacts":[{"artifactId":"a-1","parts":[{"text":"Hello world"}]}]}})),
            2,
        );
        record.apply_event(chunk("a-1", true, "!"), 3);
        assert_eq!(record.task.artifacts[0].text(), "Hello world!");
    }

    #[test]
    fn a_final_state_never_becomes_non_terminal() {
        let mut record = working();
        record.apply_read(bare("completed"), 2);
        let outcome = record.apply_read(bare("working"), 3);
        assert_eq!(record.state(), TaskState::Completed);
        assert_eq!(
            outcome.oddities,
            vec![Oddity::Regression { from: TaskState::Completed, to: TaskState::Working }]
        );
        let outcome = record.apply_event(status("working"), 4);
        assert_eq!(record.state(), TaskState::Completed);
        assert_eq!(outcome.oddities, vec![Oddity::AfterTerminal { state: TaskState::Completed }]);
    }

    #[test]
    fn a_terminal_frame_is_shown_at_once_and_settled_by_the_first_read_after_it() {
        let mut record = working();
        let outcome = record.apply_event(status("completed"), 2);
        assert!(outcome.wants_read && !record.settled);
        assert_eq!(record.state(), TaskState::Completed);
        let answer = task(json!({"id":"t","contextId":"c","status":{"state":"completed"},
            "artifacts":[{"artifactId":"a","parts":[{"text":"answer"}]}]}));
        let outcome = record.apply_read(answer, 3);
        assert!(record.settled && outcome.changes.contains(&TaskChange::Settled));
        assert_eq!(record.task.artifacts[0].text(), "answer");
    }

    #[test]
    fn another_terminal_state_comes_by_read_alone() {
        let mut record = working();
        record.apply_event(status("completed"), 2);
        record.apply_event(status("canceled"), 3);
        assert_eq!(record.state(), TaskState::Completed, "a frame after the terminal one changes nothing");
        record.apply_read(bare("canceled"), 4);
        assert_eq!(record.state(), TaskState::Canceled, "the read decides");
    }

    #[test]
    fn an_older_reads_answer_that_arrives_last_is_ignored() {
        let mut record = working();
        record.apply_read(bare("input-required"), 5);
        assert!(record.apply_read(bare("submitted"), 4).stale);
        assert_eq!(record.state(), TaskState::InputRequired);
    }

    #[test]
    fn a_read_overtaken_by_frames_does_not_undo_them() {
        let mut record = working();
        record.apply_event(status("input-required"), 6);
        record.apply_read(bare("working"), 5);
        assert_eq!(record.state(), TaskState::InputRequired, "the frame came after the read was asked");
        record.apply_read(bare("working"), 7);
        assert_eq!(record.state(), TaskState::Working, "a later read replaces");
    }

    #[test]
    fn what_is_said_twice_changes_nothing() {
        let mut record = working();
        assert_eq!(record.apply_event(StreamEvent::Task(bare("working")), 2), Outcome::default());
        assert_eq!(record.apply_read(bare("working"), 3), Outcome::default());
        assert_eq!(record.apply_event(status("working"), 4), Outcome::default());
    }

    #[test]
    fn a_superseded_status_message_becomes_history_once() {
        let say = |n: u32| {
            event(json!({"statusUpdate":{"taskId":"t","status":{"state":"working",
                "message":{"messageId":format!("m-{n}"),"role":"agent","parts":[{"text":format!("step {n}")}]}}}}))
        };
        let mut record = working();
        for (order, n) in [1, 2, 2, 3].into_iter().enumerate() {
            record.apply_event(say(n), 2 + order as Order);
        }
        let history: Vec<_> = record.task.history.iter().map(|message| message.text()).collect();
        assert_eq!(history, ["step 1", "step 2"]);
    }

    #[test]
    fn an_empty_history_does_not_erase_what_was_heard() {
        let mut record = working();
        let said = task(json!({"id":"t","status":{"state":"working"},
            "history":[{"messageId":"m","role":"user","parts":[{"text":"hi"}]}]}));
        record.apply_read(said, 2);
        record.apply_read(bare("completed"), 3);
        assert_eq!(record.task.history.len(), 1);
    }

    #[test]
    fn a_read_that_reaches_less_far_back_does_not_erase_the_beginning() {
        let history = |ids: &[u32]| {
            let messages: Vec<Value> = ids
                .iter()
                .map(|id| json!({"messageId":format!("m-{id}"),"role":"agent","parts":[]}))
                .collect();
            task(json!({"id":"t","status":{"state":"working"},"history":messages}))
        };
        let mut record = working();
        record.apply_read(history(&[1, 2, 3]), 2);
        record.apply_read(history(&[3, 4]), 3);
        let ids: Vec<_> = record.task.history.iter().map(|message| message.message_id.to_string()).collect();
        assert_eq!(ids, ["m-1", "m-2", "m-3", "m-4"]);
    }

    #[test]
    fn no_agent_fills_the_memory_with_one_task() {
        let mut record = working();
        let big = "x".repeat(1 << 20);
        let mut oddities = Vec::new();
        for order in 0..40 {
            oddities.extend(record.apply_event(chunk("a", order > 0, &big), 2 + order).oddities);
        }
        assert!(record.task.artifacts[0].text().len() <= CONTENT_MAX);
        assert_eq!(oddities, vec![Oddity::TooMuchContent], "noted once");
        for order in 0..2_000_u64 {
            let update = event(json!({"statusUpdate":{"taskId":"t","status":{"state":"working",
                "message":{"messageId":format!("m-{order}"),"role":"agent","parts":[]}}}}));
            record.apply_event(update, 100 + order);
        }
        assert_eq!(record.task.history.len(), HISTORY_MAX);
    }

    /// What the record counts along is what counting anew gives.
    fn counts_itself(record: &TaskRecord) -> bool {
        let anew = TaskRecord::restored(record.task.clone(), record.settled, Vec::new());
        record.octets() == anew.octets()
    }

    /// An agent's run: the events it emits, and the task as it stands after each.
    fn agent_run(steps: &[(u8, bool)]) -> Vec<(StreamEvent, Task)> {
        let mut truth = working();
        let mut run = Vec::new();
        for (order, (what, append)) in steps.iter().enumerate() {
            let event = match what % 3 {
                0 => status(["working", "input-required", "submitted"][usize::from(*what) / 3 % 3]),
                1 => chunk(["a", "b"][usize::from(*what) / 3 % 2], *append, &format!("{order};")),
                _ => event(json!({"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"working",
                    "message":{"messageId":format!("m-{order}"),"role":"agent","parts":[{"text":"x"}]}}}})),
            };
            truth.apply_event(event.clone(), 2 + order as Order);
            run.push((event, truth.task.clone()));
        }
        let last = status("completed");
        truth.apply_event(last.clone(), Order::MAX);
        run.push((last, truth.task.clone()));
        run
    }

    proptest! {
        /// Whatever frames are lost, whenever reads are asked and however late their answers come, the
        /// record ends as the agent's task once the read after the end has been answered.
        #[test]
        fn the_merge_converges_whatever_the_order_of_stream_and_reads(
            steps in proptest::collection::vec((any::<u8>(), any::<bool>()), 0..20),
            schedule in proptest::collection::vec(any::<(bool, bool, u8)>(), 21),
        ) {
            let run = agent_run(&steps);
            let mut record = working();
            let mut order: Order = 1;
            let mut pending: Vec<(Order, Task, usize)> = Vec::new();
            for (index, (event, truth)) in run.iter().enumerate() {
                let (heard, asked, delay) = schedule[index];
                if asked {
                    order += 1;
                    pending.push((order, truth.clone(), index + usize::from(delay % 8)));
                }
                if heard {
                    order += 1;
                    record.apply_event(event.clone(), order);
                    prop_assert!(counts_itself(&record));
                }
                for (started, answer, due) in std::mem::take(&mut pending) {
                    if due <= index {
                        record.apply_read(answer, started);
                    } else {
                        pending.push((started, answer, due));
                    }
                }
            }
            let end = &run.last().unwrap().1;
            order += 1;
            record.apply_read(end.clone(), order);
            for (started, answer, _) in pending {
                record.apply_read(answer, started);
            }
            prop_assert!(record.settled);
            prop_assert!(counts_itself(&record));
            prop_assert_eq!(&record.task.status, &end.status);
            prop_assert_eq!(&record.task.artifacts, &end.artifacts);
            if !end.history.is_empty() {
                prop_assert_eq!(&record.task.history, &end.history);
            }
        }

        /// Once terminal and settled, nothing but a read that says another terminal state changes it.
        #[test]
        fn a_final_state_stays(words in proptest::collection::vec(0..9usize, 1..30)) {
            let mut record = working();
            record.apply_read(bare("failed"), 2);
            for (index, word) in words.iter().enumerate() {
                let state = TaskState::ALL[*word];
                let order = 3 + index as Order;
                if index % 2 == 0 {
                    record.apply_event(status(state.word()), order);
                } else if !state.is_terminal() {
                    record.apply_read(bare(state.word()), order);
                }
                prop_assert_eq!(record.state(), TaskState::Failed);
            }
        }
    }
}
