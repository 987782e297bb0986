package containment

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// keep makes a sandbox of the daemon the test's own: it ends with it.
func (s *stage) keep(t *testing.T, made api.Sandbox) *sandbox {
	t.Helper()
	t.Cleanup(func() {
		err := s.client.DestroySandbox(context.WithoutCancel(t.Context()), made.ID)
		if err != nil && client.StatusOf(err) != 404 {
			t.Errorf("destroy: %v", err)
		}
	})
	return &sandbox{stage: s, id: made.ID, run: made.Run, program: "/probe/probe"}
}

// engineVariable names another engine than the default one to try.
const engineVariable = "COFFERDAM_TEST_ENGINE"

// machines is the engine whose sandboxes are machines: with a kernel of their own, and no
// share in the host's files.
const machines = "microvm"

func byMachine() bool { return os.Getenv(engineVariable) == machines }

// template is the root of sandboxes: the host's own programs, or the image that machines need.
func template() string {
	if byMachine() {
		return "debian"
	}
	return "host"
}

// shared tells whether the engine's sandboxes have the host's kernel: they have no copies
// of memory and no pool, and see what that kernel shows of itself.
func shared() bool { return os.Getenv(engineVariable) == "runc" || byDocker() }

// kinds are how sandboxes come to be beside being made anew.
func (s *stage) kinds() map[string]func(*testing.T) *sandbox {
	if shared() {
		return map[string]func(*testing.T) *sandbox{"restored": s.restored}
	}
	if byMachine() { // one of a pool is a copy of memory, too, and each costs a boot
		return map[string]func(*testing.T) *sandbox{"restored": s.restored}
	}
	return map[string]func(*testing.T) *sandbox{"restored": s.restored, "claimed": s.claimed}
}

// restored is a sandbox that was made from the memory of another: its kernel, its
// agent and its channel are copies. Where there are no such copies it is made from files.
func (s *stage) restored(t *testing.T) *sandbox { t.Helper(); return s.restoredUnder(t, denying()) }

func (s *stage) restoredUnder(t *testing.T, law law) *sandbox {
	t.Helper()
	if s.snapshots[law.name] == "" {
		source := s.open(t, law.apply)
		source.probe(t, manner{}, "posture") // something has run in it
		contents := "memory"
		if shared() {
			contents = "files"
		}
		snapshot, err := s.client.MakeSnapshot(t.Context(), source.id, api.MakeSnapshot{Contents: contents})
		if err != nil {
			t.Fatalf("snapshot: %v", err)
		}
		s.snapshots[law.name] = snapshot.ID
	}
	made, err := s.client.CreateSandbox(t.Context(), api.CreateSandbox{Snapshot: s.snapshots[law.name], Linger: true})
	if err != nil {
		t.Fatalf("restore: %v", err)
	}
	b := s.keep(t, made)
	if !slices.ContainsFunc(b.records(t), func(r audit.Record) bool { return r.Outcome == audit.Restored }) {
		t.Fatal("INCONCLUSIVE: it is on no record that the sandbox was restored")
	}
	return b
}

// claim makes a sandbox as a client of the E2B protocol: those of the pool are for such.
func (s *stage) claim(t *testing.T, law law) api.Sandbox {
	t.Helper()
	if s.tokens[law.name] == "" {
		token, err := s.client.MakeToken(t.Context(), api.MakeToken{Name: "for-" + law.name, Policy: law.name})
		if err != nil {
			t.Fatal(err)
		}
		s.tokens[law.name] = token.Secret
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+apiAddress+"/sandboxes", strings.NewReader(`{"templateID":"base","timeout":600}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-API-Key", s.tokens[law.name])
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var made struct{ SandboxID string }
	if err := json.NewDecoder(answer.Body).Decode(&made); err != nil || answer.StatusCode != http.StatusCreated {
		t.Fatalf("claim: %s, %v", answer.Status, err)
	}
	known, err := s.client.Sandbox(t.Context(), made.SandboxID)
	if err != nil {
		t.Fatal(err)
	}
	return known
}

// claimed is a sandbox out of the pool. It has no mounts, so the probe is written
// into it.
func (s *stage) claimed(t *testing.T) *sandbox { t.Helper(); return s.claimedUnder(t, denying()) }

func (s *stage) claimedUnder(t *testing.T, law law) *sandbox {
	t.Helper()
	if _, err := s.client.PutPolicy(t.Context(), law.name, api.PutPolicy{Document: []byte(law.document)}); err != nil {
		t.Fatal(err)
	}
	s.pooled[law.name] = true
	known := keeper.Dial(filepath.Join(s.runtime(), "keeper.sock"))
	// In the pool: the keeper has it, and the daemon shows it to nobody. One waits under each
	// policy, and nobody tells which is which.
	waits := func() bool {
		all, err := known.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		shown, err := s.client.Sandboxes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		waiting := slices.DeleteFunc(all, func(k keeper.Sandbox) bool {
			return !k.Frozen || slices.ContainsFunc(shown, func(b api.Sandbox) bool { return b.ID == k.ID })
		})
		return len(waiting) >= len(s.pooled)
	}
	await(t, "a sandbox to wait in the pool", waits)
	asked := time.Now()
	made := s.claim(t, law)
	b := s.keep(t, made)
	if k, err := known.Get(t.Context(), made.ID); err != nil || !k.Started.Before(asked) {
		t.Fatalf("INCONCLUSIVE: the sandbox was not waiting: it was started at %v and asked for at %v (%v)", k.Started, asked, err)
	}
	b.program = "/var/tmp/probe"
	program, err := os.Open(filepath.Join(probeDir(), "probe"))
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	if _, err := s.client.WriteFile(t.Context(), made.ID, client.File{Path: b.program}, program); err != nil {
		t.Fatal(err)
	}
	if text, exit := b.command(t, api.StartCommand{Argv: []string{"chmod", "755", b.program}}); exit.Code != 0 {
		t.Fatalf("chmod: %s", text)
	}
	return b
}
