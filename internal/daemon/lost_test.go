package daemon

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
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
	follows := func(_, command string) bool { return command == "followed" || command == "mine" }
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

// TestOverdueIsWrittenAtTheEnd: what the log did not take is tried once more as the daemon ends.
func TestOverdueIsWrittenAtTheEnd(t *testing.T) {
	t.Parallel()
	written := 0
	end := new(lost).keep(t.Context(), nil, func(ctx context.Context) {
		if ctx.Err() == nil {
			written++
		}
	}, slog.New(slog.DiscardHandler))
	if end(); written != 1 {
		t.Errorf("written %d times", written)
	}
}
