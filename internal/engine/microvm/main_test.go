package microvm_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/engine/enginetest"
	"github.com/cofferdam-dev/cofferdam/internal/engine/microvm"
	"github.com/cofferdam-dev/cofferdam/internal/engine/microvm/firecracker/firecrackertest"
)

// roleStage makes the test binary the stage of a machine.
const roleStage = "microvm-stage"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == roleStage {
		if err := microvm.Stage(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, roleStage+":", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if firecrackertest.Is(os.Args) {
		os.Exit(firecrackertest.Program(os.Args))
	}
	enginetest.Main(m)
}
