//! Figures as a table in Markdown: what, ours, a peer's, their ratio, the target.

use std::fmt;

/// The values of several runs of one measurement.
#[derive(Debug, Clone)]
pub struct Figure {
    values: Vec<f64>,
    unit: &'static str,
}

impl Figure {
    /// Of no value at all it says so.
    pub fn new(mut values: Vec<f64>, unit: &'static str) -> Self {
        values.sort_by(f64::total_cmp);
        Self { values, unit }
    }

    pub fn median(&self) -> f64 {
        percentile(&self.values, 0.5)
    }
}

/// Of sorted values; not a number where there is none.
pub fn percentile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let place = (last as f64 * share).round() as usize;
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(least), Some(most)) = (self.values.first(), self.values.last()) else {
            return f.write_str("not measured");
        };
        write!(f, "{}", short(self.median()))?;
        if !self.unit.is_empty() {
            write!(f, " {}", self.unit)?;
        }
        if self.values.len() > 1 {
            write!(f, " ({}–{})", short(*least), short(*most))?;
        }
        Ok(())
    }
}

/// Three digits that mean something.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1_000.0 => {
            let sign = if value < 0.0 { "-" } else { "" };
            let digits = format!("{size:.0}");
            let (head, tail) = digits.split_at((digits.len() - 1) % 3 + 1);
            let groups: String = tail
                .as_bytes()
                .chunks(3)
                .map(|three| format!(",{}", String::from_utf8_lossy(three)))
                .collect();
            format!("{sign}{head}{groups}")
        }
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

struct Row {
    what: String,
    ours: Figure,
    peer: Option<(String, Figure)>,
    target: &'static str,
}

/// Rows in the order in which they were measured. Each is printed to standard error as it comes.
#[derive(Default)]
pub struct Table {
    rows: Vec<Row>,
}

impl Table {
    pub fn add(&mut self, what: impl Into<String>, ours: Figure, target: &'static str) {
        self.push(Row { what: what.into(), ours, peer: None, target });
    }

    pub fn add_beside(
        &mut self,
        what: impl Into<String>,
        ours: Figure,
        peer: (impl Into<String>, Figure),
        target: &'static str,
    ) {
        self.push(Row { what: what.into(), ours, peer: Some((peer.0.into(), peer.1)), target });
    }

    fn push(&mut self, row: Row) {
        eprintln!("{row}");
        self.rows.push(row);
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (peer, ratio) = match &self.peer {
            Some((name, figure)) => {
                let ratio = self.ours.median() / figure.median();
                // A peer too cheap to be seen gives no ratio.
                let ratio = if ratio.is_finite() { format!("{ratio:.2}") } else { "–".to_owned() };
                (format!("{name}: {figure}"), ratio)
            }
            None => ("–".to_owned(), "–".to_owned()),
        };
        write!(f, "| {} | {} | {peer} | {ratio} | {} |", self.what, self.ours, self.target)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| what | ours | peer | ours / peer | target |\n|---|---|---|---|---|")?;
        self.rows.iter().try_for_each(|row| writeln!(f, "{row}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_shows_its_median_and_its_range() {
        assert_eq!(Figure::new(vec![3.0, 1_234.5, 20.0], "ms").to_string(), "20.0 ms (3.00–1,234)");
        assert_eq!(Figure::new(vec![0.5], "s").to_string(), "0.50 s");
        assert_eq!(Figure::new(vec![1_773_558.2], "/s").to_string(), "1,773,558 /s");
        assert_eq!(Figure::new(vec![-12_345.0], "ms").to_string(), "-12,345 ms");
        assert_eq!(Figure::new(Vec::new(), "s").to_string(), "not measured");
    }

    #[test]
    fn a_row_without_a_peer_has_no_ratio() {
        let mut table = Table::default();
        table.add("start", Figure::new(vec![2.0], "ms"), "3 ms");
        assert!(table.to_string().ends_with("| start | 2.00 ms | – | – | 3 ms |\n"));
    }
}
