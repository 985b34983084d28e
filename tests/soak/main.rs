//! Hundreds of tasks on several agents at once, with everything that goes wrong going wrong at random, held against
//! what must be true whatever happens.
//!
//! | room | what |
//! |---|---|
//! | [`world`] | the agents, the engine, and what happens to them |
//! | [`truth`] | what must be true after each round |
//!
//! A run is told by its seed, which is printed; `TASKBELL_SEED` runs it again. Chance decides what happens and in
//! what order, the machine decides when: a failure is met again by its seed often, not always.

mod truth;
mod world;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use taskbell_tests::long_run;

use world::World;

/// Numbers by chance, the same ones for the same seed.
pub struct Dice(u64);

impl Dice {
    /// xorshift64; a seed of zero would stay zero.
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides.max(1) as u64).unwrap_or_default()
    }

    pub fn millis(&mut self, most: usize) -> Duration {
        Duration::from_millis(self.roll(most) as u64)
    }

    pub fn one_of<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        choices.get(self.roll(choices.len()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_minutes_of_cuts_kills_and_restarts_lose_and_double_nothing() {
    soak(Duration::from_secs(90)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_hour_of_cuts_kills_and_restarts_loses_and_doubles_nothing() {
    if long_run("an hour of soak") {
        soak(Duration::from_secs(3_600)).await;
    }
}

async fn soak(time: Duration) {
    let given = std::env::var("TASKBELL_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = given.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
        u64::from(now.subsec_nanos()) << 16 | 1
    });
    println!("seed {seed}: TASKBELL_SEED={seed} runs this again");
    let end = Instant::now() + time;
    let mut world = World::begin(Dice(seed)).await;
    let mut round = 0;
    // A round that has begun is brought to its end.
    while round == 0 || Instant::now() < end {
        world.round(round).await;
        truth::judge(&mut world, round).await;
        round += 1;
    }
    world.finish().await;
    println!("seed {seed}: {round} rounds, {}", world.counts);
}
