//! A task on its way out: as JSON, as a document, as the files it made, or all of it in one archive.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;
use taskbell_core::export::{self, Facts};
use taskbell_core::task::Task;
use taskbell_core::text;

use crate::api::views::{ChangeView, ExportFormat, ExportView, ExportedFileView, TaskDetail, UtcTime};
use crate::archive;
use crate::error::EngineError;

/// What is exported of one task.
///
/// # Errors
/// When it cannot be packed.
pub fn export(detail: &TaskDetail, task: &Task, format: ExportFormat) -> Result<ExportView, EngineError> {
    let name = file_stem(detail);
    let json = || format!("{:#}\n", serde_json::to_value(detail).unwrap_or(Value::Null));
    let document = || export::markdown(task, &facts(detail));
    let (files, not_fetched) = match format {
        ExportFormat::Json => {
            (vec![text_file(format!("{name}.json"), "application/json", json())], Vec::new())
        }
        ExportFormat::Markdown => {
            (vec![text_file(format!("{name}.md"), "text/markdown", document())], Vec::new())
        }
        ExportFormat::Artifacts => {
            let made = export::artifacts(task);
            let files = made.files.into_iter().map(|file| octets_file(file.name, &file.octets));
            (files.collect(), made.not_fetched)
        }
        ExportFormat::Zip => {
            let made = export::artifacts(task);
            let (json, document) = (json(), document());
            let paths: Vec<String> =
                made.files.iter().map(|file| format!("{name}/artifacts/{}", file.name)).collect();
            let texts = [(format!("{name}/task.json"), json), (format!("{name}/task.md"), document)];
            let texts = texts.iter().map(|(path, words)| (path.as_str(), words.as_bytes()));
            let artifacts = made.files.iter().zip(&paths);
            let artifacts = artifacts.map(|(file, path)| (path.as_str(), file.octets.as_slice()));
            let packed = archive::pack(texts.chain(artifacts))?;
            let file = ExportedFileView {
                media_type: "application/zip".to_owned(),
                ..octets_file(format!("{name}.zip"), &packed)
            };
            (vec![file], made.not_fetched)
        }
    };
    Ok(ExportView { files, not_fetched })
}

/// `AGENT-` and the beginning of the id.
fn file_stem(detail: &TaskDetail) -> String {
    let id: String = detail.summary.id.as_str().chars().take(16).collect();
    let id = export::file_name(&id.replace(['/', '\\', '.'], "_")).unwrap_or_else(|| "task".to_owned());
    format!("{}-{id}", detail.summary.agent)
}

fn text_file(name: String, media_type: &str, text: String) -> ExportedFileView {
    ExportedFileView { name, media_type: media_type.to_owned(), text: Some(text), base64: None }
}

/// No type that anything would open by itself.
fn octets_file(name: String, octets: &[u8]) -> ExportedFileView {
    ExportedFileView {
        name,
        media_type: "application/octet-stream".to_owned(),
        text: None,
        base64: Some(BASE64.encode(octets)),
    }
}

fn facts(detail: &TaskDetail) -> Facts {
    let task = &detail.summary;
    let title = if task.title.is_empty() { task.task.to_string() } else { task.title.clone() };
    let mut facts = vec![("task", task.task.to_string()), ("state", task.state.word().to_owned())];
    if let Some(confirmed) = &task.last_confirmed {
        facts.push(("last confirmed", format!("{} by {}", confirmed.at, confirmed.by)));
    }
    facts.extend(task.context_id.iter().map(|context| ("context", context.clone())));
    facts.push(("first known", task.created_at.to_string()));
    facts.extend(task.terminal_at.map(|at| ("ended", at.to_string())));
    Facts { title, facts, timeline: detail.timeline.iter().map(happening).collect() }
}

/// A change as one line.
fn happening(change: &ChangeView) -> String {
    let word = |name: &str| change.body.get(name).and_then(Value::as_str).unwrap_or_default();
    let what = match change.kind.as_str() {
        "gap" => {
            let at = |name: &str| {
                let ms = change.body.get(name).and_then(Value::as_i64);
                ms.map(|ms| UtcTime::from_ms(ms).to_string()).unwrap_or_default()
            };
            format!("not connected from {} to {}: {}", at("fromMs"), at("toMs"), word("reason"))
        }
        "artifact" => format!("artifact {}", [word("name"), word("artifactId")].concat()),
        "status" | "task" => [word("state"), word("text")].join(" "),
        kind => [kind, word("mode"), word("verdict"), word("role"), word("text")].join(" "),
    };
    text::one_line(&format!("{} {} by {}", change.at, what, change.source), 400)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use serde_json::json;
    use taskbell_core::dialect::read;

    use super::*;

    fn exported(format: ExportFormat) -> ExportView {
        let task = read::task(json!({"id": "../t/1", "status": {"state": "completed"}, "artifacts": [
            {"artifactId": "a", "name": "../../report.md", "parts": [{"text": "done"}]},
            {"artifactId": "b", "parts": [{"raw": "aGk=", "filename": "x.bin"}, {"url": "https://h.test/x"}]},
        ]}));
        let at = "2026-01-01T00:00:00.000Z";
        let mut detail = json!({
            "task": "demo/../t/1", "agent": "demo", "id": "../t/1", "contextId": "c", "title": "make a report",
            "state": "completed", "rawState": "", "following": {"mode": "ended", "since": at, "attempt": 0},
            "lastConfirmed": {"at": at, "by": "poll"}, "createdAt": at, "updatedAt": at, "source": "send",
            "artifacts": [], "history": [], "status": {}, "callbacks": [], "registrations": [], "metadata": {},
            "timeline": [
                {"seq": 1, "at": at, "source": "stream", "kind": "gap", "fromMs": 0, "toMs": 60000,
                 "reason": "stream ended"},
                {"seq": 2, "at": at, "source": "poll", "kind": "status", "state": "completed", "text": "all done"}],
        });
        for flag in ["needsYou", "needsSignIn", "settled", "pinned", "archived", "muted", "hasNote"] {
            detail[flag] = json!(false);
        }
        export(&serde_json::from_value(detail).unwrap(), &task.unwrap(), format).unwrap()
    }

    #[test]
    fn an_archive_has_the_task_the_document_and_the_files_in_one_folder() {
        let view = exported(ExportFormat::Zip);
        let [file] = view.files.as_slice() else { panic!("one file: {view:?}") };
        assert_eq!((file.name.as_str(), file.media_type.as_str()), ("demo-___t_1.zip", "application/zip"));
        let octets = BASE64.decode(file.base64.as_ref().unwrap()).unwrap();
        let mut archive = zip::ZipArchive::new(std::io::Cursor::new(octets)).unwrap();
        let names: Vec<String> = archive.file_names().map(|name| name.unwrap().into_owned()).collect();
        let folder = "demo-___t_1";
        assert_eq!(
            names,
            ["task.json", "task.md", "artifacts/report.md", "artifacts/x.bin"]
                .map(|name| format!("{folder}/{name}"))
        );
        let mut octets = Vec::new();
        archive.by_name("demo-___t_1/artifacts/x.bin").unwrap().read_to_end(&mut octets).unwrap();
        assert_eq!(octets, b"hi");
        assert_eq!(view.not_fetched, ["https://h.test/x"]);
    }

    #[test]
    fn a_document_says_when_nobody_listened() {
        let view = exported(ExportFormat::Markdown);
        let document = view.files[0].text.as_ref().unwrap();
        assert!(document.starts_with("# make a report\n"), "{document}");
        let gap = "not connected from 1970-01-01T00:00:00.000Z to 1970-01-01T00:01:00.000Z: stream ended";
        assert!(document.contains(gap), "{document}");
        assert!(document.contains("completed all done by poll"), "{document}");
    }

    #[test]
    fn each_file_of_the_task_comes_by_itself_too() {
        let view = exported(ExportFormat::Artifacts);
        let names: Vec<_> = view.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["report.md", "x.bin"]);
        assert!(exported(ExportFormat::Json).files[0].text.as_ref().unwrap().contains("make a report"));
    }
}
