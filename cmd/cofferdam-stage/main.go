// Command cofferdam-stage lays out a sandbox for an engine and becomes the engine's program.
// The keeper starts it, with each sandbox: it is apart from the one binary, which carries it,
// because that takes twenty times as long to begin.
package main

import (
	"fmt"
	"os"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/all/stages"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "cofferdam-stage: this program is for cofferdam's keeper, which starts it with each sandbox")
		os.Exit(2)
	}
	if err := stages.Stage(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "cofferdam-stage:", err)
		os.Exit(1)
	}
}
