package pip

import (
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

// TestManifestsAreReadInTime: a megabyte of joined lines took half a minute, and one of nested tables the machine's memory.
func TestManifestsAreReadInTime(t *testing.T) {
	t.Parallel()
	start := time.Now()
	if all := joined(manifest.Text{Data: []byte(strings.Repeat("a\\\n", 340_000) + "\nb")}); len(all) != 2 || all[0].number != 1 || all[1].number != 340_002 {
		t.Errorf("%d lines", len(all))
	}
	var into pyproject
	if err := exactly([]byte("[tool.a"+strings.Repeat(".a", 5_000)+"]\nx=1\n"), &into); err == nil || !strings.Contains(err.Error(), "more than 100 times") {
		t.Errorf("deep tables: %v", err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}
