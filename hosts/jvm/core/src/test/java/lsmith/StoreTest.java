package lsmith;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The store. Promised: it answers as a sorted map does, also after it was opened again; a closed
 * handle is an error and nothing worse, whatever other threads do.
 */
class StoreTest {
    private static final String SMALL = "memtable_bytes=64KiB, block_bytes=512";

    private static TreeMap<byte[], byte[]> map() {
        return new TreeMap<>(Arrays::compareUnsigned);
    }

    private static void agree(Store store, TreeMap<byte[], byte[]> map, byte[] from, byte[] to) {
        for (boolean backward : new boolean[] {false, true}) {
            var wanted = from == null ? map : map.tailMap(from, true);
            wanted = to == null ? wanted : wanted.headMap(to, false);
            wanted = backward ? wanted.descendingMap() : wanted;
            try (Scan scan = store.scan(from, to, backward)) {
                for (var entry : wanted.entrySet()) {
                    assertTrue(scan.next());
                    assertArrayEquals(entry.getKey(), scan.key());
                    assertArrayEquals(entry.getValue(), scan.value());
                }
                assertFalse(scan.next());
                assertFalse(scan.next());
                assertNull(scan.key());
            }
        }
    }

    @Test
    void storeAnswersAsASortedMap(@TempDir Path directory) {
        TreeMap<byte[], byte[]> map = map();
        Random random = new Random(1);
        for (int life = 0; life < 3; life++) {
            try (Store store = new Store(directory, SMALL, null)) {
                agree(store, map, null, null);
                for (int i = 0; i < 3000; i++) {
                    byte[] key = new byte[1 + random.nextInt(random.nextInt(50) == 0 ? 3000 : 3)];
                    random.nextBytes(key);
                    byte[] value = new byte[random.nextInt(random.nextInt(50) == 0 ? 9000 : 90)];
                    Batch batch = new Batch();
                    switch (random.nextInt(8)) {
                        case 0 -> {
                            store.delete(key);
                            map.remove(key);
                        }
                        case 1 -> {
                            batch.put(key, value);
                            batch.put(new byte[] {7}, key);
                            batch.delete(new byte[] {8});
                            store.write(batch);
                            map.put(key, value);
                            map.put(new byte[] {7}, key);
                            map.remove(new byte[] {8});
                        }
                        default -> {
                            store.put(key, value);
                            map.put(key, value);
                        }
                    }
                    byte[] found = store.get(key);
                    assertArrayEquals(map.get(key), found);
                }
                byte[] from = {100};
                byte[] to = {(byte) 200};
                agree(store, map, from, to);
                byte[] end = {110};
                store.deleteRange(from, end);
                map.subMap(from, end).clear();
                agree(store, map, null, to);
                store.sync();
                assertTrue(store.approximateLen() > 0);
            }
        }
    }

    @Test
    void storesShareOneLimit(@TempDir Path directory) {
        assertThrows(LsmithException.class, () -> new Shared(1000, 1));
        try (Shared shared = new Shared(16 << 20, 1)) {
            List<Store> stores = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                stores.add(new Store(directory.resolve("store" + i), "", shared));
            }
            for (int i = 0; i < 40_000; i++) {
                stores.get(i % 20).put(("key" + i).getBytes(), new byte[500]);
                assertTrue(shared.memoryBytes() <= 16 << 20);
            }
            assertTrue(shared.memoryBytes() > 1 << 20);
            stores.forEach(Store::close);
            assertEquals(0, shared.memoryBytes());
        }
    }

    @Test
    void closedHandlesAreErrors(@TempDir Path directory) {
        Store store = new Store(directory, "", null);
        store.put(new byte[] {1}, new byte[] {2});
        LsmithException twice =
                assertThrows(LsmithException.class, () -> new Store(directory, "", null));
        assertEquals(ErrorKind.LOCKED, twice.kind());
        assertThrows(NullPointerException.class, () -> store.put(null, new byte[0]));
        assertThrows(NullPointerException.class, () -> store.get(null));
        Scan scan = store.scan(null, null, false);
        store.close();
        store.close();
        assertFalse(store.isOpen());
        LsmithException closed =
                assertThrows(LsmithException.class, () -> store.get(new byte[] {1}));
        assertEquals(ErrorKind.INVALID_ARGUMENT, closed.kind());
        assertTrue(scan.next(), "a scan keeps what it shows");
        scan.close();
        assertThrows(LsmithException.class, () -> new Store(directory, "polcy=auto", null));
        new Store(directory, "", null).close();
    }

    @Test
    void threadsMayCloseWhatOthersUse(@TempDir Path directory) throws Exception {
        for (int round = 0; round < 20; round++) {
            Store store = new Store(directory, SMALL, null);
            AtomicInteger refused = new AtomicInteger();
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                int which = i;
                Thread thread = new Thread(() -> {
                    try {
                        for (int n = 0; n < 1_000_000; n++) {
                            byte[] key = {(byte) which, (byte) n};
                            store.put(key, key);
                            store.get(key);
                            store.scan(key, null, true).close();
                        }
                    } catch (LsmithException closed) {
                        refused.incrementAndGet();
                    }
                });
                thread.start();
                threads.add(thread);
            }
            Thread.sleep(5);
            store.close();
            for (Thread thread : threads) {
                thread.join();
            }
            assertEquals(4, refused.get());
        }
    }
}
