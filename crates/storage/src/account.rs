//! Counts the bytes of memory that parts of a store hold.

use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::unscheduled::AtomicU64;
use std::sync::Arc;

/// The bytes that some holders have together.
#[derive(Debug, Default)]
pub struct Account(AtomicU64);

impl Account {
    /// Returns the bytes that all holders have now.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Adds `bytes`, which the caller takes out again.
    pub(crate) fn put(&self, bytes: u64) {
        self.0.fetch_add(bytes, Relaxed);
    }

    /// Takes out `bytes`.
    pub(crate) fn take(&self, bytes: u64) {
        self.0.fetch_sub(bytes, Relaxed);
    }
}

/// The bytes that one holder has. Dropping this takes them out of the account.
#[derive(Debug)]
pub struct Charge {
    account: Arc<Account>,
    bytes: u64,
}

impl Charge {
    /// Returns a charge of no bytes.
    pub fn new(account: &Arc<Account>) -> Charge {
        Charge { account: Arc::clone(account), bytes: 0 }
    }

    /// Sets the bytes of the holder.
    #[inline]
    pub fn set(&mut self, bytes: u64) {
        if bytes != self.bytes {
            self.account.put(bytes);
            self.account.take(std::mem::replace(&mut self.bytes, bytes));
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.account.take(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_has_what_its_holders_have() {
        let account = Arc::<Account>::default();
        let [mut left, mut right] = [Charge::new(&account), Charge::new(&account)];
        left.set(100);
        right.set(20);
        left.set(50);
        assert_eq!(account.bytes(), 70);
        drop(left);
        assert_eq!(account.bytes(), 20);
        drop(right);
        assert_eq!(account.bytes(), 0);
    }
}
