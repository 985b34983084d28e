//! What is written down of requests: who, what, how long, and nothing of the content.

use serde_json::json;
use taskbell_core::dialect::{Binding, Dialect};
use taskbell_core::state::TaskState;
use taskbell_engine::store::gateway_traffic::{NamedTraffic, list};

use crate::support::{Words, World};

async fn rows(world: &World, count: usize) -> Vec<NamedTraffic> {
    // Written behind the answer: they come within the next commits.
    loop {
        let rows =
            world.engine().engine().store().read(|connection| list(connection, None, 100)).await.unwrap();
        if rows.len() >= count {
            return rows;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn each_request_is_a_row_and_a_stream_is_one_when_it_ends() {
    let world = World::new().await;
    let client = world.client("editor").await;
    let words = Words(Dialect::V03);
    let params = json!({"message": words.message("steps=1 interval=0.01 say=canary-content")});
    let heard = client.stream("message/stream", params, None).await.rest().await;
    let task = heard[0].result()["id"].as_str().unwrap().to_owned();
    assert_eq!(client.error("GetTask", json!({"id": "none"})).await, -32001);
    let rows = rows(&world, 2).await;
    let [read, stream] = rows.as_slice() else { panic!("two rows: {rows:?}") };
    assert_eq!((stream.client.as_str(), stream.agent.as_str()), ("editor", "demo"));
    assert_eq!(
        (stream.method.as_str(), stream.dialect, stream.binding),
        ("SendStreamingMessage", Dialect::V03, Binding::JsonRpc)
    );
    assert_eq!(
        (stream.task_id.as_ref().unwrap().as_str(), stream.state),
        (task.as_str(), Some(TaskState::Completed))
    );
    assert!(stream.octets_in > 50 && stream.octets_out > 500 && stream.error_code.is_none(), "{stream:?}");
    assert_eq!((read.method.as_str(), read.error_code, read.dialect), ("GetTask", Some(-32001), Dialect::V1));
    assert!(read.octets_out > 50, "an error is an answer with a length: {read:?}");
    assert!(!format!("{rows:?}").contains("canary-content"));
}

#[tokio::test]
async fn a_task_that_a_client_may_not_see_is_none_of_its_requests() {
    let world = World::new().await;
    let (owner, other) = (world.client("owner").await, world.client("other").await);
    let task = owner.start(Words(Dialect::V1), "steps=1 interval=900").await;
    for method in ["GetTask", "CancelTask", "SubscribeToTask", "tasks/get", "tasks/resubscribe"] {
        assert_eq!(other.error(method, json!({"id": task})).await, -32001, "{method}");
    }
    owner.call("GetTask", json!({"id": task})).await;
    let rows = rows(&world, 7).await;
    for row in &rows {
        let is_owners = row.client == "owner";
        assert_eq!(row.task_id.is_some(), is_owners, "{row:?}");
        assert_eq!(row.task_known, is_owners, "{row:?}");
        assert!(row.octets_out > 0, "{row:?}");
    }
}
