package lsmith.kafka;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.function.Predicate;
import lsmith.Batch;
import lsmith.LsmithException;
import lsmith.Store;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.processor.BatchingStateRestoreCallback;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.state.internals.OffsetCheckpoint;
import org.apache.kafka.streams.state.internals.StoreQueryUtils;

/**
 * What all stores have in common: one lsmith store in the folder {@code lsmith/NAME} of the task,
 * opened with the memory and the threads of its application.
 */
abstract class LsmithStateStore implements StateStore {
    private final String name;
    private final Set<EntryIterator<?>> iterators = ConcurrentHashMap.newKeySet();
    private Position position = Position.emptyPosition();
    private Application application;
    private boolean syncs;
    private volatile Store store;
    private StateStoreContext context;

    LsmithStateStore(String name) {
        this.name = name;
    }

    /** Adds a record of the changelog to {@code batch}. */
    abstract void restore(byte[] key, byte[] value, Batch batch);

    /** Called after the store was opened, before records are restored. */
    void opened() {}

    @Override
    public void init(StateStoreContext context, StateStore root) {
        this.context = context;
        LsmithConfig config = LsmithConfig.of(context.appConfigs());
        syncs = config.syncs();
        File directory = new File(new File(context.stateDir(), "lsmith"), name);
        application = Application.enter(context.applicationId(), config);
        try {
            Files.createDirectories(directory.toPath());
            store = new Store(directory.toPath(), config.options(), application.shared);
        } catch (IOException | LsmithException error) {
            application.leave();
            throw new ProcessorStateException("cannot open store " + name + " at " + directory
                    + ": " + error.getMessage(), error);
        }
        File positions = new File(context.stateDir(), name + ".position");
        OffsetCheckpoint checkpoint = new OffsetCheckpoint(positions);
        try {
            position = StoreQueryUtils.readPositionFromCheckpoint(checkpoint);
            guarded(this::opened);
            context.register(root, (BatchingStateRestoreCallback) this::restoreAll,
                    () -> StoreQueryUtils.checkpointPosition(checkpoint, position));
        } catch (RuntimeException error) {
            // Kafka closes no store that was not registered, and another task may open this one.
            close();
            throw error;
        }
    }

    private void restoreAll(Collection<KeyValue<byte[], byte[]>> records) {
        Batch batch = new Batch();
        for (KeyValue<byte[], byte[]> record : records) {
            restore(record.key, record.value, batch);
        }
        write(batch);
    }

    /** Returns the open store, or fails as Kafka's own stores do. */
    final Store store() {
        Store open = store;
        if (open == null) {
            throw new InvalidStateStoreException("store " + name + " is closed");
        }
        return open;
    }

    final StateStoreContext context() {
        return context;
    }

    final void write(Batch batch) {
        guarded(() -> store().write(batch));
    }

    /** Puts a value, or deletes the key if the value is null. */
    final void putOrDelete(byte[] key, byte[] value) {
        guarded(() -> {
            if (value == null) {
                store().delete(key);
            } else {
                store().put(key, value);
            }
        });
    }

    final byte[] find(byte[] key) {
        Store open = store();
        try {
            return open.get(key);
        } catch (LsmithException error) {
            throw failed(error);
        }
    }

    final void guarded(Runnable action) {
        try {
            action.run();
        } catch (LsmithException error) {
            throw failed(error);
        }
    }

    private ProcessorStateException failed(LsmithException error) {
        return new ProcessorStateException("store " + name + ": " + error.getMessage(), error);
    }

    /** Notes that the record under way has been taken in. */
    final void notePosition() {
        synchronized (position) {
            context.recordMetadata().filter(record -> record.topic() != null).ifPresent(record ->
                    position.withComponent(record.topic(), record.partition(), record.offset()));
        }
    }

    /** Returns an iterator that is closed with the store at the latest. */
    final <K> EntryIterator<K> iterate(List<KeyBounds> ranges, boolean backward,
            Predicate<byte[]> wanted, Function<byte[], K> keyOf) {
        store();
        EntryIterator<K> iterator =
                new EntryIterator<>(this::store, ranges, backward, wanted, keyOf, iterators::remove);
        iterators.add(iterator);
        return iterator;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public boolean persistent() {
        return true;
    }

    @Override
    public boolean isOpen() {
        return store != null;
    }

    /** All writes survive the death of the process already; this is for power loss. */
    @Override
    public void flush() {
        Store open = store;
        if (open != null && syncs) {
            guarded(open::sync);
        }
    }

    @Override
    public synchronized void close() {
        Store open = store;
        if (open == null) {
            return;
        }
        store = null;
        List.copyOf(iterators).forEach(EntryIterator::close);
        open.close();
        application.leave();
    }

    @Override
    public Position getPosition() {
        return position;
    }

    @Override
    public <R> QueryResult<R> query(Query<R> query, PositionBound bound, QueryConfig config) {
        return StoreQueryUtils.handleBasicQueries(query, bound, config, this, position, context);
    }
}
