package sandbox_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/snapshots"
)

// run starts a command and waits until its end and what it installed are on record.
func (s *studio) run(id string, argv ...string) {
	s.t.Helper()
	s.ended(id, argv...)
	must(s.t, s.Settle(s.t.Context(), mustGet(s.t, s, id).Info().Run))
}

// ended starts a command and waits until it has ended, not until that is on record.
func (s *studio) ended(id string, argv ...string) {
	s.t.Helper()
	_, err := s.Start(s.t.Context(), id, sandbox.Command{Argv: argv, Dir: "/"})
	must(s.t, err)
	for { // its exit is the guest's to tell
		known, err := s.Commands(s.t.Context(), id)
		must(s.t, err)
		if !slices.ContainsFunc(known, func(c keeper.Command) bool { return c.Exit == nil }) {
			break
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-s.t.Context().Done():
			s.t.Fatal("the command does not end")
		}
	}
}

const dist = "home/agent/.local/lib/python3.12/site-packages/"

// TestASnapshotRestores: files, environment, policy, ledger and record are those of
// the source, id, run and name are new; over a restart of the daemon, too.
func TestASnapshotRestores(t *testing.T) {
	s := newStudio(t)
	source := s.create(s.request(house)).Info()
	s.serve(source.ID)
	s.write(source.ID, dist+"requests-2.31.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: requests\nVersion: 2.31.0\n")
	s.write(source.ID, "home/agent/work", "half done")
	s.run(source.ID, "/bin/true")
	if got := s.records(source.ID, audit.Installed); len(got) != 1 || got[0].SHA256 == "" {
		t.Fatalf("the source's inventory: %+v", got)
	}
	snap, err := s.Snapshot(t.Context(), source.ID, "base", "")
	must(t, err)
	if snap.Contents != engine.ContentsMemory || !strings.HasPrefix(snap.ID, "snap") || snap.Of.ID != source.ID || snap.Bytes == 0 {
		t.Errorf("the snapshot: %+v", snap)
	}
	if got := s.records(source.ID, audit.Snapshotted); len(got) != 1 || got[0].Detail["digest"] != snap.Digest || got[0].Detail["snapshot"] != snap.ID {
		t.Errorf("on record: %+v", got)
	}
	must(t, s.Destroy(t.Context(), source.ID))
	for _, ref := range []string{"base", snap.ID} {
		req := sandbox.Request{Snapshot: ref, User: "ben", Env: map[string]string{"MORE": "x"}}
		one := s.create(req)
		info := one.Info()
		if info.Snapshot != snap.ID || info.Parent != "" || info.ID == source.ID || info.Run == source.Run || info.PolicyDigest != source.PolicyDigest || info.User != "ben" {
			t.Errorf("the copy: %+v", info)
		}
		if got := s.read(info.ID, "home/agent/work"); got != "half done" {
			t.Errorf("its file: %q", got)
		}
		if got := s.read(info.ID, "etc/hostname"); got != info.ID {
			t.Errorf("its name: %q", got)
		}
		s.run(info.ID, "/bin/sh", "-c", `[ "$MINE$MORE" = yesx ]`)
		if end := s.records(info.ID, audit.Finished); len(end) != 1 || *end[0].Exit != 0 {
			t.Errorf("its environment: %+v", end)
		}
		if got := s.records(info.ID, audit.Alarm); len(got) != 0 {
			t.Errorf("alarms: %+v", got)
		}
		if got := s.records(info.ID, audit.Restored); len(got) != 1 || got[0].Detail["snapshot"] != snap.ID || !strings.Contains(got[0].Detail["came_with"], "requests") {
			t.Errorf("on record: %+v", got)
		}
		s.restart("sha256:template")
		s.write(info.ID, dist+"strange-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: strange\nVersion: 1.0\n")
		s.run(info.ID, "/bin/true")
		if got := s.records(info.ID, audit.Alarm); len(got) != 1 || got[0].Package != "strange" {
			t.Errorf("alarms after a restart: %+v", got)
		}
		must(t, s.Destroy(t.Context(), info.ID))
	}
	if list, err := s.Snapshots(t.Context()); err != nil || len(list) != 1 || list[0].Name != "base" || list[0].Digest != snap.Digest {
		t.Errorf("listed: %+v, %v", list, err)
	}
	must(t, s.RemoveSnapshot(t.Context(), "", "base"))
	if got := s.records("", audit.Started); len(got) == 0 || got[len(got)-1].Detail["event"] != "snapshot_removed" || got[len(got)-1].Detail["snapshot"] != snap.ID {
		t.Errorf("its removal is not on record: %+v", got)
	}
	if left := s.left(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestWhatCanNotBeCopied, and why.
func TestWhatCanNotBeCopied(t *testing.T) {
	s := newStudio(t)
	shared := t.TempDir()
	req := s.request(house)
	req.Mounts = []mountpolicy.Mount{{Source: shared, Destination: "/workspace", ReadWrite: true}}
	mounted := s.create(req).Info().ID
	plan := s.request(house)
	plan.Plan = true
	planned := s.create(plan).Info().ID
	plain := s.create(s.request(house)).Info().ID
	for _, c := range []struct {
		what, id, name string
		contents       engine.Contents
		want           error
		says           string
	}{
		{"writable mounts", mounted, "", "", fault.ErrConflict, "/workspace"},
		{"a plan", planned, "", "", fault.ErrConflict, "plan"},
		{"nobody", "sb0", "", "", fault.ErrNotFound, "sb0"},
		{"a strange name", plain, "a/b", "", fault.ErrInvalid, "a/b"},
		{"strange contents", plain, "", "soul", fault.ErrInvalid, "soul"},
	} {
		if _, err := s.Snapshot(t.Context(), c.id, c.name, c.contents); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.what, err)
		}
		if _, err := s.Fork(t.Context(), c.id, 1, sandbox.Lifetime{}); c.name == "" && c.contents == "" && !errors.Is(err, c.want) {
			t.Errorf("a fork of %s: %v", c.what, err)
		}
	}
	must(t, s.Pause(t.Context(), plain))
	if _, err := s.Snapshot(t.Context(), plain, "", ""); !errors.Is(err, fault.ErrConflict) || !strings.Contains(err.Error(), "paused") {
		t.Errorf("a paused one: %v", err)
	}
	if _, err := s.Resume(t.Context(), plain); err != nil {
		t.Fatal(err)
	}
	for _, count := range []int{0, -1, 101} {
		if _, err := s.Fork(t.Context(), plain, count, sandbox.Lifetime{}); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%d copies: %v", count, err)
		}
	}
	if left := s.left(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestASnapshotThatFails leaves nothing, and its source runs on.
func TestASnapshotThatFails(t *testing.T) {
	s := newStudio(t)
	id := s.create(s.request(house)).Info().ID
	s.camera.fail = errors.New("the disk is full")
	for range 2 {
		if _, err := s.Snapshot(t.Context(), id, "x", ""); err == nil || !strings.Contains(err.Error(), "disk is full") {
			t.Errorf("a snapshot: %v", err)
		}
		if _, err := s.Fork(t.Context(), id, 2, sandbox.Lifetime{}); err == nil {
			t.Error("a fork was made")
		}
	}
	s.run(id, "/bin/true")
	if got := s.records(id, audit.Snapshotted); len(got) != 0 {
		t.Errorf("on record: %+v", got)
	}
	if list, err := s.Snapshots(t.Context()); err != nil || len(list) != 0 || len(s.left()) != 0 {
		t.Errorf("left: %v, %v, %v", list, err, s.left())
	}
}

// TestFilesOnly: an engine that copies no memory copies files, and says so of the rest.
func TestFilesOnly(t *testing.T) {
	s := newStudio(t)
	s.camera.filesOnly = true
	id := s.create(s.request(house)).Info().ID
	_, memory := s.Snapshot(t.Context(), id, "", engine.ContentsMemory)
	_, fork := s.Fork(t.Context(), id, 1, sandbox.Lifetime{})
	for what, err := range map[string]error{"a snapshot": memory, "a fork": fork} {
		if !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), "it has no film") || !strings.Contains(err.Error(), "files alone can be made") {
			t.Errorf("%s of memory: %v", what, err)
		}
	}
	snapshot, err := s.Snapshot(t.Context(), id, "", engine.ContentsFiles)
	if err != nil {
		t.Fatal(err)
	}
	s.run(s.create(sandbox.Request{Snapshot: snapshot.ID, User: "ben"}).Info().ID, "/bin/true")
	if list, err := s.Snapshots(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("there are %+v (%v)", list, err)
	}
}

// TestNoRoom is refused before anything is written.
func TestNoRoom(t *testing.T) {
	s := newStudio(t)
	s.room.Count = 1
	s.restart("sha256:template")
	id := s.create(s.request(house)).Info().ID
	_, err := s.Snapshot(t.Context(), id, "", "")
	must(t, err)
	if _, err := s.Snapshot(t.Context(), id, "", ""); !errors.Is(err, fault.ErrExhausted) {
		t.Errorf("a second one: %v", err)
	}
	copies, err := s.Fork(t.Context(), id, 1, sandbox.Lifetime{})
	must(t, err)
	if copies[0].Err != nil {
		t.Errorf("a fork, which keeps nothing: %v", copies[0].Err)
	}
}

// TestSnapshotsOfAToken take no more of the disk than its quota, and those of
// another do not count.
func TestSnapshotsOfAToken(t *testing.T) {
	s := newStudio(t)
	var ids []string
	for _, token := range []string{"tok-1", "tok-2"} {
		req := s.request(house)
		req.Owner = sandbox.Owner{Token: token}
		req.Owner.Quota.DiskBytes = 5 << 30
		ids = append(ids, s.create(req).Info().ID)
	}
	_, err := s.Snapshot(t.Context(), ids[0], "", "")
	must(t, err)
	s.camera.size = 5 << 30
	for _, id := range ids {
		_, err = s.Snapshot(t.Context(), id, "", "")
		if !errors.Is(err, fault.ErrExhausted) || strings.Contains(err.Error(), "token's snapshots") != (id == ids[0]) {
			t.Errorf("of %s: %v", id, err) // the other has no room on the disk, but its quota
		}
	}
}

// TestForks are like their source, each for itself, and the image goes.
func TestForks(t *testing.T) {
	s := newStudio(t)
	req := s.request(house)
	req.Owner, req.Labels = sandbox.Owner{Token: "tok-1"}, map[string]string{"a": "b"}
	source := s.create(req).Info()
	s.serve(source.ID)
	s.write(source.ID, dist+"requests-2.31.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: requests\nVersion: 2.31.0\n")
	copies, err := s.Fork(t.Context(), source.ID, 4, sandbox.Lifetime{TTL: time.Hour})
	must(t, err)
	names, machines := map[string]bool{}, map[string]bool{}
	for _, c := range copies {
		must(t, c.Err)
		info := c.Sandbox.Info()
		if info.Parent != source.ID || info.Snapshot != "" || info.Owner.Token != "tok-1" || info.Labels["a"] != "b" || info.Lifetime.TTL != time.Hour || info.PolicyDigest != source.PolicyDigest || info.User != "ann" {
			t.Errorf("a fork: %+v", info)
		}
		names[s.read(info.ID, "etc/hostname")], machines[s.read(info.ID, "etc/machine-id")] = true, true
		s.run(info.ID, "/bin/true")
		if got := s.records(info.ID, audit.Installed); len(got) != 1 || got[0].SHA256 == "" {
			t.Errorf("its inventory: %+v", got)
		}
		if got := s.records(info.ID, audit.Restored); len(got) != 1 || got[0].Detail["copy_of"] != source.ID {
			t.Errorf("on record: %+v", got)
		}
	}
	if len(names) != 4 || len(machines) != 4 {
		t.Errorf("names %v, machine ids %v", names, machines)
	}
	again, err := s.Fork(t.Context(), copies[0].Sandbox.Info().ID, 1, sandbox.Lifetime{})
	must(t, err)
	must(t, again[0].Err)
	if got := again[0].Sandbox.Info(); len(got.Ancestors) != 2 || got.Parent != copies[0].Sandbox.Info().ID {
		t.Errorf("a fork of a fork: %+v", got)
	}
	s.run(again[0].Sandbox.Info().ID, "/bin/true")
	if got := s.records(again[0].Sandbox.Info().ID, audit.Alarm); len(got) != 0 {
		t.Errorf("alarms: %+v", got)
	}
	if left := s.left(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	state, _ := mustGet(t, s, source.ID).State()
	if state != sandbox.Running {
		t.Errorf("the source is %s", state)
	}
}

func mustGet(t *testing.T, s *studio, id string) *sandbox.Sandbox {
	t.Helper()
	one, err := s.Get(id)
	must(t, err)
	return one
}

// TestCopiesOfWhatHasJustEnded: what a command has installed is said to have come in
// a copy, though nobody waited for the record of it.
func TestCopiesOfWhatHasJustEnded(t *testing.T) {
	s := newStudio(t)
	source := s.create(s.request(house)).Info()
	came := func(id string) {
		t.Helper()
		if got := s.records(id, audit.Restored); len(got) != 1 || !strings.Contains(got[0].Detail["came_with"], "requests") {
			t.Errorf("on record: %+v", got)
		}
	}
	s.serve(source.ID)
	s.write(source.ID, dist+"requests-2.31.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: requests\nVersion: 2.31.0\n")
	s.ended(source.ID, "/bin/true")
	copies, err := s.Fork(t.Context(), source.ID, 1, sandbox.Lifetime{})
	must(t, err)
	must(t, copies[0].Err)
	came(copies[0].Sandbox.Info().ID)

	second := s.create(s.request(house)).Info()
	s.serve(second.ID)
	s.write(second.ID, dist+"requests-2.31.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: requests\nVersion: 2.31.0\n")
	s.ended(second.ID, "/bin/true")
	_, err = s.Snapshot(t.Context(), second.ID, "base", "")
	must(t, err)
	came(s.create(sandbox.Request{Snapshot: "base", User: "ben"}).Info().ID)
}

// TestNobodyWaitsForWhatStandsStill: what has ended in a paused sandbox is on record
// after it goes on, and who asks for the records meanwhile is answered.
func TestNobodyWaitsForWhatStandsStill(t *testing.T) {
	s := newStudio(t)
	one := s.create(s.request(house)).Info()
	s.ended(one.ID, "/bin/true")
	must(t, s.Pause(t.Context(), one.ID))
	must(t, s.Settle(t.Context(), one.Run))
	if got := s.records(one.ID, audit.Finished); len(got) != 0 {
		t.Errorf("on record while it is paused: %+v", got)
	}
	_, err := s.Resume(t.Context(), one.ID)
	must(t, err)
	must(t, s.Settle(t.Context(), one.Run))
	if got := s.records(one.ID, audit.Finished); len(got) != 1 {
		t.Errorf("on record after it went on: %+v", got)
	}
}

// TestForksThatFail have the reason, each; nothing of them is left.
func TestForksThatFail(t *testing.T) {
	s := newStudio(t)
	req := s.request(house)
	req.Owner = sandbox.Owner{Token: "tok-1"}
	req.Owner.Quota.Sandboxes = 3
	source := s.create(req).Info()
	copies, err := s.Fork(t.Context(), source.ID, 4, sandbox.Lifetime{})
	must(t, err)
	made, refused := 0, 0
	for _, c := range copies {
		switch {
		case c.Err == nil:
			made++
		case errors.Is(c.Err, fault.ErrExhausted):
			refused++
		default:
			t.Errorf("a copy: %v", c.Err)
		}
	}
	if made != 2 || refused != 2 || len(s.List()) != 3 {
		t.Errorf("%d made, %d refused, %d there", made, refused, len(s.List()))
	}
	if left := s.left(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestBurntCopies: what an advisory says after the copy was made is refused before
// anything starts, with its name, and so is what the copy's own policy blocks.
func TestBurntCopies(t *testing.T) {
	s := newStudio(t)
	source := s.create(s.request(house)).Info()
	s.serve(source.ID)
	_, err := s.Snapshot(t.Context(), source.ID, "base", "")
	must(t, err)
	refused := func(what string, err error, says ...string) {
		t.Helper()
		if !errors.Is(err, fault.ErrForbidden) {
			t.Errorf("%s: %v", what, err)
			return
		}
		for _, text := range append(says, "requests") {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s does not say %q: %v", what, text, err)
			}
		}
	}
	other := s.request("blocked_packages: { python: [ { name: requests } ] }")
	other.Snapshot, other.Env = "base", nil
	_, err = s.Create(t.Context(), other)
	refused("a policy that blocks it", err, "blocklist")
	s.advisories.burn("requests")
	started := len(s.camera.seen)
	_, err = s.Create(t.Context(), sandbox.Request{Snapshot: "base"})
	refused("a restore", err, "MAL-2026-9")
	copies, err := s.Fork(t.Context(), source.ID, 2, sandbox.Lifetime{})
	if err == nil {
		err = copies[0].Err
	}
	refused("a fork", err, "MAL-2026-9")
	if len(s.camera.seen) != started || len(s.List()) != 1 {
		t.Errorf("%d were started", len(s.camera.seen)-started)
	}
	s.advisories.burn("")
	s.create(sandbox.Request{Snapshot: "base"})
}

// TestSpoiltSnapshots are refused before anything starts: changed, exchanged, or
// without their record.
func TestSpoiltSnapshots(t *testing.T) {
	s := newStudio(t)
	id := s.create(s.request(house)).Info().ID
	first, err := s.Snapshot(t.Context(), id, "a", "")
	must(t, err)
	second, err := s.Snapshot(t.Context(), id, "b", "")
	must(t, err)
	started := len(s.camera.seen)
	in := func(snap sandbox.Snapshot, name string) string {
		return filepath.Join(s.dir, "snapshots", snap.ID, name)
	}
	change := func(path string) (undo func()) {
		good, err := os.ReadFile(path)
		must(t, err)
		bad := slices.Clone(good)
		bad[len(bad)/2] ^= 1
		must(t, os.WriteFile(path, bad, 0o600))
		return func() { must(t, os.WriteFile(path, good, 0o600)) }
	}
	exchange := func(a, b string) func() {
		swap := func() {
			must(t, os.Rename(a, a+".x"))
			must(t, os.Rename(b, a))
			must(t, os.Rename(a+".x", b))
		}
		swap()
		return swap
	}
	for what, spoil := range map[string]func() func(){
		"a byte of the image":    func() func() { return change(in(first, "image/of")) },
		"a byte of the seal":     func() func() { return change(in(first, "image/seal.json")) },
		"a byte of the manifest": func() func() { return change(in(first, "manifest.json")) },
		"another's image":        func() func() { return exchange(in(first, "image"), in(second, "image")) },
	} {
		undo := spoil()
		if _, err := s.Create(t.Context(), sandbox.Request{Snapshot: "a"}); !errors.Is(err, fault.ErrConflict) {
			t.Errorf("%s: %v", what, err)
		}
		undo()
	}
	state, err := os.ReadFile(in(first, "state.json"))
	must(t, err)
	must(t, os.WriteFile(in(first, "state.json"), []byte(`{"record":0}`), 0o600)) // another record of the log
	s.restart("sha256:template")
	if _, err := s.Create(t.Context(), sandbox.Request{Snapshot: "a"}); !errors.Is(err, fault.ErrConflict) || !strings.Contains(err.Error(), "log") {
		t.Errorf("another record: %v", err)
	}
	must(t, os.WriteFile(in(first, "state.json"), state, 0o600))
	s.restart("sha256:other")
	if _, err := s.Create(t.Context(), sandbox.Request{Snapshot: "a"}); !errors.Is(err, fault.ErrConflict) || !strings.Contains(err.Error(), "template") {
		t.Errorf("another template: %v", err)
	}
	s.restart("sha256:template")
	if len(s.camera.seen) != started || len(s.List()) != 1 {
		t.Errorf("%d were started", len(s.camera.seen)-started)
	}
	s.create(sandbox.Request{Snapshot: "a"})
}

// TestRequestsForCopies: what is the snapshot's is not asked for, whose it is not
// does not get it, and no copy has more than its source.
func TestRequestsForCopies(t *testing.T) {
	s := newStudio(t)
	req := s.request(house + "resources: { memory_limit: 1Gi, cpu_limit: 2 }\n")
	req.Owner = sandbox.Owner{Token: "tok-1"}
	id := s.create(req).Info().ID
	_, err := s.Snapshot(t.Context(), id, "mine", engine.ContentsFiles)
	must(t, err)
	for what, c := range map[string]struct {
		req  sandbox.Request
		want error
	}{
		"a template":  {sandbox.Request{Snapshot: "mine", Template: "plain", Owner: req.Owner}, fault.ErrInvalid},
		"an engine":   {sandbox.Request{Snapshot: "mine", Engine: "camera", Owner: req.Owner}, fault.ErrInvalid},
		"mounts":      {sandbox.Request{Snapshot: "mine", Mounts: []mountpolicy.Mount{{Source: "/tmp", Destination: "/x"}}, Owner: req.Owner}, fault.ErrInvalid},
		"a plan":      {sandbox.Request{Snapshot: "mine", Plan: true, Owner: req.Owner}, fault.ErrInvalid},
		"another's":   {sandbox.Request{Snapshot: "mine", Owner: sandbox.Owner{Token: "tok-2"}}, fault.ErrNotFound},
		"the host's":  {sandbox.Request{Snapshot: "mine"}, fault.ErrNotFound},
		"what is not": {sandbox.Request{Snapshot: "other", Owner: req.Owner}, fault.ErrNotFound},
		"an isolation": {func() sandbox.Request {
			r := s.request("isolation: gvisor")
			r.Snapshot, r.Owner = "mine", req.Owner
			return r
		}(), fault.ErrForbidden},
		"a policy mount": {func() sandbox.Request {
			r := s.request("filesystem: { host_mounts: [ { source: /usr/share, destination: /x } ] }")
			r.Snapshot, r.Owner = "mine", req.Owner
			return r
		}(), fault.ErrInvalid},
	} {
		if _, err := s.Create(t.Context(), c.req); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	more := s.request(house + "resources: { memory_limit: 4Gi, cpu_limit: 1 }\n")
	more.Snapshot, more.Owner = "mine", req.Owner
	got := s.create(more).Info().Limits
	if got.MemoryBytes != 1<<30 || got.CPU != 1 {
		t.Errorf("limits: %+v", got)
	}
}

// TestACopyShowsWhatItsPolicyMounts: a snapshot is no way to keep what a policy
// showed of the host to a token (C-LI-11).
func TestACopyShowsWhatItsPolicyMounts(t *testing.T) {
	s := newStudio(t)
	shared := t.TempDir()
	mounting := "filesystem: { host_mounts: [ { source: " + shared + ", destination: /x } ] }\n"
	for _, owner := range []sandbox.Owner{{Token: "tok-1"}, {}} {
		ask := func(document string) sandbox.Request {
			r := s.request(document)
			r.Owner, r.Snapshot = owner, "mine"
			return r
		}
		source := s.request(mounting)
		source.Owner = owner
		id := s.create(source).Info().ID
		_, err := s.Snapshot(t.Context(), id, "mine", engine.ContentsFiles)
		must(t, err)
		s.create(ask(mounting))
		_, err = s.Create(t.Context(), ask(house))
		if refused := errors.Is(err, fault.ErrForbidden); refused != (owner.Token != "") {
			t.Errorf("under a policy that does not mount, for %q: %v", owner.Token, err)
		}
		forks, err := s.Fork(t.Context(), id, 1, sandbox.Lifetime{})
		must(t, err)
		must(t, forks[0].Err)
	}
}

// TestASnapshotIsNotRemovedWhileItIsRead, and the state of its source is told.
func TestASnapshotIsNotRemovedWhileItIsRead(t *testing.T) {
	s := newStudio(t)
	id := s.create(s.request(house)).Info().ID
	var during sandbox.State
	var once sync.Once
	s.camera.hook = func(ctx context.Context) {
		once.Do(func() {
			one, err := s.Get(id)
			if err == nil {
				during, _ = one.State()
			}
			if _, err := s.Snapshot(ctx, id, "", ""); !errors.Is(err, fault.ErrConflict) {
				t.Errorf("two at one time: %v", err)
			}
		})
	}
	_, err := s.Snapshot(t.Context(), id, "base", "")
	must(t, err)
	if during != sandbox.Snapshotting {
		t.Errorf("meanwhile it was %s", during)
	}
	store, err := snapshots.Open(snapshots.Config{Dir: filepath.Join(s.dir, "snapshots"), Room: s.room})
	must(t, err)
	lease, err := store.Lease(t.Context(), "", "base")
	must(t, err)
	if _, err := store.Remove("", "base"); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("removed while it is read: %v", err)
	}
	lease.Release()
	must(t, s.RemoveSnapshot(t.Context(), "", "base"))
	if err := s.RemoveSnapshot(t.Context(), "", "base"); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("removed twice: %v", err)
	}
}

// TestTheTemplateOfASnapshotIsInUse, so that it is not removed.
func TestTheTemplateOfASnapshotIsInUse(t *testing.T) {
	s := newStudio(t)
	id := s.create(s.request(house)).Info().ID
	_, err := s.Snapshot(t.Context(), id, "", "")
	must(t, err)
	must(t, s.Destroy(t.Context(), id))
	if !s.Uses("sha256:template") || s.Uses("sha256:other") {
		t.Error("the template of a snapshot is not in use")
	}
}
