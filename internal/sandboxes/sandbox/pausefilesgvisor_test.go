package sandbox_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// TestRealPauseOfFiles: what runs ends with the pause and is told so; another daemon
// starts the same sandbox anew on its files, with its environment, and a pause with
// memory works afterwards. The record says which it was.
func TestRealPauseOfFiles(t *testing.T) {
	s := newRealStudio(t)
	ctx := t.Context()
	req := s.request(open)
	req.Env = map[string]string{"GIVEN": "word"}
	one := s.create(req)
	id := one.Info().ID
	look := `cat ~/kept; echo "$GIVEN $(id -un) $(hostname)"; ls /tmp | grep -c gone; pgrep -x sleep | wc -l`
	boot := s.sh(id, "echo files > ~/kept; touch /tmp/gone; cat /proc/sys/kernel/random/boot_id")
	cut, err := s.Start(ctx, id, sandbox.Command{Argv: []string{"/bin/sleep", "1000"}, Dir: "/"})
	must(t, err)
	must(t, s.PauseFiles(ctx, id))
	wantState(t, one, sandbox.Paused)
	if !one.FilesAlone() {
		t.Error("its memory is said to be kept")
	}
	if _, exit := s.await(id, cut.ID, 0); exit.Code == 0 || !strings.Contains(exit.Error, "only its files were kept") {
		t.Errorf("what ran was told %+v", exit)
	}
	category(t, s.PauseFiles(ctx, id), fault.ErrConflict, "paused already")

	s.restart("sha256:another")
	_, err = s.Resume(ctx, id)
	category(t, err, fault.ErrConflict, "the template plain is another than it was")
	wantState(t, mustGet(t, s, id), sandbox.Paused)
	s.restart(one.Info().Digest)
	one = mustGet(t, s, id)
	wantState(t, one, sandbox.Paused)
	if was, err := s.Resume(ctx, id); !was || err != nil {
		t.Fatal(was, err)
	}
	if got, want := s.sh(id, look), "files\nword agent "+id+"\n0\n0"; got != want {
		t.Errorf("started anew it has %q, want %q", got, want)
	}
	if now := s.sh(id, "cat /proc/sys/kernel/random/boot_id"); now == boot || len(now) != len(boot) {
		t.Errorf("the boot's id is %q, and was %q", now, boot)
	}
	await(t, "the command that was cut off is on record", func() bool {
		for _, r := range s.records(id, audit.Finished) {
			if slices.Contains(r.Command, "1000") || r.Detail["command"] == cut.ID {
				return true
			}
		}
		return false
	})

	must(t, s.Pause(ctx, id))
	if one.FilesAlone() {
		t.Error("the memory of a pause after one of files is not kept")
	}
	if _, err := s.Resume(ctx, id); err != nil {
		t.Fatal(err)
	}
	if got := s.sh(id, "cat ~/kept"); got != "files" {
		t.Errorf("after a pause with memory: %q", got)
	}
	var contents []string
	for _, outcome := range []audit.Outcome{audit.Paused, audit.Resumed} {
		for _, r := range s.records(id, outcome) {
			contents = append(contents, string(r.Outcome)+" "+r.Detail["contents"])
		}
	}
	if got := strings.Join(contents, ", "); got != "paused files, paused , resumed files, resumed " {
		t.Errorf("on record is %q", got)
	}
	must(t, s.Destroy(ctx, id))
}

// TestRealEndOfFiles: at the end of its time it is paused so, if it was made so.
func TestRealEndOfFiles(t *testing.T) {
	s := newRealStudio(t)
	req := s.request(open)
	req.Lifetime = sandbox.Lifetime{TTL: time.Hour, Then: sandbox.ThenPauseFiles}
	one := s.create(req)
	id := one.Info().ID
	must(t, s.SetLifetime(t.Context(), id, sandbox.Lifetime{TTL: time.Millisecond, Then: sandbox.ThenPauseFiles}))
	await(t, "it is paused", func() bool { state, _ := one.State(); return state == sandbox.Paused })
	if !one.FilesAlone() {
		t.Error("its memory is kept")
	}
	must(t, s.Destroy(t.Context(), id))
}
