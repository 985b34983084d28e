//! A web server in front of the inbox, under a public name that leads to this machine for one engine only.

use std::path::Path;
use std::process::Command;

use taskbell_tests::ports::free_port;
use taskbell_tests::process::Process;
use taskbell_tests::taskbell::Setup;
use taskbell_tests::{Taskbell, wait_until};
use tempfile::TempDir;

use crate::stage::PATIENCE;

pub const NAME: &str = "inbox.example.com";

/// The folder of the certificate, the names and the server's files.
pub struct Place {
    folder: TempDir,
    pub port: u16,
}

/// nginx. Gone when dropped.
pub struct Front(Process);

impl Front {
    /// Returns when it is gone.
    pub async fn stop(mut self) {
        self.0.kill().await;
    }
}

impl Place {
    /// `None` where a mount namespace cannot be had, with the reason printed.
    pub fn new() -> Option<Self> {
        let possible = Command::new("unshare").args(["--mount", "true"]).status();
        if !possible.is_ok_and(|status| status.success()) {
            println!("skipped: no namespace of our own for names, which needs root");
            return None;
        }
        let folder = TempDir::with_prefix("taskbell-front-").expect("a temporary folder");
        let hosts = format!("127.0.0.1 localhost\n127.0.0.1 {NAME}\n");
        std::fs::write(folder.path().join("hosts"), hosts).expect("a folder of our own");
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
            .args(["-days", "2", "-subj", &format!("/CN={NAME}"), "-keyout", "key.pem", "-out", "cert.pem"])
            .args(["-addext", &format!("subjectAltName=DNS:{NAME}")])
            .args(["-addext", "basicConstraints=critical,CA:FALSE"])
            .current_dir(folder.path())
            .output();
        let made = made.expect("openssl runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Some(Self { folder, port: free_port() })
    }

    pub fn url(&self, prefix: &str) -> String {
        format!("https://{NAME}:{}{prefix}", self.port)
    }

    /// An engine for which the name leads here and the certificate is good.
    pub fn setup(&self) -> Setup {
        let hosts = self.file("hosts");
        let script = format!("mount --bind '{hosts}' /etc/hosts && exec \"$0\" \"$@\"");
        Taskbell::setup()
            .silence(2)
            .env("SSL_CERT_FILE", &self.file("cert.pem"))
            .under(&["unshare", "--mount", "--", "sh", "-c", &script])
    }

    /// A server with these `location` blocks.
    pub async fn serve(&self, locations: &str) -> Front {
        let text = format!(
            "master_process off; daemon off; pid {pid}; error_log stderr;\n\
             events {{ worker_connections 64; }}\n\
             http {{ access_log off; client_body_temp_path {folder}; proxy_temp_path {folder};\n\
               fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};\n\
               server {{ listen 127.0.0.1:{port} ssl; server_name {NAME};\n\
                 ssl_certificate {cert}; ssl_certificate_key {key};\n{locations} }} }}\n",
            pid = self.file("pid"),
            folder = self.file("temp"),
            port = self.port,
            cert = self.file("cert.pem"),
            key = self.file("key.pem"),
        );
        let conf = self.file("nginx.conf");
        std::fs::write(&conf, text).expect("a folder of our own");
        let folder = self.folder.path().to_owned();
        let server = Process::start("nginx", Path::new("/usr/sbin/nginx"), |command| {
            command.arg("-p").arg(folder).arg("-c").arg(conf);
        });
        wait_until(PATIENCE, "nginx listens", async || {
            tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.ok().map(drop)
        })
        .await;
        Front(server)
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
}

/// Passes what stands below `prefix` on to `to`, without the prefix.
pub fn passes(prefix: &str, to: &str) -> String {
    format!("location {prefix}/ {{ proxy_pass {to}/; proxy_set_header Host $http_host; }}\n")
}
