package unended_test

import (
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/unended"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
)

// TestABuildOwesItsEndUntilThatIsOnRecord, however it ends, and whoever asks first: one that reads on, or one that is
// opened later.
func TestABuildOwesItsEndUntilThatIsOnRecord(t *testing.T) {
	for _, end := range []admission.BuildStage{admission.BuildReady, admission.BuildFailed} {
		log, path := &approvaltest.Log{}, filepath.Join(t.TempDir(), "unended.json")
		c := admission.New(admission.Config{Log: log})
		reads, err := unended.Open(t.Context(), log, path)
		must(t, err)
		is := func(stage admission.BuildStage, owed bool) {
			t.Helper()
			must(t, c.RecordBuild(t.Context(), "", admission.Build{ID: "b1", Template: "app", Stage: stage, Step: "1"}))
			later, err := unended.Open(t.Context(), log, filepath.Join(t.TempDir(), "unended.json"))
			must(t, err)
			for name, g := range map[string]*unended.Registry{"one that reads on": reads, "one that is opened": later} {
				if got, err := g.OwesBuild(t.Context(), "b1"); err != nil || got != owed {
					t.Errorf("behind %s, %s says %v (%v)", stage, name, got, err)
				}
				if got, err := g.OwesBuild(t.Context(), "b2"); err != nil || got {
					t.Errorf("behind %s, %s says of another build %v (%v)", stage, name, got, err)
				}
			}
		}
		is(admission.BuildBegun, true)
		is(admission.BuildStep, true)
		is(end, false)
	}
}
