//! Who holds a port, as far as the system tells an ordinary user. Linux only; elsewhere nobody is named.

use std::fmt;

/// A process that listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    /// Its command, where it may be read.
    pub command: Option<String>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.pid)?;
        match &self.command {
            Some(command) => write!(f, " ({command})"),
            None => Ok(()),
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn of_port(_port: u16) -> Option<Holder> {
    None
}

/// The process of this user that listens on the port. Reads all of `/proc`: for errors only.
#[cfg(target_os = "linux")]
pub(super) fn of_port(port: u16) -> Option<Holder> {
    use std::fs;

    let links: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| inodes(&table, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    if links.is_empty() {
        return None;
    }
    let holds = |pid: u32| {
        // Other users' processes cannot be read, and processes end meanwhile.
        let files = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
        let mut targets = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
        targets.any(|target| links.iter().any(|link| target.as_os_str() == link.as_str())).then_some(pid)
    };
    let pid = fs::read_dir("/proc")
        .ok()?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok()))
        .find_map(holds)?;
    let command = fs::read_to_string(format!("/proc/{pid}/comm")).ok();
    let command = command.map(|name| name.trim().chars().filter(|c| !c.is_control()).collect());
    Some(Holder { pid, command })
}

/// Inodes of sockets that listen on the port, from the text of `/proc/net/tcp`.
#[cfg(target_os = "linux")]
fn inodes(table: &str, port: u16) -> Vec<u64> {
    const LISTENING: &str = "0A";
    let listens = |line: &str| {
        //   0: 0100007F:1CFC 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000  0  12345 1 …
        let fields: Vec<&str> = line.split_whitespace().collect();
        let local = fields.get(1)?.rsplit_once(':')?.1;
        let here = u16::from_str_radix(local, 16).ok()? == port && *fields.get(3)? == LISTENING;
        if here { fields.get(9)?.parse().ok() } else { None }
    };
    table.lines().skip(1).filter_map(listens).collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_port_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let holder = of_port(listener.local_addr().unwrap().port()).unwrap();
        assert_eq!(holder.pid, std::process::id());
        assert!(holder.command.is_some());
    }

    #[test]
    fn a_table_of_another_shape_names_nobody() {
        for table in ["", "x", "head\n 0: 1", "head\n a b c 0A", "head\n 0: 0:1CFC 0 0A"] {
            assert_eq!(inodes(table, 7420), Vec::<u64>::new(), "{table:?}");
        }
    }
}
