package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/cgroup"
)

// memoryGroup is the directory of the memory controller's group that a process is in, and the
// files there of its limit and its use.
func memoryGroup(t *testing.T, pid int) (limits []string, used string) {
	t.Helper()
	g, err := cgroup.OfProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	for _, join := range g.Joins() {
		dir := filepath.Dir(join)
		if use := filepath.Join(dir, "memory.usage_in_bytes"); there(use) {
			return []string{filepath.Join(dir, "memory.limit_in_bytes"), filepath.Join(dir, "memory.memsw.limit_in_bytes")}, use
		}
		if use := filepath.Join(dir, "memory.current"); there(use) {
			return []string{filepath.Join(dir, "memory.max")}, use
		}
	}
	t.Fatalf("process %d is in no group that limits memory: %v", pid, g.Joins())
	return nil, ""
}

func there(path string) bool { _, err := os.Stat(path); return err == nil }

func numberIn(t *testing.T, path string) int64 {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// tighten leaves a process's group no more memory than it uses, so that the next that it
// needs ends it: the kernel has taken back by then what can be read again.
func tighten(t *testing.T, pid int) {
	t.Helper()
	limits, used := memoryGroup(t, pid)
	for most := numberIn(t, used); ; most -= 256 << 10 {
		lowered := false
		for _, limit := range limits {
			lowered = os.WriteFile(limit, []byte(strconv.FormatInt(most, 10)), 0o600) == nil || lowered
		}
		if !lowered || !there(fmt.Sprintf("/proc/%d", pid)) {
			return
		}
	}
}

// TestTheGatewayAndTheKeeperHaveLimits: each is in a control group with the limits that the
// configuration gives it. One that reaches its limit is ended and comes back, the log says
// which limit that was, and nothing else ends with it: of the gateway no sandbox does.
func TestTheGatewayAndTheKeeperHaveLimits(t *testing.T) {
	t.Parallel()
	const host = "index.example"
	wheel, digest := bigWheel(t, 1<<20)
	l := liar.New(t, host)
	page := fmt.Sprintf(`<!DOCTYPE html><html><body><a href="/files/big-1.0-py3-none-any.whl#sha256=%s">big-1.0-py3-none-any.whl</a></body></html>`, digest)
	l.Script(host+"/simple/big/", liar.Body("text/html", []byte(page)))
	l.Script(host+"/files/big-1.0-py3-none-any.whl", func(_ *liar.Server, w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, wheel) })
	in := start(t, localUpstream(t, l, host)+"processes: { gateway: { memory: 1234MiB }, keeper: { memory: 1111MiB } }\n")
	const policy = "name: big\nallowed_packages: { python: [ { name: big } ] }\n"
	env := in.create("debian", policy)
	const get = `
import urllib.request
print(len(urllib.request.urlopen("https://` + host + `/files/big-1.0-py3-none-any.whl").read()))
`
	installs := func(sb api.Sandbox) bool { return in.run(sb, "python3", "-c", get).Exit.Code == 0 }
	if !installs(env) {
		t.Fatal("the control: nothing is installed")
	}
	roles := in.roles(t)
	for role, want := range map[string]int64{"gateway": 1234 << 20, "keeper": 1111 << 20} {
		if limits, _ := memoryGroup(t, roles[role]); numberIn(t, limits[0]) != want {
			t.Errorf("the %s has %d bytes of %s, not %d", role, numberIn(t, limits[0]), limits[0], want)
		}
	}
	if t.Failed() {
		t.FailNow() // tighten would lower a limit that is not theirs
	}
	tighten(t, roles["gateway"])
	until(t, "the gateway is another one", func() bool {
		_ = installs(env) // it is what needs memory
		return !there(fmt.Sprintf("/proc/%d", roles["gateway"]))
	})
	until(t, "the next gateway serves", func() bool { return installs(env) })
	if limits, _ := memoryGroup(t, in.roles(t)["gateway"]); numberIn(t, limits[0]) != 1234<<20 {
		t.Error("the next gateway has another limit")
	}
	if want := "the gateway reached its limit of memory, processes.gateway.memory"; !bytes.Contains(in.log(), []byte(want)) {
		t.Errorf("the log does not say %q", want)
	}
	if in.roles(t)["keeper"] != roles["keeper"] {
		t.Error("the keeper ended with the gateway")
	}
	tighten(t, roles["keeper"])
	until(t, "the keeper is another one", func() bool {
		_, _ = in.Client.StartCommand(t.Context(), env.ID, api.StartCommand{Argv: []string{"head", "-c", "1000000", "/dev/zero"}})
		return !there(fmt.Sprintf("/proc/%d", roles["keeper"]))
	})
	var next api.Sandbox
	until(t, "the next keeper has sandboxes", func() bool {
		var err error
		next, err = in.Client.CreateSandbox(t.Context(), api.CreateSandbox{Template: "debian", Policy: api.Policy{Document: []byte(policy)}, Linger: true})
		return err == nil
	})
	if !installs(next) {
		t.Error("the sandbox of the next keeper installs nothing")
	}
	if want := "the keeper reached its limit of memory, processes.keeper.memory"; !bytes.Contains(in.log(), []byte(want)) {
		t.Errorf("the log does not say %q", want)
	}
}
