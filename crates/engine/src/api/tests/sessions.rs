use std::time::{Duration, Instant};

use super::{Served, TOKEN};
use crate::api::proof::{is_proof, prove};
use taskbell_core::credential::Secret;

const JSON: &str = "Content-Type: application/json";
const PAGE: [&str; 4] = ["Host: HOST", "Origin: ORIGIN", "Sec-Fetch-Site: same-origin", JSON];

/// Signs a page in; the cookie as `name=value`.
pub(super) async fn signed_in(served: &Served) -> String {
    let login = served.call("POST /api/v1/page-login", "{}").await.json();
    let nonce = login["url"].as_str().unwrap().split_once("/#login=").unwrap().1.to_owned();
    let answer = served.ask("POST /api/v1/session", &PAGE, &format!(r#"{{"nonce":"{nonce}"}}"#)).await;
    assert_eq!(answer.status, 204, "{answer:?}");
    let line = answer.head.lines().find(|line| line.starts_with("set-cookie: ")).unwrap().to_owned();
    for attribute in ["; httponly", "; samesite=strict", "; path=/api"] {
        assert!(line.contains(attribute), "{line}");
    }
    line.trim_start_matches("set-cookie: ").split(';').next().unwrap().to_owned()
}

#[tokio::test]
async fn hello_proves_the_token_to_anybody_and_tells_it_to_nobody() {
    let served = Served::start().await;
    let answer = served.ask("GET /api/v1/hello?c=abc", &["Host: HOST"], "").await;
    assert_eq!(answer.status, 200);
    let json = answer.json();
    assert!(is_proof(&Secret::new(TOKEN), "abc", json["hello"].as_str().unwrap()));
    assert_eq!(json["hello"], prove(&Secret::new(TOKEN), "abc"));
    assert!(!answer.body.contains(TOKEN));
    let longest = "é".repeat(64) + &"x".repeat(64);
    let path = format!("GET /api/v1/hello?c={}", longest.replace('é', "%C3%A9"));
    assert_eq!(served.ask(&path, &["Host: HOST"], "").await.status, 200);
    for bad in ["", "?c=", "?c=a&c=b", &format!("?c={}", "x".repeat(129))] {
        let answer = served.ask(&format!("GET /api/v1/hello{bad}"), &["Host: HOST"], "").await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "bad_request"), "{bad}");
    }
}

#[tokio::test]
async fn a_session_works_for_its_own_pages_requests_only() {
    let served = Served::start().await;
    let cookie = format!("Cookie: theme=dark; {}", signed_in(&served).await);
    for (site, status) in [
        (Some("same-origin"), 200),
        (Some("none"), 401),
        (Some("same-site"), 403),
        (Some("cross-site"), 403),
        (None, 401),
    ] {
        let site = site.map(|site| format!("Sec-Fetch-Site: {site}"));
        let mut headers = vec!["Host: HOST", &cookie];
        headers.extend(site.as_deref());
        let answer = served.ask("GET /api/v1/openapi.json", &headers, "").await;
        assert_eq!(answer.status, status, "{site:?}");
    }
    let beside = ["Host: HOST", &cookie, "Sec-Fetch-Site: same-origin", "Authorization: Bearer wrong"];
    let answer = served.ask("GET /api/v1/openapi.json", &beside, "").await;
    assert_eq!(answer.status, 401, "a wrong token is refused even beside a good session");
}

#[tokio::test]
async fn a_sign_in_link_works_once() {
    let served = Served::start().await;
    let login = served.state.page_login(Instant::now()).unwrap();
    let (page, nonce) = login.url.split_once("/#login=").unwrap();
    assert_eq!(page, format!("http://127.0.0.1:{}", served.address.port()));
    let body = format!(r#"{{"nonce":"{nonce}"}}"#);
    assert_eq!(served.ask("POST /api/v1/session", &PAGE, &body).await.status, 204);
    let again = served.ask("POST /api/v1/session", &PAGE, &body).await;
    assert_eq!((again.status, again.code().as_str()), (401, "login_expired"));
    assert!(!again.head.contains("set-cookie"));
}

#[tokio::test]
async fn a_sign_in_link_of_a_minute_ago_is_refused() {
    let served = Served::start().await;
    let long_ago = Instant::now().checked_sub(Duration::from_secs(61)).unwrap();
    let login = served.state.page_login(long_ago).unwrap();
    let nonce = login.url.split_once("/#login=").unwrap().1;
    let answer = served.ask("POST /api/v1/session", &PAGE, &format!(r#"{{"nonce":"{nonce}"}}"#)).await;
    assert_eq!((answer.status, answer.code().as_str()), (401, "login_expired"));
}

#[tokio::test]
async fn a_foreign_page_cannot_sign_in_with_a_link_it_saw() {
    let served = Served::start().await;
    let login = served.state.page_login(Instant::now()).unwrap();
    let nonce = login.url.split_once("/#login=").unwrap().1;
    let body = format!(r#"{{"nonce":"{nonce}"}}"#);
    let foreign = ["Host: HOST", "Origin: https://attacker.example", "Sec-Fetch-Site: cross-site", JSON];
    assert_eq!(served.ask("POST /api/v1/session", &foreign, &body).await.status, 403);
    assert_eq!(served.ask("POST /api/v1/session", &PAGE, &body).await.status, 204, "and does not use it up");
}
