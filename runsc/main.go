// Command runsc is gVisor's own command line, built from a pinned module, so
// that a machine needs nothing but a Go toolchain to have the version that this
// project was measured and tested with. It is a module of its own: gVisor's
// dependencies are none of ours. What it adds are the compiled system call
// filters (see register.go), which save a quarter of a start, one answer that is Linux's (see
// positional.go), and that a sandbox is told of its own memory and processors (see limits.go).
package main

import (
	"os"

	"gvisor.dev/gvisor/runsc/cli/maincli"
)

func main() {
	os.Args = withLimits(os.Args, readAt)
	registerPrograms()
	mendPositional()
	maincli.Main()
}
