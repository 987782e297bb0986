package admission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/unended"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// busy has the sandbox of a token's run do what makes records of each kind.
func busy(t *testing.T, h *house) {
	t.Helper()
	h.Unregister("sb1")
	run := h.run()
	run.Token = "tk_secret1"
	must(t, h.Register(run))
	must(t, h.SandboxStarted(t.Context(), "sb1"))
	host := door.HostPort{Sandbox: "sb1", Name: "other.example", Port: 443}
	for _, do := range []func() error{
		func() error { _, err := h.Serve(t.Context(), serving("requests", "2.31.0")); return err },
		func() error { _, err := h.Serve(t.Context(), serving("evil", "1.0")); return err },
		func() error {
			_, err := h.Index(t.Context(), indexOf("numpy", "d", wheel("numpy", "1.0"), wheel("numpy", "2.0")))
			return err
		},
		func() error {
			_, err := h.Failed(t.Context(), door.Failure{Sandbox: "sb1", Package: python("numpy", "1.1"), Reason: "it lies"})
			return err
		},
		func() error {
			_, err := h.Name(t.Context(), door.NameAsk{Sandbox: "sb1", Name: "no.example"})
			return err
		},
		func() error {
			_, err := h.HostRefused(t.Context(), door.HostRefusal{Sandbox: "sb1", Name: "no.example", Port: 443, Rule: door.RuleHostTLS, Reason: "no TLS"})
			return err
		},
		func() error {
			_, err := h.Leaked(t.Context(), door.LeakAsk{HostPort: host, Request: exchange.Request{Method: "GET", Path: "/"}, Leak: exchange.Leak{Secret: "s"}})
			return err
		},
		func() error { return installed(h.InventoryUnknown(t.Context(), "sb1", "it stalls", true)) },
		func() error { _, err := h.Command(t.Context(), "sb1", "cmd-1", []string{"ls"}); return err },
		func() error { return h.CommandFinished(t.Context(), "sb1", "cmd-1", channel.Exit{}) },
		func() error { _, err := h.Command(t.Context(), "sb1", "cmd-2", []string{"curl"}); return err },
	} {
		must(t, do())
	}
	must(t, h.SandboxEnded(t.Context(), "sb1", "done"))
}

// TestEachRecordOfARunSaysWhoseItIs: all that a run causes is one query by its user or its token.
func TestEachRecordOfARunSaysWhoseItIs(t *testing.T) {
	h := newHouse(t, Limits{})
	busy(t, h)
	kinds, all := map[audit.Kind]int{}, 0
	for _, r := range h.records(t) {
		if r.Run == "run1" {
			all++
			kinds[r.Kind]++
			if r.User != "ann" || r.Token != "tk_secret1" {
				t.Errorf("record %d (%s %s) is of user %q and token %q", r.Seq, r.Kind, r.Outcome, r.User, r.Token)
			}
		}
	}
	for _, kind := range []audit.Kind{audit.KindPackage, audit.KindNetwork, audit.KindCommand, audit.KindSandbox} {
		if kinds[kind] == 0 {
			t.Errorf("there is no record of the kind %s", kind)
		}
	}
	for name, f := range map[string]audit.Filter{"token": {Token: "tk_secret1"}, "user": {User: "ann"}, "another token": {Token: "tk_other"}} {
		got := 0
		for _, err := range h.log.Records(t.Context(), f) {
			must(t, err)
			got++
		}
		if want := map[bool]int{true: 0, false: all}[name == "another token"]; got != want {
			t.Errorf("by %s there are %d records, want %d", name, got, want)
		}
	}
}

// TestWhoseARunWasIsErased from the log's files and from what the daemon keeps beside it; the
// log verifies, and the run is still its token's and nobody else's.
func TestWhoseARunWasIsErased(t *testing.T) {
	h := newHouse(t, Limits{})
	dir := t.TempDir()
	log, err := audit.Open(filepath.Join(dir, "audit"), audit.Options{})
	must(t, err)
	h.log = log
	key := []byte("the key of this installation, 32b")
	h.Controller = New(Config{Clients: h.config.Clients, Log: log, Clock: h, FindingsKey: key})
	must(t, h.Register(h.run()))
	busy(t, h)
	open, err := log.Append(t.Context(), audit.Record{Kind: audit.KindNetwork, Outcome: audit.Started, Run: "run1", Sandbox: "sb1", User: "ann", Token: "tk_secret1", Detail: map[string]string{"name": "api.example", "port": "443"}})
	must(t, err)
	registry, err := unended.Open(t.Context(), log, filepath.Join(dir, "unended.json"))
	must(t, err)
	_, err = log.Erase(t.Context(), audit.EraseAsk{Run: "run1", By: "dpo"})
	must(t, err)
	must(t, registry.EndAll(t.Context(), "the daemon ended", func(b unended.Begin) bool { return b.Seq == open.Seq }))
	must(t, log.Close())
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, gone := range []string{"tk_secret1", `"ann"`, "a task"} {
			if strings.Contains(string(text), gone) {
				t.Errorf("%s still has %s", filepath.Base(path), gone)
			}
		}
		return err
	}))
	verdict, err := audit.Verify(t.Context(), filepath.Join(dir, "audit"), audit.VerifyOptions{})
	must(t, err)
	if !verdict.Sound || verdict.Erased == 0 {
		t.Errorf("%+v", verdict)
	}
	again, err := audit.OpenReader(filepath.Join(dir, "audit"))
	must(t, err)
	keys := audit.NewOwnerKeys(key)
	for r, err := range again.Records(t.Context(), audit.Filter{Run: "run1", Outcomes: []audit.Outcome{audit.Started}, Kinds: []audit.Kind{audit.KindSandbox}}) {
		must(t, err)
		if !keys.Owns(r, "tk_secret1") || keys.Owns(r, "tk_other") || keys.Owns(r, "") {
			t.Errorf("the run is not its token's alone any more: %+v", r)
		}
	}
}
