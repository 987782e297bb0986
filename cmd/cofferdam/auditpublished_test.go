package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// TestWhatIsSaidOfPublishingIsNotProved: the file that says what was published lies with the log and is signed
// by nobody. The holder of the copy has written it, so a verdict that repeats it says that it is not proved.
func TestWhatIsSaidOfPublishingIsNotProved(t *testing.T) {
	dir := logDir(t)
	verdict := func() string {
		v, err := audit.Verify(t.Context(), dir, audit.VerifyOptions{})
		if err != nil || !v.Sound {
			t.Fatalf("%+v %v", v, err)
		}
		return verdictText(v, time.Now())
	}
	if text := verdict(); strings.Contains(text, "  published") {
		t.Fatalf("%s", text)
	}
	forged, err := json.Marshal(audit.Published{Targets: []audit.PublishedTo{{Name: "https://transparency.example", Size: 1 << 20, Time: time.Now().UTC()}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, audit.PublishedName), forged, 0o600); err != nil {
		t.Fatal(err)
	}
	text := verdict()
	for line := range strings.Lines(text) {
		if strings.Contains(line, "transparency.example") && !strings.Contains(line, "not proved") {
			t.Errorf("of a file that anybody can have written, a verdict that says \"is sound\" has:\n%s", line)
		}
	}
}
