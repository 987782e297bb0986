package sandbox_test

import (
	"os"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/enginetest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/gvisor"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/agenthome/agenthometest"
)

func TestMain(m *testing.M) {
	agenthometest.Play()
	if len(os.Args) == 3 {
		if way, ok := livesByRole()[os.Args[1]]; ok {
			playDaemon(os.Args[2], way)
		}
	}
	if len(os.Args) == 3 && os.Args[1] == roleCopier {
		playCopier(os.Args[2])
	}
	enginetest.Main(m, func(args []string) error { return gvisor.Stage(args[0], args[1:]) })
}
