package daemon

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/unended"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// TestWhatNobodyFollowsEnds: of an earlier daemon at once, of this one after two looks; what is
// followed does not.
func TestWhatNobodyFollowsEnds(t *testing.T) {
	log := &approvaltest.Log{}
	command := func(id string) {
		t.Helper()
		if _, err := log.Append(t.Context(), audit.Record{Kind: audit.KindCommand, Outcome: audit.Started, Sandbox: "sb", Detail: map[string]string{"command_id": id}}); err != nil {
			t.Fatal(err)
		}
	}
	ended := func() map[string]int {
		ends := map[string]int{}
		for _, r := range log.All() {
			if r.Outcome == audit.Finished {
				ends[r.Detail["command_id"]]++
			}
		}
		return ends
	}
	follows := func(b unended.Begin) bool { return b.Command() == "followed" || b.Command() == "mine" }
	command("followed")
	command("cut")
	l, err := openLost(t.Context(), log, filepath.Join(t.TempDir(), "unended.json"))
	if err != nil {
		t.Fatal(err)
	}
	command("mine")
	command("lost")
	l.endFirst(t.Context(), follows, quiet())
	if got := ended(); len(got) != 1 || got["cut"] != 1 {
		t.Errorf("at the start: %v", got)
	}
	for look, want := range []int{1, 2, 2} {
		if err := l.endUnfollowed(t.Context(), follows); err != nil {
			t.Fatal(err)
		}
		if got := ended(); len(got) != want || want == 2 && got["lost"] != 1 {
			t.Errorf("look %d: %v", look, got)
		}
	}
}

// TestAFileThatNobodyFollowsEnds: a file whose end could not be written has one after two looks, as
// one that broke off; one that is under way has none.
func TestAFileThatNobodyFollowsEnds(t *testing.T) {
	log := &approvaltest.Log{}
	l, err := openLost(t.Context(), log, filepath.Join(t.TempDir(), "unended.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"under way", "left"} {
		if _, err := log.Append(t.Context(), audit.Record{Kind: audit.KindFile, Outcome: audit.Started, Sandbox: "sb", File: path}); err != nil {
			t.Fatal(err)
		}
	}
	follows := func(b unended.Begin) bool { return b.File == "under way" }
	for look, want := range []int{0, 1, 1} {
		if err := l.endUnfollowed(t.Context(), follows); err != nil {
			t.Fatal(err)
		}
		ends := log.All()[2:]
		if len(ends) != want || want == 1 && (ends[0].File != "left" || ends[0].Outcome != audit.Aborted || ends[0].Reason == "") {
			t.Errorf("look %d: %+v", look, ends)
		}
	}
}

// TestSummariesAreWrittenAtTheEnd: what only the daemon's memory knows is written once as it ends.
func TestSummariesAreWrittenAtTheEnd(t *testing.T) {
	t.Parallel()
	written := 0
	l, err := openLost(t.Context(), &approvaltest.Log{}, filepath.Join(t.TempDir(), "unended.json"))
	if err != nil {
		t.Fatal(err)
	}
	end := l.keepLooking(t.Context(), nil, summaries{
		nowAndThen: func(context.Context) error { return nil },
		atTheEnd: func(ctx context.Context) error {
			written++
			return ctx.Err()
		},
	}, slog.New(slog.DiscardHandler))
	if end(); written != 1 {
		t.Errorf("written %d times", written)
	}
}

// TestWhatTheVersionBeforePassedOverIsFound: a daemon that goes on with that version's file finds what it lacks.
func TestWhatTheVersionBeforePassedOverIsFound(t *testing.T) {
	t.Parallel()
	log, path := &approvaltest.Log{}, filepath.Join(t.TempDir(), "unended.json")
	_, err := log.Append(t.Context(), audit.Record{Kind: audit.KindSandbox, Outcome: audit.Started, Sandbox: "sb"})
	must(t, err)
	must(t, os.WriteFile(path, []byte(`{"next": 1, "open": []}`), 0o600))
	l, err := openLost(t.Context(), log, path)
	must(t, err)
	nothing := func(context.Context) error { return nil }
	defer l.keepLooking(t.Context(), nil, summaries{nowAndThen: nothing, atTheEnd: nothing}, quiet())()
	for found := false; !found; { // the test's own time limit bounds it
		must(t, l.registry.EndAll(t.Context(), "", func(b unended.Begin) bool { found = b.Sandbox == "sb"; return false }))
	}
}
