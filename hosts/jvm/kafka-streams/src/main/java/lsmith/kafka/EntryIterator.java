package lsmith.kafka;

import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.Supplier;
import lsmith.LsmithException;
import lsmith.Scan;
import lsmith.Store;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.WindowStoreIterator;

/** The wanted entries of some ranges, one range after the other. */
class EntryIterator<K> implements KeyValueIterator<K, byte[]> {
    private final Supplier<Store> store;
    private final Iterator<KeyBounds> ranges;
    private final boolean backward;
    private final Predicate<byte[]> wanted;
    private final Function<byte[], K> keyOf;
    private final Consumer<EntryIterator<?>> whenClosed;
    private Scan scan;
    private KeyValue<K, byte[]> next;
    private volatile boolean closed;

    EntryIterator(Supplier<Store> store, List<KeyBounds> ranges, boolean backward,
            Predicate<byte[]> wanted, Function<byte[], K> keyOf,
            Consumer<EntryIterator<?>> whenClosed) {
        this.store = store;
        this.ranges = ranges.iterator();
        this.backward = backward;
        this.wanted = wanted;
        this.keyOf = keyOf;
        this.whenClosed = whenClosed;
    }

    /**
     * Goes to the next range. An iterator shows the entries of a range as they are when it gets
     * there. Kafka wants the first one opened at once in key-value stores, and late in others.
     */
    final synchronized EntryIterator<K> openNext() {
        if (closed) {
            return this;
        }
        if (scan != null) {
            scan.close();
            scan = null;
        }
        if (ranges.hasNext()) {
            KeyBounds range = ranges.next();
            scan = store.get().scan(range.from(), range.to(), backward);
        }
        return this;
    }

    @Override
    public synchronized boolean hasNext() {
        if (closed || next != null) {
            return !closed;
        }
        try {
            while (scan != null || ranges.hasNext()) {
                while (scan != null && scan.next()) {
                    if (wanted.test(scan.key())) {
                        next = KeyValue.pair(keyOf.apply(scan.key()), scan.value());
                        return true;
                    }
                }
                openNext();
            }
            return false;
        } catch (LsmithException error) {
            throw new ProcessorStateException(error.getMessage(), error);
        }
    }

    @Override
    public synchronized KeyValue<K, byte[]> next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        KeyValue<K, byte[]> entry = next;
        next = null;
        return entry;
    }

    @Override
    public synchronized K peekNextKey() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        return next.key;
    }

    @Override
    public synchronized void close() {
        if (!closed) {
            closed = true;
            if (scan != null) {
                scan.close();
            }
            whenClosed.accept(this);
        }
    }

    /** The same entries, as Kafka wants the iterators of one key. */
    record OfKey(EntryIterator<Long> entries) implements WindowStoreIterator<byte[]> {
        @Override
        public boolean hasNext() {
            return entries.hasNext();
        }

        @Override
        public KeyValue<Long, byte[]> next() {
            return entries.next();
        }

        @Override
        public Long peekNextKey() {
            return entries.peekNextKey();
        }

        @Override
        public void close() {
            entries.close();
        }
    }
}
