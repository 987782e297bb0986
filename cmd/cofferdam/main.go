// Command cofferdam runs an agent's code in sealed sandboxes and decides what
// gets in. It is the one binary: the command line below is a client of the
// daemon, which is this binary too (roles.go).
//
// Messages for people go to stderr, one line each with "cofferdam:" in front; stdout belongs to the
// command that runs or to the answer that was asked for. Text that a package, an agent or the
// daemon wrote is made printable before a terminal sees it (internal/serve/ui).
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(execute(context.Background(), os.Args[1:]))
}

// version is written by the linker (-X main.version=...).
var version = "dev"
