//! Who may ask, and whose tasks are whose.

use serde_json::json;
use taskbell_core::dialect::Dialect;
use taskbell_core::fault::FaultKind;

use crate::support::{Client, Method, agent_with_tokens, http};

async fn status(client: &Client) -> u16 {
    client.post("ListTasks", &json!({})).await.status().as_u16()
}

#[tokio::test]
async fn without_a_token_only_the_card_is_served() {
    let agent = agent_with_tokens(&["alpha"]).await;
    let client = Client::of(&agent, Dialect::V1);
    let refused = client.post("GetTask", &json!({"id": "t"})).await;
    assert_eq!(refused.status(), 401);
    assert_eq!(refused.headers()["www-authenticate"], "Bearer realm=\"demo-agent\"");
    let rest = http().get(format!("{}/rest/tasks", agent.base_url())).send().await.unwrap();
    assert_eq!(rest.status(), 401);
    assert_eq!(status(&Client::with_token(&agent, Dialect::V1, "beta")).await, 401);
    assert_eq!(status(&Client::with_token(&agent, Dialect::V1, "alpha")).await, 200);
    let card = http().get(format!("{}/.well-known/agent-card.json", agent.base_url())).send().await.unwrap();
    assert_eq!(card.status(), 200);
    let card = card.text().await.unwrap();
    assert!(card.contains("httpAuthSecurityScheme") && !card.contains("alpha"));
}

#[tokio::test]
async fn one_users_task_is_not_found_by_another() {
    let agent = agent_with_tokens(&["alpha", "beta"]).await;
    for dialect in [Dialect::V03, Dialect::V1] {
        let owner = Client::with_token(&agent, dialect, "alpha");
        let other = Client::with_token(&agent, dialect, "beta");
        let task = owner.send("steps=1 interval=3600").await;
        for method in [Method::Get, Method::Cancel, Method::Subscribe] {
            let refused = other.call(method, json!({"id": task.id})).await.unwrap_err();
            assert_eq!((refused.kind(), refused.code), (FaultKind::TaskNotFound, Some(-32001)));
        }
        assert_eq!(other.reply(&task, "hello").await.unwrap_err().kind(), FaultKind::TaskNotFound);
        owner.get(&task).await;
    }
}

#[tokio::test]
async fn a_replaced_token_is_refused_and_its_successor_has_the_same_tasks() {
    let agent = agent_with_tokens(&["old"]).await;
    let old = Client::with_token(&agent, Dialect::V1, "old");
    let task = old.send("steps=1 interval=3600").await;
    agent.set_tokens(vec!["new".to_owned(), "somebody-else".to_owned()]);
    assert_eq!(status(&old).await, 401);
    Client::with_token(&agent, Dialect::V1, "new").get(&task).await;
    let else_ = Client::with_token(&agent, Dialect::V1, "somebody-else");
    let refused = else_.call(Method::Get, json!({"id": task.id})).await.unwrap_err();
    assert_eq!(refused.kind(), FaultKind::TaskNotFound);
}
