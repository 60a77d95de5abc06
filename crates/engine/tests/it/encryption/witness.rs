//! A cipher that notes which nonces it gets.

use super::{check, fill, master, small};
use lsmith::cipher::{Cipher, FileCipher, Keys, NONCE_BYTES, SALT_BYTES, TAG_BYTES};
use lsmith::env::MemEnv;
use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex};

type Seen = Arc<Mutex<HashSet<([u8; SALT_BYTES], [u8; NONCE_BYTES])>>>;

/// Encrypts as a master key, and fails the test if a nonce comes twice for a key.
#[derive(Debug)]
struct Witness<C> {
    cipher: C,
    seen: Seen,
}

#[derive(Debug)]
struct WitnessFile {
    cipher: Box<dyn FileCipher>,
    salt: [u8; SALT_BYTES],
    seen: Seen,
}

impl<C: Cipher> Cipher for Witness<C> {
    fn name(&self) -> &str {
        self.cipher.name()
    }

    fn key_id(&self) -> u64 {
        self.cipher.key_id()
    }

    fn of_file(&self, salt: &[u8; SALT_BYTES]) -> io::Result<Box<dyn FileCipher>> {
        let (cipher, seen) = (self.cipher.of_file(salt)?, Arc::clone(&self.seen));
        Ok(Box::new(WitnessFile { cipher, salt: *salt, seen }))
    }
}

impl FileCipher for WitnessFile {
    fn seal(
        &self,
        nonce: &[u8; NONCE_BYTES],
        associated: &[u8],
        data: &mut [u8],
    ) -> [u8; TAG_BYTES] {
        let is_new = self.seen.lock().unwrap().insert((self.salt, *nonce));
        assert!(is_new, "the nonce {nonce:?} comes twice for one key");
        self.cipher.seal(nonce, associated, data)
    }

    fn open(
        &self,
        nonce: &[u8; NONCE_BYTES],
        associated: &[u8],
        data: &mut [u8],
        tag: &[u8; TAG_BYTES],
    ) -> bool {
        self.cipher.open(nonce, associated, data, tag)
    }
}

#[test]
fn no_nonce_comes_twice_for_one_key() {
    let seen = Seen::default();
    let keys = || Keys::new(Witness { cipher: master(1), seen: Arc::clone(&seen) });
    for policy in ["jungle", "leveled(ratio=3)"] {
        let env = MemEnv::new();
        seen.lock().unwrap().clear();
        for life in 0..4 {
            let builder = small(&env, keys()).policy(policy).large_values(40);
            let store = builder.open().unwrap();
            fill(&store, life);
            store.checkpoint(format!("/copy{life}")).unwrap();
            drop(store);
            check(&small(&env, keys()).open().unwrap(), life);
        }
        assert!(seen.lock().unwrap().len() > 3000, "{}", seen.lock().unwrap().len());
    }
}

/// A batch that fails in an append table is written over by the next try, in the same slots.
#[test]
fn a_cut_and_written_over_file_has_new_nonces() {
    use lsmith::env::{CipherEnv, Env};
    use std::path::Path;
    let seen = Seen::default();
    let keys = Keys::new(Witness { cipher: master(1), seen: Arc::clone(&seen) });
    let env = CipherEnv::new(Arc::new(MemEnv::new()), keys);
    let path = Path::new("/000001.table");
    env.create(path).unwrap().sync().unwrap();
    let mut expected = Vec::new();
    for (at, round) in [0, 9000, 9000, 5, 70_000, 12_000].into_iter().zip(1..) {
        expected.truncate(at);
        let mut file = env.append(path, at as u64).unwrap();
        for part in [100, 5000, 1, 80_000, 0] {
            file.write_all(&vec![round; part]).unwrap();
            file.sync().unwrap();
            expected.resize(expected.len() + part, round);
        }
        let file = env.open(path).unwrap();
        assert_eq!(file.bytes().unwrap(), expected.len() as u64);
        let mut read = vec![0; expected.len()];
        file.read_exact_at(&mut read, 0).unwrap();
        assert!(read == expected, "round {round}");
    }
}

/// What power loss leaves behind the last sync is no damage, and is written over.
#[test]
fn a_torn_end_hides_nothing_that_was_synced() {
    use lsmith::env::{CipherEnv, Env, Loss};
    use std::path::Path;
    let path = Path::new("/000001.table");
    let disk = MemEnv::new();
    let over = |disk: &MemEnv| CipherEnv::new(Arc::new(disk.clone()), super::keys());
    let mut file = over(&disk).create(path).unwrap();
    file.write_all(&[1; 10_000]).unwrap();
    file.sync().unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    file.write_all(&[2; 60_000]).unwrap();
    file.flush().unwrap();
    let mut torn = 0;
    for seed in 0..40 {
        for loss in [Loss::Torn { logs: false }, Loss::Later, Loss::Contents] {
            let env = over(&disk.power_loss(seed, loss));
            let file = env.open(path).unwrap();
            let bytes = file.bytes().unwrap();
            torn += usize::from(bytes < 70_000);
            let mut read = vec![0; 10_000];
            file.read_exact_at(&mut read, 0).unwrap();
            assert!(read == [1; 10_000] && bytes >= 10_000, "{loss:?} {bytes}");
            let mut file = env.append(path, 10_000).unwrap();
            file.write_all(&[3; 5000]).unwrap();
            file.sync().unwrap();
            let mut read = vec![0; 15_000];
            env.open(path).unwrap().read_exact_at(&mut read, 0).unwrap();
            assert!(read[..10_000] == [1; 10_000] && read[10_000..] == [3; 5000]);
        }
    }
    assert!(torn > 40, "{torn}");
}
