// Writes a store of Pebble 2.1, and DIR/metrics.txt with what Pebble says of it in the end: pebble21
// DIR. Levels are small, so that compactions take in three of them.
package main

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// lines writes what Pebble logs, each event with its time.
type lines struct{ file *os.File }

func (l lines) Infof(format string, args ...interface{}) {
	fmt.Fprintf(l.file, "%s %s\n", time.Now().UTC().Format("2006/01/02 15:04:05.000000"),
		fmt.Sprintf(format, args...))
}

func (l lines) Errorf(format string, args ...interface{}) { l.Infof(format, args...) }

func (l lines) Fatalf(format string, args ...interface{}) {
	l.Infof(format, args...)
	os.Exit(1)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

var draw = rand.New(rand.NewSource(1))

// overwrite writes to keys at random, slowly enough for compactions to keep up.
func overwrite(store *pebble.DB, writes, keys, valueBytes int) {
	value := make([]byte, valueBytes)
	for number := 0; number < writes; number++ {
		key := []byte(fmt.Sprintf("%016d", draw.Intn(keys)))
		draw.Read(value)
		must(store.Set(key, value, pebble.NoSync))
		if number%200 == 199 {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func main() {
	dir := os.Args[1]
	must(os.MkdirAll(dir, 0o755))
	file, err := os.Create(filepath.Join(dir, "LOG"))
	must(err)
	logger := lines{file}
	listener := pebble.MakeLoggingEventListener(logger)
	options := &pebble.Options{
		Logger:             logger,
		EventListener:      &listener,
		FormatMajorVersion: pebble.FormatNewest,
		MemTableSize:       256 << 10,
		LBaseMaxBytes:      512 << 10,
	}
	options.Experimental.LevelMultiplier = 4
	for level := range options.TargetFileSizes {
		options.TargetFileSizes[level] = 128 << 10
	}
	store, err := pebble.Open(dir, options)
	must(err)
	overwrite(store, 120_000, 50_000, 150)
	must(store.Flush())
	for quiet := 0; quiet < 5; quiet++ {
		time.Sleep(300 * time.Millisecond)
		if store.Metrics().Compact.NumInProgress > 0 {
			quiet = 0
		}
	}
	metrics := store.Metrics()
	text := fmt.Sprintf("%s\n", metrics)
	must(os.WriteFile(filepath.Join(dir, "metrics.txt"), []byte(text), 0o644))
	// The store is left open: closing it could begin a compaction.
	os.Exit(0)
}
