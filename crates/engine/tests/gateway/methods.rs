//! Every method, in both dialects, in front of an agent that is spoken to in either.

use serde_json::{Value, json};
use taskbell_core::dialect::Dialect;

use crate::support::{BOTH, Words, World, artifact_text};

/// The client's words, and those that the agent is spoken to in.
fn pairs() -> impl Iterator<Item = (Words, Dialect)> {
    BOTH.into_iter().flat_map(|words| [Dialect::V03, Dialect::V1].map(|agents| (words, agents)))
}

#[tokio::test]
async fn a_blocking_send_answers_with_the_task_at_its_end() {
    let world = World::new().await;
    let client = world.client("editor").await;
    for (words, agents) in pairs() {
        world.pin(agents).await;
        let method = words.method("message/send", "SendMessage");
        let params = json!({"message": words.message("steps=2 interval=0.05 chunks=2")});
        let result = client.call(method, params).await;
        let task = words.task(&result);
        assert_eq!(task["status"]["state"], json!(words.state("completed")), "{words:?} {agents:?}");
        let parts = task["artifacts"][0]["parts"].as_array().unwrap();
        let text: String = parts.iter().map(|part| part["text"].as_str().unwrap()).collect();
        assert_eq!(text, "chunk 1/2;chunk 2/2;", "{words:?} {agents:?}");
        assert_eq!(task.get("kind").is_some(), words.0 == Dialect::V03);
    }
}

#[tokio::test]
async fn a_send_that_does_not_wait_is_followed_to_its_end() {
    let world = World::new().await;
    let client = world.client("editor").await;
    for (words, agents) in pairs() {
        world.pin(agents).await;
        let task = client.start(words, "steps=2 interval=0.05").await;
        let mut events = client.subscribe(words, &task, None).await;
        let heard = events.rest().await;
        assert_eq!(heard[0].kind(), "task", "{words:?} {agents:?}");
        assert_eq!(heard.last().unwrap().state(), Some(words.state("completed")));
        assert_eq!(client.state(&task).await, "completed");
    }
}

#[tokio::test]
async fn a_stream_begins_with_the_task_and_loses_nothing() {
    let world = World::new().await;
    let client = world.client("editor").await;
    for (words, agents) in pairs() {
        world.pin(agents).await;
        let method = words.method("message/stream", "SendStreamingMessage");
        let params = json!({"message": words.message("steps=3 interval=0.02 chunks=3")});
        let heard = client.stream(method, params, None).await.rest().await;
        let kinds: Vec<&str> = heard.iter().map(|event| event.kind()).collect();
        assert_eq!(
            kinds,
            ["task", "status", "status", "status", "artifact", "artifact", "artifact", "status"],
            "{words:?} {agents:?}"
        );
        assert_eq!(artifact_text(&heard), "chunk 1/3;chunk 2/3;chunk 3/3;");
        for event in &heard {
            let text = event.data.clone();
            assert_eq!(
                text.contains("TASK_STATE_") || text.contains("ROLE_"),
                words.0 == Dialect::V1 && event.kind() != "artifact",
                "{text}"
            );
        }
        let is_final = |event: &crate::support::Heard| event.result()["final"] == json!(true);
        if words.0 == Dialect::V03 {
            assert!(
                is_final(heard.last().unwrap()) && heard.iter().filter(|event| is_final(event)).count() == 1
            );
        }
    }
}

#[tokio::test]
async fn a_direct_answer_is_passed_on() {
    let world = World::new().await;
    let client = world.client("editor").await;
    for (words, agents) in pairs() {
        world.pin(agents).await;
        let message = words.message("reply=message say=hello");
        let method = words.method("message/send", "SendMessage");
        let result = client.call(method, json!({"message": message})).await;
        let message = if words.0 == Dialect::V03 { &result } else { &result["message"] };
        assert_eq!(message["parts"][0]["text"], json!("hello"), "{words:?} {agents:?}");
        let method = words.method("message/stream", "SendStreamingMessage");
        let params = json!({"message": words.message("reply=message say=hello")});
        let heard = client.stream(method, params, None).await.rest().await;
        assert_eq!(heard.iter().map(|event| event.kind()).collect::<Vec<_>>(), ["message"]);
    }
}

#[tokio::test]
async fn a_question_ends_the_turn_and_its_answer_goes_on() {
    let world = World::new().await;
    let client = world.client("editor").await;
    for (words, agents) in pairs() {
        world.pin(agents).await;
        let method = words.method("message/stream", "SendStreamingMessage");
        let params = json!({"message": words.message("steps=3 interval=0.02 ask=1")});
        let heard = client.stream(method, params, None).await.rest().await;
        let last = heard.last().unwrap();
        assert_eq!(last.state(), Some(words.state("input-required")), "{words:?} {agents:?}");
        let task = words.task(&heard[0].result())["id"].as_str().unwrap().to_owned();

        // Somebody else listens across question and answer.
        let mut listener = client.subscribe(words, &task, None).await;
        assert_eq!(listener.event().await.kind(), "task");
        let mut answer = words.message("yes");
        answer["taskId"] = json!(task);
        let method = words.method("message/send", "SendMessage");
        let result = client.call(method, json!({"message": answer})).await;
        assert_eq!(
            words.task(&result)["status"]["state"],
            json!(words.state("completed")),
            "{words:?} {agents:?}"
        );
        let rest = listener.rest().await;
        assert_eq!(rest.last().unwrap().state(), Some(words.state("completed")));
    }
}

#[tokio::test]
async fn a_reply_by_stream_shows_what_comes_of_it() {
    let world = World::new().await;
    let client = world.client("editor").await;
    for (words, agents) in pairs() {
        world.pin(agents).await;
        let send = words.method("message/send", "SendMessage");
        let result = client
            .call(send, json!({"message": words.message("steps=2 interval=0.02 ask=1 chunks=2")}))
            .await;
        let task = words.task(&result);
        assert_eq!(task["status"]["state"], json!(words.state("input-required")));
        let mut answer = words.message("yes");
        answer["taskId"] = task["id"].clone();
        let stream = words.method("message/stream", "SendStreamingMessage");
        let heard = client.stream(stream, json!({"message": answer}), None).await.rest().await;
        assert_eq!(heard[0].kind(), "task", "{words:?} {agents:?}");
        assert_eq!(heard.last().unwrap().state(), Some(words.state("completed")));
        assert_eq!(artifact_text(&heard), "chunk 1/2;chunk 2/2;");
        assert_eq!(world.agent().counters().sends("m-1") % 2, 0, "nothing was sent twice");
    }
}

#[tokio::test]
async fn a_task_is_read_with_as_much_history_as_was_asked_for() {
    let world = World::new().await;
    let client = world.client("editor").await;
    for words in BOTH {
        let method = words.method("message/send", "SendMessage");
        let result = client.call(method, json!({"message": words.message("steps=4 interval=0.01")})).await;
        let id = words.task(&result)["id"].clone();
        let method = words.method("tasks/get", "GetTask");
        let length = |task: &Value| task["history"].as_array().map_or(0, Vec::len);
        let whole = client.call(method, json!({"id": id})).await;
        assert!(length(&whole) > 2, "{whole}");
        let two = client.call(method, json!({"id": id, "historyLength": 2})).await;
        assert_eq!(length(&two), 2);
        assert_eq!(two["history"][1], whole["history"][length(&whole) - 1], "the last ones");
        assert_eq!(length(&client.call(method, json!({"id": id, "historyLength": 0})).await), 0);
    }
}

#[tokio::test]
async fn a_cancellation_reaches_the_agent_and_a_second_one_is_refused() {
    let world = World::new().await;
    let client = world.client("editor").await;
    for (words, agents) in pairs() {
        world.pin(agents).await;
        let task = client.start(words, "steps=100 interval=0.1").await;
        let mut listener = client.subscribe(words, &task, None).await;
        let method = words.method("tasks/cancel", "CancelTask");
        let result = client.call(method, json!({"id": task})).await;
        assert_eq!(result["status"]["state"], json!(words.state("canceled")), "{words:?} {agents:?}");
        assert_eq!(listener.rest().await.last().unwrap().state(), Some(words.state("canceled")));
        assert_eq!(client.error(method, json!({"id": task})).await, -32002);
    }
}

#[tokio::test]
async fn an_ended_task_is_told_and_closed_in_0_3_and_refused_in_1_0() {
    let world = World::new().await;
    let client = world.client("editor").await;
    let [old, new] = BOTH;
    let method = old.method("message/send", "SendMessage");
    let result = client.call(method, json!({"message": old.message("steps=1 interval=0.01")})).await;
    let id = result["id"].as_str().unwrap();
    let heard = client.subscribe(old, id, None).await.rest().await;
    assert_eq!(heard.iter().map(|event| event.kind()).collect::<Vec<_>>(), ["task"]);
    assert_eq!(heard[0].state().as_deref(), Some("completed"));
    assert_eq!(client.error(new.method("", "SubscribeToTask"), json!({"id": id})).await, -32004);
    let mut answer = new.message("more");
    answer["taskId"] = json!(id);
    assert_eq!(client.error("SendMessage", json!({"message": answer})).await, -32004);
}

#[tokio::test]
async fn tasks_are_listed_in_pages_the_latest_first_also_of_an_old_agent() {
    let world = World::new().await;
    world.pin(Dialect::V03).await;
    let client = world.client("editor").await;
    let words = Words(Dialect::V1);
    let mut ids = Vec::new();
    for _ in 0..5 {
        let result =
            client.call("SendMessage", json!({"message": words.message("steps=1 interval=0.01")})).await;
        ids.push(result["task"]["id"].as_str().unwrap().to_owned());
    }
    ids.reverse();
    let mut listed = Vec::new();
    let mut token = String::new();
    loop {
        let page = client.call("ListTasks", json!({"pageSize": 2, "pageToken": token})).await;
        assert_eq!((&page["pageSize"], &page["totalSize"]), (&json!(2), &json!(5)), "{page}");
        for task in page["tasks"].as_array().unwrap() {
            assert!(task.get("artifacts").is_none() && task.get("history").is_none(), "{task}");
            listed.push(task["id"].as_str().unwrap().to_owned());
        }
        token = page["nextPageToken"].as_str().unwrap().to_owned();
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(listed, ids);
    let page = client.call("ListTasks", json!({"status": "TASK_STATE_WORKING"})).await;
    assert_eq!((&page["tasks"], &page["totalSize"]), (&json!([]), &json!(0)));
    let page = client.call("ListTasks", json!({"includeArtifacts": true, "historyLength": 1})).await;
    assert!(page["tasks"][0]["artifacts"].is_array() && page["tasks"][0]["history"].is_array());
    assert_eq!(client.error("ListTasks", json!({"pageToken": "x"})).await, -32602);
    assert_eq!(client.error("ListTasks", json!({"statusTimestampAfter": "soon"})).await, -32602);
    let future = json!({"statusTimestampAfter": "2999-01-01T00:00:00Z"});
    assert_eq!(client.call("ListTasks", future).await["totalSize"], json!(0));
}

#[tokio::test]
async fn the_extended_card_of_an_agent_without_one_is_refused_by_name() {
    let world = World::new().await;
    let client = world.client("editor").await;
    assert_eq!(client.error("GetExtendedAgentCard", Value::Null).await, -32004);
    assert_eq!(client.error("agent/getAuthenticatedExtendedCard", Value::Null).await, -32007);
}

#[tokio::test]
async fn an_agent_whose_stream_begins_with_a_status_begins_with_the_task_here() {
    let world = World::new().await;
    let client = world.client("editor").await;
    for (words, agents) in pairs() {
        world.pin(agents).await;
        let method = words.method("message/stream", "SendStreamingMessage");
        let params = json!({"message": words.message("first=status steps=2 interval=0.05 chunks=2")});
        let heard = client.stream(method, params, None).await.rest().await;
        let kinds: Vec<&str> = heard.iter().map(|event| event.kind()).collect();
        assert_eq!(
            kinds,
            ["task", "status", "status", "artifact", "artifact", "status"],
            "{words:?} {agents:?}"
        );
        let task = words.task(&heard[0].result())["id"].as_str().unwrap().to_owned();
        assert_eq!(client.state(&task).await, "completed");
    }
}

#[tokio::test]
async fn a_sign_in_elsewhere_ends_no_stream_and_answers_who_waits() {
    let world = World::new().await;
    let client = world.client("editor").await;
    for (words, agents) in pairs() {
        world.pin(agents).await;
        let script = "steps=2 interval=0.05 auth=1 authwait=0.5";
        let method = words.method("message/stream", "SendStreamingMessage");
        let heard = client.stream(method, json!({"message": words.message(script)}), None).await.rest().await;
        let states: Vec<String> = heard.iter().filter_map(|event| event.state()).collect();
        assert!(states.contains(&words.state("auth-required")), "{words:?} {agents:?}: {states:?}");
        assert_eq!(states.last(), Some(&words.state("completed")), "{words:?} {agents:?}");
        let method = words.method("message/send", "SendMessage");
        let result = client.call(method, json!({"message": words.message(script)})).await;
        assert_eq!(words.task(&result)["status"]["state"], json!(words.state("auth-required")));
    }
}

#[tokio::test]
async fn an_agent_that_fails_is_told_as_it_failed() {
    let world = World::new().await;
    let client = world.client("editor").await;
    for (words, agents) in pairs() {
        world.pin(agents).await;
        for (script, state) in [
            ("steps=1 interval=0.05 fail=yes", "failed"),
            ("reject=yes", "rejected"),
            ("steps=1 interval=0.05 fail=raise", "failed"),
        ] {
            let method = words.method("message/stream", "SendStreamingMessage");
            let heard =
                client.stream(method, json!({"message": words.message(script)}), None).await.rest().await;
            assert_eq!(
                heard.last().unwrap().state(),
                Some(words.state(state)),
                "{script} {words:?} {agents:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_client_that_goes_while_it_waits_takes_nothing_with_it() {
    let world = World::new().await;
    let client = world.client("editor").await;
    for words in BOTH {
        let method = words.method("message/send", "SendMessage");
        let params = json!({"message": words.message("steps=4 interval=0.3")});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let before = client.call("ListTasks", json!({})).await["totalSize"].as_u64().unwrap();
        let waiting = tokio::spawn(client.post().json(&body).send());
        // It waits for the end, so the task is there long before the answer.
        let task = loop {
            let listed = client.call("ListTasks", json!({})).await;
            if listed["totalSize"].as_u64().unwrap() > before {
                break listed["tasks"][0]["id"].as_str().unwrap().to_owned();
            }
        };
        assert!(!waiting.is_finished(), "a send without a word of blocking blocks: {words:?}");
        waiting.abort();
        let heard = client.subscribe(words, &task, None).await.rest().await;
        assert_eq!(heard.last().unwrap().state(), Some(words.state("completed")), "{words:?}");
    }
}

#[tokio::test]
async fn each_event_comes_when_it_happens_and_nothing_on_the_way_may_hold_or_change_it() {
    let world = World::new().await;
    let client = world.client("editor").await;
    for words in BOTH {
        let method = words.method("message/stream", "SendStreamingMessage");
        let params = json!({"message": words.message("steps=6 interval=0.5")});
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let mut answer = client.post().header("accept-encoding", "gzip").json(&body).send().await.unwrap();
        let header = |name: &str| answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(header("cache-control").as_deref(), Some("no-store, no-transform"));
        assert_eq!(header("x-accel-buffering").as_deref(), Some("no"));
        assert_eq!(header("content-encoding"), None);
        // Six steps with five waits between: what was put together would come at once.
        let mut heard = Vec::new();
        while let Some(chunk) = answer.chunk().await.unwrap() {
            let steps = String::from_utf8_lossy(&chunk).matches(&words.state("working")).count();
            heard.extend(std::iter::repeat_n(std::time::Instant::now(), steps));
        }
        let (first, last) = (heard[0], heard[heard.len() - 1]);
        assert!(last - first >= std::time::Duration::from_secs(1), "{words:?}: {:?}", last - first);
    }
}
