use std::collections::BTreeSet;

use serde_json::Value;

use crate::api::document;

fn json() -> Value {
    serde_json::to_value(document()).unwrap()
}

fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            all.push((method.to_uppercase(), path.clone(), operation.clone()));
        }
    }
    all
}

fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| match value {
            Value::String(text) if name == "$ref" => {
                found.insert(text);
            }
            other => references(other, found),
        }),
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => (),
    }
}

#[test]
fn every_reference_of_the_document_leads_somewhere() {
    let document = json();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
}

#[test]
fn every_operation_has_its_own_name_a_typed_answer_and_typed_errors() {
    let document = json();
    let mut names = BTreeSet::new();
    for (method, path, operation) in operations(&document) {
        let name = operation["operationId"].as_str().unwrap().to_owned();
        assert!(names.insert(name.clone()), "{name} names two operations");
        let responses = operation["responses"].as_object().unwrap();
        for (status, response) in responses {
            let typed = response["content"]
                .as_object()
                .is_some_and(|content| content.values().all(|body| body["schema"].is_object()));
            assert!(typed || status == "204", "{method} {path} {status} has no type");
        }
        let errors = responses.keys().any(|status| status == "default" || status.starts_with('4'));
        assert!(errors || path.ends_with("/openapi.json"), "{method} {path} names no error");
    }
}

/// The operations that clients rely on.
const OPERATIONS: &str = "
GET /api/v1/agents
POST /api/v1/agents
DELETE /api/v1/agents/{agent}
GET /api/v1/agents/{agent}
PUT /api/v1/agents/{agent}/credential
PUT /api/v1/agents/{agent}/dialect
POST /api/v1/agents/{agent}/import
GET /api/v1/agents/{agent}/report
POST /api/v1/agents/{agent}/send
POST /api/v1/agents/{agent}/test
POST /api/v1/agents/{agent}/watch
GET /api/v1/changes
GET /api/v1/clients
POST /api/v1/clients
DELETE /api/v1/clients/{name}
GET /api/v1/deliveries
GET /api/v1/deliveries/{id}
POST /api/v1/deliveries/{id}/retry
GET /api/v1/diagnostics
PUT /api/v1/focus
GET /api/v1/gateway/traffic
GET /api/v1/health
GET /api/v1/health/history
POST /api/v1/health/keyring/probe
POST /api/v1/health/self-test
POST /api/v1/health/store/backup
POST /api/v1/health/store/check
GET /api/v1/hello
GET /api/v1/inbox
POST /api/v1/inbox/test
GET /api/v1/inbox/{id}
POST /api/v1/inbox/{id}/replay
GET /api/v1/notices
POST /api/v1/notices/test
GET /api/v1/openapi.json
POST /api/v1/page-login
DELETE /api/v1/quiet
GET /api/v1/quiet
PUT /api/v1/quiet
GET /api/v1/reachability
POST /api/v1/reachability/test
POST /api/v1/reconcile
GET /api/v1/registrations
POST /api/v1/session
GET /api/v1/settings
GET /api/v1/settings/export
POST /api/v1/settings/import
DELETE /api/v1/settings/{key}
GET /api/v1/settings/{key}
PUT /api/v1/settings/{key}
GET /api/v1/targets
POST /api/v1/targets
DELETE /api/v1/targets/{id}
POST /api/v1/targets/{id}/pause
POST /api/v1/targets/{id}/resume
GET /api/v1/tasks
GET /api/v1/tasks/resolve
DELETE /api/v1/tasks/{agent}/{taskId}
GET /api/v1/tasks/{agent}/{taskId}
PUT /api/v1/tasks/{agent}/{taskId}/archive
POST /api/v1/tasks/{agent}/{taskId}/cancel
GET /api/v1/tasks/{agent}/{taskId}/changes
GET /api/v1/tasks/{agent}/{taskId}/export
PUT /api/v1/tasks/{agent}/{taskId}/follow
PUT /api/v1/tasks/{agent}/{taskId}/mute
PUT /api/v1/tasks/{agent}/{taskId}/note
PUT /api/v1/tasks/{agent}/{taskId}/pin
DELETE /api/v1/tasks/{agent}/{taskId}/registrations
GET /api/v1/tasks/{agent}/{taskId}/registrations
POST /api/v1/tasks/{agent}/{taskId}/registrations
POST /api/v1/tasks/{agent}/{taskId}/registrations/rotate
GET /api/v1/tasks/{agent}/{taskId}/rendered
POST /api/v1/tasks/{agent}/{taskId}/reply
DELETE /api/v1/tasks/{agent}/{taskId}/snooze
POST /api/v1/tasks/{agent}/{taskId}/snooze
GET /api/v1/views
DELETE /api/v1/views/{screen}/{name}
PUT /api/v1/views/{screen}/{name}
GET /api/v1/window/calls
POST /api/v1/window/link
POST /api/v1/window/raise
";

#[test]
fn the_document_lists_every_operation_that_clients_rely_on() {
    let mut listed: Vec<String> =
        operations(&json()).into_iter().map(|(method, path, _)| format!("{method} {path}")).collect();
    let mut expected: Vec<&str> = OPERATIONS.trim().lines().collect();
    listed.sort();
    expected.sort();
    assert_eq!(listed, expected);
}

#[tokio::test]
async fn every_operation_of_the_document_is_answered_by_the_router_and_no_other_method() {
    let served = super::Served::start().await;
    let document = json();
    let all = operations(&document);
    for (method, path, _) in &all {
        let real = path
            .replace("{agent}", "nobody")
            .replace("{taskId}", "a%2Fb")
            .replace("{key}", "no.such")
            .replace("{screen}", "tasks")
            .replace("{name}", "nobody");
        let streams =
            path.ends_with("/window/calls") || path.ends_with("/changes") && !path.contains("{taskId}");
        let real = if streams { format!("{real}?after=x") } else { real };
        let answer = served.call(&format!("{method} {real}"), "{}").await;
        if answer.status >= 400 {
            let code = answer.code();
            assert!(
                !matches!(code.as_str(), "no_such_endpoint" | "no_such_method" | "internal"),
                "{method} {path}: {code}"
            );
        }
        for other in ["GET", "POST", "PUT", "DELETE", "PATCH"] {
            if all.iter().any(|(known, at, _)| known == other && at == path) {
                continue;
            }
            let answer = served.call(&format!("{other} {real}"), "{}").await;
            assert_eq!(answer.code(), "no_such_method", "{other} {path} is not in the document");
        }
    }
}

#[tokio::test]
async fn the_document_is_served() {
    let served = super::Served::start().await;
    assert_eq!(served.call("GET /api/v1/openapi.json", "").await.json(), json());
}
