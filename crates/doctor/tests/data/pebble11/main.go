// Writes a store of Pebble 1.1, and DIR/metrics.txt with what Pebble says of it in the end: pebble11
// DIR. With other arguments, it is Pebble's own tool: pebble11 manifest dump FILE.
//
// The name of the directory chooses the store:
//
//	pebble          overwrites in random order, then a tenth deletes
//	pebble-heldout  other settings, chosen after the replay was finished
//	pebble-deep     small levels, so that compactions take in three of them
package main

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/tool"
	"github.com/spf13/cobra"
)

// lines writes what Pebble logs, each event with its time.
type lines struct{ file *os.File }

func (l lines) Infof(format string, args ...interface{}) {
	fmt.Fprintf(l.file, "%s %s\n", time.Now().UTC().Format("2006/01/02 15:04:05.000000"),
		fmt.Sprintf(format, args...))
}

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
func overwrite(store *pebble.DB, writes, keys, valueBytes int, deletes float64) {
	value := make([]byte, valueBytes)
	for number := 0; number < writes; number++ {
		key := []byte(fmt.Sprintf("%016d", draw.Intn(keys)))
		if draw.Float64() < deletes {
			must(store.Delete(key, pebble.NoSync))
		} else {
			draw.Read(value)
			must(store.Set(key, value, pebble.NoSync))
		}
		if number%200 == 199 {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func main() {
	if len(os.Args) > 2 {
		root := &cobra.Command{Use: "pebble11"}
		root.AddCommand(tool.New().Commands...)
		must(root.Execute())
		return
	}
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
		MemTableSize:       1 << 20,
		LBaseMaxBytes:      4 << 20,
		Levels:             make([]pebble.LevelOptions, 7),
	}
	table := int64(512 << 10)
	isHeldOut := strings.HasSuffix(dir, "heldout")
	isDeep := strings.HasSuffix(dir, "deep")
	if isDeep {
		options.MemTableSize = 256 << 10
		options.LBaseMaxBytes = 512 << 10
		options.Experimental.LevelMultiplier = 4
		table = 128 << 10
	}
	if isHeldOut {
		options.MemTableSize = 700 << 10
		options.LBaseMaxBytes = 2 << 20
		options.L0CompactionThreshold = 6
		options.Experimental.LevelMultiplier = 5
		table = 300 << 10
	}
	for level := range options.Levels {
		options.Levels[level].TargetFileSize = table
		options.Levels[level].Compression = pebble.NoCompression
	}
	store, err := pebble.Open(dir, options)
	must(err)
	if isHeldOut {
		overwrite(store, 160_000, 70_000, 150, 0.05)
	} else if isDeep {
		overwrite(store, 120_000, 50_000, 150, 0)
	} else {
		overwrite(store, 150_000, 60_000, 200, 0)
		overwrite(store, 100_000, 60_000, 200, 0.1)
	}
	must(store.Flush())
	for quiet := 0; quiet < 5; quiet++ {
		time.Sleep(300 * time.Millisecond)
		if store.Metrics().Compact.NumInProgress > 0 {
			quiet = 0
		}
	}
	metrics := store.Metrics()
	text := fmt.Sprintf("%s\n", metrics)
	for level, of := range metrics.Levels {
		text += fmt.Sprintf("level %d: files %d bytes %d sublevels %d in %d read %d compacted %d flushed %d moved %d\n",
			level, of.NumFiles, of.Size, of.Sublevels, of.BytesIn, of.BytesRead, of.BytesCompacted,
			of.BytesFlushed, of.BytesMoved)
	}
	must(os.WriteFile(filepath.Join(dir, "metrics.txt"), []byte(text), 0o644))
	// The store is left open: closing it could begin a compaction.
	os.Exit(0)
}
