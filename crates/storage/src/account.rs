//! Counts the bytes of memory that parts of a store hold.

use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::unscheduled::AtomicU64;
use std::sync::Arc;

/// The bytes that some holders have together.
#[derive(Debug, Default)]
pub struct Account {
    bytes: AtomicU64,
    /// The account that these bytes count in too.
    whole: Option<Arc<Account>>,
}

impl Account {
    /// Returns an account whose bytes count in `whole` too.
    pub fn within(whole: &Arc<Account>) -> Account {
        Account { bytes: AtomicU64::default(), whole: Some(Arc::clone(whole)) }
    }

    /// Returns the bytes that all holders have now.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Adds `bytes`, which the caller takes out again.
    pub(crate) fn put(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Relaxed);
        if let Some(whole) = &self.whole {
            whole.put(bytes);
        }
    }

    /// Takes out `bytes`.
    pub(crate) fn take(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Relaxed);
        if let Some(whole) = &self.whole {
            whole.take(bytes);
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        if let Some(whole) = &self.whole {
            whole.take(self.bytes());
        }
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

    #[test]
    fn parts_of_an_account_count_in_the_whole_until_they_go() {
        let whole = Arc::<Account>::default();
        let [left, right] = [(); 2].map(|()| Arc::new(Account::within(&whole)));
        let mut charge = Charge::new(&left);
        charge.set(100);
        right.put(20);
        assert_eq!((left.bytes(), right.bytes(), whole.bytes()), (100, 20, 120));
        charge.set(30);
        drop(right);
        assert_eq!((left.bytes(), whole.bytes()), (30, 30));
    }
}
