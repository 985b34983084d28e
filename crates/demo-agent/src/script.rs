//! What a task does: read from the text of its first message, and advanced one act at a time.
//!
//! Pure. A text with `key=value` words is a script; any other text gets a short friendly run.
//!
//! | word | meaning | default |
//! |---|---|---|
//! | `steps=N` | working updates | 5 |
//! | `interval=S` | seconds between them, fractions allowed | 0.2 |
//! | `ask=K` | input-required after step K; a message with the task's id goes on | off |
//! | `auth=K`, `authwait=S` | auth-required after step K; goes on by itself after S seconds, at 0 on a message | off, 2 |
//! | `cut=K` | after step K every event stream of the task is broken off, the task goes on | off |
//! | `fail=yes\|raise` | ends failed · ends as if the agent had crashed | no |
//! | `reject=yes` | ends rejected before any step | no |
//! | `artifact=no`, `chunks=N` | no artifact · in how many chunks it comes | yes, 3 |
//! | `kind=text\|file\|url\|data`, `body=TEXT` | the artifact's parts; `body` percent-encoded, JSON for `data` | text |
//! | `say=TEXT` | text of the last status, or of the plain reply, percent-encoded | done |
//! | `reply=message` | a plain message instead of a task | task |
//! | `first=status` | no task object at the start of a stream | task |
//! | `pad=BYTES` | pads every step's text | 0 |
//! | `hold=S` | seconds before anything happens | 0 |
//! | `nocancel=yes` | refuses to be canceled | no |
//! | `final=no` | 0.3: `final` stays false on the event that ends a turn | yes |
//!
//! ```text
//! Begin ─▶ Pause ─▶ Step ─▶ Cut ─▶ Ask ─▶ Auth ─▶ Pause …      Finish ─▶ Chunk ⇄ ChunkPause ─▶ Done ─▶ Over
//!    └─▶ Over (rejected)               └─▶ AuthWait ─▶ AuthDone ─▶ Pause
//! ```

use std::time::Duration;

use base64::Engine as _;
use serde::{Deserialize, Serialize};
use serde_json::json;
use taskbell_core::state::TaskState;
use taskbell_core::task::{Part, PartContent};

/// No script asks for more, so that a number with too many digits is no way to fill memory.
const MAX_PAD: usize = 4 << 20;
const MAX_CHUNKS: u32 = 10_000;
/// Longest wait of any kind.
const MAX_WAIT: Duration = Duration::from_secs(7 * 24 * 3600);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Complete,
    Fail,
    Raise,
    Reject,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    Text,
    File,
    Url,
    Data,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    Task,
    Message,
}

/// A script as read. Numbers of steps count from 1; 0 is off.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    pub steps: u32,
    pub interval: Duration,
    pub ask: u32,
    pub auth: u32,
    pub auth_wait: Duration,
    pub cut: u32,
    pub ending: Ending,
    /// 0: no artifact.
    pub chunks: u32,
    pub content: Content,
    pub body: Option<String>,
    pub say: Option<String>,
    pub reply: Reply,
    /// Whether a stream starts with the task object.
    pub task_first: bool,
    pub pad: usize,
    pub hold: Duration,
    pub cancelable: bool,
    /// Whether 0.3's `final` is set on the interrupted event that ends a turn.
    pub final_on_interrupt: bool,
    /// The text of a friendly run; none for a script of words.
    friendly: Option<String>,
}

const SENTENCES: [&str; 4] = [
    "Reading your message.",
    "Looking for what you might need.",
    "Checking the answer twice.",
    "Writing it down for you.",
];

impl Script {
    /// Reads a script. A word that makes no sense is skipped, as the other test agents do.
    pub fn read(text: &str) -> Self {
        let mut script = Self {
            steps: 5,
            interval: Duration::from_millis(200),
            ask: 0,
            auth: 0,
            auth_wait: Duration::from_secs(2),
            cut: 0,
            ending: Ending::Complete,
            chunks: 3,
            content: Content::Text,
            body: None,
            say: None,
            reply: Reply::Task,
            task_first: true,
            pad: 0,
            hold: Duration::ZERO,
            cancelable: true,
            final_on_interrupt: true,
            friendly: None,
        };
        let mut known_words = 0;
        let mut artifact = true;
        for (key, value) in text.split_whitespace().filter_map(|word| word.split_once('=')) {
            let number = || value.parse::<u32>().ok();
            let yes = value == "yes";
            match key {
                "steps" => set(&mut script.steps, number()),
                "interval" => set(&mut script.interval, seconds(value)),
                "ask" => set(&mut script.ask, number()),
                "auth" => set(&mut script.auth, number()),
                "authwait" => set(&mut script.auth_wait, seconds(value)),
                "cut" => set(&mut script.cut, number()),
                "fail" if yes => script.ending = Ending::Fail,
                "fail" if value == "raise" => script.ending = Ending::Raise,
                "fail" => {}
                "reject" if yes => script.ending = Ending::Reject,
                "reject" => {}
                "artifact" => artifact = yes,
                "chunks" => set(&mut script.chunks, number().map(|chunks| chunks.min(MAX_CHUNKS))),
                "kind" => match value {
                    "text" => script.content = Content::Text,
                    "file" => script.content = Content::File,
                    "url" => script.content = Content::Url,
                    "data" => script.content = Content::Data,
                    _ => {}
                },
                "body" => script.body = Some(percent_decode(value)).filter(|text| !text.is_empty()),
                "say" => script.say = Some(percent_decode(value)).filter(|text| !text.is_empty()),
                "reply" if value == "message" => script.reply = Reply::Message,
                "reply" => {}
                "first" => script.task_first = value != "status",
                "pad" => set(&mut script.pad, value.parse().ok().map(|pad: usize| pad.min(MAX_PAD))),
                "hold" => set(&mut script.hold, seconds(value)),
                "nocancel" => script.cancelable = !yes,
                "final" => script.final_on_interrupt = value != "no",
                _ => continue,
            }
            known_words += 1;
        }
        if !artifact {
            script.chunks = 0;
        }
        if known_words == 0 {
            script.steps = SENTENCES.len() as u32;
            script.interval = Duration::from_millis(700);
            script.say = Some("Here is your answer.".to_owned());
            script.friendly = Some(text.trim().to_owned());
        }
        script
    }

    /// The text of a plain reply.
    pub fn plain_reply(&self, asked: &str) -> String {
        self.say.clone().unwrap_or_else(|| format!("plain reply: {asked}"))
    }

    /// The artifact's name.
    pub fn artifact_name(&self) -> &'static str {
        if self.friendly.is_some() { "answer.txt" } else { "result.txt" }
    }

    fn step_text(&self, step: u32) -> String {
        let mut text = match (&self.friendly, SENTENCES.get(step.saturating_sub(1) as usize)) {
            (Some(_), Some(sentence)) => (*sentence).to_owned(),
            _ => format!("step {step}/{}", self.steps),
        };
        if text.len() < self.pad {
            text.push(' ');
            text.push_str(&"x".repeat(self.pad.saturating_sub(text.len())));
        }
        text
    }

    fn part(&self, chunk: u32) -> Part {
        let described = |content, filename: &str| Part {
            media_type: Some("text/plain".to_owned()),
            filename: Some(filename.to_owned()),
            ..Part::new(content)
        };
        let body = self.body.as_deref();
        match self.content {
            Content::File => {
                let text = body.map_or_else(|| format!("file {chunk}/{}", self.chunks), str::to_owned);
                let raw = base64::engine::general_purpose::STANDARD.encode(text);
                described(PartContent::Raw(raw), "output.txt")
            }
            Content::Url => {
                described(PartContent::Url("https://example.com/output.txt".to_owned()), "output.txt")
            }
            Content::Data => {
                let given = body.and_then(|text| taskbell_core::json::parse_str(text).ok());
                let data =
                    given.unwrap_or_else(|| json!({ "key": "value", "chunk": chunk, "of": self.chunks }));
                Part::new(PartContent::Data(data))
            }
            Content::Text => match (&self.friendly, body) {
                (Some(asked), None) => Part::text(self.friendly_chunk(asked, chunk)),
                (_, Some(body)) => Part::text(body),
                (None, None) => Part::text(format!("chunk {chunk}/{};", self.chunks)),
            },
        }
    }

    fn friendly_chunk(&self, asked: &str, chunk: u32) -> String {
        match chunk {
            1 => {
                let quoted: String = asked.chars().take(200).collect();
                let dots = if quoted.len() < asked.len() { "…" } else { "" };
                format!("You wrote: “{quoted}{dots}”\n\n")
            }
            2 => "This agent only pretends to work, but the task was real: ".to_owned(),
            _ => "it was sent, followed and finished like any other.\n".to_owned(),
        }
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

fn seconds(text: &str) -> Option<Duration> {
    let duration = Duration::try_from_secs_f64(text.parse().ok()?).ok()?;
    Some(duration.min(MAX_WAIT))
}

/// A stray percent sign stands for itself; octets that are no UTF-8 become U+FFFD.
fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let digit = |place: usize| bytes.get(place).and_then(|byte| char::from(*byte).to_digit(16));
        match (*byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, _, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Where a task stands in its script: what is to be done next. Kept in the state file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    Begin,
    Pause { step: u32 },
    Step { step: u32 },
    Cut { step: u32 },
    Ask { step: u32 },
    Auth { step: u32 },
    AuthWait { step: u32 },
    AuthDone { step: u32 },
    Finish,
    Chunk { chunk: u32 },
    ChunkPause { chunk: u32 },
    Done,
    Over,
}

/// Whether an interrupted task goes on by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    Continues,
    Ends,
}

/// One thing a task does.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    Wait(Duration),
    /// Working, or a terminal state.
    Status {
        state: TaskState,
        text: String,
    },
    Interrupt {
        state: TaskState,
        text: String,
        turn: Turn,
    },
    Artifact {
        part: Part,
        append: bool,
        last: bool,
    },
    /// Break off every stream of the task.
    CutStreams,
    /// End as if the agent had crashed.
    Crash,
    /// Nothing is left to do.
    Rest,
}

/// The next act from `place`, and where the task stands after it.
pub fn advance(script: &Script, place: Place) -> (Act, Place) {
    let status = |state, text: &str| Act::Status { state, text: text.to_owned() };
    let mut place = place;
    // Every turn of this loop moves on along the diagram, so it ends.
    loop {
        place = match place {
            Place::Begin if script.ending == Ending::Reject => {
                return (status(TaskState::Rejected, "rejected by script"), Place::Over);
            }
            Place::Begin => Place::Pause { step: 1 },
            Place::Pause { step } if step > script.steps => Place::Finish,
            Place::Pause { step } => return (Act::Wait(script.interval), Place::Step { step }),
            Place::Step { step } => {
                return (status(TaskState::Working, &script.step_text(step)), Place::Cut { step });
            }
            Place::Cut { step } if script.cut == step => return (Act::CutStreams, Place::Ask { step }),
            Place::Cut { step } => Place::Ask { step },
            Place::Ask { step } if script.ask == step => {
                let text = "need input: continue?".to_owned();
                let act = Act::Interrupt { state: TaskState::InputRequired, text, turn: Turn::Ends };
                return (act, Place::Pause { step: step + 1 });
            }
            Place::Ask { step } => Place::Auth { step },
            Place::Auth { step } if script.auth == step => {
                let (turn, next) = if script.auth_wait.is_zero() {
                    (Turn::Ends, Place::Pause { step: step + 1 })
                } else {
                    (Turn::Continues, Place::AuthWait { step })
                };
                let text = "need auth".to_owned();
                return (Act::Interrupt { state: TaskState::AuthRequired, text, turn }, next);
            }
            Place::Auth { step } => Place::Pause { step: step + 1 },
            Place::AuthWait { step } => return (Act::Wait(script.auth_wait), Place::AuthDone { step }),
            Place::AuthDone { step } => {
                let act = status(TaskState::Working, "auth obtained out of band");
                return (act, Place::Pause { step: step + 1 });
            }
            Place::Finish => match script.ending {
                Ending::Raise => return (Act::Crash, Place::Over),
                Ending::Fail => return (status(TaskState::Failed, "failed by script"), Place::Over),
                Ending::Complete | Ending::Reject if script.chunks == 0 => Place::Done,
                Ending::Complete | Ending::Reject => Place::Chunk { chunk: 1 },
            },
            Place::Chunk { chunk } => {
                let act = Act::Artifact {
                    part: script.part(chunk),
                    append: chunk > 1,
                    last: chunk >= script.chunks,
                };
                return (act, Place::ChunkPause { chunk });
            }
            Place::ChunkPause { chunk } => {
                let next =
                    if chunk < script.chunks { Place::Chunk { chunk: chunk + 1 } } else { Place::Done };
                return (Act::Wait(script.interval.min(Duration::from_millis(100))), next);
            }
            Place::Done => {
                let text = script.say.as_deref().unwrap_or("done");
                return (status(TaskState::Completed, text), Place::Over);
            }
            Place::Over => return (Act::Rest, Place::Over),
        };
    }
}

impl Place {
    /// Where a task goes on when a message answers its interruption: it need not wait any longer.
    pub fn after_answer(self) -> Self {
        match self {
            Self::AuthWait { step } | Self::AuthDone { step } => Self::Pause { step: step + 1 },
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All acts but the waits, as short words.
    fn story(text: &str) -> Vec<String> {
        let script = Script::read(text);
        let mut place = Place::Begin;
        let mut words = Vec::new();
        loop {
            let (act, next) = advance(&script, place);
            place = next;
            words.push(match act {
                Act::Wait(_) => continue,
                Act::Rest => return words,
                Act::Status { state, text } => format!("{}: {text}", state.word()),
                Act::Interrupt { state, turn, .. } => format!("{} {turn:?}", state.word()),
                Act::Artifact { append, last, part } => format!("{:?} {append} {last}", part.content),
                Act::CutStreams => "cut".to_owned(),
                Act::Crash => "crash".to_owned(),
            });
        }
    }

    #[test]
    fn a_script_runs_its_steps_then_its_chunks_then_completes() {
        assert_eq!(
            story("steps=2 chunks=2 body=a%20b say=bye"),
            [
                "working: step 1/2",
                "working: step 2/2",
                "Text(\"a b\") false false",
                "Text(\"a b\") true true",
                "completed: bye"
            ]
        );
    }

    #[test]
    fn interruptions_and_cuts_come_after_their_step() {
        assert_eq!(
            story("steps=3 cut=1 ask=2 auth=3 artifact=no"),
            [
                "working: step 1/3",
                "cut",
                "working: step 2/3",
                "input-required Ends",
                "working: step 3/3",
                "auth-required Continues",
                "working: auth obtained out of band",
                "completed: done"
            ]
        );
        assert!(story("steps=1 auth=1 authwait=0").contains(&"auth-required Ends".to_owned()));
    }

    #[test]
    fn a_task_may_end_badly_in_three_ways() {
        assert_eq!(story("steps=3 reject=yes"), ["rejected: rejected by script"]);
        assert_eq!(story("steps=0 fail=yes"), ["failed: failed by script"]);
        assert_eq!(story("steps=0 fail=raise"), ["crash"]);
    }

    #[test]
    fn free_text_gets_a_friendly_run_that_quotes_it() {
        let story = story("please look at a=b for me");
        assert_eq!(story.first().map(String::as_str), Some("working: Reading your message."));
        assert!(story.iter().any(|word| word.contains("please look at a=b for me")), "{story:?}");
        assert_eq!(story.last().map(String::as_str), Some("completed: Here is your answer."));
    }

    #[test]
    fn an_answered_wait_is_over() {
        assert_eq!(Place::AuthWait { step: 2 }.after_answer(), Place::Pause { step: 3 });
        assert_eq!(Place::Pause { step: 3 }.after_answer(), Place::Pause { step: 3 });
    }

    #[test]
    fn words_that_make_no_sense_are_skipped_and_nothing_panics() {
        let script = Script::read(
            "steps=-1 interval=nan pad=99999999999999 interval=-3 hold=1e300 body=%zz%ff kind=x",
        );
        assert_eq!((script.steps, script.interval), (5, Duration::from_millis(200)));
        assert_eq!((script.pad, script.body.as_deref()), (MAX_PAD, Some("%zz\u{fffd}")));
    }

    #[test]
    fn padding_fills_a_step_to_the_octet() {
        assert_eq!(Script::read("pad=1000").step_text(1).len(), 1000);
    }
}
