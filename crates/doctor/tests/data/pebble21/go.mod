module pebble21

go 1.24

require github.com/cockroachdb/pebble/v2 v2.1.7
