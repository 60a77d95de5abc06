//! The operations of key-value clusters in production.

/// What one cluster was asked.
#[derive(Clone, Copy)]
pub(super) struct Cluster {
    /// Shares of operations.
    pub(super) puts: f64,
    pub(super) deletes: f64,
    pub(super) gets: f64,
    /// The exponent of the Zipf distribution that is nearest to its keys; 0 for even keys.
    pub(super) skew: f64,
    /// Operations per key, mean.
    pub(super) per_key: f64,
}

impl Cluster {
    const fn new([puts, deletes, gets]: [f64; 3], skew: f64, per_key: f64) -> Cluster {
        Cluster { puts, deletes, gets, skew, per_key }
    }
}

/// All clusters with at least a percent of puts.
///
/// Source: means published with the cache traces of Twitter (Yang, Yue, Rashmi, "A large scale
/// analysis of hundreds of in-memory cache clusters at Twitter", OSDI 2020; CC BY 4.0).
pub(super) const CLUSTERS: [Cluster; 45] = [
    Cluster::new([0.07, 0.0, 0.93], 1.1004, 26.5),
    Cluster::new([0.02, 0.0, 0.98], 1.882, 327.3),
    Cluster::new([0.18, 0.0, 0.82], 1.0666, 72.9),
    Cluster::new([0.5, 0.0, 0.5], 1.7366, 1532.6),
    Cluster::new([0.5, 0.0, 0.5], 0.0, 2.0),
    Cluster::new([0.03, 0.0, 0.97], 1.4891, 45.7),
    Cluster::new([0.8, 0.0, 0.2], 0.3048, 1.3),
    Cluster::new([0.62, 0.0, 0.38], 0.4565, 1.6),
    Cluster::new([0.13, 0.22, 0.65], 1.2959, 35.4),
    Cluster::new([1.0, 0.0, 0.0], 0.0242, 1.0),
    Cluster::new([0.05, 0.0, 0.95], 1.7862, 277.0),
    Cluster::new([0.02, 0.0, 0.98], 2.0994, 660.5),
    Cluster::new([0.25, 0.0, 0.75], 0.735, 4.7),
    Cluster::new([0.03, 0.0, 0.97], 1.3699, 29.7),
    Cluster::new([1.0, 0.0, 0.0], 0.0521, 1.1),
    Cluster::new([0.28, 0.0, 0.72], 0.7624, 4.3),
    Cluster::new([0.61, 0.02, 0.37], 0.274, 3.9),
    Cluster::new([0.04, 0.0, 0.96], 0.9929, 662.7),
    Cluster::new([0.29, 0.0, 0.71], 0.6299, 13.0),
    Cluster::new([0.15, 0.0, 0.85], 1.065, 9.0),
    Cluster::new([0.06, 0.0, 0.94], 1.503, 66.2),
    Cluster::new([0.13, 0.0, 0.87], 1.2323, 22.5),
    Cluster::new([0.94, 0.0, 0.06], 0.0, 1.1),
    Cluster::new([0.98, 0.0, 0.02], 0.0, 1.0),
    Cluster::new([0.01, 0.0, 0.99], 1.354, 254.5),
    Cluster::new([0.06, 0.0, 0.94], 1.1401, 49.4),
    Cluster::new([0.04, 0.0, 0.96], 0.0, 14.8),
    Cluster::new([0.05, 0.0, 0.95], 1.2169, 46.8),
    Cluster::new([0.37, 0.0, 0.63], 0.4251, 3.8),
    Cluster::new([0.94, 0.0, 0.06], 0.0, 1.1),
    Cluster::new([0.94, 0.0, 0.06], 0.0, 1.1),
    Cluster::new([0.5, 0.0, 0.5], 0.8551, 11.8),
    Cluster::new([0.5, 0.0, 0.5], 0.8542, 11.8),
    Cluster::new([0.04, 0.0, 0.96], 1.5974, 229.9),
    Cluster::new([0.5, 0.0, 0.5], 0.0, 18.4),
    Cluster::new([0.01, 0.0, 0.99], 1.4084, 60.5),
    Cluster::new([0.15, 0.0, 0.85], 0.6372, 2.9),
    Cluster::new([0.32, 0.0, 0.68], 0.0, 5.2),
    Cluster::new([0.35, 0.0, 0.65], 0.8191, 3.5),
    Cluster::new([0.43, 0.0, 0.57], 1.5095, 154.2),
    Cluster::new([0.48, 0.0, 0.52], 1.2816, 22.1),
    Cluster::new([0.1, 0.0, 0.9], 1.9745, 814.8),
    Cluster::new([0.06, 0.0, 0.94], 1.2117, 32.6),
    Cluster::new([0.12, 0.0, 0.88], 1.2061, 27.6),
    Cluster::new([0.03, 0.0, 0.97], 1.611, 9.8),
];
