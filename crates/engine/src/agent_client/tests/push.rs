//! The calls about push configs.

use taskbell_core::push_config::{PushAuthentication, PushConfig};

use super::raw::{RawAgent, answer, json_answer};
use super::*;
use crate::agent_client::CallFault;

fn config() -> PushConfig {
    PushConfig {
        id: Some("p-1".into()),
        url: "http://127.0.0.1:7421/a2a/callbacks/x".into(),
        notification_token: Some(Secret::new("hush-token")),
        authentication: Some(PushAuthentication {
            scheme: "bearer".into(),
            credentials: Some(Secret::new("hush-credential")),
        }),
        metadata: Map::new(),
    }
}

#[tokio::test]
async fn a_refusal_that_quotes_the_request_is_told_without_the_secrets() {
    let quoting = json!({"jsonrpc":"2.0","id":1,"error":{"code":-32602,
        "message":"cannot call back with hush-token and hush-credential"}});
    let agent = RawAgent::always(json_answer(&quoting)).await;
    let error = client(&agent.url).create_push_config(&task_id(), &config()).await.unwrap_err();
    assert!(error.to_string().contains("REDACTED and REDACTED"), "{error}");
    assert!(!format!("{error:?}").contains("hush"));
    let agent = RawAgent::always(answer("502 Bad Gateway", "text/plain", b"upstream said hush-token")).await;
    let error = client(&agent.url).create_push_config(&task_id(), &config()).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hush"));
}

#[tokio::test]
async fn every_page_of_a_list_is_read_and_a_page_that_comes_again_ends_it() {
    let agent = RawAgent::with_result(json!({"configs":[{"id":"a"}],"nextPageToken":"again"})).await;
    let listed = client(&agent.url).push_configs(&task_id()).await.unwrap();
    assert_eq!(listed.len(), 2, "the page of the token that was asked for, once");
    assert_eq!(agent.request(1).json()["params"]["pageToken"], "again");
}

#[tokio::test]
async fn deleting_succeeds_without_a_result_and_with_an_empty_204() {
    let silent = RawAgent::always(json_answer(&json!({"jsonrpc":"2.0","id":1}))).await;
    client(&silent.url).delete_push_config(&task_id(), "p-1").await.unwrap();
    assert_eq!(silent.request(0).json()["method"], "DeleteTaskPushNotificationConfig");
    let agent = RawAgent::always(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()).await;
    let rest = AgentClient::new(
        Http::new(HttpSettings::default()).unwrap(),
        AgentEndpoint { binding: Binding::Rest, ..endpoint(&agent.url) },
        Arc::new(FixedCredential(None)),
    );
    rest.delete_push_config(&task_id(), "p 1").await.unwrap();
    assert_eq!(agent.request(0).line, "DELETE /a2a/tasks/t-1/pushNotificationConfigs/p%201 HTTP/1.1");
}

#[tokio::test]
async fn an_agent_without_push_says_so_by_name() {
    let refusing = json!({"jsonrpc":"2.0","id":1,"error":{"code":-32003,"message":"no push"}});
    let agent = RawAgent::always(json_answer(&refusing)).await;
    let error = client(&agent.url).create_push_config(&task_id(), &config()).await.unwrap_err();
    assert_eq!(error.code(), "push_not_supported");
    assert!(matches!(error.fault, CallFault::Remote { .. }));
}
