use super::{Served, TOKEN};

const JSON: &str = "Content-Type: application/json";

fn bearer() -> String {
    format!("Authorization: Bearer {TOKEN}")
}

#[tokio::test]
async fn only_our_own_host_is_answered() {
    let served = Served::start().await;
    let port = served.address.port();
    let good = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    for host in &good {
        let answer = served.ask("GET /", &[&format!("Host: {host}")], "").await;
        assert_eq!(answer.status, 200, "{host}");
    }
    let bad = [
        format!("evil.example.net:{port}"),
        format!("127.attacker.example:{port}"),
        format!("127.0.0.1.attacker.example:{port}"),
        format!("localhost.attacker.example:{port}"),
        format!("gw.attacker.example:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        format!("[::1]:{port}"),
        format!("127.0.0.2:{port}"),
        format!("127.1:{port}"),
        format!("2130706433:{port}"),
        format!("LOCALHOST.:{port}"),
        format!("a@127.0.0.1:{port}"),
        format!("127.0.0.1:{port}0"),
        format!("127.0.0.1:0{port}"),
        "127.0.0.1".to_owned(),
        "localhost".to_owned(),
        "127.0.0.1:".to_owned(),
        String::new(),
    ];
    for host in &bad {
        for start in ["GET /", "GET /api/v1/changes", "POST /api/v1/page-login", "GET /nothing"] {
            let answer = served.ask(start, &[&format!("Host: {host}"), &bearer(), JSON], "").await;
            assert_eq!((answer.status, answer.code().as_str()), (421, "wrong_host"), "{start} at {host:?}");
        }
    }
}

#[tokio::test]
async fn a_request_that_names_two_hosts_or_none_is_refused() {
    let served = Served::start().await;
    assert_eq!(served.ask("GET /", &[], "").await.status, 421);
    let twice = ["Host: HOST", "Host: evil.example.net"];
    assert_eq!(served.ask("GET /", &twice, "").await.status, 421);
    assert_eq!(served.ask("GET http://evil.example.net/", &["Host: HOST"], "").await.status, 421);
}

#[tokio::test]
async fn a_foreign_page_is_refused_even_with_the_right_token() {
    let served = Served::start().await;
    let origins = [
        "https://attacker.example",
        "http://localhost:3000",
        "null",
        "http://127.0.0.1",
        "https://HOST",
        "ORIGIN.attacker.example",
        "ORIGIN/",
        "",
    ];
    for origin in origins {
        for site in ["same-origin", "same-site", "cross-site"] {
            let headers = [
                "Host: HOST",
                &bearer(),
                JSON,
                &format!("Origin: {origin}"),
                &format!("Sec-Fetch-Site: {site}"),
            ];
            let answer = served.ask("POST /api/v1/page-login", &headers, "{}").await;
            assert_eq!((answer.status, answer.code().as_str()), (403, "foreign_origin"), "{origin} {site}");
        }
    }
}

#[tokio::test]
async fn our_own_origin_needs_the_browsers_word_for_it() {
    let served = Served::start().await;
    let origin = "Origin: ORIGIN";
    for (site, status) in [
        (Some("same-origin"), 200),
        (Some("same-site"), 403),
        (Some("cross-site"), 403),
        (Some("none"), 403),
        (None, 403),
    ] {
        let site = site.map(|site| format!("Sec-Fetch-Site: {site}"));
        let token = bearer();
        let mut headers = vec!["Host: HOST", &token, JSON, origin];
        headers.extend(site.as_deref());
        let answer = served.ask("POST /api/v1/page-login", &headers, "{}").await;
        assert_eq!(answer.status, status, "{site:?}");
    }
    let two = ["Host: HOST", &bearer(), JSON, origin, origin, "Sec-Fetch-Site: same-origin"];
    assert_eq!(served.ask("POST /api/v1/page-login", &two, "{}").await.status, 403);
}

#[tokio::test]
async fn another_sites_page_is_refused_without_an_origin_too() {
    let served = Served::start().await;
    for site in ["cross-site", "same-site", "nonsense"] {
        let headers = ["Host: HOST", &bearer(), &format!("Sec-Fetch-Site: {site}")];
        assert_eq!(served.ask("GET /api/v1/openapi.json", &headers, "").await.status, 403, "{site}");
        assert_eq!(served.ask("GET /", &headers, "").await.status, 403, "{site}");
    }
}

#[tokio::test]
async fn a_preflight_is_refused_and_no_answer_has_cors_headers() {
    let served = Served::start().await;
    let headers = [
        "Host: HOST",
        "Origin: https://attacker.example",
        "Access-Control-Request-Method: POST",
        "Sec-Fetch-Site: cross-site",
    ];
    let answer = served.ask("OPTIONS /api/v1/page-login", &headers, "").await;
    assert_eq!((answer.status, answer.code().as_str()), (403, "foreign_origin"));
}

#[tokio::test]
async fn a_body_that_is_no_json_type_is_refused_before_the_token_is_looked_at() {
    let served = Served::start().await;
    for media_type in [
        None,
        Some("text/plain"),
        Some("application/x-www-form-urlencoded"),
        Some("application/jsonp"),
        Some("text/plain; application/json"),
    ] {
        let line = media_type.map(|media_type| format!("Content-Type: {media_type}"));
        let mut headers = vec!["Host: HOST"];
        headers.extend(line.as_deref());
        for start in ["POST /api/v1/page-login", "PUT /api/v1/settings/x"] {
            let answer = served.ask(start, &headers, "{}").await;
            assert_eq!((answer.status, answer.code().as_str()), (415, "not_json"), "{media_type:?}");
        }
    }
    let twice = ["Host: HOST", JSON, "Content-Type: text/plain"];
    assert_eq!(served.ask("POST /api/v1/page-login", &twice, "{}").await.status, 415);
    let with_parameter = ["Host: HOST", "Content-Type: Application/JSON; charset=utf-8", &bearer()];
    assert_eq!(served.ask("POST /api/v1/page-login", &with_parameter, "{}").await.status, 200);
}

#[tokio::test]
async fn every_endpoint_but_hello_and_session_wants_the_token() {
    let served = Served::start().await;
    let short = TOKEN.strip_suffix('0').unwrap();
    let wrong = [
        String::new(),
        "Authorization: Bearer".to_owned(),
        "Authorization: Bearer ".to_owned(),
        format!("Authorization: Bearer {short}"),
        format!("Authorization: Bearer {TOKEN}x"),
        format!("Authorization: Bearer  {TOKEN}"),
        format!("Authorization: Basic {TOKEN}"),
        format!("Authorization: {TOKEN}"),
        format!("Authorization: Bearer {TOKEN}\r\nAuthorization: Bearer {TOKEN}"),
        format!("Cookie: taskbell_session={TOKEN}"),
    ];
    for authorization in &wrong {
        let mut headers = vec!["Host: HOST", JSON];
        if !authorization.is_empty() {
            headers.push(authorization);
        }
        for start in
            ["GET /api/v1/openapi.json", "GET /api/v1/changes", "POST /api/v1/page-login", "GET /api/v1/x"]
        {
            let answer = served.ask(start, &headers, "").await;
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (401, "not_signed_in"),
                "{authorization}: {start}"
            );
            assert!(answer.head.contains("www-authenticate: bearer"));
            assert!(!answer.body.contains(TOKEN));
        }
    }
    let right = ["Host: HOST", &format!("authorization: bearer {TOKEN}")];
    assert_eq!(served.ask("GET /api/v1/openapi.json", &right, "").await.status, 200);
}

#[tokio::test]
async fn the_page_needs_no_token_and_tells_nothing() {
    let served = Served::start().await;
    let first = served.ask("GET /", &["Host: HOST"], "").await.body;
    // The page names its own files; which they are depends on whether it was built.
    let named = first.split('"').filter(|word| word.starts_with('/'));
    let assets: Vec<&str> = std::iter::once("/").chain(named).collect();
    assert!(assets.len() >= 3, "a script and a style: {first}");
    for asset in assets {
        let answer = served.ask(&format!("GET {asset}"), &["Host: HOST"], "").await;
        assert_eq!(answer.status, 200);
        for needed in ["content-security-policy: default-src 'none'", "nosniff", "frame-ancestors 'none'"] {
            assert!(answer.head.contains(needed), "{asset} lacks {needed}: {}", answer.head);
        }
        assert!(!answer.head.contains("access-control-") && !answer.body.contains(TOKEN));
        assert!(!answer.head.contains("unsafe-inline"));
    }
    let page = served.ask("GET /", &["Host: HOST"], "").await.body;
    assert!(
        !page.contains("<script>") && !page.contains("<style") && !page.contains(" on"),
        "no inline code"
    );
    for path in ["/../Cargo.toml", "/page.css/..", "/%2e%2e/x", "//page.js", "/index.html"] {
        let answer = served.ask(&format!("GET {path}"), &["Host: HOST"], "").await;
        assert!(matches!(answer.status, 401 | 404), "{path}: {}", answer.status);
    }
}

#[tokio::test]
async fn malformed_and_oversized_bodies_get_errors_in_json() {
    let served = Served::start().await;
    let nested = format!(r#"{{"nonce":{}{}}}"#, "[".repeat(100), "]".repeat(100));
    for body in ["{", "\u{feff}{}", "[]", r#"{"nonce":1}"#, r#"{"nonce":"a","nonce":"b"}"#, "{}", &nested] {
        let answer = served.call("POST /api/v1/session", body).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "bad_request"), "{body:.40}");
    }
    let declared = served.call("POST /api/v1/session", &"x".repeat((1 << 20) + 1)).await;
    assert_eq!((declared.status, declared.code().as_str()), (413, "too_large"));
    // Without a length it is counted as it arrives.
    let token = bearer();
    let head = [
        "POST /api/v1/session HTTP/1.1",
        &format!("Host: 127.0.0.1:{}", served.address.port()),
        &token,
        JSON,
        "Transfer-Encoding: chunked",
        "Connection: close\r\n\r\n",
    ]
    .join("\r\n");
    let piece = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    let streamed = served.send(format!("{head}{}0\r\n\r\n", piece.repeat(17)).as_bytes()).await;
    assert_eq!((streamed.status, streamed.code().as_str()), (413, "too_large"));
}

#[tokio::test]
async fn unknown_endpoints_and_methods_are_told_in_json() {
    let served = Served::start().await;
    let answer = served.call("GET /api/v1/nothing", "").await;
    assert_eq!((answer.status, answer.code().as_str()), (404, "no_such_endpoint"));
    let answer = served.call("DELETE /api/v1/hello", "").await;
    assert_eq!((answer.status, answer.code().as_str()), (405, "no_such_method"));
    let answer = served.call("GET /api/v1/hello?c=a&x=b", "").await;
    assert_eq!((answer.status, answer.code().as_str()), (400, "bad_request"));
}

#[tokio::test]
async fn over_the_rate_a_program_is_told_429_and_the_page_goes_on() {
    let served = Served::start().await;
    let cookie = format!("Cookie: {}", super::sessions::signed_in(&served).await);
    while served.state.access.by_token.take(std::time::Instant::now()) {}
    let token = bearer();
    // The bucket fills again meanwhile, so one of a few is refused.
    let mut refused = None;
    for _ in 0..200 {
        while served.state.access.by_token.take(std::time::Instant::now()) {}
        let answer = served.ask("GET /api/v1/openapi.json", &["Host: HOST", &token], "").await;
        if answer.status == 429 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("an empty bucket refuses");
    assert_eq!(refused.code(), "too_many_requests");
    assert!(refused.head.contains("retry-after: 1"), "{}", refused.head);
    let page = ["Host: HOST", "Sec-Fetch-Site: same-origin", &cookie];
    let answer = served.ask("GET /api/v1/openapi.json", &page, "").await;
    assert_eq!(answer.status, 200, "the page has its own share");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_quick_requests_are_all_answered() {
    let served = Served::start().await;
    let client = crate::api_client::ApiClient::connect(&served.dir()).await.unwrap();
    let began = std::time::Instant::now();
    let mut answered = 0;
    for _ in 0..100 {
        let batch = (0..100).map(|_| client.get::<serde_json::Value>("settings"));
        for answer in futures::future::join_all(batch).await {
            match answer {
                Ok(_) => answered += 1,
                Err(error) => assert_eq!(error.code, "too_many_requests", "{error:?}"),
            }
        }
    }
    assert!(answered >= 4_000, "a burst passes: {answered}");
    assert!(began.elapsed() < std::time::Duration::from_secs(60), "{:?}", began.elapsed());
    let hello = served.ask("GET /api/v1/hello?c=a", &["Host: HOST"], "").await;
    assert_eq!(hello.status, 200, "others are answered at once");
}

#[tokio::test]
async fn a_handler_that_panics_answers_500_and_the_engine_lives() {
    use tower::ServiceExt as _;

    let access =
        std::sync::Arc::new(crate::api::access::Access::new(taskbell_core::credential::Secret::new("t")));
    access.set_port(7420);
    let guard = axum::middleware::from_fn_with_state(access, crate::api::guard::guard_browser);
    let router = axum::Router::new()
        .route("/", axum::routing::get(async || -> &'static str { panic!("canary-panic") }))
        .layer(guard);
    let request =
        axum::http::Request::get("/").header("host", "localhost:7420").body(axum::body::Body::empty());
    let answer = router.oneshot(request.unwrap()).await.unwrap();
    assert_eq!(answer.status(), 500);
    assert_eq!(answer.headers()["connection"], "close");
    let body = axum::body::to_bytes(answer.into_body(), 10_000).await.unwrap();
    let text = String::from_utf8_lossy(&body);
    assert!(text.contains(r#""code":"internal""#) && !text.contains("canary"), "{text}");
}
