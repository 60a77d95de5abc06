//! Popularity: how often each key is requested.

use crate::class::{Class, Term};
use crate::ends::Ends;
use crate::{ModelError, zipf};

/// A number of keys so large that two requests never share a key.
const UNSHARED_KEYS: f64 = 1e24;

/// The entries that requests for the keys of one class write.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EntryShape {
    /// Mean bytes of an entry that holds a value.
    pub entry_bytes: f64,
    /// Mean bytes of a tombstone.
    pub tombstone_bytes: f64,
    /// The fraction of requests that delete, 0 to 1.
    pub delete_share: f64,
}

/// How often each key is requested: the keys in classes of equal probability.
///
/// A popularity is all that the arithmetic of sizes needs; see [`unique`](Popularity::unique) and
/// the methods after it. Requests are taken to be independent of each other.
///
/// # Sizes
/// A size is a number of entries. Where entries differ in size ([`with_entries`]), it is their
/// bytes over the mean bytes of a request, so that in every formula bytes written per byte
/// requested is size written over requests.
///
/// [`with_entries`]: Popularity::with_entries
#[derive(Clone, Debug, PartialEq)]
pub struct Popularity {
    /// The classes, most popular last.
    classes: Vec<Class>,
    pub(crate) terms: Vec<Term>,
    /// The size of one entry for every key.
    pub(crate) size_max: f64,
    /// The size of the entries of all keys that are not deleted, after infinitely many requests.
    live: f64,
    /// The requests that this popularity was counted over; infinity if it is known.
    pub(crate) counted: f64,
    /// `1/2` minus the integral from 0 to 1 of the sum over classes. It corrects integrals, because
    /// a part of a request counts linearly.
    pub(crate) first_request: f64,
    /// Series that replace the terms of the classes at both ends.
    pub(crate) ends: Ends,
}

impl Popularity {
    /// Returns the popularity of `keys` keys that are all requested equally often.
    ///
    /// # Errors
    /// [`ModelError::NoKeys`] if there is no key.
    pub fn uniform(keys: u64) -> Result<Popularity, ModelError> {
        let keys = keys as f64;
        Popularity::from_classes(vec![Class { keys, probability: 1.0 / keys }])
    }

    /// Returns the popularity in which every request is for a new key. A full last level has
    /// `requests` entries.
    ///
    /// # Errors
    /// [`ModelError::NoKeys`] if there is no request.
    pub fn unshared(requests: u64) -> Result<Popularity, ModelError> {
        if requests == 0 {
            return Err(ModelError::NoKeys);
        }
        // With this many keys every sum equals the sum for all-different keys, to the last digit.
        let keys = UNSHARED_KEYS;
        let all = Popularity::from_classes(vec![Class { keys, probability: 1.0 / keys }])?;
        Ok(all.with_live(requests as f64))
    }

    /// Returns the same popularity with another size of a full last level, for trees in which not
    /// all keys were requested yet.
    #[must_use]
    pub fn with_live(mut self, live: f64) -> Popularity {
        self.live = live.min(self.live);
        self
    }

    /// Returns a Zipf popularity of `keys` keys: the probability of rank `r`, from 1, is
    /// proportional to `r` to the power of `-skew`.
    ///
    /// Neighbouring ranks are put into one class as long as their probabilities are within 10 %
    /// of its least popular key, so there are some hundred classes, whatever the number of keys.
    /// Borders are computed, and sums within classes use the Euler-Maclaurin formula. Only the
    /// first few ranks are summed one by one.
    ///
    /// # Errors
    /// [`ModelError::NoKeys`] if there is no key; [`ModelError::OutOfRange`] if the skew is not
    /// within 0 to 1.6.
    pub fn zipf(keys: u64, skew: f64) -> Result<Popularity, ModelError> {
        if !(0.0..=zipf::SKEW_MAX).contains(&skew) {
            let expected = "0 to 1.6";
            return Err(ModelError::OutOfRange { what: "skew", found: skew, expected });
        }
        if skew == 0.0 {
            return Popularity::uniform(keys);
        }
        Popularity::from_classes(zipf::classes(keys, skew))
    }

    /// Returns a measured popularity. Each count is a number of keys and the requests per key, in
    /// any order. Requests within 10 % of each other are put into one class with the same total.
    ///
    /// Keys that were never requested are ignored, because they cost nothing.
    ///
    /// # Errors
    /// [`ModelError::NoKeys`] if no key was requested.
    pub fn from_histogram(histogram: &[(u64, u64)]) -> Result<Popularity, ModelError> {
        let mut counts: Vec<(u64, u64)> = histogram
            .iter()
            .copied()
            .filter(|&(keys, requests)| keys > 0 && requests > 0)
            .collect();
        counts.sort_unstable_by_key(|&(_, requests)| requests);
        let mut classes: Vec<Class> = Vec::new();
        let mut least = 0.0;
        for (keys, requests) in counts {
            let keys = keys as f64;
            let requests = requests as f64;
            match classes.last_mut() {
                Some(open) if requests <= least * (1.0 + zipf::CLASS_WIDTH) => {
                    let sum = open.keys * open.probability + keys * requests;
                    open.keys += keys;
                    open.probability = sum / open.keys;
                }
                _ => {
                    least = requests;
                    classes.push(Class { keys, probability: requests });
                }
            }
        }
        let total: f64 = classes.iter().map(|class| class.keys * class.probability).sum();
        for class in &mut classes {
            class.probability /= total;
        }
        Ok(Popularity { counted: total, ..Popularity::from_classes(classes)? })
    }

    /// Returns a popularity of classes. The probabilities, each times its keys, must sum to 1.
    fn from_classes(classes: Vec<Class>) -> Result<Popularity, ModelError> {
        let keys: f64 = classes.iter().map(|class| class.keys).sum();
        if keys < 1.0 || classes.is_empty() {
            return Err(ModelError::NoKeys);
        }
        let weights: Vec<f64> = classes.iter().map(|class| class.keys).collect();
        Ok(Popularity::from_weights(classes, &weights, keys))
    }

    fn from_weights(classes: Vec<Class>, weights: &[f64], live: f64) -> Popularity {
        // For a key that is always requested this would be minus infinity, and minus infinity times
        // 0 is not a number.
        let ln_miss = |class: &Class| (-class.probability).ln_1p().max(f64::MIN_POSITIVE.ln());
        let terms: Vec<Term> = classes
            .iter()
            .zip(weights)
            .map(|(class, &weight)| Term { weight, ln_miss: ln_miss(class) })
            .collect();
        let size_max = weights.iter().sum();
        let mut popularity = {
            let ends = Ends::of(&terms);
            let counted = f64::INFINITY;
            Popularity { classes, terms, size_max, live, counted, first_request: 0.0, ends }
        };
        popularity.first_request = 0.5 - popularity.integral_of_sum(1.0);
        popularity
    }

    /// Returns the same keys with entries of different sizes, and with deletes: one shape per
    /// class, in the order of [`classes`](Popularity::classes).
    ///
    /// # Derivation
    /// Let a request for a key of class `i` be a delete with probability `d_i`, independently of
    /// all others. Let an entry with a value take `b_i` bytes on average, and a tombstone `t_i`.
    /// After `p` requests a run holds an entry for a key with probability `1 - (1 - p_i)^p`. That
    /// entry is the *newest* request for the key. Its kind and size do not depend on the number of
    /// earlier requests, so its expected bytes are `m_i = (1 - d_i) b_i + d_i t_i` for every `p`.
    /// The bytes of the run are the sum over classes with `c_i m_i` in place of `c_i`. Only the
    /// mean size of a class matters, not the distribution.
    ///
    /// The unit of size is the mean bytes of a request: the mean of `m_i` weighted by `c_i p_i`. So
    /// one request has size 1, `unique` begins with slope 1, and every formula of this crate holds
    /// as it is.
    ///
    /// Tombstones are dropped at the bottom. So the last level tends to the sum of
    /// `c_i (1 - d_i) b_i`, which is [`live`](Popularity::live). Above the bottom, tombstones take
    /// space like any other entry.
    ///
    /// # Errors
    /// [`ModelError::ShapesDiffer`] if there are not as many shapes as classes;
    /// [`ModelError::OutOfRange`] for negative sizes, entries without bytes, or a share of deletes
    /// that is not within 0 to 1.
    pub fn with_entries(&self, shapes: &[EntryShape]) -> Result<Popularity, ModelError> {
        if shapes.len() != self.classes.len() {
            let classes = self.classes.len();
            return Err(ModelError::ShapesDiffer { classes, shapes: shapes.len() });
        }
        shapes.iter().try_for_each(EntryShape::check)?;
        let pairs = || self.classes.iter().zip(shapes);
        let request_bytes: f64 =
            pairs().map(|(class, shape)| class.keys * class.probability * shape.mean_bytes()).sum();
        let weights: Vec<f64> =
            pairs().map(|(class, shape)| class.keys * shape.mean_bytes() / request_bytes).collect();
        let live =
            pairs().map(|(class, shape)| class.keys * shape.live_bytes() / request_bytes).sum();
        let shaped = Popularity::from_weights(self.classes.clone(), &weights, live);
        Ok(Popularity { counted: self.counted, ..shaped })
    }

    /// Returns the classes, least popular first.
    pub fn classes(&self) -> &[Class] {
        &self.classes
    }

    /// Returns the number of keys.
    pub fn keys(&self) -> f64 {
        self.classes.iter().map(|class| class.keys).sum()
    }

    /// Returns what [`unique`](Popularity::unique) tends to: the size of one entry for each key.
    pub fn size_max(&self) -> f64 {
        self.size_max
    }

    /// Returns the size of a full last level, tombstones dropped; without deletes
    /// [`size_max`](Popularity::size_max).
    pub fn live(&self) -> f64 {
        self.live
    }
}

impl EntryShape {
    /// Entries of one size, no deletes.
    pub fn plain(entry_bytes: f64) -> EntryShape {
        EntryShape { entry_bytes, tombstone_bytes: 0.0, delete_share: 0.0 }
    }

    fn mean_bytes(&self) -> f64 {
        self.live_bytes() + self.delete_share * self.tombstone_bytes
    }

    fn live_bytes(&self) -> f64 {
        (1.0 - self.delete_share) * self.entry_bytes
    }

    fn check(&self) -> Result<(), ModelError> {
        let refuse = |what, found, expected| Err(ModelError::OutOfRange { what, found, expected });
        if !(0.0..=1.0).contains(&self.delete_share) {
            return refuse("delete share", self.delete_share, "0 to 1");
        }
        if !self.entry_bytes.is_finite() || self.entry_bytes <= 0.0 {
            return refuse("entry bytes", self.entry_bytes, "more than 0");
        }
        if !self.tombstone_bytes.is_finite() || self.tombstone_bytes < 0.0 {
            return refuse("tombstone bytes", self.tombstone_bytes, "at least 0");
        }
        // All deletes with tombstones of no bytes: requests would have no size.
        if self.mean_bytes() <= 0.0 {
            return refuse("tombstone bytes", self.tombstone_bytes, "more than 0");
        }
        Ok(())
    }
}
