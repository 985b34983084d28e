//! What agents wrote, from a task's parts to the tree that the page shows.
//!
//! Nothing is fetched: a file by address is its address, an image its words. The whole answer is bounded.

use taskbell_core::ids::ArtifactId;
use taskbell_core::markdown::{self, Budget, judge};
use taskbell_core::task::{Message, Part, PartContent, Role, Task};
use taskbell_core::text;

use crate::api::views::{
    BlockView, RenderedArtifact, RenderedMessage, RenderedView, RoleView, octets, rich_blocks,
};

/// Octets and nodes of one answer.
const BUDGET: Budget = Budget { octets: 4 << 20, nodes: 60_000 };
/// Of one piece of data.
const DATA_MAX: usize = 256 << 10;
const NAME: usize = 200;

/// Artifacts first: they are the result, and take of the budget first.
pub fn rendered(task: &Task, incomplete: &[ArtifactId]) -> RenderedView {
    let mut budget = BUDGET;
    let artifacts = task
        .artifacts
        .iter()
        .map(|artifact| RenderedArtifact {
            artifact_id: artifact.artifact_id.to_string(),
            name: artifact.name.as_deref().map(|name| text::one_line(name, NAME)),
            incomplete: incomplete.contains(&artifact.artifact_id),
            // Adjacent text parts are chunks of one text.
            blocks: parts(&artifact.parts, "", &mut budget),
        })
        .collect();
    let asked_now = task.status.message.iter().filter(|message| {
        let id = message.message_id.as_str();
        id.is_empty() || task.history.iter().all(|known| known.message_id.as_str() != id)
    });
    // The newest first takes of the budget, for it is what somebody came to read.
    let mut conversation: Vec<RenderedMessage> = task
        .history
        .iter()
        .chain(asked_now)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .map(|message| rendered_message(message, &mut budget))
        .collect();
    conversation.reverse();
    RenderedView { artifacts, conversation }
}

fn rendered_message(message: &Message, budget: &mut Budget) -> RenderedMessage {
    RenderedMessage {
        role: match message.role {
            Role::User => RoleView::User,
            Role::Agent | Role::Unspecified => RoleView::Agent,
        },
        message_id: message.message_id.to_string(),
        blocks: parts(&message.parts, "\n\n", budget),
    }
}

/// Runs of text as one document each, with `between` between their parts; everything else as an item.
fn parts(parts: &[Part], between: &str, budget: &mut Budget) -> Vec<BlockView> {
    let mut blocks = Vec::new();
    let mut run: Option<String> = None;
    for part in parts {
        match &part.content {
            PartContent::Text(words) if is_markdown(part.media_type.as_deref()) => match &mut run {
                Some(run) => {
                    run.push_str(between);
                    run.push_str(words);
                }
                None => run = Some(words.clone()),
            },
            PartContent::Text(_)
            | PartContent::Raw(_)
            | PartContent::Url(_)
            | PartContent::Data(_)
            | PartContent::Unknown(_) => {
                end_run(&mut run, &mut blocks, budget);
                blocks.extend(item(part, budget));
            }
        }
    }
    end_run(&mut run, &mut blocks, budget);
    blocks
}

fn end_run(run: &mut Option<String>, blocks: &mut Vec<BlockView>, budget: &mut Budget) {
    if let Some(words) = run.take() {
        blocks.extend(rich_blocks(markdown::parse_within(&words, budget)));
    }
}

fn is_markdown(media_type: Option<&str>) -> bool {
    let essence =
        media_type.map(|whole| whole.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    matches!(essence.as_deref(), None | Some("" | "text/plain" | "text/markdown"))
}

/// One part that is no prose, and the mark of a cut where it does not fit.
fn item(part: &Part, budget: &mut Budget) -> Vec<BlockView> {
    let media_type = part.media_type.as_deref().map(|word| text::one_line(word, NAME));
    let name = part.filename.as_deref().map(file_name).filter(|name| !name.is_empty());
    budget.nodes = budget.nodes.saturating_sub(1);
    match &part.content {
        PartContent::Text(words) => {
            let (text, left) = within(words, budget);
            let code = BlockView::Code { language: None, text: text::lines(text) };
            with_cut(code, left)
        }
        // Base64 has three octets in four characters.
        PartContent::Raw(base64) => {
            let characters = base64.trim_end_matches('=').len();
            vec![BlockView::File {
                name,
                media_type,
                octets: octets(characters / 4 * 3 + characters % 4 * 3 / 4),
            }]
        }
        PartContent::Url(url) => {
            let link = judge(url, Vec::new());
            vec![BlockView::Url {
                url: text::one_line(&link.url, 2_000),
                host: link.host,
                inert: link.inert.map(Into::into),
                cautions: link.cautions.into_iter().map(Into::into).collect(),
                name,
                media_type,
            }]
        }
        PartContent::Data(value) | PartContent::Unknown(value) => {
            let whole = format!("{value:#}");
            let (text, left) = within(&whole, budget);
            let data = BlockView::Data { media_type, text: text::lines(text), octets: octets(whole.len()) };
            with_cut(data, left)
        }
    }
}

fn with_cut(block: BlockView, left: usize) -> Vec<BlockView> {
    let cut = (left > 0).then(|| BlockView::Cut { octets: octets(left) });
    std::iter::once(block).chain(cut).collect()
}

/// As much of a text as fits, and how much does not.
fn within<'a>(whole: &'a str, budget: &mut Budget) -> (&'a str, usize) {
    let mut end = whole.len().min(DATA_MAX).min(budget.octets);
    while !whole.is_char_boundary(end) {
        end -= 1;
    }
    budget.octets -= end;
    let (text, rest) = whole.split_at(end);
    (text, rest.len())
}

/// A name to look at, never a path: what stands behind the last separator.
fn file_name(given: &str) -> String {
    text::one_line(given.rsplit(['/', '\\']).next().unwrap_or_default(), NAME)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use taskbell_core::ids::{MessageId, TaskId};
    use taskbell_core::state::TaskState;
    use taskbell_core::task::{Artifact, TaskStatus};

    use super::*;

    fn task(artifacts: Vec<Artifact>, history: Vec<Message>) -> Task {
        Task {
            id: TaskId::new("t"),
            context_id: None,
            status: TaskStatus::new(TaskState::Working),
            artifacts,
            history,
            metadata: serde_json::Map::new(),
            extra: serde_json::Map::new(),
        }
    }

    fn artifact(parts: Vec<Part>) -> Artifact {
        Artifact::new(ArtifactId::new("a"), parts)
    }

    fn part(content: PartContent, filename: &str, media_type: &str) -> Part {
        let mut part = Part::new(content);
        part.filename = Some(filename.to_owned());
        part.media_type = Some(media_type.to_owned());
        part
    }

    #[test]
    fn chunks_are_one_document_and_files_are_items_that_nobody_fetches() {
        let parts = vec![
            Part::text("**one "),
            Part::text("two**"),
            part(
                PartContent::Raw("aGFsbG8=".into()),
                "../../.config/autostart/evil\u{202e}.desktop",
                "text/x",
            ),
            part(PartContent::Url("http://169.254.169.254/latest/".into()), "C:\\x\\y.png", "image/png"),
            Part::new(PartContent::Data(json!({"__proto__": {"a": 1}}))),
            part(PartContent::Text("<script>".into()), "x", "text/html"),
        ];
        let view = rendered(&task(vec![artifact(parts)], Vec::new()), &[ArtifactId::new("a")]);
        let shown = serde_json::to_value(&view.artifacts[0]).unwrap();
        assert_eq!(
            shown["blocks"],
            json!([
                {"kind": "paragraph", "content": [{"kind": "strong", "content": [{"kind": "text", "text": "one two"}]}]},
                {"kind": "file", "name": "evil.desktop", "mediaType": "text/x", "octets": 5},
                {"kind": "url", "url": "http://169.254.169.254/latest/", "host": "169.254.169.254", "inert": null,
                 "cautions": ["local-address"], "name": "y.png", "mediaType": "image/png"},
                {"kind": "data", "mediaType": null, "text": "{\n  \"__proto__\": {\n    \"a\": 1\n  }\n}", "octets": 35},
                {"kind": "code", "language": null, "text": "<script>"},
            ])
        );
        assert_eq!(shown["incomplete"], true);
    }

    #[test]
    fn the_conversation_ends_with_what_the_agent_says_now_once() {
        let message =
            |id: &str, role, text: &str| Message::new(MessageId::new(id), role, vec![Part::text(text)]);
        let mut task =
            task(Vec::new(), vec![message("1", Role::User, "do"), message("2", Role::Agent, "why?")]);
        task.status.message = Some(message("2", Role::Agent, "why?"));
        assert_eq!(rendered(&task, &[]).conversation.len(), 2, "the same message is one message");
        task.status.message = Some(message("3", Role::Agent, "really?"));
        let told = rendered(&task, &[]).conversation;
        let ids: Vec<&str> = told.iter().map(|message| message.message_id.as_str()).collect();
        assert_eq!(ids, ["1", "2", "3"]);
        assert_eq!((told[0].role, told[2].role), (RoleView::User, RoleView::Agent));
    }

    #[test]
    fn an_answer_is_bounded_whatever_the_task_holds() {
        let long = artifact(vec![Part::text("a *b* ".repeat(100_000))]);
        let data = artifact(vec![Part::new(PartContent::Data(json!("x".repeat(1 << 20))))]);
        let view =
            rendered(&task(vec![long.clone(), data, long.clone(), long.clone(), long], Vec::new()), &[]);
        let json = serde_json::to_string(&view).unwrap();
        assert!(json.len() < 16 << 20, "{}", json.len());
        assert!(matches!(view.artifacts[1].blocks.last(), Some(BlockView::Cut { .. })));
        assert!(matches!(view.artifacts[4].blocks.last(), Some(BlockView::Cut { .. })));
    }
}
