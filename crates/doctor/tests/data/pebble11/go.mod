module pebble11

go 1.24

require (
	github.com/cockroachdb/pebble v1.1.5
	github.com/spf13/cobra v1.0.0
)
