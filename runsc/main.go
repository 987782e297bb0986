// Command runsc is gVisor's own command line, built from a pinned module, so
// that a machine needs nothing but a Go toolchain to have the version that this
// project was measured and tested with. It is a module of its own: gVisor's
// dependencies are none of ours.
package main

import "gvisor.dev/gvisor/runsc/cli/maincli"

func main() { maincli.Main() }
