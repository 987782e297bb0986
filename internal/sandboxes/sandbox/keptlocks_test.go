package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/agenthome"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/journal"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/quota"
)

// locked is a request of a token's with a lockfile that no other request has.
func locked(t *testing.T, n int) sandbox.Request {
	t.Helper()
	req := ask(t, sandbox.Request{Linger: true})
	req.Owner = sandbox.Owner{Token: "tk", Quota: token.Quota{Sandboxes: 2}}
	text := fmt.Sprintf("# %d\na==1.0 --hash=sha256:%s\n", n, strings.Repeat("61", 32))
	req.Lock = &lockfile.Given{Mode: policy.LockFrozen, Sources: []lockfile.Source{{Name: "/p/requirements.txt", Data: []byte(text)}}}
	return req
}

// keptFiles are what lies in the daemon's directory of documents beside policies.
func (d *daemon) keptFiles(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(d.world.path("policies", "*.lock.*"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// brokenJournal fails where it is told to.
type brokenJournal struct {
	sandbox.Journal

	broken bool
}

func (j *brokenJournal) Move(ctx context.Context, e sandbox.Entry, ev sandbox.Event) (sandbox.Event, error) {
	if j.broken && e.State == journal.Creating {
		return ev, errors.New("broken")
	}
	return j.Journal.Move(ctx, e, ev)
}

// TestACreateThatComesToNothingLeavesNoLockfiles: whatever refuses it, nothing that a token sent stays on the
// daemon's disk. The control is the one that is made.
func TestACreateThatComesToNothingLeavesNoLockfiles(t *testing.T) {
	atHome := func(r *sandbox.Request) {
		r.Home, r.Keeps = agenthome.Home{UID: os.Getuid(), Name: "work"}, []string{".claude"}
		r.HostUID, r.HostGID = os.Getuid(), os.Getgid()
	}
	as := func(*sandbox.Request) {}
	for what, c := range map[string]struct {
		quota  token.Quota
		change func(*sandbox.Request)
		broken bool
		fails  error
		made   bool
	}{
		"control":               {change: as, made: true},
		"too many sandboxes":    {quota: token.Quota{Sandboxes: 1}, change: as},
		"too much memory":       {quota: token.Quota{MemoryBytes: 3 << 30}, change: as},
		"too many a minute":     {quota: token.Quota{CreatesPerMinute: 1}, change: as},
		"the home is in use":    {change: atHome},
		"the journal is broken": {change: as, broken: true},
		"it does not come up":   {change: as, fails: errors.New("no memory is left")},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			var j *brokenJournal
			w.Journal = func(of sandbox.Journal) sandbox.Journal { j = &brokenJournal{Journal: of}; return j }
			d := w.daemon(t)
			first, second := locked(t, 0), locked(t, 1)
			for _, r := range []*sandbox.Request{&first, &second} {
				r.Owner.Quota = c.quota
				c.change(r)
			}
			d.create(t, first)
			before := len(d.keptFiles(t))
			j.broken, d.engine.Fails = c.broken, func() error { return c.fails }
			if _, err := d.Create(t.Context(), second); (err == nil) != c.made {
				t.Fatalf("INCONCLUSIVE: %v", err)
			}
			j.broken = false
			if after := len(d.keptFiles(t)); (after > before) != c.made {
				t.Errorf("there were %d files, and there are %d", before, after)
			}
		})
	}
}

// TestTokensLockfilesGoWithTheirSandboxes: nothing of what a token's sandboxes were given is left, by the daemon
// that takes the last of them away or by the next one. Those of the host's own stay, for reports.
func TestTokensLockfilesGoWithTheirSandboxes(t *testing.T) {
	d := newWorld(t).daemon(t)
	one, other := d.create(t, locked(t, 0)), d.create(t, locked(t, 0))
	if err := d.Destroy(t.Context(), one.Info().ID); err != nil {
		t.Fatal(err)
	}
	d = d.next(t)
	if _, err := d.Lockfiles(other.Info().LockDigest); err != nil {
		t.Errorf("while there is another one with the same: %v", err)
	}
	if err := d.Destroy(t.Context(), other.Info().ID); err != nil {
		t.Fatal(err)
	}
	if left := d.keptFiles(t); len(left) != 0 {
		t.Errorf("they are gone, and this is left: %v", left)
	}
	own := locked(t, 1)
	own.Owner = sandbox.Owner{}
	for _, req := range []sandbox.Request{locked(t, 1), own} { // the same files, of both
		s := d.create(t, req)
		if err := d.Destroy(t.Context(), s.Info().ID); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if _, err := d.Lockfiles(s.Info().LockDigest); err != nil {
				t.Errorf("the host's own: %v", err)
			}
		}()
	}
	d = d.next(t)
}

// TestLockfilesCount: what the daemon keeps of them is of the token's share, over a restart, too; and a quota of
// disk that its sandboxes have to the byte is enough.
func TestLockfilesCount(t *testing.T) {
	d := newWorld(t).daemon(t)
	req := locked(t, 0)
	req.Owner.Quota = token.Quota{Sandboxes: 10}
	comment := "#" + strings.Repeat("x", 99) + "\n"
	req.Lock.Sources[0].Data = append(req.Lock.Sources[0].Data, strings.Repeat(comment, 120_000)...)
	most := 0
	for kept := req.Lock.KeptBytes(); kept*int64(most+1) <= quota.MaxLockBytes; most++ {
		if most == 1 { // a copy of the first is kept once, and counted each time
			d = d.next(t)
		}
		req.Run = fmt.Sprint("run-", most)
		d.create(t, req)
	}
	if _, err := d.Create(t.Context(), req); most < 2 || !errors.Is(err, fault.ErrExhausted) || !strings.Contains(fmt.Sprint(err), "lockfiles") {
		t.Errorf("after %d: %v", most, err)
	}
	small := locked(t, 1) // the control
	small.Owner.Token, small.Owner.Quota = "another", token.Quota{DiskBytes: 4 << 30}
	d.create(t, small)
}
