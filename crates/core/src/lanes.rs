//! Which waiting callbacks are sent now: capacity by lane, by receiver, by task.

use std::collections::HashMap;
use std::hash::Hash;

use crate::delivery::Lane;

/// Connections at once.
pub const SOCKETS: usize = 8;
/// Of these, open to best effort; the rest is kept for reserved deliveries.
pub const BEST_EFFORT_SOCKETS: usize = 4;
/// Connections at once to one receiver.
pub const PER_HOST: usize = 2;
/// Of these, open to best effort, so that progress never takes a receiver's last place.
pub const BEST_EFFORT_PER_HOST: usize = 1;

/// A callback that could be sent, or is being sent. `T`: a task and target, of which one is sent at a time;
/// `H`: a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place<T, H> {
    pub lane: Lane,
    pub task: T,
    pub host: H,
}

/// What is being sent.
#[derive(Debug, Clone)]
pub struct InFlight<T, H> {
    reserved: usize,
    best_effort: usize,
    tasks: HashMap<T, usize>,
    hosts: HashMap<(Lane, H), usize>,
}

impl<T, H> Default for InFlight<T, H> {
    fn default() -> Self {
        Self { reserved: 0, best_effort: 0, tasks: HashMap::new(), hosts: HashMap::new() }
    }
}

impl<T: Eq + Hash + Clone, H: Eq + Hash + Clone> InFlight<T, H> {
    /// Takes a place where there is one.
    pub fn take(&mut self, place: &Place<T, H>) -> bool {
        let fits = self.fits(place);
        if fits {
            *self.lane(place.lane) += 1;
            *self.tasks.entry(place.task.clone()).or_default() += 1;
            *self.hosts.entry((place.lane, place.host.clone())).or_default() += 1;
        }
        fits
    }

    /// Gives back what [`Self::take`] took.
    pub fn give_back(&mut self, place: &Place<T, H>) {
        let lane = self.lane(place.lane);
        *lane = lane.saturating_sub(1);
        drop_one(&mut self.tasks, &place.task);
        drop_one(&mut self.hosts, &(place.lane, place.host.clone()));
    }

    /// Whether any best effort could be sent at all.
    pub fn has_room_for_best_effort(&self) -> bool {
        self.best_effort < BEST_EFFORT_SOCKETS && self.total() < SOCKETS
    }

    /// Whether anything could be sent at all.
    pub fn has_room(&self) -> bool {
        self.total() < SOCKETS
    }

    pub fn total(&self) -> usize {
        self.reserved + self.best_effort
    }

    fn fits(&self, place: &Place<T, H>) -> bool {
        let at_host = |lane| self.hosts.get(&(lane, place.host.clone())).copied().unwrap_or(0);
        let host_total = at_host(Lane::Reserved) + at_host(Lane::BestEffort);
        let lane_fits = match place.lane {
            Lane::Reserved => true,
            Lane::BestEffort => {
                self.best_effort < BEST_EFFORT_SOCKETS && at_host(Lane::BestEffort) < BEST_EFFORT_PER_HOST
            }
        };
        lane_fits && self.total() < SOCKETS && host_total < PER_HOST && !self.tasks.contains_key(&place.task)
    }

    fn lane(&mut self, lane: Lane) -> &mut usize {
        match lane {
            Lane::Reserved => &mut self.reserved,
            Lane::BestEffort => &mut self.best_effort,
        }
    }
}

fn drop_one<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(lane: Lane, task: u32, host: &str) -> Place<u32, String> {
        Place { lane, task, host: host.to_owned() }
    }

    /// How many of these are taken.
    fn taken(in_flight: &mut InFlight<u32, String>, places: &[Place<u32, String>]) -> usize {
        places.iter().filter(|place| in_flight.take(place)).count()
    }

    #[test]
    fn best_effort_leaves_half_of_the_sockets_to_reserved_deliveries() {
        let mut in_flight = InFlight::default();
        let flood: Vec<_> = (0..100).map(|n| place(Lane::BestEffort, n, &format!("h{n}"))).collect();
        assert_eq!(taken(&mut in_flight, &flood), BEST_EFFORT_SOCKETS);
        let ends: Vec<_> = (100..200).map(|n| place(Lane::Reserved, n, &format!("h{n}"))).collect();
        assert_eq!(taken(&mut in_flight, &ends), SOCKETS - BEST_EFFORT_SOCKETS);
    }

    #[test]
    fn progress_never_takes_the_last_place_at_a_receiver() {
        let mut in_flight = InFlight::default();
        let flood: Vec<_> = (0..100).map(|n| place(Lane::BestEffort, n, "slow")).collect();
        assert_eq!(taken(&mut in_flight, &flood), 1);
        assert!(in_flight.take(&place(Lane::Reserved, 200, "slow")));
        assert!(!in_flight.take(&place(Lane::Reserved, 201, "slow")), "two at one receiver");
    }

    #[test]
    fn a_dead_receiver_holds_two_sockets_and_no_more() {
        let mut in_flight = InFlight::default();
        let dead: Vec<_> = (0..100).map(|n| place(Lane::Reserved, n, "dead")).collect();
        assert_eq!(taken(&mut in_flight, &dead), PER_HOST);
        let others: Vec<_> = (100..200).map(|n| place(Lane::Reserved, n, &format!("h{n}"))).collect();
        assert_eq!(taken(&mut in_flight, &others), SOCKETS - PER_HOST);
    }

    #[test]
    fn one_callback_about_a_task_is_on_its_way_to_a_target_at_a_time() {
        let mut in_flight = InFlight::default();
        let progress = place(Lane::BestEffort, 7, "h");
        assert!(in_flight.take(&progress));
        assert!(!in_flight.take(&place(Lane::Reserved, 7, "h")));
        in_flight.give_back(&progress);
        assert!(in_flight.take(&place(Lane::Reserved, 7, "h")));
    }

    #[test]
    fn places_given_back_are_taken_again_for_ever() {
        let mut in_flight = InFlight::default();
        for n in 0..1_000 {
            let next = place(Lane::Reserved, n, "h");
            assert!(in_flight.take(&next));
            in_flight.give_back(&next);
        }
        assert_eq!(in_flight.total(), 0);
        assert!(in_flight.tasks.is_empty() && in_flight.hosts.is_empty(), "nothing is remembered");
    }
}
