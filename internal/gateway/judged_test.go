package gateway_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/audit"
	"github.com/cofferdam-dev/cofferdam/internal/clock"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem/golang/golangtest"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// judges puts the real controller behind the gateway, under a policy and a clock that
// can be moved, and gives its log.
func (b *bench) judges(document string) (log *audit.FileLog, ahead *atomic.Int64) {
	b.t.Helper()
	log, err := audit.Open(b.t.TempDir(), audit.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { log.Close() })
	p, err := policy.Parse("p.yaml", []byte(document))
	if err != nil {
		b.t.Fatal(err)
	}
	ahead = new(atomic.Int64) // of the host's
	c := admission.New(admission.Config{
		Log: log, Trust: b.door.Trust, Clock: clock.Plain(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }),
		Limits: admission.Limits{Parents: time.Millisecond},
	})
	if err := c.Register(admission.Run{Sandbox: sandboxA, Run: "run-a", Policy: p}); err != nil {
		b.t.Fatal(err)
	}
	b.judge = c
	b.restart()
	return log, ahead
}

// TestAYoungModuleAdmitsNothing: its go.mod is read, as resolvers must, but what it
// requires is not let in before the module itself could be. The age is the checksum
// database's.
func TestAYoungModuleAdmitsNothing(t *testing.T) {
	child := golangtest.New(t, "corp.example/child", "v1.0.0")
	root := golangtest.Pack(t, "corp.example/root", "v1.0.0",
		[2]string{"go.mod", "module corp.example/root\n\nrequire corp.example/child v1.0.0\n"}, [2]string{"p.go", "package p\n"})
	b, _ := newGoBench(t, root, child)
	_, clock := b.judges(`
packages: { default: deny, min_release_age: 2h }
allowed_packages: { go: [ { name: corp.example/root, with_dependencies: true } ] }
`)
	mod, zip := goFiles(t, root)[1], goFiles(t, child)[0]
	if a := b.get(mod); a.StatusCode != http.StatusOK {
		t.Fatalf("the go.mod can't be read: %s", status(a))
	}
	if a := b.get(zip); a.StatusCode != http.StatusForbidden || !strings.Contains(a.body, "not on the allowlist") {
		t.Errorf("what it requires: %s", status(a))
	}
	clock.Store(int64(3 * time.Hour)) // positive control: it has ripened
	if a := b.get(mod); a.StatusCode != http.StatusOK {
		t.Fatal(status(a))
	}
	if a := b.get(zip); a.StatusCode != http.StatusOK {
		t.Errorf("what it requires, once it may be had: %s", status(a))
	}
}
