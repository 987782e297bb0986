// Command runsc is gVisor's own command line, built from a pinned module, so
// that a machine needs nothing but a Go toolchain to have the version that this
// project was measured and tested with. It is a module of its own: gVisor's
// dependencies are none of ours. What it adds are the compiled system call
// filters (see register.go), which save a quarter of a start, and one answer that is Linux's (see
// positional.go).
package main

import "gvisor.dev/gvisor/runsc/cli/maincli"

func main() {
	registerPrograms()
	mendPositional()
	maincli.Main()
}
