//! Stand-ins for the crates `arc-swap` and `quick_cache`.

use crate::sync::locks::Mutex;
use quick_cache::{Lifecycle, Weighter};
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

/// A shared value that can be replaced as a whole.
#[derive(Debug)]
pub struct ArcSwap<T>(Mutex<Arc<T>>);

/// The value at the moment of the load.
#[derive(Debug)]
pub struct Guard<T>(T);

impl<T> Deref for Guard<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> ArcSwap<T> {
    pub fn new(value: Arc<T>) -> ArcSwap<T> {
        ArcSwap(Mutex::new(value))
    }

    pub fn from_pointee(value: T) -> ArcSwap<T> {
        ArcSwap::new(Arc::new(value))
    }

    pub fn load(&self) -> Guard<Arc<T>> {
        Guard(self.load_full())
    }

    pub fn load_full(&self) -> Arc<T> {
        Arc::clone(&self.0.lock())
    }

    pub fn swap(&self, value: Arc<T>) -> Arc<T> {
        std::mem::replace(&mut self.0.lock(), value)
    }

    pub fn store(&self, value: Arc<T>) {
        // The old value is dropped without the lock, because its end may take steps of its own.
        drop(self.swap(value));
    }
}

/// A map of limited weight. When it is full it evicts any entries except the newest.
#[derive(Debug)]
pub struct BlockMap<K, V, W, H, L> {
    state: Mutex<MapState<K, V>>,
    weighter: W,
    lifecycle: L,
    hasher: PhantomData<H>,
}

#[derive(Debug)]
struct MapState<K, V> {
    entries: FxHashMap<K, V>,
    weight: u64,
    capacity: u64,
}

impl<K, V, W, H, L> BlockMap<K, V, W, H, L>
where
    K: Eq + Hash + Clone,
    V: Clone,
    W: Weighter<K, V>,
    L: Lifecycle<K, V, RequestState = ()>,
{
    pub fn with(_usual: usize, capacity: u64, weighter: W, _: H, lifecycle: L) -> Self {
        let state = MapState { entries: FxHashMap::default(), weight: 0, capacity };
        BlockMap { state: Mutex::new(state), weighter, lifecycle, hasher: PhantomData }
    }

    pub fn get(&self, key: &K) -> Option<V> {
        self.state.lock().entries.get(key).cloned()
    }

    pub fn contains_key(&self, key: &K) -> bool {
        self.state.lock().entries.contains_key(key)
    }

    pub fn insert(&self, key: K, value: V) {
        let mut gone = Vec::new();
        let mut state = self.state.lock();
        state.weight += self.weighter.weight(&key, &value);
        if let Some(before) = state.entries.insert(key.clone(), value) {
            state.weight -= self.weighter.weight(&key, &before);
            gone.push((key.clone(), before));
        }
        while state.weight > state.capacity {
            let other = state.entries.keys().find(|other| **other != key);
            let evicted = other.unwrap_or(&key).clone();
            let Some(value) = state.entries.remove(&evicted) else { break };
            state.weight -= self.weighter.weight(&evicted, &value);
            gone.push((evicted, value));
        }
        drop(state);
        for (key, value) in gone {
            self.lifecycle.on_evict(&mut (), key, value);
        }
    }

    pub fn retain(&self, stays: impl Fn(&K, &V) -> bool) {
        let mut state = self.state.lock();
        let mut weight = state.weight;
        state.entries.retain(|key, value| {
            let stays = stays(key, value);
            weight -= if stays { 0 } else { self.weighter.weight(key, value) };
            stays
        });
        state.weight = weight;
    }

    pub fn weight(&self) -> u64 {
        self.state.lock().weight
    }

    pub fn capacity(&self) -> u64 {
        self.state.lock().capacity
    }

    pub fn set_capacity(&self, capacity: u64) {
        self.state.lock().capacity = capacity;
    }
}
