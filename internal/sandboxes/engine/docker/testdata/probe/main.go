// Command probe is what a probe's container runs, apart from a test's binary, which may
// need libraries that no skeleton has.
package main

import (
	"fmt"
	"os"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/docker"
)

func main() {
	if err := docker.Probe(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}
