//! What a tunnel program says of itself, and when it is started again.
//!
//! Tunnels print the public address they were given, in a sentence, a frame of dashes or a line of JSON. The
//! first https address that can be an inbox's is taken; programs name their home page, documents and
//! dashboard as well, so addresses of known helpers are passed over.

use std::net::SocketAddr;
use std::time::Duration;

use crate::public_url::PublicUrl;
use crate::text::one_line;

/// Characters of a line that are looked at.
const LINE: usize = 8 * 1024;

/// Hosts that tunnels name without meaning the tunnel: terms, documents, dashboards.
const NOT_TUNNELS: [&str; 12] = [
    "ngrok.com",
    "dashboard.ngrok.com",
    "trycloudflare.com",
    "www.cloudflare.com",
    "developers.cloudflare.com",
    "github.com",
    "login.tailscale.com",
    "tailscale.com",
    "localhost.run",
    "admin.localhost.run",
    "twitter.com",
    "openssh.com",
];

/// The public address that a line of a tunnel's output names.
pub fn address_in(line: &str) -> Option<PublicUrl> {
    let line = one_line(line, LINE);
    let mut rest = line.as_str();
    while let Some((_, found)) = rest.split_once("https://") {
        let end = found.find(is_no_part).unwrap_or(found.len());
        let (text, after) = found.split_at(end);
        // A sentence's own marks at the end are no part of the address.
        let text = text.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']']);
        if let Ok(url) = format!("https://{text}").parse::<PublicUrl>()
            && !is_helper(&url)
        {
            return Some(url);
        }
        rest = after;
    }
    None
}

fn is_helper(url: &PublicUrl) -> bool {
    let authority = url.authority();
    NOT_TUNNELS.contains(&authority.as_str()) || url.to_string().ends_with(".md")
}

fn is_no_part(c: char) -> bool {
    c.is_whitespace() || c.is_control() || "\"'<>|`{}\\^…".contains(c)
}

/// The command line of a setting. `{inbox}` stands for the address of the inbox, `{port}` for its port. A line
/// that begins with `ssh-remote ` is the preset for a server of one's own: `ssh-remote user@host 8080` forwards
/// that host's port 8080 to the inbox, where a web server with a certificate passes callbacks on to it.
pub fn command_line(setting: &str, inbox: SocketAddr) -> String {
    let line = match setting.trim().strip_prefix("ssh-remote ") {
        None => setting.to_owned(),
        Some(words) => {
            let mut words = words.split_whitespace();
            let host = words.next().unwrap_or_default();
            let port = words.next().unwrap_or("7421");
            let more: String = words.map(|word| format!("{word} ")).collect();
            // Ends when the other side is gone or does not forward, and never asks anybody anything.
            format!(
                "exec ssh -N -T -o BatchMode=yes -o ExitOnForwardFailure=yes -o ServerAliveInterval=15 \
                 -o ServerAliveCountMax=3 {more}-R {port}:{{inbox}} {host}"
            )
        }
    };
    line.replace("{inbox}", &inbox.to_string()).replace("{port}", &inbox.port().to_string())
}

/// How long to wait before a tunnel that ended is started again: from 1 s, doubled up to 60 s. One that ran
/// for a minute begins anew.
pub fn restart_after(failures: u32) -> Duration {
    Duration::from_secs(1_u64 << failures.min(6)).min(Duration::from_secs(60))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Option<String> {
        address_in(line).map(|url| url.to_string())
    }

    #[test]
    fn the_address_is_found_in_what_usual_tunnels_print() {
        for (line, address) in [
            // Words of the kinds of output: a frame, a sentence, key=value, JSON, a bare address.
            (
                "|  https://quick-brown-fox-1.trycloudflare.com                |",
                "https://quick-brown-fox-1.trycloudflare.com",
            ),
            (
                "Forwarding   https://ab12.ngrok-free.app -> http://localhost:7421",
                "https://ab12.ngrok-free.app",
            ),
            (
                "t=2026-01-05 lvl=info msg=\"started tunnel\" url=https://ab12.ngrok.app",
                "https://ab12.ngrok.app",
            ),
            (r#"{"msg":"started","url":"https://ab12.ngrok.app"}"#, "https://ab12.ngrok.app"),
            ("https://box.tail1234.ts.net/", "https://box.tail1234.ts.net"),
            ("abc.lhr.life tunneled with tls termination, https://abc.lhr.life", "https://abc.lhr.life"),
            ("your url is: https://calm-cat.loca.lt.", "https://calm-cat.loca.lt"),
            ("ready (https://h.example:8443/taskbell).", "https://h.example:8443/taskbell"),
        ] {
            assert_eq!(found(line).as_deref(), Some(address), "{line}");
        }
    }

    #[test]
    fn a_helper_page_is_not_taken_for_the_tunnel() {
        for line in [
            "see https://developers.cloudflare.com/cloudflare-one/ for terms",
            "Web Interface https://dashboard.ngrok.com/tunnels",
            "listening on http://127.0.0.1:7421 and https://localhost:7421",
            "https://user:pw@evil.example",
            "no address here, https:// alone",
        ] {
            assert_eq!(found(line), None, "{line}");
        }
        assert_eq!(
            found("terms at https://www.cloudflare.com/terms, yours is https://a.trycloudflare.com")
                .as_deref(),
            Some("https://a.trycloudflare.com")
        );
    }

    #[test]
    fn colours_are_no_part_of_an_address() {
        assert_eq!(found("\u{1b}[32mhttps://a.example\u{1b}[0m ready").as_deref(), Some("https://a.example"));
    }

    #[test]
    fn a_command_is_told_where_the_inbox_is_and_ssh_has_a_preset() {
        let inbox = "127.0.0.1:7421".parse().unwrap();
        assert_eq!(
            command_line("cloudflared tunnel --url http://{inbox}", inbox),
            "cloudflared tunnel --url http://127.0.0.1:7421"
        );
        assert_eq!(command_line("ngrok http {port} --log stdout", inbox), "ngrok http 7421 --log stdout");
        let ssh = command_line("ssh-remote me@h.example 127.0.0.1:8080 -p 2222", inbox);
        assert!(ssh.ends_with("-p 2222 -R 127.0.0.1:8080:127.0.0.1:7421 me@h.example"), "{ssh}");
        assert!(ssh.contains("ExitOnForwardFailure=yes"), "{ssh}");
    }

    #[test]
    fn a_tunnel_that_keeps_failing_is_started_less_and_less_often() {
        assert_eq!(restart_after(0), Duration::from_secs(1));
        assert_eq!(restart_after(3), Duration::from_secs(8));
        assert_eq!(restart_after(6), Duration::from_secs(60));
        assert_eq!(restart_after(u32::MAX), Duration::from_secs(60));
    }
}
