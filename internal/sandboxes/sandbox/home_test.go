package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/agenthome"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/agenthome/agenthometest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/mountpolicy"
)

// TestHome: one sandbox at a time has a home, whatever becomes of the daemon and of
// creates; when it is gone, the next one may.
func TestHome(t *testing.T) {
	t.Parallel()
	d := newWorld(t).daemon(t)
	req := sandbox.Request{Home: agenthome.Home{UID: os.Getuid(), Name: "work"}, HostUID: os.Getuid(), HostGID: os.Getgid(), Keeps: []string{".claude"}}
	refused := func(when string, req sandbox.Request, kind error, want string) {
		t.Helper()
		if _, err := d.Create(t.Context(), ask(t, req)); !errors.Is(err, kind) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", when, err)
		}
	}
	first := d.create(t, req).Info()
	if !slices.ContainsFunc(first.WritableMounts, func(at string) bool { return strings.HasSuffix(at, "/.claude") }) {
		t.Errorf("it is mounted at %v", first.WritableMounts)
	}
	refused("beside it", req, fault.ErrConflict, "the home work is the sandbox "+first.ID+"'s")
	d.next(t)
	refused("after a restart", req, fault.ErrConflict, "the home work is the sandbox "+first.ID+"'s")
	other := req
	other.Home.Name = "play"
	d.create(t, other)
	if err := d.Destroy(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the engine is broken")
	d.engine.Fails = func() error { return broken }
	refused("a create that fails", req, broken, "")
	d.engine.Fails = nil
	second := d.create(t, req).Info()
	if err := d.Destroy(t.Context(), second.ID); err != nil {
		t.Fatal(err)
	}
	over := req
	over.Mounts = []mountpolicy.Mount{{Source: t.TempDir(), Destination: second.WritableMounts[0] + "/inner"}}
	refused("a mount in it", over, fault.ErrInvalid, "lie in each other")
	over.Mounts[0].Destination = strings.TrimSuffix(second.WritableMounts[0], "/.claude")
	refused("a mount around it", over, fault.ErrInvalid, "lie in each other")
	plan := req
	plan.Plan = true
	refused("a plan", plan, fault.ErrInvalid, "no home that is kept")
	refused("no place", sandbox.Request{Home: req.Home}, fault.ErrInvalid, "keeps 1 to")
}

// TestAHomeThatIsHeldUnseen ends its sandbox when the disk is short, whatever else the disk is filled with; one that holds
// nothing unseen, and one whose kernel is its own, go on.
func TestAHomeThatIsHeldUnseen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.daemon(t)
	ids := map[string]string{}
	for name, way := range map[string]string{"sends": agenthometest.Sent, "opens": agenthometest.Open} {
		s := d.create(t, sandbox.Request{Home: agenthome.Home{UID: os.Getuid(), Name: name}, HostUID: os.Getuid(), HostGID: os.Getgid(), Keeps: []string{".claude"}})
		ids[name] = s.Info().ID
		agenthometest.Start(t, way, w.path("homes", strconv.Itoa(os.Getuid()), name, ".claude"))
	}
	w.Reserve = shortReserve(t, w)
	w.OwnKernel = true
	d.next(t)
	looks := d.engine.asked.Load()
	await(t, "it was looked at both, twice", func() bool { return d.engine.asked.Load() >= looks+4 })
	d.wantOnly(t, ids["opens"], ids["sends"])
	w.OwnKernel = false
	d.next(t)
	await(t, "one ends", func() bool { return len(d.List()) == 1 })
	d.wantOnly(t, ids["opens"])
	if why := d.endReason(t, ids["sends"]); !strings.Contains(why, "must stay free of the disk that its home sends is on") {
		t.Errorf("on record is %q", why)
	}
}

// TestWhoCouldHaveSentAMessageEndsWithIt: what is in messages to a sandbox may be another's, of those that show a directory in which
// one of both may make a socket. It ends with the one that has it; all others go on.
func TestWhoCouldHaveSentAMessageEndsWithIt(t *testing.T) {
	t.Parallel()
	ways := map[string]string{agenthometest.Sent: "1 open files in messages that nobody has received"}
	if os.Geteuid() == 0 { // others see no sockets that nobody shows
		ways[agenthometest.Polled] = "1 sockets that no process has open"
	}
	for way, what := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			wantSendersEnd(t, way, what)
		})
	}
}

// wantSendersEnd has a sandbox keep something in a way, which another could have sent it.
func wantSendersEnd(t *testing.T, way, what string) {
	t.Helper()
	w := newWorld(t)
	d := w.daemon(t)
	project, apart := t.TempDir(), t.TempDir()
	below := filepath.Join(project, "below")
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	show := func(name, source string, write bool) sandbox.Request {
		req := sandbox.Request{Home: agenthome.Home{UID: os.Getuid(), Name: name}, HostUID: os.Getuid(), HostGID: os.Getgid(), Keeps: []string{".claude"}}
		req.Mounts = []mountpolicy.Mount{{Source: source, Destination: "/project", ReadWrite: write}}
		return req
	}
	ids := map[string]string{}
	for name, req := range map[string]sandbox.Request{
		"receives": show("receives", project, true), "beside": show("beside", below, false), "apart": show("apart", apart, true),
	} {
		ids[name] = d.create(t, req).Info().ID
	}
	agenthometest.Start(t, way, w.path("homes", strconv.Itoa(os.Getuid()), "receives", ".claude"))
	w.Reserve = shortReserve(t, w)
	d.next(t)
	await(t, "two end", func() bool { return len(d.List()) == 1 })
	d.wantOnly(t, ids["apart"])
	if why := d.endReason(t, ids["beside"]); !strings.Contains(why, "is ended for "+what) || !strings.Contains(why, below) {
		t.Errorf("on record is %q", why)
	}
}

// TestNobodyButSendersEndsForMessages: what is hidden otherwise is the sandbox's own.
func TestNobodyButSendersEndsForMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.daemon(t)
	project := t.TempDir()
	ids := map[string]string{}
	for _, name := range []string{"copies", "beside"} {
		req := sandbox.Request{Home: agenthome.Home{UID: os.Getuid(), Name: name}, HostUID: os.Getuid(), HostGID: os.Getgid(), Keeps: []string{".claude"}}
		req.Mounts = []mountpolicy.Mount{{Source: project, Destination: "/project", ReadWrite: true}}
		ids[name] = d.create(t, req).Info().ID
	}
	agenthometest.Start(t, agenthometest.Copies, w.path("homes", strconv.Itoa(os.Getuid()), "copies", ".claude"))
	w.Reserve = shortReserve(t, w)
	d.next(t)
	await(t, "one ends", func() bool { return len(d.List()) == 1 })
	d.wantOnly(t, ids["beside"])
	if why := d.endReason(t, ids["copies"]); !strings.Contains(why, "it keeps 1 calls that wait and keep a file open") {
		t.Errorf("on record is %q", why)
	}
}
