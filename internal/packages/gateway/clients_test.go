package gateway_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi/pypitest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway"
)

// road leads real clients on this host to the gateway by their real names: a
// CONNECT proxy on loopback that takes every name there. In a sandbox the
// channel does this.
type road struct {
	b    *bench
	addr string
	dir  string
	env  []string
}

func newRoad(b *bench) *road {
	b.t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(b.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	var streams sync.WaitGroup
	streams.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			streams.Go(func() { connect(b.gateway, conn) })
		}
	})
	b.t.Cleanup(func() {
		_ = l.Close() // it ends the accepting
		_ = b.gateway.Close()
		streams.Wait()
	})
	r := &road{b: b, addr: l.Addr().String(), dir: b.t.TempDir()}
	ca := filepath.Join(r.dir, "ca.pem")
	if err := os.WriteFile(ca, b.door.caPEM, 0o600); err != nil {
		b.t.Fatal(err)
	}
	r.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "HTTPS_PROXY=http://" + r.addr, "https_proxy=http://" + r.addr,
		"SSL_CERT_FILE=" + ca, "PIP_CERT=" + ca, "REQUESTS_CA_BUNDLE=" + ca, "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_NO_CACHE_DIR=1",
		"PIP_CONFIG_FILE=/dev/null", "PIP_ROOT_USER_ACTION=ignore", "UV_NO_CACHE=1", "UV_NO_CONFIG=1", "UV_HTTP_TIMEOUT=300", "PIP_DEFAULT_TIMEOUT=300",
	}
	return r
}

// connect answers CONNECT for any name and hands the stream to the gateway.
func connect(g *gateway.Gateway, conn net.Conn) {
	in := bufio.NewReader(conn)
	req, err := http.ReadRequest(in)
	if err != nil || req.Method != http.MethodConnect {
		_ = conn.Close() // not a client of this road
		return
	}
	if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		_ = conn.Close() // the client is gone
		return
	}
	g.ServeRegistry(&buffered{conn, in}, sandboxA)
}

type buffered struct {
	net.Conn
	in *bufio.Reader
}

func (b *buffered) Read(p []byte) (int, error) { return b.in.Read(p) }

// run runs a client and gives its output and whether it succeeded.
func (r *road) run(env []string, argv ...string) (string, bool) {
	r.b.t.Helper()
	cmd := exec.CommandContext(r.b.t.Context(), argv[0], argv[1:]...)
	cmd.Dir = r.dir
	cmd.Env = append(append([]string{}, r.env...), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// capped allows alpha below 2, and nothing of gone.
func capped(ref pkgref.Ref, _ door.File) policy.Decision {
	switch {
	case ref.Name == "gone":
		return policy.Decision{Effect: policy.Deny, Reason: "gone is on no list of the policy", Rule: "packages.default"}
	case ref.Name == "alpha" && ref.Version >= "2":
		return policy.Decision{Effect: policy.Deny, Reason: "alpha " + ref.Version + " is over max_version 1.x", Rule: "allowed_packages.python.alpha"}
	}
	return policy.Decision{Effect: policy.Allow, Rule: "test"}
}

// checkRefusals checks what a client prints of refusals; docs/ecosystems.md is the table.
func checkRefusals(t *testing.T, r *road, client string, env, install []string, reasonOfRange string) {
	t.Helper()
	const over, listed = "alpha 2.0 is over max_version 1.x", "gone is on no list of the policy"
	for _, c := range []struct{ requirement, wants string }{
		{"alpha==2.0", over},
		{"gone", listed},
		{"gone==1.0", listed},
		{"wants-gone", listed},
		{"alpha>=2", reasonOfRange},
		{"never-seen", "never-seen"},
	} {
		out, ok := r.run(env, append(install, "--target", filepath.Join(r.dir, "refused-"+client), c.requirement)...)
		if ok || !strings.Contains(out, c.wants) {
			t.Errorf("%s install %s: succeeded %v, and does not say %q:\n%s", client, c.requirement, ok, c.wants, out)
		}
		if n := strings.Count(out, "Retry"); n > 0 {
			t.Errorf("%s install %s retries:\n%s", client, c.requirement, out)
		}
	}
	target := filepath.Join(r.dir, "allowed-"+client)
	out, ok := r.run(env, append(install, "--target", target, "needs-alpha")...)
	if _, err := os.Stat(filepath.Join(target, "alpha-1.0.dist-info", "METADATA")); !ok || err != nil {
		t.Errorf("%s does not take the allowed version: %v\n%s", client, err, out)
	}
}

func publishForClients(b *bench) {
	b.publish(pypitest.Wheel(b.t, "alpha", "1.0"), pypitest.Wheel(b.t, "alpha", "2.0"))
	b.publish(pypitest.Wheel(b.t, "gone", "1.0"), pypitest.Wheel(b.t, "gone", "1.1"))
	b.publish(pypitest.Wheel(b.t, "needs-alpha", "1.0", "alpha>=0.5"))
	b.publish(pypitest.Wheel(b.t, "wants-gone", "1.0", "gone"))
	b.door.rule(capped)
}

// TestPip runs this host's pip against the scripted registry.
func TestPip(t *testing.T) {
	b := newBench(t, nil)
	publishForClients(b)
	r := newRoad(b)
	env := []string{"PIP_INDEX_URL=https://" + indexHost + "/simple/"}
	checkRefusals(t, r, "pip", env, []string{"python3", "-m", "pip", "install"}, "No matching distribution found for alpha>=2")
}
