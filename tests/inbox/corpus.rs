//! Every row of `hostile/callbacks.jsonl` against a running engine, octet by octet.

use std::time::Duration;

use serde_json::Value;
use taskbell_tests::{Taskbell, wait_until};

use crate::{
    PATIENCE,
    scene::{Look, Registration, Scene, Stock},
    wire::{Answer, Wire, exchange},
};

/// An idle connection may rest for so long before it is ended.
const REST: Duration = Duration::from_secs(35);

fn corpus(name: &str) -> String {
    let folder = std::env::var("TASKBELL_HOSTILE")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/hostile").to_owned());
    let path = format!("{folder}/{name}");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn registrations() -> Vec<Registration> {
    let fixtures: Value = serde_json::from_str(&corpus("callbacks_fixtures.json")).expect("JSON");
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let read = |row: &Value| Registration {
        path: row["path"].as_str().expect("a path").trim_start_matches("/a2a/callbacks/").to_owned(),
        token: text(&row["token"]),
        bearer: text(&row["bearer"]),
        basic: text(&row["basic"]),
        task: text(&row["task"]),
        all: row["require"] == "all",
        removed: row["deleted"] == true,
    };
    fixtures["registrations"].as_array().expect("a list").iter().map(read).collect()
}

fn latin1(text: &str) -> Vec<u8> {
    text.chars().map(|character| u8::try_from(u32::from(character)).expect("an octet")).collect()
}

/// The pieces of a row's request, with the pauses before them.
fn pieces(row: &Value) -> Vec<(Vec<u8>, Duration)> {
    if let Some(raw) = row["raw"].as_str() {
        return vec![(latin1(raw), Duration::ZERO)];
    }
    if let Some(send) = row["send"].as_array() {
        let piece = |piece: &Value| {
            let pause = Duration::from_millis(piece[1].as_u64().expect("milliseconds"));
            (latin1(piece[0].as_str().expect("octets")), pause)
        };
        return send.iter().map(piece).collect();
    }
    let generate = &row["gen"];
    let text = |name: &str| generate[name].as_str().unwrap_or_default().to_owned();
    let mut repeat = text("repeat");
    for (name, expansion) in generate["expand"].as_object().into_iter().flatten() {
        let times = usize::try_from(expansion[1].as_u64().expect("a count")).expect("a count");
        repeat = repeat.replace(name, &expansion[0].as_str().expect("text").repeat(times));
    }
    let count = usize::try_from(generate["count"].as_u64().expect("a count")).expect("a count");
    vec![(latin1(&format!("{}{}{}", text("prefix"), repeat.repeat(count), text("suffix"))), Duration::ZERO)]
}

/// What a row's answer and the store after it do not fulfil.
struct Findings(Vec<String>);

impl Findings {
    fn expect(&mut self, row: &Value, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.0.push(format!("{} {}: {}", row["id"], row["name"], what()));
        }
    }
}

/// Runs the rows that are wanted, in order; what they do not fulfil.
async fn run_all(scene: &Scene, wanted: impl Fn(&Value) -> bool) -> (usize, Vec<String>) {
    let look = scene.look();
    let mut findings = Findings(Vec::new());
    let mut known = Stock::default();
    let mut rows = 0;
    for line in corpus("callbacks.jsonl").lines() {
        let row: Value = serde_json::from_str(line).expect("JSON");
        if wanted(&row) {
            rows += 1;
            run(scene, &look, &row, &mut known, &mut findings).await;
        }
    }
    (rows, findings.0)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_hostile_callback_is_answered_and_kept_as_the_table_says() {
    let scene = Scene::start(Taskbell::setup(), "completed", &registrations()).await;
    let reads_before = scene.teller.reads();
    let (rows, findings) = run_all(&scene, |_| true).await;
    assert!(rows >= 147, "{rows} rows");
    assert!(findings.is_empty(), "{} of {rows}:\n{}", findings.len(), findings.join("\n"));
    scene.settled(PATIENCE).await;
    let reads = scene.teller.reads() - reads_before;
    let dirty = u64::try_from(scene.look().stock().dirty).expect("a count");
    assert!(reads > 0 && reads <= dirty, "{reads} reads for a task that was due {dirty} times");
    let task = scene.taskbell.cli(&["show", "a/task-10"]).await.ok();
    assert_eq!(task["state"], "completed", "no callback changes a task");
    assert!(!scene.taskbell.log().contains("panicked"), "{}", scene.taskbell.log());
    peak_is_bounded(&scene);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inbox_that_does_not_look_at_proofs_is_seen_by_the_table() {
    let setup = Taskbell::setup().rehearsal().env("TASKBELL_FAULT", "skips-proof");
    let scene = Scene::start(setup, "completed", &registrations()).await;
    let (rows, findings) = run_all(&scene, |row| row["class"] == "credentials").await;
    assert!(findings.len() * 2 > rows, "{} of {rows} rows noticed:\n{}", findings.len(), findings.join("\n"));
}

async fn run(scene: &Scene, look: &Look, row: &Value, known: &mut Stock, findings: &mut Findings) {
    let expect = &row["expect"];
    let half_close = expect["half_close"] == true;
    let responses = usize::try_from(expect["responses"].as_u64().unwrap_or(1)).expect("a count");
    let (answers, mut wire) = exchange(scene.inbox(), &pieces(row), half_close, responses, REST).await;
    check_answers(row, &answers, responses, findings);
    for answer in &answers {
        let open = answer.headers.iter().any(|(name, _)| name.starts_with("access-control-"));
        findings.expect(row, !open, || format!("{:?} lets a page read it", answer.headers));
    }
    if expect["connection"] == "close" || expect["no_second_response"] == true {
        let ended = wire.ends(REST).await;
        findings.expect(row, ended, || "the connection stays, or more came".to_owned());
    }
    check_store(row, look, known, responses, findings).await;
    let more = row["then"].as_array().cloned().unwrap_or_default();
    for (request, (status, stored)) in more.iter().zip(
        expect["then_status"]
            .as_array()
            .into_iter()
            .flatten()
            .zip(expect["then_stored"].as_array().into_iter().flatten()),
    ) {
        let mut next = Wire::connect(scene.inbox()).await;
        next.send(&latin1(request.as_str().expect("a request"))).await;
        let answer = next.answer(REST).await;
        let got = answer.as_ref().map(|answer| u64::from(answer.status));
        findings.expect(row, got == status.as_u64(), || format!("then {answer:?}"));
        let then =
            serde_json::json!({"id": row["id"], "name": "then", "expect": {"stored": stored, "poke": true}});
        check_store(&then, look, known, 1, findings).await;
    }
}

fn check_answers(row: &Value, answers: &[Answer], responses: usize, findings: &mut Findings) {
    let allowed = row["expect"]["status"].as_array().expect("a list");
    let is = |word: &str| allowed.iter().any(|status| status == word);
    if answers.is_empty() {
        findings.expect(row, is("closed"), || format!("closed without an answer, not {allowed:?}"));
        return;
    }
    findings.expect(row, answers.len() == responses, || format!("{} answers", answers.len()));
    for answer in answers {
        let fits = allowed.iter().any(|status| status.as_u64() == Some(u64::from(answer.status)))
            || (is("200_then_closed") && answer.status == 200);
        findings.expect(row, fits, || {
            format!("{} {:?}, not {allowed:?}", answer.status, String::from_utf8_lossy(&answer.body))
        });
        if answer.status == 405 {
            findings.expect(row, answer.header("allow") == Some("POST"), || "405 without Allow".to_owned());
        }
    }
}

async fn check_store(row: &Value, look: &Look, known: &mut Stock, requests: usize, findings: &mut Findings) {
    let requests = i64::try_from(requests).expect("a count");
    let expect = &row["expect"];
    let mut wanted = *known;
    match expect["stored"].as_str() {
        Some("new") => {
            wanted.rows += requests;
            wanted.arrivals += requests;
        }
        Some("duplicate") => wanted.arrivals += requests,
        Some("quarantined") => wanted.quarantined += 1,
        other => assert_eq!(other, Some("none"), "{row}"),
    }
    // A registration whose task is not known yet makes none due; the table has no such row.
    if expect["poke"] == true {
        wanted.dirty += requests;
    }
    let limit = Duration::from_secs(10);
    let mut found = look.stock();
    if found != wanted && expect["poke"] == true {
        // What is refused makes its task due a moment after the answer.
        let end = tokio::time::Instant::now() + limit;
        while found != wanted && tokio::time::Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(20)).await;
            found = look.stock();
        }
    }
    findings.expect(row, found == wanted, || format!("stored {found:?}, not {wanted:?}"));
    *known = found;
}

/// The whole table, megabytes of it included, takes little memory.
fn peak_is_bounded(scene: &Scene) {
    let status = std::fs::read_to_string(format!("/proc/{}/status", scene.taskbell.ready().pid));
    let Ok(status) = status else {
        println!("skipped: the peak of memory is not told here");
        return;
    };
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!(kib < 150 * 1024, "{kib} KiB at the peak");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_address_and_a_wrong_secret_are_told_the_same_octets() {
    let scene = Scene::start(Taskbell::setup(), "working", &registrations()).await;
    let mut answers = Vec::new();
    for (path, secret) in [
        ("cbbearer000000000000000001", "wrong"),
        ("cbunknown00000000000000009", "wrong"),
        ("cbgone00000000000000000005", "wrong"),
    ] {
        let authorization = format!("Bearer {secret}");
        let headers = [("Authorization", authorization.as_str())];
        let mut wire = Wire::connect(scene.inbox()).await;
        wire.send(&crate::wire::callback("inbox.example.com", path, &headers, "{}")).await;
        let mut answer = wire.answer(PATIENCE).await.expect("an answer");
        answer.headers.retain(|(name, _)| name != "date");
        answers.push(answer);
    }
    assert_eq!(answers[0].status, 401);
    assert!(answers.iter().all(|answer| answer == &answers[0]), "{answers:?}");
    let counted = wait_until(PATIENCE, "the wrong secrets are counted", async || {
        let sql = "SELECT coalesce(sum(count), 0) FROM refusals WHERE reason = 'proof'";
        Some(scene.look().number(sql)).filter(|count| *count > 0)
    })
    .await;
    assert_eq!(counted, 2, "of registrations that there are");
}
