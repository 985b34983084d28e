//! Which ports may be called back.

/// Ports from 1024 up that browsers do not talk to either (the fetch standard's bad ports), and those of
/// databases, queues, caches and cluster control, which could take a TLS session's first octets for a command
/// or belong to a machine's insides.
const DENIED: &[u16] = &[
    1080, 1433, 1434, 1521, 1719, 1720, 1723, 1883, 2049, 2181, 2375, 2376, 2377, 2379, 2380, 3306, 3389,
    3659, 4045, 4190, 4369, 5060, 5061, 5432, 5671, 5672, 5900, 5984, 5985, 5986, 6000, 6379, 6443, 6566,
    6665, 6666, 6667, 6668, 6669, 6679, 6697, 7000, 7001, 7077, 8086, 8125, 8300, 8301, 8302, 8472, 8500,
    8600, 8883, 9000, 9042, 9090, 9092, 9160, 9200, 9300, 9418, 10080, 10250, 10255, 10256, 11211, 15672,
    16379, 25672, 26257, 26379, 27017, 27018, 27019, 28015, 50000, 50070, 61613, 61616,
];

/// 443, or from 1024 up where nothing is known to speak for.
pub(super) fn is_allowed(port: u16) -> bool {
    port == 443 || (port >= 1024 && DENIED.binary_search(&port).is_err())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_order_so_that_it_can_be_searched() {
        assert!(DENIED.is_sorted() && DENIED.iter().all(|port| *port >= 1024));
    }

    #[test]
    fn ports_of_web_servers_are_allowed_and_others_below_1024_are_not() {
        for port in [443, 1024, 8080, 8443, 9443, 65535] {
            assert!(is_allowed(port), "{port}");
        }
        for port in [0, 22, 25, 80, 1023, 2375, 6379, 6667, 11211, 27017] {
            assert!(!is_allowed(port), "{port}");
        }
    }
}
