package dialer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/network/dialer"
)

// envTargets makes this program the boxed one, which tries addresses.
const envTargets = "COFFERDAM_TEST_BOXED"

func TestMain(m *testing.M) {
	if targets := os.Getenv(envTargets); targets != "" {
		boxed(strings.Split(targets, ","))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// boxed dials each target itself and by the dialer, and says how it went.
func boxed(targets []string) {
	c, err := dialer.NewClient(os.NewFile(3, "dialer"))
	if err != nil {
		fmt.Println("no client:", err)
		return
	}
	for _, at := range targets {
		for how, dial := range map[string]func(context.Context, string, string) (net.Conn, error){"itself": (&net.Dialer{}).DialContext, "handed": c.DialContext} {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			conn, err := dial(ctx, "tcp", at)
			if err == nil {
				_, _ = io.WriteString(conn, how)
				_ = conn.(*net.TCPConn).CloseWrite()
				_, err = io.Copy(io.Discard, conn)
				_ = conn.Close()
			}
			fmt.Println(how, at, err)
			cancel()
		}
	}
}

// visited is a listener that notes what its visitors say.
type visited struct {
	net.Listener

	mu    sync.Mutex
	words []string
}

func listen(t *testing.T) *visited {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := &visited{Listener: l}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			said, _ := io.ReadAll(conn)
			v.mu.Lock()
			v.words = append(v.words, string(said))
			v.mu.Unlock()
			_ = conn.Close()
		}
	}()
	return v
}

func (v *visited) said() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return strings.Join(v.words, " ")
}

// run starts this program as the boxed one beside a dialer.
func run(t *testing.T, attr *syscall.SysProcAttr, a dialer.Allowed, targets ...string) string {
	t.Helper()
	ours, theirs, err := dialer.Pair()
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- dialer.Serve(t.Context(), ours, a, nil) }()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), envTargets+"="+strings.Join(targets, ","))
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = attr
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	_ = theirs.Close()
	if err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	if err := <-served; err != nil {
		t.Errorf("the dialer ended with %v", err)
	}
	return out.String()
}

// TestABoxedProcessHasWhatItIsHanded: in a network namespace of its own a process connects to
// nothing, and has the connections that the dialer makes: those that are allowed. The listeners on
// the host know what was visited.
func TestABoxedProcessHasWhatItIsHanded(t *testing.T) {
	t.Parallel()
	pinned, other := listen(t), listen(t)
	a := dialer.Allowed{Pins: []dialer.Pin{{At: netip.MustParseAddrPort(pinned.Addr().String())}}}
	both := []string{pinned.Addr().String(), other.Addr().String()}
	said := run(t, dialer.Apart(os.Geteuid(), os.Getegid()), a, both...)
	if pinned.said() != "handed" || other.said() != "" || strings.Count(said, "network is unreachable") != 2 || !strings.Contains(said, "is a loopback address, and nothing in the configuration leads there") {
		t.Errorf("the pinned one heard %q, the other %q; the boxed process says\n%s", pinned.said(), other.said(), said)
	}
	// The control: out of the box it reaches both by itself, and the dialer refuses the same.
	pinned, other = listen(t), listen(t)
	a.Pins[0].At = netip.MustParseAddrPort(pinned.Addr().String())
	said = run(t, nil, a, pinned.Addr().String(), other.Addr().String())
	if !strings.Contains(pinned.said(), "itself") || !strings.Contains(pinned.said(), "handed") || other.said() != "itself" {
		t.Errorf("INCONCLUSIVE: outside, the pinned one heard %q, the other %q; it says\n%s", pinned.said(), other.said(), said)
	}
}

// resolver answers for any name, or waits.
type resolver struct {
	asked atomic.Int64
	wait  chan struct{} // nil: nobody waits
}

func (r *resolver) LookupNetIP(ctx context.Context, _, host string) ([]netip.Addr, error) {
	r.asked.Add(1)
	if r.wait != nil {
		select {
		case <-r.wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if host == "nowhere.example" {
		return nil, errors.New("no such host")
	}
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

// pair is a client and its dialer in one process.
func pair(t *testing.T, a dialer.Allowed, r dialer.Resolver) (*dialer.Client, func()) {
	t.Helper()
	ours, theirs, err := dialer.Pair()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _ = dialer.Serve(ctx, ours, a, r) }()
	c, err := dialer.NewClient(theirs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = c.Close() })
	return c, cancel
}

// TestNames: what a configured name has may be dialled once it was asked for, by many at
// a time; a name that nobody configured leads nowhere but to the internet.
func TestNames(t *testing.T) {
	t.Parallel()
	l := listen(t)
	c, _ := pair(t, dialer.Allowed{Names: []dialer.Name{{Name: "packages.example"}}}, &resolver{})
	if _, err := c.DialContext(t.Context(), "tcp", l.Addr().String()); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("before the name was asked for: %v", err)
	}
	if found, err := c.LookupNetIP(t.Context(), "ip", "evil.example"); err != nil || len(found) != 1 {
		t.Errorf("%v, %v", found, err)
	}
	if _, err := c.DialContext(t.Context(), "tcp", l.Addr().String()); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("by another name: %v", err)
	}
	if _, err := c.LookupNetIP(t.Context(), "ip", "nowhere.example"); err == nil || !strings.Contains(err.Error(), "no such host") {
		t.Errorf("%v", err)
	}
	if _, err := c.LookupNetIP(t.Context(), "ip", "packages.example"); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			conn, err := c.DialContext(t.Context(), "tcp", l.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, "x"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, wrong := range []string{"localhost:80", "127.0.0.1", "", "127.0.0.1:99999"} {
		if _, err := c.DialContext(t.Context(), "tcp", wrong); err == nil {
			t.Errorf("%q was dialled", wrong)
		}
	}
	if _, err := c.DialContext(t.Context(), "udp", l.Addr().String()); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("udp: %v", err)
	}
}

// TestWhoGivesUp does not wait, and the dialer goes on for others; when the dialer is gone
// everybody is told.
func TestWhoGivesUp(t *testing.T) {
	t.Parallel()
	r := &resolver{wait: make(chan struct{})}
	c, end := pair(t, dialer.Allowed{}, r)
	ctx, cancel := context.WithCancel(t.Context())
	given := make(chan error, 1)
	go func() {
		_, err := c.LookupNetIP(ctx, "ip", "slow.example")
		given <- err
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for r.asked.Load() == 0 {
		<-tick.C
	}
	cancel()
	if err := <-given; !errors.Is(err, context.Canceled) {
		t.Errorf("who gave up has %v", err)
	}
	close(r.wait)
	if _, err := c.LookupNetIP(t.Context(), "ip", "quick.example"); err != nil {
		t.Errorf("the next one: %v", err)
	}
	end()
	<-c.Done()
	if _, err := c.LookupNetIP(t.Context(), "ip", "quick.example"); err == nil {
		t.Error("a dialer that is gone has answered")
	}
}

// TestWhatForbidsABox: only what this host says for good. A dial for which something is scarce now is tried again,
// and nothing runs in the host's network for it.
func TestWhatForbidsABox(t *testing.T) {
	t.Parallel()
	for errno, want := range map[syscall.Errno]bool{
		syscall.EPERM: true, syscall.EACCES: true, syscall.ENOSYS: true, syscall.EINVAL: false, syscall.ENOSPC: false,
		syscall.EAGAIN: false, syscall.ENOMEM: false, syscall.EMFILE: false, syscall.ENOENT: false,
	} {
		if got := dialer.Forbidden(&os.PathError{Op: "fork/exec", Path: "/x", Err: errno}); got != want {
			t.Errorf("%v: %v", errno, got)
		}
	}
	if dialer.Forbidden(nil) || dialer.Forbidden(context.Canceled) {
		t.Error("what no kernel said forbids it")
	}
}
