package sandbox_test

import (
	"os"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/engine/enginetest"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == roleDaemon {
		playDaemon(os.Args[2], (*daemon).Pause)
	}
	if len(os.Args) == 3 && os.Args[1] == roleOfFiles {
		playDaemon(os.Args[2], (*daemon).PauseFiles)
	}
	if len(os.Args) == 3 && os.Args[1] == roleCopier {
		playCopier(os.Args[2])
	}
	enginetest.Main(m)
}
