use serde_json::json;

use super::*;

fn read(body: &Value) -> Result<Claim, ClaimFault> {
    read_claim(body.to_string().as_bytes())
}

fn code(body: &[u8]) -> &'static str {
    read_claim(body).unwrap_err().code()
}

#[test]
fn every_shape_that_agents_send_names_its_task() {
    let cases = [
        // 1.0's wrappers.
        (json!({"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}), Shape::Task),
        (
            json!({"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}),
            Shape::Status,
        ),
        (
            json!({"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"a"}}}),
            Shape::Artifact,
        ),
        (
            json!({"message":{"messageId":"m","taskId":"t","contextId":"c","role":"ROLE_AGENT"}}),
            Shape::Message,
        ),
        // The spelling of snake_case peers and of drafts.
        (json!({"status_update":{"task_id":"t","context_id":"c","status":{"state":2}}}), Shape::Status),
        (json!({"msg":{"messageId":"m","taskId":"t","contextId":"c"}}), Shape::Message),
        // 0.3's bare objects, with and without their kind.
        (json!({"kind":"task","id":"t","contextId":"c","status":{"state":"working"}}), Shape::Task),
        (json!({"id":"t","contextId":"c","status":{"state":"working"}}), Shape::Task),
        (
            json!({"kind":"status-update","taskId":"t","contextId":"c","status":{"state":"working"},"final":false}),
            Shape::Status,
        ),
        (json!({"taskId":"t","contextId":"c","status":{"state":"working"}}), Shape::Status),
        (
            json!({"kind":"artifact-update","taskId":"t","contextId":"c","artifact":{"artifactId":"a"}}),
            Shape::Artifact,
        ),
        (json!({"taskId":"t","contextId":"c","artifact":{"artifactId":"a"}}), Shape::Artifact),
        (json!({"kind":"message","messageId":"m","taskId":"t","contextId":"c"}), Shape::Message),
    ];
    for (body, shape) in cases {
        let claim = read(&body).unwrap_or_else(|fault| panic!("{body}: {fault}"));
        assert_eq!((claim.shape, claim.task_id.as_str()), (shape, "t"), "{body}");
        assert_eq!(claim.context_id, Some(ContextId::new("c")), "{body}");
        let says_state = matches!(shape, Shape::Task | Shape::Status);
        assert_eq!(claim.state, says_state.then_some(TaskState::Working), "{body}");
    }
}

#[test]
fn a_status_alone_in_the_words_of_the_old_version_within_the_wrapper_of_the_new_is_read() {
    let claim = read(&json!({"statusUpdate":{"taskId":"t","contextId":"c",
        "status":{"state":"completed","timestamp":"2026-01-05T10:00:05.000Z"},"final":true}}))
    .unwrap();
    assert_eq!(claim.state, Some(TaskState::Completed));
    assert_eq!(claim.raw_state.as_deref(), Some("completed"));
    assert_eq!(claim.timestamp.as_deref(), Some("2026-01-05T10:00:05.000Z"));
    assert!(claim.is_final && claim.wrapped);
}

#[test]
fn an_unknown_state_is_kept_as_written() {
    let claim = read(&json!({"statusUpdate":{"taskId":"t","status":{"state":"TASK_STATE_PAUSED"}}})).unwrap();
    assert_eq!(claim.state, Some(TaskState::Unknown));
    assert_eq!(claim.raw_state.as_deref(), Some("TASK_STATE_PAUSED"));
}

#[test]
fn what_is_not_the_id_may_be_missing_or_nonsense() {
    for body in [
        json!({"task":{"id":"t"}}),
        json!({"task":{"id":"t","status":7,"artifacts":"none","metadata":{"n":1e300}}}),
        json!({"statusUpdate":{"taskId":"t","status":{"state":{},"timestamp":12}}}),
        json!({"task":{"id":"t"},"message":null}),
    ] {
        let claim = read(&body).unwrap_or_else(|fault| panic!("{body}: {fault}"));
        assert_eq!((claim.task_id.as_str(), claim.state), ("t", None), "{body}");
    }
}

#[test]
fn a_body_without_a_usable_id_is_no_claim() {
    let long = "x".repeat(MAX_ID + 1);
    for body in [
        json!({"statusUpdate":{"status":{"state":"completed"}}}),
        json!({"task":{"id":7,"status":{"state":"completed"}}}),
        json!({"task":{"id":"","status":{"state":"completed"}}}),
        json!({"task":{"id":long}}),
        json!({"message":{"messageId":"m"}}),
    ] {
        assert_eq!(read(&body), Err(ClaimFault::NoTaskId), "{body}");
    }
    assert!(read(&json!({"task":{"id":"x".repeat(MAX_ID)}})).is_ok());
}

#[test]
fn a_wrapper_holds_exactly_one_object() {
    let task = json!({"id":"t","status":{"state":"working"}});
    assert_eq!(read(&json!({"task":task,"statusUpdate":{"taskId":"t"}})), Err(ClaimFault::NotOneMember));
    assert_eq!(read(&json!({"task":task,"message":{"messageId":"m"}})), Err(ClaimFault::NotOneMember));
    assert_eq!(read(&json!({"metadata":{}})), Err(ClaimFault::NotOneMember));
    assert_eq!(read(&json!({"task":[]})).unwrap_err().code(), "member_not_object");
}

#[test]
fn an_answer_of_json_rpc_is_no_callback() {
    let body = json!({"jsonrpc":"2.0","id":1,"result":{"id":"t","status":{"state":"completed"}}});
    assert_eq!(read(&body), Err(ClaimFault::NotOneMember));
}

#[test]
fn other_values_and_broken_text_are_refused_by_name() {
    for (body, expected) in [
        (&b""[..], "not_json"),
        (b"null", "unknown_shape"),
        (b"[]", "unknown_shape"),
        (b"\"t\"", "unknown_shape"),
        (b"{\"task\":{\"id\":\"t\"}", "not_json"),
        (b"{\"task\":{\"id\":\"t\"}} x", "not_json"),
        (b"\xef\xbb\xbf{\"task\":{\"id\":\"t\"}}", "not_json"),
        (b"{\"task\":{\"id\":\"t\xff\"}}", "not_json"),
        (b"{\"task\":{\"id\":\"t\",\"id\":\"u\"}}", "repeated_key"),
        (b"{\"task\":{\"id\":\"t\",\"n\":1e999}}", "not_json"),
        (b"{\"task\":{\"id\":\"t\",\"n\":NaN}}", "not_json"),
    ] {
        assert_eq!(code(body), expected, "{:?}", String::from_utf8_lossy(body));
    }
}

#[test]
fn nesting_beyond_the_limit_is_refused_and_at_it_taken() {
    let nested = |depth: usize| {
        let inner = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        format!("{{\"task\":{{\"id\":\"t\",\"metadata\":{inner}}}}}")
    };
    assert!(read_claim(nested(json::MAX_DEPTH - 2).as_bytes()).is_ok());
    assert_eq!(code(nested(json::MAX_DEPTH - 1).as_bytes()), "too_deep");
}
