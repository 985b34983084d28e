use super::*;
use crate::reachability::{AddressSource, PublicAddress};

fn place() -> Place {
    let public = PublicAddress {
        url: "https://inbox.example.com/taskbell".parse().unwrap(),
        source: AddressSource::Setting,
    };
    let inbox = Some("127.0.0.1:7421".parse().unwrap());
    Place::of(&ReachState { inbox, public: Some(public), ..ReachState::default() })
}

fn parts(path: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = hyper::Request::post(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

const PATH: &str = "/a2a/callbacks/cbbearer000000000000000001";

fn refused(path: &str, headers: &[(&str, &str)]) -> Option<&'static str> {
    check(&parts(path, headers), Framed::default(), &place()).err().map(|answer| answer.code())
}

#[test]
fn the_inbox_answers_under_its_own_and_its_public_name_only() {
    for host in ["127.0.0.1:7421", "inbox.example.com", "INBOX.example.com", "inbox.example.com:443"] {
        assert_eq!(refused(PATH, &[("host", host)]), None, "{host}");
    }
    for host in ["localhost:7421", "127.0.0.1", "inbox.example.com.evil.example", "inbox.example.com:80", ""]
    {
        assert_eq!(refused(PATH, &[("host", host)]), Some("other_host"), "{host}");
    }
}

#[test]
fn a_proxy_may_pass_the_prefix_of_the_public_address_on() {
    let host = [("host", "inbox.example.com")];
    assert_eq!(refused(&format!("/taskbell{PATH}"), &host), None);
    assert_eq!(refused(&format!("/other{PATH}"), &host), Some("not_found"));
}

#[test]
fn a_header_that_decides_comes_once() {
    for name in ["host", "authorization", "content-type", "a2a-notification-token"] {
        let twice = [("host", "127.0.0.1:7421"), (name, "127.0.0.1:7421"), (name, "127.0.0.1:7421")];
        assert_eq!(refused(PATH, &twice), Some("ambiguous"), "{name}");
    }
    let differ =
        [("host", "127.0.0.1:7421"), ("a2a-notification-token", "a"), ("x-a2a-notification-token", "b")];
    assert_eq!(refused(PATH, &differ), Some("ambiguous"));
}

#[test]
fn only_json_in_utf8_is_read() {
    let taken = |value: &str| is_json(&HeaderValue::from_str(value).unwrap());
    for value in
        ["application/json", "Application/JSON; charset=\"UTF-8\"", "application/a2a+json;charset=utf-8;x=1"]
    {
        assert!(taken(value), "{value}");
    }
    for value in ["", "text/plain", "text/json", "application/jsonp", "application/json; charset=utf-16"] {
        assert!(!taken(value), "{value}");
    }
}

#[test]
fn kept_headers_hold_no_secret_and_no_control_characters() {
    let head = parts(
        PATH,
        &[
            ("authorization", "Bearer hush"),
            ("x-a2a-notification-token", "hush"),
            ("user-agent", "a\tb"),
            ("cookie", "hush"),
            ("x-forwarded-for", "198.51.100.7"),
        ],
    );
    let kept = kept(&head.headers);
    assert!(!kept.contains("hush") && !kept.contains('\t'), "{kept}");
    assert!(kept.contains("Bearer ••••") && kept.contains("198.51.100.7"), "{kept}");
}
