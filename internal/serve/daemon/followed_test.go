package daemon

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/jscall"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/agenthome"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
	"github.com/cofferdam-dev/cofferdam/internal/serve/store"
)

// TestNobodyTellsTheEndOfAnother: the daemon ends no sandbox that the door has, as one that fetches a
// template's tools, or of which the door owes the end, or that is in the journal alone; and no command of which
// the door owes the end. Each has one end in the log when all is told. A sandbox of which nobody knows is
// the control.
func TestNobodyTellsTheEndOfAnother(t *testing.T) {
	dir, log := t.TempDir(), &approvaltest.Log{}
	file, err := store.OpenSandboxes(t.Context(), filepath.Join(dir, "sandboxes.db"))
	must(t, err)
	defer file.Close()
	door := admission.New(admission.Config{Log: log})
	d := &Daemon{opts: Options{Log: quiet()}, door: door, calls: &jscall.Desk{}, sandboxes: sandbox.New(sandbox.Config{
		Keeper: keeper.Dial(filepath.Join(dir, "keeper.sock")), Door: door, Journal: file, Log: quiet(), PolicyDir: dir, BaselineDir: dir,
		Homes: agenthome.NewShelf(dir), Shelf: suspend.NewShelf(filepath.Join(dir, "frozen"), suspend.Room{}),
	})}
	defer d.sandboxes.Close()
	p, err := policy.Parse("p.yaml", []byte("version: \"1\"\n"))
	must(t, err)
	for _, id := range []string{"fetches", "owed", "journal"} {
		must(t, door.Register(admission.Run{Sandbox: id, Run: "r", Policy: p}))
		must(t, door.SandboxStarted(t.Context(), id))
	}
	door.Unregister("journal")
	_, err = file.Move(t.Context(), sandbox.Entry{Info: sandbox.Info{ID: "journal"}, State: sandbox.Running}, sandbox.Event{Sandbox: "journal", To: sandbox.Running})
	must(t, err)
	_, err = log.Append(t.Context(), audit.Record{Kind: audit.KindSandbox, Outcome: audit.Started, Run: "r", Sandbox: "nobody"})
	must(t, err)
	_, err = door.CommandAs(t.Context(), "owed", "cmd-1", admission.Asked{Argv: []string{"true"}})
	must(t, err)
	log.FailWhen(func(audit.Record) error { return io.ErrShortWrite })
	if door.CommandFinished(t.Context(), "owed", "cmd-1", channel.Exit{Code: 3}) == nil || door.SandboxEnded(t.Context(), "owed", "destroyed") == nil {
		t.Fatal("INCONCLUSIVE: the log took it")
	}
	door.Unregister("owed")
	log.FailWhen(nil)

	l, err := openLost(t.Context(), log, filepath.Join(dir, "unended.json"))
	must(t, err)
	ends := func() map[string]string {
		all := map[string]string{}
		for _, r := range log.All() {
			if r.Outcome == audit.Finished {
				all[r.Sandbox+r.Detail["command_id"]] += r.Reason + ";"
			}
		}
		return all
	}
	for range 2 {
		must(t, l.endEarlier(t.Context(), followed(d)))
		must(t, l.endUnfollowed(t.Context(), followed(d)))
	}
	if got := ends(); len(got) != 1 || got["nobody"] != "the daemon ended;" {
		t.Errorf("the daemon ended %q", got)
	}
	door.WriteOverdue(t.Context())
	must(t, door.SandboxEnded(t.Context(), "fetches", "all was fetched"))
	door.Unregister("fetches")
	for range 2 {
		must(t, l.endUnfollowed(t.Context(), followed(d)))
	}
	if got := ends(); len(got) != 4 || got["fetches"] != "all was fetched;" || got["owed"] != "destroyed;" || got["owedcmd-1"] != ";" || got["nobody"] != "the daemon ended;" {
		t.Errorf("at the end: %q", got)
	}
}
